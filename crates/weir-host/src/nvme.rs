//! Log pages of NVMe devices: Amazon's statistics of a volume, and SMART.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};

use weir_core::target::{CounterSource, DeviceCounters, Layer, TargetFacts};

use crate::host::Host;

/// `NVME_IOCTL_ADMIN_CMD`, `_IOWR('N', 0x41, struct nvme_passthru_cmd)` of 72 bytes (linux/nvme_ioctl.h).
const ADMIN_COMMAND: u64 = 0xC048_4E41;
/// Get Log Page (NVM Express Base Specification 2.0, 5.16).
const GET_LOG_PAGE: u8 = 0x02;
/// The namespace number that means the whole controller.
const ALL_NAMESPACES: u32 = 0xFFFF_FFFF;
const TIMEOUT_MS: u32 = 2_000;

const SMART_PAGE: u8 = 0x02;
const SMART_BYTES: usize = 512;
/// Amazon EBS User Guide, "Amazon EBS detailed performance statistics".
const EBS_PAGE: u8 = 0xD0;
const EBS_BYTES: usize = 4096;
const EBS_MAGIC: u32 = 0x3C23_B510;
const EBS_MODEL: &str = "Amazon Elastic Block Store";

/// `struct nvme_passthru_cmd` (linux/nvme_ioctl.h).
#[repr(C)]
#[derive(Default)]
struct AdminCommand {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    cdw2: u32,
    cdw3: u32,
    metadata: u64,
    address: u64,
    metadata_len: u32,
    data_len: u32,
    cdw10: u32,
    cdw11: u32,
    cdw12: u32,
    cdw13: u32,
    cdw14: u32,
    cdw15: u32,
    timeout_ms: u32,
    result: u32,
}

impl Host {
    /// What the NVMe devices beneath a target count by themselves. Nothing of devices that answer with an error or may
    /// not be asked (it takes root), and nothing of a captured machine.
    pub fn device_counters(&self, target: &TargetFacts) -> Vec<DeviceCounters> {
        if !self.live {
            return Vec::new();
        }
        let disks = target.stack.iter().filter(|layer| layer.bus.as_deref() == Some("nvme"));
        disks.flat_map(of_disk).collect()
    }
}

fn of_disk(layer: &Layer) -> Vec<DeviceCounters> {
    let Some(node) = open(layer) else { return Vec::new() };
    let is_ebs = layer.model.as_deref().is_some_and(|model| model.contains(EBS_MODEL));
    let ebs = is_ebs.then(|| page(&node, EBS_PAGE, 1, EBS_BYTES)).flatten().and_then(|page| ebs(&page));
    let smart = page(&node, SMART_PAGE, ALL_NAMESPACES, SMART_BYTES).and_then(|page| smart(&page));
    [(CounterSource::AmazonEbs, ebs), (CounterSource::NvmeSmart, smart)]
        .into_iter()
        .filter_map(|(source, values)| {
            Some(DeviceCounters { device: layer.name.clone(), source, values: values? })
        })
        .collect()
}

/// The node of a device, if it is that device's.
fn open(layer: &Layer) -> Option<File> {
    let is_name = layer.name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    let path = is_name.then(|| format!("/dev/{}", layer.name))?;
    let node = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let found = node.metadata().ok()?;
    let number = libc::makedev(layer.number.major, layer.number.minor);
    (found.file_type().is_block_device() && found.rdev() == number).then_some(node)
}

fn page(node: &File, page: u8, namespace: u32, bytes: usize) -> Option<Vec<u8>> {
    let mut data = vec![0u8; bytes];
    let words = (bytes / 4 - 1) as u32;
    let mut command = AdminCommand {
        opcode: GET_LOG_PAGE,
        namespace,
        address: data.as_mut_ptr() as u64,
        data_len: bytes as u32,
        cdw10: u32::from(page) | words << 16,
        timeout_ms: TIMEOUT_MS,
        ..AdminCommand::default()
    };
    // SAFETY: the command has the kernel's layout and outlives the call, as does the buffer of `data_len` bytes at
    // `address`, which nothing else refers to meanwhile.
    let status = unsafe { libc::ioctl(node.as_raw_fd(), ADMIN_COMMAND as _, &raw mut command) };
    (status == 0).then_some(data)
}

fn number(page: &[u8], at: usize, bytes: usize) -> Option<u64> {
    let part = page.get(at..at + bytes)?;
    Some(part.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
}

type Field = (&'static str, usize, usize);

fn fields(page: &[u8], fields: &[Field]) -> Option<BTreeMap<String, u64>> {
    fields.iter().map(|(name, at, bytes)| Some((name.to_string(), number(page, *at, *bytes)?))).collect()
}

/// Amazon's page: a magic number, then counters of 8 bytes; times in µs.
fn ebs(page: &[u8]) -> Option<BTreeMap<String, u64>> {
    const FIELDS: [Field; 11] = [
        ("read_operations", 8, 8),
        ("write_operations", 16, 8),
        ("read_bytes", 24, 8),
        ("write_bytes", 32, 8),
        ("read_time_us", 40, 8),
        ("write_time_us", 48, 8),
        ("volume_iops_exceeded_us", 56, 8),
        ("volume_throughput_exceeded_us", 64, 8),
        ("instance_iops_exceeded_us", 72, 8),
        ("instance_throughput_exceeded_us", 80, 8),
        ("queue_length", 88, 8),
    ];
    (number(page, 0, 4)? == u64::from(EBS_MAGIC)).then(|| fields(page, &FIELDS)).flatten()
}

/// The parts of SMART that say whether a device is worn or slows itself down (figure 208 of the specification).
fn smart(page: &[u8]) -> Option<BTreeMap<String, u64>> {
    const FIELDS: [Field; 7] = [
        ("critical_warning", 0, 1),
        ("temperature_kelvin", 1, 2),
        ("percentage_used", 5, 1),
        ("thermal_warning_minutes", 192, 4),
        ("thermal_critical_minutes", 196, 4),
        ("thermal_throttle_light_s", 224, 4),
        ("thermal_throttle_heavy_s", 228, 4),
    ];
    fields(page, &FIELDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_have_the_kernels_size() {
        assert_eq!(size_of::<AdminCommand>() as u64, ADMIN_COMMAND >> 16 & 0x3fff);
    }

    #[test]
    fn amazons_page_is_read_only_if_it_is_one() {
        let mut page = vec![0u8; EBS_BYTES];
        assert_eq!(ebs(&page), None);
        page[..4].copy_from_slice(&EBS_MAGIC.to_le_bytes());
        page[56..64].copy_from_slice(&31_000_000u64.to_le_bytes());
        page[80..88].copy_from_slice(&u64::MAX.to_le_bytes());
        let values = ebs(&page).unwrap();
        assert_eq!(values["volume_iops_exceeded_us"], 31_000_000);
        assert_eq!(values["instance_throughput_exceeded_us"], u64::MAX);
        assert_eq!((ebs(&page[..60]), ebs(&[])), (None, None));
    }

    #[test]
    fn smart_tells_what_heat_did() {
        let mut page = vec![0u8; SMART_BYTES];
        page[1..3].copy_from_slice(&343u16.to_le_bytes());
        page[224..228].copy_from_slice(&12u32.to_le_bytes());
        let values = smart(&page).unwrap();
        assert_eq!((values["temperature_kelvin"], values["thermal_throttle_light_s"]), (343, 12));
        assert_eq!(smart(&page[..200]), None);
    }

    #[test]
    fn a_captured_machine_is_not_asked() {
        let layer = Layer { name: "../null".into(), bus: Some("nvme".into()), ..Layer::default() };
        assert!(open(&layer).is_none());
        let null = Layer { name: "null".into(), ..layer };
        assert!(open(&null).is_none(), "a device of characters is none of blocks");
    }
}
