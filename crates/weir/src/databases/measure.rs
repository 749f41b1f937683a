//! Transactions of a server that is there: what must not be run, and a run with its record.

use weir_core::stop::Stop;
use weir_db::DbError;
use weir_db::database::Need;
use weir_db::load::{self, LoadOptions};
use weir_db::runner::{self, Observer, RunOptions};
use weir_host::Host;
use weir_oltp::{OltpRecord, OltpSpec};
use weir_record::{Body, Record};

use super::premises::Premises;
use super::watch::{Scope, Trace, watched};
use super::{server, variables};
use crate::progress::Progress;
use crate::session::Session;

/// Refuses what must not be run here, before anything is. `any_maker`: tables that sysbench made are taken, too.
pub fn admit(premises: &mut Premises, spec: &OltpSpec, any_maker: bool) -> anyhow::Result<()> {
    premises.refuse_missing()?;
    let writes = spec.script.writes();
    if writes {
        premises.refuse_foreign()?;
        premises.refuse_full(None)?;
    }
    premises.refuse_unprivileged(if writes { Need::Write } else { Need::Read })?;
    let options = LoadOptions { any_maker: any_maker || !writes, ..LoadOptions::default() };
    for server in &premises.login.servers {
        load::check(spec, server, &options).map_err(|error| server::not_started(error, server))?;
    }
    Ok(())
}

/// Runs the transactions and returns their record, which is not stored yet. `trace`: whether programs may be loaded into
/// the kernel.
pub fn measure(
    premises: &mut Premises,
    spec: &OltpSpec,
    command: &[String],
    trace: bool,
    stop: &Stop,
) -> anyhow::Result<Record> {
    let servers = premises.login.servers.clone();
    let trace = Trace::of(trace, spec.script.writes());
    measure_by(premises, command, trace, stop, |options, observer| {
        runner::run(spec, &servers, options, observer, stop)
    })
}

/// The same with a run of the caller's.
pub fn measure_by(
    premises: &mut Premises,
    command: &[String],
    trace: Trace,
    stop: &Stop,
    run: impl FnOnce(&RunOptions, &mut dyn Observer) -> Result<OltpRecord, DbError>,
) -> anyhow::Result<Record> {
    let variables = variables::read(&mut premises.connection);
    let others = variables::differing(&variables, premises.login.servers.iter().skip(1));
    let session = Session::begin_at("db", command, premises.data_dir.as_deref());
    let options =
        RunOptions { machine_busy_ns: Some(|| Host::live().busy_ns().ok()), ..RunOptions::default() };
    let mut progress = Progress::new();
    let scope = Scope { server: premises.server()?.clone(), trace };
    let ran = watched(scope, &mut progress, |observer| run(&options, observer));
    progress.clear();
    let mut raw = match ran {
        Ok(raw) => raw,
        Err(error) => return Err(server::not_started(error, premises.server()?)),
    };
    (raw.server.variables, raw.server.others) = (variables, others);
    Ok(session.record_of(Body::Oltp(Box::new(raw)), stop))
}
