//! The recorder: samples of the machine, always, kept as an archive that can be looked back at.

pub mod archive;
mod course;
mod guarded;
pub mod install;
#[cfg(feature = "trace")]
mod kernel;
#[cfg(not(feature = "trace"))]
#[path = "kernel_absent.rs"]
mod kernel;
mod settings;
mod whose;
mod writer;

pub use course::run;
pub use settings::{RecorderSettings, default_dir};
