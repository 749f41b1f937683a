//! Names and messages that others choose reach no terminal as they are: a terminal obeys escapes, and direction marks let a
//! text read as another. What programs read is exact.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;

use weir_core::printable::is_hidden;

use crate::db_server::folder;
use crate::lab::root_or_say;
use crate::weir::{Ended, Weir};

/// Colours, a window's title, a C1 control, an override of direction, and a line of one's own.
const HOSTILE: &str = "a\x1b[31mb\x1b]0;pwn\x07\u{9b}2J\u{202e}c\nhint: forged";

#[track_caller]
fn check(ended: &Ended, part: &str) {
    for text in [&ended.stdout, &ended.stderr] {
        let hidden: Vec<char> = text.chars().filter(|c| is_hidden(*c) && !"\n\t".contains(*c)).collect();
        assert!(hidden.is_empty(), "{hidden:?} in {ended:?}");
        assert!(text.lines().all(|line| !line.starts_with("hint: forged")), "{ended:?}");
    }
    assert!(ended.stdout.contains(part) || ended.stderr.contains(part), "no {part:?} in {ended:?}");
}

#[test]
fn names_of_files_are_printed_and_not_obeyed() {
    let (weir, folder) = (Weir::new(), folder());
    check(
        &weir.run(folder.path(), &["results", "show", &format!("./{HOSTILE}")]),
        "a\u{fffd}[31mb\u{fffd}]0;pwn",
    );
    check(&weir.run(folder.path(), &["bench", "no\x1b[2Jjob.toml"]), "no\u{fffd}[2Jjob.toml");
    let bench = ["bench", "--engine", "null", "--operations", "9", "--name", "a\u{202e}b\u{9b}"];
    check(&weir.run(folder.path(), &bench), "a\u{fffd}b\u{fffd}");
}

#[test]
fn a_record_is_printed_clean_and_exported_as_it_is() {
    let (weir, folder) = (Weir::new(), folder());
    let line = ["bench", "--engine", "null", "--operations", "9"];
    let ended = weir.run(folder.path(), &line);
    assert_eq!(ended.code, 0, "{ended:?}");
    let mut record = weir.records().remove(0);
    record["command"][0] = HOSTILE.into();
    let path = folder.path().join("record.json");
    fs::write(&path, record.to_string()).unwrap();
    let show = |more: &[&str]| {
        let line: Vec<&str> = ["results", "show", "record.json"].iter().chain(more).copied().collect();
        weir.run(folder.path(), &line)
    };
    check(&show(&[]), "a\u{fffd}[31mb\u{fffd}]0;pwn");
    let exact = show(&["--format", "record"]);
    let exact: serde_json::Value = serde_json::from_str(&exact.stdout).unwrap();
    assert_eq!(exact["command"][0], HOSTILE);
    let page = weir.run(folder.path(), &["report", "record.json", "--output", "-"]);
    // A line end in a page ends nothing.
    check(&Ended { stdout: page.stdout.replace('\n', " "), ..page }, "a\u{fffd}[31mb\u{fffd}]0;pwn");
}

/// A server that refuses each connection in PostgreSQL's protocol with a message of its own.
#[test]
fn messages_of_servers_are_printed_and_not_obeyed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = format!("--postgres=127.0.0.1:{}", listener.local_addr().unwrap().port());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut asked = [0; 4096];
            let n = stream.read(&mut asked).unwrap_or(0);
            // It asks for encryption first.
            if n == 8 && stream.write_all(b"N").is_ok() {
                let _ = stream.read(&mut asked);
            }
            let fields = format!("SFATAL\0C53300\0M{HOSTILE}\0\0");
            let length = (fields.len() as u32 + 4).to_be_bytes();
            let _ = stream.write_all(&[b"E", &length[..], fields.as_bytes()].concat());
        }
    });
    let (weir, folder) = (Weir::new(), folder());
    check(&weir.run(folder.path(), &["db", "run", &place]), "53300");
}

#[test]
fn root_alone_names_of_processes_are_printed_and_not_obeyed() {
    if !root_or_say("root_alone_names_of_processes_are_printed_and_not_obeyed", &["dd"]) {
        return;
    }
    let (weir, folder) = (Weir::alone(), folder());
    // Fifteen bytes are a process's name.
    let name = "d\x1b[31md\u{202e}";
    fs::copy("/bin/dd", folder.path().join(name)).unwrap();
    let program = format!("./{name}");
    let line =
        ["trace", "fsync", "--", &program, "if=/dev/zero", "of=data", "bs=4k", "count=50", "oflag=dsync"];
    let ended = weir.run(folder.path(), &line);
    if ended.code == 3 {
        _ = writeln!(std::io::stderr(), "not run: {}", ended.stderr);
        return;
    }
    // What dd itself says is its own.
    let own = Ended { stderr: String::new(), ..ended };
    check(&own, "by d\u{fffd}[31md\u{fffd}");
}
