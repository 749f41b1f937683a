//! What limits a server, verified: runs of a throw-away one, each with a change.

mod place;
mod trials;

pub use place::{Place, Wanted};
pub use trials::{Trials, seconds};
