//! The live view: intervals of a source, one after the other, handed to a view.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weir_blocktrace::Source;
use weir_core::target::Layer;
use weir_core::units::Nanos;
use weir_io::runner::Stop;
use weir_report::text::trace_live::About;

use super::{Sampler, Taken, Wanted, Whole, open};
use crate::failure::Usage;

/// What is to be watched, and how often it is shown.
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
pub struct Watching {
    sampler: Sampler,
    about: About,
    interval: Duration,
    duration: Option<Duration>,
}

impl Watching {
    /// Opens the source.
    ///
    /// # Errors
    /// When no source can be used here, or the one that was asked for cannot.
    pub fn start(request: Request) -> anyhow::Result<Watching> {
        let Request { devices, pids, slow, detail, source, interval, duration, .. } = request;
        let cgroup = request.cgroup.as_deref().map(cgroup_id).transpose()?;
        let opened = open(source, &Wanted { devices: &devices, pids, cgroup, slow, detail })?;
        let about = opened.about(interval, slow);
        let sampler = Sampler::new(devices, opened.watch)?;
        let duration = duration.map(|duration| Duration::from_nanos(duration.0));
        Ok(Watching { sampler, about, interval: Duration::from_nanos(interval.0), duration })
    }

    /// What stays the same while watching.
    pub fn about(&self) -> About {
        self.about.clone()
    }

    /// Shows intervals until the time is up, the user ends it or a signal does; returns the whole time.
    ///
    /// # Errors
    /// When the view or the source fails.
    pub fn run(mut self, view: &mut impl View, stop: &Stop) -> anyhow::Result<Whole> {
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

/// The id of a cgroup is the inode number of its folder (kernfs).
fn cgroup_id(path: &Path) -> anyhow::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let below = Path::new("/sys/fs/cgroup").join(path.strip_prefix("/").unwrap_or(path));
    let unified = Path::new("/sys/fs/cgroup/unified").join(path.strip_prefix("/").unwrap_or(path));
    let candidates = [path.to_path_buf(), below, unified];
    let found = candidates.iter().find(|path| path.join("cgroup.procs").exists());
    let id = found.and_then(|path| std::fs::metadata(path).ok()).map(|meta| meta.ino());
    id.ok_or_else(|| {
        let what = format!("{} is not a cgroup", path.display());
        Usage { what, hint: Some("give its folder under /sys/fs/cgroup".to_string()) }.into()
    })
}
