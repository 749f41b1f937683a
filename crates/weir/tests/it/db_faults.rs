//! What goes wrong between weir and a server: names, passwords, signals, servers that die.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::db_server::{FLAVOURS, TestServer, folder, server_or_say, words};
use crate::weir::Weir;

#[test]
fn servers_that_cannot_be_reached_are_named_and_no_password_is_repeated() {
    let (weir, folder) = (Weir::new(), folder());
    for (line, code, stderr) in [
        ("--server mysql://ann:geheim@db1/", 2, &["list of processes", "~/.my.cnf"][..]),
        ("--server oracle://db1", 2, &["expected a family of servers"]),
        ("--mysql --socket /nowhere/mysqld.sock", 3, &["/nowhere/mysqld.sock", "is it running"]),
        ("--postgres --socket /nowhere/.s.PGSQL.5432", 3, &["/nowhere/.s.PGSQL.5432"]),
        ("--mysql=127.0.0.1:1", 3, &["127.0.0.1:1", "firewall"]),
        ("--mysql --postgres", 2, &["cannot be used with"]),
        ("--mysql --tls maybe", 2, &["a mode of encryption"]),
        ("--mysql=db1 --tls verify-ca", 2, &["--tls-ca"]),
        ("--mysql --defaults-file /nowhere.cnf", 2, &["/nowhere.cnf"]),
        ("--mysql --threads 0", 2, &["thread"]),
        ("--mysql --rate -1", 2, &[]),
        ("--mysql --keys zipf:x", 2, &["not a number"]),
        ("--mysql --format fio-json", 2, &["transactions"]),
        ("--mysql --script x.lua --tables 2", 2, &["--tables has no effect", "come last, after `--`"]),
    ] {
        let line: Vec<&str> = ["db", "run"].into_iter().chain(line.split(' ')).collect();
        let ended = weir.run(folder.path(), &line);
        assert_eq!((ended.code, ended.stdout.as_str()), (code, ""), "{line:?}: {ended:?}");
        stderr.iter().for_each(|word| assert!(ended.stderr.contains(word), "no `{word}` in {ended:?}"));
        assert!(!ended.stderr.contains("geheim"), "{ended:?}");
    }
    let typo = weir.run(folder.path(), &["db", "run", "read_wrte", "--mysql"]);
    assert!(typo.code == 2 && typo.stderr.contains("did you mean `read_write`"), "{typo:?}");
    assert_eq!(weir.records().len(), 0);
}

/// An account with a password, and the file in which its client would look for it.
fn with_password(server: &TestServer, home: &std::path::Path) -> Vec<String> {
    let lobby = server.sandbox.server().database;
    let socket = server.sandbox.socket();
    let (statements, file, text): (&[&str], _, _) = match server.sandbox.server().dialect {
        weir_oltp::Dialect::MySql => (
            &["CREATE USER ann@localhost IDENTIFIED BY 'geheim'", "GRANT ALL ON weir.* TO ann@localhost"],
            ".my.cnf",
            format!("[client]\nuser = ann\npassword = \"geheim\"\nsocket = {}\n", socket.display()),
        ),
        weir_oltp::Dialect::Postgres => (
            &["CREATE ROLE ann LOGIN CREATEDB PASSWORD 'geheim'"],
            ".pgpass",
            format!("{}:*:*:ann:geheim\n", socket.parent().unwrap().display()),
        ),
    };
    server.run(&lobby, statements);
    let path = home.join(file);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let mut line = server.options();
    let user = line.iter().position(|word| word == "--user").unwrap();
    line[user + 1] = "ann".to_string();
    line
}

#[test]
fn passwords_come_from_files_and_stay_out_of_records() {
    for flavour in FLAVOURS {
        let test = "passwords_come_from_files_and_stay_out_of_records";
        let Some(server) = server_or_say(test, flavour) else { continue };
        let (weir, folder) = (Weir::new(), folder());
        let options = with_password(&server, folder.path());
        let run = |words: &[&str]| {
            let mut command = weir.command(folder.path(), &["db", words[0]]);
            command.args(&options).args(&words[1..]).env("HOME", folder.path());
            command.env_remove("MYSQL_PWD").env_remove("PGPASSWORD");
            crate::weir::ended(command)
        };
        assert_eq!(run(&["prepare", "--table-size", "100"]).code, 0, "{:?}", run(&["prepare"]));
        let ran = run(&["run", "--table-size", "100", "--transactions", "5"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let text = serde_json::to_string(&weir.records()).unwrap();
        assert!(!text.contains("geheim") && !ran.stdout.contains("geheim") && !ran.stderr.contains("geheim"));
        if flavour == weir_db::sandbox::Flavour::Mariadb {
            // A throw-away PostgreSQL trusts everybody on its socket.
            fs::write(folder.path().join(".my.cnf"), "[client]\npassword = falsch\n").unwrap();
            let refused = run(&["run"]);
            assert_eq!(refused.code, 3, "{refused:?}");
            let says = ["refuses the connection", "1045", ".my.cnf", "--ask-password"];
            says.iter().for_each(|word| assert!(refused.stderr.contains(word), "no `{word}` in {refused:?}"));
            assert!(!refused.stderr.contains("falsch"), "{refused:?}");
            // Trials log in as the command did.
            let other = folder.path().join("other.cnf");
            fs::write(&other, "[client]\nuser = ann\npassword = geheim\n").unwrap();
            fs::set_permissions(&other, fs::Permissions::from_mode(0o600)).unwrap();
            let other = other.display().to_string();
            let few =
                ["--ladder", "1,2", "--repeats", "1", "--time", "500ms", "--washout", "1s", "--no-trace"];
            let scale = ["scale", "--defaults-file", &other, "--table-size", "100"];
            let scaled = run(&[&scale[..], &few].concat());
            assert_eq!(scaled.code, 0, "{scaled:?}");
        }
        assert_eq!(run(&["cleanup"]).code, if flavour == weir_db::sandbox::Flavour::Mariadb { 3 } else { 0 });
    }
}

/// A script whose connection is killed in its fifth event, by another one.
fn killed(dialect: weir_oltp::Dialect) -> String {
    let (own, kill) = match dialect {
        weir_oltp::Dialect::MySql => ("SELECT CONNECTION_ID()", "KILL %s"),
        weir_oltp::Dialect::Postgres => ("SELECT pg_backend_pid()", "SELECT pg_terminate_backend(%s)"),
    };
    format!(
        "local drv = sysbench.sql.driver()\nfunction thread_init() con = drv:connect() end\nlocal n = 0\n\
         function event()\n n = n + 1\n \
         if n == 5 then drv:connect():query(string.format('{kill}', con:query_row('{own}'))) end\n \
         con:query('SELECT 1')\nend\n"
    )
}

#[test]
fn a_script_is_held_to_the_options_of_a_run() {
    for flavour in FLAVOURS {
        let test = "a_script_is_held_to_the_options_of_a_run";
        let Some(server) = server_or_say(test, flavour) else { continue };
        let (weir, folder) = (Weir::new(), folder());
        let run = |line: &[&str]| weir.run(folder.path(), &words(&server.line(line)));
        assert_eq!(run(&["prepare", "--table-size", "10"]).code, 0);
        let dialect = server.sandbox.server().dialect;
        let script = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        script("killed.lua", &killed(dialect));
        let line = ["run", "--script", "killed.lua", "--transactions", "20", "--no-trace"];
        let ended = run(&line);
        assert_eq!(ended.code, 4, "{ended:?}");
        let ended = run(&[&line[..], &["--reconnect"]].concat());
        assert_eq!(ended.code, 0, "{ended:?}");
        let record = &weir.records()[1]["extra"];
        assert_eq!((record["reconnects"].as_u64(), record["error"].as_str()), (Some(1), None));
        assert_eq!(record["threads"][0]["transactions"], 20);

        let sleep = if dialect == weir_oltp::Dialect::MySql { "SLEEP" } else { "pg_sleep" };
        let slow =
            format!("function event() sysbench.sql.driver():connect():query('SELECT {sleep}(100)') end\n");
        script("slow.lua", &slow);
        let ended = run(&["run", "--script", "slow.lua", "--statement-timeout", "200ms", "--no-trace"]);
        assert_eq!(ended.code, 4, "{ended:?}");
        assert!(ended.stderr.contains("no answer from"), "{ended:?}");

        script("done.lua", "function event() end\nfunction done() error('after all') end\n");
        let ended = run(&["run", "--script", "done.lua", "--transactions", "20", "--no-trace"]);
        assert_eq!(ended.code, 4, "{ended:?}");
        assert!(ended.stderr.contains("after all") && !ended.stdout.is_empty(), "{ended:?}");
        let record = weir.records().pop().unwrap();
        assert_eq!(record["extra"]["threads"][0]["transactions"], 20);
        assert!(record["extra"]["error"].is_null() && record["ended_early"].is_null(), "{record}");
    }
}

#[test]
fn a_run_that_is_interrupted_keeps_what_it_measured() {
    for flavour in FLAVOURS {
        let test = "a_run_that_is_interrupted_keeps_what_it_measured";
        let Some(server) = server_or_say(test, flavour) else { continue };
        let (weir, folder) = (Weir::new(), folder());
        let prepared = weir.run(folder.path(), &words(&server.line(&["prepare", "--table-size", "1000"])));
        assert_eq!(prepared.code, 0, "{prepared:?}");
        let line = server.line(&["run", "--table-size", "1000", "--threads", "2", "--time", "600"]);
        let mut running = weir.start(folder.path(), &words(&line), |_| true);
        server.wait_for_transactions();
        running.signal("INT");
        let ended = running.finish();
        assert_eq!(ended.code, 130, "{ended:?}");
        assert!(ended.stdout.contains("ended early (SIGINT)"), "{ended:?}");
        let record = &weir.records()[0];
        assert_eq!(record["ended_early"], "SIGINT");
        assert!(record["extra"]["kinds"]["transaction"]["latency"]["count"].as_u64().unwrap() > 0);
    }
}

#[test]
fn a_prepare_that_is_interrupted_leaves_nothing() {
    for flavour in FLAVOURS {
        let test = "a_prepare_that_is_interrupted_leaves_nothing";
        let Some(server) = server_or_say(test, flavour) else { continue };
        let (weir, folder) = (Weir::new(), folder());
        // A million rows need less room than the server itself. One that is done before the signal comes is tried again
        // with more.
        let mut rows = 1_000_000;
        let ended = loop {
            let line = server.line(&["prepare", "--table-size", &rows.to_string()]);
            let mut running = weir.start(folder.path(), &words(&line), |_| true);
            while !running.has_ended() && !server.databases().contains(&"weir".to_string()) {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            if !running.has_ended() {
                running.signal("TERM");
            }
            let ended = running.finish();
            if ended.code != 0 {
                break ended;
            }
            assert_eq!(weir.run(folder.path(), &words(&server.line(&["cleanup"]))).code, 0);
            rows *= 4;
        };
        assert_eq!(ended.code, 128 + 15, "{ended:?}");
        assert_eq!(server.databases(), Vec::<String>::new(), "{ended:?}");
    }
}

#[test]
fn a_server_that_dies_ends_the_run_with_an_intact_record() {
    for flavour in FLAVOURS {
        let test = "a_server_that_dies_ends_the_run_with_an_intact_record";
        let Some(mut server) = server_or_say(test, flavour) else { continue };
        let (weir, folder) = (Weir::new(), folder());
        let prepared = weir.run(folder.path(), &words(&server.line(&["prepare", "--table-size", "1000"])));
        assert_eq!(prepared.code, 0, "{prepared:?}");
        let line = server.line(&["run", "--table-size", "1000", "--threads", "2", "--time", "600"]);
        let mut running = weir.start(folder.path(), &words(&line), |_| true);
        server.wait_for_transactions();
        server.sandbox.kill().unwrap();
        let ended = running.finish();
        assert_eq!(ended.code, 4, "{ended:?}");
        assert!(
            ended.stderr.contains("error: ") && ended.stderr.contains("measurements until then"),
            "{ended:?}"
        );
        let record = &weir.records()[0];
        assert!(record["extra"]["error"].is_string() && record["ended_early"].is_string());
        assert!(record["extra"]["kinds"]["transaction"]["latency"]["count"].as_u64().unwrap() > 0);
        let shown = weir.run(folder.path(), &["results", "show", "last"]);
        assert!(shown.code == 0 && shown.unwrapped().contains("an error ended the run"), "{shown:?}");
    }
}
