//! Kinds of I/O that are distinguished in statistics.

use serde::{Deserialize, Serialize};

use super::event::Flags;

/// A row of the statistics. Classes overlap: a journal's write is in `write`, `sync_write` and `metadata`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Class {
    /// Everything that moves data or discards it: all but flushes and passthrough.
    All,
    /// Reads.
    Read,
    /// Writes, synchronous or not.
    Write,
    /// The writes that somebody waits for (REQ_SYNC).
    SyncWrite,
    /// What a file system marks as metadata, read or written.
    Metadata,
    /// Discards and secure erases.
    Discard,
    /// Flushes of the device's cache, without data.
    Flush,
    /// Passthrough commands.
    Passthrough,
}

impl Class {
    /// In the order of reports.
    pub const ALL: [Class; 8] = [
        Class::All,
        Class::Read,
        Class::Write,
        Class::SyncWrite,
        Class::Metadata,
        Class::Discard,
        Class::Flush,
        Class::Passthrough,
    ];

    /// In words.
    pub fn words(self) -> String {
        self.name().replace('_', " ")
    }

    /// As in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Class::All => "all",
            Class::Read => "read",
            Class::Write => "write",
            Class::SyncWrite => "sync_write",
            Class::Metadata => "metadata",
            Class::Discard => "discard",
            Class::Flush => "flush",
            Class::Passthrough => "passthrough",
        }
    }
}

/// The classes one I/O belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClassSet(pub u8);

impl ClassSet {
    /// What an I/O of these flags and this length belongs to.
    #[inline]
    pub fn of(flags: Flags, bytes: u32) -> ClassSet {
        if flags.has(Flags::PASSTHROUGH) {
            return ClassSet::from([Class::Passthrough]);
        }
        if bytes == 0 && !flags.has(Flags::DISCARD) {
            return ClassSet::from([Class::Flush]);
        }
        // Without branches, since whether the next I/O reads or writes cannot be foretold.
        let is_discard = flags.has(Flags::DISCARD);
        let is_write = flags.has(Flags::WRITE) & !is_discard;
        let bit = |class: Class, is_it: bool| u8::from(is_it) << class as u8;
        ClassSet(
            bit(Class::All, true)
                | bit(Class::Discard, is_discard)
                | bit(Class::Write, is_write)
                | bit(Class::SyncWrite, is_write & flags.has(Flags::SYNC))
                | bit(Class::Read, !is_write & !is_discard)
                | bit(Class::Metadata, flags.has(Flags::METADATA)),
        )
    }

    /// Whether `class` is among them.
    #[inline]
    pub fn has(self, class: Class) -> bool {
        self.0 & (1 << class as u8) != 0
    }

    fn insert(&mut self, class: Class) {
        self.0 |= 1 << class as u8;
    }
}

impl<const N: usize> From<[Class; N]> for ClassSet {
    fn from(classes: [Class; N]) -> Self {
        let mut set = ClassSet::default();
        classes.into_iter().for_each(|class| set.insert(class));
        set
    }
}
