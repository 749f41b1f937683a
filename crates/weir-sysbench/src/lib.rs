//! sysbench's `fileio` test and its database scripts as sysbench 1.0.20 defines them: command lines, the operations
//! they mean, and reports. Strings and decisions only; the binary acts on them.
//!
//! What is taken over are facts: names, defaults, formats, order of messages, exit codes. Where sysbench measures
//! wrongly weir does not follow it, and [`fileio_extra`] says so after the report.
#![forbid(unsafe_code)]

pub mod args;
pub mod database;
pub mod fileio;
pub mod fileio_extra;
pub mod fileio_report;
pub mod general;
pub mod help;
pub mod job;
pub mod legacy;
pub mod log;
pub mod mode;
pub mod oltp_extra;
pub mod oltp_report;
pub mod options;
pub mod random;
pub mod script;
pub mod stream;
pub mod stretches;
pub mod text;
pub mod values;

#[cfg(test)]
mod tests;

pub use args::{Request, Settings, parse};
pub use database::Database;
pub use fileio::Fileio;
pub use general::General;
pub use log::{Console, Log, Quit};
pub use script::{ScriptOption, ScriptRequest};

/// First line of every report; scripts look for it. Debian's build of sysbench prints the same.
pub const HEADER: &str = "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n";
/// What `--version` prints; scripts test it.
pub const VERSION: &str = "sysbench 1.0.20";
/// First line of a 0.4.12 report.
pub const LEGACY_HEADER: &str = "sysbench 0.4.12:  multi-threaded system evaluation benchmark\n";
