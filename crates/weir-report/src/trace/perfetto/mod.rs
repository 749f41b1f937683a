//! Traces for Perfetto (<https://ui.perfetto.dev>): TrackEvents in protobuf, written as they come.
//!
//! Times are nanoseconds of the recording's clock; where the recording knows the wall clock, so does the trace.

mod recording;
mod syncs;
#[cfg(test)]
mod tests;
mod tracks;
mod wire;

pub use recording::{IOS_MAX, Recording, Written};
pub use syncs::{Counters, syncs};
