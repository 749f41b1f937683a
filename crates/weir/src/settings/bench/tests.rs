//! Command lines and what they mean.

use clap::Parser;
use weir_core::units::{Bytes, Nanos};
use weir_core::workload::spec::{Access, Arrival, Distribution, EngineKind, Rate, SyncMode, SyncPolicy};

use super::*;

#[derive(Parser)]
struct Typed {
    #[command(flatten)]
    args: Args,
}

fn typed(line: &str, source: Source) -> anyhow::Result<BenchSettings> {
    let words = std::iter::once("bench").chain(line.split_whitespace());
    bench(Typed::try_parse_from(words)?.args, source)
}

fn settings_over(line: &str, source: Source) -> BenchSettings {
    typed(line, source).unwrap_or_else(|error| panic!("{line}: {error:#}"))
}

fn settings(line: &str) -> BenchSettings {
    settings_over(line, Source::Flags(None))
}

fn job_file(text: &str) -> Source {
    Source::JobFile { path: PathBuf::from("jobs.toml"), text: text.to_string() }
}

fn fio_file(text: &str, absent: &[&str]) -> Source {
    let absent = absent.iter().map(PathBuf::from).collect();
    Source::Fio { path: PathBuf::from("old.fio"), imported: fio::import(text), absent }
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
        (
            "--engine mmap",
            Job { engine: EngineKind::Mmap, direct: false, invalidate: true, ..default.clone() },
        ),
        ("--direct=false", Job { direct: false, invalidate: true, ..default.clone() }),
        ("--direct=false --invalidate=false", Job { direct: false, ..default.clone() }),
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
fn a_path_alone_never_means_writes() {
    let source = Source::Flags(Some(Place::File(PathBuf::from("/x"))));
    let job = settings_over("", source).jobs.remove(0);
    assert_eq!(job.target, Target::File { path: PathBuf::from("/x"), size: Bytes(0) });
    assert_eq!(job.read_percent, 100.0);
}

#[test]
fn flags_overrule_a_job_file() {
    let text = "[defaults]\nsize = \"2M\"\nfiles = 3\n[[job]]\ndistribution = \"zipf:2\"\n[[job]]\nread-percent = 0\n";
    let jobs = settings_over("--rw read --duration 1s --file /x", job_file(text)).jobs;
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
    let text = "[a]\nfilename=/y/data\nrw=randread\nsize=1m\nruntime=5\nverify=md5\n";
    let imported = settings_over("--bs 8k", fio_file(text, &["/y/data"]));
    assert_eq!(imported.jobs[0].block, BlockSize::Fixed(Bytes(8192)));
    assert!(matches!(&imported.jobs[0].target, Target::Files { prefix, .. } if prefix == "data"));
    let notes = imported.notes.join("\n");
    assert!(notes.contains("[a] verify=md5") && notes.contains("does not exist"), "{notes}");
    let there = settings_over("", fio_file(text, &[]));
    assert!(matches!(&there.jobs[0].target, Target::File { .. }));
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
fn a_recording_says_which_operations_and_flags_say_where_and_how() {
    let typed = settings(
        "--replay a --dir /d --speed 2 --space scale --from 2s --to 3s --replay-device sda --depth 9",
    );
    let replay = typed.replay.unwrap();
    let rules = Rules { speed: 2.0, space: Some(Space::Scale), gap_ns_max: GAP_MAX.0 };
    assert_eq!((replay.rules, replay.window_ns), (rules, (2_000_000_000, Some(3_000_000_000))));
    assert_eq!((replay.device.as_deref(), replay.depth, replay.has_size), (Some("sda"), Some(9), false));
    let job = &typed.jobs[0];
    assert_eq!((job.engine, job.duration, job.sync.at_end), (EngineKind::IoUring, Nanos(0), false));
    assert_eq!((job.name.as_str(), job.direct), ("replay", true));
    let stated = settings("--replay a --engine libaio --size 2G --gap-max 1s --duration 5s --name b");
    let replay = stated.replay.unwrap();
    assert_eq!((replay.rules.speed, replay.rules.space, replay.has_size), (1.0, None, true));
    assert_eq!((stated.jobs[0].engine, stated.jobs[0].name.as_str()), (EngineKind::Libaio, "b"));
    for line in
        ["--speed 2", "--replay a --rw read", "--replay a --rate 5", "--replay a --print-job", "--from 1s"]
    {
        let error = self::typed(line, Source::Flags(None)).unwrap_err();
        assert!(error.is::<clap::Error>(), "{line}: {error:#}");
    }
}

#[test]
fn mistakes_are_usage_errors_with_hints() {
    let flags = || Source::Flags(None);
    for (line, source, words) in [
        ("--depth 4 --engine psync", flags(), "no effect with psync"),
        ("--arrival poisson", flags(), "poisson arrivals need a rate"),
        ("--rw read --distribution zipf", flags(), "needs random access"),
        ("--file x --keep", flags(), "do not go with a file"),
        ("--prefix a/b", flags(), "cannot begin the name"),
        ("--file x", Source::Flags(Some(Place::Dir(PathBuf::from(".")))), "another target"),
        ("--replay a --engine psync", flags(), "cannot play a recording"),
        ("--replay a", job_file("[[job]]\n"), "both the job file"),
        ("", job_file("[[job]]\nblok = 4\n"), "line 2: expected a known key of a job, got `blok`"),
        ("", job_file("\n[[job]]\nengine = \"psync\"\ndepth = 4\n"), "line 2: a depth of 4 has no effect"),
        ("", fio_file("[a]\nrw=trim\n", &[]), "can be run"),
    ] {
        let error = typed(line, source).unwrap_err();
        assert!(format!("{error:#}").contains(words), "{line}: {error:#}");
        let usage = error.chain().find_map(|cause| cause.downcast_ref::<Usage>());
        assert!(usage.is_some_and(|usage| usage.hint.is_some()), "{line}: {error:#}");
    }
    for line in ["--engine io_urin", "--block 4q", "--dir a --device b", "--from-fio a b", "--frobnicate"] {
        assert!(typed(line, flags()).unwrap_err().is::<clap::Error>(), "{line}");
    }
}
