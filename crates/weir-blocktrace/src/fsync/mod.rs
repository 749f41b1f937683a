//! The anatomy of an fsync: what a task inside a sync waited for, and whose I/O made it wait.
//!
//! Input are [`Part`]s (a sync, or a stretch of one, with its waits), the requests that completed meanwhile
//! ([`Io`]), and the stacks in which waits were slept. Each wait has a [`Phase`], from its stack, and is cut by the
//! completions on the sync's devices into [`Cause`]s; see [`Analyst`] for the rule. Output is a [`Report`].

mod allowance;
mod analyst;
mod cause;
mod ledger;
mod log;
mod part;
mod phase;
mod recent;
mod report;
mod senders;
mod tally;
#[cfg(test)]
mod tests;

pub use allowance::Allowance;
pub use analyst::{Analyst, Sampling};
pub use cause::{Cause, Owner};
pub use ledger::Ledger;
pub use log::{Log, LoggedSync, LoggedWait};
pub use part::{Begun, Beneath, Call, FileId, Io, IoFlags, Part, Skimmed, Wait};
pub use phase::{Phase, SiteId};
pub use recent::{LastIos, PastIo};
pub use report::{Anatomy, Culprit, Latency, Losses, Report, Row, Site, SlowSync, Stall, StillWaiting};
pub use senders::{Process, Sender, Way};
