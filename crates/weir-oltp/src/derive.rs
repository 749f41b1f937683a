//! From record to result. Pure: the same record gives the same result, on any machine, years later.

use std::collections::BTreeMap;

use super::durability::Durability;
use super::kind::Tally;
use super::limits::{Evidence, Load, Part, judge};
use super::oltp_result::{Connections, Errors, KindResult, OltpResult, Queries, SCHEMA};
use super::processors::Processors;
use super::record::{KindRecord, OltpRecord};
use super::{Kind, warnings};
use weir_core::result::Record;
use weir_core::result::derive::{cpu_result, lateness_result, stability, stall};
use weir_core::result::record::CpuRecord;
use weir_core::result::run_result::CpuResult;
use weir_core::result::series::{Series, per_second};

/// Warnings that a verdict replaces.
const GUESSED: [&str; 2] = ["wake-ups", "no-disk"];

/// Derives the result of a run: `raw` is what `record` holds.
pub fn derive(record: &Record, raw: &OltpRecord) -> OltpResult {
    let open_loop = raw.spec.rate.is_some();
    let series = Series::of_intervals(&raw.intervals, Kind::Transaction);
    let course = stability(&series, open_loop);
    let transactions = kind_result(raw, Kind::Transaction);
    let (statements, rest_time_share) = statements(raw);
    let processors = Processors::of(raw);
    let cpu = cpu(raw, processors.as_ref(), transactions.count);
    let mut result = OltpResult {
        schema: SCHEMA.to_string(),
        id: record.id.clone(),
        record_path: None,
        started_at: record.started_at.clone(),
        spec: raw.spec.clone(),
        script_path: raw.script_path.clone(),
        server: raw.server.clone(),
        elapsed_ns: raw.elapsed_ns,
        queries: queries(raw, &statements),
        errors: errors(raw, transactions.count),
        connections: connections(raw),
        transactions,
        statements,
        rest_time_share,
        warmup: course.warmup,
        steady: course.steady,
        regimes: course.regimes,
        client_cpu_share: processors.filter(|all| all.busy > 0.0).map(|all| all.client / all.busy),
        cpu,
        lateness: lateness_result(raw.lateness.as_ref(), raw.spec.late_after.0),
        stall: stall(&raw.intervals),
        error: raw.error.clone(),
        ended_early: record.ended_early.clone(),
        processors,
        durability: Durability::of(record, raw),
        verdict: Evidence::of(raw).map(|evidence| judge(&evidence)),
        notes: Vec::new(),
    };
    result.notes = warnings::of(record, raw, &result);
    if result.verdict.is_some() {
        // What was watched says it with figures, or that it is not so.
        result.notes.retain(|note| !GUESSED.contains(&note.key.as_str()));
        if reads_files(raw, &result) {
            result.notes.retain(|note| note.key != "fits-in-memory");
        }
    }
    result
}

/// Pages a transaction, and share of its time, from which reads of files are seen where none were expected.
const READS: f64 = 0.1;

/// Whether pages were read that memory was expected to hold.
fn reads_files(raw: &OltpRecord, result: &OltpResult) -> bool {
    let pages = raw.seen().and_then(|watched| watched.counters?.page_reads).unwrap_or(0);
    let share = result.verdict.as_ref().map_or(0.0, |verdict| verdict.profile.share(Part::Read));
    share > READS || pages as f64 > READS * result.transactions.count as f64
}

/// Processor time as the one account has it; without one, of the client alone.
fn cpu(raw: &OltpRecord, processors: Option<&Processors>, transactions: u64) -> CpuResult {
    let Some(all) = processors else {
        let unknown = CpuRecord { machine_busy_ns: 0, ..raw.cpu };
        return cpu_result(&unknown, raw.elapsed_ns, transactions);
    };
    let load = Load::of(raw);
    let each = |processors: f64| if transactions == 0 { 0.0 } else { Processors::each_ns(processors, &load) };
    CpuResult {
        process_ns_per_operation: each(all.client),
        machine_ns_per_operation: each(all.busy),
        process_busy: all.client,
        machine_busy: all.busy,
        processors: all.online,
    }
}

fn kind_result(raw: &OltpRecord, kind: Kind) -> KindResult {
    let nothing = KindRecord::default();
    let of = raw.kinds.get(&kind).unwrap_or(&nothing);
    let time_share = if kind == Kind::Transaction { 1.0 } else { 0.0 };
    let figures = KindResult::of(&of.latency, raw.elapsed_ns);
    KindResult { errors: of.errors, rows: of.rows, time_share, ..figures }
}

/// Statements with their shares, and what is left of the transactions' time. In an open loop a transaction's latency
/// also holds the wait for its connection, so shares are of the statements' time and nothing is left.
fn statements(raw: &OltpRecord) -> (BTreeMap<Kind, KindResult>, Option<f64>) {
    let sum = |of: &KindRecord| of.latency.sum() as f64;
    let all = || raw.kinds.iter().filter(|(kind, _)| **kind != Kind::Transaction);
    let of_statements: f64 = all().map(|(_, of)| sum(of)).sum();
    let of_transactions = raw.kinds.get(&Kind::Transaction).map_or(0.0, sum);
    let closed = raw.spec.rate.is_none() && of_transactions > 0.0;
    // Statements of transactions that the end cut off are counted and their transactions are not.
    let whole = if closed { of_transactions.max(of_statements) } else { of_statements };
    let with_share = |(kind, of): (&Kind, &KindRecord)| {
        let time_share = if whole > 0.0 { sum(of) / whole } else { 0.0 };
        (*kind, KindResult { time_share, ..kind_result(raw, *kind) })
    };
    (all().map(with_share).collect(), closed.then(|| 1.0 - of_statements / whole))
}

fn queries(raw: &OltpRecord, statements: &BTreeMap<Kind, KindResult>) -> Queries {
    let mut queries = Queries::default();
    for (kind, of) in statements {
        match kind.tally() {
            Some(Tally::Read) => queries.read += of.count,
            Some(Tally::Write) => {
                let empty = raw.kinds.get(kind).map_or(0, |of| of.empty).min(of.count);
                queries.write += of.count - empty;
                queries.other += empty;
            }
            Some(Tally::Other) => queries.other += of.count,
            None => {}
        }
    }
    Queries { per_second: per_second(queries.total(), raw.elapsed_ns), ..queries }
}

fn errors(raw: &OltpRecord, transactions: u64) -> Errors {
    Errors {
        ignored: raw.ignored_errors.clone(),
        retried: raw.retried,
        retried_share: raw.retried as f64 / transactions.max(1) as f64,
        reconnects: raw.reconnects,
    }
}

fn connections(raw: &OltpRecord) -> Connections {
    let counts = || raw.threads.iter().map(|thread| thread.transactions);
    let in_transactions = raw.kinds.get(&Kind::Transaction).map_or(0.0, |of| of.latency.sum() as f64);
    let available = raw.elapsed_ns as f64 * raw.threads.len() as f64;
    let closed = raw.spec.rate.is_none() && available > 0.0;
    Connections {
        count: raw.threads.len(),
        fewest: counts().min().unwrap_or(0),
        most: counts().max().unwrap_or(0),
        // Transactions that began before the measuring and ended in it count as a whole.
        busy_share: closed.then(|| (in_transactions / available).min(1.0)),
    }
}
