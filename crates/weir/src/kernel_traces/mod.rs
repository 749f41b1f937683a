//! Traces of the running kernel: recordings, and the waits of syncs. Each takes plain values, tells
//! what happens as it happens, and prints nothing on standard output.

pub mod command;
pub mod fsync;
pub mod recording;
