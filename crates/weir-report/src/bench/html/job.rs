//! One job's part of a page: what it was, its figures, its plots, and whether they hold together.

use crate::bench::text::{quantile, start_delay};
use crate::bench::workload;
use crate::page::distribution::{self, Sample};
use crate::page::timeline::{Beside, Sort};
use crate::page::{Table, Tile, data_table, facts_table, figure, merge, slug, timeline};
use crate::plot::Unit;
use maud::{Markup, html};
use weir_core::result::record::{Class, FloodRecord, Interval, JobRecord};
use weir_core::result::run_result::{
    ClassResult, JobResult, LatenessResult, Regime, Stall, SteadyResult, WarmupResult,
};
use weir_core::stats::warmup::Warmup;
use weir_core::units::{Bytes, Nanos, grouped, megabytes_per_second, per_second, significant};
use weir_core::workload::spec::{Access, BlockSize, OpenSync, SyncMode};

/// A job: what was measured, and what follows from it.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The raw record.
    pub raw: &'a JobRecord,
    /// What was derived from it.
    pub result: &'a JobResult,
}

/// The classes whose rates and tails are drawn over time: a commit stands for its write and its sync; in a replay, a
/// write of a journal among others is none.
fn shown_over_time(view: View<'_>) -> Vec<(Class, &ClassResult)> {
    let all = || view.result.classes.iter().filter(|(_, c)| c.count > 0).map(|(class, c)| (*class, c));
    let replay = view.raw.job.replay.is_some();
    let commits = all().any(|(class, _)| class == Class::Commit);
    let shown = all().filter(|(class, _)| match class {
        Class::Commit | Class::Sync if replay => *class == Class::Sync,
        Class::Write => replay || !commits,
        Class::Sync => false,
        Class::Read | Class::Commit => true,
    });
    let shown: Vec<(Class, &ClassResult)> = shown.collect();
    if shown.is_empty() { all().collect() } else { shown }
}

/// What the job did, for a heading: `4 KiB random reads`.
pub fn what(job: &JobRecord) -> String {
    let spec = &job.job;
    if let Some(replay) = &spec.replay {
        return format!("{} of {} played", replay.device, replay.recording);
    }
    let size = match &spec.block {
        BlockSize::Fixed(size) => size.to_string(),
        BlockSize::Split(_) => {
            format!("{} to {}", Bytes(spec.block.smallest()), Bytes(spec.block.largest()))
        }
    };
    let order = match spec.access {
        Access::Sequential => "sequential",
        Access::Random(_) => "random",
    };
    let kind = match (spec.reads(), spec.writes()) {
        (true, true) => {
            let (reads, writes) = (spec.read_percent.round(), (100.0 - spec.read_percent).round());
            format!("reads and writes, {reads} to {writes}")
        }
        (false, _) => "writes".to_string(),
        _ => "reads".to_string(),
    };
    format!("{size} {order} {kind}{}", durability(job))
}

fn durability(job: &JobRecord) -> String {
    let spec = &job.job;
    let mode = match spec.sync.mode {
        SyncMode::Fsync => "fsync",
        SyncMode::Fdatasync => "fdatasync",
        SyncMode::RwfDsync => "RWF_DSYNC",
        SyncMode::SyncFileRange => "sync_file_range",
    };
    match (spec.open_sync, spec.sync.every) {
        _ if !spec.writes() => String::new(),
        (OpenSync::Sync, _) => ", O_SYNC".to_string(),
        (OpenSync::Dsync, _) => ", O_DSYNC".to_string(),
        (OpenSync::None, 0) => String::new(),
        (OpenSync::None, 1) if spec.reads() => format!(", each write with {mode}"),
        (OpenSync::None, 1) => format!(", each with {mode}"),
        (OpenSync::None, n) => format!(", {mode} after every {n} writes"),
    }
}

/// The finding in one sentence.
pub fn sentence(result: &JobResult) -> String {
    let Some((class, c)) = result.headline() else {
        return "Nothing finished while measuring.".to_string();
    };
    let (rate, name, longest) = (per_second(c.iops), class.name(), Nanos(c.latency.max_ns));
    let half = c.latency.p50.ns().map_or("Too few finished to speak of a median".to_string(), |ns| {
        format!("Half of them finished within {}", Nanos(ns))
    });
    let tail = c.latency.p99.ns().map_or(String::new(), |ns| format!(", 99 % within {}", Nanos(ns)));
    format!("{rate} {name}s a second. {half}{tail}; the longest took {longest}.")
}

fn tile(name: impl Into<String>, value: String, detail: String) -> Tile {
    Tile { name: name.into(), value, detail }
}

/// The figures of the head: everything of a single class, or the rates and tails of several.
fn head(view: View<'_>) -> Vec<Tile> {
    let mut out = Vec::new();
    let classes = shown_over_time(view);
    for (class, c) in &classes {
        let name = class.name();
        let (median, p99, longest) =
            (quantile(c.latency.p50), quantile(c.latency.p99), Nanos(c.latency.max_ns).to_string());
        let moved = format!("{}, n = {}", megabytes_per_second(c.bytes_per_second), grouped(c.count));
        out.push(tile(format!("{name}s a second"), per_second(c.iops), moved));
        if classes.len() == 1 {
            out.push(tile(format!("median {name}"), median, format!("p99 {p99}")));
            out.push(tile(
                format!("longest {name}"),
                longest,
                format!("p99.9 {}", quantile(c.latency.p99_9)),
            ));
        } else {
            out.push(tile(format!("{name} p99"), p99, format!("median {median}, longest {longest}")));
        }
    }
    if let Some(stall) = view.result.stall.filter(|s| s.oldest_ns > 0) {
        let at = format!("seen {} into the run", Nanos(stall.at_ns));
        out.push(tile("oldest in flight", Nanos(stall.oldest_ns).to_string(), at));
    }
    out
}

/// Everything about one of so many `jobs`; `id` makes anchors unique in the page.
pub fn html(id: &str, view: View<'_>, floods: &[FloodRecord], jobs: usize) -> Markup {
    html! {
        p.soft { (workload::describe(&view.raw.job)) }
        (crate::page::tiles(&head(view)))
        @for remark in &view.result.notes { (crate::page::remark_note(remark, view.raw.error.is_some())) }
        (plots(id, view, floods, jobs))
        h3 { "Does it hold together?" }
        (facts_table(&checks(view)))
    }
}

fn plots(id: &str, view: View<'_>, floods: &[FloodRecord], jobs: usize) -> Markup {
    let job = view.raw;
    let classes: Vec<Class> = shown_over_time(view).into_iter().map(|(class, _)| class).collect();
    let together = merge::together(job.intervals.len(), jobs);
    let told = Told { regimes: &view.result.regimes, stall: view.result.stall, together };
    let age_ns = |at: usize| job.flood_ages_ns.get(at).copied();
    let beside = floods.iter().enumerate().map(|(at, flood)| Beside { flood, age_ns: age_ns(at) });
    let beside: Vec<Beside<'_>> = beside.collect();
    html! {
        (latencies(id, view))
        @if job.intervals.len() >= 2 && !classes.is_empty() {
            (course(id, &merge::merged(&job.intervals, together), &beside, &classes, &told))
        }
    }
}

/// How latencies are distributed, as a plot and in numbers.
fn latencies(id: &str, view: View<'_>) -> Markup {
    let measured = view.raw.classes.iter().filter(|(_, c)| c.latency.count() > 0);
    let samples: Vec<Sample<'_>> = measured
        .map(|(class, c)| Sample { name: class.name().to_string(), look: class.look(), latency: &c.latency })
        .collect();
    if samples.is_empty() {
        return Markup::default();
    }
    let finding = "Each further nine to the right is ten times rarer. Dotted: fewer than three operations lie \
                   beyond, up to the longest one.";
    let plot = distribution::figure(&format!("{id}-latency"), "How long operations took", finding, &samples);
    html! { (figure(&plot, &Table::default())) (data_table(&class_table(view.result))) }
}

/// The percentiles that people quote, by class; too few operations are said to be too few.
fn class_table(result: &JobResult) -> Table {
    let head = ["", "operations", "errors", "mean", "p50", "p90", "p95", "p99", "p99.9", "p99.99", "longest"];
    let row = |(class, c): (&Class, &ClassResult)| {
        let mut row = vec![class.name().to_string(), grouped(c.count), grouped(c.errors)];
        row.push(Nanos(c.latency.mean_ns.round() as u64).to_string());
        row.extend(
            [c.latency.p50, c.latency.p90, c.latency.p95, c.latency.p99, c.latency.p99_9, c.latency.p99_99]
                .map(quantile),
        );
        row.push(Nanos(c.latency.max_ns).to_string());
        row
    };
    let rows = result.classes.iter().filter(|(_, c)| c.count > 0).map(row).collect();
    Table { head: head.map(str::to_string).to_vec(), rows, ..Table::default() }
}

/// What there is to say of a run's course.
pub struct Told<'a> {
    /// Spans of different rates.
    pub regimes: &'a [Regime],
    /// The longest wait.
    pub stall: Option<Stall>,
    /// Intervals that a point stands for.
    pub together: usize,
}

/// What happened when: rates and latencies over time, and a heat map of each class.
pub fn course<K: Sort>(
    id: &str,
    intervals: &[Interval<K>],
    floods: &[Beside<'_>],
    classes: &[K],
    told: &Told<'_>,
) -> Markup {
    let plot = timeline::figure(&format!("{id}-time"), &over_time(told), intervals, floods, classes);
    let finding = "The darker a cell, the more operations took that long in that time.";
    let heat_map = |class: &K| {
        let id = format!("{id}-heat-{}", slug(class.name()));
        timeline::heat_map(&id, finding, intervals, *class)
    };
    html! {
        (figure(&plot, &timeline::table(intervals, classes)))
        @for class in classes { (figure(&heat_map(class), &Table::default())) }
    }
}

/// What the timeline shows: spans of different rates, and the longest wait.
fn over_time(told: &Told<'_>) -> String {
    let mut out = String::new();
    if told.together > 1 {
        out.push_str(&format!("Each point covers {} intervals. ", told.together));
    }
    if let [first, rest @ ..] = told.regimes {
        if rest.is_empty() {
            out.push_str("No abrupt change of the rate was found. ");
        } else {
            let spans =
                rest.iter().map(|r| format!("{}/s from {} on", per_second(r.iops), Nanos(r.start_ns)));
            let spans: Vec<String> = spans.collect();
            out.push_str(&format!(
                "The rate changed: {}/s at first, {}. ",
                per_second(first.iops),
                spans.join(", ")
            ));
        }
    }
    match told.stall.filter(|s| s.oldest_ns > 0) {
        Some(stall) => out.push_str(&format!(
            "The longest wait seen from outside: {} into the run the oldest operation in flight had waited {}.",
            Nanos(stall.at_ns),
            Nanos(stall.oldest_ns)
        )),
        None => out.push_str("No operation was in flight at the end of any interval."),
    }
    out
}

/// How many operations were late, and what late means.
pub fn lateness(late: &LatenessResult) -> (String, String) {
    let share = late.late_share * 100.0;
    (
        format!("{} of {} ({share:.1} %)", grouped(late.late), grouped(late.intended)),
        format!("finished more than {} after their intended start, or never", Nanos(late.late_after_ns)),
    )
}

/// Self-checks, and what else was counted.
fn checks(view: View<'_>) -> Vec<(String, String, String)> {
    let (job, result) = (view.raw, view.result);
    let mut rows = Vec::new();
    let mut row = |name: &str, value: String, source: &str| {
        rows.push((name.to_string(), value, source.to_string()));
    };
    if let Some(law) = result.little {
        let (both, counted) = (significant(law.rate_times_latency), significant(law.in_flight_mean));
        let verdict = if law.holds { "holds" } else { "does NOT hold" };
        let text = format!(
            "{verdict}: {both} from rate × latency, {counted} counted ({:+.1} %)",
            law.deviation * 100.0
        );
        row("Little's law", text, "both count the operations in flight, independently");
    }
    row(
        "steady state",
        steady(result.steady),
        "five rounds; range at most 20 % of the mean, slope at most 10 %",
    );
    row("warm-up", warmup(result.warmup), "MSER-5");
    let cpu = result.cpu;
    let per = |ns: f64| Nanos(ns.round() as u64).to_string();
    let own = format!(
        "{} an operation, {} processors busy",
        per(cpu.process_ns_per_operation),
        significant(cpu.process_busy)
    );
    row("CPU of weir", own, "user and system; kernel workers are not in it");
    if cpu.machine_ns_per_operation > 0.0 {
        let (each, busy) = (per(cpu.machine_ns_per_operation), significant(cpu.machine_busy));
        let machine = format!("{each} an operation, {busy} of {} processors busy", cpu.processors);
        row("CPU of the machine", machine, "all processes and the kernel");
    }
    row("engine", engine_text(job), "");
    if let Some(sync) = &result.final_sync {
        let error = sync.error.as_ref().map_or(String::new(), |e| format!("; failed: {e}"));
        let files = if sync.files == 1 { "1 file".to_string() } else { format!("{} files", sync.files) };
        row(
            "sync at the end",
            format!("{} for {files}{error}", Nanos(sync.total_ns)),
            "not in any rate above",
        );
    }
    if let Some(starts) = result.lateness.as_ref().and_then(start_delay) {
        row("starts behind their times", starts, "from the intended to the real start");
    }
    if let Some(late) = result.lateness.as_ref().filter(|_| job.job.replay.is_none()) {
        let (text, source) = lateness(late);
        row("late", text, &source);
    }
    if let Some(verify) = &result.verify {
        let text = format!(
            "{} blocks checked: {} stale, {} torn, {} misplaced",
            grouped(verify.checked),
            verify.stale,
            verify.torn,
            verify.misplaced
        );
        row("verification", text, &verify.examples.join("; "));
    }
    rows
}

/// Whether a run was steady, with the figures.
pub fn steady(steady: SteadyResult) -> String {
    let share = |s: weir_core::stats::steady::Steady| {
        format!("range {:.0} %, slope {:+.0} %", s.range * 100.0, s.slope * 100.0)
    };
    match steady {
        SteadyResult::Judged { iops, p99, holds } => {
            let p99 = p99.map_or("p99 not judged".to_string(), |p| format!("p99 {}", share(p)));
            format!("{}: rate {}; {p99}", if holds { "reached" } else { "NOT reached" }, share(iops))
        }
        SteadyResult::TooShort => "too short a run to judge".to_string(),
    }
}

/// What the beginning of a run was like.
pub fn warmup(warmup: WarmupResult) -> String {
    match warmup.rule {
        Warmup::Cut { intervals: 0 } => "none seen".to_string(),
        Warmup::Cut { .. } => {
            let (cut, ratio) = (Nanos(warmup.cut_ns), significant(warmup.rate_ratio));
            format!("the first {cut} ran at {ratio} × the rate of the rest; all figures include it")
        }
        Warmup::NeverSettled => "the run never settled".to_string(),
        Warmup::TooShort => "too short a run to judge".to_string(),
    }
}

fn engine_text(job: &JobRecord) -> String {
    let engine = &job.engine;
    let mut text = engine.name.clone();
    if !engine.granted.is_empty() {
        text.push_str(&format!(" with {}", engine.granted.join(", ")));
    }
    if !engine.refused.is_empty() {
        text.push_str(&format!("; refused: {}", engine.refused.join(", ")));
    }
    text
}

/// A rate of bytes in the words of the page.
pub fn bytes_rate(bytes_per_second: f64) -> String {
    Unit::BytesPerSecond.value(bytes_per_second)
}
