//! A device's counters as a sensor: what its flushes took on average, and how long it has not ended a write.

use weir_control::{Bulk, Sensor, SensorSource, Syncs};
use weir_core::stats::CoarseHistogram;
use weir_core::target::DeviceNumber;
use weir_host::{Host, Ticks};

use super::Sight;

const NS_PER_MS: u64 = 1_000_000;

/// One device.
pub struct Counters {
    host: Host,
    number: DeviceNumber,
    before: Option<Ticks>,
    ended_ns: u64,
    answered_ns: Option<u64>,
}

impl Counters {
    /// Of this device.
    pub fn of(host: &Host, number: DeviceNumber) -> Counters {
        Counters { host: host.clone(), number, before: None, ended_ns: 0, answered_ns: None }
    }

    /// What happened since the sample before.
    pub fn sample(&mut self, now_ns: u64) -> Sight {
        let ticks = self.host.ticks(self.number).ok().flatten();
        let answered_ns = *self.answered_ns.get_or_insert(now_ns);
        if ticks.is_some() {
            self.answered_ns = Some(now_ns);
        }
        let silent_ns = if ticks.is_some() { 0 } else { now_ns.saturating_sub(answered_ns) };
        let syncs = ticks.map(|ticks| self.syncs(ticks, now_ns)).unwrap_or_default();
        let sensor = Sensor { source: SensorSource::Diskstats, silent_ns, lost: 0 };
        Sight { syncs, bulk: Bulk::default(), backlog_bytes: None, sensor }
    }

    /// Every flush counts as a sync of the mean length; what waits is as old as the last write that ended.
    fn syncs(&mut self, ticks: Ticks, now_ns: u64) -> Syncs {
        let before = self.before.replace(ticks);
        let Some(grown) = before.and_then(|before| ticks.since(&before)) else {
            self.ended_ns = now_ns;
            return Syncs::default();
        };
        if grown.writes > 0 || grown.flushes > 0 || grown.in_flight == 0 {
            self.ended_ns = now_ns;
        }
        let mut ended = CoarseHistogram::new();
        if let Some(mean_ns) = grown.flush_ms.saturating_mul(NS_PER_MS).checked_div(grown.flushes) {
            ended.record_many(mean_ns, grown.flushes);
        }
        let oldest_ns = now_ns.saturating_sub(self.ended_ns);
        Syncs { ended, under_way: u32::from(oldest_ns > 0), oldest_ns, ..Syncs::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushes_and_what_waits_come_from_the_counters() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("proc")).unwrap();
        let set = |writes: u64, in_flight: u64, flushes: u64, flush_ms: u64| {
            let line = format!(
                "8 0 sda 1 2 3 4 {writes} 6 7 800 {in_flight} 10 11 12 13 14 15 {flushes} {flush_ms}\n"
            );
            std::fs::write(folder.path().join("proc/diskstats"), line).unwrap();
        };
        let number = DeviceNumber { major: 8, minor: 0 };
        let mut counters = Counters::of(&Host::at(folder.path()), number);
        let mut look = |now_ns| {
            let sight = counters.sample(now_ns);
            let ended = sight.syncs.ended;
            (ended.count(), ended.max().unwrap_or(0), sight.syncs.oldest_ns, sight.sensor.silent_ns)
        };
        set(10, 0, 5, 4_294_967_290);
        assert_eq!(look(100), (0, 0, 0, 0), "nothing to compare with yet");
        set(12, 3, 9, 34);
        assert_eq!(look(200), (4, 10 * NS_PER_MS, 0, 0), "the kernel's milliseconds began anew");
        assert_eq!(look(300), (0, 0, 100, 0), "three requests, and none ended");
        set(12, 0, 9, 34);
        assert_eq!(look(400), (0, 0, 0, 0));
        set(3, 0, 1, 2);
        assert_eq!(look(500), (0, 0, 0, 0), "another device has the number");
        std::fs::write(folder.path().join("proc/diskstats"), "").unwrap();
        assert_eq!(look(600), (0, 0, 0, 100), "it is gone");
    }
}
