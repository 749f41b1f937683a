//! Cuts what a source counts, and the kernel's counters beside it, into intervals.

use std::collections::BTreeMap;
use std::time::Instant;

use weir_blocktrace::{Analysis, Cost, DeviceFrame, Frame, Intervals, SlowIo, StageTable};
use weir_core::target::{Layer, Load, PressureLoad, TargetFacts};
use weir_host::{Host, Sample, own_cpu_ns};

use super::source::{Counted, Watch};

/// One interval and what was slow in it.
pub struct Taken {
    /// The figures.
    pub frame: Frame,
    /// Slow requests, in order of completion.
    pub slow: Vec<SlowIo>,
    /// Losses since the start, by reason.
    pub lost: BTreeMap<String, u64>,
    /// Share of the time in which tasks waited, by resource.
    pub pressure: BTreeMap<String, PressureLoad>,
}

/// The whole time.
pub struct Whole {
    /// The figures.
    pub frame: Frame,
    /// The same as a recording's; without stages where the source has none.
    pub analysis: Analysis,
}

/// State at one moment.
struct Mark {
    at: Instant,
    sample: Sample,
    counted: Counted,
    cpu_ns: Option<u64>,
}

/// Takes an interval whenever it is asked to.
pub struct Sampler {
    host: Host,
    watch: Box<dyn Watch>,
    /// Only these, where any were named.
    chosen: bool,
    facts: TargetFacts,
    names: Vec<String>,
    first: Mark,
    last: Mark,
    intervals: Intervals,
}

impl Sampler {
    /// Begins now.
    pub fn new(devices: Vec<Layer>, watch: Box<dyn Watch>) -> anyhow::Result<Sampler> {
        Sampler::on(Host::live(), devices, watch)
    }

    fn on(host: Host, devices: Vec<Layer>, mut watch: Box<dyn Watch>) -> anyhow::Result<Sampler> {
        let chosen = !devices.is_empty();
        let names = host.device_names();
        let stack = if chosen { devices } else { host.devices() };
        let facts = TargetFacts { stack, ..TargetFacts::default() };
        let first = mark(&host, &facts, watch.as_mut())?;
        let last = mark(&host, &facts, watch.as_mut())?;
        Ok(Sampler { host, watch, chosen, facts, names, first, last, intervals: Intervals::default() })
    }

    /// What happened since the last call.
    pub fn take(&mut self) -> anyhow::Result<Taken> {
        self.look_for_new_devices();
        let mut now = mark(&self.host, &self.facts, self.watch.as_mut())?;
        let (frame, table) = self.frame(&self.last, &now);
        if let Some(table) = &table {
            self.intervals.push(frame.at_ns, table);
        }
        let lost = now.counted.lost.clone();
        let pressure = now.sample.since(&self.last.sample).pressure;
        // The whole time is that of devices that came later, too, and of those that left.
        self.first.sample.adopt(&now.sample);
        now.sample.adopt(&self.last.sample);
        self.last = now;
        Ok(Taken { frame, slow: self.watch.slow(), lost, pressure })
    }

    /// Takes in what the source has piled up.
    pub fn drain(&mut self) -> anyhow::Result<()> {
        self.watch.drain()
    }

    /// What happened since the start.
    pub fn whole(self) -> Whole {
        let (frame, table) = self.frame(&self.first, &self.last);
        let names = self.facts.stack.iter().map(|device| (device.number, device.name.clone())).collect();
        let analysis = self.intervals.finish(frame.length_ns, table.unwrap_or_default(), &names);
        Whole { frame, analysis }
    }

    fn look_for_new_devices(&mut self) {
        let names = if self.chosen { return } else { self.host.device_names() };
        if names != self.names {
            let mut stack = self.host.devices();
            // One that left stays for the whole time, unless another has its name or number.
            let is_taken = |left: &&Layer| {
                stack.iter().any(|device| device.name == left.name || device.number == left.number)
            };
            let left: Vec<Layer> =
                self.facts.stack.iter().filter(|device| !is_taken(device)).cloned().collect();
            stack.extend(left);
            (self.facts.stack, self.names) = (stack, names);
        }
    }

    fn frame(&self, earlier: &Mark, later: &Mark) -> (Frame, Option<StageTable>) {
        let load = later.sample.since(&earlier.sample);
        // Of the sample, not of the mark: numbers of I/Os are made of its rates again.
        let length_ns = load.elapsed_ns;
        let none = StageTable::default();
        let table = later
            .counted
            .table
            .as_ref()
            .map(|table| table.since(earlier.counted.table.as_ref().unwrap_or(&none)));
        let devices = self.devices(&load, table.as_ref(), length_ns);
        let lost = later.counted.lost.iter().map(|(reason, n)| {
            (reason.clone(), n.saturating_sub(earlier.counted.lost.get(reason).copied().unwrap_or(0)))
        });
        let lost: BTreeMap<String, u64> = lost.filter(|(_, n)| *n > 0).collect();
        let at_ns = later.at.duration_since(self.first.at).as_nanos() as u64;
        (
            Frame {
                at_ns,
                length_ns,
                devices,
                memory: load.memory,
                lost,
                cost: cost(earlier, later, length_ns),
            },
            table,
        )
    }

    /// Devices that were named, or on which anything happened.
    fn devices(&self, load: &Load, table: Option<&StageTable>, length_ns: u64) -> Vec<DeviceFrame> {
        let throttles = self.host.throttles(&self.facts.stack);
        let frame = |device: &Layer| {
            let load = load.devices.get(&device.name).cloned().unwrap_or_default();
            DeviceFrame::new(device, load, table, length_ns).limited(&throttles)
        };
        let frames = self.facts.stack.iter().map(frame);
        frames.filter(|frame| self.chosen || !frame.is_idle()).collect()
    }
}

fn mark(host: &Host, facts: &TargetFacts, watch: &mut dyn Watch) -> anyhow::Result<Mark> {
    let counted = watch.counted()?;
    Ok(Mark { at: Instant::now(), sample: host.sample(facts), counted, cpu_ns: own_cpu_ns() })
}

fn cost(earlier: &Mark, later: &Mark, length_ns: u64) -> Cost {
    let share = |earlier: Option<u64>, later: Option<u64>| {
        let (earlier, later) = earlier.zip(later)?;
        Some(later.saturating_sub(earlier) as f64 / length_ns.max(1) as f64)
    };
    Cost {
        weir_cpu_share: share(earlier.cpu_ns, later.cpu_ns).unwrap_or(0.0),
        kernel_cpu_share: share(earlier.counted.kernel_ns, later.counted.kernel_ns),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// Counters alone.
    struct Nothing;

    impl Watch for Nothing {
        fn counted(&mut self) -> anyhow::Result<Counted> {
            Ok(Counted::default())
        }
    }

    /// Devices, each with its reads so far.
    fn set(root: &Path, devices: &[(u32, u64)]) {
        let block = root.join("sys/class/block");
        let _ = fs::remove_dir_all(&block);
        let mut counters = String::new();
        for (minor, reads) in devices {
            let folder = block.join(format!("dm-{minor}"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("dev"), format!("253:{minor}")).unwrap();
            counters.push_str(&format!("253 {minor} dm-{minor} {reads} 0 {reads} 1 0 0 0 0 0 1 1\n"));
        }
        fs::create_dir_all(root.join("proc")).unwrap();
        fs::write(root.join("proc/diskstats"), counters).unwrap();
    }

    #[test]
    fn the_whole_time_has_devices_that_came_later_and_those_that_left() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        set(root, &[(0, 0), (1, 0)]);
        let mut sampler = Sampler::on(Host::at(root), Vec::new(), Box::new(Nothing)).unwrap();
        let mut active = |devices: &[(u32, u64)]| -> Vec<String> {
            set(root, devices);
            let frame = sampler.take().unwrap().frame;
            frame.devices.into_iter().map(|device| device.name).collect()
        };
        assert_eq!(active(&[(0, 100), (1, 100)]), ["dm-0", "dm-1"]);
        assert_eq!(active(&[(1, 100), (2, 50)]), [""; 0], "of one that came nothing is known yet");
        assert_eq!(active(&[(1, 100), (2, 250)]), ["dm-2"]);
        let whole = sampler.whole().frame;
        let seconds = whole.length_ns as f64 / 1e9;
        let reads = |device: &DeviceFrame| {
            (device.name.clone(), (device.load.reads_per_second * seconds).round() as u64)
        };
        let reads: BTreeMap<String, u64> = whole.devices.iter().map(reads).collect();
        let expected = [("dm-0", 100), ("dm-1", 100), ("dm-2", 200)];
        assert_eq!(reads, expected.map(|(name, n)| (name.to_string(), n)).into());
    }
}
