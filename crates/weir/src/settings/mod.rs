//! From what was typed to what is meant: flags, files and defaults merged into validated types of weir-core.

pub mod bench;
pub mod db;
pub mod guard;
pub mod recorder;
pub mod tune;

pub use bench::{BenchSettings, bench};
