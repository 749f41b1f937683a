//! What the loader and the programs tell each other: the same structures as in `bpf/cells.h`.

use weir_core::target::DeviceNumber;

use super::{Losses, Options};
use crate::Error;

/// Places of the programs' device filter, and how far behind its hash a device may stand.
const DEVICES_LISTED: usize = 256;
const PROBES: u32 = 8;
const LOST_KINDS: usize = 6;

/// `settings` in cells.h.
#[repr(C)]
pub struct Settings {
    slow_ns: u64,
    only_listed: u32,
    issue_is_stamped: u32,
    devices: [u64; DEVICES_LISTED],
}

/// `control` in cells.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Control {
    pub started_ns: u64,
    pub cells: u64,
    pub lost: [u64; LOST_KINDS],
}

impl Settings {
    pub fn new(options: &Options, issue_is_stamped: bool) -> Result<Settings, Error> {
        let mut settings = Settings {
            slow_ns: options.slow_ns.map_or(0, |slow_ns| slow_ns.max(1)),
            only_listed: u32::from(!options.devices.is_empty()),
            issue_is_stamped: u32::from(issue_is_stamped),
            devices: [0; DEVICES_LISTED],
        };
        for &device in &options.devices {
            settings.list(device)?;
        }
        Ok(settings)
    }

    fn list(&mut self, device: DeviceNumber) -> Result<(), Error> {
        let device = number(device);
        let hash = (device.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32;
        for probe in 0..PROBES {
            let place = &mut self.devices[hash.wrapping_add(probe) as usize % DEVICES_LISTED];
            if *place == 0 || *place == device {
                *place = device;
                return Ok(());
            }
        }
        let asked = self.devices.iter().filter(|&&device| device != 0).count() + 1;
        Err(Error::TooMany { what: "devices", asked, limit: asked - 1 })
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: Settings is repr(C), of integers only and without padding (two u32 between u64s), so every byte of
        // it is initialised; the slice borrows self.
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).cast(), size_of::<Settings>()) }
    }
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

    /// What the programs counted as lost; `skipped` is the kernel's count.
    pub fn losses(&self, skipped: u64) -> Losses {
        let [cells, before_start, stamps, untimed, bios, slow] = self.lost;
        Losses { cells, skipped, before_start, stamps, untimed, bios, slow }
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
    fn every_listed_device_is_found_where_programs_look() {
        let devices: Vec<_> = (0..64).map(|minor| DeviceNumber { major: 7, minor }).collect();
        let settings =
            Settings::new(&Options { devices: devices.clone(), ..Options::default() }, false).unwrap();
        for device in devices {
            let hash = (number(device).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32;
            let places = (0..PROBES).map(|probe| hash.wrapping_add(probe) as usize % DEVICES_LISTED);
            assert!(places.into_iter().any(|place| settings.devices[place] == number(device)), "{device}");
        }
        assert_eq!(settings.bytes().len(), 16 + 8 * DEVICES_LISTED);
    }

    #[test]
    fn control_survives_its_bytes() {
        let control = Control { started_ns: 1, cells: 2, lost: [3, 4, 5, 6, 7, 8] };
        let parsed = Control::parse(&control.bytes());
        assert_eq!((parsed.started_ns, parsed.cells, parsed.lost), (1, 2, [3, 4, 5, 6, 7, 8]));
    }
}
