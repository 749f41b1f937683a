//! The flood's timeline: what was dirty, what the device wrote and how commits fared, twice a second, with the
//! flood itself in hand so that a commit stuck behind it can be let go.

use std::time::Instant;

use weir_core::result::record::{Class, FloodRecord};
use weir_core::target::TargetFacts;
use weir_core::units::{Bytes, per_second};
use weir_host::{Host, Sample};
use weir_io::flood::Flood;
use weir_io::runner::{Observer, Tick};
use weir_verdict::doctor::{FloodPhase, FloodSample, PhaseKind};

use super::progress::Steps;

/// Commits that are still stuck after their phase and this share of it are let go by ending the flood.
const GRACE: f64 = 0.4;

/// A shorter interval, as between a phase's last tick and its end, holds too little for a rate.
const RATE_MIN_NS: u64 = 100_000_000;

/// The timeline.
pub struct Timeline {
    /// The phases so far.
    pub phases: Vec<FloodPhase>,
    /// The samples so far.
    pub samples: Vec<FloodSample>,
    /// Floods that have ended.
    pub ended: Vec<FloodRecord>,
    flood: Option<Flood>,
    host: Host,
    target: TargetFacts,
    zero: Instant,
    last: Sample,
    last_bytes: u64,
    phase_bytes: u64,
}

impl Timeline {
    /// Begins now.
    pub fn new(host: &Host, target: &TargetFacts) -> Timeline {
        Timeline {
            phases: Vec::new(),
            samples: Vec::new(),
            ended: Vec::new(),
            flood: None,
            host: host.clone(),
            target: target.clone(),
            zero: Instant::now(),
            last: host.sample(target),
            last_bytes: 0,
            phase_bytes: 0,
        }
    }

    fn now_ns(&self) -> u64 {
        self.zero.elapsed().as_nanos() as u64
    }

    /// Takes a flood into hand.
    pub fn start_flood(&mut self, flood: Flood) {
        (self.last_bytes, self.phase_bytes) = (0, 0);
        self.flood = Some(flood);
    }

    /// Whether a flood is running.
    pub fn is_flooding(&self) -> bool {
        self.flood.is_some()
    }

    /// Bytes the flood has handed over.
    pub fn flood_bytes(&self) -> u64 {
        self.flood.as_ref().map_or(self.last_bytes, Flood::bytes)
    }

    /// Ends the flood; its files are gone afterwards.
    pub fn stop_flood(&mut self) {
        if let Some(flood) = self.flood.take() {
            self.last_bytes = flood.bytes();
            self.ended.push(flood.stop());
        }
    }

    /// Ends the flood, if it runs, because commits have taken too long; whether some are stuck still.
    fn cut_short(&mut self, stuck: bool) {
        let cut_short = stuck && self.is_flooding();
        self.stop_flood();
        if let Some(phase) = self.phases.last_mut() {
            phase.cut_short |= cut_short;
        }
    }

    /// A phase begins.
    pub fn begin(&mut self, kind: PhaseKind, label: String, threads: u32, dirty_bytes: Option<Bytes>) {
        // The first sample's rates are those of this phase.
        self.last = self.host.sample(&self.target);
        self.last_bytes = self.flood_bytes();
        self.phase_bytes = self.last_bytes;
        self.phases.push(FloodPhase {
            kind,
            label,
            threads,
            dirty_bytes,
            start_ns: self.now_ns(),
            end_ns: 0,
            measurement: None,
            flood_bytes_per_second: None,
            cut_short: false,
        });
    }

    /// The phase that began last ends.
    pub fn end(&mut self, measurement: Option<String>) {
        let (now_ns, bytes, since) = (self.now_ns(), self.flood_bytes(), self.phase_bytes);
        let Some(phase) = self.phases.last_mut() else { return };
        phase.end_ns = now_ns;
        phase.measurement = measurement;
        let seconds = now_ns.saturating_sub(phase.start_ns) as f64 / 1e9;
        let flooded = !matches!(phase.kind, PhaseKind::Idle | PhaseKind::Drain);
        phase.flood_bytes_per_second =
            (flooded && seconds > 0.0).then(|| bytes.saturating_sub(since) as f64 / seconds);
    }

    /// Takes a sample; `commits` are those of a tick, if commits are being measured. One that follows another of its phase
    /// too soon to have rates is left out: the other stands.
    pub fn sample(&mut self, commits: Option<&Tick<'_>>) -> &FloodSample {
        let at_ns = self.now_ns();
        let begun_ns = self.phases.last().map_or(0, |phase| phase.start_ns);
        let since = self.samples.last().filter(|last| last.at_ns >= begun_ns);
        if since.is_some_and(|last| at_ns < last.at_ns + RATE_MIN_NS) {
            return &self.samples[self.samples.len() - 1];
        }
        let now = self.host.sample(&self.target);
        let load = now.since(&self.last);
        let seconds = (load.elapsed_ns as f64 / 1e9).max(1e-3);
        let bytes = self.flood_bytes();
        let device = self.target.device.as_ref().and_then(|name| load.devices.get(name));
        let interval = commits.map(|tick| tick.interval);
        let done = interval.map(|i| (i.classes.get(&Class::Commit).map_or(0, |c| c.count), i.len_ns.max(1)));
        self.samples.push(FloodSample {
            at_ns,
            dirty_bytes: load.memory.dirty_bytes,
            writeback_bytes: load.memory.writeback_bytes,
            flood_bytes_per_second: bytes.saturating_sub(self.last_bytes) as f64 / seconds,
            device_bytes_per_second: device
                .filter(|_| load.elapsed_ns >= RATE_MIN_NS)
                .map(|d| d.write_bytes_per_second),
            commit_iops: done
                .filter(|(_, len_ns)| *len_ns >= RATE_MIN_NS)
                .map(|(count, len_ns)| count as f64 * 1e9 / len_ns as f64),
            oldest_ns: interval.map(|i| i.oldest_ns),
        });
        (self.last, self.last_bytes) = (now, bytes);
        &self.samples[self.samples.len() - 1]
    }
}

/// A timeline watching commits, and telling how they fare.
pub struct Watching<'a> {
    /// Where samples go.
    pub timeline: &'a mut Timeline,
    /// Where words go.
    pub progress: &'a mut Steps,
}

impl Observer for Watching<'_> {
    fn tick(&mut self, tick: &Tick<'_>) {
        let sample = self.timeline.sample(Some(tick));
        let detail = format!(
            ": {} commits/s, {} dirty",
            per_second(sample.commit_iops.unwrap_or(0.0)),
            Bytes((sample.dirty_bytes + sample.writeback_bytes) >> 20 << 20),
        );
        self.progress.detail(&detail);
        if tick.at_ns as f64 > tick.job.duration.0 as f64 * (1.0 + GRACE) {
            self.timeline.cut_short(tick.interval.oldest_ns > 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_io::flood::FloodSpec;

    #[test]
    fn a_flood_that_is_ended_for_stuck_commits_marks_its_phase() {
        let folder = tempfile::tempdir().unwrap();
        let dir = weir_fs::Dir::open(folder.path()).unwrap();
        let mut timeline = Timeline::new(&Host::live(), &TargetFacts::default());
        for (stuck, flooded) in [(true, true), (false, true), (true, false)] {
            if flooded {
                let spec = FloodSpec::parse("dd:size=1m,bs=4k", folder.path()).unwrap();
                timeline.start_flood(Flood::start_in(&dir, spec).unwrap());
            }
            timeline.begin(PhaseKind::Flood, String::new(), 1, None);
            timeline.cut_short(stuck);
            // Those that are stuck still when the flood has been ended are no other case.
            timeline.cut_short(false);
            timeline.end(None);
            assert!(!timeline.is_flooding());
            assert_eq!(timeline.phases.last().map(|p| p.cut_short), Some(stuck && flooded));
        }
    }

    #[test]
    fn samples_of_a_phase_are_far_enough_apart_for_rates() {
        let mut timeline = Timeline::new(&Host::live(), &TargetFacts::default());
        timeline.sample(None);
        for _ in 0..2 {
            timeline.begin(PhaseKind::Drain, String::new(), 0, None);
            for _ in 0..20 {
                timeline.sample(None);
            }
            timeline.end(None);
        }
        for phase in &timeline.phases {
            let within = timeline.samples.iter().map(|s| s.at_ns);
            let within: Vec<u64> = within.filter(|at| *at >= phase.start_ns && *at <= phase.end_ns).collect();
            assert!(
                !within.is_empty() && within.windows(2).all(|w| w[1] - w[0] >= RATE_MIN_NS),
                "{within:?}"
            );
        }
    }
}
