//! The server's variables that matter to what is measured.

use std::collections::BTreeMap;

use weir_core::oltp::Dialect;
use weir_db::Connection;

/// Of MySQL and MariaDB.
const MYSQL: [&str; 22] = [
    "binlog_format",
    "innodb_buffer_pool_size",
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
    "innodb_max_dirty_pages_pct",
    "innodb_page_size",
    "innodb_redo_log_capacity",
    "log_bin",
    "max_connections",
    "performance_schema",
    "query_cache_type",
    "sync_binlog",
    "thread_handling",
    "transaction_isolation",
];
/// Of PostgreSQL.
const POSTGRES: [&str; 20] = [
    "autovacuum",
    "bgwriter_lru_maxpages",
    "checkpoint_completion_target",
    "checkpoint_flush_after",
    "checkpoint_timeout",
    "commit_delay",
    "default_transaction_isolation",
    "effective_io_concurrency",
    "fsync",
    "full_page_writes",
    "jit",
    "max_connections",
    "max_wal_size",
    "shared_buffers",
    "synchronous_commit",
    "synchronous_standby_names",
    "wal_buffers",
    "wal_compression",
    "wal_level",
    "wal_sync_method",
];

/// Reads them; what the server does not have or tell is absent.
pub fn read(connection: &mut Connection) -> BTreeMap<String, String> {
    let names = |all: &[&str]| all.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(",");
    let question = match connection.dialect() {
        Dialect::MySql => format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ({})", names(&MYSQL)),
        Dialect::Postgres => {
            let names = names(&POSTGRES);
            format!("SELECT name, current_setting(name) FROM pg_settings WHERE name IN ({names})")
        }
    };
    let rows = connection.query(&question).unwrap_or_default();
    let pair = |row: Vec<Option<String>>| <[Option<String>; 2]>::try_from(row).ok();
    rows.into_iter()
        .filter_map(pair)
        .filter_map(|[name, value]| Some((name?, value.unwrap_or_default())))
        .collect()
}
