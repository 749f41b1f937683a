//! What a plant is made of: every figure of it, named.

use serde::{Deserialize, Serialize};

const MILLISECOND: u64 = 1_000_000;
const MIB: u64 = 1 << 20;

/// A machine with one device, a load of syncs and a flood.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlantSpec {
    /// The device and the queue before it.
    pub device: DeviceSpec,
    /// Page cache and write-back.
    pub cache: CacheSpec,
    /// Those who sync.
    pub syncs: SyncSpec,
    /// Those who flood.
    pub bulk: BulkSpec,
}

/// The device and the queue before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeviceSpec {
    /// Write requests per second that the device accepts; 0 for as many as come.
    pub requests_per_second: f64,
    /// Bytes per second that the device accepts; 0 for as many as come.
    pub bytes_per_second: f64,
    /// Budgets are given out for so long at once, in nanoseconds: 100 ms for a throttle of the kernel. With 0 the
    /// device itself is that slow, and requests are served one after another.
    pub slice_ns: u64,
    /// A request takes at least so long, in nanoseconds, however many are under way.
    pub latency_ns: u64,
    /// One request keeps the device (below a throttle) from the next for so long, in nanoseconds.
    pub occupancy_ns: u64,
    /// So much longer for each sync thread while a bulk writer or write-back is at work on the processors that they all
    /// need, in nanoseconds. It makes the plant bistable: syncs that are fast use up the requests of a slice and bulk writers
    /// sleep; syncs that are slow leave the requests to bulk writers, which then run and keep syncs slow. 0 where
    /// processors abound.
    pub crowded_ns: u64,
    /// Bytes per second of the device below its throttle.
    pub line_bytes_per_second: f64,
    /// Requests that may be under way before write-back has to wait for one. A throttle stands before this bound, so
    /// it holds only where `slice_ns` is 0.
    pub depth: u32,
    /// The rate wanders.
    pub drift: Drift,
    /// The rate is earned.
    pub credits: Option<Credits>,
}

/// A slow wave in what the device accepts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Drift {
    /// Up and down by this share, 0 to below 1.
    pub share: f64,
    /// Length of the wave in nanoseconds.
    pub period_ns: u64,
}

/// Bytes that may go beyond the baseline, as volumes of clouds count them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credits {
    /// At the start, in bytes; never more than this is saved up.
    pub bytes: f64,
    /// Bytes per second that are earned; without credits the device accepts only these.
    pub baseline_bytes_per_second: f64,
}

/// Page cache and write-back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CacheSpec {
    /// The baseline limit of dirty pages, in bytes.
    pub saved_bytes: u64,
    /// The least limit, in bytes.
    pub floor_bytes: u64,
    /// Write-back starts at this share of the limit.
    pub background: f64,
    /// Timer tick of the kernel in nanoseconds: pauses end on ticks.
    pub tick_ns: u64,
    /// Largest request of write-back, in bytes.
    pub request_bytes: u64,
    /// Least that write-back takes from a file at once, in bytes.
    pub chunk_bytes: u64,
    /// A bulk writer makes at least so much dirty, in bytes, before it is looked at again: the size of its folios.
    pub stride_bytes: u64,
    /// From waking the flusher to its first request, in nanoseconds.
    pub wake_ns: u64,
    /// Bytes per second at which the flusher hands rewritten pages to the queue.
    pub flusher_bytes_per_second: f64,
}

/// Those who sync: each thread writes and syncs, one commit after another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SyncSpec {
    /// How many threads.
    pub threads: u32,
    /// Past the page cache.
    pub direct: bool,
    /// Of a commit's data, in bytes.
    pub data_bytes: u64,
    /// Of the journal's write after it, in bytes; 0 for none.
    pub log_bytes: u64,
    /// Processor time of a commit, in nanoseconds.
    pub cpu_ns: u64,
    /// Between two commits of a thread, in nanoseconds.
    pub think_ns: u64,
    /// Journal entanglement, 0 to 1: the share of a fresh file's dirty pages that has to reach the device before a
    /// sync of somebody else may end (ext4's ordered data).
    pub entangled: f64,
}

/// How bulk writers write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FloodKind {
    /// To a new file: pages and blocks have to be found for it.
    Fresh,
    /// Over a file that is in the page cache already.
    Rewriting,
}

/// Those who flood.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BulkSpec {
    /// How many.
    pub writers: u32,
    /// How.
    pub kind: FloodKind,
    /// Bytes per second that one writer can make dirty in a new file.
    pub fresh_bytes_per_second: f64,
    /// The same over a cached file.
    pub rewriting_bytes_per_second: f64,
    /// Bytes per second that one writer wants to write; 0 for all it can.
    pub wanted_bytes_per_second: f64,
    /// They belong to those who are protected: a checkpoint.
    pub protected: bool,
}

impl Default for DeviceSpec {
    fn default() -> DeviceSpec {
        DeviceSpec {
            requests_per_second: 3000.0,
            bytes_per_second: 251e6,
            slice_ns: 100 * MILLISECOND,
            latency_ns: 45_000,
            occupancy_ns: 24_000,
            crowded_ns: 0,
            line_bytes_per_second: 2.4e9,
            depth: 64,
            drift: Drift::default(),
            credits: None,
        }
    }
}

impl Default for CacheSpec {
    fn default() -> CacheSpec {
        CacheSpec {
            saved_bytes: 3_500_000_000,
            floor_bytes: MIB,
            background: 0.5,
            tick_ns: 4 * MILLISECOND,
            request_bytes: MIB + MIB / 4,
            chunk_bytes: 4 * MIB,
            stride_bytes: MIB,
            wake_ns: 100_000,
            flusher_bytes_per_second: 2.0e9,
        }
    }
}

impl Default for SyncSpec {
    fn default() -> SyncSpec {
        SyncSpec {
            threads: 10,
            direct: false,
            data_bytes: 16 << 10,
            log_bytes: 512,
            cpu_ns: 15_000,
            think_ns: 0,
            entangled: 0.0,
        }
    }
}

impl Default for BulkSpec {
    fn default() -> BulkSpec {
        BulkSpec {
            writers: 1,
            kind: FloodKind::Fresh,
            fresh_bytes_per_second: 0.8e9,
            rewriting_bytes_per_second: 0.7e9,
            wanted_bytes_per_second: 0.0,
            protected: false,
        }
    }
}

impl PlantSpec {
    /// Reads one from TOML.
    ///
    /// # Errors
    /// Where the text is no TOML or names what there is not; says the line and what was expected.
    pub fn from_toml(text: &str) -> Result<PlantSpec, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    fn throttled(requests_per_second: f64, bytes_per_second: f64) -> PlantSpec {
        let device = DeviceSpec { requests_per_second, bytes_per_second, ..DeviceSpec::default() };
        PlantSpec { device, ..PlantSpec::default() }
    }

    /// 3000 write requests and 251 MB a second.
    pub fn device_a() -> PlantSpec {
        PlantSpec::throttled(3000.0, 251e6)
    }

    /// 1500 write requests and 200 MB a second.
    pub fn device_b() -> PlantSpec {
        PlantSpec::throttled(1500.0, 200e6)
    }

    /// 20,000 write requests and 1 GB a second.
    pub fn device_c() -> PlantSpec {
        PlantSpec::throttled(20_000.0, 1e9)
    }

    /// As A; its rate steps to 60 MB/s and back in scripts made for it ([`super::Script::gauntlet`]).
    pub fn device_d() -> PlantSpec {
        PlantSpec::device_a()
    }

    /// The same machine with few processors, on which syncs and bulk writers are in each other's way: at many limits
    /// it has two states that last.
    pub fn crowded(mut self) -> PlantSpec {
        self.device.crowded_ns = 20_000;
        self.bulk.fresh_bytes_per_second = 0.6e9;
        self.bulk.rewriting_bytes_per_second = 0.6e9;
        self
    }

    /// One of the four by its letter.
    pub fn preset(letter: &str) -> Option<PlantSpec> {
        match letter {
            "a" => Some(PlantSpec::device_a()),
            "b" => Some(PlantSpec::device_b()),
            "c" => Some(PlantSpec::device_c()),
            "d" => Some(PlantSpec::device_d()),
            _ => None,
        }
    }
}
