//! One Lua with the script read into it.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use mlua::{Function, Lua, Table, Value as LuaValue};
use weir_sysbench::script::ScriptOption;

use super::declared::declared_options;
use super::session::ScriptSession;
use super::{Shared, convert, scan};

/// What a script was doing when it failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// It was read: the message stands alone.
    Load,
    /// A function of the script, or of sysbench's, by name.
    Function(String),
}

/// A script that failed, in Lua's words: file and line first, where Lua knows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptError {
    /// Where.
    pub phase: Phase,
    /// What.
    pub words: String,
}

impl std::fmt::Display for ScriptError {
    /// As sysbench prints it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.phase {
            Phase::Load => f.write_str(&self.words),
            Phase::Function(name) => write!(f, "`{name}' function failed: {}", self.words),
        }
    }
}

impl std::error::Error for ScriptError {}

impl ScriptError {
    fn in_function(name: &str, words: impl ToString) -> ScriptError {
        ScriptError { phase: Phase::Function(name.to_string()), words: words.to_string() }
    }

    fn loading(words: impl ToString) -> ScriptError {
        ScriptError { phase: Phase::Load, words: words.to_string() }
    }
}

/// See the module. Belongs to the thread that made it.
pub struct State {
    /// Before `lua`, so that connections are closed while it is still there.
    calls: Table,
    attempt: Function,
    session: Rc<RefCell<ScriptSession>>,
    lua: Lua,
}

/// What `pcall` leaves: whether it went well, and the answer or the problem.
type Protected = (bool, LuaValue);

/// How an attempt at an event ended; then words, number and state of an error.
type Ended = (u8, Option<String>, Option<u16>, Option<String>);

impl State {
    /// Makes a state and reads the script into it.
    pub fn load(shared: &Arc<Shared>, thread: u32) -> Result<State, ScriptError> {
        let source = &shared.source;
        if let Some(text) = &source.text {
            refuse_unknown(&source.name, text)?;
        }
        let state = State::new(shared, thread).map_err(ScriptError::loading)?;
        let (good, problem): Protected = state
            .call_into("load", (source.text.as_deref(), source.name.as_str()))
            .map_err(ScriptError::loading)?;
        if good {
            return Ok(state);
        }
        let words = words(&problem);
        // Lua's words for a module that is nowhere.
        let is_missing =
            source.text.is_none() && words.starts_with(&format!("module '{}' not found", source.name));
        Err(ScriptError::loading(match is_missing {
            true => format!("Cannot find benchmark '{}': no such built-in test, file or module", source.name),
            false => words,
        }))
    }

    fn new(shared: &Arc<Shared>, thread: u32) -> mlua::Result<State> {
        // SAFETY: scripts are trusted code, as the documentation says: like any program that a user runs they may call C
        // through LuaJIT's ffi, whatever that does.
        let lua = unsafe { Lua::unsafe_new() };
        let session = Rc::new(RefCell::new(ScriptSession::new(shared.clone(), thread)));
        let given = lua.create_table()?;
        given.set("tid", thread)?;
        let argv = lua.create_table()?;
        for (index, word) in shared.argv.iter().enumerate() {
            argv.set(index, word.as_str())?;
        }
        given.set("argv", argv)?;
        given.set("command", shared.command.as_deref())?;
        given.set("script_path", shared.source.name.as_str())?;
        let raw = convert::functions(&lua, &session)?;
        let calls: Table = lua.load(include_str!("lua/api.lua")).set_name("=weir").call((raw, given))?;
        let attempt = calls.get("attempt")?;
        Ok(State { calls, attempt, session, lua })
    }

    fn call_into<R: mlua::FromLuaMulti>(&self, name: &str, args: impl mlua::IntoLuaMulti) -> mlua::Result<R> {
        self.calls.get::<Function>(name)?.call(args)
    }

    /// What the state has open and has sent.
    pub fn session(&self) -> &Rc<RefCell<ScriptSession>> {
        &self.session
    }

    /// The options that the script declares, by name; `None` where it declares none.
    pub fn options(&self) -> Result<Option<Vec<ScriptOption>>, ScriptError> {
        declared_options(&self.lua)
            .map_err(|e| ScriptError::in_function("sysbench.cmdline.read_cmdline_options", plain(&e)))
    }

    /// Shows the script the values of options.
    pub fn export(&self) -> Result<(), ScriptError> {
        let shared = self.session.borrow().shared.clone();
        let Some(exported) = shared.options.get() else { return Ok(()) };
        let put = || -> mlua::Result<()> {
            let table = self.lua.create_table()?;
            for (name, value) in &exported.values {
                table.set(name.as_str(), convert::option(&self.lua, value)?)?;
            }
            self.call_into("export", (table, exported.as_globals))
        };
        put().map_err(ScriptError::loading)
    }

    /// Whether the script has this function.
    pub fn defines(&self, function: &str) -> bool {
        self.call_into("defined", function).unwrap_or(false)
    }

    /// Calls a function of the script; one that it does not have is no error.
    pub fn call(&self, function: &str, argument: Option<u32>) -> Result<(), ScriptError> {
        self.protected("call", function, (function, argument)).map(|_| ())
    }

    /// Calls the script's `done`, after all threads have ended.
    ///
    /// # Errors
    /// Those of the script.
    pub fn done(&self) -> Result<(), ScriptError> {
        self.session.borrow().shared.over.store(true, Ordering::Relaxed);
        let done = self.call("done", None);
        self.finish();
        done
    }

    /// Whether the script declares this command itself.
    pub fn declares_command(&self, name: &str) -> bool {
        self.call_into("command_defined", name).unwrap_or(false)
    }

    /// Whether it may run in all threads at once.
    pub fn command_is_parallel(&self, name: &str) -> bool {
        self.call_into("command_parallel", name).unwrap_or(false)
    }

    /// Runs a command that the script declares; false: it said that it failed.
    pub fn run_command(&self, name: &str) -> Result<bool, ScriptError> {
        let answer = self.protected("command", "sysbench.cmdline.call_command", name)?;
        Ok(!matches!(answer, LuaValue::Nil | LuaValue::Boolean(false)))
    }

    /// Whether the script reports by itself, by this hook.
    pub fn has_hook(&self, name: &str) -> bool {
        self.call_into("hook_defined", name).unwrap_or(false)
    }

    /// Calls a hook that reports.
    pub fn report(&self, hook: &str, figures: &[(&str, f64)]) -> Result<(), ScriptError> {
        let stat = self.lua.create_table().map_err(ScriptError::loading)?;
        for (name, figure) in figures {
            stat.set(*name, *figure).map_err(ScriptError::loading)?;
        }
        self.protected("hook", hook, (hook, stat)).map(|_| ())
    }

    /// Ends what the script has under way: its own loop, a list it prints.
    pub fn finish(&self) {
        // A script that fails here has nothing left to spoil.
        let _ = self.call_into::<()>("finish", ());
    }

    pub(super) fn end_loop(&self) {
        let _ = self.call_into::<LuaValue>("end_loop", ());
    }

    pub(super) fn attempt(&self) -> mlua::Result<Ended> {
        self.attempt.call(())
    }

    fn protected(
        &self,
        via: &str,
        function: &str,
        args: impl mlua::IntoLuaMulti,
    ) -> Result<LuaValue, ScriptError> {
        let called: mlua::Result<Protected> = self.call_into(via, args);
        match called {
            Ok((true, answer)) => Ok(answer),
            Ok((false, problem)) => Err(ScriptError::in_function(function, words(&problem))),
            Err(error) => Err(ScriptError::in_function(function, plain(&error))),
        }
    }
}

/// What a script asks for that weir lacks, all of it, before anything is run.
fn refuse_unknown(name: &str, text: &str) -> Result<(), ScriptError> {
    let unknown = scan::unknown_names(text);
    if unknown.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> =
        unknown.iter().map(|(line, unknown)| format!("{name}:{line}: weir has no {unknown}")).collect();
    Err(ScriptError::loading(lines.join("\n")))
}

fn words(problem: &LuaValue) -> String {
    match problem {
        LuaValue::String(text) => text.to_string_lossy(),
        LuaValue::Error(error) => plain(error),
        _ => "(not a string)".to_string(),
    }
}

/// An error without the trace of calls that follows it.
fn plain(error: &mlua::Error) -> String {
    let text = match error {
        mlua::Error::CallbackError { cause, .. } => cause.to_string(),
        mlua::Error::RuntimeError(text) => text.clone(),
        other => other.to_string(),
    };
    text.split("\nstack traceback:").next().unwrap_or_default().to_string()
}
