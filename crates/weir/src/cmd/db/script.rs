//! `weir db run --script`: the events of a user's Lua script instead of weir's transactions.

use weir_core::stop::Stop;
use weir_db::runner::run_workload;
use weir_oltp::OltpSpec;
use weir_record::Record;

use crate::cmd::sysbench::script::{self, Ready};
use crate::databases::watch::Trace;
use crate::databases::{Premises, measure_by};
use crate::failure::Lacking;

/// A script, and the options of its own.
pub struct Lua<'a> {
    /// Its file.
    pub path: &'a str,
    /// As typed.
    pub own: &'a [String],
}

/// Runs the script in all threads and returns the record, which is not stored yet, and the script, whose `done` is still to
/// come.
pub fn measure(
    premises: &mut Premises,
    spec: &OltpSpec,
    lua: Lua<'_>,
    command: &[String],
    trace: bool,
    stop: &Stop,
) -> anyhow::Result<(Record, Ready)> {
    let ready = script::for_run(lua.path, lua.own, spec, &premises.login.servers)?;
    let events = ready.events.clone();
    let measured = measure_by(premises, command, Trace::of(trace, true), stop, |options, observer| {
        let mut record = run_workload(spec, events.clone(), options, observer, stop)?;
        record.script_path = Some(lua.path.to_string());
        record.error = events.failure().or(record.error);
        Ok(record)
    });
    if let (Err(_), Some(what)) = (&measured, ready.events.failure()) {
        let hint =
            "docs/reference/sysbench.md lists what scripts find; `weir sysbench SCRIPT help` its options"
                .to_string();
        return Err(Lacking { what, hint: Some(hint) }.into());
    }
    Ok((measured?, ready))
}
