//! The pure heart of weir: what a workload is, what a measurement says, and what follows from it.
//!
//! Nothing here reads a file, a clock or the network, and nothing starts a thread: facts, time and
//! randomness come in as arguments, so that every decision can be tested and every old record studied again.
#![forbid(unsafe_code)]

pub mod dialect;
pub mod glob;
pub mod json;
pub mod junit;
pub mod printable;
pub mod result;
pub mod stats;
pub mod stop;
pub mod target;
pub mod units;
pub mod workload;
