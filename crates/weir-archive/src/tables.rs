//! The tables, documented in `docs/reference/recorder.md`. Every column is a 64-bit integer or a name: what engines of SQL
//! read alike. A column may be added; none changes its meaning or goes away within a version.

#[doc(hidden)]
pub use serde::Serialize;

use crate::batch::{Batch, Column};

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// INT64.
    Integer,
    /// UTF-8.
    Text,
}

/// A column.
#[derive(Debug, PartialEq, Eq)]
pub struct Spec {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
}

/// A table.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name, with which its files begin.
    pub name: &'static str,
    /// Its columns.
    pub columns: &'static [Spec],
}

/// A row of a table, as a type.
pub trait Row: Sized {
    /// The table.
    const TABLE: &'static Table;

    /// Adds it to a batch of its table.
    fn put(&self, batch: &mut Batch);

    /// Reads it from a batch of its table.
    fn get(batch: &Batch, row: usize) -> Self;

    /// Rows as a batch.
    fn batch(rows: &[Self]) -> Batch {
        let mut batch = Batch::new(Self::TABLE);
        rows.iter().for_each(|row| row.put(&mut batch));
        batch
    }

    /// All rows of a batch; none of one of another table.
    fn all(batch: &Batch) -> Vec<Self> {
        let rows = if batch.table().name == Self::TABLE.name { batch.rows() } else { 0 };
        (0..rows).map(|row| Self::get(batch, row)).collect()
    }
}

/// What a field of a row can be.
pub trait Cell: Sized {
    /// What its column holds.
    const KIND: Kind;
    /// Adds it to its column.
    fn put(&self, column: &mut Column);
    /// Reads it from its column.
    fn get(column: &Column, row: usize) -> Self;
}

impl Cell for i64 {
    const KIND: Kind = Kind::Integer;
    fn put(&self, column: &mut Column) {
        column.push_integer(*self);
    }
    fn get(column: &Column, row: usize) -> i64 {
        column.integer(row)
    }
}

impl Cell for String {
    const KIND: Kind = Kind::Text;
    fn put(&self, column: &mut Column) {
        column.push_text(self);
    }
    fn get(column: &Column, row: usize) -> String {
        column.text(row).to_string()
    }
}

/// A type for the rows of a table.
#[macro_export]
macro_rules! table {
    ($(#[$doc:meta])* $name:ident = $table:literal {
        $($(#[$of:meta])* $field:ident: $type:ty,)*
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, Eq, $crate::tables::Serialize)]
        pub struct $name {
            $($(#[$of])* pub $field: $type,)*
        }

        impl $crate::Row for $name {
            const TABLE: &'static $crate::Table = &$crate::Table {
                name: $table,
                columns: &[$($crate::tables::Spec { name: stringify!($field), kind: <$type as $crate::tables::Cell>::KIND },)*],
            };

            fn put(&self, batch: &mut $crate::Batch) {
                let mut columns = batch.columns_mut().iter_mut();
                $(if let Some(column) = columns.next() { $crate::tables::Cell::put(&self.$field, column) })*
            }

            fn get(batch: &$crate::Batch, row: usize) -> Self {
                let mut columns = batch.columns().iter();
                $name { $($field: columns.next().map(|column| $crate::tables::Cell::get(column, row)).unwrap_or_default(),)* }
            }
        }
    };
}

table! {
    /// How long a stage of a device's requests took: one row a bucket.
    Stage = "stages" {
        /// The interval's start, Unix time, ms.
        ts_ms: i64,
        /// Its length, ms.
        span_ms: i64,
        /// The kernel's name of the device.
        device: String,
        /// read, write, sync_write, metadata, discard, flush, passthrough; sync_write lies within write, metadata within both.
        class: String,
        /// g2d (waiting), d2c (in driver and device), g2c (both).
        stage: String,
        /// The lowest duration that the bucket holds, ns.
        bucket_low_ns: i64,
        /// Requests in it.
        count: i64,
    }
}

table! {
    /// How long syncs of a process took: one row a bucket.
    Sync = "syncs" {
        /// The interval's start, Unix time, ms.
        ts_ms: i64,
        /// Its length, ms.
        span_ms: i64,
        /// The process's name.
        comm: String,
        /// Its systemd unit, or container's scope; empty where it has none.
        unit: String,
        /// Its cgroup's path.
        cgroup: String,
        /// The lowest duration that the bucket holds, ns.
        bucket_low_ns: i64,
        /// Syncs in it.
        count: i64,
    }
}

table! {
    /// What syncs of a process spent their time on; the rows of an interval add up to the time inside syncs.
    Wait = "waits" {
        /// The interval's start, Unix time, ms.
        ts_ms: i64,
        /// Its length, ms.
        span_ms: i64,
        /// The process's name.
        comm: String,
        /// Its unit.
        unit: String,
        /// Its cgroup's path.
        cgroup: String,
        /// own_data, journal, flush, request_queue, dirty_pause, lock, read, other, cpu, run_queue, unknown.
        part: String,
        /// others, own_others, held, queue, device, device_flush, kernel, unseen; empty for what is no wait for I/O.
        cause: String,
        /// Time, ns, summed over threads.
        ns: i64,
    }
}

table! {
    /// Whose I/O was served while syncs of a process waited.
    Behind = "behind" {
        /// The interval's start, Unix time, ms.
        ts_ms: i64,
        /// Its length, ms.
        span_ms: i64,
        /// The process that waited.
        comm: String,
        /// Its unit.
        unit: String,
        /// The process whose I/O was served.
        culprit: String,
        /// Its unit.
        culprit_unit: String,
        /// writeback, reads, direct_writes, discards, writes_passed_on.
        way: String,
        /// Time, ns, summed over the threads that waited.
        ns: i64,
        /// What the device moved for it meanwhile.
        bytes: i64,
        /// The same in requests.
        ios: i64,
    }
}

table! {
    /// What processes read and wrote, by `/proc/PID/io`.
    Process = "processes" {
        /// The interval's start, Unix time, ms.
        ts_ms: i64,
        /// Its length, ms.
        span_ms: i64,
        /// The processes' name.
        comm: String,
        /// Their unit.
        unit: String,
        /// Their cgroup's path.
        cgroup: String,
        /// Read from devices.
        read_bytes: i64,
        /// Written, or made dirty and to be written.
        written_bytes: i64,
    }
}

table! {
    /// Counters and gauges of devices and of the machine.
    Counter = "counters" {
        /// The interval's start, Unix time, ms.
        ts_ms: i64,
        /// Its length, ms.
        span_ms: i64,
        /// The kernel's name of the device; empty for the machine.
        device: String,
        /// What was counted.
        name: String,
        /// How much in the interval, or at its end for gauges.
        value: i64,
    }
}

table! {
    /// What happened at one time.
    Event = "events" {
        /// Unix time, ms.
        ts_ms: i64,
        /// start, end, slow_sync, stall, knob, guard, clock, lost, snapshot.
        kind: String,
        /// The device, where it has to do with one.
        device: String,
        /// The process.
        comm: String,
        /// Its unit.
        unit: String,
        /// Its id; 0 where it has to do with none.
        pid: i64,
        /// How long it took, ns; 0 where that means nothing.
        took_ns: i64,
        /// More, as a JSON object.
        detail: String,
    }
}

/// All of them. A journal refers to them by place, so that new ones come last.
pub const TABLES: [&Table; 7] =
    [Stage::TABLE, Sync::TABLE, Wait::TABLE, Behind::TABLE, Process::TABLE, Counter::TABLE, Event::TABLE];

/// Counters that say how things are at an interval's end; all others say what grew in it.
const GAUGES: [&str; 7] = [
    "available_bytes",
    "dirty_bytes",
    "dirty_threshold_bytes",
    "in_flight",
    "recorder_lost_intervals",
    "recorder_memory_bytes",
    "writeback_bytes",
];

/// Whether a row of [`Counter`] with this name says how things are, not what grew.
pub fn is_gauge(name: &str) -> bool {
    GAUGES.contains(&name)
}

/// A table by its name.
pub fn named(name: &str) -> Option<&'static Table> {
    TABLES.into_iter().find(|table| table.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_lower_case_and_rows_come_back() {
        for table in TABLES {
            let names = table.columns.iter().map(|column| column.name).chain([table.name]);
            for name in names {
                assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{name}");
            }
            assert_eq!(named(table.name), Some(table));
        }
        let rows = [
            Counter { ts_ms: 1, span_ms: 2, device: "sda".into(), name: "reads".into(), value: i64::MAX },
            Counter { ts_ms: -1, value: i64::MIN, ..Counter::default() },
        ];
        let batch = Counter::batch(&rows);
        assert_eq!(Counter::all(&batch), rows);
        assert_eq!(Stage::all(&batch), []);
    }
}
