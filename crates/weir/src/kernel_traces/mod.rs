//! Traces of the running kernel: the live stage view, recordings, and the waits of syncs. Each takes plain values, tells
//! what happens as it happens, and prints nothing on standard output.

pub mod fsync;
pub mod live;
pub mod recording;
