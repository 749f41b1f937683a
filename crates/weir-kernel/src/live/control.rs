//! What the loader and the programs tell each other: the same structures as in `bpf/cells.h`.

use weir_core::target::DeviceNumber;

use super::{LIMIT_DEVICES, LIMIT_PIDS, Losses, Options};
use crate::Error;

/// Places of each of the programs' lists, and how far behind its hash a number may stand.
const PLACES_LISTED: usize = 256;
const PROBES: u32 = 8;
const LOST_KINDS: usize = 6;

/// Bios that a completion follows, and what is tried where the verifier gives up on that: `BIOS_WALKED` in pieces.bpf.c,
/// and what usual requests of a database have.
pub const BIOS_WALKED: [u32; 3] = [512, 128, 32];

/// `settings` in cells.h.
#[repr(C)]
pub struct Settings {
    slow_ns: u64,
    only_listed: u32,
    issue_is_stamped: u32,
    cgroup: u64,
    cgroup_level: u32,
    only_processes: u32,
    flush_sequence: u32,
    bios_walked: u32,
    bio_at: BioAt,
    request_at: RequestAt,
    any_size: u32,
    sampled: u32,
    devices: [u64; PLACES_LISTED],
    processes: [u64; PLACES_LISTED],
}

/// `control` in cells.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Control {
    pub started_ns: u64,
    pub cells: u64,
    pub lost: [u64; LOST_KINDS],
}

/// Which argument of a tracepoint is the bio; merges have it at the same place, front or back.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BioAt {
    pub queue: u32,
    pub split: u32,
    pub get_request: u32,
    pub merge: u32,
}

/// The same of the request.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestAt {
    pub insert: u32,
    pub issue: u32,
}

/// What differs between kernels that programs cannot find out themselves.
#[derive(Debug, Clone, Copy, Default)]
pub struct Kernel {
    /// The flag of requests of a flush sequence.
    pub flush_sequence: u32,
    pub bio_at: BioAt,
    pub request_at: RequestAt,
}

impl Settings {
    /// `cgroup_level` is how deep `options.cgroup` lies below the root.
    pub fn new(
        options: &Options,
        issue_is_stamped: bool,
        cgroup_level: u32,
        kernel: &Kernel,
    ) -> Result<Settings, Error> {
        Ok(Settings {
            slow_ns: options.slow_ns.map_or(0, |slow_ns| slow_ns.max(1)),
            only_listed: u32::from(!options.devices.is_empty()),
            issue_is_stamped: u32::from(issue_is_stamped),
            cgroup: options.cgroup.unwrap_or(0),
            cgroup_level,
            only_processes: u32::from(!options.pids.is_empty()),
            flush_sequence: kernel.flush_sequence,
            bios_walked: BIOS_WALKED[0],
            bio_at: kernel.bio_at,
            request_at: kernel.request_at,
            any_size: u32::from(options.any_size),
            sampled: options.sampled.filter(|_| options.slow_ns.is_none()).unwrap_or(0),
            devices: places("devices", options.devices.iter().map(|&device| number(device)), LIMIT_DEVICES)?,
            processes: places("processes", options.pids.iter().map(|&pid| u64::from(pid)), LIMIT_PIDS)?,
        })
    }

    /// A completion is to follow so many bios at most.
    pub fn walk(&mut self, bios: u32) {
        self.bios_walked = bios;
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: Settings is repr(C), of integers only and without padding (its u32s come in pairs), so every byte of
        // it is initialised; the slice borrows self.
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).cast(), size_of::<Settings>()) }
    }
}

fn hash(number: u64) -> u32 {
    (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32
}

/// The numbers as a list that the programs search.
fn places(
    what: &'static str,
    numbers: impl ExactSizeIterator<Item = u64>,
    limit: usize,
) -> Result<[u64; PLACES_LISTED], Error> {
    let asked = numbers.len();
    let mut list = [0; PLACES_LISTED];
    for number in numbers {
        let mut places = (0..PROBES).map(|probe| hash(number).wrapping_add(probe) as usize % PLACES_LISTED);
        match places.find(|&place| list[place] == 0 || list[place] == number) {
            Some(place) if asked <= limit => list[place] = number,
            _ => return Err(Error::TooMany { what, asked, limit }),
        }
    }
    Ok(list)
}

impl Control {
    pub fn bytes(&self) -> Vec<u8> {
        [&[self.started_ns, self.cells], &self.lost[..]]
            .concat()
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect()
    }

    /// From the map's value; words that are missing are 0.
    pub fn parse(value: &[u8]) -> Control {
        let mut words = words(value);
        let mut next = || words.next().unwrap_or(0);
        let (started_ns, cells) = (next(), next());
        Control { started_ns, cells, lost: std::array::from_fn(|_| next()) }
    }

    /// What the programs counted as lost.
    pub fn losses(&self) -> Losses {
        let [cells, before_start, stamps, untimed, bios, slow] = self.lost;
        Losses { cells, before_start, stamps, untimed, bios, slow, ..Losses::default() }
    }
}

/// A device as the programs write it.
pub fn number(device: DeviceNumber) -> u64 {
    u64::from(device.major) << 32 | u64::from(device.minor)
}

/// The inverse of [`number`].
pub fn device(number: u64) -> DeviceNumber {
    DeviceNumber { major: (number >> 32) as u32, minor: number as u32 }
}

/// The u64s of a map's value.
pub fn words(value: &[u8]) -> impl Iterator<Item = u64> + '_ {
    value.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_ne_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_number_is_found_where_programs_look() {
        let devices = (0..LIMIT_DEVICES as u32).map(|minor| DeviceNumber { major: 7, minor }).collect();
        let pids = (1000..1000 + LIMIT_PIDS as u32).collect();
        let options = Options { devices, pids, ..Options::default() };
        let settings = Settings::new(&options, false, 0, &Kernel::default()).unwrap();
        let found = |list: &[u64], number| {
            (0..PROBES).any(|probe| list[hash(number).wrapping_add(probe) as usize % PLACES_LISTED] == number)
        };
        assert!(options.devices.iter().all(|&device| found(&settings.devices, number(device))));
        assert!(options.pids.iter().all(|&pid| found(&settings.processes, u64::from(pid))));
        assert_eq!(settings.bytes().len(), 72 + 2 * 8 * PLACES_LISTED);
        let too_many = Options { pids: (1..=LIMIT_PIDS as u32 + 1).collect(), ..Options::default() };
        assert!(Settings::new(&too_many, false, 0, &Kernel::default()).is_err());
    }

    #[test]
    fn control_survives_its_bytes() {
        let control = Control { started_ns: 1, cells: 2, lost: [3, 4, 5, 6, 7, 8] };
        let parsed = Control::parse(&control.bytes());
        assert_eq!((parsed.started_ns, parsed.cells, parsed.lost), (1, 2, [3, 4, 5, 6, 7, 8]));
    }
}
