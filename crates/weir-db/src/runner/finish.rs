//! After the last transaction: the record of what was measured.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use weir_core::result::record::{CpuRecord, Lateness};
use weir_core::stats::counters::Totals;
use weir_oltp::record::{ConnectionRecord, KindRecord, SCHEMA};
use weir_oltp::{Kind, OltpRecord};

use super::gate::lock;
use super::recorder::Sums;
use super::running::Running;
use super::watch::{Seen, due_before};

/// Joins the threads and writes the record.
pub fn record(mut running: Running, mut seen: Seen) -> OltpRecord {
    running.join(seen.abandoned);
    let sums = running.shared.book.sums();
    let shared = running.shared.clone();
    OltpRecord {
        schema: SCHEMA.to_string(),
        spec: shared.spec.clone(),
        script_path: None,
        watched: None,
        server: std::mem::take(&mut running.server),
        elapsed_ns: elapsed_ns(&running, &seen),
        kinds: kinds(&sums, &seen.base),
        ignored_errors: ignored(&sums, &seen.base),
        retried: sums.retried - seen.base.retried,
        reconnects: sums.reconnects - seen.base.reconnects,
        intervals: seen.intervals.take(),
        threads: connections(&running, &seen),
        lateness: lateness(&running, &seen, &sums),
        cpu: cpu(&seen),
        notes: std::mem::take(&mut seen.notes),
        error: lock(&shared.failure).clone(),
    }
}

fn last_ns(running: &Running) -> u64 {
    running.shared.book.seats.iter().map(|seat| seat.last_ns.load(Relaxed)).max().unwrap_or(0)
}

/// When the last connection came to its end, by its own clock; by the look that found none left where one has no such time.
fn ended_ns(running: &Running, seen: &Seen) -> u64 {
    let ended = running.shared.book.seats.iter().map(|seat| seat.ended_ns.load(Relaxed));
    ended.map(|ns| if ns == 0 { seen.end_ns } else { ns }).max().unwrap_or(seen.end_ns)
}

/// Whether all transactions have begun, where their number is limited.
fn is_all_done(running: &Running) -> bool {
    let limit = running.shared.spec.transactions;
    limit > 0 && running.shared.tickets.load(Relaxed) >= limit
}

/// When the run was to end: at the end of the time asked for, or when somebody asked to stop or an error ended it before.
fn over_ns(running: &Running, seen: &Seen) -> Option<u64> {
    seen.over_ns.map(|over_ns| over_ns.min(running.span.deadline_ns))
}

/// Measured time: until the run was to end or came to its end by itself, or to a later end of the last transaction; to this end
/// alone where their number was the limit.
fn elapsed_ns(running: &Running, seen: &Seen) -> u64 {
    let has_ended_early = seen.stopped || running.shared.has_failed();
    let is_counted_out =
        is_all_done(running) && !running.shared.out_of_time.load(Relaxed) && !has_ended_early;
    let over_ns = match over_ns(running, seen) {
        // What hangs has no end, but took its time.
        _ if seen.abandoned => seen.end_ns,
        _ if is_counted_out => 0,
        Some(over_ns) => over_ns,
        None => ended_ns(running, seen),
    };
    last_ns(running).max(over_ns).saturating_sub(running.measure_from_ns).max(1)
}

fn kinds(sums: &Sums, base: &Sums) -> BTreeMap<Kind, KindRecord> {
    let nothing = Totals::default();
    let mut kinds = BTreeMap::new();
    for (kind, total) in &sums.kinds {
        let before = base.kinds.get(kind).unwrap_or(&nothing);
        let (latency, rows) = total.since(before);
        let errors = total.errors - before.errors;
        let count = |sums: &Sums| sums.empty.get(kind).copied().unwrap_or(0);
        if latency.count() > 0 || errors > 0 {
            kinds.insert(*kind, KindRecord { errors, rows, empty: count(sums) - count(base), latency });
        }
    }
    kinds
}

fn ignored(sums: &Sums, base: &Sums) -> BTreeMap<String, u64> {
    let since =
        |(code, count): (&String, &u64)| (code.clone(), count - base.ignored.get(code).copied().unwrap_or(0));
    sums.ignored.iter().map(since).filter(|(_, count)| *count > 0).collect()
}

fn connections(running: &Running, seen: &Seen) -> Vec<ConnectionRecord> {
    let seats = running.shared.book.seats.iter().zip(&seen.base_seats);
    seats
        .map(|(seat, base)| {
            let share = seat.share();
            ConnectionRecord {
                transactions: share.transactions - base.transactions,
                busy_ns: share.busy_ns - base.busy_ns,
            }
        })
        .collect()
}

/// How the schedule was kept, counting what was due and never started.
fn lateness(running: &Running, seen: &Seen, sums: &Sums) -> Option<Lateness> {
    let schedule = running.shared.schedule.as_ref()?;
    // Connections that came to an end by themselves wanted nothing after their last transaction.
    let end_ns = over_ns(running, seen).unwrap_or_else(|| last_ns(running));
    let seats = &running.shared.book.seats;
    let in_hand: u64 = seats.iter().map(|seat| seat.not_started.load(Relaxed)).sum();
    let left = || due_before(lock(schedule).clone(), end_ns.saturating_sub(running.span.epoch_ns));
    let not_started = in_hand + if is_all_done(running) { 0 } else { left() };
    Some(Lateness {
        intended: sums.intended - seen.base.intended + not_started,
        late: sums.late - seen.base.late + not_started,
        not_started,
        start_delay_max_ns: seats.iter().map(|s| s.start_delay_max_ns.load(Relaxed)).max().unwrap_or(0),
        ..Lateness::default()
    })
}

fn cpu(seen: &Seen) -> CpuRecord {
    let (base, end) = (seen.base_cpu, seen.end_cpu);
    let machine = end.2.zip(base.2).map_or(0, |(end, base)| end.saturating_sub(base));
    CpuRecord {
        process_user_ns: end.0.saturating_sub(base.0),
        process_system_ns: end.1.saturating_sub(base.1),
        machine_busy_ns: machine,
        // SAFETY: sysconf takes a number.
        processors: unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.try_into().unwrap_or(0),
        allowed: std::thread::available_parallelism().ok().map(|n| n.get() as u32),
    }
}
