//! What sessions wait for.

use super::{Judged, View};
use crate::doctor::{Evidence, Grade, Statement};
use crate::view::percent;
use weir_oltp::limits::Wait;

/// Fewer samples of sessions at work than this give no shares.
const SAMPLES_MIN: u64 = 30;
/// Shares below this are not named.
const NAMED: f64 = 0.05;
/// Waiting for locks so much is a matter of the application.
const LOCKS_FAIR: f64 = 0.2;
const LOCKS_POOR: f64 = 0.5;
/// From this share of busy processors on, sessions wait for them as well.
const CROWDED: f64 = 0.85;

/// The share of processors that was busy, where that was so much that waits have queues for processors in them.
fn crowded(view: &View) -> Option<f64> {
    let cpu = view.exam.load.as_ref()?.cpu;
    let busy = (cpu.busy_percent + cpu.steal_percent) / 100.0;
    (busy >= CROWDED).then_some(busy)
}

/// MySQL's list of sessions does not tell who reads or waits for a latch from who runs: that takes a look at its threads.
fn name(view: &View, wait: Wait) -> &'static str {
    let is_told = view.is_postgres() || !view.vitals.sessions.off_cpu.is_empty();
    if wait == Wait::Cpu && !is_told { "processor, reads or latches, not distinguished" } else { wait.name() }
}

pub(super) fn judge(view: &View) -> Option<Judged> {
    let sessions = &view.vitals.sessions;
    let n = sessions.samples();
    if n < SAMPLES_MIN {
        return None;
    }
    let mut shares: Vec<(Wait, f64)> =
        Wait::ALL.into_iter().map(|wait| (wait, sessions.share(wait))).collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    let named: Vec<String> = shares
        .iter()
        .filter(|(_, share)| *share >= NAMED)
        .map(|(wait, share)| format!("{} {}", name(view, *wait), percent(*share)))
        .collect();
    let evidence =
        Evidence { source: "fact:sessions".to_string(), figure: format!("{n} samples"), n, interval: None };
    let text = format!("Of the time of sessions at work: {}.", named.join(", "));
    let mut statements = vec![Statement::new(text, vec![evidence])];
    let locks = sessions.share(Wait::Lock);
    let deadlocks = view.counters.deadlocks.unwrap_or(0);
    let grade = if locks >= LOCKS_POOR {
        Some(Grade::Poor)
    } else if locks >= LOCKS_FAIR || deadlocks > 0 {
        Some(Grade::Fair)
    } else {
        None
    };
    if grade.is_some() {
        let text = format!(
            "Sessions wait for each other's rows ({} of their time, {deadlocks} deadlocks): shorter transactions help, \
             and storage only where the holder waits for its commit.",
            percent(locks)
        );
        statements.insert(0, Statement::new(text, Vec::new()));
    }
    let crowded = crowded(view);
    if let Some(busy) = crowded.filter(|_| sessions.off_cpu.is_empty()) {
        let text = format!(
            "Processors were {} busy: a session that was woken and waits for one still shows what it waited for before, so \
             that shares of waits are too large.",
            percent(busy)
        );
        statements.push(Statement::new(text, Vec::new()));
    }
    let most = |wait| sessions.share(wait) >= 0.5;
    if most(Wait::Commit) {
        let text = match crowded {
            None => "Commits are most of it: the cost of a sync on the storage decides; group commit needs more sessions \
                at once."
                .to_string(),
            Some(busy) => format!(
                "Commits are most of it, but processors were {} busy, and a commit waits for these as well as for the \
                 storage: `weir trace fsync` divides the time of a sync.",
                percent(busy)
            ),
        };
        statements.push(Statement::new(text, Vec::new()));
    }
    if most(Wait::Replica) {
        let text = "Most of it waits until a standby or replica has confirmed a commit: the network and its storage decide.";
        statements.push(Statement::new(text, Vec::new()));
    }
    Some(Judged::new("Waits", grade, statements))
}
