//! The store of a fleet: what is kept of many hosts, what is asked of it, and what follows from the answers.
//!
//! Hours of a host's recorder ([`hours`]) and facts out of its records ([`facts`]) become rows of five tables ([`tables`]), in Parquet
//! files whose folders say kind, day and host ([`layout`]). [`covered`] are the times that were imported, so that nothing counts
//! twice. A question ([`questions`]) is one text of SQL that means the same on every engine, and a rule ([`verdict`]) says what
//! its rows mean.
#![forbid(unsafe_code)]

pub mod covered;
pub mod facts;
pub mod hours;
pub mod layout;
pub mod merge;
pub mod questions;
pub mod tables;
pub mod verdict;

/// Key in the footer of each file.
pub const SCHEMA_KEY: &str = "weir.store";

/// Version of the tables, its value.
pub const SCHEMA: &str = "weir.store/1";
