//! Tails and stalls without any flood: how much worse the worst is than the usual.

use crate::doctor::{Finding, Grade, Measurement, PhaseKind, Statement, Topic};
use crate::notes::StepKind;
use crate::view::{View, latency_of, time};

/// A pause that users of a database notice, and one that trips its time-outs and replicas.
const NOTICED_NS: u64 = 100_000_000;
const STALL_NS: u64 = 1_000_000_000;

/// Looks at every step with at most ten in flight, where waiting in weir's own queue plays no part.
pub fn judge(view: &View) -> Option<Finding> {
    let steps = view.notes.steps.iter().zip(view.measurements);
    let candidates: Vec<&Measurement> = steps
        .filter(|(step, m)| matters(step.kind) && m.depth * m.threads <= 10 && m.latency.n > 0)
        .map(|(_, m)| m)
        .collect();
    let worst = candidates.iter().max_by_key(|m| longest(m))?;
    let ns = longest(worst);
    let grade = grade(ns);
    let meaning = match grade {
        Grade::Poor => "a stall: time-outs and failovers are within reach",
        Grade::Fair => "a pause above 100 ms, which users notice",
        _ => "no pause above 100 ms",
    };
    let n: u64 = candidates.iter().map(|m| m.latency.n).sum();
    let text = format!(
        "The slowest of {} operations with up to ten in flight took {} ({}): {meaning}.",
        weir_core::units::grouped(n),
        time(ns),
        worst.title,
    );
    let mut statements = vec![Statement::new(text, vec![latency_of(worst, "longest", ns)])];
    statements.extend(view.typical_commit().and_then(spread));
    let summary = format!("longest {}", time(ns));
    Some(Finding { topic: Topic::Tail, grade: Some(grade), summary, statements })
}

/// By the longest pause.
pub fn grade(longest_ns: u64) -> Grade {
    match longest_ns {
        ns if ns >= STALL_NS => Grade::Poor,
        ns if ns >= NOTICED_NS => Grade::Fair,
        _ => Grade::Good,
    }
}

fn matters(kind: StepKind) -> bool {
    matches!(
        kind,
        StepKind::ReadDepth | StepKind::WriteDepth | StepKind::Commit(_) | StepKind::Flood(PhaseKind::Idle)
    )
}

/// The longest operation, or an unfinished one that was older.
fn longest(m: &Measurement) -> u64 {
    m.latency.max_ns.max(m.oldest_ns_max)
}

/// Median to p99.9 of the typical commit, where there are samples enough.
fn spread(m: &Measurement) -> Option<Statement> {
    let (median, p999) = (m.latency.p50_ns?, m.latency.p999_ns?);
    let text = format!(
        "One commit in a thousand takes {} or longer, against a median of {}.",
        time(p999),
        time(median)
    );
    Some(Statement::new(text, vec![latency_of(m, "p99.9", p999), latency_of(m, "p50", median)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::from_record;
    use crate::notes::SyncPath;
    use crate::synthetic::{Behaviour, Lab};

    /// The table of the flood shows its commits without a bulk writer too: both say the same of the longest.
    #[test]
    fn the_idle_commits_before_a_flood_count_and_those_under_it_do_not() {
        let how = |slow_ns| Behaviour { iops: 500.0, usual_ns: 2_000_000, slow_ns };
        let mut lab = Lab::new();
        lab.limits();
        lab.commits(SyncPath::Buffered, 10, &how(90_000_000));
        lab.phase(PhaseKind::Idle, 10, None, &how(230_000_000));
        lab.phase(PhaseKind::Flood, 10, None, &how(7_000_000_000));
        let report = from_record(&lab.record(Vec::new())).unwrap();
        let tail = report.findings.iter().find(|finding| finding.topic == Topic::Tail).unwrap();
        let idle = report.flood.as_ref().unwrap().effects[0].idle.worst_ns;
        assert_eq!(
            (tail.summary.clone(), tail.grade),
            (format!("longest {}", time(idle)), Some(Grade::Fair))
        );
    }
}
