//! Writeback domains under `/sys/class/bdi` and, with permission, `/sys/kernel/debug/bdi`.

use weir_core::target::Bdi;

use crate::error::BadLine;
use crate::tree::Tree;

/// The domain of that name, if there is one.
pub(crate) fn read(tree: &Tree, name: &str, notes: &mut Vec<String>) -> Option<Bdi> {
    let at = |file: &str| format!("/sys/class/bdi/{name}/{file}");
    if !tree.exists(&at("read_ahead_kb")) {
        return None;
    }
    let mut number = |file: &str| tree.optional::<u64>(&at(file), notes);
    Some(Bdi {
        name: name.to_string(),
        min_ratio_percent: number("min_ratio"),
        max_ratio_percent: number("max_ratio"),
        max_ratio_ppm: number("max_ratio_fine"),
        strict_limit: number("strict_limit").map(|v| v == 1),
        max_bytes: number("max_bytes"),
        read_ahead_kb: number("read_ahead_kb"),
    })
}

/// The name of the domain of a btrfs file system, by one of its devices. Since Linux 5.11 a link says which it is; before, it is
/// known where there is one only.
pub(crate) fn of_btrfs(tree: &Tree, member: &str) -> Option<String> {
    let holds = |system: &String| tree.exists(&format!("/sys/fs/btrfs/{system}/devices/{member}"));
    let system = tree.names("/sys/fs/btrfs").into_iter().find(holds);
    if let Some(linked) = system.and_then(|system| tree.link_name(&format!("/sys/fs/btrfs/{system}/bdi"))) {
        return Some(linked);
    }
    let mut all = tree.names("/sys/class/bdi").into_iter().filter(|name| name.starts_with("btrfs-"));
    all.next().filter(|_| all.next().is_none())
}

/// Counters of one domain from debugfs, in bytes; `bandwidth` per second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub dirtied: u64,
    pub written: u64,
    pub reclaimable: u64,
    pub writeback: u64,
    pub bandwidth: u64,
    /// What may be dirty on it as things are.
    pub threshold: u64,
}

/// `None` without debugfs or without permission.
pub(crate) fn counters(tree: &Tree, name: &str) -> Option<Counters> {
    tree.parsed(&format!("/sys/kernel/debug/bdi/{name}/stats"), parse_stats).ok()
}

/// Whether this kernel leaves something to a device that has never written, as far as debugfs shows one: the machine's own word
/// for what came with Linux 6.14 and a distribution may have taken back. Such a device has no share of its own in what is written.
pub(crate) fn spares_the_idle(tree: &Tree) -> bool {
    let mut domains = tree.names("/sys/kernel/debug/bdi").into_iter();
    domains.any(|name| {
        let promised =
            tree.line(&format!("/sys/class/bdi/{name}/min_ratio")).is_none_or(|ratio| ratio != "0");
        let left = counters(tree, &name).filter(|counters| counters.written == 0);
        !promised && left.is_some_and(|counters| counters.threshold > 0)
    })
}

/// Lines such as `BdiWritten:   1234 kB` and `BdiWriteBandwidth:  102400 kBps`.
pub(crate) fn parse_stats(text: &str) -> Result<Counters, BadLine> {
    let mut counters = Counters::default();
    for (index, line) in text.lines().enumerate() {
        let (key, value) = line.split_once(':').unwrap_or((line, ""));
        let target = match key.trim() {
            "BdiDirtied" => &mut counters.dirtied,
            "BdiWritten" => &mut counters.written,
            "BdiReclaimable" => &mut counters.reclaimable,
            "BdiWriteback" => &mut counters.writeback,
            "BdiWriteBandwidth" => &mut counters.bandwidth,
            "BdiDirtyThresh" => &mut counters.threshold,
            _ => continue,
        };
        let kib = value.split_whitespace().next().and_then(|number| number.parse::<u64>().ok());
        *target = kib.ok_or_else(|| BadLine::new(index + 1, "a number of kB", line))?.saturating_mul(1024);
    }
    Ok(counters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debugfs_stats_are_read_in_bytes() {
        let text = "BdiWriteback:                8 kB\nBdiReclaimable:           1024 kB\nBdiDirtyThresh:       3931904 kB\n\
                    BdiDirtied:            3145728 kB\nBdiWritten:            3144704 kB\nBdiWriteBandwidth:      102400 kBps\nb_dirty: 2\n";
        let counters = parse_stats(text).unwrap();
        assert_eq!((counters.written, counters.threshold), (3_144_704 << 10, 3_931_904 << 10));
        assert_eq!((counters.writeback, counters.reclaimable), (8 << 10, 1 << 20));
        let bad = parse_stats("BdiWriteback: 8 kB\nBdiDirtied:  x kB\n").unwrap_err();
        assert_eq!(bad.line, 2);
    }
}
