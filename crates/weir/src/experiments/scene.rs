//! What is around a trial's workload: the floods beside it, and the machine's counters while it runs.

use std::path::Path;
use std::time::{Duration, Instant};

use weir_core::result::record::FloodRecord;
use weir_core::target::TargetFacts;
use weir_core::units::Bytes;
use weir_experiment::derive::Moment;
use weir_host::{Host, Sample};
use weir_io::IoError;
use weir_io::error::Fault;
use weir_io::flood::{Flood, FloodSpec};
use weir_io::runner::{Stop, pause};

use crate::devices::folder_of;
use crate::quiet;

/// File systems give the room of a deleted file back late: a flood that finds none tries again for so long.
const ROOM_PATIENCE: Duration = Duration::from_secs(10);
/// Room that no flood takes.
const ROOM_LEFT: u64 = 512 << 20;
/// What a flood takes where there is room.
const FLOOD_DEFAULT: u64 = 16 << 30;
const POLL: Duration = Duration::from_millis(100);
/// A flood runs alone for this share of the longest build-up in any case: write-back has to get under way, and the
/// device's queue to fill.
pub const BUILD_UP_LEAST: u32 = 6;

/// A trial's surroundings.
pub struct Scene<'a> {
    host: &'a Host,
    target: &'a TargetFacts,
    stop: &'a Stop,
    floods: Vec<Flood>,
    ended: Vec<FloodRecord>,
    first: Sample,
    zero: Instant,
    moments: Vec<Moment>,
}

impl<'a> Scene<'a> {
    /// Nothing running yet.
    pub fn new(host: &'a Host, target: &'a TargetFacts, stop: &'a Stop) -> Scene<'a> {
        let (floods, ended, moments) = (Vec::new(), Vec::new(), Vec::new());
        Scene { host, target, stop, floods, ended, first: host.sample(target), zero: Instant::now(), moments }
    }

    /// Starts the floods, and lets dirty pages build up until writers begin to be throttled, or so long.
    pub fn flood(&mut self, texts: &[String], place: &Path, build_up: Duration) -> Result<(), IoError> {
        for text in texts {
            let mut spec = FloodSpec::parse(text, folder_of(place))?;
            if spec.size.0 == 0 {
                spec.size = self.size(&spec.dir, texts.len() as u64);
            }
            let flood = self.start(&spec)?;
            self.floods.push(flood);
        }
        if !texts.is_empty() {
            self.build_up(build_up);
        }
        Ok(())
    }

    /// A flood whose file is smaller than the limit overwrites pages that are still dirty, and holds nobody back: it
    /// takes more than the half of the room that is its default, if that is what it needs.
    fn size(&self, folder: &Path, floods: u64) -> Bytes {
        let Ok(space) = self.host.free_space(folder) else { return Bytes(0) };
        let limit = self.host.vm_settings().dirty_threshold_bytes.unwrap_or(0);
        let wanted = (limit / 4 * 5 + ROOM_LEFT).max(FLOOD_DEFAULT.min(space.free_bytes / 2));
        let share = wanted.min(space.free_bytes.saturating_sub(ROOM_LEFT)) / floods.max(1);
        Bytes((share >> 20) << 20)
    }

    fn start(&self, spec: &FloodSpec) -> Result<Flood, IoError> {
        let until = Instant::now() + ROOM_PATIENCE;
        loop {
            match Flood::start(spec.clone()) {
                Err(error)
                    if error.fault == Fault::Environment
                        && Instant::now() < until
                        && pause(self.stop, POLL) => {}
                other => return other,
            }
        }
    }

    /// Until writers are throttled, or the time is up.
    fn build_up(&self, longest: Duration) {
        let vm = self.host.vm_settings();
        let limits = [vm.dirty_threshold_bytes, vm.dirty_background_threshold_bytes];
        let enough = quiet::enough_to_hold_back(limits.map(Option::unwrap_or_default));
        let begun = Instant::now();
        while begun.elapsed() < longest && pause(self.stop, POLL) {
            let least_over = begun.elapsed() >= longest / BUILD_UP_LEAST;
            if least_over && enough > 0 && quiet::dirty_bytes(self.host, self.target) >= enough {
                return;
            }
        }
    }

    /// Measuring begins now.
    pub fn begin(&mut self) {
        (self.zero, self.first) = (Instant::now(), self.host.sample(self.target));
        self.moments.clear();
        self.note();
    }

    /// Notes the machine as it is now; returns what is dirty.
    pub fn note(&mut self) -> u64 {
        let load = self.host.sample(self.target).since(&self.first);
        let device = self.target.device.as_ref().and_then(|name| load.devices.get(name));
        let seconds = load.elapsed_ns as f64 / 1e9;
        let dirty_bytes = load.memory.dirty_bytes + load.memory.writeback_bytes;
        self.moments.push(Moment {
            at_ns: self.zero.elapsed().as_nanos() as u64,
            flood_bytes: (!self.floods.is_empty()).then(|| self.floods.iter().map(Flood::bytes).sum()),
            device_bytes: device.map(|d| (d.write_bytes_per_second * seconds) as u64),
            dirty_bytes,
        });
        dirty_bytes
    }

    /// Ends the floods; their files are gone afterwards. A commit that is stuck behind them gets through then. Whether any
    /// ran.
    pub fn end_floods(&mut self) -> bool {
        let ran = !self.floods.is_empty();
        self.ended.extend(self.floods.drain(..).map(Flood::stop));
        ran
    }

    /// What was noted since measuring began.
    pub fn moments(&self) -> &[Moment] {
        &self.moments
    }

    /// The floods that ran.
    pub fn floods(mut self) -> Vec<FloodRecord> {
        self.end_floods();
        self.ended
    }
}
