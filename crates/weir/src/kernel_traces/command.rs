//! The command that runs while a trace does.

use std::io::{self, stderr};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use weir_io::runner::Stop;

/// After a signal to all, a command gets this long to end by itself.
const GRACE: Duration = Duration::from_secs(5);

/// A command that was started.
pub struct Beside(Child);

/// Where a command's standard output goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prints {
    /// Where weir's goes.
    Beside,
    /// To standard error, as standard output is for the report alone.
    ToStderr,
}

impl Beside {
    /// Starts a command; `None` where there are no words.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(words: &[String], prints: Prints) -> anyhow::Result<Option<Beside>> {
        let Some((program, arguments)) = words.split_first() else { return Ok(None) };
        let mut command = Command::new(program);
        command.args(arguments);
        if prints == Prints::ToStderr {
            command.stdout(Stdio::from(stderr()));
        }
        let child = command.spawn().with_context(|| format!("cannot run {program}"))?;
        Ok(Some(Beside(child)))
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// Those of waitpid(2).
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.0.try_wait()
    }

    /// Waits for a command that outlives its trace; after a signal only for a while.
    ///
    /// # Errors
    /// When it cannot be waited for or killed.
    pub fn wait(mut self, stop: &Stop) -> anyhow::Result<ExitStatus> {
        let mut patience = None;
        loop {
            if let Some(status) = self.ended().context("cannot wait for the command")? {
                return Ok(status);
            }
            if stop.requested().is_some()
                && *patience.get_or_insert_with(|| Instant::now() + GRACE) < Instant::now()
            {
                self.0.kill().context("cannot end the command")?;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The exit code that a shell would give.
pub fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.unwrap_or(1) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_time_to_end_after_a_signal() {
        let stop = Stop::default();
        stop.request(15);
        for (script, code) in [("sleep 0.3; exit 7", 7), ("kill -9 $$", 137), ("true", 0)] {
            let words = ["sh", "-c", script].map(str::to_string);
            let command = Beside::start(&words, Prints::ToStderr).unwrap().unwrap();
            assert_eq!(code_of(command.wait(&stop).unwrap()), code, "{script}");
        }
        assert!(Beside::start(&[], Prints::Beside).unwrap().is_none());
        let error = Beside::start(&["/no/such/program".to_string()], Prints::Beside).err().unwrap();
        assert_eq!(error.to_string(), "cannot run /no/such/program");
    }
}
