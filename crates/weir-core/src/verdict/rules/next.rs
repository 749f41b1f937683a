//! The experiment that fits what was found: an examination tries a value or two, a sweep finds the best with intervals.

use super::flood::{grade_of, kept, owner};
use crate::verdict::doctor::{Grade, NextStep};
use crate::verdict::view::{View, percent};

/// Threads of the workload that an experiment runs unless it is told otherwise.
const THREADS: u32 = 10;

/// The experiments worth making.
pub fn steps(view: &View) -> Vec<NextStep> {
    dirty_limit(view).into_iter().collect()
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
        percent(kept(&worst.flood, worst)),
        owner(worst.threads),
    );
    Some(NextStep {
        why,
        command: format!(
            "sudo weir tune sweep vm.dirty_bytes --dir {}{with_threads}",
            quoted(&view.notes.path)
        ),
    })
}

/// A path as one can paste it into a shell.
fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+,./:@%".contains(c);
    if !path.is_empty() && path.chars().all(plain) {
        path.to_string()
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}
