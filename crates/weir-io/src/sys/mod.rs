//! Thin, safe wrappers over the system calls that the standard library lacks.

pub mod arena;
pub mod clock;
pub mod extents;
pub mod file;
pub mod usage;
