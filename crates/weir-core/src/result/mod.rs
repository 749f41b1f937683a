//! What a run leaves behind: the raw **record**, and the **result** derived from it, again and again if need be.

pub mod comparison;
pub mod derive;
pub mod difference;
pub mod intervals;
pub mod record;
pub mod run_result;
#[cfg(any(test, feature = "samples"))]
pub mod samples;
pub mod series;
#[cfg(test)]
mod tests;
pub mod warnings;

pub use comparison::{Comparison, compare};
pub use derive::derive;
pub use record::Record;
pub use run_result::{JobResult, RunResult};
