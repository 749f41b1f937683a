//! Options of `weir fleet run` that no command of weir's has: they may stand behind the command too. A test of weir's holds them against
//! what its commands have (`crates/weir/src/cli/mod.rs`).

/// With a value.
pub const WITH_VALUE: [&str; 6] = ["--hosts", "--inventory", "--canary", "--probe", "--worse", "--parallel"];
/// Without one.
pub const ALONE: [&str; 2] = ["--together", "--sudo"];
