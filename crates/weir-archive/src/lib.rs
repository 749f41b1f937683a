//! What the recorder keeps: tables of integers and names, the files that hold them, and what follows from them.
//!
//! An interval's figures become rows ([`interval`]) of a few tables ([`tables`]). They lie in a journal of frames ([`journal`])
//! until a segment is full, and then in Parquet files ([`parquet`]), one a table, whose names say when they begin
//! ([`segment`]). [`totals`] are what they add up to, and [`stall`] says when a device stands still. [`series`] reads them back, and [`verdict`] says what was not as usual, since when, and why.
#![forbid(unsafe_code)]

pub mod batch;
pub mod csv;
pub mod interval;
pub mod journal;
pub mod parquet;
pub mod segment;
pub mod series;
pub mod snapshot;
pub mod stall;
pub mod tables;
pub mod totals;
pub mod verdict;

pub use batch::{Batch, Column};
pub use tables::{Row, TABLES, Table};

/// Version of the tables; every Parquet file says it under the key `weir.archive`.
pub const SCHEMA: &str = "weir.archive/1";

/// Why bytes cannot be read as what they should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at byte {at}: {what}")]
pub struct Damaged {
    /// Where, from the start of what was read.
    pub at: usize,
    /// What was expected there, and what was found.
    pub what: String,
}

impl Damaged {
    pub(crate) fn new(at: usize, what: impl Into<String>) -> Damaged {
        Damaged { at, what: what.into() }
    }
}
