//! Knobs of the machine.

use super::{Kind, PLAIN, Risk, Spec, rank};

const CONTAINERS: &str = "it throttles every buffered writer of the machine, and in a memory cgroup bytes \
    become a share of the memory of the group";

/// Knobs of the machine, those that matter most first.
pub const KNOBS: &[Spec] = &[
    Spec {
        setting: "vm.dirty",
        path: "/proc/sys/vm/dirty",
        kind: Kind::DirtyPair,
        default: "20 %",
        meaning: "How much may be dirty or under writeback before writers are made to wait.",
        trap: "vm.dirty_bytes and vm.dirty_ratio are one limit: setting one zeroes the other. Writers are slowed \
               from halfway between it and the background limit on. Lowered below what is dirty now, it stops every \
               buffered writer until the surplus is written; weir lowers it in steps. Less than two pages, 0 \
               included, is refused by the kernel.",
        risk: Risk::Careful(CONTAINERS),
        rank: rank::LIMIT,
        ..PLAIN
    },
    Spec {
        setting: "vm.dirty_background",
        path: "/proc/sys/vm/dirty_background",
        kind: Kind::DirtyPair,
        default: "10 %",
        meaning: "How much may be dirty before the kernel begins to write it out by itself.",
        trap: "vm.dirty_background_bytes and vm.dirty_background_ratio are one limit: setting one zeroes the other. \
               Where it is not below vm.dirty, the kernel silently takes half of vm.dirty.",
        rank: rank::LIMIT,
        ..PLAIN
    },
    Spec {
        setting: "vm.dirty_writeback_centisecs",
        path: "/proc/sys/vm/dirty_writeback_centisecs",
        kind: Kind::Number { min: 0, max: i32::MAX as i64 },
        unit: "cs",
        default: "500",
        meaning: "How often the kernel searches for data that has been dirty for too long; 0 stops that.",
        trap: "Much too slow to keep a flood from filling the page cache: the dirty limits do that.",
        ..PLAIN
    },
    Spec {
        setting: "vm.dirty_expire_centisecs",
        path: "/proc/sys/vm/dirty_expire_centisecs",
        kind: Kind::Number { min: 0, max: i32::MAX as i64 },
        unit: "cs",
        default: "3000",
        meaning: "How long data may stay dirty before the next check writes it out: a power failure loses \
            that much of files that no process syncs.",
        ..PLAIN
    },
    Spec {
        setting: "vm.swappiness",
        path: "/proc/sys/vm/swappiness",
        kind: Kind::Number { min: 0, max: 200 },
        default: "60",
        meaning: "How willingly the kernel swaps out memory of processes rather than dropping page cache.",
        trap: "0 swaps only when free memory and page cache run out together. 100 means both cost the same; more \
               is for swap in memory (zram).",
        ..PLAIN
    },
    Spec {
        setting: "vm.vfs_cache_pressure",
        path: "/proc/sys/vm/vfs_cache_pressure",
        kind: Kind::Number { min: 0, max: i32::MAX as i64 },
        default: "100",
        meaning: "How readily the kernel drops cached directory entries and inodes compared with page cache.",
        trap: "0 never drops them, and memory can run out.",
        ..PLAIN
    },
    Spec {
        setting: "vm.drop_caches",
        path: "/proc/sys/vm/drop_caches",
        kind: Kind::Action,
        default: "nothing is held",
        meaning: "Drops clean page cache (1), directory entries and inodes (2) or both (3), once.",
        trap: "Dirty pages stay: sync first. Everyone on the machine reads from the device again afterwards.",
        risk: Risk::Inexact(
            "every process of the machine has a cold cache afterwards, and that cannot be \
            undone",
        ),
        rank: rank::ACTION,
        ..PLAIN
    },
    Spec {
        setting: "vm.nr_hugepages",
        path: "/proc/sys/vm/nr_hugepages",
        kind: Kind::Number { min: 0, max: i64::MAX },
        unit: "pages",
        default: "0",
        meaning: "Huge pages set aside, for the shared memory of a database that asks for them.",
        risk: Risk::Shown(
            "the reserved memory is lost to all other processes, so it goes with the database's own settings",
        ),
        ..PLAIN
    },
    Spec {
        setting: "transparent_hugepage",
        path: "/sys/kernel/mm/transparent_hugepage/enabled",
        kind: Kind::Choice,
        default: "depends on how the kernel was built",
        meaning: "Whether memory gets huge pages without asking: always, only where advised, or never.",
        risk: Risk::Shown("it acts on memory allocated from then on, so a database has to be restarted"),
        ..PLAIN
    },
];
