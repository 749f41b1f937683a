//! A run: conditions, one table per job, self-checks, warnings, and how to get it again.

use super::workload;
use crate::conditions::text as conditions;
use crate::layout::{labelled, labelled_command, shell, table};
use weir_core::result::record::{Class, EngineRecord, JobRecord, Record};
use weir_core::result::run_result::{
    ClassResult, FloodResult, JobResult, LatenessResult, RunResult, SteadyResult,
};
use weir_core::stats::Quantile;
use weir_core::units::{Nanos, grouped, megabytes_per_second, per_second, significant};
use weir_core::workload::Job;

/// What stands in a cell whose percentile has too few samples behind it.
pub const TOO_FEW: &str = "too few";

/// The report of a run.
pub fn run(result: &RunResult, record: &Record) -> String {
    run_with(result, record, "")
}

/// The same with more about its jobs.
pub fn run_with(result: &RunResult, record: &Record, more: &str) -> String {
    let mut out = format!(
        "weir {} {}, started {}\n",
        record.weir_version,
        record.kind,
        to_the_second(&record.started_at)
    );
    conditions::append(&mut out, &record.conditions);
    for (job, raw) in result.jobs.iter().zip(&record.jobs) {
        out.push('\n');
        append_job(&mut out, job, raw, record.jobs.len() + record.floods.len() > 1);
    }
    out.push_str(more);
    out.push('\n');
    for flood in &result.floods {
        labelled(&mut out, "flood", &flood_line(flood));
    }
    for note in &result.notes {
        labelled(&mut out, "warning", &note.text);
    }
    if let Some(path) = &result.record_path {
        labelled(&mut out, "record", path);
        labelled_command(
            &mut out,
            "show",
            &shell(&["weir", "results", "show", &record.id].map(String::from)),
        );
    }
    labelled_command(&mut out, "again", &shell(&record.command));
    out
}

/// What it handed over, not what the device got of it.
fn flood_line(flood: &FloodResult) -> String {
    let rate = megabytes_per_second(flood.bytes_per_second);
    format!("{}: {rate} handed to the page cache beside the jobs ({})", flood.spec, flood.ended)
}

/// `shared`: CPU time is the process's, so other jobs' and floods' is in it.
fn append_job(out: &mut String, job: &JobResult, raw: &JobRecord, shared: bool) {
    let named = if job.name == Job::default().name { String::new() } else { format!("{}: ", job.name) };
    labelled(out, "job", &format!("{named}{}", workload::describe(&raw.job)));
    let length = workload::length(&raw.job, job.elapsed_ns);
    labelled(out, "engine", &format!("{}; measured for {length}", engine(&raw.engine)));
    out.push('\n');
    table(out, &class_rows(job), 1);
    out.push('\n');
    append_schedule(out, job, raw.job.replay.is_some());
    labelled(out, "checks", &checks(job, shared));
    for note in &job.notes {
        labelled(out, "warning", &note.text);
    }
}

fn engine(engine: &EngineRecord) -> String {
    let mut text = engine.name.clone();
    if !engine.granted.is_empty() {
        text += &format!(" with {}", engine.granted.join(", "));
    }
    if !engine.refused.is_empty() {
        text += &format!("; refused: {}", engine.refused.join(", "));
    }
    text
}

fn class_rows(job: &JobResult) -> Vec<Vec<String>> {
    let header = ["class", "count", "IOPS", "MB/s", "mean", "p50", "p95", "p99", "p99.9", "max"];
    let mut rows = vec![header.map(String::from).to_vec()];
    rows.extend(job.classes.iter().filter(|(_, c)| c.count > 0).map(|(class, c)| class_row(*class, c)));
    rows
}

fn class_row(class: Class, c: &ClassResult) -> Vec<String> {
    let bytes = if c.bytes == 0 { "-".to_string() } else { significant(c.bytes_per_second / 1e6) };
    let mut row = vec![class.name().to_string(), grouped(c.count), per_second(c.iops), bytes];
    row.push(Nanos(c.latency.mean_ns.round() as u64).to_string());
    row.extend([c.latency.p50, c.latency.p95, c.latency.p99, c.latency.p99_9].map(quantile));
    row.push(Nanos(c.latency.max_ns).to_string());
    row
}

/// A quantile as a cell.
pub fn quantile(quantile: Quantile) -> String {
    quantile.ns().map_or(TOO_FEW.to_string(), |ns| Nanos(ns).to_string())
}

/// How far behind its time operations started: `p50 4 µs, p99 38 µs, max 1 ms; 0.3 % of 12,345 more than 100 µs`.
pub fn start_delay(late: &LatenessResult) -> Option<String> {
    let starts = late.start_delay?;
    Some(format!(
        "p50 {}, p99 {}, max {}; {:.1} % of {} more than {}",
        quantile(starts.p50),
        quantile(starts.p99),
        Nanos(starts.max_ns),
        starts.late_share * 100.0,
        grouped(late.intended),
        Nanos(starts.late_after_ns)
    ))
}

/// `replay`: operations may take as long as the recorded ones did, so that only starts can be late.
fn append_schedule(out: &mut String, job: &JobResult, replay: bool) {
    if let Some(starts) = job.lateness.as_ref().and_then(start_delay) {
        labelled(out, "timing", &format!("starts behind their times: {starts}"));
    }
    if let Some(late) = job.lateness.filter(|_| !replay) {
        let text = format!(
            "{:.1} % of {} operations finished more than {} after their intended start; longest delay of a start {}",
            late.late_share * 100.0,
            grouped(late.intended),
            Nanos(late.late_after_ns),
            Nanos(late.start_delay_max_ns)
        );
        labelled(out, "late", &text);
    }
    if let Some(sync) = &job.final_sync {
        let error = sync.error.as_ref().map_or(String::new(), |e| format!("; failed: {e}"));
        let files = if sync.files == 1 { "1 file".to_string() } else { format!("{} files", sync.files) };
        let text =
            format!("{files} synced at the end in {}, not in the rates above{error}", Nanos(sync.total_ns));
        labelled(out, "at end", &text);
    }
    if let Some(verify) = &job.verify {
        let bad = verify.stale + verify.torn + verify.misplaced;
        let skipped = match verify.skipped {
            0 => String::new(),
            n => format!(", {} writes left out (their block was being written)", grouped(n)),
        };
        let text = format!(
            "{} blocks checked, {bad} wrong, {} never written by this run{skipped}",
            grouped(verify.checked),
            grouped(verify.unwritten)
        );
        labelled(out, "verify", &text);
        verify.examples.iter().for_each(|example| labelled(out, "", example));
    }
}

/// The self-checks, each with its figure.
fn checks(job: &JobResult, shared: bool) -> String {
    let little = match job.little {
        Some(l) if l.holds => {
            format!(
                "Little's law holds ({:+.1} %, {} in flight)",
                l.deviation * 100.0,
                significant(l.in_flight_mean)
            )
        }
        Some(l) => format!("Little's law VIOLATED ({:+.1} %)", l.deviation * 100.0),
        None => "Little's law not applicable".to_string(),
    };
    let steady = steady_words(job.steady, job.lateness.is_some(), "IOPS");
    let cpu = format!("CPU per operation {}", cpu(job, shared));
    let oldest = job
        .stall
        .filter(|s| s.oldest_ns > 0)
        .map(|s| format!("; oldest in flight at a tick {}", Nanos(s.oldest_ns)));
    format!("{little}; {steady}; {cpu}{}", oldest.unwrap_or_default())
}

/// Whether a run was steady; `rate` is the unit of throughput.
pub fn steady_words(steady: SteadyResult, open_loop: bool, rate: &str) -> String {
    match steady {
        SteadyResult::Judged { holds: true, p99: Some(_), .. } if open_loop => "steady in p99".to_string(),
        SteadyResult::Judged { holds: true, p99: Some(_), .. } => format!("steady in {rate} and p99"),
        SteadyResult::Judged { holds: true, p99: None, .. } => format!("steady in {rate}"),
        SteadyResult::Judged { holds: false, .. } => "NOT steady".to_string(),
        SteadyResult::TooShort => "too short to judge steadiness".to_string(),
    }
}

/// Our own share, and the whole machine's where it was seen.
fn cpu(job: &JobResult, shared: bool) -> String {
    let who = if shared { " (all jobs and floods)" } else { "" };
    let own = format!("{}{who}", Nanos(job.cpu.process_ns_per_operation.round() as u64));
    if job.cpu.machine_ns_per_operation == 0.0 {
        return own;
    }
    format!("{own} here, {} on the whole machine", Nanos(job.cpu.machine_ns_per_operation.round() as u64))
}

/// A start without the fraction of its second.
pub fn to_the_second(started_at: &str) -> String {
    let Some((seconds, fraction)) = started_at.split_once('.') else { return started_at.to_string() };
    format!("{seconds}{}", fraction.trim_start_matches(|c: char| c.is_ascii_digit()))
}
