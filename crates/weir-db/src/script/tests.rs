//! Scripts against a server that only listens: what they send, what they are told, what goes wrong.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex, OnceLock};

use weir_oltp::{Dialect, Kind};
use weir_sysbench::database::Ignored;
use weir_sysbench::log::Kept;
use weir_sysbench::random::{Random, Unique};
use weir_sysbench::{Log, Request, parse};

use super::connect::{Connect, Sql};
use super::{Attempt, Exported, ScriptError, Shared, Source, State, Thread};
use crate::error::{DbError, ServerError};
use crate::rows::{Done, Row, StatementId};
use crate::value::Value;

/// Two rows for a statement that answers with any.
fn rows_of(text: &str) -> Vec<Row> {
    let row = |a: &str| vec![Some(a.to_string()), None, Some("z".to_string())];
    let answers = text.starts_with("SELECT") || text.contains("RETURNING");
    if answers { vec![row("1"), row("2")] } else { Vec::new() }
}

/// What a fake server heard, and the errors it has still to give: each for the next statement that holds its text.
#[derive(Default)]
struct Heard {
    statements: Vec<String>,
    /// Answers whose rows were to be kept.
    kept: usize,
    failures: VecDeque<(&'static str, u16, &'static str)>,
}

#[derive(Clone)]
struct Fake {
    dialect: Dialect,
    heard: Arc<Mutex<Heard>>,
    prepared: Vec<String>,
}

impl Fake {
    fn hear(&mut self, text: String) -> Result<Done, DbError> {
        let mut heard = self.heard.lock().unwrap();
        let fails = heard.failures.front().is_some_and(|(part, ..)| text.contains(part));
        let failure = if fails { heard.failures.pop_front() } else { None };
        let affected = u64::from(text.contains("UPDATE") || text.contains("INSERT"));
        let rows = rows_of(&text).len() as u64;
        heard.statements.push(text);
        match failure {
            Some((_, number, state)) => Err(DbError::Server(ServerError {
                number,
                sqlstate: state.to_string(),
                message: "so it was ordered".to_string(),
            })),
            None => Ok(Done { rows, affected, ..Done::default() }),
        }
    }
}

impl Sql for Fake {
    fn dialect(&self) -> Dialect {
        self.dialect
    }
    fn prepare(&mut self, sql: &str) -> Result<StatementId, DbError> {
        self.hear(format!("prepare {sql}"))?;
        self.prepared.push(sql.to_string());
        Ok(StatementId(self.prepared.len() as u32 - 1))
    }
    fn execute(&mut self, statement: StatementId, values: &[Value<'_>]) -> Result<Done, DbError> {
        let text = format!("{} {values:?}", self.prepared[statement.0 as usize]);
        self.hear(text)
    }
    fn execute_rows(&mut self, id: StatementId, values: &[Value<'_>]) -> Result<(Done, Vec<Row>), DbError> {
        self.heard.lock().unwrap().kept += 1;
        let done = self.execute(id, values)?;
        Ok((done, rows_of(&self.prepared[id.0 as usize])))
    }
    fn close(&mut self, _: StatementId) -> Result<(), DbError> {
        Ok(())
    }
    fn run(&mut self, sql: &str) -> Result<Done, DbError> {
        self.hear(sql.to_string())
    }
    fn run_rows(&mut self, sql: &str) -> Result<(Done, Vec<Row>), DbError> {
        self.heard.lock().unwrap().kept += 1;
        let done = self.hear(sql.to_string())?;
        Ok((done, rows_of(sql)))
    }
}

struct FakeServers(Fake);

impl Connect for FakeServers {
    fn driver(&self, name: Option<&str>) -> Result<&'static str, String> {
        match (name, self.0.dialect) {
            (None | Some("mysql"), Dialect::MySql) => Ok("mysql"),
            (None | Some("pgsql"), Dialect::Postgres) => Ok("pgsql"),
            (other, _) => Err(format!("invalid database driver name: '{}'", other.unwrap_or_default())),
        }
    }
    fn open(&self, _: &str) -> Result<Box<dyn Sql>, Vec<String>> {
        self.0.heard.lock().unwrap().statements.push("connect".to_string());
        Ok(Box::new(self.0.clone()))
    }
}

struct Bench {
    shared: Arc<Shared>,
    heard: Arc<Mutex<Heard>>,
    said: Arc<Mutex<String>>,
}

impl Bench {
    /// A script (its text, or the name of one of weir's) with the words of a command line.
    fn new(dialect: Dialect, script: &str, options: &str) -> Bench {
        let is_text = script.contains('\n');
        let name = if is_text { "my.lua" } else { script };
        let words: Vec<String> =
            format!("{name} {options} run").split_whitespace().map(str::to_string).collect();
        let mut kept = Kept::default();
        let mut log = Log::new(&mut kept);
        let Ok(Request::Script(mut request)) = parse(&words, &|_| Err(String::new()), &mut log) else {
            panic!("{words:?}: {}{}", kept.out, kept.err);
        };
        let heard = Arc::new(Mutex::new(Heard::default()));
        let said = Arc::new(Mutex::new(String::new()));
        let listener = said.clone();
        let fake = Fake { dialect, heard: heard.clone(), prepared: Vec::new() };
        let shared = Arc::new(Shared {
            source: Source { name: name.to_string(), text: is_text.then(|| script.to_string()) },
            argv: words.clone(),
            command: Some("run".to_string()),
            random: Random::default(),
            seed: 1,
            unique: Unique::new(1),
            unique_taken: AtomicU32::new(0),
            connect: Box::new(FakeServers(fake)),
            ignored: Ignored::Numbers([1213, 1205, 2013].into()),
            reconnects: false,
            prepared: !options.contains("--db-ps-mode=disable"),
            say: Box::new(move |priority, text| {
                listener.lock().unwrap().push_str(&format!("{}{text}\n", priority.prefix()));
            }),
            stop: AtomicBool::new(false),
            over: AtomicBool::new(false),
            options: OnceLock::new(),
        });
        if let Ok(state) = State::load(&shared, 0) {
            let declared = state.options().unwrap();
            request.read_pending(declared.as_deref(), &mut log).unwrap();
            let values = request.exported(declared.as_deref(), &mut log).unwrap();
            shared.options.set(Exported { values, as_globals: declared.is_none() }).unwrap();
        }
        Bench { shared, heard, said }
    }

    fn fails(self, failures: &[(&'static str, u16, &'static str)]) -> Bench {
        self.heard.lock().unwrap().failures.extend(failures);
        self
    }

    fn heard(&self) -> Vec<String> {
        std::mem::take(&mut self.heard.lock().unwrap().statements)
    }

    fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    fn thread(&self) -> Thread {
        Thread::start(&self.shared, 0).unwrap_or_else(|error| panic!("{error}\n{}", self.said()))
    }
}

/// Tries an event until it is done; the errors in between, and its end.
fn event(thread: &mut Thread) -> Result<(Vec<u16>, Attempt), ScriptError> {
    let mut errors = Vec::new();
    loop {
        match thread.attempt()? {
            Attempt::Again(fault) => errors.push(fault.number),
            end => return Ok((errors, end)),
        }
    }
}

fn done(thread: &mut Thread) -> Vec<u16> {
    let (errors, end) = event(thread).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(end, Attempt::Done);
    errors
}

/// A statement without its numbers and digits.
fn shape(statement: &str) -> String {
    let mut text = String::new();
    for c in statement.chars() {
        let digit = c.is_ascii_digit();
        if !digit || !text.ends_with('9') {
            text.push(if digit { '9' } else { c });
        }
    }
    text
}

#[test]
fn a_transaction_sends_what_sysbench_sends() {
    let bench = Bench::new(Dialect::MySql, "oltp_read_write", "--tables=2 --table-size=50");
    let mut thread = bench.thread();
    let prepared = bench.heard();
    assert_eq!(prepared[0], "connect");
    assert_eq!(prepared.len(), 1 + 2 + 9 * 2);
    done(&mut thread);
    let heard: Vec<String> = bench.heard().iter().map(|s| shape(s)).collect();
    let c = "[Text(\"9-9-9-9-9-9-9-9-9-9\"), Int(9)]";
    let mut expected = vec!["BEGIN []".to_string()];
    expected.extend(vec!["SELECT c FROM sbtest9 WHERE id=? [Int(9)]".to_string(); 10]);
    for range in [
        "SELECT c FROM sbtest9 WHERE id BETWEEN ? AND ?",
        "SELECT SUM(k) FROM sbtest9 WHERE id BETWEEN ? AND ?",
        "SELECT c FROM sbtest9 WHERE id BETWEEN ? AND ? ORDER BY c",
        "SELECT DISTINCT c FROM sbtest9 WHERE id BETWEEN ? AND ? ORDER BY c",
    ] {
        expected.push(format!("{range} [Int(9), Int(9)]"));
    }
    expected.push("UPDATE sbtest9 SET k=k+9 WHERE id=? [Int(9)]".to_string());
    expected.push(format!("UPDATE sbtest9 SET c=? WHERE id=? {c}"));
    expected.push("DELETE FROM sbtest9 WHERE id=? [Int(9)]".to_string());
    expected.push(
        "INSERT INTO sbtest9 (id, k, c, pad) VALUES (?, ?, ?, ?) [Int(9), Int(9), \
         Text(\"9-9-9-9-9-9-9-9-9-9\"), Text(\"9-9-9-9-9\")]"
            .to_string(),
    );
    expected.push("COMMIT []".to_string());
    assert_eq!(heard, expected);
    let session = thread.state().session().borrow();
    let count = |kind| session.answered.iter().filter(|a| a.kind == kind).count();
    // The delete met no row here: sysbench counts such a one with the others.
    assert_eq!([Kind::Read, Kind::Write, Kind::Other].map(count), [14, 3, 3]);
}

#[test]
fn all_scripts_run_events_on_both_dialects() {
    for dialect in [Dialect::MySql, Dialect::Postgres] {
        let driver = if dialect == Dialect::MySql { "mysql" } else { "pgsql" };
        for script in super::modules::NAMES.into_iter().filter(|name| *name != "oltp_common") {
            for mode in ["auto", "disable"] {
                let bench = Bench::new(dialect, script, &format!("--db-driver={driver} --db-ps-mode={mode}"));
                let mut thread = bench.thread();
                bench.heard();
                for _ in 0..3 {
                    done(&mut thread);
                }
                thread.finish().unwrap();
                let heard = bench.heard();
                assert!(!heard.is_empty(), "{script}");
                let emulated = heard.iter().all(|s| !s.contains('?') && !s.contains('$'));
                assert!(emulated || mode == "auto", "{script}: {heard:?}");
            }
        }
    }
}

#[test]
fn an_event_runs_again_after_an_error_that_may_be_ignored() {
    let bench = Bench::new(Dialect::MySql, "oltp_write_only", "--table-size=50")
        .fails(&[("UPDATE sbtest1 SET c", 1213, "40001"), ("DELETE", 1205, "HY000")]);
    // The failures are for statements, not for preparing them.
    let failures = std::mem::take(&mut bench.heard.lock().unwrap().failures);
    let mut thread = bench.thread();
    bench.heard.lock().unwrap().failures = failures;
    bench.heard();
    assert_eq!(done(&mut thread), [1213, 1205]);
    let heard = bench.heard();
    assert_eq!(heard.iter().filter(|s| s.starts_with("BEGIN")).count(), 3);
    // After a deadlock the server has rolled back; after a lock wait only the statement is undone.
    assert_eq!(heard.iter().filter(|s| *s == "ROLLBACK").count(), 1);
    let failed = thread.state().session().borrow().answered.iter().filter(|a| a.failed).count();
    assert_eq!(failed, 2);
    let postgres =
        Bench::new(Dialect::Postgres, "oltp_insert", "--db-driver=pgsql").fails(&[("INSERT", 0, "23505")]);
    assert_eq!(done(&mut postgres.thread()), [0]);
    assert_eq!(postgres.heard().iter().filter(|s| *s == "ROLLBACK").count(), 1);
}

#[test]
fn a_lost_connection_is_made_again_where_that_is_asked_for() {
    let bench = Bench::new(Dialect::MySql, "oltp_point_select", "");
    let mut thread = bench.thread();
    bench.heard();
    let bench = bench.fails(&[("SELECT", 2013, "HY000")]);
    done(&mut thread);
    let heard = bench.heard();
    let again = ["connect", "prepare SELECT c FROM sbtest1 WHERE id=?"];
    assert!(heard[1..3].iter().eq(again.iter()), "{heard:?}");
    assert_eq!(thread.state().session().borrow().reconnects, 1);
}

#[test]
fn every_lost_connection_is_made_again_in_runs_that_reconnect() {
    for (dialect, options, number, state) in [
        (Dialect::MySql, "", 1927, "70100"),
        (Dialect::MySql, "", 1053, "08S01"),
        (Dialect::Postgres, "--db-driver=pgsql", 0, "57P01"),
    ] {
        for reconnects in [false, true] {
            let mut bench = Bench::new(dialect, "oltp_point_select", options);
            Arc::get_mut(&mut bench.shared).unwrap().reconnects = reconnects;
            let mut thread = bench.thread();
            let bench = bench.fails(&[("SELECT", number, state)]);
            let ended = event(&mut thread);
            assert_eq!(ended.is_ok(), reconnects, "{number} {state}: {ended:?}");
            assert_eq!(thread.state().session().borrow().reconnects, u64::from(reconnects));
            assert_eq!(bench.said().is_empty(), reconnects, "{}", bench.said());
        }
    }
}

/// Its number is none of those that a script's connection is lost with, and the runner counts a connection for it.
#[test]
fn a_server_that_announces_the_end_of_a_connection_has_it_made_again() {
    for number in [1053, 1927, 4031] {
        let mut bench = Bench::new(Dialect::MySql, "oltp_point_select", "");
        Arc::get_mut(&mut bench.shared).unwrap().ignored = Ignored::All;
        let mut thread = bench.thread();
        bench.heard();
        let bench = bench.fails(&[("SELECT", number, "HY000")]);
        // Scripts know by this number that their statements are gone.
        assert_eq!(done(&mut thread), [2013]);
        assert_eq!(bench.heard().iter().filter(|s| *s == "ROLLBACK").count(), 0);
        assert_eq!(thread.state().session().borrow().reconnects, 1);
    }
}

#[test]
fn errors_name_the_line_and_the_server_s_words() {
    let script = "function thread_init()\n  con = sysbench.sql.driver():connect()\nend\nfunction event()\n  \
                  con:query('UPDATE t SET a=1')\nend\n";
    let bench = Bench::new(Dialect::MySql, script, "").fails(&[("UPDATE", 1146, "42S02")]);
    let error = event(&mut bench.thread()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`thread_run' function failed: my.lua:5: SQL error, errno = 1146, state = '42S02': so it was ordered"
    );
    assert_eq!(
        bench.said(),
        "FATAL: mysql_drv_query() returned error 1146 (so it was ordered) for query 'UPDATE t SET a=1'\n"
    );
}

#[test]
fn scripts_that_fail_are_told_where() {
    // (script, what is said when it is loaded, or started, or run)
    let cases = [
        ("function event(\n", "my.lua:2:"),
        ("local a = nil + 1\n", "my.lua:1: attempt to perform arithmetic on a nil value"),
        ("x()\nfunction event() sysbench.rand.zipf(1) end\n", "my.lua:2: weir has no sysbench.rand.zipf"),
        ("function event()\n error('mine') end\n", "`thread_run' function failed: my.lua:2: mine"),
        (
            "function thread_init() local f = sysbench['foo'] end\n",
            "`thread_init' function failed: my.lua:1: weir has no sysbench.foo",
        ),
        (
            "function event() sysbench.sql.driver():connect():foo() end\n",
            "`thread_run' function failed: my.lua:1: weir's sql_connection has no foo",
        ),
        (
            "function event() sysbench.sql.driver('oracle') end\n",
            "my.lua:1: failed to initialize the DB driver",
        ),
        ("function event() local f = ffi['C']['db_query'] end\n", "weir has no ffi.C.db_query of sysbench's"),
        ("require('nowhere')\n", "module 'nowhere' not found"),
    ];
    for (script, expected) in cases {
        let bench = Bench::new(Dialect::MySql, script, "");
        let error = match Thread::start(&bench.shared, 0) {
            Err(error) => error,
            Ok(mut thread) => event(&mut thread).unwrap_err(),
        };
        assert!(error.to_string().contains(expected), "{script}: {error}");
    }
    let missing = Bench::new(Dialect::MySql, "nosuch", "");
    let error = State::load(&missing.shared, 0).err().unwrap();
    assert_eq!(error.to_string(), "Cannot find benchmark 'nosuch': no such built-in test, file or module");
}

#[test]
fn the_api_answers_as_scripts_expect() {
    let script = r###"
local rows = {}
function thread_init(id)
   assert(id == sysbench.tid and thread_id == id)
   local drv = sysbench.sql.driver()
   assert(drv:name() == "mysql")
   con = drv:connect()
end
function event()
   local rs = con:query("SELECT a, b, c FROM t")
   assert(rs.nrows == 2 and rs.nfields == 3)
   local first = rs:fetch_row()
   assert(first[1] == "1" and first[2] == nil and first[3] == "z")
   assert(rs:fetch_row()[1] == "2" and rs:fetch_row() == nil)
   rs:free()
   local a, b, c = con:query_row("SELECT a, b, c FROM t")
   assert(a == "1" and b == nil and c == "z")
   assert(con:query("UPDATE t SET a=1") == nil)
   local stmt = con:prepare("INSERT INTO t VALUES (?, ?, ?, ?)")
   local t = sysbench.sql.type
   local p = { stmt:bind_create(t.INT), stmt:bind_create(t.DOUBLE), stmt:bind_create(t.VARCHAR, 3),
               stmt:bind_create(t.CHAR, 10) }
   stmt:bind_param(unpack(p))
   p[1]:set(7.9)
   p[2]:set(0.25)
   p[3]:set("abcdef")
   assert(stmt:execute() == nil)
   p[1]:set(nil)
   p[4]:set_rand_str("@#-")
   stmt:execute()
   stmt:close()
   assert(not pcall(p[1].set, p[1], "x"))
   con:bulk_insert_init("INSERT INTO b VALUES")
   for i = 1, 3 do con:bulk_insert_next("(" .. i .. ")") end
   con:bulk_insert_done()
   for _, name in ipairs { "uniform", "gaussian", "special", "pareto", "default" } do
      local n = sysbench.rand[name](5, 9)
      assert(n >= 5 and n <= 9, name)
   end
   assert(sysbench.rand.unique() ~= sysbench.rand.unique())
   assert(#sysbench.rand.string("##") == 2 and sysbench.rand.uniform_double() < 1)
   assert(type(sysbench.rand.uniform_uint64()) == "cdata" and ffi.C.sb_rand_uniform(3, 3) == 3)
   assert(require("ffi").new("int[1]")[0] == 0)
   assert(sb_rand(4, 4) == 4 and sb_rand_uniq(0) >= 0 and sb_rnd() >= 0)
   assert(sysbench.opt.threads == 2 and sysbench.opt.size == 4096 and sysbench.opt.db_driver == "mysql")
   assert(table.concat(sysbench.opt.names, "+") == "a+b" and sysbench.opt.flag == true)
   assert(sysbench.cmdline.argv[0] == "my.lua" and sysbench.cmdline.command == "run")
   local h = sysbench.histogram.new(100, 1, 1000)
   h:update(10) h:update(10000)
   assert(h.counts[33] == 1 and h.counts[99] == 1)
   assert(sysbench.version == "1.0.20")
   return true
end
sysbench.cmdline.options = {
   size = { "a size", "4K", sysbench.cmdline.ARG_SIZE },
   names = { "a list", { "a", "b" } },
   flag = { "a flag", true },
   nothing = { "a text" },
}
"###;
    let bench = Bench::new(Dialect::MySql, script, "--threads=2");
    let mut thread = bench.thread();
    assert_eq!(event(&mut thread), Ok((Vec::new(), Attempt::Over)), "{}", bench.said());
    let heard = bench.heard();
    let inserts: Vec<&String> = heard.iter().filter(|s| s.starts_with("INSERT INTO t")).collect();
    assert_eq!(inserts[0], "INSERT INTO t VALUES (?, ?, ?, ?) [Int(7), Float(0.25), Text(\"abc\"), Null]");
    assert!(inserts[1].contains("[Null, Float(0.25), Text(\"abc\"), Text(\""), "{}", inserts[1]);
    assert!(heard.contains(&"INSERT INTO b VALUES(1),(2),(3)".to_string()), "{heard:?}");
}

/// Rows cost time: where nothing is fetched, none are kept.
#[test]
fn rows_are_kept_where_they_are_fetched() {
    let connects = "function thread_init() con = sysbench.sql.driver():connect() end\n";
    // (what the event does, answers whose rows are kept)
    let cases = [
        ("assert(con:query_row('SELECT a FROM t') == '1')", 1),
        ("assert(con:query_row('INSERT INTO t VALUES (1) RETURNING a') == '1')", 1),
        ("assert(con:query('SELECT a FROM t').nrows == 2)", 0),
        ("assert(con:query('INSERT INTO t VALUES (1) RETURNING a').nrows == 2)", 0),
        ("assert(con:query('INSERT INTO t VALUES (1) RETURNING a'):fetch_row()[1] == '1')", 1),
        ("assert(con:prepare('DELETE FROM t RETURNING a'):execute():fetch_row()[1] == '1')", 1),
        ("require('oltp_common') con:query('SELECT a FROM t')", 0),
        // Whatever it says, nobody has read it.
        ("loadstring('n = 1')() con:query('SELECT a FROM t')", 1),
    ];
    for (does, kept) in cases {
        let bench = Bench::new(Dialect::MySql, &format!("{connects}function event() {does} end\n"), "");
        done(&mut bench.thread());
        assert_eq!(bench.heard.lock().unwrap().kept, kept, "{does}");
    }
    let own = Bench::new(Dialect::MySql, "oltp_read_write", "");
    done(&mut own.thread());
    assert_eq!(own.heard.lock().unwrap().kept, 0);
}

#[test]
fn what_a_script_has_closed_takes_no_memory() {
    let script = r#"
function event()
   local driver = sysbench.sql.driver()
   for _ = 1, 10000 do
      local con = driver:connect()
      con:prepare("DELETE FROM t"):close()
      con:prepare("DELETE FROM t")
      con:disconnect()
   end
   con = driver:connect()
   stmt = con:prepare("DELETE FROM t")
   -- Finalizers of connections that were closed above leave this one alone.
   collectgarbage()
   stmt:execute()
end
"#;
    let bench = Bench::new(Dialect::MySql, script, "");
    let mut thread = bench.thread();
    done(&mut thread);
    assert_eq!(thread.state().session().borrow().open(), [1, 1]);
}

#[test]
fn hooks_and_loops_of_a_script_s_own_act() {
    let script = r#"
function thread_init() con = sysbench.sql.driver():connect() end
function event() con:query("UPDATE t SET a=1") end
restarts = 0
function sysbench.hooks.sql_error_ignorable(err)
   return err.sql_errno == 1064 and err.sql_state == "42000" and err.query:find("UPDATE") ~= nil
end
function sysbench.hooks.before_restart_event(err) restarts = restarts + 1; con:query("SELECT 'again'") end
function sysbench.hooks.report_intermediate(stat) seen = stat.events end
"#;
    let bench = Bench::new(Dialect::MySql, script, "").fails(&[("UPDATE", 1064, "42000")]);
    let mut thread = bench.thread();
    assert_eq!(done(&mut thread), [1064]);
    assert!(bench.heard().contains(&"SELECT 'again'".to_string()));
    let state = thread.state();
    assert!(state.has_hook("report_intermediate") && !state.has_hook("report_cumulative"));
    state.report("report_intermediate", &[("events", 3.0)]).unwrap();
    let own = "function event() events = (events or 0) + 1 end\nfunction thread_run(id)\n  \
               while ffi.C.sb_more_events(id) do\n ffi.C.sb_event_start(id) event() ffi.C.sb_event_stop(id)\n \
               if events == 3 then return end end end\n";
    let bench = Bench::new(Dialect::MySql, own, "");
    let mut thread = bench.thread();
    let ends: Vec<_> = (0..3).map(|_| thread.attempt().unwrap()).collect();
    assert_eq!(ends, [Attempt::Done, Attempt::Done, Attempt::Last]);
}

#[test]
fn commands_of_a_script_s_own_run() {
    let script = "sysbench.cmdline.commands = { good = { function() end }, bad = { function() return false end, \
                  sysbench.cmdline.PARALLEL_COMMAND }, broken = { function() error('no', 0) end } }\n";
    let bench = Bench::new(Dialect::MySql, script, "");
    let state = State::load(&bench.shared, 0).unwrap();
    assert!(state.declares_command("good") && !state.declares_command("other"));
    assert!(state.command_is_parallel("bad") && !state.command_is_parallel("good"));
    assert_eq!(state.run_command("good"), Ok(true));
    assert_eq!(state.run_command("bad"), Ok(false));
    assert_eq!(
        state.run_command("broken").unwrap_err().to_string(),
        "`sysbench.cmdline.call_command' function failed: no"
    );
}

#[test]
fn scripts_of_sysbench_0_5_run() {
    let script = r#"
function thread_init(id)
   db_connect()
   stmt = db_prepare("UPDATE t SET a=? WHERE b=?")
   params = { 1, 2 }
   db_bind_param(stmt, params)
end
function event(id)
   db_query("BEGIN")
   params[1] = 9
   db_execute(stmt)
   db_bulk_insert_init("INSERT INTO x VALUES")
   db_bulk_insert_next("(1)")
   db_bulk_insert_done()
   assert(oltp_size == "77" and threads == 1)
end
"#;
    let bench = Bench::new(Dialect::MySql, script, "--oltp-size=77");
    let mut thread = bench.thread();
    done(&mut thread);
    assert_eq!(
        bench.heard()[2..],
        ["BEGIN", "UPDATE t SET a=? WHERE b=? [Int(9), Int(2)]", "INSERT INTO x VALUES(1)"]
    );
}
