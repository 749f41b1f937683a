//! What the running kernel says about its block layer: stages as they happen, the anatomy of an fsync, recordings.
//!
//! The programs under `src/bpf` run in the kernel; this crate loads them, and turns what they count into
//! weir-core's types. Where BPF is not allowed, the kernel's own tracers serve, and it is said what that loses.

/// The skeleton that build.rs made of a program, as `mod skeleton`.
macro_rules! skeleton {
    ($name:literal) => {
        mod skeleton {
            #![allow(
                missing_docs,
                clippy::all,
                clippy::undocumented_unsafe_blocks,
                clippy::unwrap_used,
                reason = "generated"
            )]
            include!(concat!(env!("OUT_DIR"), "/", $name, ".skel.rs"));
        }
    };
}

mod brackets;
pub mod capture;
mod error;
pub mod fsync;
pub mod live;
mod loading;
pub mod probe;
pub mod sync_sensor;
pub mod tracefs;
mod tracepoints;

pub use error::Error;
