//! Transactions of a database as a workload: what is asked for ([`spec`]), the statements it means, what a run leaves
//! ([`record`]), and what limited it ([`limits`]). Tables, options and accounting are those of sysbench's OLTP scripts.

pub mod kind;
pub mod limits;
pub mod record;
pub mod spec;
pub mod text;

pub use kind::Kind;
pub use record::OltpRecord;
pub use spec::{Dialect, OltpSpec, Script};
