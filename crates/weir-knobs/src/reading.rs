//! What was read of a knob.

use serde::{Deserialize, Serialize};

use crate::{KnobName, Value};

/// A knob as this machine has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// The knob.
    pub knob: KnobName,
    /// Its file.
    pub path: String,
    /// Its value; `null` where it could not be read.
    pub value: Option<Value>,
    /// Why it could not be read.
    pub unreadable: Option<String>,
    /// The words it may hold, as the kernel offers them (schedulers); empty where it holds numbers.
    pub choices: Vec<String>,
    /// Least number, where this machine knows one that is narrower than the catalog's.
    pub min: Option<i64>,
    /// Greatest number, likewise: `max_hw_sectors_kb` for `max_sectors_kb`; for `nr_requests` what the hardware
    /// holds, whatever the scheduler, as it bounds only a queue without one.
    pub max: Option<i64>,
    /// Whether its file may be written by root at all.
    pub writable: bool,
    /// Who sets it at boot, the last word first; empty where nobody does.
    pub owners: Vec<Owner>,
}

/// Something that sets a knob at boot or while the machine runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// `sysctl.d`, `udev`, `TuneD`, `tmpfiles.d`, `systemd`, `kernel command line`, `weir`, `weir guard`.
    pub kind: String,
    /// File, and line where there is one: `/etc/sysctl.d/99-db.conf:3`.
    pub place: String,
    /// The value it sets, as written there.
    pub value: String,
}

impl Owner {
    /// The kind of a running guard, whose value is the band it holds the knob in, in words.
    pub const GUARD: &'static str = "weir guard";
}

/// What a change made of a knob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Became {
    /// This value.
    Value(Value),
    /// Whatever the kernel made of it when another knob of the change was written.
    Reset,
    /// Anything between two values: a guard turns it for as long as it runs.
    Governed {
        /// Least.
        least: Value,
        /// Greatest.
        most: Value,
    },
}
