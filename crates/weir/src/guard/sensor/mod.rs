//! What syncs take and who writes, of every device under guard, from the best source that this machine offers.
//!
//! The programs in the kernel see every sync of those that are protected. Where they may not run, a canary syncs by
//! itself on each file system and tells what that takes; where no canary can be, the device's own counters tell what
//! its flushes took, and how long it has not ended a write.

mod canary;
mod counters;
mod kernel;
mod whose;

use std::path::PathBuf;

use weir_control::{Bulk, Sensor, SensorSource, Syncs};
use weir_core::target::DeviceNumber;
use weir_host::Host;

use crate::guard::exempt::Exempt;
use crate::guard::settings::Protected;

/// What is to be seen.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Whose syncs; none means everybody's but those of bulk writers.
    pub protect: Vec<Protected>,
    /// On which devices.
    pub devices: Vec<Watched>,
    /// The source to use; `None` is the best there is.
    pub source: Option<SensorSource>,
}

/// A device, and where a canary may write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Watched {
    /// The whole disk, or what is mapped over disks.
    pub number: DeviceNumber,
    /// The numbers of its file systems, where syncs are counted under those (btrfs).
    pub file_systems: Vec<DeviceNumber>,
    /// A folder on its file system.
    pub folder: Option<PathBuf>,
}

/// What was seen of one device since the sample before.
#[derive(Debug, Clone, PartialEq)]
pub struct Sight {
    /// Syncs that are to be protected.
    pub syncs: Syncs,
    /// Everybody else.
    pub bulk: Bulk,
    /// Dirty bytes of the device and those under way, where the source tells them.
    pub backlog_bytes: Option<(u64, u64)>,
    /// From where, and whether it answers.
    pub sensor: Sensor,
}

/// The senses of a guard; what they put into the kernel or onto a file system goes away with them.
pub struct Senses {
    source: Source,
    devices: Vec<Watched>,
    wants_canary: bool,
    remarks: Vec<String>,
}

enum Source {
    Kernel(Box<kernel::Syscalls>),
    /// By device: a canary, or counters where it can have none.
    Own(Vec<Own>),
}

enum Own {
    Canary(canary::Bird),
    /// With why it is no canary, where one is wanted.
    Counters(counters::Counters, Option<String>),
}

impl Senses {
    /// Starts the best source, or the one that was asked for.
    ///
    /// # Errors
    /// The source that was asked for cannot be had; says why.
    pub fn start(host: &Host, options: &Options) -> anyhow::Result<Senses> {
        let mut remarks = Vec::new();
        let devices = options.devices.clone();
        let wants_canary = options.source != Some(SensorSource::Diskstats);
        if matches!(options.source, None | Some(SensorSource::Syscalls)) {
            match kernel::Syscalls::start(&options.protect) {
                Ok(syscalls) => {
                    let source = Source::Kernel(Box::new(syscalls));
                    return Ok(Senses { source, devices, wants_canary, remarks });
                }
                Err(why) if options.source.is_some() => anyhow::bail!("cannot see system calls: {why}"),
                Err(why) => remarks.push(without_kernel(&why, !options.protect.is_empty())),
            }
        }
        let own: Vec<Own> = devices.iter().map(|device| Own::of(host, device, wants_canary)).collect();
        for (device, own) in devices.iter().zip(&own) {
            if let Own::Counters(_, Some(why)) = own
                && options.source.is_some()
                && device.folder.is_some()
            {
                anyhow::bail!("{why}");
            }
        }
        Ok(Senses { source: Source::Own(own), devices, wants_canary, remarks })
    }

    /// What happened since the sample before, in the order of the devices; `now_ns` is of CLOCK_MONOTONIC.
    pub fn sample(&mut self, now_ns: u64) -> Vec<Sight> {
        match &mut self.source {
            Source::Kernel(syscalls) => syscalls.sample(&self.devices, now_ns),
            Source::Own(own) => own.iter_mut().map(|own| own.sample(now_ns)).collect(),
        }
    }

    /// Who must not be held, as far as the source tells processes apart.
    pub fn exempt(&self) -> Exempt {
        match &self.source {
            Source::Kernel(syscalls) => syscalls.exempt(),
            Source::Own(_) => Exempt::default(),
        }
    }

    /// A device that was away has come back, perhaps with another number, or has other file systems.
    pub fn moved(&mut self, host: &Host, at: usize, device: Watched) {
        let Some(before) = self.devices.get_mut(at) else { return };
        let has_other_number = before.number != device.number;
        *before = device;
        if let Source::Own(own) = &mut self.source
            // A canary sits on the file system of the device that was there before.
            && (has_other_number || matches!(own[at], Own::Counters(..)))
        {
            own[at] = Own::of(host, before, self.wants_canary);
        }
    }

    /// What is lacking, and what is lost by it, in sentences.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = self.remarks.clone();
        match &self.source {
            Source::Kernel(syscalls) => remarks.extend(syscalls.remark()),
            Source::Own(own) => {
                let why = |(device, own): (&Watched, &Own)| match own {
                    Own::Counters(_, Some(why)) => Some(without_canary(device.number, why)),
                    _ => None,
                };
                remarks.extend(self.devices.iter().zip(own).filter_map(why));
            }
        }
        remarks
    }
}

impl Own {
    /// A canary where one is wanted and can be.
    fn of(host: &Host, device: &Watched, wants_canary: bool) -> Own {
        let counters = |why| Own::Counters(counters::Counters::of(host, device.number), why);
        match device.folder.as_deref().filter(|_| wants_canary).map(canary::Bird::start) {
            Some(Ok(bird)) => Own::Canary(bird),
            Some(Err(error)) => counters(Some(error.to_string())),
            None => counters(wants_canary.then(|| "it has no folder to write to".to_string())),
        }
    }

    fn sample(&mut self, now_ns: u64) -> Sight {
        match self {
            Own::Canary(bird) => bird.sample(now_ns),
            Own::Counters(counters, _) => counters.sample(now_ns),
        }
    }
}

fn without_kernel(why: &str, names_somebody: bool) -> String {
    let whose = if names_somebody { ", --protect has no effect" } else { "" };
    format!(
        "syncs are not seen at the system call ({why}): weir syncs by itself five times a second instead; \
         the writers, and their throttled time, are not known{whose}"
    )
}

fn without_canary(device: DeviceNumber, why: &str) -> String {
    format!(
        "no canary on {device} ({why}): only the device's counters remain, which have the time of its \
         flushes but not the waits before them"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_kernel_it_says_what_is_used_and_what_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let with_folder = Watched { folder: Some(folder.path().to_path_buf()), ..Watched::default() };
        let options = |source| Options {
            devices: vec![with_folder.clone(), Watched::default()],
            source: Some(source),
            ..Options::default()
        };
        let host = Host::live();
        let mut senses = Senses::start(&host, &options(SensorSource::Canary)).unwrap();
        let sources = senses.sample(1).into_iter().map(|sight| sight.sensor.source).collect::<Vec<_>>();
        assert_eq!(sources, [SensorSource::Canary, SensorSource::Diskstats]);
        let [remark] = &senses.remarks()[..] else { panic!("{:?}", senses.remarks()) };
        assert!(remark.contains("no canary on 0:0") && remark.contains("counters"), "{remark}");
        drop(senses);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);

        let senses = Senses::start(&host, &options(SensorSource::Diskstats)).unwrap();
        assert_eq!(senses.remarks(), Vec::<String>::new(), "it was asked for");
        let said = without_kernel("weir lacks CAP_BPF", true);
        assert!(said.contains("CAP_BPF") && said.contains("--protect has no effect"), "{said}");
    }

    #[test]
    fn a_canary_goes_to_the_file_system_that_is_guarded_by_now() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let watched = |minor, folder: Option<usize>| Watched {
            number: DeviceNumber { major: 8, minor },
            folder: folder.map(|at| folders[at].path().to_path_buf()),
            ..Watched::default()
        };
        let host = Host::live();
        let options = Options {
            devices: vec![watched(0, Some(0))],
            source: Some(SensorSource::Canary),
            ..Options::default()
        };
        let mut senses = Senses::start(&host, &options).unwrap();
        for (device, in_folders, source, lacks) in [
            // Another file system of the same disk: nothing is begun anew that may have to wait.
            (watched(0, Some(1)), [1, 0], SensorSource::Canary, false),
            (watched(16, Some(1)), [0, 1], SensorSource::Canary, false),
            (watched(32, None), [0, 0], SensorSource::Diskstats, true),
            (watched(32, Some(0)), [1, 0], SensorSource::Canary, false),
        ] {
            senses.moved(&host, 0, device.clone());
            let left = || folders.each_ref().map(|folder| std::fs::read_dir(folder.path()).unwrap().count());
            // A canary whose sync is under way takes its folder away when that has ended.
            for _ in 0..600 {
                if left() != in_folders {
                    std::thread::sleep(std::time::Duration::from_millis(50));
                }
            }
            assert_eq!(left(), in_folders, "{device:?}");
            assert_eq!(senses.sample(1)[0].sensor.source, source, "{device:?}");
            assert_eq!(!senses.remarks().is_empty(), lacks, "{device:?}");
        }
    }
}
