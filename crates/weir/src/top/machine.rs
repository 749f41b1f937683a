//! This machine as a source of samples: devices, processes, syncs, pressure, dirty pages.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use jiff::Zoned;
use weir_blocktrace::Source;
use weir_blocktrace::fsync::Anatomy;
use weir_core::target::{Layer, ProcessLoad};
use weir_core::units::Nanos;
use weir_host::{Host, ProcessSample};
use weir_top::{About, Process, Sample, Samples, Wish};

use super::recorded::Recorded;
use super::syncs::{Followed, Storage, Watched};
use crate::live::{self, Sampler, Wanted};

/// Of a processor at most one part in so many goes into reading what processes do: a machine may have thousands.
const SCAN_ONE_IN: u32 = 200;
/// Processes whose units are remembered, and for how long: another may have the number by then.
const UNITS_MAX: usize = 4096;
const UNITS_FOR: Duration = Duration::from_secs(10);

/// What is to be shown.
pub struct Wishes {
    /// Devices; none means all.
    pub devices: Vec<Layer>,
    /// Where figures of devices come from; `None` is the best there is.
    pub source: Option<Source>,
    /// Whether syncs are followed.
    pub syncs: bool,
    /// Time between samples.
    pub interval: Nanos,
    /// From when on a sync is slow.
    pub slow: Nanos,
    /// What a recorder has written, where that may be read.
    pub recorded: Option<Recorded>,
}

/// This machine.
pub struct Machine<'a> {
    host: Host,
    about: About,
    sampler: Sampler,
    syncs: Option<Watched<'a>>,
    processes: Scan,
    units: HashMap<(u32, String), Option<String>>,
    units_since: Instant,
    recorded: Option<Recorded>,
}

/// What processes read and wrote, as of the last time it was asked.
struct Scan {
    last: ProcessSample,
    loads: Vec<ProcessLoad>,
    next: Instant,
}

impl<'a> Machine<'a> {
    /// Begins now, with what this kernel and this user may have.
    ///
    /// # Errors
    /// A source that was named and cannot be had.
    pub fn start(wishes: Wishes, storage: &'a mut Storage) -> anyhow::Result<Machine<'a>> {
        let host = Host::live();
        let mut remarks = Vec::new();
        let opened = match wishes.source {
            Some(source) => live::open(Some(source), &wanted(&wishes.devices))?,
            // The tracer's events cost more than a screen that is always there may.
            None => live::open(Some(Source::Bpf), &wanted(&wishes.devices)).or_else(|why| {
                remarks.push(why.to_string());
                live::open(Some(Source::Diskstats), &wanted(&wishes.devices))
            })?,
        };
        let devices = opened.about(wishes.interval, None);
        remarks.extend(not_shown(devices.source, devices.remarks));
        let syncs = if wishes.syncs {
            Watched::start(storage, wishes.slow)
                .map_err(|why| remarks.push(format!("syncs are not seen: {why}")))
                .ok()
        } else {
            remarks.push("syncs are not followed: --no-syncs".to_string());
            None
        };
        remarks.extend(syncs.iter().flat_map(Watched::remarks));
        let last = host.processes();
        if last.refused > 0 {
            remarks.push(format!(
                "not shown: reads and writes of {} of the machine's processes, which this user may not look at",
                last.refused
            ));
        }
        let source = match devices.source {
            Source::Bpf => "programs in the kernel",
            Source::Tracefs => "the kernel's tracer",
            Source::Diskstats => "the kernel's counters",
        };
        remarks.extend(wishes.recorded.iter().map(Recorded::remark));
        let about = About {
            host: std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_string(),
            source: source.to_string(),
            remarks,
            interval_ns: wishes.interval.0,
            slow_ns: wishes.slow.0,
        };
        let sampler = Sampler::new(wishes.devices, opened.watch)?;
        let processes = Scan { last, loads: Vec::new(), next: Instant::now() };
        let (units, units_since, recorded) = (HashMap::new(), Instant::now(), wishes.recorded);
        Ok(Machine { host, about, sampler, syncs, processes, units, units_since, recorded })
    }

    /// Processes that read, wrote or synced.
    fn processes(&mut self, followed: Option<&Followed>) -> Vec<Process> {
        self.processes.look(&self.host);
        let known = self.processes.loads.iter().map(|load| Process {
            pid: Some(load.pid),
            name: load.name.clone(),
            unit: None,
            read: Some(load.read_bytes_per_second),
            written: Some(load.write_bytes_per_second),
            syncs: None,
        });
        let mut found: Vec<Process> = known.collect();
        let anatomies = followed.map_or(&[][..], |followed| &followed.processes);
        for anatomy in anatomies {
            let Some(process) = &anatomy.process else { continue };
            let place = found.iter().position(|it| process.pid.is_some() && it.pid == process.pid);
            match place {
                Some(place) => found[place].syncs = Some(anatomy.clone()),
                None => found.push(self.unread(anatomy, process)),
            }
        }
        if self.units.len() >= UNITS_MAX || self.units_since.elapsed() >= UNITS_FOR {
            (self.units, self.units_since) = (HashMap::new(), Instant::now());
        }
        for process in &mut found {
            let Some(pid) = process.pid else { continue };
            let known = self.units.entry((pid, process.name.clone()));
            process.unit = known.or_insert_with(|| self.host.unit_of(pid)).clone();
        }
        found
    }

    /// A process that syncs, and of which nobody told that it reads or writes.
    fn unread(&self, anatomy: &Anatomy, process: &weir_blocktrace::fsync::Process) -> Process {
        let was_read = process.pid.is_none_or(|pid| self.processes.last.holds(pid));
        let nothing = was_read.then_some(0.0);
        Process {
            pid: process.pid,
            name: process.comm.clone(),
            unit: None,
            read: nothing,
            written: nothing,
            syncs: Some(anatomy.clone()),
        }
    }
}

/// What a source cannot show here: processes are read beside it, and this command has fewer options than `trace live`.
fn not_shown(source: Source, remarks: Vec<String>) -> Vec<String> {
    if source == Source::Diskstats {
        let what = "not shown: percentiles, and which part of the time was spent before the driver";
        return vec![what.to_string()];
    }
    remarks.into_iter().map(|remark| remark.replace("--detail", "`weir trace live --detail`")).collect()
}

fn wanted(devices: &[Layer]) -> Wanted<'_> {
    Wanted { devices, pids: Vec::new(), cgroup: None, slow: None, detail: false }
}

impl Scan {
    /// Asks again, unless the last answer took so long that it is not time yet.
    fn look(&mut self, host: &Host) {
        let begun = Instant::now();
        if begun < self.next {
            return;
        }
        let now = host.processes();
        self.loads = now.since(&self.last);
        self.last = now;
        self.next = begun + begun.elapsed().saturating_mul(SCAN_ONE_IN).min(Duration::from_secs(60));
    }
}

impl Samples for Machine<'_> {
    type Error = anyhow::Error;

    fn about(&self) -> &About {
        &self.about
    }

    fn drain(&mut self) -> anyhow::Result<()> {
        self.sampler.drain()?;
        self.syncs.as_mut().map_or(Ok(()), Watched::drain)
    }

    fn take(&mut self) -> anyhow::Result<Option<Sample>> {
        let followed = self.syncs.as_mut().map(Watched::take).transpose()?;
        let mut taken = self.sampler.take()?;
        let processes = self.processes(followed.as_ref());
        let (syncs, slow) = match followed {
            Some(followed) => {
                if followed.lost > 0 {
                    taken.frame.lost.insert("syncs, or what they waited for".to_string(), followed.lost);
                }
                (Some(followed.all), followed.slow)
            }
            None => (None, Vec::new()),
        };
        let now = Zoned::now();
        let clock = now.strftime("%H:%M:%S").to_string();
        let at_ms = now.timestamp().as_millisecond();
        let (frame, pressure) = (taken.frame, taken.pressure);
        Ok(Some(Sample { clock, at_ms, is_recorded: false, frame, pressure, processes, syncs, slow }))
    }

    fn recorded(&mut self, wish: Wish) -> Vec<Sample> {
        self.recorded.as_mut().map(|recorded| recorded.fetch(wish)).unwrap_or_default()
    }
}
