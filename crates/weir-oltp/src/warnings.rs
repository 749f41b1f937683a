//! What a reader of a database run must know before believing it: each note has a stable key and says what it means.

use super::durability::{Promise, State, memory_file_system};
use super::oltp_result::OltpResult;
use super::record::{OltpRecord, is_local};
use super::size;
use weir_core::result::Record;
use weir_core::result::record::Note;
use weir_core::result::warnings as of_runs;
use weir_core::units::{Bytes, Nanos, grouped, significant};

/// The client's share of all CPU time that is worth a sentence: beyond it, the server lacks what the client takes.
const CLIENT_CPU_SHARE: f64 = 0.25;
/// Transactions that ran again, as a share, that is worth a sentence.
const RETRIED_SHARE: f64 = 0.01;
/// More connections than this for each processor wait for processors rather than for the database.
const CONNECTIONS_A_PROCESSOR: f64 = 16.0;
/// With at most this share of the processors busy, both sides sleep between statements.
const IDLE_BUSY_SHARE: f64 = 0.6;
/// Statements that take longer than this do not hang on how fast a processor wakes.
const WAKE_UP_NS: f64 = 300_000.0;

fn note(key: &str, text: String) -> Note {
    Note { key: key.to_string(), text }
}

/// All notes: first what the runner noticed, then what the figures themselves say.
pub(super) fn of(record: &Record, raw: &OltpRecord, result: &OltpResult) -> Vec<Note> {
    let mut notes = raw.notes.clone();
    let found = [
        ended(result),
        nothing(result),
        retried(result),
        of_runs::late(result.lateness, "transactions"),
        client_cpu(result),
        connections(raw, result),
        not_durable(result),
        data_in_memory(record).or_else(|| never_touches_the_disk(result)),
        in_memory(result),
        wake_ups(raw, result),
        of_runs::stall_seen(result.stall, "a transaction"),
        of_runs::warmup(result.warmup),
        of_runs::regimes(&result.regimes),
        of_runs::steady(result.steady, raw.spec.rate.is_some(), "transactions/s"),
        samples(result),
    ];
    notes.extend(found.into_iter().flatten());
    notes
}

fn ended(result: &OltpResult) -> Option<Note> {
    match (&result.error, &result.ended_early) {
        (Some(error), _) => Some(note("server-error", format!("an error ended the run: {error}"))),
        (None, Some(why)) => Some(note(
            "ended-early",
            format!("the run ended early ({why}); figures cover what was measured until then"),
        )),
        (None, None) => None,
    }
}

fn nothing(result: &OltpResult) -> Option<Note> {
    (result.transactions.count == 0)
        .then(|| note("no-transactions", "not a single transaction finished".to_string()))
}

fn retried(result: &OltpResult) -> Option<Note> {
    let share = result.errors.retried_share;
    (share > RETRIED_SHARE).then(|| {
        let text = format!(
            "{:.1} % of transactions met a deadlock, a lock time-out or a conflict and ran again; their latency holds \
             all attempts. Fewer connections or more rows would meet less often",
            share * 100.0
        );
        note("retries", text)
    })
}

/// Only where the server is on this machine does it lack what the client takes.
fn client_cpu(result: &OltpResult) -> Option<Note> {
    let share = result.client_cpu_share.filter(|share| *share > CLIENT_CPU_SHARE)?;
    let is_seen = result.processors.is_some_and(|all| all.server.is_some());
    (is_seen || result.server.places.iter().all(|place| is_local(place))).then_some(())?;
    let text = format!(
        "the client took {:.0} % of the CPU time that this machine spent: a client on another machine would \
         leave that to the server",
        share * 100.0
    );
    Some(note("client-cpu", text))
}

/// The client's own processors: those of the server may be others.
fn connections(raw: &OltpRecord, result: &OltpResult) -> Option<Note> {
    let (count, processors) = (result.connections.count, raw.cpu.usable());
    let many = processors > 0 && count as f64 > CONNECTIONS_A_PROCESSOR * f64::from(processors);
    many.then(|| {
        let text = format!(
            "{} connections share {processors} processors: latencies include the time that weir and the server wait for one",
            grouped(count as u64)
        );
        note("many-connections", text)
    })
}

fn not_durable(result: &OltpResult) -> Option<Note> {
    let found = &result.durability;
    match found.state {
        State::NotPromised if result.queries.write > 0 => Some(note("not-durable", found.sentence.clone())),
        State::NotSeen => {
            let text = format!("durability {}. Check {}", found.sentence, found.check);
            Some(note("durability-not-seen", text))
        }
        State::Seen if !found.check.is_empty() => Some(note("syncs-too-fast", found.check.clone())),
        _ => None,
    }
}

/// Fits the memory of the server, as far as its variables and the tables' expected size tell.
fn fits(result: &OltpResult) -> Option<(Bytes, Bytes, &'static str)> {
    let dialect = result.server.dialect?;
    let (name, cache) = size::cache(dialect, &result.server.variables)?;
    let tables = Bytes(size::tables_bytes(&result.spec, dialect));
    (result.script_path.is_none() && tables.0 > 0 && tables <= cache).then_some((tables, cache, name))
}

fn in_memory(result: &OltpResult) -> Option<Note> {
    let (tables, cache, name) = fits(result)?;
    (result.queries.read > 0).then(|| {
        let text = format!(
            "the tables (about {tables}) fit into {name} ({cache}): once warm, reads never reach the disk, and a \
             faster one would not speed them up"
        );
        note("fits-in-memory", text)
    })
}

/// A data directory on a file system without a device.
fn data_in_memory(record: &Record) -> Option<Note> {
    memory_file_system(&record.conditions).map(|kind| {
        let text = format!(
            "the server's data are on {kind}, which is memory: commits end with the machine, and disks cannot be \
             compared with this run"
        );
        note("data-in-memory", text)
    })
}

fn never_touches_the_disk(result: &OltpResult) -> Option<Note> {
    fits(result)?;
    let promises = Promise::of_all(&result.server);
    let waits_for_disk = promises == Promise::Kept && result.queries.write > 0;
    (promises != Promise::Unknown && !waits_for_disk).then(|| {
        let text = "nothing in this run waits for the disk: the data is in memory and no commit is made durable; it \
                    cannot be used to compare disks";
        note("no-disk", text.to_string())
    })
}

/// At low concurrency both sides sleep between statements; how fast a processor wakes is then most of a statement. Of the
/// few processors that a client is confined to, nobody has seen whether they are idle.
fn wake_ups(raw: &OltpRecord, result: &OltpResult) -> Option<Note> {
    if raw.cpu.usable() < raw.cpu.processors {
        return None;
    }
    let processors = f64::from(result.cpu.processors.max(1));
    let busy = result.cpu.machine_busy / processors;
    let statements = result.queries.total();
    let each_ns =
        result.transactions.latency.mean_ns * result.transactions.count as f64 / statements.max(1) as f64;
    let few = (result.connections.count as f64) < processors;
    let idle = result.cpu.machine_busy > 0.0 && busy < IDLE_BUSY_SHARE;
    (result.spec.rate.is_none() && statements > 0 && few && idle && each_ns < WAKE_UP_NS).then(|| {
        let text = format!(
            "with {} a statement takes {} and both sides sleep in between, on {processors} processors: waking an idle processor may be most of that; compare with client and server on one processor \
             (taskset), or with more connections",
            if result.connections.count == 1 { "1 connection".to_string() } else { format!("{} connections", result.connections.count) },
            Nanos(each_ns as u64)
        );
        note("wake-ups", text)
    })
}

/// The first percentile of transactions that has too few samples behind it.
fn samples(result: &OltpResult) -> Option<Note> {
    let of = &result.transactions;
    let (name, have, need) = of.latency.too_few().filter(|_| of.count > 0)?;
    let longer = significant(need as f64 / have.max(1) as f64);
    let text = format!(
        "too few transactions for high percentiles: {name} needs {} (has {}); run {longer} times as long",
        grouped(need),
        grouped(have)
    );
    Some(note("insufficient-samples", text))
}
