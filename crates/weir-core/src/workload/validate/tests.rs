//! Each impossible combination is refused in its own words, and each is one step away from a job that is admitted.

use std::path::PathBuf;

use super::*;
use crate::units::Nanos;
use crate::workload::spec::{Arrival, Rate, SyncPolicy};

fn writer() -> Job {
    Job { read_percent: 50.0, direct: true, ..Job::default() }
}

#[test]
fn impossible_combinations_are_refused() {
    let sync = |mode| SyncPolicy { every: 1, mode, at_end: false };
    let rate = |iops| Some(Rate { iops, arrival: Arrival::Constant });
    let random = |distribution| Access::Random(distribution);
    let fixed = |bytes| BlockSize::Fixed(Bytes(bytes));
    let small = || Target::File { path: PathBuf::from("a"), size: Bytes(8192) };
    let null = || Target::Null { size: Bytes(1 << 20) };
    let mmap = || Job { engine: EngineKind::Mmap, direct: false, ..writer() };
    for (job, words) in [
        (Job { threads: 0, ..writer() }, "0 threads"),
        (Job { depth: 0, ..writer() }, "a depth of 0"),
        (Job { depth: 40_000, ..writer() }, "40000 operations in flight"),
        (Job { depth: 32_768, threads: 33, ..writer() }, "on 33 threads are too many"),
        (Job { depth: 2, ..writer() }, "a depth of 2 has no effect with psync"),
        (Job { depth: 2, ..mmap() }, "a depth of 2 has no effect with mmap"),
        (Job { read_percent: -0.1, ..writer() }, "a share of -0.1 % reads"),
        (Job { read_percent: f64::NAN, ..writer() }, "a share of NaN % reads"),
        (Job { rate: rate(0.0), ..writer() }, "a rate of 0 per second"),
        (Job { rate: rate(f64::INFINITY), ..writer() }, "a rate of inf per second"),
        (Job { data: Data::Compressible(101.0), ..writer() }, "compressible to 101 %"),
        (Job { block: fixed(0), ..writer() }, "a block of 0 bytes"),
        (Job { block: fixed(1000), ..writer() }, "O_DIRECT moves whole sectors"),
        (Job { block: fixed(2 << 30), ..writer() }, "more than one system call"),
        (Job { block: fixed(16384), target: small(), ..writer() }, "does not fit into a file of 8 KiB"),
        (
            Job { block: fixed(8192), offset: Bytes(8192), target: small(), ..writer() },
            "after its first 8 KiB",
        ),
        (Job { offset: Bytes(512), ..writer() }, "an offset of 512 B is not a multiple"),
        (Job { block: BlockSize::Split(vec![]), ..writer() }, "needs a weight above 0"),
        (Job { block: BlockSize::Split(vec![(Bytes(4096), 0.0)]), ..writer() }, "needs a weight above 0"),
        (Job { access: random(Distribution::Zipf(0.0)), ..writer() }, "zipf cannot have an exponent of 0"),
        (Job { access: random(Distribution::Pareto(1.0)), ..writer() }, "pareto cannot have a share of 1"),
        (Job { access: random(Distribution::Gaussian(2.0)), ..writer() }, "gaussian cannot have"),
        (
            Job { access: random(Distribution::Hot { blocks: 0.0, accesses: 0.5 }), ..writer() },
            "hot cannot give",
        ),
        (Job { iopoll: true, ..writer() }, "iopoll is a mode of io_uring"),
        (
            Job { iopoll: true, engine: EngineKind::IoUring, direct: false, ..writer() },
            "iopoll needs O_DIRECT",
        ),
        (
            Job { iopoll: true, engine: EngineKind::IoUring, sync: sync(SyncMode::Fdatasync), ..writer() },
            "takes no fsync",
        ),
        (Job { direct: true, ..mmap() }, "mmap goes through the page cache"),
        (Job { engine: EngineKind::Null, ..writer() }, "the null target belong together"),
        (Job { target: null(), ..writer() }, "the null target belong together"),
        (Job { read_percent: 100.0, sync: sync(SyncMode::Fsync), ..writer() }, "nothing to sync"),
        (
            Job { read_percent: 100.0, open_sync: OpenSync::Sync, ..writer() },
            "no effect on a job that only reads",
        ),
        (Job { sync: sync(SyncMode::RwfDsync), ..mmap() }, "RWF_DSYNC is a flag of a write call"),
        (Job { sync: sync(SyncMode::SyncFileRange), ..mmap() }, "a mapping has no sync_file_range"),
        (Job { open_sync: OpenSync::Dsync, ..mmap() }, "no effect on a mapping"),
        (
            Job { verify: true, block: BlockSize::Split(vec![(Bytes(4096), 1.0)]), ..writer() },
            "verify checks whole",
        ),
        (Job { verify: true, block: fixed(256), direct: false, ..writer() }, "verify needs space"),
        (Job { verify: true, engine: EngineKind::Null, target: null(), ..writer() }, "the null engine keeps"),
        (Job { verify: true, data: Data::Zero, ..writer() }, "the data cannot be zero"),
        (Job { verify: true, read_percent: 100.0, ..writer() }, "this job writes nothing"),
    ] {
        let error = super::job(&job).unwrap_err();
        assert!(error.what.contains(words), "{words}: {error}");
        assert!(error.hint.is_some(), "{error}");
    }
}

#[test]
fn possible_combinations_are_admitted() {
    let dsync = SyncPolicy { every: 1, mode: SyncMode::RwfDsync, at_end: false };
    let libaio = Job { engine: EngineKind::Libaio, depth: 32, ..writer() };
    for job in [
        Job::default(),
        writer(),
        Job { sync: dsync, ..libaio.clone() },
        Job { verify: true, ..libaio },
        Job { engine: EngineKind::IoUring, iopoll: true, depth: 128, ..writer() },
        Job { engine: EngineKind::IoUring, iopoll: true, sync: dsync, ..writer() },
        Job {
            engine: EngineKind::Null,
            depth: 128,
            target: Target::Null { size: Bytes(1 << 30) },
            ..writer()
        },
        Job { engine: EngineKind::Mmap, direct: false, block: BlockSize::Fixed(Bytes(100)), ..writer() },
        Job { duration: Nanos(0), ..writer() },
    ] {
        assert_eq!(super::job(&job), Ok(()), "{job:?}");
    }
}

#[test]
fn jobs_that_share_files_must_agree() {
    let named = |name: &str| Job { name: name.to_string(), ..writer() };
    let files = |prefix: &str, count| Target::Files {
        dir: PathBuf::from("."),
        prefix: prefix.to_string(),
        count,
        size: Bytes(1 << 20),
        keep: false,
    };
    let one = Job { target: files("a", 1), ..named("one") };
    let verified = |prefix| Job { target: files(prefix, 1), verify: true, ..named("three") };
    for (other, words) in [
        (Job { target: files("a", 1), ..named("two") }, None),
        (Job { target: files("a", 2), ..named("two") }, Some("`one` and `two` use the same files")),
        (verified("a"), Some("`one` and `three` share files")),
        (verified("b"), None),
    ] {
        let told = together(&[one.clone(), other]).map_err(|error| error.what);
        match words {
            None => assert_eq!(told, Ok(())),
            Some(words) => assert!(told.as_ref().is_err_and(|what| what.contains(words)), "{told:?}"),
        }
    }
}
