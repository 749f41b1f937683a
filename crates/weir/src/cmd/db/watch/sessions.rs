//! Looks at what the server's sessions do: its own list of them, joined with where their threads sleep.

use std::collections::HashMap;

use weir_core::oltp::Dialect;
use weir_core::oltp::limits::{OffCpu, Sessions, Wait};
use weir_db::connection::{Connection, Row};
use weir_db::error::DbError;
use weir_host::Host;

use super::place::is_mariadb;

/// Sessions that one look asks for: more would tell no more, and cost.
const SESSIONS_MAX: u32 = 64;
/// Longest queue that is followed to its root.
const QUEUE_MAX: usize = 64;

/// Backends of this database but our own; who holds what one waits for is asked only of those that wait.
const POSTGRES: &str = "SELECT pid, coalesce(wait_event_type, ''), coalesce(wait_event, ''), \
    CASE WHEN wait_event_type = 'Lock' THEN (pg_blocking_pids(pid))[1] END \
    FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() \
    AND backend_type = 'client backend' LIMIT";
/// The threads of this database but our own, whether InnoDB has them in a lock wait, and behind whom.
const MARIADB: &str = "SELECT p.TID, p.COMMAND, p.STATE, coalesce(t.trx_state, ''), p.ID \
    FROM information_schema.PROCESSLIST p \
    LEFT JOIN information_schema.INNODB_TRX t ON t.trx_mysql_thread_id = p.ID \
    WHERE p.DB = DATABASE() AND p.ID <> CONNECTION_ID() LIMIT";
const MARIADB_QUEUES: &str = "SELECT r.trx_mysql_thread_id, b.trx_mysql_thread_id \
    FROM information_schema.INNODB_LOCK_WAITS w \
    JOIN information_schema.INNODB_TRX r ON r.trx_id = w.requesting_trx_id \
    JOIN information_schema.INNODB_TRX b ON b.trx_id = w.blocking_trx_id";
const MYSQL: &str = "SELECT p.THREAD_OS_ID, p.PROCESSLIST_COMMAND, p.PROCESSLIST_STATE, coalesce(t.trx_state, ''), \
    p.PROCESSLIST_ID FROM performance_schema.threads p \
    LEFT JOIN information_schema.INNODB_TRX t ON t.trx_mysql_thread_id = p.PROCESSLIST_ID \
    WHERE p.PROCESSLIST_DB = DATABASE() AND p.PROCESSLIST_ID <> CONNECTION_ID() LIMIT";
const MYSQL_QUEUES: &str = "SELECT r.PROCESSLIST_ID, b.PROCESSLIST_ID FROM performance_schema.data_lock_waits w \
    JOIN performance_schema.threads r ON r.THREAD_ID = w.REQUESTING_THREAD_ID \
    JOIN performance_schema.threads b ON b.THREAD_ID = w.BLOCKING_THREAD_ID";

/// One session in one look.
#[derive(Debug, Clone, PartialEq)]
struct Session {
    /// As queues name it.
    id: u32,
    /// Its thread in the kernel.
    thread: u32,
    wait: Wait,
    off_cpu: Option<OffCpu>,
    event: String,
    /// The session that holds what this one waits for.
    behind: Option<u32>,
}

/// Looks, added up.
pub struct Looks {
    connection: Connection,
    statement: String,
    queues: Option<&'static str>,
    /// Whether the server's threads are threads of this machine.
    is_here: bool,
    sum: Sessions,
    /// What the server or the kernel refused; looking ends with the server's refusal.
    pub refused: Option<String>,
}

impl Looks {
    /// Looks by this connection.
    pub fn new(connection: Connection, is_here: bool) -> Looks {
        let (statement, queues) = match connection.dialect() {
            Dialect::Postgres => (POSTGRES, None),
            Dialect::MySql if is_mariadb(connection.version()) => (MARIADB, Some(MARIADB_QUEUES)),
            Dialect::MySql => (MYSQL, Some(MYSQL_QUEUES)),
        };
        let statement = format!("{statement} {SESSIONS_MAX}");
        Looks { connection, statement, queues, is_here, sum: Sessions::default(), refused: None }
    }

    /// The connection, for what else there is to ask.
    pub fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Looks once; the threads of the sessions seen.
    pub fn look(&mut self, host: &Host) -> Vec<u32> {
        if self.refused.is_some() {
            return Vec::new();
        }
        match self.sessions(host) {
            Ok(sessions) => {
                count(&mut self.sum, &sessions);
                let here = sessions.iter().filter(|_| self.is_here);
                here.map(|session| session.thread).filter(|thread| *thread > 0).collect()
            }
            Err(error) => {
                self.refused = Some(format!("what sessions wait for: {error}"));
                Vec::new()
            }
        }
    }

    /// What was seen; `None` where nothing was.
    pub fn take(&mut self) -> Option<Sessions> {
        let sum = std::mem::take(&mut self.sum);
        (sum.samples() > 0).then_some(sum)
    }

    fn sessions(&mut self, host: &Host) -> Result<Vec<Session>, DbError> {
        let rows = self.connection.query(&self.statement)?;
        let dialect = self.connection.dialect();
        // Threads are looked at right after the list was made, so that the two belong together.
        let off_cpu = |thread: u32| {
            if self.is_here && thread > 0 { host.off_cpu(thread).ok().flatten() } else { None }
        };
        let mut sessions: Vec<Session> =
            rows.iter().filter_map(|row| session(dialect, row, &off_cpu)).collect();
        let waits = sessions.iter().any(|session| session.wait == Wait::Lock);
        if let Some(queues) = self.queues.filter(|_| waits) {
            // Without the privilege for it the roots of queues stay unknown.
            let behind = self.connection.query(queues).unwrap_or_default();
            let behind: HashMap<u32, u32> =
                behind.iter().filter_map(|row| Some((number(row, 0)?, number(row, 1)?))).collect();
            sessions.iter_mut().for_each(|session| session.behind = behind.get(&session.id).copied());
        }
        Ok(sessions)
    }
}

fn text(row: &Row, column: usize) -> &str {
    row.get(column).and_then(Option::as_deref).unwrap_or_default()
}

fn number(row: &Row, column: usize) -> Option<u32> {
    text(row, column).parse().ok()
}

fn session(dialect: Dialect, row: &Row, off_cpu: &dyn Fn(u32) -> Option<OffCpu>) -> Option<Session> {
    let thread = number(row, 0)?;
    let off_cpu = off_cpu(thread);
    Some(match dialect {
        Dialect::Postgres => {
            let (kind, event) = (text(row, 1), text(row, 2));
            let event_name = if kind.is_empty() { "CPU".to_string() } else { format!("{kind}:{event}") };
            let wait = Wait::of_postgres(kind, event);
            Session { id: thread, thread, wait, off_cpu, event: event_name, behind: number(row, 3) }
        }
        Dialect::MySql => {
            let (command, state) = (text(row, 1), text(row, 2));
            let lock_wait = text(row, 3) == "LOCK WAIT";
            let wait = Wait::of_mysql(command, state, lock_wait, off_cpu);
            let event = if lock_wait {
                "LOCK WAIT"
            } else if state.is_empty() {
                command
            } else {
                state
            };
            Session { id: number(row, 4)?, thread, wait, off_cpu, event: event.to_string(), behind: None }
        }
    })
}

/// Adds a look to the sums.
fn count(sum: &mut Sessions, sessions: &[Session]) {
    sum.looks += 1;
    let by_id: HashMap<u32, &Session> = sessions.iter().map(|session| (session.id, session)).collect();
    for session in sessions {
        *sum.waits.entry(session.wait).or_default() += 1;
        *sum.events.entry(session.event.clone()).or_default() += 1;
        if let Some(place) = session.off_cpu {
            *sum.off_cpu.entry(place).or_default() += 1;
        }
        if session.wait == Wait::Lock {
            *sum.roots.entry(root(session, &by_id)).or_default() += 1;
        }
    }
}

/// What the session at the root of a queue does. Who waits for a row and is not found in a queue any more has just got
/// it; what the holder did is not known then.
fn root(waiting: &Session, by_id: &HashMap<u32, &Session>) -> Wait {
    let mut at = waiting;
    for _ in 0..QUEUE_MAX {
        match at.behind.and_then(|id| by_id.get(&id)) {
            Some(holder) => at = holder,
            None => break,
        }
    }
    if at.wait == Wait::Lock { Wait::Other } else { at.wait }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> Row {
        cells.iter().map(|cell| (!cell.is_empty()).then(|| (*cell).to_string())).collect()
    }

    #[test]
    fn queues_are_followed_to_their_root() {
        let rows = [
            row(&["11", "Lock", "transactionid", "12"]),
            row(&["12", "Lock", "tuple", "13"]),
            row(&["13", "IO", "WALSync", ""]),
            row(&["14", "", "", ""]),
            row(&["15", "Lock", "transactionid", "99"]),
        ];
        let sessions: Vec<Session> =
            rows.iter().filter_map(|row| session(Dialect::Postgres, row, &|_| None)).collect();
        let mut sum = Sessions::default();
        count(&mut sum, &sessions);
        assert_eq!((sum.looks, sum.samples()), (1, 5));
        assert_eq!((sum.waits[&Wait::Lock], sum.waits[&Wait::Commit], sum.waits[&Wait::Cpu]), (3, 1, 1));
        assert_eq!((sum.roots[&Wait::Commit], sum.roots[&Wait::Other]), (2, 1));
        assert_eq!(sum.events["Lock:transactionid"], 2);
    }

    #[test]
    fn threads_of_mysql_are_joined_with_where_they_sleep() {
        let off_cpu = |thread: u32| Some(if thread == 7 { OffCpu::Futex } else { OffCpu::Runs });
        for (cells, expected) in [
            (["7", "Execute", "Updating status", "RUNNING", "3"], (Wait::Commit, "Updating status")),
            (["8", "Execute", "Updating status", "RUNNING", "3"], (Wait::Cpu, "Updating status")),
            (["7", "Execute", "Updating", "LOCK WAIT", "3"], (Wait::Lock, "LOCK WAIT")),
            (["7", "Sleep", "", "", "3"], (Wait::Client, "Sleep")),
        ] {
            let found = session(Dialect::MySql, &row(&cells), &off_cpu).unwrap();
            assert_eq!((found.wait, found.event.as_str()), expected, "{cells:?}");
        }
    }
}
