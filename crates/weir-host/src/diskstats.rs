//! `/proc/diskstats`, Documentation/admin-guide/iostats.rst.

use std::collections::HashMap;

use weir_core::target::{DeviceLoad, DeviceNumber};

use crate::error::BadLine;

/// Always 512 here, whatever the device's block size.
const SECTOR_BYTES: f64 = 512.0;

/// Counters of one device since boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub reads: u64,
    pub read_sectors: u64,
    pub read_ms: u64,
    pub writes: u64,
    pub write_sectors: u64,
    pub write_ms: u64,
    pub in_flight: u64,
    pub busy_ms: u64,
    pub queue_ms: u64,
    pub discards: u64,
    pub discard_sectors: u64,
    pub discard_ms: u64,
    pub flushes: u64,
    pub flush_ms: u64,
}

pub(crate) fn parse(text: &str) -> Result<HashMap<DeviceNumber, Counters>, BadLine> {
    text.lines().enumerate().map(|(index, line)| parse_line(index + 1, line)).collect()
}

fn parse_line(number: usize, line: &str) -> Result<(DeviceNumber, Counters), BadLine> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let field = |at: usize, name: &str| -> Result<u64, BadLine> {
        let text = fields.get(at).copied().unwrap_or("nothing");
        text.parse().map_err(|_| BadLine::new(number, name, text))
    };
    let device =
        DeviceNumber { major: field(0, "a major number")? as u32, minor: field(1, "a minor number")? as u32 };
    // Linux 4.18 added four fields for discards, 5.5 two for flushes.
    let later = |at: usize, name: &str, fields_min: usize| {
        if fields.len() > fields_min { field(at, name) } else { Ok(0) }
    };
    let counters = Counters {
        reads: field(3, "reads completed")?,
        read_sectors: field(5, "sectors read")?,
        read_ms: field(6, "milliseconds reading")?,
        writes: field(7, "writes completed")?,
        write_sectors: field(9, "sectors written")?,
        write_ms: field(10, "milliseconds writing")?,
        in_flight: field(11, "requests in flight")?,
        busy_ms: field(12, "milliseconds busy")?,
        queue_ms: field(13, "weighted milliseconds")?,
        discards: later(14, "discards completed", 17)?,
        discard_sectors: later(16, "sectors discarded", 17)?,
        discard_ms: later(17, "milliseconds discarding", 17)?,
        flushes: later(18, "flushes completed", 18)?,
        flush_ms: later(19, "milliseconds flushing", 19)?,
    };
    Ok((device, counters))
}

/// What the device did between two readings. Counters wrap on some machines, hence the wrapping differences.
pub(crate) fn load(earlier: &Counters, later: &Counters, seconds: f64) -> DeviceLoad {
    let delta = |pick: fn(&Counters) -> u64| pick(later).wrapping_sub(pick(earlier)) as f64;
    let (reads, writes) = (delta(|c| c.reads), delta(|c| c.writes));
    let (discards, flushes) = (delta(|c| c.discards), delta(|c| c.flushes));
    let mean = |total_ms: f64, count: f64| if count > 0.0 { total_ms / count } else { 0.0 };
    DeviceLoad {
        // The kernel's clock for this counter is coarse, so that short samples can exceed the whole.
        util_percent: (delta(|c| c.busy_ms) / seconds / 10.0).min(100.0),
        reads_per_second: reads / seconds,
        writes_per_second: writes / seconds,
        flushes_per_second: flushes / seconds,
        discards_per_second: discards / seconds,
        read_bytes_per_second: delta(|c| c.read_sectors) * SECTOR_BYTES / seconds,
        write_bytes_per_second: delta(|c| c.write_sectors) * SECTOR_BYTES / seconds,
        discard_bytes_per_second: delta(|c| c.discard_sectors) * SECTOR_BYTES / seconds,
        read_wait_ms: mean(delta(|c| c.read_ms), reads),
        write_wait_ms: mean(delta(|c| c.write_ms), writes),
        discard_wait_ms: mean(delta(|c| c.discard_ms), discards),
        flush_wait_ms: mean(delta(|c| c.flush_ms), flushes),
        queue_mean: delta(|c| c.queue_ms) / (seconds * 1000.0),
        in_flight: later.in_flight,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EARLIER: &str = " 254       0 vda 100 0 800 50 200 0 16000 400 0 500 450 4544 35 496336 299 10 50";
    const LATER: &str =
        " 254       0 vda 300 0 2400 150 300 0 32000 900 7 2500 4450 4644 35 500336 499 30 150";

    #[test]
    fn two_readings_make_a_load() {
        let at = |text| parse(text).unwrap()[&DeviceNumber { major: 254, minor: 0 }];
        let load = load(&at(EARLIER), &at(LATER), 2.0);
        assert_eq!((load.reads_per_second, load.writes_per_second), (100.0, 50.0));
        assert_eq!((load.read_bytes_per_second, load.write_bytes_per_second), (409_600.0, 4_096_000.0));
        assert_eq!((load.read_wait_ms, load.write_wait_ms), (0.5, 5.0));
        assert_eq!((load.util_percent, load.queue_mean, load.in_flight), (100.0, 2.0, 7));
        assert_eq!((load.flushes_per_second, load.flush_wait_ms), (10.0, 5.0));
        assert_eq!((load.discards_per_second, load.discard_wait_ms), (50.0, 2.0));
        assert_eq!(load.discard_bytes_per_second, 1_024_000.0);
    }

    #[test]
    fn old_kernels_have_fewer_fields_and_damage_is_named() {
        let old = "   8       0 sda 1 2 3 4 5 6 7 8 9 10 11\n";
        assert_eq!(parse(old).unwrap()[&DeviceNumber { major: 8, minor: 0 }].queue_ms, 11);
        let bad = parse("   8       0 sda 1 2 3 4 5 6 7\n").unwrap_err();
        assert_eq!((bad.line, bad.item.contains("milliseconds writing")), (1, true));
        assert!(parse(&format!("{EARLIER}\n8 x sdb")).unwrap_err().item.contains("minor"));
    }
}
