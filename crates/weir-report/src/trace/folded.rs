//! The time of syncs as folded stacks, one line a stack: `process;part;cause;culprit MICROSECONDS`. flamegraph.pl,
//! inferno and speedscope read it: <https://github.com/brendangregg/FlameGraph#2-fold-stacks>.

use std::collections::BTreeMap;

use weir_blocktrace::fsync::{Anatomy, Cause, Report, Way};
use weir_core::printable;

/// All time inside syncs, by process. Whose I/O a part waited behind is known of all parts of a process together; each
/// part has the same shares of it.
pub fn folded(report: &Report) -> String {
    let mut stacks: BTreeMap<String, f64> = BTreeMap::new();
    for anatomy in &report.processes {
        for (stack, ns) in stacks_of(anatomy) {
            *stacks.entry(stack).or_default() += ns;
        }
    }
    // The shortest are kept by rounding up: a stack without any count is no stack.
    let line = |(stack, ns): (String, f64)| format!("{stack} {}\n", (ns / 1e3).ceil());
    stacks.into_iter().filter(|(_, ns)| *ns >= 1.0).map(line).collect()
}

fn stacks_of(anatomy: &Anatomy) -> Vec<(String, f64)> {
    let who = anatomy.process.as_ref().map_or("all".to_string(), |process| frame(&process.name()));
    let wall_ns = anatomy.wall_ns as f64;
    let mut found = Vec::new();
    for row in &anatomy.phases {
        let part = format!("{who};{}", row.phase.name());
        if row.causes.is_empty() {
            found.push((part, row.share * wall_ns));
            continue;
        }
        for (cause, share) in &row.causes {
            let stack = format!("{part};{}", cause.name());
            let ns = share * wall_ns;
            if *cause == Cause::Others {
                found.extend(behind(anatomy, &stack, ns));
            } else {
                found.push((stack, ns));
            }
        }
    }
    found
}

/// Time behind others, by whose I/O it was; what none of those listed explains has no name below.
fn behind(anatomy: &Anatomy, stack: &str, ns: f64) -> Vec<(String, f64)> {
    let all =
        anatomy.causes.iter().find(|(cause, _)| *cause == Cause::Others).map_or(0.0, |(_, share)| *share);
    let mut rest_ns = ns;
    let mut found = Vec::new();
    for culprit in &anatomy.culprits {
        let part_ns = (ns * culprit.share / all.max(f64::MIN_POSITIVE)).min(rest_ns);
        rest_ns -= part_ns;
        let way = match culprit.way {
            Way::Writeback => "write-back",
            Way::Reads => "reads",
            Way::DirectWrites => "direct writes",
            Way::Discards => "discards",
            Way::WritesPassedOn => "passed on",
        };
        found.push((format!("{stack};{} {way}", frame(&culprit.name())), part_ns));
    }
    found.push((stack.to_string(), rest_ns));
    found
}

/// The format has no way to write a semicolon or a line end in a frame.
fn frame(name: &str) -> String {
    printable::line(name).replace(';', ":")
}

#[cfg(test)]
mod tests {
    use weir_blocktrace::fsync::{Culprit, Latency, Phase, Process, Row};

    use super::*;

    fn report() -> Report {
        let process = |pid, comm: &str| Process::new(Some(pid), comm);
        let rows = vec![
            Row {
                phase: Phase::Journal,
                share: 0.75,
                causes: vec![(Cause::Others, 0.5), (Cause::Device, 0.25)],
            },
            Row { phase: Phase::Cpu, share: 0.25, causes: Vec::new() },
        ];
        let culprit = |pid, comm, share| Culprit {
            process: process(pid, comm),
            processes: 1,
            way: Way::Writeback,
            share,
            bytes: 0,
            ios: 0,
        };
        let anatomy = |process| Anatomy {
            process,
            calls: Vec::new(),
            syncs: 3,
            short: 0,
            skimmed: 0,
            latency: Latency::default(),
            wall_ns: 4_000_000,
            explained: 1.0,
            phases: rows.clone(),
            causes: vec![(Cause::Others, 0.5), (Cause::Device, 0.25)],
            culprits: vec![culprit(8, "a;b\n\x1b[31m", 0.4)],
            sites: Vec::new(),
        };
        Report {
            elapsed_ns: 1,
            all: anatomy(None),
            processes: vec![anatomy(Some(process(7, "db")))],
            stalls: Vec::new(),
            losses: Default::default(),
            stacks: 0,
        }
    }

    #[test]
    fn stacks_add_up_to_the_time_and_hold_no_foreign_separators() {
        let text = folded(&report());
        let expected = [
            "db (7);journal;device 1000",
            "db (7);journal;others' I/O 400",
            "db (7);journal;others' I/O;a:b\u{fffd}\u{fffd}[31m (8) write-back 1600",
            "db (7);on CPU 1000",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }
}
