//! Live stage sessions: programs in the kernel count every request's stages, and a [`Snapshot`] reads what they counted.
//!
//! [`Detail::Default`] hooks the completion of requests (and their issue, where the kernel's own stamps do not say
//! when that was), and its unit is the request. [`Detail::Full`] follows every bio from its Q, and its unit is the
//! piece, as in recordings.

pub(crate) mod buckets;
mod cells;
pub(crate) mod cgroups;
mod control;
mod in_flight;
mod options;
pub(crate) mod overhead;
mod programs;
mod ring;
mod session;
mod snapshot;
mod stamps;
mod unseen;

pub use options::{Detail, LIMIT_DEVICES, LIMIT_PIDS, Options};
pub use session::StageSession;
pub use snapshot::{IssueStamp, Losses, Overhead, Slow, Snapshot, StartStamp, Unit};
