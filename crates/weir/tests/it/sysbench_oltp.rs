//! sysbench's database scripts and users' own, on real servers: what weir itself has to answer for beyond the comparison
//! with sysbench. The servers are throw-away ones.

use std::io::Write;
use std::path::{Path, PathBuf};

use weir_db::sandbox::{Binaries, Flavour, Sandbox};
use weir_db::{Connection, Server};
use weir_oltp::Dialect;

use crate::db_server::words as as_words;
use crate::weir::{Ended, Weir};

const SCRIPTS: [&str; 10] = [
    "oltp_read_write",
    "oltp_read_only",
    "oltp_write_only",
    "oltp_point_select",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_insert",
    "oltp_delete",
    "select_random_points",
    "select_random_ranges",
];

/// A server with the database and the account that sysbench takes for granted.
struct Bench {
    sandbox: Sandbox,
    weir: Weir,
    folder: tempfile::TempDir,
}

impl Bench {
    /// `None`, and said, where no such server is installed.
    fn new(test: &str, flavour: Flavour) -> Option<Bench> {
        if let Err(error) = Binaries::find(flavour, None) {
            _ = writeln!(std::io::stderr(), "not run: {test} ({flavour}): {error}");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let sandbox = crate::db_server::started(flavour, &folder).unwrap();
        let bench = Bench { sandbox, weir: Weir::new(), folder };
        let statements: &[&str] = match flavour {
            Flavour::Postgres => {
                &["CREATE ROLE sbtest LOGIN SUPERUSER", "CREATE DATABASE sbtest OWNER sbtest"]
            }
            _ => &[
                "CREATE DATABASE sbtest",
                "CREATE USER sbtest@localhost",
                "GRANT ALL ON sbtest.* TO sbtest@localhost",
            ],
        };
        statements.iter().for_each(|sql| bench.sql(sql));
        Some(bench)
    }

    fn sql(&self, sql: &str) {
        Connection::open(&self.sandbox.server())
            .unwrap()
            .run(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    fn query(&self, sql: &str) -> String {
        let server = Server { database: "sbtest".to_string(), ..self.sandbox.server() };
        let rows = Connection::open(&server).unwrap().query(sql).unwrap();
        rows[0][0].clone().unwrap()
    }

    fn options(&self) -> Vec<String> {
        let socket = self.sandbox.socket();
        match self.sandbox.server().dialect {
            Dialect::MySql => vec![format!("--mysql-socket={}", socket.display())],
            Dialect::Postgres => vec![
                "--db-driver=pgsql".to_string(),
                format!("--pgsql-host={}", socket.parent().unwrap().display()),
                format!("--pgsql-port={}", socket.extension().unwrap().to_string_lossy()),
            ],
        }
    }

    fn words(&self, line: &str) -> Vec<String> {
        let typed = format!("sysbench {line}");
        typed.split_whitespace().map(str::to_string).chain(self.options()).collect()
    }

    fn run(&self, line: &str) -> Ended {
        let words = self.words(line);
        let words = as_words(&words);
        self.weir.run(self.folder.path(), &words)
    }

    fn good(&self, line: &str) -> Ended {
        let ended = self.run(line);
        assert_eq!(ended.code, 0, "{line}: {ended:?}");
        ended
    }
}

fn each_server(test: &str, check: impl Fn(&Bench)) {
    for flavour in [Flavour::Mariadb, Flavour::Postgres] {
        if let Some(bench) = Bench::new(test, flavour) {
            check(&bench);
        }
    }
}

/// A count of sysbench's report.
fn count(ended: &Ended, name: &str) -> u64 {
    let line = ended.stdout.lines().find(|line| line.trim_start().starts_with(name));
    let line = line.unwrap_or_else(|| panic!("no {name} in {ended:?}"));
    line.split_whitespace().nth(name.split_whitespace().count()).unwrap().parse().unwrap()
}

fn scripts_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sysbench/scripts")
}

#[test]
fn all_scripts_run_on_both_servers_and_leave_records() {
    each_server("all_scripts_run_on_both_servers_and_leave_records", |bench| {
        bench.good("oltp_read_write --table-size=200 prepare");
        for (index, script) in SCRIPTS.iter().enumerate() {
            let ended = bench.good(&format!("{script} --table-size=200 --events=25 --threads=1 run"));
            assert_eq!(count(&ended, "transactions:"), 25, "{ended:?}");
            let statements = ["read:", "write:", "other:"].map(|name| count(&ended, name));
            let expected = match *script {
                "oltp_read_write" => Some([350, 100, 50]),
                "oltp_read_only" => Some([350, 0, 50]),
                "oltp_write_only" => Some([0, 100, 50]),
                "oltp_point_select" | "select_random_points" | "select_random_ranges" => Some([25, 0, 0]),
                "oltp_insert" | "oltp_update_index" | "oltp_update_non_index" => Some([0, 25, 0]),
                // A row that is gone already counts with the others.
                _ => None,
            };
            assert!(expected.is_none_or(|expected| expected == statements), "{script}: {statements:?}");
            let records = bench.weir.records();
            assert_eq!(records.len(), index + 1);
            let record = records.iter().find(|record| record["extra"]["script_path"] == *script).unwrap();
            assert_eq!(record["kind"], "db");
            assert_eq!(record["extra"]["threads"][0]["transactions"], 25);
        }
        bench.good("oltp_read_write cleanup");
        bench.good("bulk_insert --threads=2 prepare");
        bench.good("bulk_insert --threads=2 --events=60000 run");
        let rows: u64 = ["sbtest1", "sbtest2"]
            .iter()
            .map(|name| bench.query(&format!("SELECT COUNT(*) FROM {name}")).parse::<u64>().unwrap())
            .sum();
        assert_eq!(rows, 60_000);
        bench.good("bulk_insert --threads=2 cleanup");
    });
}

#[test]
fn users_scripts_run_on_both_servers() {
    each_server("users_scripts_run_on_both_servers", |bench| {
        let folder = scripts_folder();
        let script = |name: &str| folder.join(name).display().to_string();
        for (name, options, said) in [
            ("own-tables.lua", "--events=20 --batch-rows=3 --threads=2", "transactions:"),
            ("prepared.lua", "--events=20", "transactions:"),
            ("hooks.lua", "--events=5", "restarts: 1"),
            ("csv.lua", "--time=2 --report-interval=1", "reads are events: true"),
            ("no-sql.lua", "--events=30", "General statistics:"),
        ] {
            let path = script(name);
            let has_tables = ["own-tables.lua", "prepared.lua", "hooks.lua"].contains(&name);
            if has_tables {
                bench.good(&format!("{path} prepare"));
            }
            let ended = bench.good(&format!("{path} {options} run"));
            assert!(ended.stdout.contains(said), "{name}: {ended:?}");
            if has_tables {
                bench.good(&format!("{path} cleanup"));
            }
        }
    });
}

#[test]
fn passwords_reach_the_server_and_nothing_else() {
    each_server("passwords_reach_the_server_and_nothing_else", |bench| {
        let option = match bench.sandbox.server().dialect {
            Dialect::MySql => "--mysql-password",
            Dialect::Postgres => "--pgsql-password",
        };
        let ended = bench.run(&format!("oltp_point_select {option}=hunter2 --events=1 run"));
        let text = format!("{}{}{:?}", ended.stdout, ended.stderr, bench.weir.records());
        assert!(!text.contains("hunter2"), "{text}");
    });
}

#[test]
fn what_goes_wrong_is_said_and_counted() {
    each_server("what_goes_wrong_is_said_and_counted", |bench| {
        let missing = bench.run("oltp_read_write --tables=2 --table-size=10 --threads=2 run");
        assert_eq!(missing.code, 1, "{missing:?}");
        assert!(missing.stdout.contains("sbtest1"), "{missing:?}");
        assert!(missing.stdout.ends_with("FATAL: Thread initialization failed!\n"), "{missing:?}");
        assert_eq!(bench.weir.records().len(), 0);
        // A table that goes away in the middle: no report, exit code 1, and the record is kept.
        let script = bench.folder.path().join("mine.lua");
        std::fs::write(
            &script,
            "function prepare() sysbench.sql.driver():connect():query('CREATE TABLE t (a INTEGER)') end\n\
             function thread_init() con = sysbench.sql.driver():connect() end\nlocal n = 0\n\
             function event() n = n + 1\n if n == 10 then con:query('DROP TABLE t') end\n \
             con:query('SELECT a FROM t')\nend\n",
        )
        .unwrap();
        bench.good(&format!("{} prepare", script.display()));
        let ended = bench.run(&format!("{} --events=50 run", script.display()));
        assert_eq!(ended.code, 1, "{ended:?}");
        assert!(ended.stdout.contains("mine.lua:6: SQL error"), "{ended:?}");
        assert!(!ended.stdout.contains("SQL statistics:"), "{ended:?}");
        let record = &bench.weir.records()[0];
        assert!(record["ended_early"].as_str().unwrap().contains("mine.lua:6"), "{record}");
        assert_eq!(record["extra"]["threads"][0]["transactions"], 9);
    });
}

#[test]
fn a_connection_that_is_killed_is_made_again_where_that_is_asked_for() {
    let test = "a_connection_that_is_killed_is_made_again_where_that_is_asked_for";
    let Some(bench) = Bench::new(test, Flavour::Mariadb) else { return };
    bench.good("oltp_point_select --table-size=100 prepare");
    let script = bench.folder.path().join("killed.lua");
    // Its own connection is killed by another one, once.
    std::fs::write(
        &script,
        "require('oltp_point_select')\nlocal n = 0\nlocal inner = event\nfunction event()\n  n = n + 1\n  if n == 5 then\n    \
         sysbench.sql.driver():connect():query('KILL ' .. con:query_row('SELECT CONNECTION_ID()'))\n  end\n  inner()\nend\n",
    )
    .unwrap();
    let line = format!("{} --table-size=100 --events=20", script.display());
    let lost = bench.run(&format!("{line} run"));
    assert_eq!(lost.code, 1, "{lost:?}");
    let ended = bench.good(&format!("{line} --mysql-ignore-errors=2013,2006,1927 run"));
    assert_eq!([count(&ended, "reconnects:"), count(&ended, "transactions:")], [1, 20], "{ended:?}");
}

#[test]
fn interrupted_runs_report_what_they_measured() {
    let test = "interrupted_runs_report_what_they_measured";
    let Some(bench) = Bench::new(test, Flavour::Mariadb) else { return };
    bench.good("oltp_read_only --table-size=100 prepare");
    let words = bench.words("oltp_read_only --table-size=100 --time=60 --report-interval=1 run");
    let words = as_words(&words);
    let executed =
        "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME='COM_STMT_EXECUTE'";
    let is_at_work = || bench.query(executed).parse::<u64>().unwrap() > 200;
    let mut running = bench.weir.start(bench.folder.path(), &words, |_| is_at_work());
    running.signal("INT");
    let ended = running.finish();
    assert_eq!(ended.code, 130, "{ended:?}");
    assert!(count(&ended, "transactions:") > 0, "{ended:?}");
    assert_eq!(bench.weir.records()[0]["ended_early"], "SIGINT");
}

/// A statement that is cancelled then is no failure of the script.
#[test]
fn an_interrupt_does_not_wait_for_a_statement_that_hangs() {
    each_server("an_interrupt_does_not_wait_for_a_statement_that_hangs", |bench| {
        let sleep = if bench.sandbox.server().dialect == Dialect::MySql { "SLEEP" } else { "pg_sleep" };
        let script = bench.folder.path().join("slow.lua");
        let text = format!(
            "function thread_init() con = sysbench.sql.driver():connect() end\nlocal n = 0\nfunction event()\n n = n + 1\n \
             con:query('SELECT 1')\n if n == 5 then io.open('here', 'w'):close() con:query('SELECT {sleep}(1000)') end\nend\n"
        );
        std::fs::write(&script, text).unwrap();
        let words = bench.words(&format!("{} --time=0 run", script.display()));
        let words = as_words(&words);
        let here = bench.folder.path().join("here");
        let mut running = bench.weir.start(bench.folder.path(), &words, |_| here.exists());
        running.signal("INT");
        let ended = running.finish();
        assert_eq!(ended.code, 130, "{ended:?}");
        assert!(count(&ended, "transactions:") >= 4 && !ended.stdout.contains("FATAL"), "{ended:?}");
        assert_eq!(bench.weir.records()[0]["ended_early"], "SIGINT");
    });
}

#[test]
fn variables_name_passwords() {
    let test = "variables_name_passwords";
    let Some(bench) = Bench::new(test, Flavour::Mariadb) else { return };
    bench.sql("CREATE USER guarded@localhost IDENTIFIED BY 'hunter2'");
    bench.sql("GRANT ALL ON sbtest.* TO guarded@localhost");
    let words = bench.words("oltp_point_select --mysql-user=guarded --table-size=10 prepare");
    let words = as_words(&words);
    let refused = bench.weir.run(bench.folder.path(), &words);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stdout.contains("FATAL: error 1045: Access denied"), "{refused:?}");
    let mut command = bench.weir.command(bench.folder.path(), &words);
    command.env("MYSQL_PWD", "hunter2");
    assert_eq!(crate::weir::ended(command).code, 0);
}

/// No limit is what ended a script that ended itself.
#[test]
fn a_script_that_ends_itself_exceeds_no_limit() {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    std::fs::write(folder.path().join("once.lua"), "function event() return 1 end\n").unwrap();
    let line = ["sysbench", "./once.lua", "--time=0", "--verbosity=4", "run"];
    let ended = weir.run(folder.path(), &line);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.stdout.contains("Done.") && !ended.stdout.contains("limit exceeded"), "{ended:?}");
}
