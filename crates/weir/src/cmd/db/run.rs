//! `weir db run`: transactions, measured.

use weir_cli::signals::stop_on_signals;
use weir_core::stop::Stop;
use weir_oltp::validate;
use weir_record::Record;

use super::script;
use crate::cli::db::workload::RunArgs;
use crate::databases::{Premises, admit, measure};
use crate::failure::{Outcome, Usage};
use crate::inputs::db::servers;
use crate::output::{Format, print_for, render};
use crate::session::save;
use crate::settings::bench::usage;
use crate::settings::db::workload::{spec, unknown_to_scripts};

/// Runs the command.
pub fn run(args: RunArgs, command: &[String]) -> anyhow::Result<Outcome> {
    let spec = spec(args.script, &args.workload);
    let script = args.lua.as_deref();
    if let Some(option) = script.and_then(|_| unknown_to_scripts(&args.workload)) {
        let what = format!("{option} has no effect beside --script");
        let hint = "the script's own options come last, after `--`".to_string();
        return Err(Usage { what, hint: Some(hint) }.into());
    }
    validate::spec(&spec).map_err(usage)?;
    if args.format == Format::FioJson {
        let what = "fio's JSON has no form for transactions".to_string();
        return Err(Usage { what, hint: Some("--format json is weir's own".to_string()) }.into());
    }
    let stop = stop_on_signals()?;
    let mut premises = Premises::enter(servers(&args.connect)?)?;
    let trace = !args.no_trace;
    let (record, ready) = match script {
        Some(path) => {
            premises.refuse_missing()?;
            let own = &args.lua_options;
            let lua = script::Lua { path, own };
            let (record, ready) = script::measure(&mut premises, &spec, lua, command, trace, &stop)?;
            (record, Some(ready))
        }
        None => {
            admit(&mut premises, &spec, args.workload.tables.sysbench_tables)?;
            (measure(&mut premises, &spec, command, trace, &stop)?, None)
        }
    };
    let path = save(&record);
    print_for(args.format == Format::Text, &render(&record, path.as_deref(), args.format)?)?;
    let failed = ready.and_then(|ready| ready.done().err()).map(|error| error.to_string());
    Ok(end(&record, failed.as_deref(), &stop))
}

/// Says on stderr what ended the run, or `failed` after it, since stdout may go to a program; a failure counts more than the
/// signal that ended the run.
fn end(record: &Record, failed: Option<&str>, stop: &Stop) -> Outcome {
    if let Some(error) = record.body.failure().or(failed) {
        say!("error: {error}");
        say!("hint: the measurements until then are kept; the server's log may say more");
        return Outcome::WorkloadFailed;
    }
    stop.requested().map_or(Outcome::Done, Outcome::Interrupted)
}
