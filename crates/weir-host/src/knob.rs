//! Knobs: settings of kernel and device that are read, applied, verified and always led back.
//!
//! A change is a transaction. Its old and new values are in the journal, fsynced, before the first write; a
//! guardian process waits for the end of this one, however it ends; on the way back a value is restored only if it
//! is still one that weir wrote.

mod dirty;
mod guardian;
mod journal;
mod restore;

use std::fmt;
use std::fs;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::HostError;
use crate::tree::Tree;

pub use dirty::{DirtyCap, cap_dirty};
pub use guardian::{ARGUMENT, guardian_main};
pub use journal::{Applied, Change, Journal};
pub use restore::recover_stale;

/// A setting that weir can change. Sysctls of which one zeroes the other are one knob.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Knob {
    /// `vm.dirty_bytes` and `vm.dirty_ratio`: where writers are made to wait.
    #[serde(rename = "vm.dirty")]
    Dirty,
    /// `vm.dirty_background_bytes` and `vm.dirty_background_ratio`: where background writeback starts.
    #[serde(rename = "vm.dirty_background")]
    DirtyBackground,
}

/// A value of a knob: which file of the pair is in force, and its number. Prints and parses as `bytes=15000000`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Value {
    /// In bytes.
    Bytes(u64),
    /// In percent of available memory.
    Ratio(u64),
}

/// A knob that could not be turned, or not be led back.
#[derive(Debug, thiserror::Error)]
pub enum KnobError {
    /// A file could not be read or written.
    #[error("{0}")]
    Host(HostError),
    /// Another run of weir has the same knob in hand.
    #[error("{knob} is in the hands of another weir (process {pid})")]
    Held {
        /// The knob.
        knob: Knob,
        /// Its process.
        pid: u32,
    },
    /// The kernel took the write but has another value now.
    #[error("{knob}: wrote {wrote}, but it reads {reads}")]
    NotTaken {
        /// The knob.
        knob: Knob,
        /// What was written.
        wrote: Value,
        /// What is there.
        reads: Value,
    },
    /// The guardian could not be started, so nothing was changed.
    #[error("no guardian, so nothing was changed: {0}")]
    NoGuardian(std::io::Error),
}

impl From<HostError> for KnobError {
    fn from(error: HostError) -> Self {
        KnobError::Host(error)
    }
}

impl Knob {
    /// The name in the journal and in messages.
    pub fn name(self) -> &'static str {
        match self {
            Knob::Dirty => "vm.dirty",
            Knob::DirtyBackground => "vm.dirty_background",
        }
    }

    fn path(self, unit: &str) -> String {
        let name = match self {
            Knob::Dirty => "dirty",
            Knob::DirtyBackground => "dirty_background",
        };
        format!("/proc/sys/vm/{name}_{unit}")
    }

    /// The value in force: the kernel keeps the other of the pair at zero.
    pub(crate) fn read(self, tree: &Tree) -> Result<Value, HostError> {
        match tree.value::<u64>(&self.path("bytes"))? {
            0 => Ok(Value::Ratio(tree.value(&self.path("ratio"))?)),
            bytes => Ok(Value::Bytes(bytes)),
        }
    }

    /// Writes only the one that is to be in force, and reads both back.
    pub(crate) fn write(self, tree: &Tree, value: Value) -> Result<(), KnobError> {
        match value {
            Value::Bytes(bytes) => put(tree, &self.path("bytes"), bytes)?,
            Value::Ratio(ratio) => {
                // The kernel clears the bytes only when the ratio changes, and it reads 0 while bytes are in force.
                if ratio == 0 {
                    put(tree, &self.path("ratio"), 1)?;
                }
                put(tree, &self.path("ratio"), ratio)?;
            }
        }
        let reads = self.read(tree)?;
        if reads == value { Ok(()) } else { Err(KnobError::NotTaken { knob: self, wrote: value, reads }) }
    }
}

fn put(tree: &Tree, path: &str, value: u64) -> Result<(), HostError> {
    let real = tree.real(path);
    fs::write(&real, value.to_string()).map_err(|error| HostError::io(&real, error))
}

impl fmt::Display for Knob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bytes(bytes) => write!(f, "bytes={bytes}"),
            Value::Ratio(ratio) => write!(f, "ratio={ratio}"),
        }
    }
}

impl FromStr for Value {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = text.split_once('=').and_then(|(unit, number)| Some((unit, number.parse().ok()?)));
        match parsed {
            Some(("bytes", number)) => Ok(Value::Bytes(number)),
            Some(("ratio", number)) => Ok(Value::Ratio(number)),
            _ => Err(format!("expected bytes=N or ratio=N, found `{text}`")),
        }
    }
}

impl From<Value> for String {
    fn from(value: Value) -> Self {
        value.to_string()
    }
}

impl TryFrom<String> for Value {
    type Error = String;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}
