//! Engines, pacing, the runner and the flood: the part of weir that issues I/O.

pub mod canary;
mod content;
pub mod engine;
pub mod error;
pub mod files;
pub mod flood;
pub mod place;
mod recorder;
pub mod runner;
pub mod scratch;
mod stop;
mod sys;
mod worker;

pub use error::IoError;
