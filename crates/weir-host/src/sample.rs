//! Counters at one moment, and the load between two.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use weir_core::target::{Load, MemoryLoad, Pressure, PressureLoad, TargetFacts, WritebackLoad};

use crate::host::Host;
use crate::tree::noted;
use crate::{bdi, cpu, diskstats, psi, vm};

/// So many pages a processor counts for itself, at most, before it tells (mm/vmstat.c, `calculate_normal_threshold`).
const PAGES_UNTOLD: u64 = 125;

/// Counters at one moment. Cheap: a handful of small files, no scan of processes.
#[derive(Debug, Clone)]
pub struct Sample {
    at: Instant,
    devices: BTreeMap<String, diskstats::Counters>,
    pressure: BTreeMap<String, Pressure>,
    ticks: Option<cpu::Ticks>,
    vmstat: HashMap<String, u64>,
    page_bytes: u64,
    processors: u64,
    page_cache_bytes: u64,
    bdi: Option<bdi::Counters>,
    loadavg: Option<[f64; 3]>,
    /// Sentences: what could not be read.
    pub unreadable: Vec<String>,
}

impl Host {
    /// Reads the counters of the machine and of the target's devices.
    pub fn sample(&self, target: &TargetFacts) -> Sample {
        let mut notes = Vec::new();
        let all =
            noted(self.tree.parsed("/proc/diskstats", diskstats::parse), &mut notes).unwrap_or_default();
        let of_target = target.stack.iter().filter_map(|l| Some((l.name.clone(), *all.get(&l.number)?)));
        let bdi_name = target.bdi.as_ref().map(|bdi| bdi.name.as_str());
        Sample {
            at: Instant::now(),
            devices: of_target.collect(),
            pressure: psi::read(&self.tree, &mut notes),
            ticks: noted(self.tree.parsed("/proc/stat", cpu::parse_stat), &mut notes),
            vmstat: noted(self.tree.parsed("/proc/vmstat", vm::parse_vmstat), &mut notes).unwrap_or_default(),
            page_bytes: self.page_bytes(),
            processors: noted(self.processors(), &mut notes).map_or(1, u64::from),
            page_cache_bytes: noted(self.page_cache_bytes(), &mut notes).unwrap_or(0),
            bdi: bdi_name.and_then(|name| bdi::counters(&self.tree, name)),
            loadavg: noted(self.tree.parsed("/proc/loadavg", cpu::parse_loadavg), &mut notes),
            unreadable: notes,
        }
    }
}

impl Sample {
    /// Takes over the counters of devices that this sample does not have.
    pub fn adopt(&mut self, other: &Sample) {
        for (name, counters) in &other.devices {
            self.devices.entry(name.clone()).or_insert(*counters);
        }
    }

    /// The load between an earlier sample of the same target and this one; without devices that others took the place of.
    pub fn since(&self, earlier: &Sample) -> Load {
        let elapsed = self.at.duration_since(earlier.at);
        // Two samples of the same instant have no rates; a nanosecond keeps them finite.
        let seconds = elapsed.as_secs_f64().max(1e-9);
        let device = |(name, later): (&String, &diskstats::Counters)| {
            Some((name.clone(), diskstats::load(earlier.devices.get(name)?, later, seconds)?))
        };
        Load {
            elapsed_ns: elapsed.as_nanos() as u64,
            devices: self.devices.iter().filter_map(device).collect(),
            pressure: self.pressure_since(earlier, seconds),
            cpu: self.ticks.zip(earlier.ticks).map(|(b, a)| cpu::load(&a, &b)).unwrap_or_default(),
            memory: self.memory_since(earlier, seconds),
            writeback: self.bdi.zip(earlier.bdi).map(|(later, earlier)| writeback(&earlier, &later, seconds)),
            loadavg: self.loadavg,
        }
    }

    fn pressure_since(&self, earlier: &Sample, seconds: f64) -> BTreeMap<String, PressureLoad> {
        let percent = |later: u64, earlier: u64| later.saturating_sub(earlier) as f64 / seconds / 10_000.0;
        let load = |(name, later): (&String, &Pressure)| {
            let earlier = earlier.pressure.get(name)?;
            let some_percent = percent(later.some_total_us, earlier.some_total_us).min(100.0);
            let full_percent = percent(later.full_total_us, earlier.full_total_us).min(100.0);
            Some((name.clone(), PressureLoad { some_percent, full_percent }))
        };
        self.pressure.iter().filter_map(load).collect()
    }

    fn memory_since(&self, earlier: &Sample, seconds: f64) -> MemoryLoad {
        let bytes = |sample: &Sample, key: &str| {
            sample.vmstat.get(key).copied().unwrap_or(0).saturating_mul(sample.page_bytes)
        };
        let rate = |key: &str| bytes(self, key).saturating_sub(bytes(earlier, key)) as f64 / seconds;
        MemoryLoad {
            dirty_bytes: bytes(self, "nr_dirty"),
            writeback_bytes: bytes(self, "nr_writeback"),
            unknown_below_bytes: PAGES_UNTOLD.saturating_mul(self.processors).saturating_mul(self.page_bytes),
            page_cache_bytes: self.page_cache_bytes,
            swap_in_bytes_per_second: rate("pswpin"),
            swap_out_bytes_per_second: rate("pswpout"),
        }
    }
}

fn writeback(earlier: &bdi::Counters, later: &bdi::Counters, seconds: f64) -> WritebackLoad {
    WritebackLoad {
        dirtied_bytes_per_second: later.dirtied.saturating_sub(earlier.dirtied) as f64 / seconds,
        written_bytes_per_second: later.written.saturating_sub(earlier.written) as f64 / seconds,
        reclaimable_bytes: later.reclaimable,
        writeback_bytes: later.writeback,
        bandwidth_bytes_per_second: later.bandwidth,
    }
}
