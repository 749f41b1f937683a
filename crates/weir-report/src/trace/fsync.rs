//! The anatomy of syncs for people.

use crate::layout::{labelled, table};
use weir_blocktrace::fsync::{
    Anatomy, Cause, Culprit, Phase, Process, Report, Row, SlowSync, StillWaiting, Way,
};
use weir_core::units::{Bytes, Nanos, grouped};

/// Shares below this are not worth a place in a sentence.
const WORTH_A_WORD: f64 = 0.02;
/// Processes with a row of their own.
const PROCESSES_SHOWN: usize = 16;
/// Processes whose cgroups are said at most.
const CGROUPS_SAID: usize = 4;
/// Below this share of explained time the report warns.
const EXPLAINED_ENOUGH: f64 = 0.9;

/// All that was found in a stretch of time; `still` syncs had not returned at its end.
pub fn trace_fsync(report: &Report, still: StillWaiting) -> String {
    let mut out = String::new();
    let all = &report.all;
    labelled(&mut out, "syncs", &counts(report, still));
    if all.wall_ns > 0 {
        if all.syncs > 0 {
            labelled(&mut out, "latency", &latency(all, still));
        }
        labelled(&mut out, "verdict", &verdict(all, who(report).as_deref()));
        if let Some(cgroups) = cgroups(report) {
            labelled(&mut out, "cgroups", &cgroups);
        }
        if all.skimmed > 0 {
            labelled(&mut out, "sample", &sample(all));
        }
        out.push('\n');
        matrix(&mut out, all);
        culprits(&mut out, all);
        sites(&mut out, all, report.stacks);
        processes(&mut out, report);
    }
    stalls(&mut out, report);
    warnings(&mut out, report);
    out
}

/// One slow sync in a line.
pub fn trace_fsync_slow(slow: &SlowSync) -> String {
    let device = slow.device.map_or(String::new(), |device| format!(" on {device}"));
    let mut parts: Vec<(f64, String)> =
        slow.culprits.iter().map(|c| (c.share, format!("behind {}", c.name()))).collect();
    for row in &slow.phases {
        let rest: f64 =
            row.causes.iter().filter(|(cause, _)| *cause != Cause::Others).map(|(_, share)| share).sum();
        parts.push((if row.causes.is_empty() { row.share } else { rest }, row.phase.name().to_string()));
    }
    parts.sort_by(|a, b| b.0.total_cmp(&a.0));
    parts.retain(|(share, _)| *share >= WORTH_A_WORD);
    let parts: Vec<String> =
        parts.iter().take(4).map(|(share, what)| format!("{} {what}", percent(*share))).collect();
    let (who, took) = (slow.process.name(), Nanos(slow.took_ns));
    format!("{} of {who}{device} took {took}: {}\n", slow.call.name(), parts.join(", "))
}

fn counts(report: &Report, still: StillWaiting) -> String {
    let all = &report.all;
    let mut text = format!("{} in {}", grouped(all.syncs), Nanos(report.elapsed_ns));
    let calls: Vec<String> =
        all.calls.iter().map(|(call, n)| format!("{} {}", grouped(*n), call.name())).collect();
    if !calls.is_empty() {
        text += &format!(": {}", calls.join(", "));
    }
    if let Some(who) = who(report) {
        text += &format!(", by {who}");
    }
    let age = Nanos(still.oldest_ns);
    match still.count {
        0 => {}
        1 => text += &format!("; one had not returned after {age}"),
        n => text += &format!("; {n} had not returned, the oldest after {age}"),
    }
    text
}

/// Whose syncs they were, where one process stands for nearly all.
fn who(report: &Report) -> Option<String> {
    let first = report.processes.first()?;
    let nearly_all = first.wall_ns as f64 >= 0.95 * report.all.wall_ns as f64;
    first.process.as_ref().filter(|_| nearly_all).map(Process::name)
}

fn latency(all: &Anatomy, still: StillWaiting) -> String {
    let l = &all.latency;
    let times = [l.mean_ns as u64, l.p50_ns, l.p95_ns, l.p99_ns, l.max_ns].map(|ns| Nanos(ns).to_string());
    let [mean, p50, p95, p99, max] = times;
    let longer = if still.oldest_ns > l.max_ns { " of those that returned" } else { "" };
    format!("mean {mean}, p50 {p50}, p95 {p95}, p99 {p99}, max {max}{longer}")
}

/// How many were looked into, where not all were.
fn sample(all: &Anatomy) -> String {
    let looked_into = match all.short - all.skimmed {
        0 => "none".to_string(),
        some => grouped(some),
    };
    let short = grouped(all.short);
    format!(
        "{looked_into} of {short} syncs shorter than 1 ms looked into; they stand for the rest of like length"
    )
}

/// What the time went for, in a sentence: the largest culprit first, then what else is worth a word.
fn verdict(all: &Anatomy, who: Option<&str>) -> String {
    let whose = who.map_or("syncs".to_string(), |who| format!("the syncs of {who}"));
    let mut said = Vec::new();
    for culprit in all.culprits.iter().filter(|c| c.share >= WORTH_A_WORD).take(2) {
        said.push((culprit.share, behind(culprit)));
    }
    for (cause, share) in all.causes.iter().filter(|(cause, _)| *cause != Cause::Others) {
        said.push((*share, in_words(*cause).to_string()));
    }
    let plain = all.phases.iter().filter(|row| row.causes.is_empty());
    said.extend(plain.map(|row| (row.share, plain_words(row.phase).to_string())));
    said.retain(|(share, _)| *share >= WORTH_A_WORD);
    said.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut said = said.iter().take(4).map(|(share, what)| (percent(*share), what));
    let Some((share, what)) = said.next() else { return "nothing stands out".to_string() };
    let rest: Vec<String> = said.map(|(share, what)| format!("{share} {what}")).collect();
    let rest = if rest.is_empty() { String::new() } else { format!("; {}", rest.join(", ")) };
    format!("{whose} spent {share} of their time {what}{rest}")
}

/// Which units or containers the processes run in: those that wait, then those they wait for. The tracer's own is left out.
fn cgroups(report: &Report) -> Option<String> {
    let wait = report.processes.iter().filter_map(|anatomy| anatomy.process.as_ref());
    let others = report.all.culprits.iter().filter(|c| c.share >= WORTH_A_WORD).map(|c| &c.process);
    let mut said: Vec<String> = Vec::new();
    for process in wait.chain(others) {
        if said.len() == CGROUPS_SAID {
            break;
        }
        let Some(cgroup) = &process.cgroup else { continue };
        let text = format!("{} in {cgroup}", process.name());
        if !said.contains(&text) {
            said.push(text);
        }
    }
    (!said.is_empty()).then(|| said.join(", "))
}

fn behind(culprit: &Culprit) -> String {
    let whose = culprit.name();
    match (culprit.process.pid, culprit.way) {
        (None, _) | (_, Way::WritesPassedOn) => format!("behind {whose} in the device's queue"),
        (Some(_), Way::Writeback) => format!("behind {whose}'s writeback in the device's queue"),
        (Some(_), Way::Reads) => format!("behind {whose}'s reads in the device's queue"),
        (Some(_), Way::DirectWrites) => format!("behind {whose}'s direct writes in the device's queue"),
        (Some(_), Way::Discards) => format!("behind {whose}'s discards in the device's queue"),
    }
}

fn in_words(cause: Cause) -> &'static str {
    match cause {
        Cause::Others => "behind others",
        Cause::OwnOthers => "behind other files of its own process",
        Cause::Held => "throttled before the block layer, or not yet submitted",
        Cause::Queue => "in the block layer's queue",
        Cause::Device => "in the device",
        Cause::DeviceFlush => "in flushes of the device's cache",
        Cause::Kernel => "with no I/O completing (wake-ups, kernel threads, locks)",
        Cause::Unseen => "for a device whose requests are not seen",
    }
}

fn plain_words(phase: Phase) -> &'static str {
    match phase {
        Phase::RunQueue => "ready to run, with no CPU free",
        Phase::DirtyPause => "in pauses for dirtying too much",
        phase => phase.name(),
    }
}

fn matrix(out: &mut String, all: &Anatomy) {
    let shown: Vec<Cause> =
        all.causes.iter().filter(|(_, share)| *share >= 0.0005).map(|(cause, _)| *cause).collect();
    let mut head = vec!["where the time went".to_string(), "share".to_string()];
    head.extend(shown.iter().map(|cause| cause.name().to_string()));
    let mut rows = vec![head];
    for row in &all.phases {
        let mut cells = vec![row.phase.name().to_string(), tenths(row.share)];
        cells.extend(shown.iter().map(|cause| cell(row, *cause)));
        rows.push(cells);
    }
    let mut sum = vec!["sum".to_string(), tenths(all.phases.iter().map(|row| row.share).sum())];
    sum.extend(shown.iter().map(|cause| share_of(&all.causes, *cause).map_or(String::new(), tenths)));
    rows.push(sum);
    table(out, &rows, 1);
    out.push('\n');
}

fn cell(row: &Row, cause: Cause) -> String {
    share_of(&row.causes, cause).filter(|share| *share >= 0.0005).map_or(String::new(), tenths)
}

fn share_of(causes: &[(Cause, f64)], cause: Cause) -> Option<f64> {
    causes.iter().find(|(c, _)| *c == cause).map(|(_, share)| *share)
}

fn culprits(out: &mut String, all: &Anatomy) {
    let shown: Vec<&Culprit> = all.culprits.iter().filter(|c| c.share >= 0.0005).collect();
    if shown.is_empty() {
        return;
    }
    let mut rows = vec![
        ["whose I/O was served meanwhile", "", "share", "data", "requests"].map(str::to_string).to_vec(),
    ];
    for culprit in shown {
        rows.push(vec![
            culprit.name(),
            way(culprit.way).to_string(),
            tenths(culprit.share),
            Bytes(culprit.bytes).to_string(),
            grouped(culprit.ios),
        ]);
    }
    table(out, &rows, 2);
    out.push('\n');
}

fn way(way: Way) -> &'static str {
    match way {
        Way::Writeback => "writeback",
        Way::Reads => "reads",
        Way::DirectWrites => "direct writes",
        Way::Discards => "discards",
        Way::WritesPassedOn => "passed on",
    }
}

fn sites(out: &mut String, all: &Anatomy, stacks: u64) {
    let shown = all.sites.iter().filter(|site| site.share >= 0.001).take(6);
    let mut rows = vec![vec![
        "where it slept".to_string(),
        "part".to_string(),
        "share".to_string(),
        "waits".to_string(),
    ]];
    for site in shown {
        rows.push(vec![
            site.functions.clone(),
            site.phase.name().to_string(),
            tenths(site.share),
            grouped(site.waits.round() as u64),
        ]);
    }
    if rows.len() > 1 {
        table(out, &rows, 2);
        let explained =
            format!("{} of the time, from {} stacks", percent_floor(all.explained), grouped(stacks));
        out.push_str(&format!("explained: {explained}\n"));
    }
}

fn processes(out: &mut String, report: &Report) {
    if who(report).is_some() || report.processes.len() < 2 {
        return;
    }
    out.push('\n');
    let head = ["by process", "syncs", "mean", "max", "others' I/O", "device", "explained"];
    let mut rows = vec![head.map(str::to_string).to_vec()];
    let (shown, more) = report.processes.split_at(report.processes.len().min(PROCESSES_SHOWN));
    for anatomy in shown {
        let Some(process) = &anatomy.process else { continue };
        let share = |cause| share_of(&anatomy.causes, cause).unwrap_or(0.0);
        // Where none has returned there is time, but no latency.
        let latency = |ns: u64| if anatomy.syncs > 0 { Nanos(ns).to_string() } else { "-".to_string() };
        rows.push(vec![
            process.name(),
            grouped(anatomy.syncs),
            latency(anatomy.latency.mean_ns as u64),
            latency(anatomy.latency.max_ns),
            tenths(share(Cause::Others)),
            tenths(share(Cause::Device) + share(Cause::DeviceFlush)),
            percent_floor(anatomy.explained),
        ]);
    }
    table(out, &rows, 1);
    if !more.is_empty() {
        let wall_ns: u64 = more.iter().map(|anatomy| anatomy.wall_ns).sum();
        let share = percent(wall_ns as f64 / report.all.wall_ns.max(1) as f64);
        out.push_str(&format!(
            "and {} more, with {share} of the time inside syncs\n",
            grouped(more.len() as u64)
        ));
    }
}

fn stalls(out: &mut String, report: &Report) {
    if report.stalls.is_empty() {
        return;
    }
    out.push('\n');
    let head = ["buffered writers that were paused", "device", "pauses", "together", "longest"];
    let mut rows = vec![head.map(str::to_string).to_vec()];
    for stall in report.stalls.iter().take(8) {
        rows.push(vec![
            stall.process.name(),
            stall.bdi.clone(),
            grouped(stall.count),
            Nanos(stall.slept_ns).to_string(),
            Nanos(stall.slept_ns_max).to_string(),
        ]);
    }
    table(out, &rows, 2);
}

fn warnings(out: &mut String, report: &Report) {
    let losses = &report.losses;
    let lost = [
        (losses.tasks, "syncs of threads beyond the table"),
        (losses.syncs, "syncs"),
        (losses.ios, "requests"),
        (losses.stacks, "stacks"),
        (losses.stalls, "pauses"),
    ];
    let lost: Vec<String> =
        lost.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}", grouped(*n))).collect();
    if !lost.is_empty() {
        labelled(out, "warning", &format!("not seen for lack of space: {}", lost.join(", ")));
    }
    if losses.ring_syncs > 0 {
        let n = grouped(losses.ring_syncs);
        labelled(
            out,
            "warning",
            &format!("{n} syncs through io_uring are in no figure: only system calls are followed"),
        );
    }
    if report.all.wall_ns > 0 && report.all.explained < EXPLAINED_ENOUGH {
        let unexplained = percent(1.0 - report.all.explained);
        labelled(out, "warning", &format!("{unexplained} of the time is not explained"));
    }
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 9.95 { format!("{percent:.0} %") } else { format!("{percent:.1} %") }
}

/// Never rounded up to a bar that was not reached.
fn percent_floor(share: f64) -> String {
    format!("{:.1} %", (share * 1000.0).floor() / 10.0)
}

fn tenths(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_blocktrace::fsync::{Call, Latency, Losses};

    #[test]
    fn the_report_names_the_culprit_first() {
        let causes = vec![(Cause::Others, 0.91), (Cause::Device, 0.05), (Cause::Kernel, 0.02)];
        let row = Row { phase: Phase::OwnData, share: 0.98, causes: causes.clone() };
        let cpu = Row { phase: Phase::Cpu, share: 0.02, causes: Vec::new() };
        let process = |pid, comm: &str| Process {
            cgroup: (comm == "dd").then(|| "/system.slice/backup.service".to_string()),
            ..Process::new(Some(pid), comm)
        };
        let anatomy = Anatomy {
            process: Some(process(42, "sysbench")),
            calls: vec![(Call::Fsync, 34)],
            syncs: 34,
            short: 33,
            skimmed: 30,
            latency: Latency { mean_ns: 3.5e8, p50_ns: 3, p95_ns: 4, p99_ns: 5, max_ns: 6 },
            wall_ns: 12_000_000_000,
            explained: 0.999,
            phases: vec![row, cpu],
            causes,
            culprits: vec![Culprit {
                process: process(77, "dd"),
                processes: 1,
                way: Way::Writeback,
                share: 0.91,
                bytes: 2 << 30,
                ios: 14_200,
            }],
            sites: Vec::new(),
        };
        let all = Anatomy { process: None, ..anatomy.clone() };
        let losses = Losses { ios: 3, ring_syncs: 12, ..Losses::default() };
        let report = Report {
            elapsed_ns: 12_000_000_000,
            all,
            processes: vec![anatomy],
            stalls: Vec::new(),
            losses,
            stacks: 70,
        };
        let text = trace_fsync(&report, StillWaiting { count: 1, oldest_ns: 3_000_000_000 });
        for expected in [
            "syncs    34 in 12.0 s: 34 fsync, by sysbench (42); one had not returned after 3.00 s\n",
            "the syncs of sysbench (42) spent 91 % of their time behind dd (77)'s writeback in",
            "5.0 % in the device",
            "latency  mean 350 ms, p50 3 ns, p95 4 ns, p99 5 ns, max 6 ns of those that returned\n",
            "cgroups  dd (77) in /system.slice/backup.service\n",
            "sample   3 of 33 syncs shorter than 1 ms looked into; they stand",
            "own data              98.0 %       91.0 %   5.0 %   2.0 %\n",
            "sum                  100.0 %       91.0 %   5.0 %   2.0 %\n",
            "dd (77)                         writeback  91.0 %  2 GiB    14,200\n",
            "warning  not seen for lack of space: 3 requests\n",
            "warning  12 syncs through io_uring are in no figure: only system calls are followed\n",
        ] {
            assert!(text.contains(expected), "lacks {expected:?}:\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        // Twenty with a twentieth of the time each.
        let each = Anatomy { wall_ns: 600_000_000, ..report.processes[0].clone() };
        let many = Report { processes: vec![each; 20], ..report };
        let text = trace_fsync(&many, StillWaiting::default());
        assert_eq!(text.matches("\nsysbench (42) ").count(), PROCESSES_SHOWN, "{text}");
        assert!(text.contains("\nand 4 more, with 20 % of the time inside syncs\n"), "{text}");
        // One whose sync has not returned.
        let waiting = Anatomy { syncs: 0, latency: Latency::default(), ..many.processes[0].clone() };
        let text = trace_fsync(
            &Report { processes: vec![waiting; 2], ..many },
            StillWaiting { count: 2, oldest_ns: 5 },
        );
        let row = text.lines().find(|line| line.starts_with("sysbench (42) ")).unwrap();
        assert_eq!(row.split_whitespace().skip(2).take(3).collect::<Vec<_>>(), ["0", "-", "-"], "{text}");
    }
}
