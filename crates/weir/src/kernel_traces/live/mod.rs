//! The live view of the block layer: a source of figures, and a sampler that cuts them into intervals.

mod kernel;
mod sampler;
mod source;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use weir_blocktrace::Source;
use weir_core::target::Layer;
use weir_core::units::Nanos;
use weir_io::runner::Stop;
use weir_report::text::trace_live::About;

use self::sampler::Sampler;
pub use self::sampler::{Taken, Whole};
use self::source::Wanted;
use crate::failure::Lacking;

/// What is to be watched, and how often it is told.
pub struct Request {
    /// Devices; empty: every device that does any I/O.
    pub devices: Vec<Layer>,
    /// Processes; empty: all.
    pub pids: Vec<u32>,
    /// A cgroup (v2), by its path.
    pub cgroup: Option<PathBuf>,
    /// The length from which a request is slow.
    pub slow: Option<Nanos>,
    /// Every bio instead of every request.
    pub detail: bool,
    /// The source; absent: the best there is.
    pub source: Option<Source>,
    /// Time between refreshes.
    pub interval: Nanos,
    /// End after this long.
    pub duration: Option<Nanos>,
}

/// Where intervals go.
pub trait View {
    /// Waits until this time, and calls `drain` several times a second. `false`: the user or a signal ends the watch.
    ///
    /// # Errors
    /// When the view or the source fails.
    fn wait(
        &mut self,
        until: Instant,
        stop: &Stop,
        drain: &mut dyn FnMut() -> anyhow::Result<()>,
    ) -> anyhow::Result<bool>;

    /// Shows an interval.
    ///
    /// # Errors
    /// When it cannot be shown.
    fn interval(&mut self, taken: &Taken) -> anyhow::Result<()>;
}

/// A source under way.
pub struct Live {
    sampler: Sampler,
    about: About,
    interval: Duration,
    duration: Option<Duration>,
}

impl Live {
    /// Opens the source.
    ///
    /// # Errors
    /// When no source can be used here, or the one that was asked for cannot.
    pub fn start(request: Request) -> anyhow::Result<Live> {
        let opened = source::open(request.source, &Wanted::of(&request)?)?;
        let about = opened.about(request.interval, request.slow);
        let sampler = Sampler::new(request.devices, opened.watch)?;
        let duration = request.duration.map(|duration| Duration::from_nanos(duration.0));
        Ok(Live { sampler, about, interval: Duration::from_nanos(request.interval.0), duration })
    }

    /// What stays the same while watching.
    pub fn about(&self) -> About {
        self.about.clone()
    }

    /// Shows intervals until the time is up, the user ends it or a signal does; returns the whole time.
    ///
    /// # Errors
    /// When the view or the source fails.
    pub fn watch(mut self, view: &mut impl View, stop: &Stop) -> anyhow::Result<Whole> {
        let begun = Instant::now();
        let end = self.duration.map(|duration| begun + duration);
        let mut next = begun + self.interval;
        loop {
            let until = end.map_or(next, |end| next.min(end));
            let goes_on = view.wait(until, stop, &mut || self.sampler.drain())?;
            view.interval(&self.sampler.take()?)?;
            if !goes_on || end.is_some_and(|end| Instant::now() >= end) {
                return Ok(self.sampler.whole());
            }
            // An interval that was missed is not made up for: the next frame holds what happened in both.
            while next <= Instant::now() {
                next += self.interval;
            }
        }
    }
}

/// What a source needs that is not there, with the way out.
fn lacking(source: Source, why: &str) -> anyhow::Error {
    let what = format!("the source {} cannot be used here: {why}", source.name());
    let hint = match source {
        Source::Bpf => "run it as root, or let --source auto take the best there is",
        Source::Tracefs => "run it as root, or use --source diskstats, which needs no privilege",
        Source::Diskstats => "/proc/diskstats must be readable",
    };
    Lacking { what, hint: Some(hint.to_string()) }.into()
}
