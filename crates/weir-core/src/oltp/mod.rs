//! Transactions of a database as a workload: what is asked for ([`spec`]), the statements it means, what a run leaves
//! ([`record`]), and what limited it ([`limits`]). Tables, options and accounting are those of sysbench's OLTP scripts.

pub mod comparison;
pub mod derive;
pub mod durability;
pub mod kind;
pub mod limits;
pub mod record;
pub mod result;
#[cfg(test)]
pub(crate) mod samples;
pub mod size;
pub mod spec;
#[cfg(test)]
mod tests;
pub mod text;
mod warnings;

pub use comparison::{compare, is_oltp};
pub use derive::derive;
pub use kind::Kind;
pub use record::OltpRecord;
pub use result::OltpResult;
pub use spec::{Dialect, OltpSpec, Script};
