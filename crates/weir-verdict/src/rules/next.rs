//! What to do after the examination: it tries a value or two, a sweep finds the best with intervals, the guard follows
//! the load.

use super::fall;
use super::flood::{grade_of, kept, left, owner};
use crate::doctor::{Grade, NextStep};
use crate::sustained::Kind;
use crate::view::{View, quoted};
use weir_oltp::Dialect;

/// Threads of the workload that an experiment runs unless it is told otherwise.
const THREADS: u32 = 10;

/// The experiments worth making, and what a collapse calls for.
pub fn steps(view: &View) -> Vec<NextStep> {
    let fell = fall::next(view);
    fell.into_iter()
        .chain(longer(view))
        .chain(dirty_limit(view))
        .chain(guard(view))
        .chain(database(view))
        .collect()
}

/// Budget of a sustained examination from which the credit of a usual cloud volume has run out: half an hour at the burst
/// rate is what providers grant (Amazon's gp2 from 5.4 million operations, Azure's disks by their own documents).
const LONG_ENOUGH_NS: u64 = 3_600_000_000_000;

/// A rate that did not fall in minutes may fall in half an hour.
fn longer(view: &View) -> Option<NextStep> {
    let notes = view.notes;
    let steady = view.sustained.is_some_and(|sustained| {
        !sustained.pressures.is_empty() && sustained.pressures.iter().all(|one| one.kind == Kind::Steady)
    });
    (steady && notes.budget_ns < LONG_ENOUGH_NS).then(|| NextStep {
        why: "Nothing fell in this time. The credit of a cloud volume can last for half an hour.".to_string(),
        command: format!("weir doctor --sustained=2h {}", quoted(&notes.path)),
        purpose: "look for a larger credit".to_string(),
    })
}

/// Commits that collapse under a bulk writer, whatever their number of threads: the limit in closed loop.
fn guard(view: &View) -> Option<NextStep> {
    let collapsed = view.flood?.effects.iter().any(|effect| grade_of(effect) == Grade::Poor);
    collapsed.then(|| NextStep {
        why: "The guard adjusts the limit as the load changes; in shadow it changes nothing.".to_string(),
        command: "sudo weir guard run --shadow".to_string(),
        purpose: "hold commits as the load changes".to_string(),
    })
}

/// A server that has its data here: what storage can do is half of what limits it.
fn database(view: &View) -> Option<NextStep> {
    let found = view.notes.databases.first()?;
    let option = match found.family {
        Dialect::MySql => "mysql",
        Dialect::Postgres => "postgres",
    };
    Some(NextStep {
        why: format!(
            "A database server has its data here, in {}: ask the server for its limit.",
            found.data_dir
        ),
        command: format!("weir db doctor --{option}"),
        purpose: "examine the server".to_string(),
    })
}

/// Commits that collapse under a bulk writer: the dirty limit, on both axes.
fn dirty_limit(view: &View) -> Option<NextStep> {
    let effects = &view.flood?.effects;
    let worst = effects.iter().min_by(|a, b| kept(&a.flood, a).total_cmp(&kept(&b.flood, b)))?;
    if grade_of(worst) == Grade::Good {
        return None;
    }
    // What ten threads lose is found with ten; only where nothing else was measured is it one.
    let most = effects.iter().map(|effect| effect.threads).max().unwrap_or(THREADS);
    let with_threads = if most == THREADS { String::new() } else { format!(" --threads {most}") };
    let why = format!(
        "A bulk writer leaves {} of {} commits: a sweep finds the dirty limit that suits both.",
        left(&worst.flood, worst),
        owner(worst.threads),
    );
    Some(NextStep {
        why,
        command: format!(
            "sudo weir tune sweep vm.dirty_bytes --dir {}{with_threads}",
            quoted(&view.notes.path)
        ),
        purpose: "find the best".to_string(),
    })
}
