//! Users' scripts for sysbench, in Lua: one state a thread, the API of sysbench 1.0, statements over weir's own
//! connections. Scripts are trusted code: they may do what the user may.
//!
//! [`Shared`] is what all states of a run have in common. A [`State`] is one Lua with the script read into it; a
//! [`Thread`] is a state that runs events. What a script sends is answered by a [`ScriptSession`], which notes every statement
//! for whoever measures.

mod connect;
mod convert;
mod declared;
mod driver;
mod modules;
mod scan;
mod session;
mod state;
mod statement;
mod thread;

#[cfg(test)]
mod tests;

pub use connect::{Connect, Dry, Servers, Sql};
pub use driver::Events;
pub use scan::unknown_names;
pub use session::{Answered, Fault, ScriptSession};
pub use state::{Phase, ScriptError, State};
pub use thread::{Attempt, Thread};

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32};

use weir_sysbench::database::Ignored;
use weir_sysbench::log::Priority;
use weir_sysbench::random::{Random, Unique};
use weir_sysbench::script::OptionValue;

/// Takes a message of sysbench's kind, from any thread.
pub type Say = dyn Fn(Priority, &str) + Send + Sync;

/// A script, as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// As typed: a path, or the name of a module.
    pub name: String,
    /// Its text, where it is a file.
    pub text: Option<String>,
}

impl Source {
    /// The file of that name; else it is taken for a module, which Lua looks for. A word is the name of a test, or a mistyped one, before
    /// it is what somebody put into the current folder: a path, or a name with Lua's ending, is a file's.
    pub fn find(name: &str) -> Source {
        let text = match name.contains('/') || name.ends_with(".lua") {
            true => std::fs::read_to_string(name).ok(),
            false => modules::believed_text(Path::new(name)),
        };
        Source { name: name.to_string(), text }
    }

    /// The last part of its path, as sysbench calls it.
    pub fn short_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(&self.name)
    }
}

/// The options of a run as its scripts see them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Exported {
    /// By name with underscores.
    pub values: Vec<(String, OptionValue)>,
    /// Also as globals, for scripts that declare none.
    pub as_globals: bool,
}

/// What all states of a run have in common.
pub struct Shared {
    /// The script.
    pub source: Source,
    /// The command line, program first.
    pub argv: Vec<String>,
    /// `prepare`, `run`, …
    pub command: Option<String>,
    /// How keys are drawn.
    pub random: Random,
    /// The seed of all random numbers.
    pub seed: u64,
    /// Numbers without repetition, over all threads.
    pub unique: Unique,
    /// How many of them were taken.
    pub unique_taken: AtomicU32,
    /// Where connections come from.
    pub connect: Box<dyn Connect>,
    /// MySQL's errors after which an event runs again.
    pub ignored: Ignored,
    /// Every connection that is lost is made again, also where `ignored` has no number for it.
    pub reconnects: bool,
    /// Prepared statements are prepared in the server; else their values are written into the text.
    pub prepared: bool,
    /// Who is told.
    pub say: Box<Say>,
    /// Set when statements that still run are cancelled: nothing is tried again, and an error is no failure.
    pub stop: AtomicBool,
    /// Set when the threads have ended: what comes then tries a lost connection once.
    pub over: AtomicBool,
    /// Known once the script has said which it takes.
    pub options: OnceLock<Exported>,
}
