//! From records, results and verdicts to strings: terminal text, HTML, JSON, fio's JSON, CSV. Nothing here writes
//! anywhere, and what is not a string is decided in weir-core.
//!
//! A subject (a run, a trace, an experiment) is a folder with a file for each form. Callers name the form first:
//! [`text`], [`html`], [`json`], [`csv`].
#![forbid(unsafe_code)]

mod bench;
mod conditions;
mod doctor;
mod entry;
mod experiment;
mod fleet;
pub mod guard;
mod knobs;
mod layout;
mod list;
pub mod narrow;
mod oltp;
mod page;
mod plot;
pub mod record;
mod recorder;
mod table;
pub mod trace;

#[cfg(test)]
mod browser;
#[cfg(test)]
mod contradictions;

/// Text that people paste into tickets: at most 100 columns, plain characters, units on everything.
pub mod text {
    pub use crate::bench::compare::comparison;
    pub use crate::bench::replay::text as replay;
    pub use crate::bench::text::run;
    pub use crate::bench::workload::describe;
    pub use crate::doctor::database::db_doctor;
    pub use crate::doctor::text::doctor;
    pub use crate::experiment::text::experiment;
    pub use crate::guard::simulation::{Simulated, simulation};
    pub use crate::guard::text::{decision, guard};
    pub use crate::knobs::text as knobs;
    pub use crate::layout::{labelled_at, wrap};
    pub use crate::list::{ListRow, list};
    pub use crate::oltp::text::limits::limits;
    pub use crate::oltp::text::oltp;
    pub use crate::recorder::text::verdict;
    pub use crate::table::{listing, table};
    pub use crate::trace::fsync::{trace_fsync, trace_fsync_slow};

    /// The screen of a running guard.
    pub mod guard_watch {
        pub use crate::guard::watch::*;
    }

    /// The screen of a traced device.
    pub mod trace_live {
        pub use crate::trace::live::*;
    }

    /// What a device's %util is worth.
    pub mod trace_util {
        pub use crate::trace::utilization::*;
    }
}

/// Self-contained pages.
pub mod html {
    pub use crate::bench::html::{replay, run};
    pub use crate::doctor::html::doctor;
    pub use crate::experiment::html::experiment;
    pub use crate::fleet::html::{
        Answer as FleetAnswer, Commits as FleetCommits, Listing as FleetListing, Probed as FleetProbed,
        Run as FleetRun, SlowHosts as FleetSlowHosts, fleet, run as fleet_run,
    };
    pub use crate::guard::html::guard;
    pub use crate::oltp::html::oltp;
    pub use crate::page::OPENING;
    pub use crate::recorder::html::{Source as RecorderSource, verdict};
    pub use crate::trace::html::trace;
}

/// JUnit XML, which CI servers show as tests.
pub mod junit {
    pub use crate::doctor::junit::{OPENING, doctor};
}

/// Documents for programs, versioned by their `schema`; each ends with a newline.
pub mod json {
    pub use crate::bench::compare::json as comparison;
    pub use crate::bench::fio_json::run as fio;
    pub use crate::bench::json as run;
    pub use crate::bench::replay::json as replay;
    pub use crate::experiment::json::document as experiment;
    pub use crate::knobs::json::document as knobs;
    pub use crate::oltp::json as oltp;
    pub use crate::recorder::json::verdict;
}

/// The intervals of a run, one line each; units are in the header.
pub mod csv {
    pub use crate::bench::csv::{HEADER, intervals};
    pub use crate::oltp::csv as oltp;
}
