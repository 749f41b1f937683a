//! The tables, documented in `docs/reference/fleet.md`. Every column is a 64-bit integer or a name, and every histogram is rows of
//! buckets and counts: sums of them are exact, in whatever order and by whatever engine they are added.

use weir_archive::{Row, Table, table};

table! {
    /// How long a stage of a device's requests took, in an hour: a row for each bucket.
    Stage = "stages" {
        /// The host's name.
        host: String,
        /// The hour's start, Unix time, s.
        ts: i64,
        /// The kernel's name of the device.
        device: String,
        /// As in the recorder's table.
        class: String,
        /// As in the recorder's table.
        stage: String,
        /// The load under which they were served: the largest power of two up to the reads and writes a second of the
        /// recorder's interval; 0 below one.
        load: i64,
        /// The lowest duration that the bucket holds, ns.
        bucket_low_ns: i64,
        /// Requests in it.
        n: i64,
    }
}

table! {
    /// How long syncs took, in an hour: a row for each bucket.
    Sync = "syncs" {
        /// The host's name.
        host: String,
        /// The hour's start, Unix time, s.
        ts: i64,
        /// The systemd unit; empty where there is none.
        unit: String,
        /// The largest power of two up to the host's syncs a second in the recorder's interval; 0 below one.
        load: i64,
        /// The lowest duration that the bucket holds, ns.
        bucket_low_ns: i64,
        /// Syncs in it.
        n: i64,
    }
}

table! {
    /// What syncs spent their time on, in an hour.
    Wait = "waits" {
        /// The host's name.
        host: String,
        /// The hour's start, Unix time, s.
        ts: i64,
        /// As in the recorder's table.
        part: String,
        /// As in the recorder's table.
        cause: String,
        /// Time, ns, summed over threads.
        ns: i64,
    }
}

table! {
    /// Counters of an hour: how much they grew, and of gauges the largest value.
    Counter = "counters" {
        /// The host's name.
        host: String,
        /// The hour's start, Unix time, s.
        ts: i64,
        /// The kernel's name of the device; empty for the machine.
        device: String,
        /// What was counted.
        name: String,
        /// How much.
        value: i64,
    }
}

table! {
    /// What is so on a host: models, versions, settings.
    Fact = "facts" {
        /// The host's name.
        host: String,
        /// When it was read, Unix time, s.
        ts: i64,
        /// The kernel's name of the device; empty for the machine.
        device: String,
        /// `model`, `firmware`, `kernel`, `mount`, or a knob's name without its device.
        name: String,
        /// The value.
        value: String,
    }
}

/// All of them.
pub const TABLES: [&Table; 5] = [Stage::TABLE, Sync::TABLE, Wait::TABLE, Counter::TABLE, Fact::TABLE];
