//! A guard's history as text, page and screen; what it says, before it becomes one of them: phases, sums, and reasons in
//! words; and a simulated guard's scores.

pub(crate) mod html;
mod phases;
pub(crate) mod simulation;
mod story;
#[cfg(test)]
pub(crate) mod synthetic;
pub(crate) mod text;
pub(crate) mod watch;
mod words;

pub use phases::{Phase, Stretch, phases};
pub use story::{DeviceStory, Story, Sums};
pub use words::{
    Change, branch, change, done, is_of_cgroup, limit, limit_of, moved, private_limit_of, rate_of_tenth,
    reason, sensor, share_kept, size, standing, target,
};
