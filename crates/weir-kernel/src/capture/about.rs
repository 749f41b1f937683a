//! What a recording says about the machine it was made on.

use std::fs;
use std::path::Path;

use weir_blocktrace::recording::{Header, NamedDevice};
use weir_core::target::DeviceNumber;

use super::{Events, Options, Source, bpf};

/// The header, as far as it does not depend on the source.
pub fn header(options: &Options, source: Source, cpus: usize, base_ns: u64, wall_ns: u64) -> Header {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_string();
    let names = block_devices(Path::new("/sys/class/block"));
    let name = |device: &DeviceNumber| {
        let found = names.iter().find(|named| named.device == *device);
        found.map_or_else(|| device.to_string(), |named| named.name.clone())
    };
    let devices = options.devices.iter().map(|device| NamedDevice { device: *device, name: name(device) });
    let (recorded, not_recorded) = recorded(options.events, source);
    Header {
        recorder: concat!("weir ", env!("CARGO_PKG_VERSION")).to_string(),
        kernel: read("/proc/sys/kernel/osrelease"),
        boot_id: read("/proc/sys/kernel/random/boot_id"),
        clock: "monotonic".to_string(),
        base_ns,
        wall_ns,
        begun_ns: 0,
        source: source.name().to_string(),
        devices: devices.collect(),
        names,
        recorded: recorded.iter().map(|act| act.to_string()).collect(),
        not_recorded: not_recorded.iter().map(|what| what.to_string()).collect(),
        flag_bits: (source == Source::Bpf).then(bpf::flag_bits),
        cpus: cpus as u32,
        ring_bytes: options.ring_bytes as u64,
        command: options.command.clone(),
    }
}

fn recorded(events: Events, source: Source) -> (&'static [&'static str], &'static [&'static str]) {
    match events {
        _ if source != Source::Bpf => (
            &["A", "Q", "X", "G", "M", "F", "I", "D", "R", "C", "P", "U"],
            &["which bio is in which request"],
        ),
        Events::Requests => {
            (&["G", "I", "D", "R", "C"], &["Q, X, A, M, F: not asked for", "P, U: not asked for"])
        }
        Events::Bios => (&["A", "Q", "X", "G", "M", "F", "I", "D", "R", "C"], &["P, U: not asked for"]),
        Events::All => (&["A", "Q", "X", "G", "M", "F", "I", "D", "R", "C", "P", "U"], &[]),
    }
}

/// Names and numbers of block devices under /sys/class/block.
pub fn block_devices(folder: &Path) -> Vec<NamedDevice> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let number = fs::read_to_string(entry.path().join("dev")).unwrap_or_default();
        if let Some(device) = DeviceNumber::parse(&number) {
            let name = entry.file_name().to_string_lossy().into_owned();
            found.push(NamedDevice { device, name });
        }
    }
    found.sort_by_key(|named| named.device);
    found
}
