//! Transactions of a database as a workload: what is asked for ([`spec`]), the tables ([`schema`], [`rows`]), the
//! statements it means ([`statement_order`], [`stream`], [`sql`]), what a run leaves ([`record`]), what limited it
//! ([`limits`]), and what a server says of itself ([`vitals`]). Tables, options and accounting are those of sysbench's OLTP scripts.
#![forbid(unsafe_code)]

pub mod comparison;
pub mod derive;
pub mod durability;
pub mod keys;
pub mod kind;
pub mod limits;
pub mod oltp_result;
pub mod processors;
pub mod record;
pub mod rows;
#[cfg(any(test, feature = "samples"))]
pub mod samples;
pub mod schema;
pub mod size;
pub mod spec;
pub mod sql;
pub mod statement_order;
pub mod stream;
#[cfg(test)]
mod tests;
pub mod text;
pub mod validate;
pub mod value;
pub mod vitals;
mod warnings;

pub use comparison::compare;
pub use derive::derive;
pub use kind::Kind;
pub use oltp_result::OltpResult;
pub use record::OltpRecord;
pub use spec::{OltpSpec, Script};
pub use stream::{Seat, Step, Stream};
pub use value::Value;
pub use weir_core::dialect::Dialect;
