//! `/proc/diskstats`, Documentation/admin-guide/iostats.rst.

use std::collections::HashMap;

use weir_core::target::{DeviceLoad, DeviceNumber};

use crate::error::BadLine;

/// Always 512 here, whatever the device's block size.
const SECTOR_BYTES: f64 = 512.0;

/// Counters of one device: since boot, or what they grew by.
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

/// What a field in milliseconds grew by. The kernel prints it as an unsigned 32-bit number (block/genhd.c,
/// `diskstats_show`), which begins anew after 50 days of I/O time.
pub(crate) fn grown_ms(earlier: u64, later: u64) -> u64 {
    u64::from((later as u32).wrapping_sub(earlier as u32))
}

impl Counters {
    /// What they grew by since an earlier reading, and what is in flight now. `None` where a count of I/Os or sectors, which
    /// has 64 bits, went backwards: then another device has the name.
    pub(crate) fn since(&self, earlier: &Counters) -> Option<Counters> {
        let grown = |pick: fn(&Counters) -> u64| pick(self).checked_sub(pick(earlier));
        let ms = |pick: fn(&Counters) -> u64| grown_ms(pick(earlier), pick(self));
        Some(Counters {
            reads: grown(|c| c.reads)?,
            read_sectors: grown(|c| c.read_sectors)?,
            read_ms: ms(|c| c.read_ms),
            writes: grown(|c| c.writes)?,
            write_sectors: grown(|c| c.write_sectors)?,
            write_ms: ms(|c| c.write_ms),
            in_flight: self.in_flight,
            busy_ms: ms(|c| c.busy_ms),
            queue_ms: ms(|c| c.queue_ms),
            discards: grown(|c| c.discards)?,
            discard_sectors: grown(|c| c.discard_sectors)?,
            discard_ms: ms(|c| c.discard_ms),
            flushes: grown(|c| c.flushes)?,
            flush_ms: ms(|c| c.flush_ms),
        })
    }
}

/// What the device did between two readings; `None` where they are of two devices.
pub(crate) fn load(earlier: &Counters, later: &Counters, seconds: f64) -> Option<DeviceLoad> {
    let grown = later.since(earlier)?;
    let rate = |count: u64| count as f64 / seconds;
    let bytes = |sectors: u64| rate(sectors) * SECTOR_BYTES;
    let mean = |total_ms: u64, count: u64| if count > 0 { total_ms as f64 / count as f64 } else { 0.0 };
    Some(DeviceLoad {
        // The kernel's clock for this counter is coarse, so that short samples can exceed the whole.
        util_percent: (rate(grown.busy_ms) / 10.0).min(100.0),
        reads_per_second: rate(grown.reads),
        writes_per_second: rate(grown.writes),
        flushes_per_second: rate(grown.flushes),
        discards_per_second: rate(grown.discards),
        read_bytes_per_second: bytes(grown.read_sectors),
        write_bytes_per_second: bytes(grown.write_sectors),
        discard_bytes_per_second: bytes(grown.discard_sectors),
        read_wait_ms: mean(grown.read_ms, grown.reads),
        write_wait_ms: mean(grown.write_ms, grown.writes),
        discard_wait_ms: mean(grown.discard_ms, grown.discards),
        flush_wait_ms: mean(grown.flush_ms, grown.flushes),
        // The kernel adds a flush command's time to that of the request which it belongs to, and waits (block/genhd.c,
        // `diskstats_show`; block/blk-flush.c): both would be one twice.
        queue_mean: rate(grown.queue_ms.saturating_sub(grown.flush_ms)) / 1000.0,
        in_flight: grown.in_flight,
    })
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
        let load = load(&at(EARLIER), &at(LATER), 2.0).unwrap();
        assert_eq!((load.reads_per_second, load.writes_per_second), (100.0, 50.0));
        assert_eq!((load.read_bytes_per_second, load.write_bytes_per_second), (409_600.0, 4_096_000.0));
        assert_eq!((load.read_wait_ms, load.write_wait_ms), (0.5, 5.0));
        assert_eq!((load.util_percent, load.queue_mean, load.in_flight), (100.0, 1.95, 7));
        assert_eq!((load.flushes_per_second, load.flush_wait_ms), (10.0, 5.0));
        assert_eq!((load.discards_per_second, load.discard_wait_ms), (50.0, 2.0));
        assert_eq!(load.discard_bytes_per_second, 1_024_000.0);
    }

    #[test]
    fn milliseconds_begin_anew_at_32_bits_and_another_device_has_no_load() {
        let at = |text: &str| parse(text).unwrap()[&DeviceNumber { major: 254, minor: 0 }];
        // Every field in ms has passed 2^32.
        let before =
            at("254 0 vda 100 0 800 4294967290 200 0 16000 4294967295 0 4294966796 4294967294 10 0 80 \
                         4294967295 5 4294967286");
        let after = at("254 0 vda 110 0 880 4 202 0 16016 1 0 500 1998 11 0 88 9 7 10");
        let load = load(&before, &after, 2.0).unwrap();
        assert_eq!((load.read_wait_ms, load.write_wait_ms), (1.0, 1.0));
        assert_eq!((load.discard_wait_ms, load.flush_wait_ms), (10.0, 10.0));
        assert_eq!((load.util_percent, load.queue_mean), (50.0, 0.99));
        // The same number after the device was removed and made again.
        let new = at("254 0 vda 3 0 24 1 0 0 0 0 0 1 1 0 0 0 0 0 0");
        assert_eq!(super::load(&after, &new, 2.0), None);
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
