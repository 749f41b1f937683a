//! What a server says of itself over a while: counters at both ends, gauges and sessions in between. The raw values stay,
//! under the server's own names; what they mean in both families is derived.

mod innodb;
mod settling;
mod variables;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Dialect;
use super::limits::{Counters, Sessions};

pub use innodb::innodb_status;
pub use settling::Settling;
pub use variables::{bytes, is_on, seconds, that_matter};

/// Value of [`Vitals::schema`] that this version writes.
pub const SCHEMA: &str = "weir.vitals/1";

/// Whether a server that speaks MySQL's protocol is MariaDB, by what it calls itself.
pub fn is_mariadb(version: &str) -> bool {
    version.contains("MariaDB")
}

/// Counters and gauges at one moment, by name. MySQL's are those of SHOW GLOBAL STATUS; `metrics.NAME` are
/// INNODB_METRICS, `innodb.NAME` lines of SHOW ENGINE INNODB STATUS. PostgreSQL's are `VIEW.COLUMN` without `pg_stat_`,
/// summed over databases: `wal.wal_bytes`, `database.blks_read`, `io.client backend.reads`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Snapshot(pub BTreeMap<String, f64>);

impl Snapshot {
    /// One value.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// Age of the last checkpoint as a share of what the log holds before writing is held up, 0 to 1.
    ///
    /// MariaDB says it, MySQL's is the distance of two places in its log against what that may grow to, PostgreSQL's the log written since the last
    /// checkpoint's begin against the size at which it starts the next (max_wal_size / (1 + completion target),
    /// CalculateCheckpointSegments of xlog.c).
    pub fn checkpoint_age(&self, variables: &BTreeMap<String, String>) -> Option<f64> {
        let (age, most) = self.log_held(variables)?;
        (most > 0.0).then(|| (age / most).clamp(0.0, 1.0))
    }

    /// The two sizes behind [`Snapshot::checkpoint_age`], in bytes: the log since the last checkpoint, and what it may grow to.
    pub fn log_held(&self, variables: &BTreeMap<String, String>) -> Option<(f64, f64)> {
        let variable = |name: &str| bytes(variables.get(name)?).map(|n| n as f64);
        let mariadb = || Some((self.get("Innodb_checkpoint_age")?, self.get("Innodb_checkpoint_max_age")?));
        let mysql = || {
            let now = self.get("Innodb_redo_log_current_lsn").or(self.get("innodb.log_sequence_number"))?;
            let last = self.get("Innodb_redo_log_checkpoint_lsn").or(self.get("innodb.last_checkpoint_at"))?;
            let page = variable("innodb_page_size").unwrap_or(16_384.0);
            let concurrency = variable("innodb_thread_concurrency").unwrap_or(0.0);
            let files = || {
                let size = variable("innodb_log_file_size")?;
                let files = variable("innodb_log_files_in_group").unwrap_or(1.0);
                // What 8.0 leaves free differs among its versions.
                Some(if variables.contains_key("query_cache_type") {
                    innodb::log_held_in_files(size, files, page, concurrency)
                } else {
                    size * files
                })
            };
            let held = |capacity| innodb::log_held(capacity, page, concurrency);
            Some((now - last, variable("innodb_redo_log_capacity").map(held).or_else(files)?))
        };
        let postgres = || {
            let target = variables.get("checkpoint_completion_target")?.parse::<f64>().ok()?;
            let age = self.get("wal.insert_lsn")? - self.get("checkpoint.redo_lsn")?;
            Some((age, variable("max_wal_size")? / (1.0 + target)))
        };
        mariadb().or_else(mysql).or_else(postgres)
    }
}

/// From here on InnoDB's log is as good as full, by the age of its checkpoint: the page cleaner writes as fast as it can
/// from 7/8 on, and soon after sessions wait for it (log_t::set_capacity() of log0log.cc).
pub const LOG_FULL: f64 = 0.875;

/// Gauges of which the worst moment, or how often they were bad, is what counts.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Gauges {
    checkpoint_age: Option<f64>,
    dirty: Option<f64>,
    looks: u32,
    full: u32,
}

impl Gauges {
    /// Adds a look.
    pub fn look(&mut self, dialect: Dialect, snapshot: &Snapshot, variables: &BTreeMap<String, String>) {
        let worse = |worst: Option<f64>, now: Option<f64>| worst.into_iter().chain(now).reduce(f64::max);
        let age = snapshot.checkpoint_age(variables);
        self.checkpoint_age = worse(self.checkpoint_age, age);
        self.dirty = worse(self.dirty, dirty(snapshot));
        // PostgreSQL's age only says when the next checkpoint begins: nobody waits for it.
        if let Some(age) = age.filter(|_| dialect == Dialect::MySql) {
            self.looks += 1;
            self.full += u32::from(age >= LOG_FULL);
        }
    }

    /// The oldest checkpoint, as a share of what the log holds.
    pub fn checkpoint_age(&self) -> Option<f64> {
        self.checkpoint_age
    }

    /// The largest share of the buffer pool that was dirty.
    pub fn dirty(&self) -> Option<f64> {
        self.dirty
    }

    /// Share of the looks at which InnoDB's log was full.
    pub fn log_full(&self) -> Option<f64> {
        (self.looks > 0).then(|| f64::from(self.full) / f64::from(self.looks))
    }

    /// Counters, with what these gauges add to them.
    pub fn complete(&self, counters: Counters) -> Counters {
        Counters { checkpoint_age: self.checkpoint_age, log_full: self.log_full(), ..counters }
    }
}

/// Pages that sessions of PostgreSQL wrote themselves, from 16 on.
const BACKEND_WRITES: &str = "io.client backend.writes";

/// What happened between two snapshots, in the words of both families.
pub fn counters(dialect: Dialect, earlier: &Snapshot, later: &Snapshot) -> Counters {
    let difference = Difference { earlier, later };
    let count = |name: &str| difference.count(name);
    let sum = |names: &[&str]| difference.sum(names);
    match dialect {
        Dialect::MySql => Counters {
            syncs: count("Innodb_data_fsyncs"),
            page_reads: count("Innodb_buffer_pool_reads"),
            page_writes: sum(&["Innodb_buffer_pool_pages_flushed", "Innodb_dblwr_pages_written"]),
            log_bytes: count("Innodb_os_log_written"),
            lock_waits: count("Innodb_row_lock_waits"),
            deadlocks: count("Innodb_deadlocks").or(count("metrics.lock_deadlocks")),
            free_page_waits: count("Innodb_buffer_pool_wait_free"),
            log_waits: count("Innodb_log_waits"),
            forced_checkpoints: count("metrics.buffer_flush_sync"),
            ..Counters::default()
        },
        Dialect::Postgres => Counters {
            syncs: sum(&["wal.wal_sync", "io_wal.fsyncs"]),
            page_reads: count("database.blks_read"),
            page_writes: sum(&[
                "bgwriter.buffers_checkpoint",
                "bgwriter.buffers_clean",
                "checkpointer.buffers_written",
                // 16 has both, and counts the same writes in both.
                if later.get(BACKEND_WRITES).is_some() { BACKEND_WRITES } else { "bgwriter.buffers_backend" },
            ]),
            log_bytes: count("wal.insert_lsn").or(count("wal.wal_bytes")),
            lock_waits: None,
            deadlocks: count("database.deadlocks"),
            // Before 16 a backend's extensions of files are in it.
            free_page_waits: count(BACKEND_WRITES).or(count("bgwriter.buffers_backend")),
            log_waits: count("wal.wal_buffers_full"),
            forced_checkpoints: count("bgwriter.checkpoints_req").or(count("checkpointer.num_requested")),
            log_page_images: count("wal.wal_fpi"),
            ..Counters::default()
        },
    }
}

/// Two snapshots of ever-growing counts.
#[derive(Debug, Clone, Copy)]
pub struct Difference<'a> {
    /// The first.
    pub earlier: &'a Snapshot,
    /// The second.
    pub later: &'a Snapshot,
}

impl Difference<'_> {
    /// How much a count grew; 0 where somebody reset it, `None` where the server has none of the name.
    pub fn count(&self, name: &str) -> Option<u64> {
        Some((self.later.get(name)? - self.earlier.get(name)?).max(0.0) as u64)
    }

    /// Several counts together; `None` where the server has none of them.
    pub fn sum(&self, names: &[&str]) -> Option<u64> {
        let counts: Vec<u64> = names.iter().filter_map(|name| self.count(name)).collect();
        (!counts.is_empty()).then(|| counts.iter().sum())
    }
}

/// MySQL's counts of statements that write rows.
const WRITES: [&str; 9] = [
    "Com_insert",
    "Com_insert_select",
    "Com_update",
    "Com_update_multi",
    "Com_delete",
    "Com_delete_multi",
    "Com_replace",
    "Com_replace_select",
    "Com_load",
];

/// A server watched for a while. Holds neither password nor text of statements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Vitals {
    /// Always [`SCHEMA`] when written by this version.
    pub schema: String,
    /// Its family.
    pub dialect: Dialect,
    /// What it calls itself.
    pub version: String,
    /// Variables that matter, as the server prints them.
    pub variables: BTreeMap<String, String>,
    /// Time between the snapshots.
    pub elapsed_ns: u64,
    /// At the beginning.
    pub first: Snapshot,
    /// At the end.
    pub last: Snapshot,
    /// The oldest checkpoint seen, looked at once a second: see [`Snapshot::checkpoint_age`].
    pub checkpoint_age: Option<f64>,
    /// The largest share of the buffer pool that was dirty, looked at once a second, 0 to 1.
    pub dirty: Option<f64>,
    /// What sessions did, looked at ten times a second; idle ones are not counted.
    pub sessions: Sessions,
    /// Time that looking took, waits for the server included.
    pub cost_ns: u64,
    /// Statements that the looking itself asked between the snapshots: they are in the counters. 0 in older records.
    #[serde(default)]
    pub own_statements: u64,
    /// Sentences: what could not be seen, and what would let it be seen.
    pub unseen: Vec<String>,
}

/// Transactions that ended, as far as a server tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commits {
    /// At least so many.
    pub least: u64,
    /// At most so many.
    pub most: u64,
}

impl Commits {
    fn exactly(n: u64) -> Commits {
        Commits { least: n, most: n }
    }
}

impl Vitals {
    /// What happened, in the words of both families.
    pub fn counters(&self) -> Counters {
        Counters { checkpoint_age: self.checkpoint_age, ..counters(self.dialect, &self.first, &self.last) }
    }

    /// Difference of the two snapshots.
    pub fn difference(&self) -> Difference<'_> {
        Difference { earlier: &self.first, later: &self.last }
    }

    /// A count as so many a second.
    pub fn per_second(&self, count: u64) -> f64 {
        count as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }

    /// Transactions that ended; single statements under autocommit are transactions. MySQL counts COMMIT and writing
    /// statements, not which of these were transactions of their own; and, in its handlers, two commits for one
    /// transaction that is in the binary log as well.
    pub fn commits(&self) -> Option<Commits> {
        let difference = self.difference();
        match self.dialect {
            Dialect::MySql => {
                let writes = difference.sum(&WRITES).unwrap_or(0);
                let explicit = difference.count("Com_commit")?;
                let least = if explicit > 0 { explicit } else { writes };
                Some(Commits { least, most: explicit + writes })
            }
            Dialect::Postgres => self.requests().map(Commits::exactly),
        }
    }

    /// What clients asked for, this looking left out: statements of MySQL, transactions of PostgreSQL.
    pub fn requests(&self) -> Option<u64> {
        let name = match self.dialect {
            Dialect::MySql => "Questions",
            Dialect::Postgres => "database.xact_commit",
        };
        Some(self.difference().count(name)?.saturating_sub(self.own_statements))
    }

    /// Share of page requests that the buffer pool answered, 0 to 1.
    pub fn hit_ratio(&self) -> Option<f64> {
        let difference = self.difference();
        let (asked, read) = match self.dialect {
            Dialect::MySql => (
                difference.count("Innodb_buffer_pool_read_requests")?,
                difference.count("Innodb_buffer_pool_reads")?,
            ),
            Dialect::Postgres => {
                let read = difference.count("database.blks_read")?;
                (difference.count("database.blks_hit")? + read, read)
            }
        };
        (asked > 0).then(|| 1.0 - read as f64 / asked as f64)
    }

    /// Size of the buffer pool in bytes.
    pub fn pool_bytes(&self) -> Option<u64> {
        ["innodb_buffer_pool_size", "shared_buffers"]
            .iter()
            .find_map(|name| bytes(self.variables.get(*name)?))
    }
}

/// Share of the buffer pool's pages that are dirty.
pub fn dirty(snapshot: &Snapshot) -> Option<f64> {
    let total = snapshot.get("Innodb_buffer_pool_pages_total").filter(|total| *total > 0.0)?;
    Some(snapshot.get("Innodb_buffer_pool_pages_dirty")? / total)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(pairs: &[(&str, f64)]) -> Snapshot {
        Snapshot(pairs.iter().map(|(name, value)| (name.to_string(), *value)).collect())
    }

    fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    #[test]
    fn counts_are_differences_and_absent_ones_stay_absent() {
        let earlier = snapshot(&[
            ("Innodb_data_fsyncs", 10.0),
            ("Innodb_row_lock_waits", 5.0),
            ("metrics.lock_deadlocks", 1.0),
        ]);
        let later = snapshot(&[
            ("Innodb_data_fsyncs", 110.0),
            ("Innodb_row_lock_waits", 2.0),
            ("metrics.lock_deadlocks", 4.0),
        ]);
        let found = counters(Dialect::MySql, &earlier, &later);
        assert_eq!(
            (found.syncs, found.lock_waits, found.deadlocks, found.page_reads),
            (Some(100), Some(0), Some(3), None)
        );
        for (earlier, later) in [
            (
                &[("bgwriter.checkpoints_req", 1.0), ("bgwriter.buffers_checkpoint", 0.0)],
                &[("bgwriter.checkpoints_req", 4.0), ("bgwriter.buffers_checkpoint", 50.0)],
            ),
            (
                &[("checkpointer.num_requested", 1.0), ("checkpointer.buffers_written", 5.0)],
                &[("checkpointer.num_requested", 4.0), ("checkpointer.buffers_written", 55.0)],
            ),
        ] {
            let found = counters(Dialect::Postgres, &snapshot(earlier), &snapshot(later));
            assert_eq!((found.forced_checkpoints, found.page_writes, found.syncs), (Some(3), Some(50), None));
        }
    }

    #[test]
    fn a_log_is_full_for_a_share_of_the_looks() {
        let mut gauges = Gauges::default();
        assert_eq!((gauges.log_full(), gauges.checkpoint_age()), (None, None));
        for age in [10.0, 95.0, 99.0, 50.0] {
            let now = snapshot(&[("Innodb_checkpoint_age", age), ("Innodb_checkpoint_max_age", 100.0)]);
            gauges.look(Dialect::MySql, &now, &BTreeMap::new());
        }
        assert_eq!((gauges.log_full(), gauges.checkpoint_age()), (Some(0.5), Some(0.99)));
        let settings = variables(&[("max_wal_size", "1kB"), ("checkpoint_completion_target", "0.9")]);
        let mut gauges = Gauges::default();
        let now = snapshot(&[("wal.insert_lsn", 9e9), ("checkpoint.redo_lsn", 0.0)]);
        gauges.look(Dialect::Postgres, &now, &settings);
        assert_eq!((gauges.log_full(), gauges.checkpoint_age()), (None, Some(1.0)));
    }

    #[test]
    fn checkpoints_have_an_age_in_every_family() {
        for (values, settings, expected) in [
            (
                &[("Innodb_checkpoint_age", 75.0), ("Innodb_checkpoint_max_age", 100.0)][..],
                &[][..],
                Some(0.75),
            ),
            (
                // Sessions wait at 74 % of 8 MiB, and at 84 % of 100 MiB.
                &[("Innodb_redo_log_current_lsn", 6.9e6), ("Innodb_redo_log_checkpoint_lsn", 0.7e6)],
                &[("innodb_redo_log_capacity", "8388608")],
                Some(0.994),
            ),
            (
                &[("Innodb_redo_log_current_lsn", 90e6), ("Innodb_redo_log_checkpoint_lsn", 46.2e6)],
                &[("innodb_redo_log_capacity", "104857600"), ("innodb_page_size", "16384")],
                Some(0.5),
            ),
            (
                &[("innodb.log_sequence_number", 900.0), ("innodb.last_checkpoint_at", 400.0)],
                &[("innodb_log_file_size", "500"), ("innodb_log_files_in_group", "2")],
                Some(0.5),
            ),
            (
                // MySQL 5.7, which has a query cache: sessions wait at 80 % of two files of 48 MiB.
                &[("innodb.log_sequence_number", 90e6), ("innodb.last_checkpoint_at", 10e6)],
                &[
                    ("innodb_log_file_size", "50331648"),
                    ("innodb_log_files_in_group", "2"),
                    ("query_cache_type", "OFF"),
                ],
                Some(0.99),
            ),
            (
                &[("wal.insert_lsn", 1.5 * 1073741824.0), ("checkpoint.redo_lsn", 1073741824.0)],
                &[("max_wal_size", "1GB"), ("checkpoint_completion_target", "0.9")],
                Some(0.95),
            ),
            (&[("Innodb_redo_log_current_lsn", 900.0)], &[("innodb_redo_log_capacity", "1000")], None),
        ] {
            let age = snapshot(values).checkpoint_age(&variables(settings));
            assert_eq!(age.map(|age| (age * 1000.0).round() / 1000.0), expected, "{values:?}");
        }
    }
}
