//! Knobs: settings of kernel, device and cgroup that are read, applied, verified and always restored.
//!
//! A change is a transaction. Its old and new values are in the journal, fsynced, before the first write; a
//! guardian process waits for the end of this one, however it ends; every value is read back; what fails takes
//! back all that was written before it. A value is restored only if it is still one that weir
//! wrote.

mod alive;
mod apply;
mod band;
mod dirty;
mod entry;
mod error;
mod governor;
mod guardian;
mod journal;
mod order;
mod owners;
pub(crate) mod place;
mod read;
mod refusal;
mod restore;
mod rollback;
mod servers;
mod silence;
mod stderr;
mod steps;
#[cfg(test)]
pub(crate) mod testing;

use std::time::Duration;

use weir_knobs::{Setting, Step};

use crate::host::Host;

pub use crate::servers::{Servers, Unreached};
pub use apply::Applied;
pub use entry::fnv1a;
pub use error::KnobError;
pub use governor::{Actuator, BdiOf, Choice, Governor, HANGS_AFTER, Move, PrivateLimits};
pub use guardian::{ARGUMENT, SpareGuardian, guardian_main};
pub use journal::Journal;
pub use owners::{before, configuration, read_with_owners, readings};
pub use place::written;
pub use read::{plan, read, values};
pub use rollback::{LedBack, Listed, Until, Which, confirm, entries, recover, recover_stale, rollback};

/// How long a change stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Until [`Applied::restore`] or the end of the process, whichever comes first.
    WhileAlive,
    /// For this time, unless [`confirm`] comes before. It outlives the process.
    UntilConfirmed {
        /// Counted from the moment the last value is in force; the time the machine sleeps counts too.
        deadline: Duration,
    },
    /// Until [`rollback`], or the next boot.
    Kept,
}

/// Applies settings for as long as this process lives or the result is kept, on this machine. A setting that is in
/// force already is held all the same: no other weir may change it in the middle of a trial.
///
/// # Errors
/// When a setting cannot be planned or applied; nothing is changed then.
pub fn trial(host: &Host, journal: &Journal, settings: &[Setting]) -> Result<Applied, KnobError> {
    let mut plan = plan(host, settings, false).map_err(KnobError::Planned)?;
    let in_force = settings.iter().filter(|setting| plan.steps.iter().all(|step| step.knob != setting.knob));
    let held: Vec<Step> = in_force
        .map(|setting| Step {
            knob: setting.knob.clone(),
            from: setting.value.clone(),
            to: setting.value.clone(),
        })
        .collect();
    plan.steps.extend(held);
    journal.apply(host, &plan, Hold::WhileAlive, Duration::ZERO)
}
