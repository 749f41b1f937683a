//! Servers that go away.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use weir_db::{Connection, DbError, Server};

use crate::bed::{Bed, LONG, ask, code};

/// What ends a statement that another connection of the same server is in.
fn end_of_sleep(bed: &Bed, end: impl FnOnce(i32)) -> (DbError, Connection) {
    let mut connection = bed.connect();
    let process = ask(&mut connection, "SELECT pg_backend_pid()").parse().unwrap();
    let sleeper = thread::spawn(move || {
        let ended = connection.run("SELECT pg_sleep(50)");
        (ended.unwrap_err(), connection)
    });
    let mut watcher = bed.connect();
    let sleeps =
        format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {process} AND wait_event = 'PgSleep'");
    wait_until(|| ask(&mut watcher, &sleeps) == "1");
    end(process);
    sleeper.join().unwrap()
}

fn wait_until(mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < until, "it never came to be");
        thread::sleep(Duration::from_millis(20));
    }
}

/// The number that this machine gives to one of the server's processes, which are numbered in a namespace of their own.
fn outside(bed: &Bed, process: i32) -> i32 {
    let server = bed.sandbox.lock().unwrap().pid().unwrap();
    let children = fs::read_to_string(format!("/proc/{server}/task/{server}/children")).unwrap();
    let bears_it = |child: &&str| {
        let status = fs::read_to_string(format!("/proc/{child}/status")).unwrap_or_default();
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
        numbers.split_whitespace().last() == Some(&process.to_string())
    };
    children.split_whitespace().find(bears_it).unwrap().parse().unwrap()
}

/// Kills one of the server's processes.
fn kill(bed: &Bed, process: i32) {
    // SAFETY: a signal to a process of this test's own server.
    assert_eq!(unsafe { libc::kill(outside(bed, process), libc::SIGKILL) }, 0);
}

#[test]
fn a_killed_backend_takes_the_others_along_and_the_server_comes_back() {
    let Some(bed) = Bed::start("a_killed_backend_takes_the_others_along_and_the_server_comes_back") else {
        return;
    };
    let mut idle = bed.connect();
    let idler = outside(&bed, ask(&mut idle, "SELECT pg_backend_pid()").parse().unwrap());
    let (error, mut connection) = end_of_sleep(&bed, |process| kill(&bed, process));
    assert!(matches!(error, DbError::Lost { .. }), "{error}");
    assert!(error.to_string().contains("was lost: the server closed the connection"), "{error}");
    assert!(matches!(connection.run("SELECT 1"), Err(DbError::Lost { .. })));

    // The others are told a moment later. A backend that is just sending an answer would go without a word.
    wait_until(|| !Path::new(&format!("/proc/{idler}")).exists());
    let error = idle.run("SELECT 1").unwrap_err();
    assert!(error.is_lost() && error.to_string().contains("57P02"), "{error}");
    wait_until(|| match Connection::open(&bed.local()) {
        Ok(mut connection) => ask(&mut connection, "SELECT 1") == "1",
        // It recovers, or its socket is not there again yet.
        Err(error) => !(error.is_lost() || matches!(error, DbError::Connect { .. })),
    });
    bed.connect();
}

#[test]
fn a_terminated_backend_says_why() {
    let Some(bed) = Bed::start("a_terminated_backend_says_why") else { return };
    let terminate = |process: i32| {
        assert_eq!(ask(&mut bed.connect(), &format!("SELECT pg_terminate_backend({process}, 5000)")), "t");
    };
    let (error, mut connection) = end_of_sleep(&bed, terminate);
    assert!(error.is_lost() && error.to_string().contains("57P01"), "{error}");
    assert!(matches!(connection.run("SELECT 1"), Err(DbError::Lost { .. })));

    // While nothing is asked of it: what it said is there to be read when the next request cannot be sent.
    let mut idle = bed.connect();
    terminate(ask(&mut idle, "SELECT pg_backend_pid()").parse().unwrap());
    let error = idle.run("SELECT 1").unwrap_err();
    assert!(error.is_lost() && error.to_string().contains("57P01"), "{error}");
}

#[test]
fn a_server_that_shuts_down_or_is_killed_is_lost() {
    let Some(bed) = Bed::start("a_server_that_shuts_down_or_is_killed_is_lost") else { return };
    let (error, _) = end_of_sleep(&bed, |_| bed.sandbox.lock().unwrap().stop().unwrap());
    assert!(error.is_lost() && error.to_string().contains("57P01"), "{error}");
    let refused = Connection::open(&bed.local()).map(|_| ()).unwrap_err();
    assert!(matches!(refused, DbError::Connect { .. }), "{refused}");

    bed.sandbox.lock().unwrap().run(&|| false).unwrap();
    let mut connection = bed.connect();
    connection.run("CREATE TEMP TABLE t (id int)").unwrap();
    let mut calls = 0;
    let killed = connection.load("t", "", &mut |out| {
        calls += 1;
        if calls == 100 {
            bed.sandbox.lock().unwrap().kill().unwrap();
        }
        out.extend_from_slice(&b"12345678\n".repeat(10_000));
        true
    });
    assert!(killed.as_ref().is_err_and(DbError::is_lost), "{killed:?}");
}

#[test]
fn an_answer_that_takes_too_long_ends_the_connection() {
    let Some(bed) = Bed::start("an_answer_that_takes_too_long_ends_the_connection") else { return };
    let hasty = Server { answer_timeout: Some(Duration::from_millis(200)), ..bed.local() };
    let mut connection = Connection::open(&hasty).unwrap();
    let error = connection.run("SELECT pg_sleep(50)").unwrap_err();
    assert!(matches!(error, DbError::Timeout { .. }) && error.is_lost(), "{error}");
    let error = connection.run("SELECT 1").unwrap_err();
    assert!(error.to_string().contains("an earlier request ended it"), "{error}");
    let impatient = Server { user: "nobody".into(), ..hasty };
    assert_eq!(code(Connection::open(&impatient).map(|_| ())), "28000");
}
