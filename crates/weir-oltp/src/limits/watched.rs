//! What was watched beside a run, as it stands in its record.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::tested::Tested;
use super::waits::{OffCpu, Wait};
use weir_core::result::record::CpuRecord;

/// The watcher's sentence where programs in the kernel cannot count syncs begins with this.
pub const NOT_COUNTED: &str = "the time of the server's syncs: ";

/// What was seen of the machine and the server while transactions were measured. What could not be seen is absent, and
/// [`Watched::unseen`] says why.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Watched {
    /// Time between the first and the last look.
    pub elapsed_ns: u64,
    /// Processors online.
    pub processors: u32,
    /// Processors that the client may use.
    pub client_processors: u32,
    /// Processors that the server may use; 0 where it was not found.
    pub server_processors: u32,
    /// Processor time.
    pub cpu: CpuTimes,
    /// Share of the time in which some task waited for a processor (PSI), 0 to 1.
    pub pressure_cpu: Option<f64>,
    /// Share of the time in which some task waited for I/O (PSI), 0 to 1; followers of a group commit are not in it.
    pub pressure_io: Option<f64>,
    /// The client's threads.
    pub client_tasks: Option<TaskTimes>,
    /// The server's threads that serve these sessions.
    pub session_tasks: Option<TaskTimes>,
    /// Looks at the sessions.
    pub sessions: Option<Sessions>,
    /// Syncs of the server's processes, by programs in the kernel.
    pub syncs: Option<SyncUse>,
    /// The device under the server's data.
    pub device: Option<DeviceUse>,
    /// The server's own counters over the run.
    pub counters: Option<Counters>,
    /// Time that the server's threads waited for block I/O (`kernel.task_delayacct`).
    pub block_delay_ns: Option<u64>,
    /// What changes did that were tried afterwards.
    pub tested: Vec<Tested>,
    /// What looking cost: CPU time of the watching thread.
    pub cost_ns: u64,
    /// Sentences: what could not be seen, and why.
    pub unseen: Vec<String>,
}

/// Processor time while measuring, by the tasks' own clocks; `/proc/stat` alone misses short runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuTimes {
    /// weir.
    pub client_ns: u64,
    /// All processes of the server; `None` where they are not on this machine or not found.
    pub server_ns: Option<u64>,
    /// The whole machine as `/proc/stat` has it, without work of a lowered priority, which gives way, and without what a
    /// hypervisor took.
    pub machine_ns: Option<u64>,
    /// Work of a lowered priority (nice); `None` in older records, where the runner's reading has it.
    pub niced_ns: Option<u64>,
    /// Time that a hypervisor took while there was work (steal).
    pub stolen_ns: Option<u64>,
}

/// Times of a group of threads, summed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskTimes {
    /// Threads.
    pub threads: u32,
    /// On a processor.
    pub on_ns: u64,
    /// Ready to run, and waiting for a processor.
    pub queued_ns: u64,
    /// Threads × time watched.
    pub total_ns: u64,
}

/// Looks at what sessions do, each look at each session one sample.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sessions {
    /// Looks.
    pub looks: u64,
    /// Samples by what the session did.
    pub waits: BTreeMap<Wait, u64>,
    /// Samples that waited for a lock, by what the session at the root of their queue did.
    pub roots: BTreeMap<Wait, u64>,
    /// Samples by where the thread slept.
    pub off_cpu: BTreeMap<OffCpu, u64>,
    /// Samples by what the server calls it (`LWLock:WALWrite`, `Updating status`).
    pub events: BTreeMap<String, u64>,
}

/// Syncs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SyncUse {
    /// fsync, fdatasync and the like of files on a device that were seen to end; those of files in memory are left out.
    pub count: u64,
    /// What the programs could not keep.
    pub lost: u64,
    /// For how long they were watched for; 0: all the time.
    pub watched_ns: u64,
    /// What they took on average.
    pub mean_ns: f64,
    /// 99th percentile.
    pub p99_ns: u64,
}

impl Watched {
    /// With work of a lowered priority by the runner's own reading of the whole machine, where it is not known.
    pub fn with_niced_by(&self, cpu: &CpuRecord, elapsed_ns: u64) -> Watched {
        let mut watched = self.clone();
        let scale = self.elapsed_ns as f64 / elapsed_ns.max(1) as f64;
        let whole_ns = (cpu.machine_busy_ns as f64 * scale) as u64;
        let known = self.cpu.niced_ns.is_some() || cpu.machine_busy_ns == 0;
        if let (Some(machine_ns), false) = (self.cpu.machine_ns, known) {
            watched.cpu.niced_ns = Some(whole_ns.saturating_sub(machine_ns));
        }
        watched
    }

    /// Of several servers the first alone is watched. Its sessions stand for those of all; what it and its device did in
    /// sum cannot be set against the transactions of all.
    pub fn of_first(self, place: &str) -> Watched {
        let alone = format!("of several servers only the first was watched, {place}");
        let mut unseen = self.unseen;
        unseen.push(format!("{NOT_COUNTED}{alone}"));
        unseen.push(format!(
            "what servers took of processors and devices, and their counters: {alone}; its sessions stand for all"
        ));
        let cpu = CpuTimes { server_ns: None, ..self.cpu };
        Watched { cpu, syncs: None, device: None, counters: None, block_delay_ns: None, unseen, ..self }
    }
}

impl SyncUse {
    /// The share of so much time in which they were watched for.
    pub fn share(&self, elapsed_ns: u64) -> f64 {
        match self.watched_ns {
            0 => 1.0,
            watched_ns => (watched_ns as f64 / elapsed_ns.max(1) as f64).min(1.0),
        }
    }

    /// How many there were in so much time, by those that were seen.
    pub fn total(&self, elapsed_ns: u64) -> f64 {
        self.count as f64 / self.share(elapsed_ns)
    }
}

/// What the device did; rates over the whole run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceUse {
    /// The kernel's name.
    pub name: String,
    /// Whether the data are in memory (tmpfs, ramfs): there is no device then, and all rates are 0.
    pub is_memory: bool,
    /// Share of the time with a request in flight, 0 to 1.
    pub util: f64,
    /// Reads per second.
    pub reads_per_second: f64,
    /// Mean time of a read in the block layer.
    pub read_ns: f64,
    /// Writes per second.
    pub writes_per_second: f64,
    /// Mean time of a write in the block layer.
    pub write_ns: f64,
    /// Flushes per second.
    pub flushes_per_second: f64,
    /// Bytes written per second.
    pub write_bytes_per_second: f64,
    /// Where the requests' time went, by programs in the kernel: from a request's making to its handing over to the
    /// device, and from there to its end; means.
    pub stages: Option<(f64, f64)>,
}

/// Counts of the server over the run, each `None` where the server has no such counter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Syncs of log and data files.
    pub syncs: Option<u64>,
    /// Pages read from files (PostgreSQL: from the kernel, whose page cache may have had them).
    pub page_reads: Option<u64>,
    /// Data pages written.
    pub page_writes: Option<u64>,
    /// Bytes of log written.
    pub log_bytes: Option<u64>,
    /// Times a session had to wait for a row.
    pub lock_waits: Option<u64>,
    /// Deadlocks.
    pub deadlocks: Option<u64>,
    /// Times a session had to wait for a free page, or wrote a dirty one itself to get it.
    pub free_page_waits: Option<u64>,
    /// Times a session had to wait for room in the log.
    pub log_waits: Option<u64>,
    /// Checkpoints that the size of the log forced.
    pub forced_checkpoints: Option<u64>,
    /// Age of the checkpoint at the worst look, as a share of what the log holds.
    pub checkpoint_age: Option<f64>,
    /// InnoDB: share of the looks at which its log was as good as full, so that writing waits for a checkpoint.
    pub log_full: Option<f64>,
    /// Whole pages put into the log because a checkpoint went before.
    pub log_page_images: Option<u64>,
}

impl TaskTimes {
    /// Neither on a processor nor waiting for one.
    pub fn off_ns(&self) -> u64 {
        self.total_ns.saturating_sub(self.on_ns + self.queued_ns)
    }
}

impl Sessions {
    /// Samples in all.
    pub fn samples(&self) -> u64 {
        self.waits.values().sum()
    }

    /// Share of all samples.
    pub fn share(&self, wait: Wait) -> f64 {
        let all = self.samples().max(1) as f64;
        self.waits.get(&wait).copied().unwrap_or(0) as f64 / all
    }

    /// Share of those that wait for a lock whose queue begins at a session that does this.
    pub fn root_share(&self, wait: Wait) -> f64 {
        let all = self.roots.values().sum::<u64>().max(1) as f64;
        self.roots.get(&wait).copied().unwrap_or(0) as f64 / all
    }
}
