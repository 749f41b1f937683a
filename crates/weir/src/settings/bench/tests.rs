//! Command lines and what they mean.

use clap::Parser;
use tempfile::TempDir;
use weir_core::units::{Bytes, Nanos};
use weir_core::workload::spec::{Access, Arrival, Distribution, EngineKind, Rate, SyncMode, SyncPolicy};

use super::*;

#[derive(Parser)]
struct Typed {
    #[command(flatten)]
    args: Args,
}

fn typed(line: &str) -> anyhow::Result<BenchSettings> {
    let words = std::iter::once("bench").chain(line.split_whitespace());
    bench(Typed::try_parse_from(words)?.args)
}

fn settings(line: &str) -> BenchSettings {
    typed(line).unwrap_or_else(|error| panic!("{line}: {error:#}"))
}

/// The one job of a command line.
fn job(line: &str) -> Job {
    let mut jobs = settings(line).jobs;
    assert_eq!(jobs.len(), 1, "{line}");
    jobs.remove(0)
}

#[test]
fn flags_mean_what_the_help_says() {
    let default = Job { direct: true, ..Job::default() };
    let sequential = Access::Sequential;
    let commits = SyncPolicy { every: 1, mode: SyncMode::RwfDsync, at_end: false };
    for (line, expected) in [
        ("", default.clone()),
        ("--rw randrw", Job { read_percent: 50.0, ..default.clone() }),
        ("--rw rw --read-percent 70", Job { access: sequential, read_percent: 70.0, ..default.clone() }),
        ("--bs 16k", Job { block: BlockSize::Fixed(Bytes(16384)), ..default.clone() }),
        ("--depth 32", Job { depth: 32, engine: EngineKind::IoUring, ..default.clone() }),
        ("--engine mmap", Job { engine: EngineKind::Mmap, direct: false, ..default.clone() }),
        ("--direct=false", Job { direct: false, ..default.clone() }),
        ("--operations 500", Job { operations: 500, duration: Nanos(0), ..default.clone() }),
        (
            "--operations 500 --duration 5m",
            Job { operations: 500, duration: Nanos::from_secs(300), ..default.clone() },
        ),
        (
            "--rate 1000",
            Job { rate: Some(Rate { iops: 1000.0, arrival: Arrival::Constant }), ..default.clone() },
        ),
        (
            "--distribution hot:0.1:0.9",
            Job {
                access: Access::Random(Distribution::Hot { blocks: 0.1, accesses: 0.9 }),
                ..default.clone()
            },
        ),
        (
            "--rw write --sync-every 1 --sync-mode rwf_dsync --sync-at-end=false",
            Job { access: sequential, read_percent: 0.0, sync: commits, ..default.clone() },
        ),
        (
            "--engine null --size 1M --depth 64",
            Job {
                engine: EngineKind::Null,
                target: Target::Null { size: Bytes(1 << 20) },
                depth: 64,
                direct: false,
                ..default.clone()
            },
        ),
    ] {
        assert_eq!(job(line), expected, "{line}");
    }
    let all =
        settings("--flood dd --flood cp:rate=5M --format fio-json --i-know-this-destroys /dev/x --print-job");
    assert_eq!((all.floods.len(), all.format, all.print_job), (2, Format::FioJson, true));
    assert_eq!(all.destroys, [PathBuf::from("/dev/x")]);
}

#[test]
fn a_bare_path_is_what_it_is() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("data");
    fs::write(&file, "x").unwrap();
    let of_folder = job(&folder.path().display().to_string());
    assert!(matches!(of_folder.target, Target::Files { dir, .. } if dir == folder.path()));
    let of_file = job(&file.display().to_string());
    assert_eq!(of_file.target, Target::File { path: file.clone(), size: Bytes(0) });
    assert_eq!(of_file.read_percent, 100.0, "a path alone never means writes");
}

#[test]
fn flags_overrule_a_job_file() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("jobs.toml");
    let text = "[defaults]\nsize = \"2M\"\nfiles = 3\n[[job]]\ndistribution = \"zipf:2\"\n[[job]]\nread-percent = 0\n";
    fs::write(&path, text).unwrap();
    let jobs = settings(&format!("{} --rw read --duration 1s --file /x", path.display())).jobs;
    assert_eq!(jobs.len(), 2);
    for job in jobs {
        assert_eq!(
            (job.access, job.read_percent, job.duration),
            (Access::Sequential, 100.0, Nanos::from_secs(1))
        );
        assert_eq!(job.target, Target::File { path: PathBuf::from("/x"), size: Bytes(2 << 20) });
    }
}

#[test]
fn fio_files_come_with_notes() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("old.fio");
    let data = folder.path().join("data");
    let text = format!("[a]\nfilename={}\nrw=randread\nsize=1m\nruntime=5\nverify=md5\n", data.display());
    fs::write(&path, text).unwrap();
    let imported = settings(&format!("--from-fio {} --bs 8k", path.display()));
    assert_eq!(imported.jobs[0].block, BlockSize::Fixed(Bytes(8192)));
    assert!(matches!(&imported.jobs[0].target, Target::Files { prefix, .. } if prefix == "data"));
    let notes = imported.notes.join("\n");
    assert!(notes.contains("[a] verify=md5") && notes.contains("does not exist"), "{notes}");
}

#[test]
fn sizes_are_rounded_to_whole_blocks_and_it_is_said() {
    let settings = settings("--size 10000 --block 4k");
    assert!(matches!(settings.jobs[0].target, Target::Files { size: Bytes(8192), .. }));
    assert_eq!(
        settings.notes,
        ["job: files of 8192 bytes instead of 10000, a whole number of blocks of 4096"]
    );
}

#[test]
fn mistakes_are_usage_errors_with_hints() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let bad_key = write("key.toml", "[[job]]\nblok = 4\n");
    let bad_job = write("job.toml", "\n[[job]]\nengine = \"psync\"\ndepth = 4\n");
    let no_job = write("none.fio", "[a]\nrw=trim\n");
    for (line, words) in [
        ("--depth 4 --engine psync", "no effect with psync"),
        ("--arrival poisson", "poisson arrivals need a rate"),
        ("--rw read --distribution zipf", "needs random access"),
        ("--file x --keep", "do not go with a file"),
        ("--prefix a/b", "cannot begin the name"),
        (". --file x", "another target"),
        (&bad_key, "line 2: expected a known key of a job, got `blok`"),
        (&bad_job, "line 2: a depth of 4 has no effect"),
        (&format!("--from-fio {no_job}"), "can be run"),
    ] {
        let error = typed(line).unwrap_err();
        assert!(format!("{error:#}").contains(words), "{line}: {error:#}");
        let usage = error.chain().find_map(|cause| cause.downcast_ref::<Usage>());
        assert!(usage.is_some_and(|usage| usage.hint.is_some()), "{line}: {error:#}");
    }
    for line in ["/nowhere/at/all", "/nowhere/jobs.toml"] {
        assert!(typed(line).unwrap_err().is::<Lacking>(), "{line}");
    }
    for line in ["--engine io_urin", "--block 4q", "--dir a --device b", "--from-fio a b", "--frobnicate"] {
        assert!(typed(line).unwrap_err().is::<clap::Error>(), "{line}");
    }
}
