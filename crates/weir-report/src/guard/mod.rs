//! What a guard's history says, before it becomes text or a page: phases, sums, and reasons in words.

mod phases;
mod story;
#[cfg(test)]
pub(super) mod synthetic;
mod words;

pub use phases::{Phase, Stretch, phases};
pub use story::{DeviceStory, Story, Sums};
pub use words::{
    Change, branch, change, done, limit, limit_of, moved, reason, sensor, share_kept, size, standing, target,
};
