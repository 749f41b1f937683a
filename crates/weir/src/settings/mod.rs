//! From what was typed to what is meant: flags, files and defaults merged into validated types of weir-core.

mod bench;

pub use bench::{BenchSettings, bench};
