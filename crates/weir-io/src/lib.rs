//! Engines, pacing, the runner and the flood: the part of weir that issues I/O.

pub mod error;
pub mod flood;
pub mod runner;

pub use error::IoError;
