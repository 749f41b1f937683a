//! From what was typed to what is meant: flags, the content of files and defaults merged into validated types. Nothing is
//! read here; [`crate::inputs`] does that.

pub mod bench;
pub mod db;
pub mod guard;
pub mod recorder;
pub mod tune;

pub use bench::BenchSettings;
