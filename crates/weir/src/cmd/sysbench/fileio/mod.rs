//! sysbench's fileio test.

mod files;
mod observer;
mod prepare;
mod run;

pub use prepare::prepare;
pub use run::run;

use weir_sysbench::{Log, Settings};

use crate::failure::Outcome;

/// `cleanup`: removes the files.
pub fn cleanup(settings: &Settings, log: &mut Log<'_>) -> Outcome {
    files::remove(&settings.fileio, log);
    Outcome::Done
}
