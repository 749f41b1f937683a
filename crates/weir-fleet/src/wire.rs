//! One ssh process: bytes to a host and from it, each step with an end in time and in size.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};
use weir_core::stop::Stop;

use crate::inventory::Host;

/// How often a wait looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(500);

/// The longest line that a host answers.
pub const LINE_BYTES: usize = 64 << 10;

/// What is read of a connection that is to end: as much as is pulled of a host at most.
const DRAINED_BYTES: u64 = 1 << 30;

/// What is kept of standard error: its end.
const STDERR_BYTES: usize = 8 << 10;

/// How ssh is called.
#[derive(Debug, Clone)]
pub struct Ssh {
    /// The program.
    pub program: OsString,
    /// The configuration, where it is not the user's.
    pub config: Option<PathBuf>,
    /// How long it may take to reach a host.
    pub connect_timeout: Duration,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gone {
    /// The connection ended; with ssh's exit code, where it had one.
    Closed(Option<i32>),
    /// Not in time.
    Late,
    /// Somebody asked to stop.
    Stopped,
    /// More than anything that weir answers.
    TooLong,
    /// This machine's own failure.
    Failed(String),
}

impl Ssh {
    /// The program and its arguments. Nothing of a host can be an option: names are checked, and come after `--`.
    fn command(&self, host: &Host, remote: &str) -> Command {
        let mut command = Command::new(&self.program);
        if let Some(config) = &self.config {
            command.arg("-F").arg(config);
        }
        let timeout = format!("ConnectTimeout={}", self.connect_timeout.as_secs().max(1));
        // A key that is unknown or has changed ends the connection; nobody is asked anything; nothing of this machine is lent out.
        // A master connection that the user has is used, and none is left behind.
        for option in [
            "BatchMode=yes",
            "StrictHostKeyChecking=yes",
            "UpdateHostKeys=no",
            "ControlMaster=no",
            "ClearAllForwardings=yes",
            "ForwardAgent=no",
            "ForwardX11=no",
            "GSSAPIDelegateCredentials=no",
            "Tunnel=no",
            "PermitLocalCommand=no",
            "ServerAliveInterval=5",
            "ServerAliveCountMax=3",
            &timeout,
        ] {
            command.arg("-o").arg(option);
        }
        if let Some(port) = host.port {
            command.arg("-p").arg(port.to_string());
        }
        if let Some(user) = &host.user {
            command.arg("-l").arg(user);
        }
        command.args(["-T", "--", &host.address, remote]);
        command
    }

    /// Starts it.
    ///
    /// # Errors
    /// Where the program cannot be started.
    pub fn open(&self, host: &Host, remote: &str, stop: &Stop) -> Result<Channel, Gone> {
        let mut command = self.command(host, remote);
        // A group of its own: Ctrl-C at the terminal is this program's to pass on, so that hosts can end in order.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let program = self.program.to_string_lossy().into_owned();
        let mut child =
            command.spawn().map_err(|error| Gone::Failed(format!("cannot run {program}: {error}")))?;
        let parts = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = parts else {
            return Err(Gone::Failed("ssh has no pipes".to_string()));
        };
        for result in
            [ioctl_fionbio(&stdin, true), ioctl_fionbio(&stdout, true), ioctl_fionbio(&stderr, true)]
        {
            result.map_err(|error| Gone::Failed(error.to_string()))?;
        }
        Ok(Channel {
            child,
            stdin: Some(stdin),
            stdout: Some(stdout),
            stderr: Some(stderr),
            read: Vec::new(),
            said: Vec::new(),
            stop: stop.clone(),
        })
    }
}

/// The connection to a host.
pub struct Channel {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    /// What has come and was not taken yet.
    read: Vec<u8>,
    /// The end of what ssh and the host said on standard error.
    said: Vec<u8>,
    /// Ends every wait.
    pub stop: Stop,
}

impl Channel {
    /// Sends bytes.
    ///
    /// # Errors
    /// When they are not taken in time, or by nobody.
    pub fn send(&mut self, mut bytes: &[u8], until: Instant) -> Result<(), Gone> {
        while !bytes.is_empty() {
            let Some(stdin) = &mut self.stdin else { return Err(self.closed()) };
            match stdin.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(until, true)?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Err(self.closed()),
                Err(error) => return Err(Gone::Failed(error.to_string())),
            }
        }
        Ok(())
    }

    /// The next line, without its end, of at most so many bytes.
    ///
    /// # Errors
    /// When there is none in time.
    pub fn line(&mut self, most: usize, until: Instant) -> Result<String, Gone> {
        let mut searched = 0;
        loop {
            if let Some(end) = self.read[searched..].iter().position(|byte| *byte == b'\n') {
                let rest = self.read.split_off(searched + end + 1);
                let line = std::mem::replace(&mut self.read, rest);
                return Ok(String::from_utf8_lossy(&line[..searched + end]).into_owned());
            }
            searched = self.read.len();
            if searched > most {
                return Err(Gone::TooLong);
            }
            self.more(until)?;
        }
    }

    /// So many bytes, to a file or into memory.
    ///
    /// # Errors
    /// When they do not come in time, or cannot be written.
    pub fn bytes(&mut self, count: u64, to: &mut dyn Write, until: Instant) -> Result<(), Gone> {
        let mut left = count;
        while left > 0 {
            if self.read.is_empty() {
                self.more(until)?;
            }
            let now = usize::try_from(left).unwrap_or(usize::MAX).min(self.read.len());
            to.write_all(&self.read[..now]).map_err(|error| Gone::Failed(error.to_string()))?;
            self.read.drain(..now);
            left -= now as u64;
        }
        Ok(())
    }

    /// Says that nothing more is sent: the host's script ends by that.
    pub fn hang_up(&mut self) {
        self.stdin = None;
    }

    /// Reads to the end, whatever comes; not of a host that answers without end.
    pub fn drain(&mut self, until: Instant) {
        self.stop = Stop::default();
        self.read.clear();
        let mut drained = 0;
        while drained < DRAINED_BYTES && self.stdout.is_some() && self.more(until).is_ok() {
            drained += self.read.len() as u64;
            self.read.clear();
        }
        self.stdout = None;
        // What is left of standard error comes with the end of the process.
        while self.stderr.is_some() && self.wait(until, false).is_ok() {}
    }

    /// Ends the ssh process, if it has not ended by then. Returns its exit code.
    pub fn end(&mut self, until: Instant) -> Option<i32> {
        self.hang_up();
        self.drain(until);
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return status.code(),
                Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(10)),
                _ => break,
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        None
    }

    /// What was said on standard error last.
    pub fn said(&self) -> String {
        String::from_utf8_lossy(&self.said).into_owned()
    }

    /// The connection ended: waits a moment for what the host said last, which explains it, and for ssh's exit code.
    fn closed(&mut self) -> Gone {
        let until = Instant::now() + Duration::from_secs(2);
        while self.stderr.is_some() && self.wait(until, false).is_ok() {}
        let mut code = None;
        while code.is_none() && Instant::now() < until {
            code = self.child.try_wait().ok().flatten();
            if code.is_none() {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        Gone::Closed(code.and_then(|status| status.code()))
    }

    /// Waits until more has come.
    fn more(&mut self, until: Instant) -> Result<(), Gone> {
        let before = self.read.len();
        while self.read.len() == before {
            if self.stdout.is_none() {
                return Err(self.closed());
            }
            self.wait(until, false)?;
        }
        Ok(())
    }

    /// Waits until something can be read, or written, and takes what can be read.
    fn wait(&mut self, until: Instant, to_write: bool) -> Result<(), Gone> {
        if self.stop.requested().is_some() {
            return Err(Gone::Stopped);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Gone::Late);
        }
        // Whoever waits has taken what came before, or looks for the end of a line in it. While bytes are sent nobody takes anything, and
        // no host has that much to say.
        if self.read.len() > LINE_BYTES {
            return Err(Gone::TooLong);
        }
        let (mut fds, mut names) = (Vec::with_capacity(3), Vec::with_capacity(3));
        if let Some(stdout) = &self.stdout {
            fds.push(PollFd::new(stdout, PollFlags::IN));
            names.push(0);
        }
        if let Some(stderr) = &self.stderr {
            fds.push(PollFd::new(stderr, PollFlags::IN));
            names.push(1);
        }
        if let Some(stdin) = self.stdin.as_ref().filter(|_| to_write) {
            fds.push(PollFd::new(stdin, PollFlags::OUT));
            names.push(2);
        }
        let time = Timespec::try_from(left.min(LOOK)).map_err(|error| Gone::Failed(error.to_string()))?;
        match poll(&mut fds, Some(&time)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(Gone::Failed(error.to_string())),
        }
        let ready: Vec<i32> = fds
            .iter()
            .zip(&names)
            .filter(|(fd, _)| !fd.revents().is_empty())
            .map(|(_, name)| *name)
            .collect();
        if ready.contains(&0) && !taken(&mut self.stdout, &mut self.read, usize::MAX) {
            self.stdout = None;
        }
        if ready.contains(&1) && !taken(&mut self.stderr, &mut self.said, STDERR_BYTES) {
            self.stderr = None;
        }
        Ok(())
    }
}

/// Takes what can be read now, and keeps the last so many bytes. Whether more may come.
fn taken(from: &mut Option<impl Read>, into: &mut Vec<u8>, keep: usize) -> bool {
    let Some(file) = from else { return false };
    let mut buffer = [0; 64 << 10];
    match file.read(&mut buffer) {
        Ok(0) => false,
        Ok(count) => {
            into.extend_from_slice(&buffer[..count]);
            if into.len() > keep {
                into.drain(..into.len() - keep);
            }
            true
        }
        Err(error) => matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_this_machine_is_lent_out() {
        let ssh = Ssh { program: "ssh".into(), config: None, connect_timeout: Duration::from_secs(5) };
        let host = Host { name: "db1".to_string(), address: "db1".to_string(), port: None, user: None };
        let command = ssh.command(&host, "true");
        let arguments: Vec<&std::ffi::OsStr> = command.get_args().collect();
        for option in [
            "ForwardAgent=no",
            "ForwardX11=no",
            "ClearAllForwardings=yes",
            "GSSAPIDelegateCredentials=no",
            "Tunnel=no",
        ] {
            assert!(arguments.windows(2).any(|pair| pair[0] == "-o" && pair[1] == option), "{option}");
        }
    }
}
