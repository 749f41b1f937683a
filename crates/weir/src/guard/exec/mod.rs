//! A bulk command in a cgroup of its own, so that it can be held alone: where that is, and what the command does there.

mod place;
mod watch;

pub use place::{PREFIX, Place};
pub use watch::Watch;
