//! Live figures of devices: a source, the best that this kernel and this user may have, and a sampler that cuts what it
//! counts into intervals. Commands show them.

mod kernel;
mod ladder;
mod sampler;
mod source;
mod watch;

pub use ladder::open;
pub use sampler::{Sampler, Taken, Whole};
pub use source::Wanted;
pub use watch::{Request, View, Watching};
