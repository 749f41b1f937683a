//! Slow requests from the programs' ring (`bpf/slow.h`).

use std::sync::{Arc, Mutex, PoisonError};

use libbpf_rs::{MapCore, RingBuffer, RingBufferBuilder};
use weir_blocktrace::{ClassSet, Flags, Moment, Times};

use super::Slow;
use super::control::{device, words};

const RECORD_BYTES: usize = 104;

/// Reads the ring.
pub struct Ring {
    ring: RingBuffer<'static>,
    found: Arc<Mutex<Vec<Slow>>>,
}

impl Ring {
    pub fn new(map: &dyn MapCore) -> libbpf_rs::Result<Ring> {
        let found = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&found);
        let mut builder = RingBufferBuilder::new();
        builder.add(map, move |record| {
            if let Some(slow) = parse(record) {
                into.lock().unwrap_or_else(PoisonError::into_inner).push(slow);
            }
            0
        })?;
        Ok(Ring { ring: builder.build()?, found })
    }

    /// All that came since the last call.
    pub fn take(&mut self) -> Vec<Slow> {
        // Consuming fails only where the callback does, and that never does.
        let _ = self.ring.consume();
        std::mem::take(&mut *self.found.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A record as `struct slow_request`.
fn parse(record: &[u8]) -> Option<Slow> {
    let record = record.get(..RECORD_BYTES)?;
    let mut long = words(record);
    let mut next = || long.next();
    let (device_number, sector) = (next()?, next()?);
    let mut times = Times::default();
    let moments =
        [Moment::Queue, Moment::GetRequest, Moment::Insert, Moment::Merge, Moment::Issue, Moment::Complete];
    for moment in moments {
        let time_ns = next()?;
        if time_ns != 0 {
            times.set(moment, time_ns);
        }
    }
    let cgroup = next()?;
    let short = |at: usize| Some(u32::from_ne_bytes(record.get(at..at + 4)?.try_into().ok()?));
    let (flags, bytes, error, pid) = (Flags(short(72)?), short(76)?, short(80)? as i32, short(84)?);
    let name = record[88..].split(|&byte| byte == 0).next().unwrap_or_default();
    Some(Slow {
        device: device(device_number),
        flags,
        classes: ClassSet::of(flags, bytes),
        sector,
        bytes,
        times,
        error: errno(error),
        pid: (pid != 0).then_some(pid),
        comm: (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned()),
        cgroup: (cgroup != 0).then_some(cgroup),
    })
}

/// Kernels before 5.16 say a negative errno, later ones a blk_status_t (linux/blk_types.h, block/blk-core.c).
fn errno(error: i32) -> i32 {
    let errno = match error {
        ..=0 => return error,
        1 => libc::EOPNOTSUPP,
        2 => libc::ETIMEDOUT,
        3 => libc::ENOSPC,
        4 => libc::ENOLINK,
        5 => libc::EREMOTEIO,
        6 => libc::EBADE,
        7 => libc::ENODATA,
        8 => libc::EILSEQ,
        9 => libc::ENOMEM,
        11 => libc::EREMCHG,
        12 => libc::EAGAIN,
        13 => libc::EBUSY,
        _ => libc::EIO,
    };
    -errno
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_blocktrace::{Class, Stage};
    use weir_core::target::DeviceNumber;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let long = [7_u64 << 32 | 1, 2048, 10, 0, 0, 0, 30, 70, 5];
        let short = [Flags::READ.0, 4096, 10, 42];
        let mut record: Vec<u8> = long.into_iter().flat_map(u64::to_ne_bytes).collect();
        record.extend(short.into_iter().flat_map(u32::to_ne_bytes));
        record.extend(b"dd\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
        let slow = parse(&record).unwrap();
        assert_eq!(slow.device, DeviceNumber { major: 7, minor: 1 });
        assert_eq!((slow.sector, slow.bytes, slow.error), (2048, 4096, -libc::EIO));
        assert_eq!((slow.pid, slow.comm.as_deref(), slow.cgroup), (Some(42), Some("dd"), Some(5)));
        assert_eq!((slow.times.stage(Stage::D2C), slow.times.stage(Stage::Q2G)), (Some(40), None));
        assert!(slow.classes.has(Class::Read));
        assert_eq!(parse(&record[..100]), None);
    }
}
