//! A recording of the block layer's events, and the command that runs meanwhile.

use std::time::{Duration, Instant};

use weir_core::units::Nanos;
use weir_io::runner::Stop;
use weir_kernel::Error;
use weir_kernel::capture::{CaptureSession, Options, Source, Summary};

use super::command::{Beside, Prints, code_of};
use crate::failure::Lacking;

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
    let mut child = match Beside::start(&options.command, Prints::Beside) {
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
    let code = child.map(|child| child.wait(stop)).transpose()?.map(code_of);
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

fn reason_to_end(stop: &Stop, end: Option<Instant>, child: Option<&mut Beside>) -> Option<String> {
    if let Some(signal) = stop.requested() {
        return Some(format!("signal {signal}"));
    }
    if end.is_some_and(|end| Instant::now() >= end) {
        return Some("the time was up".to_string());
    }
    child?.ended().ok()?.map(|status| format!("the command ended: {status}"))
}
