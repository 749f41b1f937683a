//! Command lines and reports, against what sysbench 1.0.20 says and against the reports people published.

use proptest::prelude::*;

use super::args::{Request, Settings, parse};
use super::fileio::{ExtraFlags, IoMode, TestMode};
use super::fileio_report::{Counts, Cumulative, Share};
use super::log::{Kept, Log, Quit};
use super::stream::Stream;
use super::{HEADER, fileio_report, legacy, mode, options};
use weir_core::result::record::Class;
use weir_core::stats::Histogram;
use weir_core::workload::OpSource;
use weir_core::workload::spec::SyncMode;

const CONFIG: &str = "threads=3\nfile-num=2\nfile-test-mode=rndwr\nfile-total-size=1M\n";

fn parsed(line: &str) -> (Result<Request, Quit>, Kept) {
    let words: Vec<String> = line.split_whitespace().map(str::to_string).collect();
    let config = |path: &str| match path {
        "good.conf" => Ok(CONFIG.to_string()),
        "bad.conf" => Ok("threads='4\n".to_string()),
        "odd.conf" => Ok("treads=4\n".to_string()),
        _ => Err("No such file or directory".to_string()),
    };
    let mut kept = Kept::default();
    let request = parse(&words, &config, &mut Log::new(&mut kept));
    (request, kept)
}

fn run_settings(line: &str) -> Settings {
    match parsed(line) {
        (Ok(Request::Run(settings)), _) => settings,
        (other, kept) => panic!("{line}: {other:?}\n{}{}", kept.out, kept.err),
    }
}

/// stdout after the header, stderr; as sysbench 1.0.20 prints them.
#[test]
fn wrong_command_lines_are_answered_as_by_sysbench() {
    let early = [
        ("fileio run x", "", "Unrecognized command line argument: x\n"),
        ("--threads=abc fileio run", "", "Invalid value for the 'threads' option: 'abc'\n"),
        ("--threads fileio run", "FATAL: Invalid value for --threads: 0.\n\n", ""),
        ("--threads=-2 fileio run", "FATAL: Invalid value for --threads: -2.\n\n", ""),
        ("--report_interval=1s fileio run", "", "Invalid value for the 'report_interval' option: '1s'\n"),
        ("--percentile=101 fileio run", "FATAL: Invalid value for --percentile: 101\n", ""),
        (
            "--percentile=0 --histogram fileio run",
            "FATAL: --histogram cannot be used with --percentile=0\n",
            "",
        ),
        ("--verbosity=6 fileio run", "Invalid value for verbosity: 6\n", ""),
        ("--rand-type=zipfian fileio run", "FATAL: Invalid random numbers distribution: zipfian.\n", ""),
        ("--forced-shutdown=abc fileio run", "FATAL: Invalid value for --forced-shutdown: 'abc'\n", ""),
        ("--report-checkpoints=1,x fileio run", "FATAL: Invalid value for --report-checkpoints: 'x'\n", ""),
        ("--thread-stack-size=0 fileio run", "FATAL: Invalid value for thread-stack-size: 0.\n\n", ""),
        ("--config-file=bad.conf fileio run", "", "bad.conf: unexpected EOL on line 1\n"),
    ];
    for (line, out, err) in early {
        let (request, kept) = parsed(line);
        assert_eq!((request, kept.out.as_str(), kept.err.as_str()), (Err(Quit(1)), out, err), "{line}");
    }
    let late = [
        ("fileio", "", "The 'fileio' test requires a command argument. See 'sysbench fileio help'\n"),
        ("fileio foo", "", "Unknown command: foo\n"),
        ("fileio version", "", "Unknown command: version\n"),
        ("--bogus fileio run", "", "invalid option: --bogus\n"),
        ("-- fileio run", "", "invalid option: --\n"),
        ("fileio run --debug=maybe", "", "invalid option: --debug=maybe\n"),
        ("--file-num=0 fileio prepare", "FATAL: Invalid value for file-num: 0\n", ""),
        ("--file-num=x fileio prepare", "", "Invalid value for the 'file_num' option: 'x'\n"),
        ("--file-total-size=2.5G fileio prepare", "FATAL: Invalid value for file-total-size: 0\n", ""),
        ("--file-io-mode=foo fileio prepare", "FATAL: unknown I/O mode: foo\n", ""),
        ("--file-test-mode=foo fileio run", "FATAL: Invalid IO operations mode: foo.\n", ""),
        (
            "--file-extra-flags=sync,foo fileio prepare",
            "FATAL: Invalid value for file-extra-flags: sync\n",
            "",
        ),
        ("--file-fsync-mode=x fileio cleanup", "FATAL: Invalid fsync mode: x.\n", ""),
        ("--file-fsync-freq=-1 fileio cleanup", "FATAL: Invalid value for file-fsync-freq: -1.\n", ""),
        ("--file-rw-ratio=-1 fileio cleanup", "FATAL: Invalid value for --file-rw-ratio: -1.000000.\n", ""),
        (
            "--file-merged-requests=-1 fileio cleanup",
            "FATAL: Invalid value for file-merged-requests: -1.\n",
            "",
        ),
        ("--file-block-size=0 fileio cleanup", "FATAL: Invalid value for file-block-size: 0.\n", ""),
        (
            "--file-async-backlog=0 --file-io-mode=async --file-test-mode=rndrd fileio run",
            "FATAL: Invalid value of file-async-backlog: 0\n",
            "",
        ),
    ];
    for (line, out, err) in late {
        let (request, kept) = parsed(line);
        let out = format!("{HEADER}\n{out}");
        assert_eq!((request, kept.out, kept.err.as_str()), (Err(Quit(1)), out, err), "{line}");
    }
}

#[test]
fn other_tests_are_refused_by_name() {
    for line in ["cpu run", "memory run", "threads run", "mutex help", "", "- run"] {
        let (request, kept) = parsed(line);
        assert_eq!((request, kept.out), (Err(Quit(1)), format!("{HEADER}\n")), "{line}");
        assert!(kept.err.starts_with("weir "), "{line}: {}", kept.err);
    }
}

#[test]
fn version_and_help_print_and_end() {
    let (request, kept) = parsed("--version");
    assert_eq!((request, kept.out.as_str()), (Ok(Request::Done), "sysbench 1.0.20\n"));
    assert!(kept.err.contains("weir"));
    let (request, kept) = parsed("fileio help");
    assert_eq!(request, Ok(Request::Done));
    assert!(kept.out.starts_with(&format!("{HEADER}\nfileio options:\n  --file-num=N ")), "{}", kept.out);
    let (_, kept) = parsed("--help");
    for option in super::options::general() {
        assert!(kept.out.contains(&format!("  --{}{}", option.name, option.kind.form())), "{}", option.name);
    }
    let (request, kept) = parsed("fileio run");
    assert_eq!(request, Err(Quit(1)));
    assert!(
        kept.out
            .contains("FATAL: Missing required argument: --file-test-mode\n\nfileio options:\n  --file-num")
    );
}

#[test]
fn the_field_reports_command_lines_mean_what_they_meant() {
    let settings = run_settings(
        "--test=fileio --file-num=1 --num-threads=10 --file-total-size=10G --file-fsync-all=on --file-test-mode=rndwr \
         --max-time=30 --file-block-size=16384 --max-requests=0 run",
    );
    let (general, fileio) = (&settings.general, &settings.fileio);
    assert_eq!((general.threads, general.events, general.time_s), (10, 0, 30));
    assert_eq!((fileio.files, fileio.file_size, fileio.block_size), (1, 10 << 30, 16384));
    assert_eq!(fileio.test_mode, Some(TestMode::RandomWrite));
    assert!(fileio.fsync.all && !fileio.fsync.end && fileio.fsync.frequency == 0);

    let settings = run_settings(
        "--time=300 --threads=16 fileio --file-total-size=10G --file-num=2 --file-block-size=16K \
         --file-test-mode=rndrw run --file-fsync-freq=1 --file-fsync-mode=fdatasync --file-extra-flags=direct \
         --file-io-mode=async --file-async-backlog=256",
    );
    let (general, fileio) = (&settings.general, &settings.fileio);
    assert_eq!((general.threads, general.time_s), (16, 300));
    assert_eq!((fileio.files, fileio.file_size), (2, 5 << 30));
    assert_eq!(fileio.io_mode, IoMode::Async { backlog: 256 });
    assert_eq!(fileio.flags, ExtraFlags { direct: true, ..ExtraFlags::default() });
    assert_eq!((fileio.fsync.frequency, fileio.fsync.mode), (1, SyncMode::Fdatasync));
}

#[test]
fn limits_and_old_spellings() {
    let run = |options: &str| run_settings(&format!("{options} --file-test-mode=rndrd run")).general;
    // (options, threads, events, seconds)
    let cases = [
        ("fileio", 1, 0, 10),
        ("fileio --max-time=0 --max-requests=0", 1, 0, 10),
        ("--test=fileio --max-time=0 --max-requests=0", 1, 0, 0),
        ("--test=fileio --max-time=0 --max-requests=500 --num-threads=4", 4, 500, 0),
        ("--test=fileio --max-time=0 --time=5", 1, 0, 5),
        ("--test=fileio", 1, 0, 10),
        ("--time=0 fileio --events=7", 1, 7, 0),
        ("--threads=3 --num-threads=1 fileio", 3, 0, 10),
        ("--threads=3 --num-threads=2 fileio", 2, 0, 10),
    ];
    for (options, threads, events, time_s) in cases {
        let general = run(options);
        assert_eq!((general.threads, general.events, general.time_s), (threads, events, time_s), "{options}");
    }
    assert_eq!(run("fileio --seed-rng=9 --init-rng=on").seed, 9);
    assert_eq!(run("fileio --tx-rate=50").rate, 50);
    let shutdown =
        |value: &str| run(&format!("fileio --time=200 --forced-shutdown{value}")).forced_shutdown_s;
    let shutdowns = ["", "=off", "=OFF", "=7", "=50%", "=0"].map(shutdown);
    assert_eq!(shutdowns, [Some(10), None, None, Some(7), Some(100), Some(0)]);
    assert_eq!(run("fileio --report-checkpoints=9,1,5").checkpoints_s, [1, 5, 9]);
    assert!(run("fileio --rand-type=pareto").shape_given && !run("fileio --rand-type=uniform").shape_given);
    let (request, kept) = parsed("run --test=fileio --file-test-mode=seqrd --max-time=5");
    assert!(matches!(request, Ok(Request::Run(_))));
    assert!(kept.err.starts_with("WARNING: the --test option is deprecated."), "{}", kept.err);
    assert!(kept.out.starts_with("WARNING: --max-time is deprecated, use --time instead\n"), "{}", kept.out);
}

#[test]
fn configuration_files_are_honoured_under_the_command_line() {
    let settings = run_settings("--config-file=good.conf fileio run --file-num=4");
    assert_eq!(settings.general.threads, 3);
    assert_eq!((settings.fileio.files, settings.fileio.test_mode), (4, Some(TestMode::RandomWrite)));
    assert_eq!(settings.fileio.total_size(), 1 << 20);
    let (request, kept) = parsed("--config-file=none.conf fileio cleanup");
    assert!(matches!(request, Ok(Request::Cleanup(_))));
    assert_eq!(kept.err, "none.conf: No such file or directory\n");
    assert!(parsed("--config-file=odd.conf fileio cleanup").1.err.contains("unknown option 'treads'"));
}

/// The head of a report in a field report: two files, dsync, synced after each request.
#[test]
fn the_head_of_a_report() {
    let settings = run_settings(
        "--time=300 --threads=2 fileio --file-total-size=10G --file-num=2 --file-block-size=16K --file-test-mode=rndrw \
         run --file-fsync-freq=1 --file-fsync-mode=fdatasync --file-extra-flags=dsync",
    );
    let mut kept = Kept::default();
    let mut log = Log::new(&mut kept);
    log.set_verbosity(3);
    mode::print(&settings, &mut log);
    assert_eq!(
        kept.out,
        "Running the test with following options:\nNumber of threads: 2\n\
         Initializing random number generator from current time\n\n\n\
         Extra file open flags: dsync \n2 files, 5GiB each\n10GiB total file size\nBlock size 16KiB\n\
         Number of IO requests: 0\nRead/Write ratio for combined random IO test: 1.50\n\
         Periodic FSYNC enabled, calling fsync() each 1 requests.\nCalling fsync() at the end of test, Enabled.\n\
         Using synchronous I/O mode\nDoing random r/w test\n"
    );
}

fn counts() -> Counts {
    let mut counts = Counts::default();
    let mut latency = Histogram::new();
    (0..30).for_each(|i| latency.record(100_000_000 + i * 50_000_000));
    for class in [Class::Write, Class::Sync, Class::Commit] {
        let bytes = if class == Class::Write { 30 * 4096 } else { 0 };
        counts.add(class, bytes, &latency, true);
    }
    counts
}

#[test]
fn the_body_of_a_report() {
    let counts = counts();
    let shares = [
        Share { events: 20, event_time_ns: 15_000_000_000, ..Share::default() },
        Share { events: 10, ..Share::default() },
    ];
    let cumulative = Cumulative {
        counts: &counts,
        interval_s: 30.0,
        total_s: 30.0,
        shares: &shares,
        percentile: 95,
        unfinished: 0,
    };
    let printed = |print: fn(&Cumulative<'_>, &mut Log<'_>)| {
        let mut kept = Kept::default();
        print(&cumulative, &mut Log::new(&mut kept));
        kept.out
    };
    assert_eq!(
        printed(fileio_report::print),
        "\nFile operations:\n    reads/s:                      0.00\n    writes/s:                     1.00\n    \
         fsyncs/s:                     1.00\n\nThroughput:\n    read, MiB/s:                  0.00\n    \
         written, MiB/s:               0.00\n\nGeneral statistics:\n    \
         total time:                          30.0000s\n    total number of events:              30\n\nLatency (ms):\n\
         \x20        min:                                  100.00\n\
         \x20        avg:                                  825.00\n\
         \x20        max:                                 1550.00\n\
         \x20        95th percentile:                     1500.51\n\
         \x20        sum:                                24750.00\n\nThreads fairness:\n    \
         events (avg/stddev):           15.0000/5.00\n    execution time (avg/stddev):   7.5000/7.50\n\n"
    );
    assert_eq!(
        printed(legacy::print),
        "Operations performed:  0 Read, 30 Write, 30 Other = 60 Total\n\
         Read 0b  Written 120Kb  Total transferred 120Kb  (4Kb/sec)\n    1.00 Requests/sec executed\n\n\
         Test execution summary:\n    total time:                          30.0000s\n    \
         total number of events:              30\n    total time taken by event execution: 24.7500\n    \
         per-request statistics:\n\
         \x20        min:                                100.00ms\n\
         \x20        avg:                                825.00ms\n\
         \x20        max:                               1550.00ms\n\
         \x20        approx.  95 percentile:            1500.51ms\n\nThreads fairness:\n    \
         events (avg/stddev):           15.0000/5.00\n    execution time (avg/stddev):   7.5000/7.50\n\n"
    );
    assert_eq!(
        fileio_report::interval_line(&counts, 1.0, 95),
        "reads: 0.00 MiB/s writes: 0.12 MiB/s fsyncs: 30.00/s latency (ms,95%): 1500.512"
    );
}

/// What a thread took at least and at most since a checkpoint is not known, and the figures of the whole run are others.
#[test]
fn a_thread_s_extremes_are_printed_where_they_are_known() {
    let ms = 1_000_000;
    let after = |events: u64| Share {
        events,
        event_time_ns: events * 20 * ms,
        extremes_ns: Some((10 * ms, 30 * ms)),
    };
    for (shares, expected) in [
        (Share::since(&[after(3)], &[]), "min: 0.0100s  avg: 0.0200s  max: 0.0300s  events: 3"),
        (Share::since(&[after(3)], &[after(1)]), "avg: 0.0200s  events: 2"),
    ] {
        let mut kept = Kept::default();
        fileio_report::print_threads(&shares, &mut Log::new(&mut kept));
        assert!(kept.out.contains(&format!("    thread #  0: {expected}\n")), "{}", kept.out);
    }
}

#[test]
fn the_histogram_has_sysbenchs_slots_and_no_upper_end() {
    let mut events = Histogram::new();
    (0..40).for_each(|_| events.record(1_000_000));
    (0..10).for_each(|_| events.record(10_000_000));
    events.record(200_000_000_000);
    events.record(1);
    let text = fileio_report::histogram(&events);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "       value  ------------- distribution ------------- count");
    assert_eq!(lines[1], format!("       0.001 |{:<40} 1", "*"));
    assert!(lines[2].ends_with(&format!("|{} 40", "*".repeat(40))), "{text}");
    assert!(lines[3].ends_with(&format!("|{:<40} 10", "*".repeat(10))), "{text}");
    assert!(lines[4].trim_start().starts_with("20"), "{text}");
    assert_eq!(fileio_report::histogram(&Histogram::new()), "");
}

/// A word of a command line: an option with a value that may fit, or anything.
fn word() -> impl Strategy<Value = String> {
    let names: Vec<&str> = options::general().chain(options::FILEIO).map(|option| option.name).collect();
    let value = prop_oneof![
        "[0-9]{1,20}[KMGTx]?",
        "-?[0-9.]{1,6}%?",
        "(on|off|sync|async|mmap|direct|fsync|seqwr|rndrw|rndrd|uniform)",
        "[a-z0-9,.= -]{0,12}",
        any::<String>()
    ];
    prop_oneof![
        8 => (prop::sample::select(names), prop::option::of(value)).prop_map(|(name, value)| match value {
            Some(value) => format!("--{name}={value}"),
            None => format!("--{name}"),
        }),
        1 => any::<String>(),
        1 => Just("--file-test-mode=rndrw".to_string()),
    ]
}

proptest! {
    #[test]
    fn any_words_end_in_a_request_or_a_message(
        words in prop::collection::vec(word(), 0..6),
        config in prop_oneof![any::<String>(), "([a-z-]{1,12}=[^\n]{0,12}\n){0,4}"],
    ) {
        let words: Vec<String> = ["fileio", "run"].map(str::to_string).into_iter().chain(words).collect();
        let mut kept = Kept::default();
        match parse(&words, &|_| Ok(config.clone()), &mut Log::new(&mut kept)) {
            Err(Quit(code)) => prop_assert!(code == 1 && !(kept.out.is_empty() && kept.err.is_empty())),
            Ok(Request::Run(settings)) => operations_lie_inside_their_files(&settings)?,
            Ok(_) => {}
        }
    }
}

fn operations_lie_inside_their_files(settings: &Settings) -> Result<(), TestCaseError> {
    let fileio = &settings.fileio;
    let mut ops = Vec::new();
    Stream::new(settings, 5).fill(&mut ops, 100);
    for op in ops {
        prop_assert!(op.file < fileio.files, "{op:?} of {fileio:?}");
        prop_assert!(op.offset + u64::from(op.len) <= fileio.file_size, "{op:?} of {fileio:?}");
    }
    Ok(())
}
