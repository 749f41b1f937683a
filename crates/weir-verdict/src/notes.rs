//! What the doctor keeps in [`weir_core::result::Record::extra`] beside the jobs: which step each job was, the flood's
//! timeline, and what was left out and why. Together with the jobs and conditions it is all a report needs.

use serde::{Deserialize, Serialize};

use super::doctor::{FloodPhase, FloodSample, PhaseKind};
use super::map::{self, MapNotes};
use super::products::Product;
use super::sustained::{Part, Pressure, SustainedNotes};
use weir_blocktrace::StageTable;
use weir_core::units::{Bytes, Nanos};
use weir_oltp::Dialect;

/// Value of [`DoctorNotes::schema`] that this version writes.
pub const SCHEMA: &str = "weir.doctor-notes/1";

/// The kind of records that hold an examination.
pub const KIND: &str = "doctor";

/// The doctor's own notes of one examination.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DoctorNotes {
    /// Always [`SCHEMA`] when written by this version.
    pub schema: String,
    /// The folder examined.
    pub path: String,
    /// `quick`, `default` or `thorough`.
    pub mode: String,
    /// Time it was meant to take at most.
    pub budget_ns: u64,
    /// Time it took.
    pub elapsed_ns: u64,
    /// Size of the test file as written.
    pub file_size: Bytes,
    /// What others did while weir looked on, before it measured.
    pub others: Others,
    /// What each job was for, in the order of the record's jobs.
    pub steps: Vec<StepNote>,
    /// The flood's timeline; empty where there was none.
    pub flood: FloodNotes,
    /// Steps left out, and why.
    pub skipped: Vec<Skipped>,
    /// Bars the user stated.
    pub bars: Vec<Bar>,
    /// Why stages could not be seen, where they could not.
    pub stages_unseen: Option<String>,
    /// Database servers whose data lie on the file system that was examined.
    pub databases: Vec<DatabaseNote>,
    /// The product whose workload was run instead of the general one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub product: Option<Product>,
    /// What a sustained examination notes besides, where it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sustained: Option<SustainedNotes>,
    /// What a map notes besides, where it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub map: Option<MapNotes>,
}

/// A database server that ran meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseNote {
    /// Whose protocol it speaks.
    pub family: Dialect,
    /// Where its data lie.
    pub data_dir: String,
}

/// What others did to machine and device before anything was measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Others {
    /// How long weir looked; 0: it could not.
    pub observed_ns: u64,
    /// Their reads per second on the device; absent where the device cannot be seen.
    pub read_iops: Option<f64>,
    /// Their writes per second on the device.
    pub write_iops: Option<f64>,
    /// Their bytes per second on the device, reads and writes.
    pub bytes_per_second: Option<f64>,
    /// Share of all processors that was busy, 0..1.
    pub cpu_busy: f64,
    /// Dirty pages and pages under write-back.
    pub dirty: Bytes,
}

/// Which step a job was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepNote {
    /// Stable name: `read-4k-d32`.
    pub id: String,
    /// What it was for.
    pub kind: StepKind,
    /// Share of the time the device had a request in flight, 0..1 (iostat's %util); absent where not seen.
    #[serde(default)]
    pub utilization: Option<f64>,
    /// Stages of the I/O on the target's device while the step ran, others' included; absent where not seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stages: Option<StageTable>,
    /// Bytes written on the disks beneath for each one written to the target's device: 2 on two mirrored legs;
    /// absent where the device itself has requests, or nothing was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<f64>,
    /// Writes that the target's device took while the step ran; absent where it has requests of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes_above: Option<f64>,
}

/// What a step is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepKind {
    /// Writing the test file: sequential, direct, into a new file.
    Layout,
    /// A depth of the random-read curve.
    ReadDepth,
    /// A depth of a random-write curve.
    WriteDepth,
    /// Sequential reads.
    SequentialRead,
    /// Sequential writes over existing blocks.
    SequentialWrite,
    /// Small random writes, each made durable.
    Commit(SyncPath),
    /// Commits in a phase of the flood.
    Flood(PhaseKind),
    /// A product's step, or what runs beside it.
    Product,
    /// A step of a sustained examination.
    Sustained(Pressure, Part),
    /// A step of a map.
    Map(map::Part),
}

/// How a write is made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SyncPath {
    /// Page cache, then fdatasync.
    Buffered,
    /// O_DIRECT, then fdatasync.
    Direct,
    /// O_DIRECT and O_DSYNC: durable when the write returns.
    DirectDsync,
}

impl SyncPath {
    /// As people say it.
    pub fn title(self) -> &'static str {
        match self {
            SyncPath::Buffered => "write + fdatasync",
            SyncPath::Direct => "O_DIRECT write + fdatasync",
            SyncPath::DirectDsync => "O_DIRECT + O_DSYNC write",
        }
    }
}

/// What was seen of the flood.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FloodNotes {
    /// The phases, in order.
    pub phases: Vec<FloodPhase>,
    /// About one sample a second.
    pub samples: Vec<FloodSample>,
    /// Dirty pages at which write-back starts, when the flood began; 0: unknown.
    pub background_limit: Bytes,
    /// Dirty pages at which writers wait, when the flood began; 0: unknown.
    pub dirty_limit: Bytes,
    /// vm.dirty_ratio, vm.dirty_bytes and the background pair at the baseline, for the undo command:
    /// (`vm.dirty_ratio`, 20) …; zeros left out.
    pub limits_found: Vec<(String, u64)>,
    /// Why there was no flood or no rescue, and what else happened, in sentences.
    pub remarks: Vec<String>,
}

/// A step that was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// What would have been measured.
    pub what: String,
    /// Why it was not.
    pub why: String,
}

/// A bar: exit 1 if it is missed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bar {
    /// As typed: `commit-p99=5ms`.
    pub text: String,
    /// What must hold.
    pub rule: BarRule,
}

/// What a bar demands.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BarRule {
    /// 99th percentile of one thread's 16 KiB commits, at most.
    CommitP99(Nanos),
    /// Commits per second at several threads, at least.
    CommitIops(f64),
    /// Highest random-read IOPS, at least.
    ReadIops(f64),
    /// Highest random-write IOPS, at least.
    WriteIops(f64),
    /// Sequential reads, bytes per second, at least.
    ReadRate(Bytes),
    /// Sequential writes, bytes per second, at least.
    WriteRate(Bytes),
    /// Share of its idle commits that the flood leaves, percent, at least.
    FloodPercent(f64),
}
