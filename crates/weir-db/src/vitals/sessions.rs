//! What sessions do at one moment, as the server says. Idle sessions are not counted.

use weir_core::oltp::Dialect;
use weir_core::oltp::limits::{Sessions, Wait};

use super::Unseen;
use crate::connection::{Connection, Row};
use crate::error::DbError;

/// Sessions that one look asks for: more would tell no more, and cost.
const POSTGRES: &str = "SELECT coalesce(wait_event_type, ''), coalesce(wait_event, '') FROM pg_stat_activity \
    WHERE pid <> pg_backend_pid() AND backend_type = 'client backend' AND state <> 'idle' LIMIT 256";
const MYSQL: &str = "SELECT p.COMMAND, p.STATE, coalesce(t.trx_state, '') FROM information_schema.PROCESSLIST p \
    LEFT JOIN information_schema.INNODB_TRX t ON t.trx_mysql_thread_id = p.ID WHERE p.ID <> CONNECTION_ID() AND \
    p.COMMAND IN ('Query', 'Execute', 'Prepare') LIMIT 256";

/// Notes where this user sees only sessions of its own.
pub(super) fn check_privilege(connection: &mut Connection, unseen: &mut Unseen) -> Result<(), DbError> {
    if connection.dialect() == Dialect::MySql {
        return Ok(());
    }
    let rows = connection.query("SELECT pg_has_role(current_user, 'pg_read_all_stats', 'usage')")?;
    if text(rows.first(), 0) == "f" {
        unseen.0.push("waits of others' sessions; `GRANT pg_monitor` lets them be seen".to_string());
    }
    Ok(())
}

/// Adds one look. `true`: the server refused, and will again.
pub(super) fn look(
    connection: &mut Connection,
    sum: &mut Sessions,
    unseen: &mut Unseen,
) -> Result<bool, DbError> {
    let dialect = connection.dialect();
    let statement = if dialect == Dialect::MySql { MYSQL } else { POSTGRES };
    let rows = match connection.query(statement) {
        Ok(rows) => rows,
        Err(error) if unseen.add("what sessions wait for", &error, "GRANT PROCESS ON *.*") => {
            return Ok(true);
        }
        Err(error) => return Err(error),
    };
    sum.looks += 1;
    for row in &rows {
        let (wait, event) = session(dialect, row);
        *sum.waits.entry(wait).or_default() += 1;
        *sum.events.entry(event).or_default() += 1;
    }
    Ok(false)
}

fn session(dialect: Dialect, row: &Row) -> (Wait, String) {
    let (first, second) = (text(Some(row), 0), text(Some(row), 1));
    match dialect {
        Dialect::Postgres if first.is_empty() => (Wait::Cpu, "CPU".to_string()),
        Dialect::Postgres => (Wait::of_postgres(first, second), format!("{first}:{second}")),
        Dialect::MySql => {
            let lock_wait = text(Some(row), 2) == "LOCK WAIT";
            let event = if second.is_empty() { first } else { second };
            let event = if lock_wait { "LOCK WAIT" } else { event };
            (Wait::of_mysql(first, second, lock_wait, None), event.to_string())
        }
    }
}

fn text(row: Option<&Row>, column: usize) -> &str {
    row.and_then(|row| row.get(column)).and_then(Option::as_deref).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_told_by_what_the_server_says() {
        for (dialect, cells, expected) in [
            (Dialect::Postgres, ["", "", ""], (Wait::Cpu, "CPU")),
            (Dialect::Postgres, ["LWLock", "WALWrite", ""], (Wait::Commit, "LWLock:WALWrite")),
            (Dialect::MySql, ["Execute", "Commit", "RUNNING"], (Wait::Commit, "Commit")),
            (Dialect::MySql, ["Query", "Updating", "LOCK WAIT"], (Wait::Lock, "LOCK WAIT")),
            (Dialect::MySql, ["Query", "", ""], (Wait::Cpu, "Query")),
        ] {
            let row: Row = cells.iter().map(|cell| Some(cell.to_string())).collect();
            let (wait, event) = session(dialect, &row);
            assert_eq!((wait, event.as_str()), expected, "{cells:?}");
        }
    }
}
