//! Databases as places of workloads: what is known of a server before it is touched, runs on it with a watcher beside
//! them, and servers of weir's own.

pub mod examination;
pub mod explain;
pub mod ground;
mod measure;
pub mod own;
mod premises;
pub mod progress;
pub mod sandbox;
pub mod server;
pub mod variables;
pub mod watch;

pub use measure::{admit, measure, measure_by};
pub use premises::{Premises, outside};
pub use server::Named;

/// The database of the tables where nobody names one.
pub const DATABASE: &str = "weir";
