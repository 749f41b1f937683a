//! Which I/O is issued: the specification of a job, and the deterministic stream of operations it means.

pub mod data;
pub mod distribution;
pub mod draft;
pub mod fio;
pub mod jobfile;
pub mod op;
pub mod permute;
pub mod replay;
pub mod rng;
pub mod schedule;
pub mod spec;
pub mod stream;
pub mod text;
pub mod validate;
pub mod verify;

pub use op::{Op, OpKind, OpSource, Then};
pub use spec::Job;
pub use stream::{JobStream, Layout};
pub use validate::SpecError;
