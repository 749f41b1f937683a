//! Where the kernel puts the fields of its events: `events/block/NAME/format`, which says so of every kernel anew.

use std::collections::BTreeMap;
use std::ops::Range;

use weir_blocktrace::{Act, Event, Flags};
use weir_core::target::DeviceNumber;

/// The events that lives are put together from, and what they mean; most kernels have all of them.
pub const EVENTS: [(&str, Act); 12] = [
    ("block_bio_queue", Act::Queue),
    ("block_bio_backmerge", Act::BackMerge),
    ("block_bio_frontmerge", Act::FrontMerge),
    ("block_getrq", Act::GetRequest),
    ("block_split", Act::Split),
    ("block_bio_remap", Act::Remap),
    ("block_rq_insert", Act::Insert),
    ("block_rq_issue", Act::Issue),
    ("block_rq_requeue", Act::Requeue),
    ("block_rq_merge", Act::RequestMerge),
    ("block_rq_complete", Act::Complete),
    // Of devices without requests (dm, md) alone: a bio that a request carried has ended with that.
    ("block_bio_complete", Act::Complete),
];

/// Without these no stage is known.
pub const ESSENTIAL: [&str; 2] = ["block_rq_issue", "block_rq_complete"];

/// One event's layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    /// Its number in records.
    pub id: u16,
    act: Act,
    fields: BTreeMap<String, Range<usize>>,
}

impl Format {
    /// Reads a `format` file.
    pub fn parse(text: &str, act: Act) -> Option<Format> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()?;
        let fields: BTreeMap<_, _> = text.lines().filter_map(field).collect();
        ["dev", "sector", "rwbs"].iter().all(|name| fields.contains_key(*name)).then_some(Format {
            id,
            act,
            fields,
        })
    }

    /// An unsigned number; 0 where the event has no such field.
    fn number(&self, record: &[u8], name: &str) -> u64 {
        let bytes = self.fields.get(name).and_then(|place| record.get(place.clone())).unwrap_or(&[]);
        match *bytes {
            [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
            [a, b, c, d, e, f, g, h] => u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            _ => 0,
        }
    }

    /// The record's text up to its zero byte.
    fn text<'a>(&self, record: &'a [u8], name: &str) -> &'a [u8] {
        let bytes = self.fields.get(name).and_then(|place| record.get(place.clone())).unwrap_or(&[]);
        bytes.split(|&byte| byte == 0).next().unwrap_or(&[])
    }

    /// The name of the thread, in events that have it.
    pub fn thread_name<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        self.fields.contains_key("comm").then(|| self.text(record, "comm"))
    }

    /// The event in a record.
    pub fn event(&self, record: &[u8], time_ns: u64, cpu: u32) -> Event {
        // A flush command and passthrough have no place. The kernel says 0 of it at D (blk_rq_trace_sector in
        // linux/blktrace_api.h) and -1 at C.
        let sector = Some(self.number(record, "sector")).filter(|sector| *sector != u64::MAX).unwrap_or(0);
        let new_sector = self.number(record, "new_sector");
        let bytes = match self.act {
            // What is in front of the cut.
            Act::Split => new_sector.saturating_sub(sector).saturating_mul(512),
            _ => self.number(record, "nr_sector").saturating_mul(512).max(self.number(record, "bytes")),
        };
        Event {
            time_ns,
            sector,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            act: self.act,
            flags: flags(self.text(record, "rwbs"), sector),
            device: device(self.number(record, "dev")),
            pid: self.number(record, "common_pid") as u32,
            cpu,
            error: self.number(record, "error") as u32 as i32,
            detail: if self.act == Act::Remap { self.number(record, "old_sector") } else { new_sector },
            from: device(self.number(record, "old_dev")),
            ..Event::default()
        }
    }
}

/// `\tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;`
fn field(line: &str) -> Option<(String, Range<usize>)> {
    let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
    let name = parts.next()?.rsplit(' ').next()?;
    let name = name.split('[').next()?.to_string();
    let mut number = |prefix: &str| parts.next()?.strip_prefix(prefix)?.parse::<usize>().ok();
    let (offset, size) = (number("offset:")?, number("size:")?);
    Some((name, offset..offset.checked_add(size)?))
}

/// The kernel's dev_t, as its events have it: 20 bits of minor number.
fn device(number: u64) -> DeviceNumber {
    DeviceNumber { major: (number >> 20) as u32, minor: (number & 0xf_ffff) as u32 }
}

/// The letters of an event (blk_fill_rwbs in kernel/trace/blktrace.c) as the categories that blktrace has for the same.
fn flags(letters: &[u8], sector: u64) -> Flags {
    let (first, rest) = match letters {
        // PREFLUSH stands before the operation.
        [b'F', rest @ ..] => (Flags::FLUSH, rest),
        _ => (Flags(0), letters),
    };
    let (operation, rest) = match rest {
        [b'W', rest @ ..] => (Flags::WRITE, rest),
        [b'D', b'E', rest @ ..] | [b'D', rest @ ..] => (Flags(Flags::DISCARD.0 | Flags::WRITE.0), rest),
        [b'F', rest @ ..] => (Flags(Flags::FLUSH.0 | Flags::READ.0), rest),
        [b'R', rest @ ..] => (Flags::READ, rest),
        // Operations without a letter: passthrough has no sector, zeroing and zones do.
        [b'N', rest @ ..] if sector == 0 => (Flags(Flags::PASSTHROUGH.0 | Flags::READ.0), rest),
        [b'N', rest @ ..] => (Flags::WRITE, rest),
        rest => (Flags::READ, rest),
    };
    let letter = |letter: &u8| match letter {
        b'F' => Flags::FUA.0,
        b'A' => Flags::AHEAD.0,
        b'S' => Flags::SYNC.0,
        b'M' => Flags::METADATA.0,
        _ => 0,
    };
    Flags(rest.iter().fold(first.0 | operation.0, |flags, byte| flags | letter(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPLETE: &str = "name: block_rq_complete\nID: 2107\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;\n\
        \tfield:int error;\toffset:28;\tsize:4;\tsigned:1;\n\
        \tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n";

    #[test]
    fn a_record_is_read_by_its_format() {
        let format = Format::parse(COMPLETE, Act::Complete).unwrap();
        let mut record = vec![0_u8; 48];
        for (at, bytes) in [
            (4, 77_u32.to_ne_bytes().to_vec()),
            (8, ((254_u32 << 20) | 3).to_ne_bytes().to_vec()),
            (16, 12_345_u64.to_ne_bytes().to_vec()),
            (24, 8_u32.to_ne_bytes().to_vec()),
            (28, (-5_i32).to_ne_bytes().to_vec()),
            (34, b"WSM\0".to_vec()),
        ] {
            record[at..at + bytes.len()].copy_from_slice(&bytes);
        }
        let event = format.event(&record, 99, 1);
        assert_eq!((format.id, event.time_ns, event.pid, event.cpu), (2107, 99, 77, 1));
        assert_eq!(
            (event.device.to_string().as_str(), event.sector, event.bytes, event.error),
            ("254:3", 12_345, 4096, -5)
        );
        assert_eq!(event.flags.0, Flags::WRITE.0 | Flags::SYNC.0 | Flags::METADATA.0);
        record[16..24].copy_from_slice(&u64::MAX.to_ne_bytes());
        assert_eq!(format.event(&record, 99, 1).sector, 0, "no place is the same at D and at C");
        // A record cut short reads as zeros, not as a panic.
        assert_eq!(format.event(&record[..20], 99, 1).sector, 0);
        assert!(Format::parse("name: x\nID: 5\n", Act::Issue).is_none());
    }

    #[test]
    fn letters_mean_what_blktrace_has_as_categories() {
        let all = |flags: &[Flags]| flags.iter().fold(0, |all, flag| all | flag.0);
        for (letters, sector, expected) in [
            ("R", 1, all(&[Flags::READ])),
            ("RA", 1, all(&[Flags::READ, Flags::AHEAD])),
            ("WS", 1, all(&[Flags::WRITE, Flags::SYNC])),
            ("FWFSM", 1, all(&[Flags::FLUSH, Flags::WRITE, Flags::FUA, Flags::SYNC, Flags::METADATA])),
            ("FF", 0, all(&[Flags::FLUSH, Flags::READ])),
            ("D", 1, all(&[Flags::DISCARD, Flags::WRITE])),
            ("DE", 1, all(&[Flags::DISCARD, Flags::WRITE])),
            ("N", 0, all(&[Flags::PASSTHROUGH, Flags::READ])),
            ("N", 9, all(&[Flags::WRITE])),
            ("", 0, all(&[Flags::READ])),
        ] {
            assert_eq!(flags(letters.as_bytes(), sector).0, expected, "{letters}");
        }
    }
}
