//! The guardian: a child process that waits for the end of its pipe and then leads back what is in the journal. A
//! destructor does not run after SIGKILL; the end of a pipe arrives in any case.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};

use super::journal::Journal;
use super::restore;
use crate::host::Host;

/// The hidden first argument by which the binary knows that it is to be a guardian.
pub const ARGUMENT: &str = "__guardian";

/// A running guardian, seen from the process it guards.
#[derive(Debug)]
pub(super) struct Guardian {
    child: Child,
    pipe: Option<ChildStdin>,
}

impl Guardian {
    /// Starts one for an entry of the journal. When this returns, it will act however this process ends.
    pub fn start(entry: &Path) -> io::Result<Self> {
        // This very program, even if its file has been replaced since.
        let mut command = Command::new("/proc/self/exe");
        command.arg0("weir").arg(ARGUMENT).arg(entry).stdin(Stdio::piped()).stdout(Stdio::null());
        // Not in the folder it was started in, which somebody may want to unmount.
        command.current_dir("/");
        // SAFETY: between fork and exec only setsid is called, which is async-signal-safe.
        unsafe { command.pre_exec(own_session) };
        let mut child = command.spawn()?;
        let pipe = child.stdin.take();
        Ok(Guardian { child, pipe })
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        drop(self.pipe.take());
        // It ends by itself now; waiting keeps no zombie behind.
        let _ = self.child.wait();
    }
}

/// Away from the terminal: Ctrl-C and a closed terminal end the guarded process, not its guardian.
fn own_session() -> io::Result<()> {
    // SAFETY: setsid takes no arguments and touches no memory.
    if unsafe { libc::setsid() } < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The guardian's whole life: wait for the end of standard input, then restore the entry named by the only
/// argument, if it is still there.
pub fn guardian_main(arguments: &[String]) -> ExitCode {
    let [entry] = arguments else {
        eprintln!("error: {ARGUMENT} is weir's own and takes a file of its journal");
        return ExitCode::from(2);
    };
    ignore_signals();
    wait_for_end_of_input();
    let entry = PathBuf::from(entry);
    let folder = entry.parent().unwrap_or(Path::new("/")).to_path_buf();
    match restore::from_file(&Host::live().tree, &Journal::at(&folder), &entry) {
        Ok(sentences) => {
            sentences.iter().for_each(|sentence| say(&format!("weir: after the end of the run: {sentence}")));
            ExitCode::SUCCESS
        }
        Err(error) => {
            say(&format!("weir: a setting could not be led back: {error}"));
            ExitCode::from(3)
        }
    }
}

/// Unlike eprintln, this outlives a standard error that is gone together with the guarded process.
pub(super) fn say(sentence: &str) {
    let _ = io::Write::write_all(&mut io::stderr(), format!("{sentence}\n").as_bytes());
}

/// Whoever ends a whole group or session of processes must not end the guardian before it has done its work.
fn ignore_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE] {
        // SAFETY: SIG_IGN is a valid disposition, and no handler of ours is replaced in this process.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

fn wait_for_end_of_input() {
    let mut byte = [0];
    loop {
        match io::stdin().read(&mut byte) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // A pipe that cannot be read is as good as closed.
            Err(_) => return,
        }
    }
}
