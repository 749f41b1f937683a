//! The kernel's own block tracer, through either of its two ways out.

use std::fs;
use std::path::Path;

use weir_core::target::DeviceNumber;

use super::ftrace::Ftrace;
use super::relay::Relay;
use super::sink::{Progress, Sink};
use super::{Options, Source, about};
use crate::Error;

/// One of the two.
pub enum Tracer {
    /// Through tracefs.
    Ftrace(Ftrace),
    /// Through debugfs.
    Relay(Relay),
}

impl Tracer {
    /// Sets the tracer up; what it changes is restored when it is dropped, and by the next run if this one is killed.
    pub fn open(source: Source, options: &Options, cpus: usize) -> Result<Tracer, Error> {
        let devices = disks(&options.devices)?;
        Ok(match source {
            Source::Relay => Tracer::Relay(Relay::open(&devices, options.ring_bytes, cpus)?),
            _ => Tracer::Ftrace(Ftrace::open(&devices, options.ring_bytes, cpus)?),
        })
    }

    /// Which.
    pub fn source(&self) -> Source {
        match self {
            Tracer::Ftrace(_) => Source::Ftrace,
            Tracer::Relay(_) => Source::Relay,
        }
    }

    /// Switches it on.
    pub fn begin(&mut self) -> Result<(), Error> {
        match self {
            Tracer::Ftrace(tracer) => tracer.begin(),
            Tracer::Relay(tracer) => tracer.begin(),
        }
    }

    /// Switches it off; its buffers keep what they have.
    pub fn end(&mut self) {
        match self {
            Tracer::Ftrace(tracer) => tracer.end(),
            Tracer::Relay(tracer) => tracer.end(),
        }
    }

    /// Takes what its buffers hold.
    pub fn round(&mut self, sink: &mut Sink, progress: &mut Progress) -> f64 {
        match self {
            Tracer::Ftrace(tracer) => tracer.round(sink, progress),
            Tracer::Relay(tracer) => tracer.round(sink, progress),
        }
    }

    /// What the recording cannot tell, for a flaw of this kernel's.
    pub fn lacks(&self) -> Option<&'static str> {
        const CUT: &str = "this kernel's tracer cuts its records off: errors and remaps by device-mapper and \
            md are missing";
        matches!(self, Tracer::Ftrace(tracer) if tracer.is_cut()).then_some(CUT)
    }

    /// Events that found a buffer full, by CPU, and others.
    pub fn losses(&mut self) -> (Vec<u64>, u64) {
        match self {
            Tracer::Ftrace(tracer) => (tracer.dropped_by_cpu.clone(), 0),
            Tracer::Relay(tracer) => (Vec::new(), tracer.dropped()),
        }
    }
}

/// Names of the whole disks to trace: those asked for, or all that have a size.
fn disks(devices: &[DeviceNumber]) -> Result<Vec<String>, Error> {
    let folder = Path::new("/sys/block");
    let mut found = Vec::new();
    for named in about::block_devices(folder) {
        let size = fs::read_to_string(folder.join(&named.name).join("size")).unwrap_or_default();
        let wanted = if devices.is_empty() { size.trim() != "0" } else { devices.contains(&named.device) };
        if wanted {
            found.push(named.name);
        }
    }
    if found.is_empty() {
        return Err(Error::Unsupported { lacking: "a disk of that number under /sys/block".to_string() });
    }
    Ok(found)
}
