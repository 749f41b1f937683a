//! The command that runs while a trace does.

use std::io::{self, stderr};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use weir_cli::signals::{Unheard, hand_on};
use weir_io::runner::Stop;

/// After it was told, a command gets this long to end by itself.
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
        let (mut unheard, mut told) = (Unheard::default(), None::<Instant>);
        loop {
            if let Some(status) = self.ended().context("cannot wait for the command")? {
                return Ok(status);
            }
            if let Some(signal) = unheard.signal(stop) {
                let told = *told.get_or_insert_with(|| {
                    hand_on(&self.0, signal.into());
                    Instant::now()
                });
                if told.elapsed() > GRACE {
                    self.0.kill().context("cannot end the command")?;
                }
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
        // Ctrl-C, which a terminal would have told it of.
        stop.request(2);
        for (script, code) in [("sleep 0.3; exit 7", 7), ("kill -9 $$", 137), ("true", 0)] {
            let words = ["sh", "-c", script].map(str::to_string);
            let command = Beside::start(&words, Prints::ToStderr).unwrap().unwrap();
            assert_eq!(code_of(command.wait(&stop).unwrap()), code, "{script}");
        }
        assert!(Beside::start(&[], Prints::Beside).unwrap().is_none());
        let error = Beside::start(&["/no/such/program".to_string()], Prints::Beside).err().unwrap();
        assert_eq!(error.to_string(), "cannot run /no/such/program");
    }

    #[test]
    fn a_command_is_told_of_the_signal_that_ends_its_trace() {
        let folder = tempfile::tempdir().unwrap();
        // One that nohup has ignored is no signal to a shell.
        for (signal, name) in [(15, "TERM"), (10, "USR1")] {
            let ready = folder.path().join(name);
            let script =
                format!("trap 'exit 7' {name}; : > {}; while :; do sleep 0.05; done", ready.display());
            let command = Beside::start(&["sh", "-c", &script].map(str::to_string), Prints::ToStderr);
            let command = command.unwrap().unwrap();
            while !ready.exists() {
                std::thread::sleep(Duration::from_millis(5));
            }
            let stop = Stop::default();
            stop.request(signal);
            assert_eq!(code_of(command.wait(&stop).unwrap()), 7, "SIG{name}");
        }
    }
}
