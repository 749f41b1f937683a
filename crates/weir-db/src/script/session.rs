//! What one state has open: connections, prepared statements, rows not fetched yet; and what it has sent.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use weir_core::workload::rng::Rng;
use weir_oltp::{Dialect, Kind};
use weir_sysbench::database::LOST;
use weir_sysbench::log::Priority;

use super::Shared;
use super::connect::Sql;
use super::statement::{placeholders, returns_rows, with_values};
use crate::error::DbError;
use crate::rows::{Done, Row, StatementId};
use crate::value::Value;

/// Bytes of a multi-row INSERT, sysbench's.
const BULK_BYTES: usize = 512 * 1024;
/// The number of MySQL's client library for a connection that broke during a statement. Scripts know it: they prepare
/// their statements again.
const BROKE: u16 = 2013;
/// Pauses between attempts to connect again: doubled from the first to the last.
const PAUSES: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(500)];

/// A statement that was sent and answered.
#[derive(Debug, Clone, Copy)]
pub struct Answered {
    /// By what its answer was: rows, rows changed, or neither.
    pub kind: Kind,
    /// When it was sent.
    pub sent: Instant,
    /// Until its whole answer was there.
    pub took: Duration,
    /// Rows that came back or were changed.
    pub rows: u64,
    /// It failed.
    pub failed: bool,
}

/// An error of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// MySQL's number; 0 for PostgreSQL.
    pub number: u16,
    /// Five characters.
    pub state: String,
    /// The server's words.
    pub message: String,
}

/// How a statement ended, as scripts are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// No rows.
    Nothing,
    /// Rows, to be fetched.
    Rows { rows: usize, fields: usize },
    /// The event is to run again.
    Ignorable(Fault),
    /// An error.
    Fatal(Fault),
    /// The connection is closed, or the statement is.
    Closed,
}

struct Link {
    sql: Box<dyn Sql>,
    driver: &'static str,
    rows: std::vec::IntoIter<Row>,
    bulk: Option<Bulk>,
}

impl Link {
    fn new(sql: Box<dyn Sql>, driver: &'static str) -> Link {
        Link { sql, driver, rows: Vec::new().into_iter(), bulk: None }
    }
}

struct Bulk {
    text: String,
    values_from: usize,
    rows: u64,
}

struct Prepared {
    link: usize,
    /// `None`: the values are written into the text.
    id: Option<StatementId>,
    sql: String,
    reads: bool,
}

/// See the module.
pub struct ScriptSession {
    pub(super) shared: Arc<Shared>,
    pub(super) rng: Rng,
    keeps_rows: bool,
    links: BTreeMap<usize, Link>,
    statements: BTreeMap<usize, Prepared>,
    /// The last handle that was given. None is given twice: a late finalizer closes nothing that is new.
    last_handle: usize,
    /// Statements since somebody looked last.
    pub answered: Vec<Answered>,
    /// Connections made again since somebody looked last.
    pub reconnects: u64,
}

impl ScriptSession {
    /// A session of one thread; without connections.
    pub fn new(shared: Arc<Shared>, thread: u32) -> ScriptSession {
        let rng = Rng::new(shared.seed, 0x6c75_6100_0000 + u64::from(thread));
        ScriptSession {
            rng,
            keeps_rows: false,
            shared,
            links: BTreeMap::new(),
            statements: BTreeMap::new(),
            last_handle: 0,
            answered: Vec::new(),
            reconnects: 0,
        }
    }

    /// The connection made last that is still open.
    pub fn connection(&self) -> Option<&dyn Sql> {
        self.links.values().next_back().map(|link| link.sql.as_ref())
    }

    /// Connections and statements that are open.
    #[cfg(test)]
    pub(super) fn open(&self) -> [usize; 2] {
        [self.links.len(), self.statements.len()]
    }

    fn next_handle(&mut self) -> usize {
        self.last_handle += 1;
        self.last_handle
    }

    pub(super) fn say(&self, priority: Priority, text: &str) {
        (self.shared.say)(priority, text);
    }

    fn fatal(&self, text: &str) {
        if !self.is_over() {
            self.say(Priority::Fatal, text);
        }
    }

    fn is_over(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }

    pub(super) fn driver(&self, name: Option<&str>) -> Option<&'static str> {
        self.shared.connect.driver(name).map_err(|complaint| self.fatal(&complaint)).ok()
    }

    /// A new connection's handle.
    pub(super) fn connect(&mut self, driver: &str) -> Option<usize> {
        let driver = self.driver(Some(driver))?;
        match self.shared.connect.open(driver) {
            Ok(sql) => {
                let handle = self.next_handle();
                self.links.insert(handle, Link::new(sql, driver));
                Some(handle)
            }
            Err(lines) => {
                lines.iter().for_each(|line| self.fatal(line));
                None
            }
        }
    }

    pub(super) fn disconnect(&mut self, link: usize) {
        self.links.remove(&link);
        self.forget_statements(link);
    }

    fn forget_statements(&mut self, link: usize) {
        self.statements.retain(|_, statement| statement.link != link);
    }

    /// Connects again, until it works or the run has ended. The connection's prepared statements are gone then.
    pub(super) fn reconnect(&mut self, link: usize) -> bool {
        let Some(driver) = self.links.get(&link).map(|old| old.driver) else { return false };
        let [mut pause, last] = PAUSES;
        loop {
            if let Ok(sql) = self.shared.connect.open(driver) {
                self.links.insert(link, Link::new(sql, driver));
                self.forget_statements(link);
                self.reconnects += 1;
                return true;
            }
            if self.is_over() || self.shared.over.load(Ordering::Relaxed) {
                return false;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(last);
        }
    }

    /// From now on the rows of every statement are kept.
    pub(super) fn keep_rows(&mut self) {
        self.keeps_rows = true;
    }

    /// Sends a statement. `fetches`: its rows are kept in any case.
    pub(super) fn query(&mut self, link: usize, sql: &str, fetches: bool) -> Outcome {
        let keeps_rows = fetches || self.keeps_rows;
        let Some(it) = self.links.get_mut(&link) else { return Outcome::Closed };
        let reads = returns_rows(sql, it.sql.dialect());
        let sent = Instant::now();
        let answer = match keeps_rows {
            true => it.sql.run_rows(sql).map(|(done, rows)| (done, Some(rows))),
            false => it.sql.run(sql).map(|done| (done, None)),
        };
        self.note(link, sent, reads, answer, Some(sql), "mysql_drv_query()", "PQexec")
    }

    pub(super) fn prepare(&mut self, link: usize, sql: &str) -> Result<usize, Option<Fault>> {
        let prepared = self.shared.prepared;
        let Some(it) = self.links.get_mut(&link) else { return Err(None) };
        let dialect = it.sql.dialect();
        let reads = returns_rows(sql, dialect);
        let id = match prepared.then(|| it.sql.prepare(&placeholders(sql, dialect))).transpose() {
            Ok(id) => id,
            Err(error) if error.is_unpreparable() => {
                let Fault { number, message, .. } = fault(&error);
                let how = format!("Failed to prepare query \"{sql}\" ({number}: {message}), using emulation");
                self.say(Priority::Info, &how);
                None
            }
            Err(error) => {
                let fault = fault(&error);
                if dialect == Dialect::MySql {
                    self.fatal("mysql_stmt_prepare() failed");
                    self.fatal(&format!("MySQL error: {} \"{}\"", fault.number, fault.message));
                } else {
                    self.fatal(&format!("PQprepare() failed: ERROR:  {}", fault.message));
                    self.fatal(&format!("failed query was: {sql}"));
                }
                return Err(Some(fault));
            }
        };
        let handle = self.next_handle();
        self.statements.insert(handle, Prepared { link, id, sql: sql.to_string(), reads });
        Ok(handle)
    }

    pub(super) fn execute(&mut self, statement: usize, values: &[Value<'_>]) -> Outcome {
        let Some(prepared) = self.statements.get(&statement) else { return Outcome::Closed };
        let (link, reads) = (prepared.link, prepared.reads);
        let Some(it) = self.links.get_mut(&link) else { return Outcome::Closed };
        let Some(id) = prepared.id else {
            let text = with_values(&prepared.sql, values, it.sql.dialect());
            return self.query(link, &text, false);
        };
        let sent = Instant::now();
        let answer = match self.keeps_rows {
            true => it.sql.execute_rows(id, values).map(|(done, rows)| (done, Some(rows))),
            false => it.sql.execute(id, values).map(|done| (done, None)),
        };
        self.note(link, sent, reads, answer, None, "mysql_stmt_execute()", "PQexecPrepared")
    }

    pub(super) fn close(&mut self, statement: usize) {
        let Some(prepared) = self.statements.remove(&statement) else { return };
        if let (Some(id), Some(link)) = (prepared.id, self.links.get_mut(&prepared.link)) {
            // Nothing depends on it: a connection that broke says so at its next statement.
            let _ = link.sql.close(id);
        }
    }

    /// The next row of the last result.
    pub(super) fn fetch(&mut self, link: usize) -> Option<Row> {
        self.links.get_mut(&link)?.rows.next()
    }

    pub(super) fn free(&mut self, link: usize) {
        if let Some(link) = self.links.get_mut(&link) {
            link.rows = Vec::new().into_iter();
        }
    }

    pub(super) fn bulk_init(&mut self, link: usize, sql: &str) -> bool {
        let Some(it) = self.links.get_mut(&link) else { return false };
        let mut text = String::with_capacity(BULK_BYTES);
        text.push_str(sql);
        it.bulk = Some(Bulk { values_from: text.len(), text, rows: 0 });
        true
    }

    /// Adds a row; sends the statement before it grows too long. False: it failed.
    pub(super) fn bulk_next(&mut self, link: usize, row: &str) -> bool {
        let Some(Link { bulk: Some(bulk), .. }) = self.links.get_mut(&link) else {
            self.say(Priority::Alert, "attempt to call bulk_insert_next() before bulk_insert_init()");
            return false;
        };
        let is_full = bulk.text.len() + row.len() + 1 + usize::from(bulk.rows > 0) > BULK_BYTES;
        if is_full && bulk.rows == 0 {
            self.fatal(&format!("Query length exceeds the maximum value ({BULK_BYTES}), aborting"));
            return false;
        }
        if is_full && !self.bulk_send(link) {
            return false;
        }
        if let Some(Link { bulk: Some(bulk), .. }) = self.links.get_mut(&link) {
            if bulk.rows > 0 {
                bulk.text.push(',');
            }
            bulk.text.push_str(row);
            bulk.rows += 1;
        }
        true
    }

    pub(super) fn bulk_done(&mut self, link: usize) -> bool {
        let good = self.bulk_send(link);
        if let Some(link) = self.links.get_mut(&link) {
            link.bulk = None;
        }
        good
    }

    fn bulk_send(&mut self, link: usize) -> bool {
        let Some(it) = self.links.get_mut(&link) else { return false };
        let Some(mut bulk) = it.bulk.take_if(|bulk| bulk.rows > 0) else { return true };
        let outcome = self.query(link, &bulk.text, false);
        bulk.text.truncate(bulk.values_from);
        bulk.rows = 0;
        if let Some(it) = self.links.get_mut(&link) {
            it.bulk = Some(bulk);
        }
        matches!(outcome, Outcome::Nothing | Outcome::Rows { .. })
    }

    /// Notes a statement that was answered, and says what follows from the answer. Kinds are sysbench's: by what came
    /// back, not by what the statement says.
    #[allow(clippy::too_many_arguments, reason = "one place where an answer is taken apart")]
    fn note(
        &mut self,
        link: usize,
        sent: Instant,
        reads: bool,
        answer: Result<(Done, Option<Vec<Row>>), DbError>,
        sql: Option<&str>,
        mysql_call: &str,
        postgres_call: &str,
    ) -> Outcome {
        let took = sent.elapsed();
        let kind = match &answer {
            _ if reads => Kind::Read,
            Ok((done, _)) if done.rows > 0 => Kind::Read,
            Ok((done, _)) if done.affected > 0 => Kind::Write,
            _ => Kind::Other,
        };
        let rows = answer.as_ref().map_or(0, |(done, _)| done.rows.max(done.affected));
        self.answered.push(Answered { kind, sent, took, rows, failed: answer.is_err() });
        match answer {
            Ok((done, kept)) if kind == Kind::Read => {
                // Of several results the rows of one are kept.
                let rows = kept.as_ref().map_or(done.rows as usize, Vec::len);
                let kept = kept.unwrap_or_default();
                let fields = kept.first().map_or(0, Vec::len);
                if let Some(link) = self.links.get_mut(&link) {
                    link.rows = kept.into_iter();
                }
                Outcome::Rows { rows, fields }
            }
            Ok(_) => Outcome::Nothing,
            Err(error) => self.failed(link, &error, sql, mysql_call, postgres_call),
        }
    }

    fn failed(
        &mut self,
        link: usize,
        error: &DbError,
        sql: Option<&str>,
        mysql: &str,
        postgres: &str,
    ) -> Outcome {
        let mut fault = fault(error);
        let Some(it) = self.links.get_mut(&link) else { return Outcome::Closed };
        let is_postgres = it.sql.dialect() == Dialect::Postgres;
        if matches!(error, DbError::Timeout { .. })
            && let Some(canceller) = it.sql.canceller()
        {
            // The server may be at the statement still; whether it hears of this makes no difference here.
            let _ = canceller.cancel();
        }
        let reconnects = self.shared.reconnects && error.is_lost();
        let is_ignored =
            if is_postgres { error.is_retryable() } else { self.shared.ignored.holds(fault.number) };
        if reconnects || is_ignored {
            let is_lost = error.is_lost() || LOST.contains(&fault.number);
            if error.is_lost() {
                fault.number = BROKE;
            }
            // PostgreSQL would refuse every statement of the next attempt. In MySQL a lock wait that ran out rolls back its
            // statement alone: the next BEGIN would commit the rest.
            if !is_lost && (is_postgres || fault.number != 1213) {
                let _ = it.sql.run("ROLLBACK");
            }
            if !is_lost || self.reconnect(link) {
                return Outcome::Ignorable(fault);
            }
        }
        if is_postgres {
            self.fatal(&format!("{postgres}() failed: 7 {}", fault.message));
            if let Some(sql) = sql {
                self.fatal(&format!("failed query was: {sql}"));
            }
            return Outcome::Fatal(fault);
        }
        let query = sql.map_or(String::new(), |sql| format!(" for query '{sql}'"));
        self.fatal(&format!("{mysql} returned error {} ({}){query}", fault.number, fault.message));
        Outcome::Fatal(fault)
    }
}

/// An error in the form in which scripts see it.
fn fault(error: &DbError) -> Fault {
    match error {
        DbError::Server(error) => {
            Fault { number: error.number, state: error.sqlstate.clone(), message: error.message.clone() }
        }
        lost if lost.is_lost() => {
            Fault { number: BROKE, state: "HY000".to_string(), message: lost.to_string() }
        }
        other => Fault { number: 2000, state: "HY000".to_string(), message: other.to_string() },
    }
}
