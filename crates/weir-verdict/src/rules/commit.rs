//! How long a commit takes on the idle storage: what a transaction waits for at the very least.

use crate::doctor::{Finding, Grade, Measurement, Statement, Topic};
use crate::notes::SyncPath;
use crate::topic::{COMMIT_FAIR_NS, COMMIT_GOOD_NS};
use crate::view::{View, latency_of, rate_of, tail, threads, time};
use weir_core::units::{Bytes, per_second};

/// Grades one thread's commits; other sizes and thread counts follow as figures.
pub fn judge(view: &View) -> Option<Finding> {
    let typical = view.typical_commit()?;
    let (name, ns) = tail(typical);
    let grade = grade(ns);
    let why = match grade {
        Grade::Good => "good: at most 5 ms, about half a turn of a hard disk",
        Grade::Fair => "fair: above 5 ms, about half a turn of a hard disk, but at most 20 ms",
        _ => "poor: above 20 ms, where a transaction of a few commits becomes noticeable",
    };
    let text = format!(
        "One thread commits {} in {} (median) and {} ({name}): {} commits/s ({why}).",
        typical.block,
        time(typical.latency.p50_ns.unwrap_or(typical.latency.mean_ns as u64)),
        time(ns),
        per_second(typical.iops.mean),
    );
    let mut statements = vec![Statement::new(text, vec![rate_of(typical), latency_of(typical, name, ns)])];
    statements.extend(small(view));
    let summary = format!("{name} {}, {}/s by one thread", time(ns), per_second(typical.iops.mean));
    Some(Finding { topic: Topic::Commit, grade: Some(grade), summary, statements })
}

/// The grade of a commit latency at the tail.
pub fn grade(ns: u64) -> Grade {
    match ns {
        ns if ns <= COMMIT_GOOD_NS => Grade::Good,
        ns if ns <= COMMIT_FAIR_NS => Grade::Fair,
        _ => Grade::Poor,
    }
}

/// The small commits of a log, beside the page-sized ones.
fn small(view: &View) -> Option<Statement> {
    let of = |several| view.commits(SyncPath::Buffered, Bytes(4 << 10), several);
    let measured: Vec<&Measurement> = [of(false), of(true)].into_iter().flatten().collect();
    if measured.is_empty() || view.typical_commit().is_some_and(|t| t.id == measured[0].id) {
        return None;
    }
    let figures: Vec<String> = measured.iter().map(|m| figures(m)).collect();
    let text = format!("Commits of 4 KiB: {}.", figures.join("; "));
    Some(Statement::new(text, measured.iter().map(|m| rate_of(m)).collect()))
}

fn figures(m: &Measurement) -> String {
    let (name, ns) = tail(m);
    format!("{} {}/s, {name} {}", threads(m.threads), per_second(m.iops.mean), time(ns))
}
