//! `weir trace read`: recordings however they are named and packed, filters, forms, and files that are none.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use flate2::read::MultiGzDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde_json::Value;

use crate::weir::{Ended, Weir, ended};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/traces")
}

/// A fixture, unpacked.
fn bytes_of(fixture: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let file = fs::File::open(fixtures().join(fixture)).unwrap();
    MultiGzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    bytes
}

/// A folder with the two per-CPU files of a recording, called `vda`.
fn recording() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for cpu in 0..2 {
        let bytes = bytes_of(&format!("reference-ext4/vda.blktrace.{cpu}.gz"));
        fs::write(folder.path().join(format!("vda.blktrace.{cpu}")), bytes).unwrap();
    }
    folder
}

fn run(folder: &Path, arguments: &[&str]) -> Ended {
    let all: Vec<&str> = ["trace", "read"].into_iter().chain(arguments.iter().copied()).collect();
    Weir::new().run(folder, &all)
}

fn fed(folder: &Path, arguments: &[&str], input: &[u8]) -> Ended {
    fs::write(folder.join("input"), input).unwrap();
    let weir = Weir::new();
    let mut command = weir.command(folder, &["trace", "read"]);
    command.args(arguments).stdin(Stdio::from(fs::File::open(folder.join("input")).unwrap()));
    ended(command)
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let all: Vec<&str> = arguments.iter().copied().chain(["--format", "json"]).collect();
    parsed(&run(folder, &all))
}

fn parsed(ended: &Ended) -> Value {
    assert_eq!(ended.code, 0, "{ended:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn a_trace_for_perfetto_holds_every_io_and_replaces_nothing() {
    let folder = recording();
    let done = run(folder.path(), &["vda", "--perfetto", "vda.pftrace"]);
    assert_eq!(done.code, 0, "{done:?}");
    let bytes = fs::read(folder.path().join("vda.pftrace")).unwrap();
    // Field 1 of the trace, a packet, and a track that is called as the device.
    assert_eq!(bytes[0], 0x0a);
    assert!(bytes.windows(9).any(|window| window == b"vda queue"));
    let ios = done.stderr.split("vda.pftrace (").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    let rows =
        run(folder.path(), &["vda", "--per-request", "csv", "--unit", "piece"]).stdout.lines().count() - 1;
    assert_eq!(ios.parse::<usize>().unwrap(), rows, "{done:?}");
    // Beside rows, and with a filter.
    let both = run(
        folder.path(),
        &[
            "vda",
            "--class",
            "sync_write",
            "--per-request",
            "csv",
            "--unit",
            "piece",
            "--out",
            "rows.csv",
            "--perfetto",
            "some.pftrace",
        ],
    );
    assert_eq!(both.code, 0, "{both:?}");
    let some = fs::read_to_string(folder.path().join("rows.csv")).unwrap().lines().count() - 1;
    assert!(both.stderr.contains(&format!("some.pftrace ({some} I/Os)")), "{both:?}");
    let again = run(folder.path(), &["vda", "--perfetto", "vda.pftrace"]);
    assert_eq!(again.code, 2, "{again:?}");
    assert!(again.stderr.contains("name another file for --perfetto"), "{again:?}");
    for file in ["vda.pftrace", "some.pftrace", "rows.csv"] {
        assert_eq!(fs::metadata(folder.path().join(file)).unwrap().mode() & 0o777, 0o600, "{file}");
    }
    // What cannot be read leaves neither file, whole or not.
    fs::write(folder.path().join("damaged"), "no recording").unwrap();
    let names = || fs::read_dir(folder.path()).unwrap().count();
    let before = names();
    let rows = ["--per-request", "csv", "--out", "b.csv", "--perfetto", "b.pftrace"];
    let failed = run(folder.path(), &[&["damaged"][..], &rows].concat());
    assert!(failed.code != 0 && names() == before, "{failed:?}");
}

/// What must be the same however a recording comes.
fn figures(value: &Value) -> Value {
    value["devices"][0]["classes"].clone()
}

fn pieces(value: &Value) -> u64 {
    value["devices"].as_array().unwrap().iter().map(|device| device["pieces"].as_u64().unwrap()).sum()
}

#[test]
fn a_recording_gives_the_same_figures_however_it_is_named_and_packed() {
    let recording = recording();
    let folder = recording.path();
    let plain = json(folder, &["vda"]);
    // Counts and means of the reference matcher (fixtures/traces/README.md).
    let q2c = &figures(&plain)["all"]["stages"]["q2c"];
    assert_eq!(q2c["count"], 341);
    assert!((q2c["mean_ns"].as_f64().unwrap() - 2_156_182.0).abs() < 1.0, "{q2c}");
    assert_eq!(plain["devices"][0]["name"], "vda");

    let packed = folder.join("packed");
    fs::create_dir(&packed).unwrap();
    fs::copy(fixtures().join("reference-ext4/vda.blktrace.0.gz"), packed.join("vda.blktrace.0.gz")).unwrap();
    let bytes = bytes_of("reference-ext4/vda.blktrace.1.gz");
    // Two frames with a skippable one between them, as tools that work in parallel write.
    let (a, b) = bytes.split_at(bytes.len() / 2);
    let frame = |bytes: &[u8]| compress_to_vec(bytes, CompressionLevel::Fastest);
    let skipped = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    fs::write(packed.join("vda.blktrace.1.zst"), [&frame(a)[..], &skipped, &frame(b)].concat()).unwrap();
    // A CPU without I/O leaves an empty file.
    fs::write(packed.join("vda.blktrace.2"), b"").unwrap();
    for named in [&["."][..], &["vda.blktrace.0", "vda.blktrace.1"], &["packed"], &["packed/vda"]] {
        assert_eq!(figures(&json(folder, named)), figures(&plain), "{named:?}");
    }

    let stream = bytes_of("reference-ext4/vda.bin.gz");
    let from_stdin = parsed(&fed(folder, &["-", "--format", "json"], &stream));
    assert_eq!(figures(&from_stdin)["all"]["stages"]["q2c"]["count"], 341);
    let zipped = fs::read(fixtures().join("reference-ext4/vda.bin.gz")).unwrap();
    let unzipped = parsed(&fed(folder, &["-", "--format", "json"], &zipped));
    assert_eq!(figures(&unzipped), figures(&from_stdin));

    let both = json(folder, &["vda", "packed"]);
    let names: Vec<&str> =
        both.as_array().unwrap().iter().map(|r| r["recording"].as_str().unwrap()).collect();
    assert_eq!(names, ["vda", "packed/vda"]);
    let one_cpu = run(folder, &["vda.blktrace.0"]);
    assert!(one_cpu.stderr.contains("1 more per-CPU files"), "{one_cpu:?}");
}

#[test]
fn what_is_damaged_is_named_with_file_and_offset_and_the_rest_is_kept_when_asked() {
    let recording = recording();
    let folder = recording.path();
    let whole = fs::read(folder.join("vda.blktrace.0")).unwrap();
    let swapped: Vec<u8> = whole.chunks_exact(4).take(12).flat_map(|w| [w[1], w[0], w[3], w[2]]).collect();
    let mut huge = whole[..480].to_vec();
    huge[46..48].copy_from_slice(&u16::MAX.to_le_bytes());
    let mut foreign = whole[..4800].to_vec();
    let tenth =
        (0..10).fold(0, |at, _| at + 48 + usize::from(u16::from_le_bytes([whole[at + 46], whole[at + 47]])));
    foreign[tenth..tenth + 4].copy_from_slice(b"junk");
    let at_tenth = format!("foreign: at byte {tenth}");
    let zipped = fs::read(fixtures().join("reference-ext4/vda.blktrace.0.gz")).unwrap();
    // Content, words of the error, and whether anything can be kept.
    let cases: [(&str, &[u8], &[&str], bool); 8] = [
        ("empty", b"", &["empty: the file is empty", "hint: weir reads"], false),
        (
            "text",
            b"8,0 1 1 0.0 4 Q R 8 + 8 [fio]\nand more text than any head is long, so much of it",
            &["text: at byte 0"],
            false,
        ),
        ("short", &whole[..20], &["short: at byte 0"], false),
        ("cut", &whole[..1000], &["cut: at byte ", "truncated", "--keep-going"], true),
        ("huge", &huge, &["huge: at byte 0"], false),
        ("foreign", &foreign, &[&at_tenth, "--keep-going"], true),
        ("swapped", &swapped, &["swapped: at byte 0"], false),
        ("half.gz", &zipped[..zipped.len() / 2], &["half.gz", "--keep-going"], true),
    ];
    for (name, content, words, kept) in cases {
        fs::write(folder.join(name), content).unwrap();
        let strict = run(folder, &[name]);
        assert_eq!((strict.code, strict.stdout.as_str()), (3, ""), "{name}: {strict:?}");
        for word in words {
            assert!(strict.stderr.contains(word), "{name}: no {word:?} in {strict:?}");
        }
        let lenient = run(folder, &[name, "--keep-going"]);
        assert_eq!(lenient.code, if kept { 0 } else { 3 }, "{name}: {lenient:?}");
        if kept {
            assert!(lenient.stderr.contains("what comes before it is in the figures"), "{name}: {lenient:?}");
            assert!(lenient.stdout.contains("events"), "{name}: {lenient:?}");
        }
    }
    let missing = run(folder, &["nothing"]);
    assert!(missing.code == 3 && missing.stderr.contains("no nothing.blktrace.0"), "{missing:?}");
}

#[test]
fn filters_divide_a_recording_into_parts_that_add_up() {
    let recording = recording();
    let folder = recording.path();
    let all = pieces(&json(folder, &["vda"]));
    let divided: [&[&[&str]]; 5] = [
        &[&["--to", "200ms"], &["--from", "200ms", "--to", "400ms"], &["--from", "400ms"]],
        &[&["--class", "read"], &["--class", "write"], &["--class", "flush"]],
        &[&["--size", "0..4k"], &["--size", "4097.."]],
        &[&["--sector", "..100000"], &["--sector", "100001.."]],
        &[
            &["--process", "iow"],
            &["--process", "jbd2/vda-8"],
            &["--process", "kworker/1:1H", "--process", "kworker/0:1H"],
        ],
    ];
    for parts in divided {
        let counts: Vec<u64> = parts
            .iter()
            .map(|part| {
                let value = json(folder, &[&["vda"], *part].concat());
                let device = &value["devices"][0];
                let depth = device["depth"]["queue"]["max"].as_u64().unwrap_or(0);
                assert!(depth <= 20, "{part:?}: what is taken was never deeper than the whole: {depth}");
                pieces(&value)
            })
            .collect();
        assert_eq!(counts.iter().sum::<u64>(), all, "{parts:?}: {counts:?}");
        assert!(counts.iter().all(|n| *n > 0), "{parts:?}: {counts:?}");
    }
    for part in [["--device", "254:0"], ["--device", "vda"], ["--device", "/dev/vda"]] {
        assert_eq!(pieces(&json(folder, &["vda", part[0], part[1]])), all);
    }
    assert_eq!(pieces(&json(folder, &["vda", "--device", "8:0"])), 0);
    let two = fixtures().join("dm-delay");
    let mapped = json(folder, &[two.to_str().unwrap(), "--device", "dm-0"]);
    assert_eq!(mapped["devices"].as_array().unwrap().len(), 1, "{}", mapped["devices"]);
    let backwards = run(folder, &["vda", "--from", "2s", "--to", "1s"]);
    assert_eq!(backwards.code, 2, "{backwards:?}");
}

#[test]
fn a_part_of_a_recording_has_the_rates_of_that_part() {
    let recording = recording();
    let folder = recording.path();
    let whole = json(folder, &["vda"]);
    let ns = |value: &Value, field: &str| value[field].as_u64().unwrap();
    assert!(ns(&whole, "recorded_start_ns") < ns(&whole, "start_ns"), "blktrace says when it began: {whole}");
    let first_ns = ns(&whole, "start_ns");
    for (options, ms, ended) in [
        (["--from", "100ms", "--to", "300ms"], 100, "end"),
        (["--from", "250ms", "--to", "1h"], 250, "last_event"),
    ] {
        let part = json(folder, &[&["vda"][..], &options].concat());
        for value in [&part, &part["devices"][0]] {
            assert_eq!(ns(value, "recorded_start_ns"), first_ns + ms * 1_000_000, "{options:?}");
            assert_eq!((&value["recorded_from"], &value["recorded_to"]), (&"start".into(), &ended.into()));
        }
    }
    let process = json(folder, &["vda", "--process", "iow"]);
    assert_eq!(process["recorded_start_ns"], whole["recorded_start_ns"]);
}

#[test]
fn rows_pages_and_other_forms_say_what_the_analysis_says() {
    let recording = recording();
    let folder = recording.path();
    let device = &json(folder, &["vda"])["devices"][0];
    for (unit, of) in [("request", "requests"), ("io", "pieces"), ("piece", "pieces"), ("bio", "bios")] {
        let expected = device[of].as_u64().unwrap() as usize;
        let csv = run(folder, &["vda", "--per-request", "csv", "--unit", unit]);
        assert_eq!((csv.code, csv.stdout.lines().count()), (0, expected + 1), "{unit}");
        let lines = run(folder, &["vda", "--per-request", "jsonl", "--unit", unit, "--out", unit]);
        assert!(lines.stdout.contains("254:0") && lines.code == 0, "{lines:?}");
        let written = fs::read_to_string(folder.join(unit)).unwrap();
        assert_eq!(written.lines().count(), expected, "{unit}");
        assert!(written.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{unit}");
    }
    let again = run(folder, &["vda", "--per-request", "csv", "--out", "piece"]);
    assert!(again.code == 2 && again.stderr.contains("name another file"), "{again:?}");

    let page = run(folder, &["vda", "--html", "page.html", "--btt"]);
    assert!(page.code == 0 && page.stdout.contains("D2C"), "{page:?}");
    let html = fs::read_to_string(folder.join("page.html")).unwrap();
    assert!(
        html.starts_with("<!doctype html>") && html.contains("of the time was spent in driver and device")
    );
    for outside in ["http:", "https:", "<script", "<link", "src="] {
        assert!(!html.contains(outside), "{outside}");
    }
    let csv = run(folder, &["vda", "--format", "csv"]);
    assert!(
        csv.code == 0 && csv.stdout.lines().any(|line| line.starts_with("254:0,all,all,q2c,341,")),
        "{csv:?}"
    );
}

#[test]
fn a_signal_ends_reading_and_what_was_read_is_reported() {
    let recording = recording();
    let stream = bytes_of("reference-ext4/vda.bin.gz");
    for bytes in [&stream[..], &[]] {
        let weir = Weir::new();
        let mut command = weir.command(recording.path(), &["trace", "read", "-"]);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        // The pipe stays open: without the signal there would be no end.
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(bytes).unwrap();
        let has_threads = |pid: u32| fs::read_dir(format!("/proc/{pid}/task")).unwrap().count() > 2;
        while !has_threads(child.id()) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        std::thread::sleep(std::time::Duration::from_millis(300));
        let line = format!("kill -INT {}", child.id());
        assert!(std::process::Command::new("sh").args(["-c", &line]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(130), "{stdout}{stderr}");
        assert!(stderr.contains("interrupted") && stdout.contains("trace"), "{stdout}{stderr}");
        drop(pipe);
    }
}
