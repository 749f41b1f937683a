//! Counters and gauges, by the servers' own names.

use std::collections::BTreeMap;

use weir_oltp::Dialect;
use weir_oltp::vitals::{Snapshot, innodb_status, is_mariadb};

use super::Unseen;
use crate::connection::Connection;
use crate::error::DbError;
use crate::rows::Row;

/// One statement whose rows are names and numbers.
struct Question {
    what: &'static str,
    sql: &'static str,
    /// The privilege to ask for where it is refused.
    privilege: &'static str,
    /// PostgreSQL: the first and the last version that has it.
    versions: (u32, u32),
}

const ALL: (u32, u32) = (0, u32::MAX);

const STATUS: Question = Question {
    what: "counters",
    sql: "SHOW GLOBAL STATUS WHERE Variable_name LIKE 'Innodb%' OR Variable_name LIKE 'Com_%' OR Variable_name IN \
          ('Binlog_commits', 'Connections', 'Created_tmp_disk_tables', 'Max_used_connections', 'Queries', \
          'Questions', 'Select_full_join', 'Slow_queries', 'Threads_connected', 'Threads_running', 'Uptime')",
    privilege: "",
    versions: ALL,
};

/// Metrics that are switched off stand at 0, which is no count.
const MYSQL: [Question; 2] = [
    STATUS,
    Question {
        what: "INNODB_METRICS",
        sql: "SELECT concat('metrics.', NAME), COUNT FROM information_schema.INNODB_METRICS WHERE NAME IN \
              ('lock_deadlocks', 'lock_timeouts', 'buffer_flush_sync', 'trx_rseg_history_len') AND STATUS = 'enabled'",
        privilege: "GRANT PROCESS ON *.*",
        versions: ALL,
    },
];

const MARIADB: [Question; 2] = [
    STATUS,
    Question {
        what: "INNODB_METRICS",
        sql: "SELECT concat('metrics.', NAME), COUNT FROM information_schema.INNODB_METRICS WHERE NAME IN \
              ('lock_deadlocks', 'lock_timeouts', 'buffer_flush_sync', 'trx_rseg_history_len') AND ENABLED = 1",
        privilege: "GRANT PROCESS ON *.*",
        versions: ALL,
    },
];

/// Views have other columns in other versions: all of them are asked for, by name; what is no number is left out.
const POSTGRES: [Question; 7] = [
    Question {
        what: "pg_stat_database",
        sql: "SELECT 'database.' || key, sum(value::numeric) FROM pg_stat_database t, jsonb_each_text(to_jsonb(t)) \
              WHERE value ~ '^[0-9]+([.][0-9]+)?$' AND key NOT IN ('datid', 'datname') GROUP BY key",
        privilege: "GRANT pg_monitor",
        versions: ALL,
    },
    Question {
        what: "pg_stat_bgwriter",
        sql: "SELECT 'bgwriter.' || key, value FROM pg_stat_bgwriter t, jsonb_each_text(to_jsonb(t))",
        privilege: "GRANT pg_monitor",
        versions: ALL,
    },
    Question {
        what: "pg_stat_checkpointer",
        sql: "SELECT 'checkpointer.' || key, value FROM pg_stat_checkpointer t, jsonb_each_text(to_jsonb(t))",
        privilege: "GRANT pg_monitor",
        versions: (17, u32::MAX),
    },
    Question {
        what: "pg_stat_wal",
        sql: "SELECT 'wal.' || key, value FROM pg_stat_wal t, jsonb_each_text(to_jsonb(t))",
        privilege: "GRANT pg_monitor",
        versions: (14, u32::MAX),
    },
    Question {
        what: "pg_stat_io",
        sql: "SELECT CASE WHEN t.object = 'wal' THEN 'io_wal.' ELSE 'io.' || t.backend_type || '.' END || key, \
              sum(value::numeric) FROM pg_stat_io t, jsonb_each_text(to_jsonb(t)) \
              WHERE key IN ('reads', 'writes', 'fsyncs', 'extends', 'evictions') \
              GROUP BY 1",
        privilege: "GRANT pg_monitor",
        versions: (16, u32::MAX),
    },
    Question {
        what: "the place in the log",
        sql: "SELECT 'wal.insert_lsn', CASE WHEN pg_is_in_recovery() THEN NULL \
              ELSE pg_current_wal_insert_lsn() - '0/0'::pg_lsn END",
        privilege: "GRANT EXECUTE ON FUNCTION pg_current_wal_insert_lsn",
        versions: ALL,
    },
    Question {
        what: "the last checkpoint",
        sql: "SELECT 'checkpoint.redo_lsn', redo_lsn - '0/0'::pg_lsn FROM pg_control_checkpoint()",
        privilege: "GRANT pg_monitor",
        versions: ALL,
    },
];

/// Reads all counters. A counter that is refused is noted and absent.
///
/// # Errors
/// When the connection is lost.
pub fn snapshot(connection: &mut Connection, unseen: &mut Unseen) -> Result<Snapshot, DbError> {
    let mut values = BTreeMap::new();
    let (questions, version): (&[Question], u32) = match connection.dialect() {
        Dialect::MySql if is_mariadb(connection.version()) => (&MARIADB, 0),
        Dialect::MySql => (&MYSQL, 0),
        Dialect::Postgres => (&POSTGRES, major_version(connection.version())),
    };
    for question in questions {
        if version != 0 && !(question.versions.0..=question.versions.1).contains(&version) {
            continue;
        }
        let rows =
            unseen.ask(connection, question.sql, question.what, question.privilege)?.unwrap_or_default();
        values.extend(rows.iter().filter_map(pair).take(COUNTERS_MAX));
    }
    let lacks_places =
        !["Innodb_checkpoint_age", "Innodb_redo_log_current_lsn"].iter().any(|n| values.contains_key(*n));
    if connection.dialect() == Dialect::MySql && lacks_places {
        let sql = "SHOW ENGINE INNODB STATUS";
        let rows = unseen.ask(connection, sql, sql, "GRANT PROCESS ON *.*")?.unwrap_or_default();
        values.extend(rows.iter().filter_map(|row| row.get(2)?.as_deref()).flat_map(innodb_status));
    }
    Ok(Snapshot(values))
}

/// The longest name of a counter that is kept, bytes: the record has them, and a server may say anything.
const NAME_MAX: usize = 128;
/// The most counters of a snapshot that are kept.
const COUNTERS_MAX: usize = 4096;

fn pair(row: &Row) -> Option<(String, f64)> {
    let value = row.get(1)?.as_deref()?.parse::<f64>().ok().filter(|value| value.is_finite())?;
    let name = row.first()?.as_ref().filter(|name| name.len() <= NAME_MAX)?;
    Some((name.clone(), value))
}

/// 15 of `PostgreSQL 15.10 (Debian …)`; 0 where there is none.
fn major_version(version: &str) -> u32 {
    let digits: String =
        version.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_a_server_calls_itself() {
        for (text, expected) in
            [("PostgreSQL 15.10 (Debian 15.10-0+deb12u1)", 15), ("16beta1", 16), ("9.6.24", 9), ("x", 0)]
        {
            assert_eq!(major_version(text), expected, "{text}");
        }
    }

    #[test]
    fn only_numbers_with_a_name_are_values() {
        let row = |cells: [Option<&str>; 2]| cells.map(|cell| cell.map(str::to_string)).to_vec();
        for (cells, expected) in [
            ([Some("Innodb_data_fsyncs"), Some("17")], Some(("Innodb_data_fsyncs".to_string(), 17.0))),
            ([Some("Innodb_buffer_pool_dump_status"), Some("Dumping")], None),
            ([Some("wal.insert_lsn"), None], None),
            ([None, Some("1")], None),
            ([Some("a"), Some("inf")], None),
        ] {
            assert_eq!(pair(&row(cells)), expected, "{cells:?}");
        }
    }
}
