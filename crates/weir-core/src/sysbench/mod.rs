//! sysbench's `fileio` test as sysbench 1.0.20 defines it: its command line, the operations its modes mean, and its
//! report. Strings and decisions only; `weir fileio` acts on them.
//!
//! What is taken over are facts: names, defaults, formats, order of messages, exit codes. Where sysbench measures
//! wrongly weir does not follow it, and [`extra`] says so after the report.

pub mod args;
pub mod extra;
pub mod fileio;
pub mod general;
pub mod help;
pub mod job;
pub mod legacy;
pub mod log;
pub mod mode;
pub mod options;
pub mod report;
pub mod stream;
pub mod text;
pub mod values;

#[cfg(test)]
mod tests;

pub use args::{Request, Settings, parse};
pub use fileio::Fileio;
pub use general::General;
pub use log::{Console, Log, Quit};

/// First line of every report; scripts look for it. Debian's build of sysbench prints the same.
pub const HEADER: &str = "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n";
/// What `--version` prints; scripts test it.
pub const VERSION: &str = "sysbench 1.0.20";
/// First line of a 0.4.12 report.
pub const LEGACY_HEADER: &str = "sysbench 0.4.12:  multi-threaded system evaluation benchmark\n";
