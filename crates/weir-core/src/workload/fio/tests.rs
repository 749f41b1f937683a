//! fio job files and what they come to.

use std::path::PathBuf;

use super::*;
use crate::units::{Bytes, Nanos};
use crate::workload::spec::{
    Access, Arrival, BlockSize, Data, Distribution, EngineKind, OpenSync, Rate, SyncMode, SyncPolicy, Target,
};

const DATABASE: &str = "
; a database and its log
[global]
directory=/srv/test
ioengine=libaio
direct=1
runtime=60
time_based
group_reporting
ramp_time=5s   ; not counted

[pages]
rw=randrw
rwmixread=70
bs=16k
size=8G
nrfiles=4
iodepth=32
iodepth_batch_submit=8
numjobs=2
random_distribution=zipf:1.2
thinktime=10

[log]
stonewall
rw=write
bs=4K
size=1G
fdatasync=1
rate_iops=500
rate_process=poisson
";

fn fio_job() -> Job {
    let sync = SyncPolicy { every: 0, mode: SyncMode::Fsync, at_end: false };
    Job { sync, invalidate: true, ..Job::default() }
}

fn files(name: &str, count: u32, size: u64) -> Target {
    Target::Files {
        dir: PathBuf::from("/srv/test"),
        prefix: format!("weir-fio-{name}"),
        count,
        size: Bytes(size),
        keep: false,
    }
}

#[test]
fn a_database_job_file_means_the_same() {
    let imported = import(DATABASE);
    let both = Job {
        direct: true,
        invalidate: false,
        duration: Nanos::from_secs(60),
        warmup: Nanos::from_secs(5),
        ..fio_job()
    };
    let pages = Job {
        name: "pages".to_string(),
        target: files("pages", 8, 2 << 30),
        access: Access::Random(Distribution::Zipf(1.2)),
        read_percent: 70.0,
        block: BlockSize::Fixed(Bytes(16384)),
        engine: EngineKind::Libaio,
        depth: 32,
        threads: 2,
        ..both.clone()
    };
    let log = Job {
        name: "log".to_string(),
        target: files("log", 1, 1 << 30),
        access: Access::Sequential,
        read_percent: 0.0,
        engine: EngineKind::Libaio,
        sync: SyncPolicy { every: 1, mode: SyncMode::Fdatasync, at_end: false },
        rate: Some(Rate { iops: 500.0, arrival: Arrival::Poisson }),
        after_previous: true,
        ..both
    };
    assert_eq!(imported.jobs, [pages, log]);
    assert_eq!(imported.unsupported, ["[pages] thinktime=10"]);
    assert_eq!(imported.notes.len(), 1, "{:?}", imported.notes);
}

/// One section with these lines, on top of `rw=randwrite`, `size=1m` and `directory`.
fn one(lines: &str) -> (Job, Vec<String>) {
    let text = format!("[a]\ndirectory=/srv/test\nrw=randwrite\nsize=1m\nnorandommap\n{lines}\n");
    let mut imported = import(&text);
    assert_eq!(imported.jobs.len(), 1, "{lines}: {imported:?}");
    (imported.jobs.remove(0), imported.unsupported)
}

#[test]
fn single_keys_mean_what_fio_means() {
    let base = Job {
        name: "a".to_string(),
        target: files("a", 1, 1 << 20),
        read_percent: 0.0,
        duration: Nanos(0),
        operations: 256,
        ..fio_job()
    };
    let with = |change: fn(&mut Job)| {
        let mut job = base.clone();
        change(&mut job);
        job
    };
    let direct = |job: &mut Job| (job.direct, job.invalidate) = (true, false);
    let cases: [(&str, Job); 32] = [
        ("", base.clone()),
        ("runtime=2m", with(|job| job.duration = Nanos::from_secs(120))),
        ("io_size=64k", with(|job| job.operations = 16)),
        ("loops=3", with(|job| job.operations = 768)),
        ("number_ios=5", with(|job| job.operations = 5)),
        (
            "size=4Ki\nbs=100",
            with(|job| {
                // With fio's default kb_base=1024, Ki is 1000.
                (job.target, job.operations, job.duration) = (files("a", 1, 4000), 40, Nanos(0));
                job.block = BlockSize::Fixed(Bytes(100));
            }),
        ),
        ("bs=8k,8k,", with(|job| (job.block, job.operations) = (BlockSize::Fixed(Bytes(8192)), 128))),
        ("bs=8k,8k", with(|job| (job.block, job.operations) = (BlockSize::Fixed(Bytes(8192)), 128))),
        (
            "bssplit=4k/75:16k/",
            with(|job| {
                job.block = BlockSize::Split(vec![(Bytes(4096), 75.0), (Bytes(16384), 25.0)]);
                job.operations = 146;
            }),
        ),
        ("fsync=4", with(|job| job.sync.every = 4)),
        ("end_fsync=1", with(|job| job.sync.at_end = true)),
        ("sync=dsync", with(|job| job.open_sync = OpenSync::Dsync)),
        ("sync=1", with(|job| job.open_sync = OpenSync::Sync)),
        ("buffered=0", with(direct)),
        ("buffered=1\ndirect=1", with(direct)),
        ("direct=1\nbuffered=1", base.clone()),
        ("buffered=0\ndirect=0", base.clone()),
        ("invalidate=1", base.clone()),
        ("invalidate=0", with(|job| job.invalidate = false)),
        ("rw=randrw\nrwmixread=70\nrwmixwrite=60", with(|job| job.read_percent = 40.0)),
        ("rw=randrw\nrwmixwrite=60\nrwmixread=70", with(|job| job.read_percent = 70.0)),
        ("zero_buffers", with(|job| job.data = Data::Zero)),
        ("buffer_compress_percentage=40", with(|job| job.data = Data::Compressible(40.0))),
        ("randseed=9", with(|job| job.seed = 9)),
        ("ioengine=sync\niodepth=8", base.clone()),
        ("ioengine=io_uring\niodepth=8", with(|job| (job.engine, job.depth) = (EngineKind::IoUring, 8))),
        (
            "random_distribution=pareto:0.3",
            with(|job| job.access = Access::Random(Distribution::Pareto(0.3))),
        ),
        ("rw=randread\nfsync=1", with(|job| job.read_percent = 100.0)),
        (
            "filename=/dev/sdx\nsize=2m",
            with(|job| {
                job.target = Target::Device { path: PathBuf::from("/dev/sdx"), size: Bytes(2 << 20) };
                job.operations = 512;
            }),
        ),
        (
            "filename=x",
            with(|job| {
                job.target = Target::File { path: PathBuf::from("/srv/test/x"), size: Bytes(1 << 20) };
            }),
        ),
        (
            "offset=5000",
            with(|job| (job.target, job.offset) = (files("a", 1, (1 << 20) + 8192), Bytes(8192))),
        ),
        (
            "rw=randrw\nrwmixread=75\nrate_iops=300\nnumjobs=2",
            with(|job| {
                (job.read_percent, job.threads, job.operations) = (75.0, 2, 512);
                job.target = files("a", 2, 1 << 20);
                job.rate = Some(Rate { iops: 800.0, arrival: Arrival::Constant });
            }),
        ),
    ];
    for (lines, expected) in cases {
        assert_eq!(one(lines), (expected, vec![]), "{lines}");
    }
}

#[test]
fn what_is_not_taken_is_named_with_its_section() {
    for (line, named) in [
        ("verify=crc32c", "[a] verify=crc32c"),
        ("thinktime=5ms", "[a] thinktime=5ms"),
        ("bs=4k,8k", "[a] bs=4k,8k"),
        ("bs=16k,", "[a] bs=16k,"),
        ("blocksize=16k,,16k", "[a] blocksize=16k,,16k"),
        ("bssplit=4k/50:8k/50,", "[a] bssplit=4k/50:8k/50,"),
        ("size=50%", "[a] size=50%"),
        ("ioengine=rados", "[a] ioengine=rados"),
        ("directory=/a:/b", "[a] directory=/a:/b"),
        ("filename=${TARGET}", "[a] filename=${TARGET}"),
        ("random_distribution=zoned:50/10:50/90", "[a] random_distribution=zoned:50/10:50/90"),
        ("rw=randwrite:8", "[a] rw=randwrite:8: without the part after the colon"),
        ("rate_iops=fast", "[a] rate_iops=fast"),
    ] {
        assert!(one(line).1.iter().any(|what| what == named), "{line}: {:?}", one(line).1);
    }
    for (text, reason) in [
        ("[t]\nrw=randtrim\nsize=1m", "[t] rw=randtrim: the job is left out"),
        (
            "[t]\nrw=randread\nsize=1m\nbs=1000\ndirect=1",
            "[t]: the job is left out: O_DIRECT moves whole sectors",
        ),
        ("[t]\nrw=randread\nsize=1k", "does not fit into a file of 1 KiB"),
        ("include other.fio\n[t]\nrw=trim\nsize=1m", "`include other.fio`: other files are not read"),
    ] {
        let imported = import(text);
        assert!(imported.jobs.is_empty(), "{text}: {imported:?}");
        assert!(imported.unsupported.iter().any(|what| what.contains(reason)), "{text}: {imported:?}");
    }
}

#[test]
fn blocks_that_fio_visits_once_are_noted() {
    for (lines, notes) in [("", 1), ("softrandommap", 1), ("norandommap=0", 1), ("norandommap", 0)] {
        let imported = import(&format!("[a]\nrw=randread\nsize=1m\n{lines}\n"));
        assert_eq!(imported.notes.len(), notes, "{lines}: {:?}", imported.notes);
        assert!(imported.unsupported.is_empty(), "{lines}: {imported:?}");
    }
}

#[test]
fn sections_of_the_same_name_are_told_apart() {
    let imported = import("[a]\nsize=1m\n[a]\nsize=1m\n[a]\nsize=1m\n");
    let names: Vec<&str> = imported.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["a", "a-2", "a-3"]);
    assert_ne!(imported.jobs[0].target, imported.jobs[1].target);
}

proptest::proptest! {
    #[test]
    fn no_text_brings_the_import_down(text in "(\\[[a-z]{1,6}\\]\n|(rw|bs|bssplit|size|offset|rate_iops|iodepth|numjobs|runtime|filename)=[0-9a-z/.:,%$]{0,10}\n){0,10}") {
        let _ = import(&text);
    }
}
