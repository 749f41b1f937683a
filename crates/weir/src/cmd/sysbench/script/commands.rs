//! The commands of a script besides `run`.

use std::sync::Arc;

use weir_db::script::{ScriptError, Shared, State};
use weir_sysbench::log::Priority;
use weir_sysbench::{Log, Quit, help as help_texts};

use super::{Script, fatal};
use crate::failure::Outcome;

/// A command that the script declares; in all threads at once where it says that it may be.
pub fn own(script: &Script, name: &str, log: &mut Log<'_>) -> Result<Outcome, Quit> {
    if script.general.threads > 1 && script.state.command_is_parallel(name) {
        log.notice("Initializing worker threads...\n");
        return Ok(in_threads(&script.shared, script.general.threads, name));
    }
    let done = script.state.export().and_then(|()| script.state.run_command(name));
    script.state.finish();
    match done {
        Ok(true) => Ok(Outcome::Done),
        Ok(false) => Ok(Outcome::Code(1)),
        Err(error) => Err(fatal(&error, log)),
    }
}

/// sysbench forgets what became of the threads and ends with 0; here a failure of one is a failure of the command.
fn in_threads(shared: &Arc<Shared>, count: u32, name: &str) -> Outcome {
    let good = std::thread::scope(|scope| {
        let run = |thread| {
            in_thread(shared, name, thread).unwrap_or_else(|error| {
                (shared.say)(Priority::Fatal, &error.to_string());
                false
            })
        };
        let threads: Vec<_> = (0..count).map(|thread| scope.spawn(move || run(thread))).collect();
        // Every one is waited for, whatever became of the others.
        threads.into_iter().map(|thread| thread.join().unwrap_or(false)).filter(|good| !good).count() == 0
    });
    if good { Outcome::Done } else { Outcome::Code(1) }
}

fn in_thread(shared: &Arc<Shared>, name: &str, thread: u32) -> Result<bool, ScriptError> {
    let state = State::load(shared, thread)?;
    state.export()?;
    let done = state.run_command(name);
    state.finish();
    done
}

/// `help`: the script's own, or its options.
pub fn help(script: &Script, log: &mut Log<'_>) -> Result<Outcome, Quit> {
    if script.state.defines("help") {
        return built_in(script, "help", log);
    }
    let name = script.shared.source.short_name();
    let Some(options) = &script.declared else {
        return Err(log.usage(format!("'{name}' test does not implement the 'help' command.")));
    };
    log.raw(&help_texts::script(name, options));
    Ok(Outcome::Done)
}

/// A command that is a function of the script's.
pub fn built_in(script: &Script, name: &str, log: &mut Log<'_>) -> Result<Outcome, Quit> {
    if !script.state.defines(name) {
        let test = script.shared.source.short_name();
        return Err(log.usage(format!("'{test}' test does not implement the '{name}' command.")));
    }
    let done = script.state.export().and_then(|()| script.state.call(name, None));
    script.state.finish();
    done.map(|()| Outcome::Done).map_err(|error| fatal(&error, log))
}
