//! What job files mean, and how their mistakes are told.

use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::units::{Bytes, Nanos};
use crate::workload::spec::{
    Access, Arrival, BlockSize, Data, Distribution, EngineKind, OpenSync, Rate, SyncMode, SyncPolicy, Target,
};

const TWO_JOBS: &str = r#"
[defaults]
dir = "/srv/test"
size = "4G"
duration = "30s"

[[job]]
name = "pages"
distribution = "zipf:1.2"
read-percent = 70
block = "16k"
depth = 32
threads = 4

[[job]]
name = "redo log"
access = "sequential"
read-percent = 0
block = 512
size = "1G"
sync = { every = 1, mode = "fdatasync" }
rate = { iops = 1000, arrival = "poisson" }
after-previous = true
"#;

#[test]
fn keys_mean_what_they_say() {
    let jobs = parse(TWO_JOBS).unwrap();
    let files = |prefix: &str, size: u64| Target::Files {
        dir: PathBuf::from("/srv/test"),
        prefix: prefix.to_string(),
        count: 1,
        size: Bytes(size),
        keep: false,
    };
    let both = Job { direct: true, duration: Nanos::from_secs(30), ..Job::default() };
    let pages = Job {
        name: "pages".to_string(),
        target: files("weir-bench-pages", 4 << 30),
        access: Access::Random(Distribution::Zipf(1.2)),
        read_percent: 70.0,
        block: BlockSize::Fixed(Bytes(16384)),
        engine: EngineKind::IoUring,
        depth: 32,
        threads: 4,
        ..both.clone()
    };
    let redo = Job {
        name: "redo log".to_string(),
        target: files("weir-bench-redo-log", 1 << 30),
        access: Access::Sequential,
        read_percent: 0.0,
        block: BlockSize::Fixed(Bytes(512)),
        sync: SyncPolicy { every: 1, mode: SyncMode::Fdatasync, at_end: true },
        rate: Some(Rate { iops: 1000.0, arrival: Arrival::Poisson }),
        after_previous: true,
        ..both
    };
    assert_eq!(jobs, [pages, redo]);
}

#[test]
fn mistakes_name_line_key_and_what_was_meant() {
    for (text, line, what, hint) in [
        (
            "[[job]]\nname = \"a\"\nblok = \"4k\"\n",
            3,
            "expected a known key of a job, got `blok`",
            "did you \
            mean `block`?",
        ),
        (
            "[defaults]\n\nread_percent = 3\n[[job]]\n",
            3,
            "got `read_percent`",
            "did you mean `read-percent`?",
        ),
        (
            "[[job]]\nsync = { evry = 1 }\n",
            2,
            "expected a known key of sync, got `evry`",
            "did you mean \
            `every`?",
        ),
        ("[[jobs]]\n", 1, "got `jobs`", "did you mean `job`?"),
        ("block = \"4k\"\n", 1, "got `block`", "goes under [defaults] or [[job]]"),
        ("", 1, "the file has no job", "[[job]]"),
        ("[[job]]\ndepth = \"3\"\n", 2, "`depth` takes a whole number, not string", ""),
        ("[[job]]\ndepth = -3\n", 2, "`depth` cannot be -3", "from 0 up"),
        ("[[job]]\nthreads = 5000000000\n", 2, "`threads` cannot be 5000000000", ""),
        ("[[job]]\nduration = \"3 parsecs\"\n", 2, "`parsecs` is not one of", "a time such as"),
        ("[[job]]\ndir = \"a\"\nfile = \"b\"\n", 3, "one target", "one of dir, file and device"),
        ("[[job]]\nprefix = \"../x\"\n", 1, "cannot begin the name", "no slash"),
        ("[[job]]\nname = \"a\"\n\n[[job]]\nname = \"a\"\n", 4, "two jobs are called `a`", "name of its own"),
        ("[[job]]\n[[job]]\nengine = \"psync\"\ndepth = 4\n", 2, "a depth of 4 has no effect", "io_uring"),
        ("[[job]]\naccess = \"sequential\"\ndistribution = \"zipf\"\n", 1, "needs random access", ""),
        ("[[job]]\nname = \n", 2, "", "TOML"),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!(error.line, line, "{text}: {error:?}");
        assert!(error.what.contains(what), "{text}: {error:?}");
        assert!(error.hint.as_deref().unwrap_or_default().contains(hint), "{text}: {error:?}");
    }
}

fn jobs() -> impl Strategy<Value = Job> {
    let target = prop_oneof![
        ("[a-z/ \"\\\\]{1,12}", "[a-z-]{1,8}", 1u32..200, 1u64..1 << 20, any::<bool>()).prop_map(
            |(dir, prefix, count, blocks, keep)| Target::Files {
                dir: dir.into(),
                prefix,
                count,
                size: Bytes(blocks << 20),
                keep
            }
        ),
        "/[a-zé]{1,12}".prop_map(|path| Target::File { path: path.into(), size: Bytes(0) }),
        "/dev/[a-z]{1,12}".prop_map(|path| Target::Device { path: path.into(), size: Bytes(1 << 40) }),
    ];
    let access = prop_oneof![
        Just(Access::Sequential),
        Just(Access::Random(Distribution::Uniform)),
        (0.01f64..5.0).prop_map(|theta| Access::Random(Distribution::Zipf(theta))),
        (0.01f64..0.99, 0.0f64..1.0)
            .prop_map(|(blocks, accesses)| Access::Random(Distribution::Hot { blocks, accesses })),
    ];
    let block = prop_oneof![
        (1u64..64).prop_map(|sectors| BlockSize::Fixed(Bytes(sectors * 512))),
        prop::collection::vec(((1u64..64).prop_map(|sectors| Bytes(sectors * 512)), 0.01f64..100.0), 1..4)
            .prop_map(BlockSize::Split),
    ];
    let sync = prop_oneof![Just(SyncMode::Fsync), Just(SyncMode::RwfDsync), Just(SyncMode::SyncFileRange)];
    let rate = prop::option::of((1e-3f64..1e8).prop_map(|iops| Rate { iops, arrival: Arrival::Poisson }));
    let times = [any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>()];
    let data =
        prop_oneof![Just(Data::Random), Just(Data::Zero), (0.0f64..100.0).prop_map(Data::Compressible)];
    let numbers = (0.0f64..99.9, 1u32..4096, 1u32..256, any::<u64>(), any::<u64>(), 0u64..1000);
    (target, access, block, sync, rate, times, data, numbers, "[ -~]{1,20}", any::<[bool; 3]>()).prop_map(
        |(target, access, block, mode, rate, times, data, numbers, name, [direct, dsync, after_previous])| {
            Job {
                name,
                target,
                access,
                read_percent: numbers.0,
                block,
                engine: EngineKind::Libaio,
                depth: numbers.1,
                threads: numbers.2,
                direct,
                open_sync: if dsync { OpenSync::Dsync } else { OpenSync::None },
                sync: SyncPolicy { every: numbers.5, mode, at_end: direct },
                rate,
                late_after: Nanos(times[0].into()),
                duration: Nanos(u64::from(times[1]) * 1_000_000),
                operations: numbers.4 >> 1,
                warmup: Nanos(times[2].into()),
                ramp: Nanos(times[3].into()),
                seed: numbers.3 >> 1,
                data,
                after_previous,
                ..Job::default()
            }
        },
    )
}

proptest! {
    #[test]
    fn what_is_printed_is_what_is_parsed(job in jobs()) {
        let text = print(std::slice::from_ref(&job));
        prop_assert_eq!(parse(&text), Ok(vec![job.clone()]), "{}", text);
        prop_assert_eq!(Draft::of(&job).finish(), Ok(job));
    }

    #[test]
    fn no_text_brings_the_parser_down(text in "(\\[\\[?(job|defaults)\\]\\]?\n|[a-z-]{1,12} = [0-9a-z\"{}.:=,\\[\\]]{0,12}\n){0,8}") {
        let _ = parse(&text);
    }
}

/// The default of `invalidate` follows what is laid over a job; a departure from it stays.
#[test]
fn whether_the_cache_is_dropped_follows_direct_unless_stated() {
    for ([direct, invalidate], over, expected) in [
        ([true, false], Some(false), true),
        ([false, true], Some(true), false),
        ([false, true], None, true),
        ([false, false], None, false),
        ([false, false], Some(false), false),
        ([true, true], None, true),
    ] {
        let job = Job { direct, invalidate, ..Job::default() };
        let flags = Draft { direct: over, ..Draft::default() };
        let found = flags.over(&Draft::of(&job)).finish().unwrap();
        assert_eq!(found.invalidate, expected, "{direct} {invalidate} under {over:?}");
    }
}

#[test]
fn the_documentation_names_every_key() {
    let documented = include_str!("../../../../../docs/reference/jobfile.md");
    for key in keys::KEYS {
        assert!(
            documented.contains(&format!("| `{key}` |")),
            "docs/reference/jobfile.md does not document `{key}`"
        );
    }
    let examples: Vec<&str> =
        documented.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(examples.len() >= 3, "{} examples", examples.len());
    for example in examples {
        parse(example).unwrap_or_else(|error| panic!("{error}\n{example}"));
    }
}
