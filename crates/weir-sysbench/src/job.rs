//! A fileio run as one of weir's jobs.

use std::path::PathBuf;

use super::args::Settings;
use super::fileio::{Fileio, IoMode, TestMode};
use weir_core::units::{Bytes, Nanos};
use weir_core::workload::Job;
use weir_core::workload::spec::{
    Access, Arrival, BlockSize, Data, Distribution, EngineKind, OpenSync, Rate, SyncPolicy, Target,
};

/// The job of a run. The stream itself ends it after `--events`, because it alone knows what counts as an event.
pub fn job(settings: &Settings, seed: u64) -> Job {
    let (general, fileio) = (&settings.general, &settings.fileio);
    let (engine, depth) = match fileio.io_mode {
        IoMode::Sync => (EngineKind::Psync, 1),
        IoMode::Async { backlog } => (EngineKind::Libaio, backlog),
        IoMode::Mmap => (EngineKind::Mmap, 1),
    };
    let mode = fileio.test_mode.unwrap_or(TestMode::RandomRead);
    let rate = f64::from(general.rate);
    Job {
        name: "fileio".to_string(),
        target: Target::Files {
            dir: PathBuf::from("."),
            prefix: "test_file".to_string(),
            count: fileio.files,
            size: Bytes(fileio.file_size),
            keep: true,
        },
        access: if mode.is_sequential() { Access::Sequential } else { Access::Random(Distribution::Uniform) },
        read_percent: read_percent(mode, fileio),
        block: BlockSize::Fixed(Bytes(if mode.is_sequential() {
            fileio.request_size
        } else {
            fileio.block_size
        })),
        engine,
        depth,
        threads: general.threads,
        direct: fileio.flags.direct,
        open_sync: match (fileio.flags.sync, fileio.flags.dsync) {
            (true, _) => OpenSync::Sync,
            (false, true) => OpenSync::Dsync,
            (false, false) => OpenSync::None,
        },
        sync: SyncPolicy {
            every: if fileio.fsync.all { 1 } else { fileio.fsync.frequency },
            mode: fileio.fsync.mode,
            at_end: fileio.fsync.end && !mode.reads_only(),
        },
        rate: (rate > 0.0).then_some(Rate { iops: rate, arrival: Arrival::Poisson }),
        duration: Nanos::from_secs(general.time_s),
        operations: 0,
        seed,
        data: Data::Random,
        verify: general.validate,
        ..Job::default()
    }
}

fn read_percent(mode: TestMode, fileio: &Fileio) -> f64 {
    match mode {
        TestMode::SequentialRead | TestMode::RandomRead => 100.0,
        TestMode::RandomMixed => {
            let ratio = f64::from(fileio.rw_ratio);
            100.0 * ratio / (1.0 + ratio)
        }
        _ => 0.0,
    }
}
