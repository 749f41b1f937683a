//! `weir top`: frames as text and on a terminal, what it says where it sees little, and how it leaves the terminal.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use weir_core::printable;

use crate::lab::{KERNEL_TYPES, LoopDevice, root_or_say};
use crate::weir::{Weir, ended};

/// Without privileges, everywhere.
const COUNTERS: [&str; 4] = ["--source", "diskstats", "--no-syncs", "--interval=200ms"];

#[test]
fn a_frame_fits_its_size_and_says_what_is_not_seen() {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    for (size, columns, rows) in [("80x24", 80, 24), ("200x60", 200, 60), ("40x10", 40, 10)] {
        let once = [&["top", "--once", "--size", size][..], &COUNTERS].concat();
        let done = weir.run(folder.path(), &once);
        assert_eq!(done.code, 0, "{done:?}");
        assert_eq!(done.stdout.lines().count(), rows, "{done:?}");
        assert!(done.stdout.lines().all(|line| line.chars().count() <= columns), "{done:?}");
        // The lowest screen has no space for all of them.
        let heads = ["weir top", "DEVICES", "PROCESSES", "CLASSES", "SLOW SYNCS"];
        for head in &heads[..if rows > 10 { 5 } else { 3 }] {
            assert!(done.stdout.contains(head), "{head}: {done:?}");
        }
        assert!(done.stderr.contains("syncs are not followed: --no-syncs"), "{done:?}");
        assert!(done.stderr.contains("not shown: percentiles"), "{done:?}");
    }
}

#[test]
fn mistakes_at_the_screen_are_named() {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    for (arguments, code, says) in [
        (&[][..], 2, "use --once to print a frame as text"),
        (&["--once", "--interval", "1ms"], 2, "--interval 1.00 ms is too short"),
        (&["--size", "80x24"], 2, "--once"),
        (&["--once", "--size", "80"], 2, "expected COLUMNSxROWS"),
        (&["--once", "no-such-device"], 3, "no-such-device"),
    ] {
        let done = weir.run(folder.path(), &[&["top"], arguments].concat());
        assert_eq!(done.code, code, "{arguments:?}: {done:?}");
        assert!(done.stderr.contains(says), "{arguments:?}: {done:?}");
    }
}

/// A command with a screen, and what is on it.
struct View {
    command: &'static str,
    shows: &'static str,
}

const TOP: View = View { command: "top --source diskstats --no-syncs --interval=200ms", shows: "PROCESSES" };
const LIVE: View =
    View { command: "trace live --source diskstats --interval=200ms", shows: "source diskstats" };

/// What a terminal of 80 by 24 is sent while somebody presses keys, and its settings before and after; `None` where there is
/// no script(1) to make one.
fn on_a_terminal(view: &View, keys: &str, then: &str) -> Option<String> {
    if Command::new("script").arg("--version").stdout(Stdio::null()).status().is_err() {
        _ = writeln!(std::io::stderr(), "not run: a terminal takes script(1)");
        return None;
    }
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    let program = weir.command(folder.path(), &[]).get_program().to_string_lossy().into_owned();
    let line = format!(
        "stty rows 24 cols 80; stty -g > before; {program} {} < /dev/tty & view=$!; {then}; wait $view; echo code=$?; stty -g > after",
        view.command
    );
    // Keys come when the screen is there; nothing waits for ever.
    let shows = view.shows;
    let there =
        format!("n=0; until grep -q \"{shows}\" sent || [ $n -gt 300 ]; do n=$((n+1)); sleep 0.1; done");
    let line = line.replace("THERE", &there);
    let feed = format!("{there}; printf '{keys}'; sleep 2");
    let line =
        format!("({feed}) | timeout 60 script -qec '{}' typescript > sent", line.replace('\'', "'\\''"));
    let done = Command::new("sh")
        .args(["-c", &line])
        .current_dir(folder.path())
        .env("TERM", "xterm-256color")
        .env("WEIR_STORE", weir.store())
        .output()
        .unwrap();
    let read = |name| fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    assert_eq!(read("before"), read("after"), "the terminal's settings: {done:?}");
    Some(read("sent"))
}

#[test]
fn the_terminal_is_given_back_whatever_ends_the_screen() {
    for (keys, then, code) in
        [("?q", ":", "code=0"), ("\\003", ":", "code=0"), ("", "THERE; kill -TERM $view", "code=143")]
    {
        let Some(sent) = on_a_terminal(&TOP, keys, then) else { return };
        assert!(sent.contains("\x1b[?1049h") && sent.contains("\x1b[?25l"), "{keys}: {sent:?}");
        let after = sent.rsplit("\x1b[?1049l").next().unwrap();
        assert!(after.contains("\x1b[?25h") && after.contains(code), "{keys}: {sent:?}");
        assert!(sent.contains("PROCESSES"), "{keys}: {sent:?}");
    }
}

/// Keys that raise signals elsewhere, twice.
#[test]
fn a_live_trace_gives_the_terminal_back_too() {
    for (keys, then, code) in [
        ("q", ":", "code=0"),
        ("\\003\\003", ":", "code=0"),
        ("\\034", ":", "code=0"),
        ("", "THERE; kill -TERM $view", "code=143"),
    ] {
        let Some(sent) = on_a_terminal(&LIVE, keys, then) else { return };
        let after = sent.rsplit("\x1b[?1049l").next().unwrap();
        assert!(sent.contains("\x1b[?1049h") && after.contains("Over "), "{keys}: {sent:?}");
        assert!(after.contains(code), "{keys}: {sent:?}");
    }
}

#[test]
fn root_alone_a_process_that_syncs_is_shown_whatever_it_is_called() {
    let test = "root_alone_a_process_that_syncs_is_shown_whatever_it_is_called";
    if !root_or_say(test, &["dd", "mkfs.ext4", KERNEL_TYPES]) {
        return;
    }
    let weir = Weir::alone();
    let device = LoopDevice::create(&["fs=ext4", "size=64M", "write_iops=300"]);
    let folder = device.mount();
    let hostile = folder.join("a\x1b[2Jb\n");
    fs::copy("/usr/bin/dd", &hostile).or_else(|_| fs::copy("/bin/dd", &hostile)).unwrap();
    let mut dd = Command::new(&hostile);
    dd.args(["if=/dev/zero", "of=data", "bs=4k", "count=100000", "oflag=dsync", "status=none"]);
    let mut dd = dd.current_dir(&folder).spawn().unwrap();
    let node = device.device();
    let arguments =
        ["top", "--once", "--size", "200x40", "--interval", "2s", "--slow", "1ms", &node.to_string_lossy()];
    let done = ended(weir.command(&folder, &arguments));
    dd.kill().unwrap();
    dd.wait().unwrap();
    assert_eq!(done.code, 0, "{done:?}");
    let name = "a\u{fffd}[2Jb\u{fffd}";
    let rows: Vec<&str> = done.stdout.lines().filter(|line| line.contains(name)).collect();
    assert!(rows.len() > 1, "among processes and slow syncs: {done:?}");
    assert!(rows.iter().any(|row| row.contains("O_SYNC write")), "{done:?}");
    assert!(!done.stdout.replace('\n', "").contains(printable::is_hidden), "{done:?}");
    let name = node.file_name().unwrap().to_string_lossy().into_owned();
    assert!(done.stdout.lines().any(|line| line.starts_with(&name)), "{done:?}");
}
