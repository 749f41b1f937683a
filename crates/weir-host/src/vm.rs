//! Memory: `/proc/meminfo`, `/proc/vmstat`, `/proc/swaps` and `/proc/sys/vm`.

use std::collections::HashMap;

use weir_core::target::{DirtyLimit, Memory, Swap, VmSettings};

use crate::error::{BadLine, HostError};
use crate::mounts::unescape;
use crate::tree::{Tree, noted};

/// Memory and swap now.
pub(crate) fn memory(tree: &Tree) -> Result<Memory, HostError> {
    let mut memory = tree.parsed("/proc/meminfo", parse_meminfo)?;
    memory.swaps = match tree.parsed("/proc/swaps", parse_swaps) {
        Err(error) if error.is_absent() => Vec::new(),
        swaps => swaps?,
    };
    Ok(memory)
}

pub(crate) fn parse_meminfo(text: &str) -> Result<Memory, BadLine> {
    let mut sizes = HashMap::new();
    for (index, line) in text.lines().enumerate() {
        let bad = || BadLine::new(index + 1, "NAME: NUMBER kB", line);
        let (key, value) = line.split_once(':').ok_or_else(bad)?;
        let number = value.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()).ok_or_else(bad)?;
        sizes.insert(key, number.saturating_mul(1024));
    }
    let line_count = text.lines().count();
    let size =
        |key: &str| sizes.get(key).copied().ok_or_else(|| BadLine::new(line_count, key, "end of file"));
    Ok(Memory {
        total_bytes: size("MemTotal")?,
        free_bytes: size("MemFree")?,
        available_bytes: size("MemAvailable")?,
        // `Cached` counts shared memory and tmpfs, which no file system writes back.
        page_cache_bytes: size("Cached")?.saturating_add(size("Buffers")?).saturating_sub(size("Shmem")?),
        dirty_bytes: size("Dirty")?,
        writeback_bytes: size("Writeback")?,
        swap_total_bytes: size("SwapTotal")?,
        swap_free_bytes: size("SwapFree")?,
        swaps: Vec::new(),
    })
}

/// Bytes that are dirty and bytes that are being written, of `/proc/meminfo`.
pub(crate) fn parse_dirty(text: &str) -> Result<(u64, u64), BadLine> {
    let size = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        let number = line.and_then(|value| value.split_whitespace().next()?.parse::<u64>().ok());
        number
            .map(|kib| kib.saturating_mul(1024))
            .ok_or_else(|| BadLine::new(1, key, line.unwrap_or("nothing")))
    };
    Ok((size("Dirty")?, size("Writeback")?))
}

/// A heading, then `/dev/sda2  partition  4194300  0  -2`.
pub(crate) fn parse_swaps(text: &str) -> Result<Vec<Swap>, BadLine> {
    let swap = |(index, line): (usize, &str)| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| fields.get(at).and_then(|f| f.parse::<u64>().ok());
        let (Some(size), Some(used)) = (number(2), number(3)) else {
            return Err(BadLine::new(index + 1, "path, kind, size and use", line));
        };
        let (path, kind) = (unescape(fields[0]), fields[1].to_string());
        Ok(Swap { path, kind, size_bytes: size.saturating_mul(1024), used_bytes: used.saturating_mul(1024) })
    };
    text.lines().enumerate().skip(1).map(swap).collect()
}

/// Settings under `/proc/sys/vm`, and the thresholds the kernel makes of them.
pub(crate) fn settings(tree: &Tree, page_bytes: u64, notes: &mut Vec<String>) -> VmSettings {
    let counters = noted(tree.parsed("/proc/vmstat", parse_vmstat), notes).unwrap_or_default();
    let threshold = |key: &str| counters.get(key).map(|pages| pages.saturating_mul(page_bytes));
    let mut sysctl = |name: &str| noted(tree.value::<u64>(&format!("/proc/sys/vm/{name}")), notes);
    VmSettings {
        dirty: DirtyLimit { bytes: sysctl("dirty_bytes"), ratio_percent: sysctl("dirty_ratio") },
        dirty_background: DirtyLimit {
            bytes: sysctl("dirty_background_bytes"),
            ratio_percent: sysctl("dirty_background_ratio"),
        },
        dirty_writeback_centisecs: sysctl("dirty_writeback_centisecs"),
        dirty_expire_centisecs: sysctl("dirty_expire_centisecs"),
        swappiness: sysctl("swappiness"),
        dirty_threshold_bytes: threshold("nr_dirty_threshold"),
        dirty_background_threshold_bytes: threshold("nr_dirty_background_threshold"),
    }
}

/// Counters in pages, by name.
pub(crate) fn parse_vmstat(text: &str) -> Result<HashMap<String, u64>, BadLine> {
    let pair = |(index, line): (usize, &str)| {
        let parsed =
            line.split_once(' ').and_then(|(key, value)| Some((key.to_string(), value.parse().ok()?)));
        parsed.ok_or_else(|| BadLine::new(index + 1, "NAME NUMBER", line))
    };
    text.lines().enumerate().map(pair).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const MEMINFO: &str = "MemTotal: 1000 kB\nMemFree: 500 kB\nMemAvailable: 800 kB\nBuffers: 5 kB\nCached: 300 kB\n\
        Dirty: 7 kB\nWriteback: 2 kB\nShmem: 20 kB\nSwapTotal: 64 kB\nSwapFree: 60 kB\nHugePages_Total: 0\n";

    #[test]
    fn memory_parses_and_says_what_is_missing() {
        let memory = parse_meminfo(MEMINFO).unwrap();
        assert_eq!((memory.page_cache_bytes, memory.dirty_bytes), (285 << 10, 7 << 10));
        let bad = parse_meminfo(&MEMINFO.replace("Dirty", "Dusty")).unwrap_err();
        assert!(bad.item.contains("Dirty"), "{bad:?}");
        let bad = parse_meminfo(&MEMINFO.replace("800", "many")).unwrap_err();
        assert_eq!((bad.line, bad.item.contains("many")), (3, true));
    }

    #[test]
    fn swaps_and_counters_parse() {
        let text = "Filename\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/sda2  partition\t4194300\t\t16\t\t-2\n/swap\\040file file 1024 0 -3\n";
        let swaps = parse_swaps(text).unwrap();
        assert_eq!((swaps[0].used_bytes, swaps[1].path.as_str()), (16 << 10, "/swap file"));
        assert!(parse_swaps("Filename\n").unwrap().is_empty());
        assert_eq!(parse_swaps("Filename\n/dev/sda2 partition x 0 -2\n").unwrap_err().line, 2);
        assert_eq!(parse_vmstat("nr_dirty 1889\npswpin 0\n").unwrap()["nr_dirty"], 1889);
        assert_eq!(parse_vmstat("nr_dirty 1889\npswpin\n").unwrap_err().line, 2);
    }
}
