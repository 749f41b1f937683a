//! What weir adds after sysbench's report: latency by class, and one line for each figure above it that sysbench
//! would have measured otherwise.

use super::args::Settings;
use super::fileio::IoMode;
use super::fileio_report::Counts;
use weir_core::result::record::JobRecord;
use weir_core::stats::quantile::quantile;
use weir_core::stats::{Histogram, little};
use weir_core::units::Nanos;

/// Columns of the table of latencies.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)];
/// Runs shorter than this say little about a device with a cache.
const SHORT_NS: u64 = 30_000_000_000;
/// From here on an operation is called a stall.
const STALL_NS: u64 = 1_000_000_000;

/// Both blocks, ready to print.
pub fn blocks(settings: &Settings, record: &JobRecord) -> String {
    let mut text = String::from("weir: latency by class, from intended start to completion (ms)\n");
    text.push_str(&head());
    for (class, measured) in &record.classes {
        text.push_str(&row(class.name(), &measured.latency));
    }
    text.push_str("\nweir: how to read this report\n");
    for line in lines(settings, record) {
        text.push_str(&format!("    - {line}\n"));
    }
    text
}

fn ms(ns: f64) -> String {
    let value = ns / 1e6;
    match value {
        v if v >= 1000.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v if v >= 0.1 => format!("{v:.3}"),
        v => format!("{v:.5}"),
    }
}

fn quantile_ms(latency: &Histogram, q: f64) -> String {
    quantile(latency, q).ns().map_or_else(|| "too few".to_string(), |ns| ms(ns as f64))
}

/// The table's first line.
pub(super) fn head() -> String {
    let mut text = format!("    {:<8}{:>12}{:>11}", "", "count", "mean");
    for (name, _) in QUANTILES {
        text.push_str(&format!("{name:>11}"));
    }
    text + &format!("{:>11}\n", "max")
}

/// One of its rows.
pub(super) fn row(name: &str, latency: &Histogram) -> String {
    let mut row = format!("    {name:<8}{:>12}{:>11}", latency.count(), ms(latency.mean().unwrap_or(0.0)));
    for (_, q) in QUANTILES {
        row.push_str(&format!("{:>11}", quantile_ms(latency, q)));
    }
    row + &format!("{:>11}\n", ms(latency.max().unwrap_or(0) as f64))
}

fn lines(settings: &Settings, record: &JobRecord) -> Vec<String> {
    let counts = Counts::of_record(record, settings.fileio.fsync.all);
    let mut lines: Vec<String> = [
        asynchronous(settings, record, &counts),
        syncs_as_events(settings, &counts),
        final_sync(record),
        page_cache(settings),
        data(&counts),
        lateness(record),
        stall(record, &counts),
        too_short(record, &counts),
        settings.general.shape_given.then(|| {
            let shape = settings.general.random.shape.name();
            format!("--rand-type={shape} has no effect on fileio, here or in sysbench: offsets are uniform.")
        }),
        verified(record),
    ]
    .into_iter()
    .flatten()
    .collect();
    lines.extend(record.notes.iter().map(|note| sentence(&note.text)));
    lines
}

/// Notes are written to follow a colon; here they stand alone.
pub(super) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    let end = if text.ends_with('.') { "" } else { "." };
    format!("{}{}{end}", first.map(String::from).unwrap_or_default(), letters.as_str())
}

/// Little's law: operations in flight = rate × mean latency. It holds for what is printed here; sysbench times
/// io_submit instead.
fn asynchronous(settings: &Settings, record: &JobRecord, counts: &Counts) -> Option<String> {
    let IoMode::Async { backlog } = settings.fileio.io_mode else { return None };
    let law = little::check(record.engine.in_flight_mean, counts.events.sum(), record.elapsed_ns)?;
    Some(format!(
        "Latency is submission to completion; sysbench prints the time io_submit takes. Little's law: rate x mean \
         latency = {:.1} in flight, and {:.1} were counted (up to {backlog} for each of {} threads).",
        law.rate_times_latency, law.in_flight_mean, settings.general.threads
    ))
}

fn syncs_as_events(settings: &Settings, counts: &Counts) -> Option<String> {
    if settings.fileio.fsync.all {
        let (commits, what) = (counts.writes, "write");
        return (commits > 0).then(|| {
            format!("Each {what} event includes the sync that follows it, as in sysbench; the table has them apart.")
        });
    }
    let events = counts.events.count();
    (counts.fsyncs > 0).then(|| {
        format!(
            "{} of the {events} events are syncs of one file each ({:.1} %), counted as events as sysbench does: \
             the latencies above mix them with the rest, the table does not.",
            counts.fsyncs,
            100.0 * counts.fsyncs as f64 / events.max(1) as f64
        )
    })
}

fn final_sync(record: &JobRecord) -> Option<String> {
    let last = record.final_sync.as_ref()?;
    let took = Nanos(last.total_ns);
    Some(match &last.error {
        Some(error) => format!("The final sync FAILED ({error}): what was written is not durable."),
        None => format!(
            "The final sync of {} files took {took}. It is in no figure above; sysbench has every thread sync every \
             file and divides its rates by a time that includes it.",
            last.files
        ),
    })
}

fn page_cache(settings: &Settings) -> Option<String> {
    let flags = settings.fileio.flags;
    (!flags.direct).then(|| {
        let writes = if flags.sync || flags.dsync { "" } else { " and writes before their sync" };
        format!(
            "I/O went through the page cache (no --file-extra-flags=direct): reads of what it holds{writes} say \
             nothing of the device."
        )
    })
}

fn data(counts: &Counts) -> Option<String> {
    (counts.writes > 0).then(|| {
        "Written data is random; sysbench writes zeros, which compressing and thin devices swallow."
            .to_string()
    })
}

fn lateness(record: &JobRecord) -> Option<String> {
    let late = record.lateness.as_ref()?;
    let share = 100.0 * late.late as f64 / late.intended.max(1) as f64;
    Some(format!(
        "Open loop: {} operations were due, {} of them ({share:.1} %) finished more than {} late or not at all; {} \
         had not started at the end. sysbench stamps arrivals after its own sleep and drops what is queued at the end.",
        late.intended, late.late, record.job.late_after, late.not_started
    ))
}

/// A closed loop issues nothing while it waits, so its percentiles hardly notice a stall.
fn stall(record: &JobRecord, counts: &Counts) -> Option<String> {
    let oldest = record.intervals.iter().map(|interval| interval.oldest_ns).max().unwrap_or(0);
    let longest = oldest.max(counts.events.max().unwrap_or(0));
    if record.lateness.is_some() { None } else { wait_behind(longest, "operation") }
}

/// Says of the longest event of a closed loop what it hides.
pub(super) fn wait_behind(longest_ns: u64, what: &str) -> Option<String> {
    (longest_ns >= STALL_NS).then(|| {
        format!(
            "An {what} took {}. Nothing was issued behind it, so the percentiles hide what clients would have waited: \
             run with --rate to see it.",
            Nanos(longest_ns)
        )
    })
}

fn too_short(record: &JobRecord, counts: &Counts) -> Option<String> {
    too_short_for(record.elapsed_ns, counts.events.count(), "a device's cache")
}

/// Says that a run was too short to see past a cache.
pub(super) fn too_short_for(elapsed_ns: u64, events: u64, cache: &str) -> Option<String> {
    (elapsed_ns < SHORT_NS).then(|| {
        format!(
            "Only {} and {events} events: too short to see past {cache} or to compare with another run.",
            Nanos(elapsed_ns)
        )
    })
}

fn verified(record: &JobRecord) -> Option<String> {
    let verify = record.verify.as_ref()?;
    Some(format!(
        "Validation: {} blocks checked, {} stale, {} torn, {} misplaced; {} held no checksum (write them with \
         --validate, in requests of the same size) and could not be checked.",
        verify.checked, verify.stale, verify.torn, verify.misplaced, verify.unwritten
    ))
}
