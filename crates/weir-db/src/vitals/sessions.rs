//! What sessions do at one moment, as the server says, joined with where their threads sleep where that can be seen.

use std::collections::HashMap;

use weir_oltp::Dialect;
use weir_oltp::limits::waits::STARTING_COMMIT;
use weir_oltp::limits::{OffCpu, Sessions, Wait};
use weir_oltp::vitals::is_mariadb;

use super::Unseen;
use crate::connection::Connection;
use crate::error::{DbError, plain};
use crate::rows::Row;

/// Names of events that are distinguished, and characters of one: the servers have fewer and shorter ones.
const EVENTS_MAX: usize = 500;
const EVENT_CHARS_MAX: usize = 100;
/// Longest queue that is followed to its root.
const QUEUE_MAX: usize = 64;

/// Which sessions are looked at; never the one that looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// All of the server that are at work.
    AtWork,
    /// Those of this connection's database, waiting for their clients or not, and who waits behind whom.
    OfThisDatabase,
}

impl Whose {
    /// Sessions that one look asks for: more would tell no more, and cost. The threads of some are looked at as well.
    fn most(self) -> u32 {
        match self {
            Whose::AtWork => 256,
            Whose::OfThisDatabase => 64,
        }
    }
}

/// One session in one look.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerSession {
    /// As queues name it.
    pub id: u32,
    /// Its thread in the kernel; 0 where it is not known.
    pub thread: u32,
    /// What it does.
    pub wait: Wait,
    /// Where its thread sleeps.
    pub off_cpu: Option<OffCpu>,
    /// What the server calls it.
    pub event: String,
    /// The session that holds what this one waits for.
    pub behind: Option<u32>,
}

/// The list of sessions, in one form for all: number, thread, two words for what it does, whether InnoDB has it in a
/// lock wait, and behind whom it waits.
fn statement(dialect: Dialect, version: &str, whose: Whose) -> String {
    let (all, most) = (whose == Whose::AtWork, whose.most());
    match dialect {
        Dialect::Postgres => {
            // The question for the holder of a lock takes locks in the server: asked only of sessions that wait.
            let behind = "CASE WHEN wait_event_type = 'Lock' THEN (pg_blocking_pids(pid))[1] END";
            let (behind, chosen) = match whose {
                // `idle in transaction` waits for its client, as a sleeping session of MySQL does in its transaction.
                Whose::AtWork => ("NULL", "state NOT LIKE 'idle%'"),
                Whose::OfThisDatabase => (behind, "datname = current_database()"),
            };
            format!(
                "SELECT pid, pid, coalesce(wait_event_type, ''), coalesce(wait_event, ''), '', {behind} \
                 FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend' \
                 AND {chosen} LIMIT {most}"
            )
        }
        // MySQL's performance schema has threads; what all users may look at has none.
        Dialect::MySql if is_mariadb(version) || all => {
            let thread = if is_mariadb(version) { "p.TID" } else { "0" };
            let chosen =
                if all { "p.COMMAND IN ('Query', 'Execute', 'Prepare')" } else { "p.DB = DATABASE()" };
            let state = state(version, "p.STATE", "p.INFO");
            format!(
                "SELECT p.ID, {thread}, p.COMMAND, {state}, coalesce(t.trx_state, ''), NULL \
                 FROM information_schema.PROCESSLIST p \
                 LEFT JOIN information_schema.INNODB_TRX t ON t.trx_mysql_thread_id = p.ID \
                 WHERE p.ID <> CONNECTION_ID() AND {chosen} LIMIT {most}"
            )
        }
        Dialect::MySql => format!(
            "SELECT p.PROCESSLIST_ID, p.THREAD_OS_ID, p.PROCESSLIST_COMMAND, {state}, \
             coalesce(t.trx_state, ''), NULL FROM performance_schema.threads p \
             LEFT JOIN information_schema.INNODB_TRX t ON t.trx_mysql_thread_id = p.PROCESSLIST_ID \
             WHERE p.PROCESSLIST_DB = DATABASE() AND p.PROCESSLIST_ID <> CONNECTION_ID() LIMIT {most}",
            state = state(version, "p.PROCESSLIST_STATE", "p.PROCESSLIST_INFO")
        ),
    }
}

/// A session's state by its columns. MySQL 5.7 has none for a COMMIT, which keeps the one in which every statement begins
/// (ha_commit_trans of sql/handler.cc, which sets one from 8.0 on): its text tells it.
fn state(version: &str, state: &str, text: &str) -> String {
    if !version.starts_with("5.7.") {
        return state.to_string();
    }
    format!("IF({state} = 'starting' AND {text} LIKE 'commit%', '{STARTING_COMMIT}', {state})")
}

/// Who waits behind whom in InnoDB.
fn queues(version: &str) -> &'static str {
    if is_mariadb(version) {
        "SELECT r.trx_mysql_thread_id, b.trx_mysql_thread_id FROM information_schema.INNODB_LOCK_WAITS w \
         JOIN information_schema.INNODB_TRX r ON r.trx_id = w.requesting_trx_id \
         JOIN information_schema.INNODB_TRX b ON b.trx_id = w.blocking_trx_id"
    } else {
        "SELECT r.PROCESSLIST_ID, b.PROCESSLIST_ID FROM performance_schema.data_lock_waits w \
         JOIN performance_schema.threads r ON r.THREAD_ID = w.REQUESTING_THREAD_ID \
         JOIN performance_schema.threads b ON b.THREAD_ID = w.BLOCKING_THREAD_ID"
    }
}

/// Looks once. `find` says which thread of the kernel bears the server's number for it, and where it sleeps, where that can
/// be seen from here.
///
/// # Errors
/// When the server refuses, or the connection is lost.
pub fn sessions(
    connection: &mut Connection,
    whose: Whose,
    find: &mut dyn FnMut(u32) -> (u32, Option<OffCpu>),
) -> Result<Vec<ServerSession>, DbError> {
    let (dialect, version) = (connection.dialect(), connection.version().to_string());
    let rows = connection.query(&statement(dialect, &version, whose))?;
    // Threads are looked at right after the list was made, so that the two belong together.
    let mut sessions: Vec<ServerSession> = rows
        .iter()
        .filter_map(|row| session(dialect, row, find))
        .filter(|session| whose == Whose::OfThisDatabase || !has_answered(dialect, session))
        .collect();
    if dialect == Dialect::MySql && !is_mariadb(&version) {
        follow_leader(&mut sessions, || {
            let points =
                connection.query("SHOW GLOBAL VARIABLES LIKE 'rpl\\_semi\\_sync\\_%\\_wait\\_point'");
            points.unwrap_or_default().iter().any(|row| text(row, 1) == "AFTER_SYNC")
        });
    }
    let is_queue = sessions.iter().any(|session| session.wait == Wait::Lock);
    if dialect == Dialect::MySql && whose == Whose::OfThisDatabase && is_queue {
        // Without the privilege for it the roots of queues stay unknown.
        let behind = connection.query(queues(&version)).unwrap_or_default();
        let behind: HashMap<u32, u32> =
            behind.iter().filter_map(|row| Some((number(row, 0)?, number(row, 1)?))).collect();
        sessions.iter_mut().for_each(|session| session.behind = behind.get(&session.id).copied());
    }
    Ok(sessions)
}

/// Whether a session of MySQL that was at work when the list was made has its client's answer behind it.
fn has_answered(dialect: Dialect, session: &ServerSession) -> bool {
    dialect == Dialect::MySql && session.wait == Wait::Client
}

/// In MySQL the leader of a group alone waits for the replica, before the group commits (`rpl_semi_sync_source_wait_point`,
/// AFTER_SYNC by default), and no other group commits meanwhile: the state of followers and of those behind is that of
/// a commit. MariaDB's sessions wait one by one, after their commits.
fn follow_leader(sessions: &mut [ServerSession], waits_before_commit: impl FnOnce() -> bool) {
    if sessions.iter().any(|session| session.wait == Wait::Replica) && waits_before_commit() {
        let follows = |session: &&mut ServerSession| {
            session.wait == Wait::Commit && matches!(session.off_cpu, None | Some(OffCpu::Futex))
        };
        sessions.iter_mut().filter(follows).for_each(|session| session.wait = Wait::Replica);
    }
}

/// Adds a look to the sums.
pub fn add(sum: &mut Sessions, sessions: &[ServerSession]) {
    sum.looks += 1;
    let by_id: HashMap<u32, &ServerSession> = sessions.iter().map(|session| (session.id, session)).collect();
    for session in sessions {
        *sum.waits.entry(session.wait).or_default() += 1;
        let is_known = sum.events.contains_key(&session.event) || sum.events.len() < EVENTS_MAX;
        *sum.events.entry(if is_known { session.event.clone() } else { "others".into() }).or_default() += 1;
        if let Some(place) = session.off_cpu {
            *sum.off_cpu.entry(place).or_default() += 1;
        }
        if session.wait == Wait::Lock {
            *sum.roots.entry(root(session, &by_id)).or_default() += 1;
        }
    }
}

/// Notes where this user sees only sessions of its own.
pub(super) fn check_privilege(connection: &mut Connection, unseen: &mut Unseen) -> Result<(), DbError> {
    if connection.dialect() == Dialect::MySql {
        return Ok(());
    }
    unseen.asked += 1;
    let rows = connection.query("SELECT pg_has_role(current_user, 'pg_read_all_stats', 'usage')")?;
    if rows.first().is_some_and(|row| text(row, 0) == "f") {
        unseen.sentences.push("waits of others' sessions; `GRANT pg_monitor` shows them".to_string());
    }
    Ok(())
}

/// Adds a look at everybody at work. `true`: the server refused, and will again.
pub(super) fn look(
    connection: &mut Connection,
    sum: &mut Sessions,
    unseen: &mut Unseen,
    find: &mut dyn FnMut(u32) -> (u32, Option<OffCpu>),
) -> Result<bool, DbError> {
    unseen.asked += 1;
    match sessions(connection, Whose::AtWork, find) {
        Ok(sessions) => add(sum, &sessions),
        Err(error) if unseen.add("what sessions wait for", &error, "GRANT PROCESS ON *.*") => {
            return Ok(true);
        }
        Err(error) => return Err(error),
    }
    Ok(false)
}

fn session(
    dialect: Dialect,
    row: &Row,
    find: &mut dyn FnMut(u32) -> (u32, Option<OffCpu>),
) -> Option<ServerSession> {
    let id = number(row, 0)?;
    let (thread, off_cpu) = number(row, 1).filter(|own| *own > 0).map_or((0, None), find);
    let (first, second, lock_wait) = (text(row, 2), text(row, 3), text(row, 4) == "LOCK WAIT");
    let (wait, event) = match dialect {
        Dialect::Postgres if first.is_empty() => (Wait::Cpu, "CPU".to_string()),
        Dialect::Postgres => (Wait::of_postgres(first, second, off_cpu), format!("{first}:{second}")),
        Dialect::MySql => {
            let event = if second.is_empty() { first } else { second };
            let event = if lock_wait { "LOCK WAIT" } else { event };
            (Wait::of_mysql(first, second, lock_wait, off_cpu), event.to_string())
        }
    };
    let event = plain(event.as_bytes(), EVENT_CHARS_MAX);
    Some(ServerSession { id, thread, wait, off_cpu, event, behind: number(row, 5) })
}

/// What the session at the root of a queue does. A session that waits for a row and is in no queue any more has just got
/// it; what the holder did is not known then.
fn root(waiting: &ServerSession, by_id: &HashMap<u32, &ServerSession>) -> Wait {
    let mut at = waiting;
    for _ in 0..QUEUE_MAX {
        match at.behind.and_then(|id| by_id.get(&id)) {
            Some(holder) => at = holder,
            None => break,
        }
    }
    if at.wait == Wait::Lock { Wait::Other } else { at.wait }
}

fn text(row: &Row, column: usize) -> &str {
    row.get(column).and_then(Option::as_deref).unwrap_or_default()
}

fn number(row: &Row, column: usize) -> Option<u32> {
    text(row, column).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> Row {
        cells.iter().map(|cell| (!cell.is_empty()).then(|| (*cell).to_string())).collect()
    }

    #[test]
    fn sessions_are_told_by_what_the_server_says() {
        for (dialect, cells, expected) in [
            (Dialect::Postgres, ["", "", ""], (Wait::Cpu, "CPU")),
            (Dialect::Postgres, ["LWLock", "WALWrite", ""], (Wait::Commit, "LWLock:WALWrite")),
            (Dialect::MySql, ["Execute", "Commit", "RUNNING"], (Wait::Commit, "Commit")),
            (Dialect::MySql, ["Query", "Updating", "LOCK WAIT"], (Wait::Lock, "LOCK WAIT")),
            (Dialect::MySql, ["Query", "", ""], (Wait::Cpu, "Query")),
        ] {
            let row = row(&[&["7", ""][..], &cells].concat());
            let found = session(dialect, &row, &mut |_| panic!("it has no thread")).unwrap();
            assert_eq!((found.wait, found.event.as_str()), expected, "{cells:?}");
        }
    }

    #[test]
    fn sessions_that_wait_for_their_clients_are_not_at_work() {
        let asked = statement(Dialect::Postgres, "PostgreSQL 15.10", Whose::AtWork);
        assert!(asked.contains("state NOT LIKE 'idle%'"), "{asked}");
        for (dialect, cells, sleeps, expected) in [
            (Dialect::MySql, ["Execute", "Updating status"], OffCpu::Socket, true),
            (Dialect::MySql, ["Execute", "Updating status"], OffCpu::Futex, false),
            // A statement that reads rows from its client.
            (Dialect::Postgres, ["Client", "ClientRead"], OffCpu::Socket, false),
        ] {
            let row = row(&[&["7", "7"][..], &cells, &["", ""]].concat());
            let session = session(dialect, &row, &mut |own| (own, Some(sleeps))).unwrap();
            assert_eq!(has_answered(dialect, &session), expected, "{session:?}");
        }
    }

    /// 5.7 shows `starting` for it, whether it waits for the log or not.
    #[test]
    fn a_commit_of_mysql_5_7_is_told_by_its_text() {
        let statement = |version, whose| statement(Dialect::MySql, version, whose);
        for (whose, columns) in [
            (Whose::OfThisDatabase, ("p.PROCESSLIST_STATE", "p.PROCESSLIST_INFO")),
            (Whose::AtWork, ("p.STATE", "p.INFO")),
        ] {
            let asked = format!("IF({} = 'starting' AND {} LIKE 'commit%'", columns.0, columns.1);
            assert!(statement("5.7.44-log", whose).contains(&asked), "{}", statement("5.7.44-log", whose));
            for version in ["8.0.35", "10.11.6-MariaDB", "5.5.5-10.3.39-MariaDB"] {
                assert!(!statement(version, whose).contains("'starting'"), "{version}");
            }
        }
        for (state, sleeps, expected) in [
            (STARTING_COMMIT, Some(OffCpu::Sync), Wait::Commit),
            (STARTING_COMMIT, Some(OffCpu::Futex), Wait::Commit),
            (STARTING_COMMIT, Some(OffCpu::Runs), Wait::Cpu),
            (STARTING_COMMIT, None, Wait::Commit),
            ("starting", Some(OffCpu::Futex), Wait::Latch),
        ] {
            let row = row(&["7", "7", "Execute", state, "RUNNING"]);
            let found = session(Dialect::MySql, &row, &mut |own| (own, sleeps)).unwrap();
            assert_eq!((found.wait, found.event.as_str()), (expected, state), "{sleeps:?}");
        }
    }

    #[test]
    fn followers_wait_for_the_replica_as_their_leader_does() {
        let mut find = |own: u32| (own, Some(if own == 9 { OffCpu::Sync } else { OffCpu::Futex }));
        let commit = "waiting for handler commit";
        let mut waits = |leader: &str| {
            let states = [("7", leader), ("8", commit), ("9", commit), ("10", "Updating")];
            let row = |(id, state): (&str, &str)| row(&[id, id, "Query", state, "", ""]);
            let rows = states.map(row);
            let mut sessions: Vec<ServerSession> =
                rows.iter().filter_map(|row| session(Dialect::MySql, row, &mut find)).collect();
            follow_leader(&mut sessions, || true);
            sessions.iter().map(|session| session.wait).collect::<Vec<_>>()
        };
        assert_eq!(waits(commit), [Wait::Commit, Wait::Commit, Wait::Commit, Wait::Latch]);
        let acked = waits("Waiting for semi-sync ACK from replica");
        assert_eq!(acked, [Wait::Replica, Wait::Replica, Wait::Commit, Wait::Latch]);
    }

    #[test]
    fn names_without_end_are_not_all_kept() {
        let mut sum = Sessions::default();
        for name in 0..3 * EVENTS_MAX {
            let row = row(&["7", "", "Query", &format!("{name}{}", "x".repeat(1000)), "", ""]);
            add(&mut sum, &[session(Dialect::MySql, &row, &mut |own| (own, None)).unwrap()]);
        }
        assert_eq!(sum.events.len(), EVENTS_MAX + 1);
        assert_eq!(sum.events["others"], 2 * EVENTS_MAX as u64);
        assert!(sum.events.keys().all(|name| name.len() <= EVENT_CHARS_MAX));
    }

    #[test]
    fn queues_are_followed_to_their_root() {
        let rows = [
            row(&["11", "11", "Lock", "transactionid", "", "12"]),
            row(&["12", "12", "Lock", "tuple", "", "13"]),
            row(&["13", "13", "IO", "WALSync", "", ""]),
            row(&["14", "14", "", "", "", ""]),
            row(&["15", "15", "Lock", "transactionid", "", "99"]),
        ];
        let sessions: Vec<ServerSession> =
            rows.iter().filter_map(|row| session(Dialect::Postgres, row, &mut |own| (own, None))).collect();
        let mut sum = Sessions::default();
        add(&mut sum, &sessions);
        assert_eq!((sum.looks, sum.samples()), (1, 5));
        assert_eq!((sum.waits[&Wait::Lock], sum.waits[&Wait::Commit], sum.waits[&Wait::Cpu]), (3, 1, 1));
        assert_eq!((sum.roots[&Wait::Commit], sum.roots[&Wait::Other]), (2, 1));
        assert_eq!(sum.events["Lock:transactionid"], 2);
    }

    #[test]
    fn threads_of_mysql_are_joined_with_where_they_sleep() {
        let mut find = |own: u32| (own + 100, Some(if own == 7 { OffCpu::Futex } else { OffCpu::Runs }));
        for (cells, expected) in [
            (["3", "7", "Execute", "Updating status", "RUNNING"], (Wait::Commit, "Updating status")),
            (["3", "8", "Execute", "Updating status", "RUNNING"], (Wait::Cpu, "Updating status")),
            (["3", "7", "Execute", "Updating", "LOCK WAIT"], (Wait::Lock, "LOCK WAIT")),
            (["3", "7", "Sleep", "", ""], (Wait::Client, "Sleep")),
        ] {
            let found = session(Dialect::MySql, &row(&cells), &mut find).unwrap();
            assert_eq!(found.thread, cells[1].parse::<u32>().unwrap() + 100);
            assert_eq!((found.wait, found.event.as_str()), expected, "{cells:?}");
        }
    }
}
