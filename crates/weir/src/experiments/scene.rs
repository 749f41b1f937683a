//! What is around a trial's workload: the floods beside it, and the machine's counters while it runs.

use std::path::Path;
use std::time::{Duration, Instant};

use weir_core::result::record::FloodRecord;
use weir_core::target::TargetFacts;
use weir_experiment::derive::Moment;
use weir_host::Host;
use weir_io::IoError;
use weir_io::error::Fault;
use weir_io::flood::{Flood, FloodSpec};
use weir_io::runner::{Stop, pause};

use crate::devices::folder_of;
use crate::moments::Moments;
use crate::quiet;
use crate::session::sized;

/// File systems give the room of a deleted file back late: a flood that finds none tries again for so long.
const ROOM_PATIENCE: Duration = Duration::from_secs(10);
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
    moments: Moments<'a>,
}

impl<'a> Scene<'a> {
    /// Nothing running yet.
    pub fn new(host: &'a Host, target: &'a TargetFacts, stop: &'a Stop) -> Scene<'a> {
        let (floods, ended) = (Vec::new(), Vec::new());
        Scene { host, target, stop, floods, ended, moments: Moments::new(host, target) }
    }

    /// Starts the floods, and lets dirty pages build up until writers begin to be throttled, or so long.
    pub fn flood(&mut self, texts: &[String], place: &Path, build_up: Duration) -> Result<(), IoError> {
        let specs = texts.iter().map(|text| FloodSpec::parse(text, folder_of(place)));
        for spec in sized(self.host, specs.collect::<Result<_, _>>()?) {
            let flood = self.start(&spec)?;
            self.floods.push(flood);
        }
        if !texts.is_empty() {
            self.build_up(build_up);
        }
        Ok(())
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
        let enough = quiet::throttled_from(self.host);
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
        self.moments.begin();
        self.note();
    }

    /// Notes the machine as it is now; returns what is dirty.
    pub fn note(&mut self) -> u64 {
        let flood_bytes = (!self.floods.is_empty()).then(|| self.floods.iter().map(Flood::bytes).sum());
        self.moments.note(flood_bytes)
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
        self.moments.all()
    }

    /// The floods that ran.
    pub fn floods(mut self) -> Vec<FloodRecord> {
        self.end_floods();
        self.ended
    }
}
