//! What is typed wrongly: exit code 2, a sentence that names the mistake, a hint; nothing on stdout, nothing left.

use std::fs;

use crate::weir::{Weir, ended, files_under};

#[test]
fn mistakes_in_what_was_typed_are_named_and_do_nothing() {
    // (arguments, what stderr must name).
    let cases: &[(&[&str], &str)] = &[
        (&["--no-such-option"], "--no-such-option"),
        (&["bench", "--no-such-option"], "--no-such-option"),
        (&["measure"], "measure"),
        (&["bench", "--block", "4x"], "4x"),
        (&["bench", "--block=-4k"], "-4k"),
        (&["bench", "--size", "99999999999999999999G"], "99999999999999999999G"),
        (&["bench", "--block", "0"], "0 bytes"),
        (&["bench", "--block", "2M", "--size", "1M"], "1 MiB"),
        (&["bench", "--block", "1000", "--direct"], "512"),
        (&["bench", "--rw", "sideways"], "sideways"),
        (&["bench", "--duration", "soon"], "soon"),
        (&["bench", "--engine", "aio2"], "aio2"),
        (&["bench", "--engine", "psync", "--depth", "8"], "depth"),
        (&["bench", "--engine", "mmap", "--direct"], "mmap"),
        (&["bench", "--engine", "psync", "--iopoll"], "iopoll"),
        (&["bench", "--threads", "0"], "threads"),
        (&["bench", "--rate=-1"], "-1"),
        (&["bench", "--read-percent", "101"], "101"),
        (&["bench", "--distribution", "zipf:-1"], "-1"),
        (&["bench", "--flood", "rsync"], "rsync"),
        (&["bench", "--flood", "dd:size=much"], "much"),
        (&["bench", "--dir", ".", "--file", "x"], "--file"),
        (&["knobs", "show", "nowhere/scheduler", "--json"], "nowhere/scheduler"),
        (&["tune", "race"], "<KNOB>"),
        (&["tune", "sweep", "vm.swappiness", "--grid", "1,1000000", "--dry-run"], "1000000"),
    ];
    let weir = Weir::new();
    for (arguments, named) in cases {
        let folder = tempfile::tempdir().unwrap();
        let ended = weir.run(folder.path(), arguments);
        assert_eq!(ended.code, 2, "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains(named), "{arguments:?} does not name {named:?}: {}", ended.stderr);
        let helps =
            ["hint:", "tip:", "--help", "possible values"].iter().any(|word| ended.stderr.contains(word));
        assert!(helps, "{arguments:?} does not help: {}", ended.stderr);
        assert_eq!(ended.stdout, "", "{arguments:?}");
        assert!(files_under(folder.path()).is_empty(), "{arguments:?} left files");
    }
    assert!(weir.records().is_empty(), "a run that never was is in the store");
}

#[test]
fn job_files_with_mistakes_name_file_and_key() {
    let cases = [
        ("[[job]]\nblock = \"4k\"\nblokc = 1\n", "blokc"),
        ("[[job]]\nthreads = \"many\"\n", "threads"),
        ("[[job]\n", "jobs.toml"),
        ("", "jobs.toml"),
    ];
    let weir = Weir::new();
    for (text, named) in cases {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("jobs.toml"), text).unwrap();
        let ended = weir.run(folder.path(), &["bench", "jobs.toml"]);
        assert_eq!(ended.code, 2, "{text}: {ended:?}");
        assert!(ended.stderr.contains(named), "{text:?} does not name {named}: {}", ended.stderr);
        assert_eq!(files_under(folder.path()).len(), 1, "{text}: files were left");
    }
}

#[test]
fn what_is_not_taken_from_fio_is_named_when_the_jobs_are_only_printed_too() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("old.fio"), "[a]\nrw=randread\nsize=1m\nthinktime=5\n").unwrap();
    let ended = Weir::new().run(folder.path(), &["bench", "--from-fio", "old.fio", "--print-job"]);
    assert!(ended.code == 0 && ended.stderr.contains("thinktime"), "{ended:?}");
    assert!(ended.stdout.starts_with("[[job]]"), "{ended:?}");
}

#[test]
fn what_cannot_be_written_is_said_and_no_command_panics() {
    let weir = Weir::new();
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["completions", "bash"],
        &["fileio", "--help"],
        &["knobs", "journal"],
    ] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = weir.command(folder.path(), arguments);
        command.stdout(full);
        let ended = ended(command);
        assert_eq!(ended.code, 3, "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains("cannot write to standard output"), "{arguments:?}: {ended:?}");
    }
}
