//! The machine at moments of a run: what floods have handed over, what the device has written, what is dirty. And whether
//! floods filled memory only.

use std::time::Instant;

use weir_core::target::TargetFacts;
use weir_core::units::{Bytes, Nanos, megabytes_per_second};
use weir_experiment::Metric;
use weir_experiment::derive::{Moment, of_machine};
use weir_host::{Host, Sample};

/// Moments of a run.
pub struct Moments<'a> {
    host: &'a Host,
    target: &'a TargetFacts,
    first: Sample,
    zero: Instant,
    all: Vec<Moment>,
}

impl<'a> Moments<'a> {
    /// None noted yet.
    pub fn new(host: &'a Host, target: &'a TargetFacts) -> Moments<'a> {
        Moments { host, target, first: host.sample(target), zero: Instant::now(), all: Vec::new() }
    }

    /// Measuring begins now.
    pub fn begin(&mut self) {
        (self.zero, self.first) = (Instant::now(), self.host.sample(self.target));
        self.all.clear();
    }

    /// Notes the machine as it is now, and what floods have handed over, if any runs; returns what is dirty.
    pub fn note(&mut self, flood_bytes: Option<u64>) -> u64 {
        let load = self.host.sample(self.target).since(&self.first);
        let device = self.target.device.as_ref().and_then(|name| load.devices.get(name));
        let seconds = load.elapsed_ns as f64 / 1e9;
        let dirty_bytes = load.memory.dirty_bytes + load.memory.writeback_bytes;
        self.all.push(Moment {
            at_ns: self.zero.elapsed().as_nanos() as u64,
            flood_bytes,
            device_bytes: device.map(|d| (d.write_bytes_per_second * seconds) as u64),
            dirty_bytes,
        });
        dirty_bytes
    }

    /// Those that were noted since measuring began.
    pub fn all(&self) -> &[Moment] {
        &self.all
    }
}

/// A sentence where for most of the time nobody was throttled (`enough` bytes are dirty where writers are), and the device
/// got less than half of what floods handed over: jobs that are measured then are not beside a bulk copy that lasts.
pub fn filled_memory(moments: &[Moment], enough: u64) -> Option<String> {
    let (first, last) = (moments.first()?, moments.last()?);
    let measured_ns = last.at_ns - first.at_ns;
    let throttled = moments.iter().find(|moment| moment.dirty_bytes >= enough);
    let filling_ns = throttled.map_or(measured_ns, |moment| moment.at_ns - first.at_ns);
    let handed =
        last.flood_bytes?.saturating_sub(first.flood_bytes?) as f64 * 1e9 / measured_ns.max(1) as f64;
    let bulk = *of_machine(moments).get(&Metric::Bulk)?;
    let peak = moments.iter().map(|moment| moment.dirty_bytes).max()?;
    (enough > 0 && filling_ns > measured_ns / 2 && bulk < handed / 2.0).then(|| {
        format!(
            "the flood filled memory for {} of {} measured: the device got {} of the {} that were handed to the page \
             cache; the kernel throttles writers from {} of dirty pages on, and at most {} were dirty; measure for longer, \
             with --warmup, or with a larger file (size=)",
            Nanos(filling_ns),
            Nanos(measured_ns),
            megabytes_per_second(bulk),
            megabytes_per_second(handed),
            Bytes(enough >> 20 << 20),
            Bytes(peak >> 20 << 20)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each second, in MB: handed over, written by the device, dirty.
    fn course(seconds: &[(u64, u64, u64)]) -> Vec<Moment> {
        let moment = |(at, (flood, device, dirty)): (usize, &(u64, u64, u64))| Moment {
            at_ns: at as u64 * 1_000_000_000,
            flood_bytes: Some(flood * 1_000_000),
            device_bytes: Some(device * 1_000_000),
            dirty_bytes: dirty * 1_000_000,
        };
        seconds.iter().enumerate().map(moment).collect()
    }

    #[test]
    fn a_flood_that_memory_takes_is_known_by_what_the_device_got() {
        let enough = 6_000_000_000;
        for (name, seconds, said) in [
            (
                "it fills",
                vec![(0, 0, 0), (2000, 200, 1800), (4000, 400, 3600)],
                Some("2.00 s of 2.00 s measured"),
            ),
            (
                "small file",
                vec![(0, 0, 60), (3000, 0, 64), (6000, 0, 64)],
                Some("got 0 MB/s of the 3000 MB/s"),
            ),
            (
                "limit late",
                vec![(0, 0, 0), (3000, 0, 3000), (6000, 0, 6000), (6200, 200, 6000)],
                Some("2.00 s of 3"),
            ),
            ("limit early", vec![(0, 0, 0), (6000, 0, 6000), (6200, 200, 6000), (6400, 400, 6000)], None),
            ("a fast device", vec![(0, 0, 500), (2000, 1900, 600), (4000, 3900, 600)], None),
            ("one moment", vec![(0, 0, 0)], None),
            ("no moment", Vec::new(), None),
        ] {
            let sentence = filled_memory(&course(&seconds), enough);
            let is_said = said.is_none_or(|part| sentence.as_ref().is_some_and(|text| text.contains(part)));
            assert!(is_said && sentence.is_some() == said.is_some(), "{name}: {sentence:?}");
            assert_eq!(filled_memory(&course(&seconds), 0), None, "{name}: the limit is not known");
        }
    }
}
