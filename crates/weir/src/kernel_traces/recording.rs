//! A recording of the block layer's events, and the command that runs meanwhile.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::Context;
use weir_core::units::Nanos;
use weir_io::runner::Stop;
use weir_kernel::Error;
use weir_kernel::capture::{CaptureSession, Options, Source, Summary};

use crate::failure::Lacking;

/// After a signal to all, a command gets this long to end by itself.
const GRACE: Duration = Duration::from_secs(5);

/// A recording that has ended.
pub struct Recorded {
    /// What is in it.
    pub summary: Summary,
    /// Where its events came from.
    pub source: Source,
    /// The exit code of the command, if there was one.
    pub code: Option<u8>,
}

/// Records until the time is up, the command of the options ends or a signal comes.
///
/// # Errors
/// When the kernel refuses, or the command cannot be started.
pub fn record(options: &Options, duration: Option<Nanos>, stop: &Stop) -> anyhow::Result<Recorded> {
    let session = CaptureSession::start(options).map_err(|error| refused(error, options.source))?;
    for sentence in session.passed_over() {
        say!("not used: {sentence}");
    }
    let source = session.source();
    let mut child = match started(&options.command) {
        Ok(child) => child,
        Err(error) => {
            session.run(|_| Some("the command could not be started".to_string()));
            return Err(error);
        }
    };
    if child.is_none() && duration.is_none() {
        say!("recording to {}; Ctrl-C ends it", options.out.display());
    }
    let end = duration.map(|duration| Instant::now() + Duration::from_nanos(duration.0));
    let summary = session.run(|_| reason_to_end(stop, end, child.as_mut()));
    let code = child.map(|child| code_of(child, stop)).transpose()?;
    Ok(Recorded { summary, source, code })
}

/// What the kernel does not allow or offer, with the way out.
fn refused(error: Error, source: Option<Source>) -> anyhow::Error {
    let hint = match &error {
        Error::Denied { .. } => "run it as root",
        Error::Busy { .. } => "end the other trace first; --source bpf disturbs none",
        Error::System { .. } => return anyhow::Error::new(error).context("cannot record"),
        _ if source.is_none() => "weir trace live --source diskstats needs neither privilege nor tracer",
        _ => "--source auto takes the best there is",
    };
    Lacking { what: format!("cannot record: {error}"), hint: Some(hint.to_string()) }.into()
}

fn started(command: &[String]) -> anyhow::Result<Option<Child>> {
    let Some((program, arguments)) = command.split_first() else { return Ok(None) };
    let child = Command::new(program).args(arguments).spawn();
    child.map(Some).with_context(|| format!("cannot run {program}"))
}

fn reason_to_end(stop: &Stop, end: Option<Instant>, child: Option<&mut Child>) -> Option<String> {
    if let Some(signal) = stop.requested() {
        return Some(format!("signal {signal}"));
    }
    if end.is_some_and(|end| Instant::now() >= end) {
        return Some("the time was up".to_string());
    }
    child?.try_wait().ok()?.map(|status| format!("the command ended: {status}"))
}

/// How the command ended. One that a signal did not end, or that outlives the recording, is waited for, and after a
/// signal only for a while.
fn code_of(mut child: Child, stop: &Stop) -> anyhow::Result<u8> {
    let mut patience = None;
    loop {
        if let Some(status) = child.try_wait()? {
            let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
            return Ok(code.unwrap_or(1) as u8);
        }
        if stop.requested().is_some()
            && *patience.get_or_insert_with(|| Instant::now() + GRACE) < Instant::now()
        {
            child.kill()?;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
