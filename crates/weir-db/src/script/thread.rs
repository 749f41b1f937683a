//! One thread of a run: a state, and its events one after another.

use std::sync::Arc;

use super::Shared;
use super::session::Fault;
use super::state::{Phase, ScriptError, State};

/// What an attempt at an event ended with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attempt {
    /// The event is done; there may be another.
    Done,
    /// It is done, and it was the last of the script's own loop.
    Last,
    /// An error that may be ignored: the event is to run again.
    Again(Fault),
    /// The script wants no more events, and this attempt is none.
    Over,
}

/// See the module. Belongs to the thread that made it.
pub struct Thread {
    state: State,
    number: u32,
}

impl Thread {
    /// Reads the script and calls its `thread_init`.
    pub fn start(shared: &Arc<Shared>, number: u32) -> Result<Thread, ScriptError> {
        let state = State::load(shared, number)?;
        state.export()?;
        state.call("thread_init", Some(number))?;
        Ok(Thread { state, number })
    }

    /// What it has open and has sent.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Tries one event.
    pub fn attempt(&mut self) -> Result<Attempt, ScriptError> {
        let failed = |words: String| ScriptError { phase: Phase::Function("thread_run".to_string()), words };
        match self.state.attempt() {
            Ok((0, ..)) => Ok(Attempt::Done),
            Ok((1, ..)) => Ok(Attempt::Last),
            Ok((2, words, ..)) => Err(failed(words.unwrap_or_default())),
            Ok((4, message, number, state)) => Ok(Attempt::Again(Fault {
                number: number.unwrap_or(0),
                state: state.unwrap_or_default(),
                message: message.unwrap_or_default(),
            })),
            Ok(_) => Ok(Attempt::Over),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    /// Lets a loop of the script's own end, and calls `thread_done`.
    pub fn finish(&mut self) -> Result<(), ScriptError> {
        self.state.end_loop();
        let ended = self.state.call("thread_done", Some(self.number));
        self.state.finish();
        ended
    }
}
