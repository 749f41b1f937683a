//! The server's own counters, read when measuring begins and ends.

use std::collections::HashMap;

use weir_core::oltp::Dialect;
use weir_core::oltp::limits::Counters;
use weir_db::connection::Connection;
use weir_db::error::DbError;

/// Names and values as the server prints them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Values(HashMap<String, f64>);

const MYSQL: &str = "SHOW GLOBAL STATUS LIKE 'Innodb%'";
const MYSQL_CAPACITY: &str = "SELECT @@innodb_redo_log_capacity";
/// Views have other columns in other versions: all of them are asked for, by name.
const POSTGRES: &str = "SELECT 'wal.' || key, value FROM pg_stat_wal t, jsonb_each_text(to_jsonb(t)) \
    UNION ALL SELECT 'bgwriter.' || key, value FROM pg_stat_bgwriter t, jsonb_each_text(to_jsonb(t)) \
    UNION ALL SELECT 'database.' || key, value FROM pg_stat_database t, jsonb_each_text(to_jsonb(t)) \
    WHERE t.datname = current_database()";
/// From PostgreSQL 17 on.
const POSTGRES_CHECKPOINTER: &str =
    "SELECT 'checkpointer.' || key, value FROM pg_stat_checkpointer t, jsonb_each_text(to_jsonb(t))";

/// Reads all counters.
pub fn read(connection: &mut Connection) -> Result<Values, DbError> {
    let (statement, more) = match connection.dialect() {
        Dialect::MySql => (MYSQL, MYSQL_CAPACITY),
        Dialect::Postgres => (POSTGRES, POSTGRES_CHECKPOINTER),
    };
    let mut values = HashMap::new();
    for row in connection.query(statement)? {
        values.extend(pair(&row));
    }
    // Only some versions have these: without them what they say is absent.
    for row in connection.query(more).unwrap_or_default() {
        let single = row.first().and_then(number).filter(|_| row.len() == 1);
        values.extend(single.map(|value| ("capacity".to_string(), value)));
        values.extend(pair(&row));
    }
    Ok(Values(values))
}

fn number(cell: &Option<String>) -> Option<f64> {
    cell.as_deref()?.parse().ok()
}

fn pair(row: &[Option<String>]) -> Option<(String, f64)> {
    Some((row.first()?.clone()?, number(row.get(1)?)?))
}

impl Values {
    /// What happened since an earlier reading.
    pub fn since(&self, earlier: &Values, dialect: Dialect) -> Counters {
        let count = |name: &str| {
            let (later, earlier) = (self.0.get(name)?, earlier.0.get(name)?);
            Some((later - earlier).max(0.0) as u64)
        };
        let sum = |names: &[&str]| {
            let counts: Vec<u64> = names.iter().filter_map(|name| count(name)).collect();
            (!counts.is_empty()).then(|| counts.iter().sum())
        };
        match dialect {
            Dialect::MySql => Counters {
                syncs: count("Innodb_data_fsyncs"),
                page_reads: count("Innodb_buffer_pool_reads"),
                page_writes: sum(&["Innodb_buffer_pool_pages_flushed", "Innodb_dblwr_pages_written"]),
                log_bytes: count("Innodb_os_log_written"),
                lock_waits: count("Innodb_row_lock_waits"),
                deadlocks: count("Innodb_deadlocks"),
                free_page_waits: count("Innodb_buffer_pool_wait_free"),
                log_waits: count("Innodb_log_waits"),
                forced_checkpoints: None,
                checkpoint_age: self.checkpoint_age(),
            },
            Dialect::Postgres => Counters {
                syncs: count("wal.wal_sync"),
                page_reads: count("database.blks_read"),
                page_writes: sum(&[
                    "bgwriter.buffers_checkpoint",
                    "bgwriter.buffers_clean",
                    "bgwriter.buffers_backend",
                    "checkpointer.buffers_written",
                ]),
                log_bytes: count("wal.wal_bytes"),
                lock_waits: None,
                deadlocks: count("database.deadlocks"),
                free_page_waits: None,
                log_waits: count("wal.wal_buffers_full"),
                forced_checkpoints: sum(&["bgwriter.checkpoints_req", "checkpointer.num_requested"]),
                checkpoint_age: None,
            },
        }
    }

    /// Age of the last checkpoint as a share of what the log holds: MariaDB says it, MySQL's is the distance of two
    /// places in its log.
    pub fn checkpoint_age(&self) -> Option<f64> {
        let get = |name: &str| self.0.get(name).copied();
        let mariadb = get("Innodb_checkpoint_age").zip(get("Innodb_checkpoint_max_age"));
        let mysql = || {
            let age = get("Innodb_redo_log_current_lsn")? - get("Innodb_redo_log_checkpoint_lsn")?;
            Some((age, get("capacity")?))
        };
        let (age, most) = mariadb.or_else(mysql)?;
        (most > 0.0).then(|| (age / most).clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pairs: &[(&str, f64)]) -> Values {
        Values(pairs.iter().map(|(name, value)| ((*name).to_string(), *value)).collect())
    }

    #[test]
    fn counts_are_differences_and_absent_ones_stay_absent() {
        let earlier = values(&[("Innodb_data_fsyncs", 10.0), ("Innodb_row_lock_waits", 5.0)]);
        let later = values(&[
            ("Innodb_data_fsyncs", 110.0),
            ("Innodb_row_lock_waits", 5.0),
            ("Innodb_checkpoint_age", 75.0),
            ("Innodb_checkpoint_max_age", 100.0),
        ]);
        let counters = later.since(&earlier, Dialect::MySql);
        assert_eq!((counters.syncs, counters.lock_waits, counters.page_reads), (Some(100), Some(0), None));
        assert_eq!(counters.checkpoint_age, Some(0.75));
        let mysql = values(&[
            ("Innodb_redo_log_current_lsn", 900.0),
            ("Innodb_redo_log_checkpoint_lsn", 400.0),
            ("capacity", 1000.0),
        ]);
        assert_eq!(mysql.checkpoint_age(), Some(0.5));
    }

    #[test]
    fn views_of_all_versions_of_postgresql_count() {
        let earlier = values(&[("bgwriter.checkpoints_req", 1.0), ("bgwriter.buffers_checkpoint", 0.0)]);
        let later = values(&[("bgwriter.checkpoints_req", 4.0), ("bgwriter.buffers_checkpoint", 50.0)]);
        let counters = later.since(&earlier, Dialect::Postgres);
        assert_eq!((counters.forced_checkpoints, counters.page_writes), (Some(3), Some(50)));
        let earlier = values(&[("checkpointer.num_requested", 1.0), ("checkpointer.buffers_written", 5.0)]);
        let later = values(&[("checkpointer.num_requested", 2.0), ("checkpointer.buffers_written", 25.0)]);
        let counters = later.since(&earlier, Dialect::Postgres);
        assert_eq!((counters.forced_checkpoints, counters.page_writes), (Some(1), Some(20)));
    }
}
