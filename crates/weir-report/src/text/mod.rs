//! A result as text that people paste into tickets: at most 100 columns, plain characters, units on everything.

mod compare;
pub(super) mod conditions;
mod experiment;
mod guard;
pub mod guard_watch;
pub mod knobs;
pub(super) mod layout;
mod limits;
mod list;
mod oltp;
pub(crate) mod run;
mod simulation;
mod trace_fsync;
pub mod trace_live;
mod trace_live_table;
pub mod trace_util;
mod workload;

pub use compare::comparison;
pub use experiment::experiment;
pub use guard::{decision, guard};
pub use layout::table;
pub use limits::limits;
pub use list::{ListRow, list};
pub use oltp::oltp;
pub use run::run;
pub use simulation::{Simulated, simulation};
pub use trace_fsync::{trace_fsync, trace_fsync_slow};
pub use workload::describe;
