//! The recorder: samples of the machine, always, kept as an archive that can be looked back at.

pub mod archive;
pub mod control;
mod course;
mod guarded;
pub mod install;
#[cfg(feature = "trace")]
mod kernel;
#[cfg(not(feature = "trace"))]
#[path = "kernel_absent.rs"]
mod kernel;
mod knob_values;
mod metrics;
#[cfg(feature = "trace")]
mod pace;
mod rows;
mod settings;
mod snapshots;
mod watch;
mod whose;
mod writer;

pub use course::run;
pub use settings::{RecorderSettings, default_dir};
