//! A workload that is somebody else's: a shell command in a process group of its own, with a time limit, of whose
//! output patterns take the figures.

use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use regex_lite::Regex;
use rustix::process::{Pid, Signal, kill_process_group};
use weir_core::units::Nanos;
use weir_experiment::CommandSpec;
use weir_io::runner::{Stop, pause};

/// Of what a command prints, so much of the beginning and of the end is kept.
const HEAD: usize = 64 << 10;
const TAIL: usize = 256 << 10;
/// A command may take so much longer than it was told to.
const GRACE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);
/// After being asked to end, a command has so long before it is killed.
const MANNERS: Duration = Duration::from_secs(2);
/// Lines of its output that a complaint quotes.
const QUOTED_LINES: usize = 8;
/// Stands in the command for the measured time in whole seconds.
pub const SECONDS: &str = "{seconds}";

/// How a command ended.
pub enum Ended {
    /// By itself, with these figures.
    Figures(Vec<(String, f64)>),
    /// It failed, took too long, or printed no such figures.
    Failed(String),
    /// The user asked to end, or the trial was aborted.
    Stopped,
}

/// Patterns that are none, said before anything runs.
pub fn check(spec: &CommandSpec) -> Result<(), String> {
    spec.metrics.iter().try_for_each(|(name, pattern)| compiled(name, pattern).map(drop))
}

fn compiled(name: &str, pattern: &str) -> Result<Regex, String> {
    let regex = Regex::new(pattern).map_err(|error| format!("--metric {name}: {error}"))?;
    if regex.captures_len() < 2 {
        return Err(format!("--metric {name}={pattern}: no group ( ) for the number"));
    }
    Ok(regex)
}

/// Runs a command for about `seconds`; `tick` is called again and again meanwhile.
pub fn run(spec: &CommandSpec, duration: Duration, stop: &Stop, tick: &mut dyn FnMut()) -> Ended {
    let line = spec.command.replace(SECONDS, &duration.as_secs().max(1).to_string());
    let mut child = match spawn(&line) {
        Ok(child) => child,
        Err(error) => return Ended::Failed(format!("`{line}` cannot be started: {error}")),
    };
    let minder = match Minder::of(&child) {
        Ok(minder) => minder,
        Err(error) => {
            signal(&child, Signal::KILL);
            let _ = child.wait();
            return Ended::Failed(format!("no process to end `{line}` if weir is killed: {error}"));
        }
    };
    let output = Output::of(&mut child);
    let limit = duration + GRACE;
    let status = wait(&mut child, limit, stop, tick);
    drop(minder);
    let text = output.text();
    match status {
        Err(error) => Ended::Failed(format!("`{line}`: {error}")),
        Ok(None) if stop.requested().is_some() => Ended::Stopped,
        Ok(None) => {
            let limit = Nanos(limit.as_nanos() as u64);
            Ended::Failed(format!("`{line}` had not ended after {limit} and was killed"))
        }
        Ok(Some(status)) if !status.success() => {
            Ended::Failed(format!("`{line}` ended with {}: {}", code(status), quote(&text)))
        }
        Ok(Some(_)) => figures(spec, &text).map_or_else(Ended::Failed, Ended::Figures),
    }
}

fn spawn(line: &str) -> std::io::Result<Child> {
    Command::new("sh")
        .arg("-c")
        .arg(line)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
}

/// Kills the command's group when this process ends, also by SIGKILL: a shell that waits for the end of its pipe. It is one
/// of that group, and needs no number to reach it; while it is not waited for, nobody else can get the group's number.
struct Minder(Child);

impl Minder {
    fn of(command: &Child) -> std::io::Result<Minder> {
        let minder = Command::new("sh")
            .args(["-c", "trap '' HUP INT QUIT TERM USR1 USR2; read -r _; kill -s KILL 0"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(command.id() as i32)
            .spawn()?;
        Ok(Minder(minder))
    }
}

impl Drop for Minder {
    fn drop(&mut self) {
        // Killed before its pipe ends, so that it kills nobody.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Until the command ends; `None` where it was ended.
fn wait(
    child: &mut Child,
    limit: Duration,
    stop: &Stop,
    tick: &mut dyn FnMut(),
) -> std::io::Result<Option<ExitStatus>> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if stop.requested().is_some() || begun.elapsed() > limit {
            end(child)?;
            return Ok(None);
        }
        tick();
        pause(stop, POLL);
    }
}

/// Asks the whole group to end, and then makes it. Its minder lives meanwhile.
fn end(child: &mut Child) -> std::io::Result<()> {
    signal(child, Signal::TERM);
    let until = Instant::now() + MANNERS;
    while Instant::now() < until && child.try_wait()?.is_none() {
        std::thread::sleep(POLL);
    }
    // Also where the shell itself has ended: others of the group may not have.
    signal(child, Signal::KILL);
    child.wait().map(drop)
}

/// Signals the group of a command, which itself or whose minder was not waited for yet.
fn signal(child: &Child, signal: Signal) {
    let _ = kill_process_group(Pid::from_child(child), signal);
}

fn code(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no exit code".to_string(),
    }
}

/// Every figure that the patterns find; the last match counts, since programs sum up at their end.
fn figures(spec: &CommandSpec, text: &str) -> Result<Vec<(String, f64)>, String> {
    let figure = |(name, pattern): &(String, String)| {
        let regex = compiled(name, pattern)?;
        let found = regex.captures_iter(text).last().and_then(|captures| captures.get(1));
        let found = found.ok_or_else(|| {
            format!(
                "--metric {name}: `{pattern}` fits nothing that `{}` printed: {}",
                spec.command,
                quote(text)
            )
        })?;
        let number = found.as_str().replace(',', "").parse::<f64>().ok().filter(|n| n.is_finite());
        let number = number.ok_or_else(|| {
            format!("--metric {name}: `{pattern}` finds `{}`, which is not a number", found.as_str())
        })?;
        Ok((name.clone(), number))
    };
    spec.metrics.iter().map(figure).collect()
}

/// The first lines of a text.
fn quote(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.is_empty() {
        return "it printed nothing".to_string();
    }
    let more = if lines.len() > QUOTED_LINES { "\n  …" } else { "" };
    format!("it printed\n  {}{more}", lines[..lines.len().min(QUOTED_LINES)].join("\n  "))
}

/// What a command prints, read while it runs so that no full pipe stops it.
struct Output {
    kept: Vec<Arc<Mutex<Kept>>>,
    readers: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Kept {
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl Kept {
    fn add(&mut self, bytes: &[u8]) {
        let for_head = bytes.len().min(HEAD - self.head.len());
        self.head.extend_from_slice(&bytes[..for_head]);
        self.tail.extend_from_slice(&bytes[for_head..]);
        if self.tail.len() > 2 * TAIL {
            self.tail.drain(..self.tail.len() - TAIL);
        }
    }
}

impl Output {
    fn of(child: &mut Child) -> Output {
        let mut output = Output { kept: Vec::new(), readers: Vec::new() };
        let pipes: [Option<Box<dyn Read + Send>>; 2] = [
            child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
            child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
        ];
        for mut pipe in pipes.into_iter().flatten() {
            let kept = Arc::new(Mutex::new(Kept::default()));
            output.kept.push(kept.clone());
            let read = move || {
                let mut buffer = [0; 8192];
                while let Ok(n @ 1..) = pipe.read(&mut buffer) {
                    kept.lock().unwrap_or_else(PoisonError::into_inner).add(&buffer[..n]);
                }
            };
            output.readers.extend(std::thread::Builder::new().name("weir-output".into()).spawn(read));
        }
        output
    }

    /// All of it, standard output first. Something that the command left running may hold a pipe open for ever:
    /// what came within a second counts.
    fn text(self) -> String {
        let until = Instant::now() + Duration::from_secs(1);
        while Instant::now() < until && !self.readers.iter().all(JoinHandle::is_finished) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut text = String::new();
        for kept in &self.kept {
            let kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            text.push_str(&String::from_utf8_lossy(&kept.head));
            text.push_str(&String::from_utf8_lossy(&kept.tail));
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::test_kill_process_group;

    use super::*;

    fn spec(command: &str, pattern: &str) -> CommandSpec {
        CommandSpec { command: command.into(), metrics: vec![("tps".into(), pattern.into())] }
    }

    fn outcome(spec: &CommandSpec) -> Result<Vec<(String, f64)>, String> {
        match run(spec, Duration::from_secs(1), &Stop::default(), &mut || ()) {
            Ended::Figures(figures) => Ok(figures),
            Ended::Failed(why) => Err(why),
            Ended::Stopped => Err("stopped".to_string()),
        }
    }

    #[test]
    fn figures_are_found_or_missed_with_words() {
        for (command, pattern, expected) in [
            ("echo tps=3; echo tps=1,204.5 >&2", r"tps=([\d.,]+)", Ok(1204.5)),
            ("echo for {seconds} s", r"for (\d+) s", Ok(1.0)),
            ("echo nothing here", r"tps=(\d+)", Err("fits nothing")),
            ("true", r"tps=(\d+)", Err("printed nothing")),
            ("echo tps=many", r"tps=(\w+)", Err("not a number")),
            ("echo broken >&2; exit 3", r"tps=(\d+)", Err("exit code 3: it printed\n  broken")),
            // More than the pipe holds, and the figure at its end.
            ("head -c 2000000 /dev/zero | tr '\\0' x; echo; echo tps=7", r"tps=(\d+)", Ok(7.0)),
        ] {
            match (outcome(&spec(command, pattern)), expected) {
                (Ok(figures), Ok(value)) => assert_eq!(figures, [("tps".to_string(), value)], "{command}"),
                (Err(why), Err(part)) => assert!(why.contains(part), "{command}: {why}"),
                (other, _) => panic!("{command}: {other:?}"),
            }
        }
    }

    #[test]
    fn patterns_are_looked_at_before_anything_runs() {
        for (pattern, complaint) in [(r"tps=(\d+", "--metric tps"), (r"tps=\d+", "no group")] {
            assert!(check(&spec("true", pattern)).unwrap_err().contains(complaint), "{pattern}");
        }
        assert_eq!(check(&spec("true", r"(\d+)")), Ok(()));
    }

    #[test]
    fn the_number_of_a_group_stays_taken_until_nobody_signals_it() {
        let mut child = spawn("exit 0").unwrap();
        let minder = Minder::of(&child).unwrap();
        // A process that is asked to end with the group remains under watch.
        signal(&child, Signal::TERM);
        child.wait().unwrap();
        let group = Pid::from_child(&child);
        assert_eq!(test_kill_process_group(group), Ok(()));
        drop(minder);
        assert!(test_kill_process_group(group).is_err());
    }

    #[test]
    fn a_stop_ends_all_that_a_command_has_started() {
        let stop = Stop::default();
        let file = tempfile::NamedTempFile::new().unwrap();
        let command = format!("sleep 600 & echo $! > {}; wait", file.path().display());
        let started = || std::fs::read_to_string(file.path()).unwrap().trim().parse::<u32>().ok();
        let request = || {
            if started().is_some() {
                stop.request(2);
            }
        };
        let ended = run(&spec(&command, "(x)"), Duration::from_secs(600), &stop, &mut { request });
        assert!(matches!(ended, Ended::Stopped));
        let process = format!("/proc/{}/stat", started().unwrap());
        // Gone, or a zombie whose new parent has not yet taken notice; what was killed takes a moment to end.
        let stat = || std::fs::read_to_string(&process).unwrap_or_default();
        let has_ended = || stat().is_empty() || stat().contains(") Z ");
        let until = Instant::now() + Duration::from_secs(10);
        while !has_ended() && Instant::now() < until {
            std::thread::sleep(POLL);
        }
        assert!(has_ended(), "{}", stat());
    }
}
