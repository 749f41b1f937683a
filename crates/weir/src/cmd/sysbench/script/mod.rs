//! sysbench's database scripts and users' own.

mod commands;
mod inside;
mod reports;
mod run;
mod servers;

pub use inside::{Ready, for_run};

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::time::{SystemTime, UNIX_EPOCH};

use weir_db::script::{Connect, Exported, Say, ScriptError, Shared, Source, State};
use weir_io::runner::Stop;
use weir_sysbench::log::Priority;
use weir_sysbench::random::Unique;
use weir_sysbench::{Database, General, Log, Quit, ScriptOption, ScriptRequest, args};

use crate::failure::Outcome;

/// A script that was read, and everything its command needs.
struct Script {
    general: General,
    database: Database,
    shared: Arc<Shared>,
    /// The state of the main thread.
    state: State,
    declared: Option<Vec<ScriptOption>>,
}

/// Reads the script and does what the command asks for. Of the commands `run` alone heeds `stop`: the others have nothing
/// to keep, and signals end them as they do by default.
pub fn act(mut request: ScriptRequest, log: &mut Log<'_>, stop: &Stop) -> Result<Outcome, Quit> {
    let database = Database::from_values(&request.values, log)?;
    let shared = Arc::new(share(&request, &database));
    let state = State::load(&shared, 0).map_err(|error| fatal(&error, log))?;
    let declared = state.options().map_err(|error| fatal(&error, log))?;
    let Some(command) = request.command.clone() else { return Ok(Outcome::Done) };
    request.read_pending(declared.as_deref(), log)?;
    args::warn_of_unknown(&request.values, log);
    let values = request.exported(declared.as_deref(), log)?;
    let exported = Exported { values, as_globals: declared.is_none() };
    // It is set here and nowhere else.
    let _ = shared.options.set(exported);
    let script = Script { general: request.general, database, shared, state, declared };
    match command.as_str() {
        own if script.state.declares_command(own) => commands::own(&script, own, log),
        "help" => commands::help(&script, log),
        "prepare" | "cleanup" => commands::built_in(&script, &command, log),
        "run" => run::run(&script, log, stop),
        other => Err(log.usage(format!("Unknown command: {other}"))),
    }
}

fn share(request: &ScriptRequest, database: &Database) -> Shared {
    let general = &request.general;
    let seed = match general.seed {
        0 => SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64),
        seed => seed as u64,
    };
    let connect = Box::new(servers::servers(database, &request.values));
    shared(request, database, connect, seed, say(request))
}

fn shared(
    request: &ScriptRequest,
    database: &Database,
    connect: Box<dyn Connect>,
    seed: u64,
    say: Box<Say>,
) -> Shared {
    let general = &request.general;
    Shared {
        source: Source::find(&request.test),
        argv: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        command: request.command.clone(),
        random: general.random,
        seed,
        unique: Unique::new(seed),
        unique_taken: AtomicU32::new(0),
        connect,
        ignored: database.ignored.clone(),
        reconnects: false,
        prepared: database.ps_mode != "disable",
        say,
        stop: AtomicBool::new(false),
        over: AtomicBool::new(false),
        options: OnceLock::new(),
    }
}

/// Messages of threads: at once, to stdout like the log's, and as far as `--verbosity` lets them.
fn say(request: &ScriptRequest) -> Box<Say> {
    let verbosity = match request.general.debug {
        true => 5,
        false => request.values.text("verbosity").and_then(|text| text.parse().ok()).unwrap_or(3),
    };
    Box::new(move |priority: Priority, text: &str| {
        if priority == Priority::Fatal || priority as i32 <= verbosity {
            super::terminal::print(&format!("{}{text}\n", priority.prefix()));
        }
    })
}

fn fatal(error: &ScriptError, log: &mut Log<'_>) -> Quit {
    log.fatal(error.to_string())
}
