//! Questions for a server of Spark Connect: connections that break, signals, TLS, tokens, workers that die.

use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Ran;
use crate::engines::fill;
use crate::servers::{Cutter, Server, Tls, on_its_own_network};
use crate::tables::Fleet;

/// Rows enough for many messages.
const ALL: &str = "SELECT host, ts, class, stage, load, bucket_low_ns, n FROM stages ORDER BY host, ts, class, stage, load, bucket_low_ns";
/// Takes longer than any test.
const ENDLESS: &str =
    "SELECT SUM(a.n * b.n + c.n) AS s FROM stages a CROSS JOIN stages b CROSS JOIN stages c";

fn fleet() -> Fleet {
    let fleet = Fleet::new();
    fill(&fleet);
    fleet
}

fn sail(test: &str) -> Option<Server> {
    let server = Server::sail();
    if server.is_none() {
        _ = writeln!(
            std::io::stderr(),
            "not run: {test}: no pysail beside {}",
            crate::servers::python().display()
        );
    }
    server
}

fn rows(ran: &Ran) -> Vec<Value> {
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    serde_json::from_str(&ran.out).unwrap()
}

fn fails(ran: &Ran, code: i32, words: &str) {
    assert_eq!(ran.code, Some(code), "{}\n{}", ran.out, ran.err);
    assert!(ran.err.contains(words), "{words:?} is not in {}", ran.err);
}

fn begun(fleet: &Fleet, arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir-fleet"));
    command.env("WEIR_FLEET", fleet.path("results")).args(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn only_questions_pass_and_no_secret_goes_in_the_open() {
    let fleet = fleet();
    // Nobody listens there: what is refused here is refused before anything is sent.
    let nobody = "sc://192.0.2.1";
    for (sql, words) in [
        ("DROP TABLE stages", "expected a question"),
        ("SELECT 1 AS x; SELECT 2 AS x", "expected one question, got 2"),
        ("CREATE TABLE t AS SELECT 1 AS x", "expected a question"),
        ("SET spark.x = 1", "expected a question"),
        ("WITH t AS (SELECT 1 AS n) INSERT INTO stages SELECT n FROM t", "expected a question"),
        ("SELECT n INTO t FROM stages", "expected a question"),
        ("SELECT n FROM stages UNION ALL SELECT n INTO t FROM stages", "expected a question"),
        ("SELECT FROM FROM", "Expected an expression"),
        ("", "got 0"),
    ] {
        fails(&fleet.run(&["sql", "--spark", nobody, sql]), 2, words);
        fails(&fleet.run(&["sql", sql]), 2, words);
    }
    let token = fleet.path("token");
    fs::write(&token, "s3cret\n").unwrap();
    let named = token.display().to_string();
    let ask = |url: &str, options: &[&str]| {
        fleet.run(&[&["sql", "--spark", url], options, &["SELECT 1 AS x"]].concat())
    };
    fs::set_permissions(&token, fs::Permissions::from_mode(0o640)).unwrap();
    fails(&ask(&format!("{nobody}/;use_ssl=true"), &["--spark-token", &named]), 2, "others may read");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    fails(&ask(nobody, &["--spark-token", &named]), 2, "for everybody to read");
    fails(&ask("sc://127.0.0.1/;token=s3cret", &[]), 2, "seen by every account");
    fails(&ask("sc://127.0.0.1:1", &["--spark-token", &named]), 3, "does not answer");
    fails(&fleet.run(&["sql", "--spark-token", &named, "SELECT 1 AS x"]), 2, "--spark");
}

#[test]
fn an_answer_that_breaks_off_is_taken_up_where_it_broke() {
    let Some(server) = sail("an_answer_that_breaks_off_is_taken_up_where_it_broke") else { return };
    let fleet = fleet();
    let here = fleet.ask(ALL);
    let cutter = Cutter::new(server.port, 2, 40_000);
    let url = format!("sc://127.0.0.1:{}", cutter.port);
    assert_eq!(rows(&fleet.run(&["sql", "--json", "--spark", &url, ALL])), here);
    assert_eq!(cutter.cuts.load(Ordering::SeqCst), 2, "cuts");
    // One that breaks every time is given up.
    let cutter = Cutter::new(server.port, usize::MAX, 2_000);
    let url = format!("sc://127.0.0.1:{}", cutter.port);
    fails(&fleet.run(&["sql", "--spark", &url, ALL]), 3, "error: Spark at 127.0.0.1");
}

#[test]
fn an_answer_that_the_server_forgot_is_asked_for_anew() {
    let Some(server) = sail("an_answer_that_the_server_forgot_is_asked_for_anew") else { return };
    let fleet = fleet();
    // Sail forgets what it sent whole, and this fits between it and who never read it.
    let few = format!("{ALL} LIMIT 100");
    let here = fleet.ask(&few);
    for cuts in 1..=3 {
        let cutter = Cutter::late(server.port, cuts, 3_000, Duration::from_secs(1));
        let url = format!("sc://127.0.0.1:{}", cutter.port);
        assert_eq!(rows(&fleet.run(&["sql", "--json", "--spark", &url, &few])), here);
        assert_eq!(cutter.cuts.load(Ordering::SeqCst), cuts, "cuts");
    }
}

/// A connection that ends as the plan is sent: nobody knows whether it arrived.
#[test]
fn a_plan_whose_connection_ends_before_any_answer_is_sent_anew() {
    let Some(server) = sail("a_plan_whose_connection_ends_before_any_answer_is_sent_anew") else { return };
    let fleet = fleet();
    let few = format!("{ALL} LIMIT 100");
    let here = fleet.ask(&few);
    let cutter = Cutter::new(server.port, 2, 1);
    let url = format!("sc://127.0.0.1:{}", cutter.port);
    assert_eq!(rows(&fleet.run(&["sql", "--json", "--spark", &url, &few])), here);
    assert_eq!(cutter.cuts.load(Ordering::SeqCst), 2, "cuts");
}

fn a_signal_ends(server: &Server) {
    let fleet = fleet();
    let mut child = begun(&fleet, &["sql", "--spark", &server.address(), ENDLESS]);
    std::thread::sleep(Duration::from_secs(3));
    assert!(child.try_wait().unwrap().is_none(), "it runs");
    let sent = Instant::now();
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap());
    fails(&ran, 130, "ended on the server too");
    assert!(sent.elapsed() < Duration::from_secs(20), "{:?}", sent.elapsed());
}

#[test]
fn a_signal_ends_a_question_here_and_on_the_server() {
    let Some(server) = sail("a_signal_ends_a_question_here_and_on_the_server") else { return };
    a_signal_ends(&server);
}

#[test]
fn tls_goes_by_the_authority_that_was_named() {
    let Some(server) = sail("tls_goes_by_the_authority_that_was_named") else { return };
    let (fleet, tls) = (fleet(), Tls::before(server.port));
    let ask = |url: &str, ca: &str| {
        fleet.run(&[
            "sql",
            "--json",
            "--spark",
            url,
            "--spark-ca",
            &tls.file(ca),
            "SELECT COUNT(*) AS n FROM stages",
        ])
    };
    let url = format!("sc://localhost:{}/;use_ssl=true", tls.port);
    assert_eq!(rows(&ask(&url, "ca.pem")), fleet.ask("SELECT COUNT(*) AS n FROM stages"));
    fails(&ask(&url, "other.pem"), 3, "certificate");
    // The system knows no such authority.
    fails(&fleet.run(&["sql", "--spark", &url, "SELECT 1 AS x"]), 3, "certificate");
    fails(&ask(&format!("sc://localhost:{}", tls.port), "ca.pem"), 2, "asks for no TLS");
}

#[test]
fn a_damaged_file_is_named_and_left_out_on_a_server_too() {
    let Some(server) = sail("a_damaged_file_is_named_and_left_out_on_a_server_too") else { return };
    let fleet = fleet();
    let file = fleet.path("results/store/kind=syncs").read_dir().unwrap().next().unwrap().unwrap().path();
    let file = file.join("host=03/a.parquet");
    let mut bytes = fs::read(&file).unwrap();
    // Its end, with the footer, stays whole.
    bytes[4..200].fill(0xff);
    fs::write(&file, bytes).unwrap();
    let sql = "SELECT host, SUM(n) AS n FROM syncs GROUP BY host ORDER BY host";
    let there = fleet.run(&["sql", "--json", "--spark", &server.address(), sql]);
    assert!(there.err.contains("left out"), "{}", there.err);
    assert_eq!(rows(&there), fleet.ask(sql));
}

#[test]
fn a_spark_cluster_wants_its_token_and_knows_where_it_lacks_the_tables() {
    let test = "a_spark_cluster_wants_its_token_and_knows_where_it_lacks_the_tables";
    let Some(server) = Server::spark(test, Some("s3cret")) else { return };
    let fleet = fleet();
    let token = fleet.path("token");
    let ask = |secret: &str, options: &[&str]| {
        fs::write(&token, secret).unwrap();
        fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
        let named = token.display().to_string();
        let url = server.address();
        let first = ["sql", "--json", "--spark", &url, "--spark-token", &named];
        fleet.run(&[&first, options, &["SELECT COUNT(*) AS n FROM stages"]].concat())
    };
    assert_eq!(rows(&ask("s3cret", &[])), fleet.ask("SELECT COUNT(*) AS n FROM stages"));
    fails(&ask("wrong", &[]), 3, "refuses");
    fails(&ask("s3cret", &["--spark-store", "file:///nowhere/store"]), 3, "--spark-store");
}

#[test]
fn a_spark_worker_that_dies_in_the_middle_costs_time_alone() {
    let test = "a_spark_worker_that_dies_in_the_middle_costs_time_alone";
    let Some(server) = Server::spark(test, None) else { return };
    let fleet = fleet();
    // Long enough for a worker to die meanwhile: some ten seconds of two processors.
    let sql = "SELECT a.host, SUM((a.n * b.n) % 97 + c.n % 13) AS s FROM stages a CROSS JOIN syncs b CROSS JOIN (SELECT 1 AS n UNION ALL SELECT 2 AS n) c \
        GROUP BY a.host ORDER BY a.host";
    let alone = rows(&fleet.run(&["sql", "--json", "--spark", &server.address(), sql]));
    let child = begun(&fleet, &["sql", "--json", "--spark", &server.address(), sql]);
    std::thread::sleep(Duration::from_secs(4));
    // The worker, and its executors with it.
    let worker = &server.workers[0];
    Command::new("pkill").args(["-KILL", "-P", worker]).status().unwrap();
    Command::new("kill").args(["-KILL", worker]).status().unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(rows(&ran), alone);
    assert!(server.log("connect.log").contains("Lost executor"), "it died in the middle");
    a_signal_ends(&server);
    assert!(server.log("connect.log").contains("OPERATION_CANCELED"), "ended there too");
}

/// What a server without a password reads as root, it would read for every account that reaches it.
#[test]
fn what_root_starts_is_out_of_the_reach_of_others() {
    let (here, there) = std::sync::mpsc::channel();
    let apart = std::thread::spawn(move || {
        on_its_own_network();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        here.send((port, TcpStream::connect(("127.0.0.1", port)).is_ok())).unwrap();
        listener
    });
    let (port, is_reached_there) = there.recv().unwrap();
    let _listener = apart.join().unwrap();
    let is_reached_here = TcpStream::connect(("127.0.0.1", port)).is_ok();
    assert!(is_reached_there && is_reached_here != rustix::process::geteuid().is_root());
}
