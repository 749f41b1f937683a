//! One job's part of a page: what it was, its figures, its plots, and whether they hold together.

use super::distribution::{self, Sample, quantile_text};
use super::{Tile, data_table, facts_table, figure, note, timeline};
use crate::report::plot::Unit;
use crate::result::record::{Class, FloodRecord, JobRecord};
use crate::units::{Nanos, grouped, megabytes_per_second, per_second, significant};
use crate::workload::spec::{Access, BlockSize, OpenSync, SyncMode, Target};

/// The same class has the same colour, dash and marker in every plot.
pub fn look_of(class: Class) -> usize {
    match class {
        Class::Read => 0,
        Class::Write => 1,
        Class::Commit => 2,
        Class::Sync => 3,
    }
}

/// The class that the job is about: what a database waits for.
pub fn main_class(job: &JobRecord) -> Option<Class> {
    let count = |class: Class| job.classes.get(&class).map_or(0, |c| c.latency.count());
    if count(Class::Commit) > 0 {
        return Some(Class::Commit);
    }
    let busiest = [Class::Read, Class::Write].into_iter().max_by_key(|c| (count(*c), *c == Class::Read));
    [busiest, Some(Class::Sync)].into_iter().flatten().find(|c| count(*c) > 0)
}

/// The classes whose rates and tails are drawn over time: a commit stands for its write and its sync.
fn shown_over_time(job: &JobRecord) -> Vec<Class> {
    let has = |class: &Class| job.classes.get(class).is_some_and(|c| c.latency.count() > 0);
    let commits = has(&Class::Commit);
    let shown = |class: &Class| match class {
        Class::Write => !commits,
        Class::Sync => false,
        Class::Read | Class::Commit => true,
    };
    let classes: Vec<Class> = Class::ALL.into_iter().filter(has).filter(shown).collect();
    if classes.is_empty() { Class::ALL.into_iter().filter(has).collect() } else { classes }
}

/// A rate over the measured time.
pub fn rate(job: &JobRecord, class: Class) -> f64 {
    let count = job.classes.get(&class).map_or(0, |c| c.latency.count());
    count as f64 * 1e9 / job.elapsed_ns.max(1) as f64
}

/// What the job did, in the words of its flags: `4 KiB random reads`.
pub fn what(job: &JobRecord) -> String {
    let spec = &job.job;
    let size = match &spec.block {
        BlockSize::Fixed(size) => size.to_string(),
        BlockSize::Split(_) => {
            format!("{} to {}", Nominal(spec.block.smallest()), Nominal(spec.block.largest()))
        }
    };
    let order = match spec.access {
        Access::Sequential => "sequential",
        Access::Random(_) => "random",
    };
    let kind = match (spec.reads(), spec.writes()) {
        (true, true) => format!("reads and writes ({} % reads)", significant(spec.read_percent)),
        (false, _) => "writes".to_string(),
        _ => "reads".to_string(),
    };
    format!("{size} {order} {kind}{}", durability(job))
}

struct Nominal(u64);
impl std::fmt::Display for Nominal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        crate::units::Bytes(self.0).fmt(f)
    }
}

fn durability(job: &JobRecord) -> String {
    let spec = &job.job;
    if !spec.writes() {
        return String::new();
    }
    let mode = match spec.sync.mode {
        SyncMode::Fsync => "fsync",
        SyncMode::Fdatasync => "fdatasync",
        SyncMode::RwfDsync => "RWF_DSYNC",
        SyncMode::SyncFileRange => "sync_file_range",
    };
    match (spec.open_sync, spec.sync.every) {
        (OpenSync::Sync, _) => ", O_SYNC".to_string(),
        (OpenSync::Dsync, _) => ", O_DSYNC".to_string(),
        (OpenSync::None, 0) => String::new(),
        (OpenSync::None, 1) => format!(", each with {mode}"),
        (OpenSync::None, n) => format!(", {mode} after every {n}"),
    }
}

/// How it was issued: engine, depth, threads, path to the device.
fn how(job: &JobRecord) -> String {
    let spec = &job.job;
    let threads =
        if spec.threads == 1 { "1 thread".to_string() } else { format!("{} threads", spec.threads) };
    let mut parts = vec![job.engine.name.clone(), threads];
    if spec.engine.is_async() {
        parts.push(format!("depth {}", spec.depth));
    }
    parts.push(if spec.direct { "O_DIRECT" } else { "through the page cache" }.to_string());
    if let Some(rate) = spec.rate {
        parts.push(format!("open loop at {}/s", per_second(rate.iops)));
    }
    parts.join(" · ")
}

/// Where the I/O went.
pub fn place(job: &JobRecord) -> String {
    match &job.job.target {
        Target::Files { dir, count: 1, size, .. } => format!("1 file of {size} in {}", dir.display()),
        Target::Files { dir, count, size, .. } => {
            format!("{count} files of {size} each in {}", dir.display())
        }
        Target::File { path, .. } | Target::Device { path, .. } => path.display().to_string(),
        Target::Null { .. } => "nothing (weir's own floor)".to_string(),
    }
}

/// The finding in one sentence.
pub fn sentence(job: &JobRecord) -> String {
    let Some(class) = main_class(job) else {
        return "Nothing finished while measuring.".to_string();
    };
    let Some(measured) = job.classes.get(&class) else { return String::new() };
    let latency = &measured.latency;
    let value = |q: f64| latency.quantile(q).map_or("–".to_string(), |ns| Nanos(ns).to_string());
    let longest = Nanos(latency.max().unwrap_or(0));
    let tail = match quantile_text(latency, 0.99) {
        text if text == "too few" => "too few finished to speak of a p99".to_string(),
        text => format!("99 % within {text}"),
    };
    format!(
        "{} {}s a second. Half of them finished within {}, {tail}; the longest took {longest}.",
        per_second(rate(job, class)),
        class.name(),
        value(0.5)
    )
}

fn tile(name: impl Into<String>, value: String, detail: String) -> Tile {
    Tile { name: name.into(), value, detail }
}

/// The figures of the head: everything of a single class, or the rates of several.
fn head(job: &JobRecord) -> Vec<Tile> {
    let mut out = Vec::new();
    let classes = shown_over_time(job);
    for class in &classes {
        let Some(measured) = job.classes.get(class) else { continue };
        let (name, latency) = (class.name(), &measured.latency);
        let bytes = measured.bytes as f64 * 1e9 / job.elapsed_ns.max(1) as f64;
        let moved = format!("{}, n = {}", megabytes_per_second(bytes), grouped(latency.count()));
        let (median, p99) = (quantile_text(latency, 0.5), quantile_text(latency, 0.99));
        let longest = Nanos(latency.max().unwrap_or(0)).to_string();
        let rate = per_second(rate(job, *class));
        if classes.len() == 1 {
            out.push(tile(format!("{name}s a second"), rate, moved));
            out.push(tile(format!("median {name}"), median, format!("p99 {p99}")));
            out.push(tile(
                format!("longest {name}"),
                longest,
                format!("p99.9 {}", quantile_text(latency, 0.999)),
            ));
        } else {
            out.push(tile(format!("{name}s a second"), rate, moved));
            out.push(tile(format!("{name} p99"), p99, format!("median {median}, longest {longest}")));
        }
    }
    if let Some(oldest) = job.intervals.iter().max_by_key(|i| i.oldest_ns) {
        let at = format!("seen {} into the run", Nanos(oldest.start_ns + oldest.len_ns));
        out.push(tile("oldest in flight", Nanos(oldest.oldest_ns).to_string(), at));
    }
    out
}

/// Everything about one job; `id` makes anchors unique in the page.
pub fn html(id: &str, job: &JobRecord, floods: &[FloodRecord]) -> String {
    let mut out =
        format!("<p class=\"soft\">{}</p>\n", super::escape(format!("{} · {}", how(job), place(job))));
    out.push_str(&super::tiles(&head(job)));
    if let Some(error) = &job.error {
        out.push_str(&note("The job ended with an I/O error", error, true));
    }
    for remark in &job.notes {
        out.push_str(&note(&remark.key.replace('-', " "), &remark.text, false));
    }
    out.push_str(&plots(id, job, floods));
    out.push_str(&format!("<h3>Does it hold together?</h3>\n{}", facts_table(&checks(job))));
    out
}

fn plots(id: &str, job: &JobRecord, floods: &[FloodRecord]) -> String {
    let mut out = String::new();
    let samples: Vec<Sample<'_>> = job
        .classes
        .iter()
        .filter(|(_, c)| c.latency.count() > 0)
        .map(|(class, c)| Sample {
            name: class.name().to_string(),
            look: look_of(*class),
            latency: &c.latency,
        })
        .collect();
    if !samples.is_empty() {
        let finding = "Each further nine to the right is ten times rarer. Dotted: fewer than three operations lie \
                       beyond, up to the longest one.";
        let plot =
            distribution::figure(&format!("{id}-latency"), "How long operations took", finding, &samples);
        out.push_str(&figure(&plot, &super::Table::default()));
        out.push_str(&data_table(&distribution::table(&samples)));
    }
    let classes = shown_over_time(job);
    if job.intervals.len() >= 2 && !classes.is_empty() {
        let plot = timeline::figure(&format!("{id}-time"), &stall(job), job, floods, &classes);
        out.push_str(&figure(&plot, &timeline::table(job, &classes)));
        for class in classes {
            let finding = "The darker a cell, the more operations took that long in that time.";
            let map = timeline::heat_map(&format!("{id}-heat-{}", class.name()), finding, job, class);
            out.push_str(&figure(&map, &super::Table::default()));
        }
    }
    out
}

/// What the timeline shows: the longest time that an operation was seen to wait.
fn stall(job: &JobRecord) -> String {
    match job.intervals.iter().max_by_key(|i| i.oldest_ns) {
        Some(i) if i.oldest_ns > 0 => format!(
            "The longest wait seen from outside: {} into the run the oldest operation in flight had waited {}.",
            Nanos(i.start_ns + i.len_ns),
            Nanos(i.oldest_ns)
        ),
        _ => "No operation was in flight at the end of any interval.".to_string(),
    }
}

/// Self-checks, and what else was counted.
fn checks(job: &JobRecord) -> Vec<(String, String, String)> {
    let mut rows = Vec::new();
    let mut row =
        |name: &str, value: String, source: &str| rows.push((name.to_string(), value, source.to_string()));
    if let Some((from_latency, counted)) = little(job) {
        let text =
            format!("{} from rate × latency, {} counted", significant(from_latency), significant(counted));
        row("operations in flight", text, "Little's law: both must agree");
    }
    let cpu = &job.cpu;
    let wall = job.elapsed_ns.max(1) as f64;
    let of = |ns: u64| significant(ns as f64 / wall);
    let own = format!("{} user + {} system processors", of(cpu.process_user_ns), of(cpu.process_system_ns));
    row("CPU of weir", own, "kernel workers are not in it");
    let machine = format!("{} of {} processors busy", of(cpu.machine_busy_ns), cpu.processors);
    row("CPU of the machine", machine, "all processes and the kernel");
    row("engine", engine_text(job), "");
    if let Some(sync) = &job.final_sync {
        let text = format!("{} for {} files{}", Nanos(sync.total_ns), sync.files, error_suffix(&sync.error));
        row("sync at the end", text, "not part of any rate above");
    }
    if let Some(late) = &job.lateness {
        let share = 100.0 * late.late as f64 / late.intended.max(1) as f64;
        let text = format!("{} of {} ({} %)", grouped(late.late), grouped(late.intended), significant(share));
        row(
            "late",
            text,
            &format!("finished more than {} after their intended start, or never", job.job.late_after),
        );
    }
    if let Some(verify) = &job.verify {
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

fn error_suffix(error: &Option<String>) -> String {
    error.as_ref().map_or(String::new(), |e| format!("; failed: {e}"))
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

/// Operations in flight, from the latencies and as counted. A commit is made of its write and its sync.
fn little(job: &JobRecord) -> Option<(f64, f64)> {
    let parts = [Class::Read, Class::Write, Class::Sync];
    let sum: u128 = parts.iter().filter_map(|c| job.classes.get(c)).map(|c| c.latency.sum()).sum();
    let commits = job.classes.get(&Class::Commit).map_or(0, |c| c.latency.sum());
    let counted = job.engine.in_flight_mean;
    let total = sum.max(commits) as f64 / job.elapsed_ns.max(1) as f64;
    (counted > 0.0 && total > 0.0).then_some((total, counted))
}

/// A rate of bytes in the words of the page.
pub fn bytes_rate(bytes_per_second: f64) -> String {
    Unit::BytesPerSecond.value(bytes_per_second)
}
