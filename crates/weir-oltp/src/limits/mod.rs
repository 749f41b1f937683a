//! What limits a run of transactions: from what was watched beside it to shares of the sessions' time, and from these
//! to a verdict.
//!
//! The method is the response-time law of a closed queueing network (Denning and Buzen 1978): each session is at any
//! moment in exactly one place, so that the places' shares of the sessions' time add up to one, and taking a place away
//! makes at most `1 / (1 − share)` of the rate. What the operating system alone cannot distinguish (a follower of a group
//! commit sleeps on a futex, as one who waits for a row does) the server's own list of sessions does.

pub mod bottleneck;
pub mod bounds;
pub mod diagnosis;
pub mod elasticity;
pub mod evidence;
pub mod profile;
mod signs;
pub mod tested;
pub mod traps;
pub mod waits;
pub mod watched;
mod words;

pub use bottleneck::judge;
pub use bounds::Bounds;
pub use diagnosis::{Candidate, Confidence, Diagnosis, Limit};
pub use elasticity::{Pair, held, tested};
pub use evidence::{Evidence, Load};
pub use profile::{Part, Profile};
pub use tested::{Change, Tested};
pub use traps::Trap;
pub use waits::{OffCpu, Wait};
pub use watched::{Counters, CpuTimes, DeviceUse, NOT_COUNTED, Sessions, SyncUse, TaskTimes, Watched};

#[cfg(any(test, feature = "samples"))]
pub mod synthetic;
#[cfg(test)]
mod tests;
