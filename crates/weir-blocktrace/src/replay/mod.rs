//! A recording as a load to be played: which I/Os were sent to a device, and how their stages compare with the played
//! ones'.

mod collect;
mod record;
#[cfg(test)]
mod tests;

pub use collect::{Chosen, From, IOS_MAX, LeftOut, NotChosen, Sent};
pub use record::{Figures, KIND, ReplayRecord, SCHEMA, StageRow};
