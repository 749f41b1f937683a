//! Every workload on real servers, from prepare to cleanup, and what goes wrong on the way.
#![allow(
    clippy::unwrap_used,
    reason = "test code throughout; clippy knows that only of functions under #[test]"
)]

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};

use weir_core::units::Nanos;
use weir_core::workload::spec::Distribution;
use weir_db::database::Removal;
use weir_db::load::{self, LoadOptions, Way};
use weir_db::runner::{self, Observer, RunOptions, Silent, Stop, Tick};
use weir_db::sandbox::{Binaries, Flavour, Sandbox, SandboxSpec, set_remover};
use weir_db::vitals::variables_that_matter;
use weir_db::{Connection, DbError, Place, Secret, Server, database};
use weir_oltp::record::ServerRecord;
use weir_oltp::{Dialect, Kind, OltpRecord, OltpSpec, Script, size, statement_order};

/// The servers that are installed; the set-up of the tests installs both.
fn installed(test: &str) -> Vec<Flavour> {
    let found = |flavour: &Flavour| match Binaries::find(*flavour, None) {
        Ok(_) => true,
        Err(error) => {
            _ = writeln!(std::io::stderr(), "not run: {test} ({flavour}): {error}");
            false
        }
    };
    [Flavour::Mariadb, Flavour::Postgres].into_iter().filter(found).collect()
}

fn start(flavour: Flavour, name: &str, variables: &[(&str, &str)]) -> Sandbox {
    set_remover(Path::new(env!("CARGO_BIN_EXE_weir-remover")));
    let memory = PathBuf::from("/dev/shm");
    let parent = if memory.is_dir() { memory } else { std::env::temp_dir() };
    let dir = parent.join(format!("weir-workload-{}-{}-{name}", std::process::id(), flavour.word()));
    let mut spec = SandboxSpec::new(flavour, dir);
    for (name, value) in variables {
        spec = spec.set(name, value);
    }
    Sandbox::start(&spec, &|| false).unwrap()
}

/// Ends with the test process, however that ends.
fn shared(flavour: Flavour) -> Server {
    static MARIADB: OnceLock<Mutex<Sandbox>> = OnceLock::new();
    static POSTGRES: OnceLock<Mutex<Sandbox>> = OnceLock::new();
    let place = if flavour == Flavour::Postgres { &POSTGRES } else { &MARIADB };
    place.get_or_init(|| Mutex::new(start(flavour, "shared", &[]))).lock().unwrap().server()
}

/// A database of its own on a server.
fn database(server: &Server, name: &str) -> Server {
    let mut connection = Connection::open(server).unwrap();
    connection.run(&format!("DROP DATABASE IF EXISTS {name}")).unwrap();
    connection.run(&format!("CREATE DATABASE {name}")).unwrap();
    Server { database: name.to_string(), ..server.clone() }
}

fn prepare(spec: &OltpSpec, server: &Server, options: &LoadOptions) -> Result<load::Loaded, DbError> {
    load::prepare(spec, server, options, &|_| {}, &Stop::default())
}

fn run(spec: &OltpSpec, server: &Server) -> Result<OltpRecord, DbError> {
    runner::run(spec, std::slice::from_ref(server), &RunOptions::default(), &mut Silent, &Stop::default())
}

fn count(record: &OltpRecord, kind: Kind) -> u64 {
    record.kinds.get(&kind).map_or(0, |kind| kind.latency.count())
}

fn number(server: &Server, question: &str) -> i64 {
    let rows = Connection::open(server).unwrap().query(question).unwrap();
    rows[0][0].as_ref().unwrap().parse().unwrap()
}

fn small(script: Script) -> OltpSpec {
    let transactions = if script == Script::BulkInsert { 4 } else { 60 };
    OltpSpec {
        script,
        tables: 2,
        table_size: 300,
        threads: 3,
        transactions,
        duration: Nanos(0),
        ..OltpSpec::default()
    }
}

#[test]
fn every_script_runs_from_prepare_to_cleanup_and_leaves_nothing() {
    for flavour in installed("every_script_runs_from_prepare_to_cleanup_and_leaves_nothing") {
        for (script, prepared) in
            Script::ALL.into_iter().flat_map(|(_, script)| [(script, true), (script, false)])
        {
            let server = database(&shared(flavour), "every_script");
            let spec = OltpSpec { prepared, ..small(script) };
            let options = LoadOptions { threads: 2, ..LoadOptions::default() };
            let loaded = prepare(&spec, &server, &options).unwrap();
            let tables = if script == Script::BulkInsert { 3 } else { 2 };
            assert_eq!((loaded.made, loaded.found), (tables, 0), "{flavour} {script:?}");
            load::check(&spec, &server, &options).unwrap();

            let record = run(&spec, &server).unwrap();
            let about = format!("{flavour} {script:?} prepared: {prepared}");
            assert_eq!(record.error, None, "{about}");
            assert_eq!(count(&record, Kind::Transaction), spec.transactions, "{about}");
            for kind in statement_order::kinds(&spec) {
                let times = statement_order::of(&spec).iter().filter(|part| part.kind == kind).count() as u64;
                // A transaction that ran again has statements more.
                let least = times * spec.transactions;
                let found = count(&record, kind);
                assert!(
                    found >= least && (record.retried > 0 || found == least),
                    "{about}: {kind:?} {found}"
                );
            }
            let empty: u64 = record.kinds.values().map(|kind| kind.empty).sum();
            // An update that waited for another transaction's delete and insert of its row finds the row gone.
            let deletes = matches!(script, Script::Delete | Script::ReadWrite | Script::WriteOnly);
            assert!(empty == 0 || deletes || record.retried > 0, "{about}: {empty}");
            assert_eq!(record.server.dialect, Some(flavour.dialect()), "{about}");
            assert!(!record.server.version.is_empty() && record.server.places.len() == 1, "{about}");

            let (removed, left) = load::cleanup(&server, &options, &|_| {}, &Stop::default()).unwrap();
            assert_eq!((removed.len() as u32, left.len()), (tables, 0), "{about}");
            let (removed, _) = load::cleanup(&server, &options, &|_| {}, &Stop::default()).unwrap();
            assert!(removed.is_empty(), "{about}: {removed:?}");
        }
    }
}

#[test]
fn all_ways_of_loading_fill_the_same_rows_and_numbers_go_on_after_them() {
    for flavour in installed("all_ways_of_loading_fill_the_same_rows_and_numbers_go_on_after_them") {
        let server = database(&shared(flavour), "two_ways");
        let spec = OltpSpec { tables: 1, table_size: 20_000, ..small(Script::Insert) };
        let mut sums = Vec::new();
        let fastest = match flavour.dialect() {
            Dialect::Postgres => Way::Copy,
            Dialect::MySql => Way::Arrays,
        };
        let mut ways = vec![None, Some(Way::Insert)];
        ways.extend((fastest == Way::Arrays).then_some(Some(Way::LoadData)));
        for only in ways {
            // More connections than tables: two fill this one.
            let options = LoadOptions { only, threads: 3, ..LoadOptions::default() };
            let loaded = prepare(&spec, &server, &options).unwrap();
            assert_eq!((loaded.rows, loaded.way), (20_000, Some(only.unwrap_or(fastest))), "{flavour}");
            let question =
                "SELECT COUNT(*), SUM(k), MIN(id), MAX(id), MIN(c), MAX(c), MIN(pad), MAX(pad) FROM sbtest1";
            sums.push(Connection::open(&server).unwrap().query(question).unwrap());
            let record = run(&spec, &server).unwrap();
            assert_eq!((record.error, number(&server, "SELECT MAX(id) FROM sbtest1")), (None, 20_060));
            load::cleanup(&server, &options, &|_| {}, &Stop::default()).unwrap();
        }
        assert!(sums.iter().all(|sum| *sum == sums[0]), "{flavour}: {sums:?}");
    }
}

#[test]
fn the_binary_log_of_a_load_is_as_large_as_was_said() {
    if !installed("the_binary_log_of_a_load_is_as_large_as_was_said").contains(&Flavour::Mariadb) {
        return;
    }
    // A server that logs statements takes no arrays.
    for (format, way) in [("ROW", Way::Arrays), ("MIXED", Way::Arrays), ("STATEMENT", Way::LoadData)] {
        let sandbox = start(Flavour::Mariadb, "logged", &[("log_bin", "log"), ("binlog_format", format)]);
        let server = database(&sandbox.server(), "logged");
        let mut connection = Connection::open(&server).unwrap();
        let mut logged = || {
            let rows = connection.query("SHOW BINARY LOGS").unwrap();
            rows.iter().map(|row| row[1].as_ref().unwrap().parse::<u64>().unwrap()).sum::<u64>()
        };
        let spec = OltpSpec { tables: 1, table_size: 50_000, ..small(Script::ReadWrite) };
        let before = logged();
        assert_eq!(prepare(&spec, &server, &LoadOptions::default()).unwrap().way, Some(way), "{format}");
        let bytes = logged() - before;
        let variables = variables_that_matter(&mut connection).unwrap();
        let said = size::log_bytes(&spec, Dialect::MySql, &variables);
        assert!((said * 9 / 10..=said).contains(&bytes), "{format}: {bytes} of {said}");
    }
}

/// A user of a database's own, with these privileges on it; in PostgreSQL one that may make databases.
fn user(server: &Server, privileges: &str, database: &str) -> Server {
    let mut connection = Connection::open(server).unwrap();
    let statements = match server.dialect {
        Dialect::Postgres => vec!["CREATE ROLE plain LOGIN CREATEDB PASSWORD 'p'".to_string()],
        Dialect::MySql => vec![
            "CREATE USER plain@localhost IDENTIFIED BY 'p'".to_string(),
            format!("GRANT {privileges} ON {database}.* TO plain@localhost"),
        ],
    };
    for statement in statements {
        connection.run(&statement).unwrap();
    }
    let (user, password) = ("plain".to_string(), Secret::new("p"));
    Server { user, password, database: database.to_string(), ..server.clone() }
}

#[test]
fn rows_stay_where_the_server_commits_nothing_by_itself() {
    if !installed("rows_stay_where_the_server_commits_nothing_by_itself").contains(&Flavour::Mariadb) {
        return;
    }
    let sandbox = start(Flavour::Mariadb, "committing", &[("init_connect", "SET autocommit = 0")]);
    let superuser = database(&sandbox.server(), "committing");
    // A superuser's connections are spared it.
    let server = user(&superuser, "ALL", "committing");
    let (spec, count) = (small(Script::Insert), "SELECT COUNT(*) FROM sbtest1");
    for only in [Way::LoadData, Way::Insert] {
        prepare(&spec, &server, &LoadOptions { only: Some(only), ..LoadOptions::default() }).unwrap();
        assert_eq!(number(&superuser, count), 300, "{only:?}");
        assert_eq!(run(&OltpSpec { tables: 1, ..spec.clone() }, &server).unwrap().error, None);
        assert_eq!(number(&superuser, count), 360, "{only:?}");
        load::cleanup(&server, &LoadOptions::default(), &|_| {}, &Stop::default()).unwrap();
    }
}

#[test]
fn a_database_is_made_whole_or_not_at_all() {
    for flavour in installed("a_database_is_made_whole_or_not_at_all") {
        let clusters = ("innodb_force_primary_key", "1");
        let variables = if flavour == Flavour::Postgres { &[][..] } else { &[clusters] };
        let sandbox = start(flavour, "made", variables);
        let make = |server: &Server| {
            database::create(&mut Connection::open(&database::lobby(server)).unwrap(), server)
        };
        let server = Server { database: "made".to_string(), ..sandbox.server() };
        make(&server).unwrap();
        prepare(&small(Script::ReadWrite), &server, &LoadOptions::default()).unwrap();
        load::cleanup(&server, &LoadOptions::default(), &|_| {}, &Stop::default()).unwrap();
        assert_eq!(database::drop_made(&server).unwrap(), Removal::Removed, "{flavour}");

        // One that may make the database, and not what says whose it is.
        let poor = user(&sandbox.server(), "CREATE, DROP, SELECT", "undone");
        if flavour == Flavour::Postgres {
            let nowhere = "ALTER ROLE plain SET search_path = nowhere";
            Connection::open(&sandbox.server()).unwrap().run(nowhere).unwrap();
        }
        assert!(matches!(make(&poor), Err(DbError::Server(_))), "{flavour}");
        let left = Connection::open(&Server { database: "undone".to_string(), ..sandbox.server() });
        assert!(left.is_err_and(|error| database::is_missing(&error)), "{flavour}");
    }
}

#[test]
fn a_database_into_which_others_put_something_stays() {
    for flavour in installed("a_database_into_which_others_put_something_stays") {
        let server = Server { database: "shared_with_others".to_string(), ..shared(flavour) };
        let lobby = &mut Connection::open(&database::lobby(&server)).unwrap();
        lobby.run("DROP DATABASE IF EXISTS shared_with_others").unwrap();
        database::create(lobby, &server).unwrap();
        let objects: &[(&str, &str)] = match flavour.dialect() {
            Dialect::MySql => &[
                ("CREATE PROCEDURE p() SELECT 1", "DROP PROCEDURE p"),
                ("CREATE FUNCTION f() RETURNS INT RETURN 1", "DROP FUNCTION f"),
                ("CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 1", "DROP EVENT e"),
                ("CREATE VIEW v AS SELECT 1", "DROP VIEW v"),
            ],
            Dialect::Postgres => &[
                ("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'", "DROP FUNCTION f()"),
                ("CREATE SEQUENCE s", "DROP SEQUENCE s"),
                ("CREATE TYPE t AS ENUM ('a')", "DROP TYPE t"),
                ("CREATE TYPE t AS (a int)", "DROP TYPE t"),
                ("CREATE DOMAIN d AS int", "DROP DOMAIN d"),
                ("SELECT lo_create(77)", "SELECT lo_unlink(77)"),
                ("CREATE SCHEMA pgxtemp1 CREATE TABLE t (a int)", "DROP SCHEMA pgxtemp1 CASCADE"),
                ("CREATE SCHEMA mine", "DROP SCHEMA mine"),
                ("CREATE PUBLICATION p", "DROP PUBLICATION p"),
                ("CREATE FOREIGN DATA WRAPPER w", "DROP FOREIGN DATA WRAPPER w"),
            ],
        };
        for (make, remove) in objects {
            Connection::open(&server).unwrap().query(make).unwrap();
            assert_eq!(database::drop_made(&server).unwrap(), Removal::Shared, "{flavour}: {make}");
            Connection::open(&server).unwrap().query(remove).unwrap();
        }
        assert_eq!(database::drop_made(&server).unwrap(), Removal::Removed, "{flavour}");
        assert_eq!(database::drop_made(&server).unwrap(), Removal::NotMade, "{flavour}: it is gone");
    }
}

/// PostgreSQL copies what a site has put into its template into every database.
#[test]
fn a_database_that_holds_what_the_template_held_goes() {
    let name = "a_database_that_holds_what_the_template_held_goes";
    for flavour in installed(name).into_iter().filter(|flavour| *flavour == Flavour::Postgres) {
        let sandbox = start(flavour, "template", &[]);
        let template = Server { database: "template1".to_string(), ..sandbox.server() };
        for make in ["CREATE FUNCTION site() RETURNS int LANGUAGE sql AS 'SELECT 1'", "CREATE SCHEMA site"] {
            Connection::open_committing(&template).unwrap().run(make).unwrap();
        }
        let server = Server { database: "of_template".to_string(), ..sandbox.server() };
        database::create(&mut Connection::open(&database::lobby(&server)).unwrap(), &server).unwrap();
        assert_eq!(database::drop_made(&server).unwrap(), Removal::Removed);
    }
}

/// Nobody knows what a database held at first whose marker an older version made.
#[test]
fn a_database_of_an_older_version_stays() {
    for flavour in installed("a_database_of_an_older_version_stays") {
        let server = database(&shared(flavour), "older");
        let marker = "CREATE TABLE weir_made_this_database (version VARCHAR(40) NOT NULL PRIMARY KEY)";
        Connection::open_committing(&server).unwrap().run(marker).unwrap();
        assert_eq!(database::drop_made(&server).unwrap(), Removal::Shared, "{flavour}");
    }
}

#[test]
fn tables_of_another_size_or_maker_are_refused_and_unfinished_ones_made_anew() {
    for flavour in installed("tables_of_another_size_or_maker_are_refused_and_unfinished_ones_made_anew") {
        let server = database(&shared(flavour), "in_the_way");
        let (spec, options) = (small(Script::ReadWrite), LoadOptions::default());
        let refused = |result: Result<(), DbError>, expected: &str| {
            let error = result.expect_err(expected).to_string();
            assert!(error.contains(expected), "{flavour}: {error}");
        };
        refused(load::check(&spec, &server, &options), "sbtest1 is not there");
        prepare(&spec, &server, &options).unwrap();
        assert_eq!(prepare(&spec, &server, &options).unwrap().found, 2, "{flavour}");
        let larger = OltpSpec { table_size: 301, ..spec.clone() };
        refused(load::check(&larger, &server, &options), "made with 300 rows, not 301");
        refused(prepare(&larger, &server, &options).map(|_| ()), "made with 300 rows, not 301");

        let mut connection = Connection::open(&server).unwrap();
        connection.run("DELETE FROM sbtest1").unwrap();
        refused(load::check(&spec, &server, &options), "sbtest1 is empty");
        connection
            .run(&weir_oltp::schema::complete(flavour.dialect(), 0, 1).replace("1 rows", "unfinished"))
            .unwrap();
        refused(load::check(&spec, &server, &options), "never filled");
        assert_eq!(prepare(&spec, &server, &options).unwrap().made, 1, "{flavour}");
        assert_eq!(number(&server, "SELECT COUNT(*) FROM sbtest1"), 300);

        connection.run("DROP TABLE sbtest2").unwrap();
        connection.run("CREATE TABLE sbtest2 (id INTEGER)").unwrap();
        refused(load::check(&spec, &server, &options), "not made by weir");
        refused(prepare(&spec, &server, &options).map(|_| ()), "not made by weir");
        let (removed, left) = load::cleanup(&server, &options, &|_| {}, &Stop::default()).unwrap();
        assert_eq!((removed, left), (vec!["sbtest1".to_string()], vec!["sbtest2".to_string()]));
        assert_eq!(number(&server, "SELECT COUNT(*) FROM sbtest2"), 0);
    }
}

/// What the catalog does not show as a table of weir's is not weir's to remove.
#[test]
fn tables_of_others_survive_wherever_the_name_leads() {
    for flavour in installed("tables_of_others_survive_wherever_the_name_leads") {
        let server = database(&shared(flavour), "of_others");
        let mut connection = Connection::open(&server).unwrap();
        let columns = "(id INTEGER, k INTEGER, c CHAR(120), pad CHAR(60))";
        let theirs = if flavour == Flavour::Postgres { "public.sbtest1" } else { "sbtest1" };
        let statements = match flavour {
            Flavour::Postgres => vec![
                format!("CREATE TABLE {theirs} {columns}"),
                "CREATE SCHEMA app".to_string(),
                "ALTER DATABASE of_others SET search_path = app, public".to_string(),
            ],
            _ => vec![format!("CREATE TABLE {theirs} {columns} WITH SYSTEM VERSIONING")],
        };
        for statement in statements {
            connection.run(&statement).unwrap();
        }
        connection.run(&format!("INSERT INTO {theirs} VALUES (7, 7, '', '')")).unwrap();
        let (spec, options) = (small(Script::ReadWrite), LoadOptions::default());
        let prepared = prepare(&spec, &server, &options);
        // In PostgreSQL the schema of new tables has no such table.
        assert_eq!(prepared.is_ok(), flavour == Flavour::Postgres, "{flavour}: {prepared:?}");
        if let Err(error) = prepared {
            assert!(error.to_string().contains("sbtest1 was not made by weir"), "{flavour}: {error}");
        }
        // A load that fails removes no table of others either.
        load::cleanup(&server, &options, &|_| {}, &Stop::default()).unwrap();
        let name = if flavour == Flavour::Postgres { "app.sbtest2" } else { "sbtest2" };
        connection.run(&format!("CREATE VIEW {name} AS SELECT id FROM {theirs}")).unwrap();
        let failed = prepare(&spec, &server, &options).map(drop);
        assert!(failed.is_err(), "{flavour}: a view is in the way");
        assert_eq!(number(&server, &format!("SELECT id FROM {theirs}")), 7, "{flavour}");
        assert_eq!(number(&server, &format!("SELECT id FROM {name}")), 7, "{flavour}");
    }
}

#[test]
fn a_stopped_or_failed_load_leaves_no_table() {
    for flavour in installed("a_stopped_or_failed_load_leaves_no_table") {
        for only in [None, Some(Way::Insert)] {
            let server = database(&shared(flavour), "stopped_load");
            let spec = OltpSpec { table_size: 2_000_000, ..small(Script::ReadWrite) };
            let stop = Stop::default();
            let options = LoadOptions { threads: 2, only, ..LoadOptions::default() };
            let halfway = |event| {
                if matches!(event, load::Event::Rows { done, .. } if done > 10_000) {
                    stop.request(2);
                }
            };
            let result = load::prepare(&spec, &server, &options, &halfway, &stop);
            assert!(matches!(result, Err(DbError::Stopped)), "{flavour}: {result:?}");
            let error = load::check(&spec, &server, &options).unwrap_err().to_string();
            assert!(error.contains("0 of 2 tables"), "{flavour}: {error}");
        }
    }
}

/// Between weir and a server: passes on what both say, and breaks the first connection whose client says `last`, in place of
/// the server's answer to it.
fn breaking_at(last: &'static str, server: &Server, folder: &Path) -> Server {
    let Place::Unix(socket) = server.place.clone() else { panic!("no socket: {}", server.place) };
    let path = folder.join("between.sock");
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        let is_due = Arc::new(AtomicBool::new(true));
        for client in listener.incoming() {
            let (client, server) = (client.unwrap(), UnixStream::connect(&socket).unwrap());
            let breaks = Arc::new(AtomicBool::new(false));
            let ways = [(&client, &server, true), (&server, &client, false)];
            for (from, to, is_question) in ways {
                let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                let (is_due, breaks) = (is_due.clone(), breaks.clone());
                std::thread::spawn(move || {
                    let mut bytes = [0; 65536];
                    while let Ok(count @ 1..) = from.read(&mut bytes) {
                        let said = String::from_utf8_lossy(&bytes[..count]);
                        if is_question && said.contains(last) && is_due.swap(false, SeqCst) {
                            breaks.store(true, SeqCst);
                        }
                        if !is_question && breaks.load(SeqCst) || to.write_all(&bytes[..count]).is_err() {
                            break;
                        }
                    }
                    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
                });
            }
        }
    });
    Server { place: Place::Unix(path), ..server.clone() }
}

#[test]
fn a_table_whose_making_was_not_answered_is_removed() {
    for flavour in installed("a_table_whose_making_was_not_answered_is_removed") {
        let (server, folder) = (database(&shared(flavour), "unanswered"), tempfile::tempdir().unwrap());
        let (spec, options) = (small(Script::ReadWrite), LoadOptions::default());
        let between = breaking_at("CREATE TABLE sbtest2", &server, folder.path());
        let error = prepare(&spec, &between, &options).expect_err("the connection was broken");
        assert!(error.is_lost(), "{flavour}: {error}");
        let error = load::check(&spec, &server, &options).unwrap_err().to_string();
        assert!(error.contains("0 of 2 tables"), "{flavour}: {error}");
    }
}

#[test]
fn warming_up_reads_every_row() {
    for flavour in installed("warming_up_reads_every_row") {
        let server = database(&shared(flavour), "warm");
        let (spec, options) = (small(Script::ReadWrite), LoadOptions::default());
        prepare(&spec, &server, &options).unwrap();
        let warmed = load::warmup(&spec, &server, &options, &|_| {}, &Stop::default()).unwrap();
        assert_eq!((warmed.tables, warmed.rows), (2, 600), "{flavour}");
    }
}

/// Holds every row of the first table until a transaction has waited for one longer than the server lets it.
struct RowHolder {
    server: Server,
    holder: Option<Connection>,
}

impl Observer for RowHolder {
    fn started(&mut self, _: &ServerRecord) {
        let mut holder = Connection::open(&self.server).unwrap();
        holder.run("BEGIN").unwrap();
        holder.query("SELECT id FROM sbtest1 FOR UPDATE").unwrap();
        self.holder = Some(holder);
    }

    fn tick(&mut self, tick: &Tick<'_>) {
        if tick.ignored_errors > 0
            && let Some(mut holder) = self.holder.take()
        {
            holder.run("ROLLBACK").unwrap();
        }
    }
}

#[test]
fn conflicts_are_run_again_until_they_succeed() {
    for flavour in installed("conflicts_are_run_again_until_they_succeed") {
        let timeout = match flavour {
            Flavour::Postgres => ("lock_timeout", "500ms"),
            Flavour::Mysql | Flavour::Mariadb => ("innodb_lock_wait_timeout", "1"),
        };
        let sandbox = start(flavour, "conflicts", &[timeout]);
        let server = database(&sandbox.server(), "conflicts");
        let spec = OltpSpec {
            table_size: 6,
            tables: 1,
            threads: 4,
            transactions: 80,
            keys: Distribution::Uniform,
            ..small(Script::WriteOnly)
        };
        prepare(&spec, &server, &LoadOptions::default()).unwrap();
        let mut holder = RowHolder { server: server.clone(), holder: None };
        let (options, servers) = (RunOptions::default(), std::slice::from_ref(&server));
        let record = runner::run(&spec, servers, &options, &mut holder, &Stop::default()).unwrap();
        assert_eq!((record.error.as_deref(), count(&record, Kind::Transaction)), (None, 80), "{flavour}");
        let retries: u64 = record.ignored_errors.values().sum();
        assert!(retries > 0 && record.retried > 0 && record.retried <= retries, "{flavour}: {retries}");
        assert_eq!(count(&record, Kind::Rollback), retries, "{flavour}");
        assert_eq!(number(&server, "SELECT COUNT(*) FROM sbtest1"), 6, "{flavour}");
    }
}

/// Locks the first table as soon as the run has begun, until the end of the test.
struct Locker {
    server: Server,
    holder: Option<Connection>,
}

impl Locker {
    fn new(server: &Server) -> Locker {
        Locker { server: server.clone(), holder: None }
    }
}

impl Observer for Locker {
    fn tick(&mut self, _: &Tick<'_>) {}

    fn measuring(&mut self) {
        let mut holder = Connection::open(&self.server).unwrap();
        match self.server.dialect {
            Dialect::MySql => holder.run("LOCK TABLES sbtest1 WRITE").unwrap(),
            Dialect::Postgres => {
                holder.run("BEGIN").unwrap();
                holder.run("LOCK TABLE sbtest1 IN ACCESS EXCLUSIVE MODE").unwrap()
            }
        };
        self.holder = Some(holder);
    }
}

#[test]
fn statements_that_hang_at_the_end_are_cancelled() {
    for flavour in installed("statements_that_hang_at_the_end_are_cancelled") {
        let server = database(&shared(flavour), "hung");
        let spec = OltpSpec {
            tables: 1,
            transactions: 0,
            // The locker connects and locks meanwhile, which takes its time on a busy machine.
            duration: Nanos(3_000_000_000),
            ..small(Script::UpdateIndex)
        };
        prepare(&spec, &server, &LoadOptions::default()).unwrap();
        let options = RunOptions { grace_ns: 2_000_000_000, ..RunOptions::default() };
        let mut locker = Locker::new(&server);
        let servers = std::slice::from_ref(&server);
        let record = runner::run(&spec, servers, &options, &mut locker, &Stop::default()).unwrap();
        let keys: Vec<&str> = record.notes.iter().map(|note| note.key.as_str()).collect();
        assert_eq!((keys, record.error.as_deref()), (vec!["cancelled"], None), "{flavour}");
        assert_eq!(record.kinds[&Kind::Transaction].errors, 3, "{flavour}");
        let oldest_ns = record.intervals.iter().map(|interval| interval.oldest_ns).max();
        assert!(oldest_ns > Some(1_000_000_000), "{flavour}: the hang is not seen");
    }
}

#[test]
fn a_statement_that_takes_too_long_ends_the_run_with_a_record() {
    for flavour in installed("a_statement_that_takes_too_long_ends_the_run_with_a_record") {
        let server = database(&shared(flavour), "timed_out");
        let spec = OltpSpec {
            tables: 1,
            transactions: 0,
            duration: Nanos(60_000_000_000),
            // Connecting is held to it, too, and takes its time on a busy machine.
            statement_timeout: Nanos(3_000_000_000),
            ..small(Script::UpdateIndex)
        };
        prepare(&spec, &server, &LoadOptions::default()).unwrap();
        let (mut locker, options) = (Locker::new(&server), RunOptions::default());
        let servers = std::slice::from_ref(&server);
        let record = runner::run(&spec, servers, &options, &mut locker, &Stop::default()).unwrap();
        assert!(record.error.as_ref().unwrap().contains("no answer"), "{flavour}: {:?}", record.error);
        drop(locker);
        let spec = OltpSpec { transactions: 30, ..spec };
        assert_eq!(run(&spec, &server).unwrap().error, None, "{flavour}: once the lock is gone");
    }
}

/// Says when transactions have ended.
struct Herald(Sender<()>);

impl Observer for Herald {
    fn tick(&mut self, tick: &Tick<'_>) {
        if tick.interval.classes.contains_key(&Kind::Transaction) {
            let _ = self.0.send(());
        }
    }
}

#[test]
fn a_killed_server_ends_the_run_or_is_waited_for() {
    for flavour in installed("a_killed_server_ends_the_run_or_is_waited_for") {
        let mut sandbox = start(flavour, "killed", &[]);
        let server = database(&sandbox.server(), "killed");
        let spec = OltpSpec { transactions: 0, duration: Nanos(20_000_000_000), ..small(Script::ReadWrite) };
        prepare(&spec, &server, &LoadOptions::default()).unwrap();
        for reconnect in [false, true] {
            let spec = OltpSpec { reconnect, ..spec.clone() };
            let (begun, has_begun) = channel();
            let record = std::thread::scope(|scope| {
                let running = scope.spawn(|| {
                    let options = RunOptions { tick_ns: 50_000_000, ..RunOptions::default() };
                    let servers = std::slice::from_ref(&server);
                    runner::run(&spec, servers, &options, &mut Herald(begun), &Stop::default()).unwrap()
                });
                has_begun.recv().unwrap();
                sandbox.kill().unwrap();
                sandbox.run(&|| false).unwrap();
                running.join().unwrap()
            });
            assert!(count(&record, Kind::Transaction) > 0, "{flavour}");
            if reconnect {
                assert_eq!((record.error, record.reconnects), (None, 3), "{flavour}");
            } else {
                assert!(record.error.is_some() && record.reconnects == 0, "{flavour}");
                assert!(record.elapsed_ns < 20_000_000_000, "{flavour}: {}", record.elapsed_ns);
            }
        }
    }
}

#[test]
fn more_connections_than_the_server_takes_are_refused_with_its_limit() {
    for flavour in installed("more_connections_than_the_server_takes_are_refused_with_its_limit") {
        let sandbox = start(flavour, "limit", &[("max_connections", "12")]);
        let server = database(&sandbox.server(), "limited");
        let spec = OltpSpec { threads: 30, ..small(Script::PointSelect) };
        prepare(&spec, &server, &LoadOptions::default()).unwrap();
        let error = run(&spec, &server).err().unwrap();
        assert!(error.is_full(), "{flavour}: {error}");
        assert!(error.to_string().contains("the server allows 12"), "{flavour}: {error}");
        assert_eq!(run(&OltpSpec { threads: 5, ..spec }, &server).unwrap().error, None, "{flavour}");
    }
}
