//! Which I/O is issued: the specification of a job, and the deterministic stream of operations it means.

pub mod op;
pub mod spec;

pub use op::{Op, OpKind, OpSource, Then};
pub use spec::Job;
