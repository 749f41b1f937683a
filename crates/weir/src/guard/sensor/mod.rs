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
    remarks: Vec<String>,
}

enum Source {
    Kernel(Box<kernel::Syscalls>),
    /// By device: a canary, or counters where it can have none.
    Own(Vec<Own>),
}

enum Own {
    Canary(canary::Bird),
    Counters(counters::Counters),
}

impl Senses {
    /// Starts the best source, or the one that was asked for.
    ///
    /// # Errors
    /// The source that was asked for cannot be had; says why.
    pub fn start(host: &Host, options: &Options) -> anyhow::Result<Senses> {
        let mut remarks = Vec::new();
        let devices = options.devices.clone();
        if matches!(options.source, None | Some(SensorSource::Syscalls)) {
            match kernel::Syscalls::start(&options.protect) {
                Ok(syscalls) => {
                    return Ok(Senses { source: Source::Kernel(Box::new(syscalls)), devices, remarks });
                }
                Err(why) if options.source.is_some() => anyhow::bail!("cannot see system calls: {why}"),
                Err(why) => remarks.push(without_kernel(&why, !options.protect.is_empty())),
            }
        }
        let wants_canary = options.source != Some(SensorSource::Diskstats);
        let mut own = Vec::new();
        for device in &devices {
            own.push(match device.folder.as_deref().filter(|_| wants_canary).map(canary::Bird::start) {
                Some(Ok(bird)) => Own::Canary(bird),
                Some(Err(error)) if options.source.is_some() => return Err(error.into()),
                Some(Err(error)) => {
                    remarks.push(without_canary(device.number, &error.to_string()));
                    Own::Counters(counters::Counters::of(host, device.number))
                }
                None => {
                    if wants_canary {
                        remarks.push(without_canary(device.number, "it has no folder to write to"));
                    }
                    Own::Counters(counters::Counters::of(host, device.number))
                }
            });
        }
        Ok(Senses { source: Source::Own(own), devices, remarks })
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
    pub fn moved(&mut self, at: usize, number: DeviceNumber, file_systems: &[DeviceNumber]) {
        if let Some(device) = self.devices.get_mut(at) {
            (device.number, device.file_systems) = (number, file_systems.to_vec());
        }
        if let Source::Own(own) = &mut self.source
            && let Some(Own::Counters(counters)) = own.get_mut(at)
        {
            counters.moved(number);
        }
    }

    /// What is lacking, and what is lost by it, in sentences.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = self.remarks.clone();
        if let Source::Kernel(syscalls) = &self.source {
            remarks.extend(syscalls.remark());
        }
        remarks
    }
}

impl Own {
    fn sample(&mut self, now_ns: u64) -> Sight {
        match self {
            Own::Canary(bird) => bird.sample(now_ns),
            Own::Counters(counters) => counters.sample(now_ns),
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
}
