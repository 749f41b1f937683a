//! Single runs.

use anyhow::Result;
use weir_core::stop::Stop;
use weir_db::error::DbError;
use weir_db::runner::{RunOptions, Silent, run};
use weir_db::server::Server;
use weir_oltp::{Kind, OltpRecord, OltpSpec};

use crate::databases::server::failed;
use crate::databases::watch::{Scope, Trace, watched};

/// How runs are made.
pub struct Trials<'a> {
    /// Ends them.
    pub stop: &'a Stop,
    /// Whether programs may be loaded into the kernel.
    pub trace: bool,
}

impl Trials<'_> {
    /// A run with a watcher beside it.
    pub fn watched(&self, spec: &OltpSpec, server: &Server) -> Result<OltpRecord> {
        let scope = Scope { server: server.clone(), trace: Trace::of(self.trace, spec.script.writes()) };
        let servers = std::slice::from_ref(server);
        let ran = watched(scope, &mut Silent, |observer| run(spec, servers, &options(), observer, self.stop));
        ran.map_err(|error| wrong(error, server))
    }

    /// A run by itself. One that ended in an error is no run.
    pub fn plain(&self, spec: &OltpSpec, server: &Server) -> Result<OltpRecord> {
        let servers = std::slice::from_ref(server);
        let ran = run(spec, servers, &options(), &mut Silent, self.stop);
        let record = ran.map_err(|error| wrong(error, server))?;
        if let Some(error) = &record.error {
            anyhow::bail!("running transactions: {error}");
        }
        Ok(record)
    }
}

fn options() -> RunOptions {
    RunOptions { machine_busy_ns: Some(machine_busy_ns), ..RunOptions::default() }
}

fn machine_busy_ns() -> Option<u64> {
    weir_host::Host::live().busy_ns().ok()
}

fn wrong(error: DbError, server: &Server) -> anyhow::Error {
    failed(error, "running transactions", server)
}

/// Transactions per second in every whole second of a run.
pub fn seconds(record: &OltpRecord) -> Vec<f64> {
    let count = |interval: &weir_core::result::record::Interval<Kind>| {
        let done = interval.classes.get(&Kind::Transaction).map_or(0, |class| class.count);
        done as f64 * 1e9 / interval.len_ns.max(1) as f64
    };
    let whole = |interval: &&weir_core::result::record::Interval<Kind>| interval.len_ns >= 500_000_000;
    record.intervals.iter().filter(whole).map(count).collect()
}
