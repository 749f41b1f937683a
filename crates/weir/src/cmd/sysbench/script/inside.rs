//! A script inside `weir db run`: weir's servers, options and report, the script's events.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use weir_db::Server;
use weir_db::runner::with_timeout;
use weir_db::script::{Events, Exported, ScriptError, Servers, Shared, State};
use weir_oltp::{Dialect, OltpSpec};
use weir_sysbench::log::{Kept, Priority};
use weir_sysbench::{Database, Log, Quit, Request, ScriptRequest, parse};

use super::shared;
use crate::failure::Usage;

/// A script that is ready to run.
pub struct Ready {
    /// What the runner runs.
    pub events: Arc<Events>,
    /// The state of the main thread.
    state: State,
}

impl Ready {
    /// Calls the script's `done`.
    ///
    /// # Errors
    /// Those of the script.
    pub fn done(&self) -> Result<(), ScriptError> {
        self.state.done()
    }
}

fn refused(error: &ScriptError) -> anyhow::Error {
    let hint = "docs/reference/sysbench.md lists what scripts find".to_string();
    Usage { what: error.to_string(), hint: Some(hint) }.into()
}

/// Reads a script and its options, and calls its `init`.
///
/// # Errors
/// What the script or its options have wrong; nothing has been sent to a server by weir then.
pub fn for_run(path: &str, own: &[String], spec: &OltpSpec, servers: &[Server]) -> anyhow::Result<Ready> {
    let mut kept = Kept::default();
    let postgres = servers.first().is_some_and(|server| server.dialect == Dialect::Postgres);
    let driver = if postgres { "pgsql" } else { "mysql" };
    let read = read(path, own, spec, driver, &mut Log::new(&mut kept));
    // sysbench's first line and its prefixes have no place here.
    let what = format!("{}{}", kept.out, kept.err);
    let what = what.lines().rfind(|line| !line.is_empty()).unwrap_or("the options cannot be read");
    let said =
        |_: Quit| Usage { what: format!("{path}: {}", what.trim_start_matches("FATAL: ")), hint: None };
    let (mut request, database) = read.map_err(said)?;
    let connect = Servers {
        default_driver: database.driver.clone(),
        complaint: None,
        servers: with_timeout(spec, servers),
        dry: false,
        made: AtomicUsize::new(0),
    };
    let say = Box::new(|priority: Priority, text: &str| {
        if priority <= Priority::Warning {
            say!("script: {text}");
        }
    });
    let shared = shared(&request, &database, Box::new(connect), spec.seed, say);
    let shared = Arc::new(Shared { reconnects: spec.reconnect, ..shared });
    let state = State::load(&shared, 0).map_err(|error| refused(&error))?;
    let declared = state.options().map_err(|error| refused(&error))?;
    let mut kept = Kept::default();
    let mut log = Log::new(&mut kept);
    let values = request
        .read_pending(declared.as_deref(), &mut log)
        .and_then(|()| request.exported(declared.as_deref(), &mut log));
    let Ok(values) = values else {
        let what = format!("{path}: {}{}", kept.out, kept.err).trim_end().to_string();
        let hint = format!("`weir sysbench {path} help` lists the script's options");
        return Err(Usage { what, hint: Some(hint) }.into());
    };
    // It is set here and nowhere else.
    let _ = shared.options.set(Exported { values, as_globals: declared.is_none() });
    state.export().and_then(|()| state.call("init", None)).map_err(|error| refused(&error))?;
    if !state.defines("event") {
        return Err(Usage { what: format!("{path} has no function event()"), hint: None }.into());
    }
    Ok(Ready { events: Arc::new(Events::new(shared)), state })
}

/// The options of weir as the script is to see them, and its own.
fn read(
    path: &str,
    own: &[String],
    spec: &OltpSpec,
    driver: &str,
    log: &mut Log<'_>,
) -> Result<(ScriptRequest, Database), Quit> {
    let mut words = vec![
        path.to_string(),
        format!("--threads={}", spec.threads),
        format!("--time={}", spec.duration.0 / 1_000_000_000),
        format!("--events={}", spec.transactions),
        format!("--db-driver={driver}"),
        format!("--db-ps-mode={}", if spec.prepared { "auto" } else { "disable" }),
    ];
    words.extend(own.iter().cloned());
    words.push("run".to_string());
    match parse(&words, &|_| Err("not read here".to_string()), log)? {
        Request::Script(request) => {
            let database = Database::from_values(&request.values, log)?;
            Ok((*request, database))
        }
        _ => Err(log.usage("this is not a script")),
    }
}
