//! What weir knows of each knob: its file, its values, what it means and what it risks.

/// A kind of thing that has knobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScopeKind {
    /// The machine.
    Machine,
    /// A block device's queue and scheduler.
    Device,
    /// A bdi: `DEVICE/bdi/SETTING`, or `bdi:NAME/SETTING`.
    Bdi,
    /// A cgroup of version 2.
    Cgroup,
}

/// What a knob holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole number within bounds, both included. The machine may know narrower ones.
    Number {
        /// Least.
        min: i64,
        /// Greatest.
        max: i64,
    },
    /// One of the words that the kernel offers in the file itself, the chosen one in brackets.
    Choice,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A pair of sysctls of which one zeroes the other: `NAME_bytes` and `NAME_ratio`.
    DirtyPair,
    /// Something that is done, not held (`vm.drop_caches`): never restored, never kept for the next boot.
    Action,
}

/// What changing a knob risks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Risk {
    /// Speed only, and the way back is exact.
    None,
    /// The way back is not exact, or others suffer; the sentence says how.
    Careful(&'static str),
    /// Data could be lost at a power failure: shown, measured when asked for, never changed without a flag that
    /// names the risk.
    Durability(&'static str),
    /// Shown only: weir does not change it.
    Shown(&'static str),
}

/// One entry of the catalog.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spec {
    /// What it belongs to.
    pub scope: ScopeKind,
    /// Name of the setting within its scope: `vm.dirty`, `nr_requests`, `iosched/fifo_batch`.
    pub setting: &'static str,
    /// Its file; `{}` stands for the device, bdi or cgroup. A pair's without `_bytes` and `_ratio`.
    pub path: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Unit of its numbers.
    pub unit: &'static str,
    /// The kernel's default, in words where it depends on the device.
    pub default: &'static str,
    /// What it means, in a sentence.
    pub meaning: &'static str,
    /// What changing it risks.
    pub risk: Risk,
    /// Place in the order of a transaction: lower is written first.
    pub rank: u8,
    /// Settings of the same scope that a write to this one resets: they are kept and checked with it.
    pub resets: &'static [&'static str],
    /// The first kernel that has it, where not all supported ones do.
    pub since: Option<&'static str>,
}
