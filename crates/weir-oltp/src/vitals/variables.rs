//! Which variables of a server matter to what is measured, and how their values read.

use crate::Dialect;

/// Of MySQL and MariaDB.
const MYSQL: [&str; 34] = [
    "binlog_format",
    "datadir",
    "innodb_adaptive_flushing",
    "innodb_buffer_pool_size",
    "innodb_buffer_pool_size_max",
    "innodb_change_buffering",
    "innodb_doublewrite",
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_method",
    "innodb_flush_neighbors",
    "innodb_io_capacity",
    "innodb_io_capacity_max",
    "innodb_log_buffer_size",
    "innodb_log_file_buffering",
    "innodb_log_file_size",
    "innodb_log_file_write_through",
    "innodb_log_files_in_group",
    "innodb_max_dirty_pages_pct",
    "innodb_max_dirty_pages_pct_lwm",
    "innodb_page_size",
    "innodb_purge_threads",
    "innodb_read_io_threads",
    "innodb_redo_log_capacity",
    "innodb_thread_concurrency",
    "innodb_use_native_aio",
    "innodb_write_io_threads",
    "log_bin",
    "max_connections",
    "performance_schema",
    "query_cache_type",
    "read_only",
    "sync_binlog",
    "thread_handling",
    "transaction_isolation",
];

/// Of PostgreSQL.
const POSTGRES: [&str; 26] = [
    "autovacuum",
    "backend_flush_after",
    "bgwriter_flush_after",
    "bgwriter_lru_maxpages",
    "checkpoint_completion_target",
    "checkpoint_flush_after",
    "checkpoint_timeout",
    "commit_delay",
    "data_checksums",
    "data_directory",
    "default_transaction_isolation",
    "effective_io_concurrency",
    "fsync",
    "full_page_writes",
    "jit",
    "max_connections",
    "max_wal_size",
    "random_page_cost",
    "shared_buffers",
    "synchronous_commit",
    "synchronous_standby_names",
    "track_io_timing",
    "wal_buffers",
    "wal_compression",
    "wal_level",
    "wal_sync_method",
];

/// The names of variables that a record and an examination of a server hold.
pub fn that_matter(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::MySql => &MYSQL,
        Dialect::Postgres => &POSTGRES,
    }
}

/// Whether a switch is on, in either family's words; `None` for what is no switch.
pub fn is_on(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "on" | "1" | "yes" | "true" => Some(true),
        "off" | "0" | "no" | "false" => Some(false),
        _ => None,
    }
}

/// `5min` as 5 and `min`.
fn number_and_unit(value: &str) -> Option<(u64, &str)> {
    let unit = value.trim_start_matches(|c: char| c.is_ascii_digit());
    Some((value[..value.len() - unit.len()].parse().ok()?, unit))
}

/// A size as a server prints it: MySQL in bytes, PostgreSQL as `16384kB`, `128MB`, `1GB`.
pub fn bytes(value: &str) -> Option<u64> {
    let (number, unit) = number_and_unit(value)?;
    let shift = match unit {
        "" | "B" => 0,
        "kB" => 10,
        "MB" => 20,
        "GB" => 30,
        "TB" => 40,
        _ => return None,
    };
    number.checked_mul(1 << shift)
}

/// A time as PostgreSQL prints it, `30s`, `5min`, `1h`, in seconds.
pub fn seconds(value: &str) -> Option<u64> {
    let (number, unit) = number_and_unit(value)?;
    let factor = match unit {
        "s" => 1,
        "min" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    number.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_as_the_servers_mean_them() {
        for (text, expected) in [
            ("134217728", Some(134_217_728)),
            ("128MB", Some(128 << 20)),
            ("16384kB", Some(16 << 20)),
            ("1GB", Some(1 << 30)),
            ("-1", None),
            ("", None),
            ("5min", None),
            ("99999999999999999TB", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
        for (text, expected) in [
            ("30s", Some(30)),
            ("5min", Some(300)),
            ("1h", Some(3600)),
            ("1d", Some(86_400)),
            ("5", None),
            ("", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
        assert_eq!(
            (is_on("ON"), is_on("off"), is_on("0"), is_on("DETECT_ONLY")),
            (Some(true), Some(false), Some(false), None)
        );
    }

    #[test]
    fn names_are_sorted_and_once() {
        for dialect in [Dialect::MySql, Dialect::Postgres] {
            let names = that_matter(dialect);
            assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "{names:?}");
        }
    }
}
