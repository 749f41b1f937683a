//! The guard: how far bulk writers may go so that syncs keep their latency while those get the rest.
//!
//! [`Guard::step`] takes one [`Sample`] of a device and says what to do with the limit: of dirty pages, or of what bulk
//! writers may write past the page cache ([`bypass`]). It is pure: time comes in with the sample, so the same law runs on
//! the machine, in the simulator and over a stored log.
#![forbid(unsafe_code)]

pub mod bypass;
pub mod history;
mod law;
mod parameters;
pub mod plant;
pub mod private;
mod sample;
pub mod state;

pub use history::{DeviceHistory, Effect, History, Noted, Second};
pub use law::{Action, Branch, Decision, Guard, Inputs, Known, Mood};
pub use parameters::{LatencyTarget, Parameters, Target};
pub use sample::{
    Bulk, DeviceFlow, Life, Limits, Sample, Sensor, SensorSource, Syncs, UNLIMITED_BYTES, Writer,
};
pub use state::{Cost, DeviceState, Standing, State, Totals};
