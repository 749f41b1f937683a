//! One block device under `/sys/class/block`, see Documentation/ABI/stable/sysfs-block.

use weir_core::target::{DeviceNumber, Layer, LayerKind, Queue};
use weir_core::units::SECTOR_BYTES;

use crate::error::HostError;
use crate::tree::Tree;

/// The kernel's name of a device number.
pub(crate) fn name_of(tree: &Tree, number: DeviceNumber) -> Option<String> {
    tree.link_name(&format!("/sys/dev/block/{number}"))
}

/// The kernel's name of a path under `/dev` as far as names alone tell: `/dev/sda1`, `/dev/mapper/NAME`.
pub(crate) fn name_of_path(tree: &Tree, path: &str) -> Option<String> {
    let name = path.strip_prefix("/dev/")?;
    if let Some(dm_name) = name.strip_prefix("mapper/") {
        let named = |disk: &String| tree.line(&format!("/sys/class/block/{disk}/dm/name"));
        return tree.names("/sys/class/block").into_iter().find(|d| named(d).as_deref() == Some(dm_name));
    }
    // The kernel writes `!` where a device's name has a slash (cciss!c0d0).
    let name = name.replace('/', "!");
    tree.exists(&format!("/sys/class/block/{name}/dev")).then_some(name)
}

/// The device's number.
pub(crate) fn number_of(tree: &Tree, name: &str) -> Result<DeviceNumber, HostError> {
    tree.parsed(&format!("/sys/class/block/{name}/dev"), |text| {
        DeviceNumber::parse(text).ok_or_else(|| crate::error::BadLine::new(1, "major:minor", text.trim()))
    })
}

/// Whether I/O to a device, which is there, waits in requests of its own: as [`Layer::has_requests`], without reading all else of it.
pub(crate) fn has_requests(tree: &Tree, name: &str) -> bool {
    hardware_queues(tree, name) > 0 || !kind(tree, name, &mut Vec::new()).passes_on()
}

fn hardware_queues(tree: &Tree, name: &str) -> u64 {
    tree.names(&format!("/sys/class/block/{name}/mq")).len() as u64
}

/// One layer; what it stands on is named, not read. Attributes that are there but cannot be understood are noted.
pub(crate) fn layer(tree: &Tree, name: &str, notes: &mut Vec<String>) -> Result<Layer, HostError> {
    let at = |file: &str| format!("/sys/class/block/{name}/{file}");
    let kind = kind(tree, name, notes);
    let over = match &kind {
        LayerKind::Partition { disk, .. } => vec![disk.clone()],
        _ => tree.names(&at("slaves")),
    };
    let queue = (!matches!(kind, LayerKind::Partition { .. })).then(|| queue(tree, name, notes));
    let model = [tree.line(&at("device/vendor")), tree.line(&at("device/model"))];
    Ok(Layer {
        name: name.to_string(),
        number: number_of(tree, name)?,
        over,
        beneath_loop: None,
        size_bytes: tree.optional::<u64>(&at("size"), notes).unwrap_or(0).saturating_mul(SECTOR_BYTES),
        read_only: tree.optional::<u8>(&at("ro"), notes) == Some(1),
        model: model_name(model),
        firmware: tree.line(&at("device/firmware_rev")).or_else(|| tree.line(&at("device/rev"))),
        bus: tree.link_name(&at("device/subsystem")),
        queue,
        kind,
    })
}

/// Vendor and model in one line. PCI numbers and the placeholder `ATA` tell nobody anything.
fn model_name([vendor, model]: [Option<String>; 2]) -> Option<String> {
    let vendor = vendor.filter(|v| !v.starts_with("0x") && v != "ATA");
    match (vendor, model) {
        (Some(vendor), Some(model)) => Some(format!("{vendor} {model}")),
        (None, model) => model,
        (vendor, None) => vendor,
    }
}

fn kind(tree: &Tree, name: &str, notes: &mut Vec<String>) -> LayerKind {
    let at = |file: &str| format!("/sys/class/block/{name}/{file}");
    if tree.exists(&at("partition")) {
        return partition(tree, name, notes);
    }
    if tree.exists(&at("dm/name")) {
        let uuid = tree.line(&at("dm/uuid")).unwrap_or_default();
        let dm_type = uuid.split_once('-').map(|(prefix, _)| prefix.to_string()).unwrap_or_default();
        return LayerKind::Dm { dm_name: tree.line(&at("dm/name")).unwrap_or_default(), dm_type };
    }
    if tree.exists(&at("md/level")) {
        return md(tree, name, notes);
    }
    if let Some(backing_file) = tree.line(&at("loop/backing_file")) {
        return LayerKind::Loop {
            backing_file,
            file_system: None,
            direct_io: tree.optional::<u8>(&at("loop/dio"), notes) == Some(1),
            offset_bytes: tree.optional(&at("loop/offset"), notes).unwrap_or(0),
        };
    }
    kind_by_name(name)
}

/// Drivers that sysfs does not distinguish.
fn kind_by_name(name: &str) -> LayerKind {
    let driver = name.trim_end_matches(|c: char| c.is_ascii_digit());
    match driver {
        "zram" | "ram" | "pmem" => LayerKind::Memory,
        "nbd" | "rbd" | "drbd" | "ublkb" => LayerKind::Remote,
        "bcache" => LayerKind::Cache,
        _ => LayerKind::Disk,
    }
}

fn partition(tree: &Tree, name: &str, notes: &mut Vec<String>) -> LayerKind {
    let at = |file: &str| format!("/sys/class/block/{name}/{file}");
    // The link leads to …/block/sda/sda1, so the disk is the folder above.
    let link = tree.link(&format!("/sys/class/block/{name}"));
    let disk =
        link.as_deref().and_then(|l| l.parent()?.file_name()).map(|d| d.to_string_lossy().into_owned());
    LayerKind::Partition {
        disk: disk.unwrap_or_default(),
        number: tree.optional(&at("partition"), notes).unwrap_or(0),
        start_bytes: tree.optional::<u64>(&at("start"), notes).unwrap_or(0).saturating_mul(SECTOR_BYTES),
    }
}

fn md(tree: &Tree, name: &str, notes: &mut Vec<String>) -> LayerKind {
    let at = |file: &str| format!("/sys/class/block/{name}/md/{file}");
    LayerKind::Md {
        level: tree.line(&at("level")).unwrap_or_default(),
        raid_disks: tree.optional(&at("raid_disks"), notes).unwrap_or(0),
        degraded: tree.optional(&at("degraded"), notes).unwrap_or(0),
        chunk_bytes: tree.optional(&at("chunk_size"), notes).unwrap_or(0),
        state: tree.line(&at("array_state")).unwrap_or_default(),
        sync_action: tree.line(&at("sync_action")).unwrap_or_default(),
    }
}

fn queue(tree: &Tree, name: &str, notes: &mut Vec<String>) -> Queue {
    let at = |file: &str| format!("/sys/class/block/{name}/queue/{file}");
    let mut number = |file: &str| tree.optional::<u64>(&at(file), notes);
    let mut queue = Queue {
        rotational: number("rotational").map(|v| v == 1),
        fua: number("fua").map(|v| v == 1),
        nr_requests: number("nr_requests"),
        max_sectors_kb: number("max_sectors_kb"),
        max_hw_sectors_kb: number("max_hw_sectors_kb"),
        logical_block_bytes: number("logical_block_size"),
        physical_block_bytes: number("physical_block_size"),
        minimum_io_bytes: number("minimum_io_size"),
        optimal_io_bytes: number("optimal_io_size"),
        read_ahead_kb: number("read_ahead_kb"),
        nomerges: number("nomerges"),
        rq_affinity: number("rq_affinity"),
        iostats: number("iostats").map(|v| v == 1),
        io_poll: number("io_poll").map(|v| v == 1),
        dax: number("dax").map(|v| v == 1),
        discard_max_bytes: number("discard_max_bytes"),
        ..Queue::default()
    };
    queue.wbt_lat_usec = tree.optional(&at("wbt_lat_usec"), notes);
    queue.write_cache = tree.line(&at("write_cache"));
    queue.zoned = tree.line(&at("zoned"));
    queue.hardware_queues = Some(hardware_queues(tree, name)).filter(|queues| *queues > 0);
    (queue.scheduler, queue.schedulers) = schedulers(&tree.line(&at("scheduler")).unwrap_or_default());
    queue
}

/// `none [mq-deadline] kyber` → the one in brackets, and all of them. A device without a choice says `none`.
fn schedulers(text: &str) -> (Option<String>, Vec<String>) {
    let bare = |word: &str| word.trim_matches(['[', ']']).to_string();
    let all: Vec<String> = text.split_whitespace().map(bare).collect();
    let chosen = text.split_whitespace().find(|word| word.starts_with('[')).map(bare);
    (chosen.or_else(|| all.first().filter(|_| all.len() == 1).cloned()), all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedulers_and_models_read_as_people_name_them() {
        for (text, chosen, count) in [
            ("none [mq-deadline] kyber bfq", Some("mq-deadline"), 4),
            ("[none]", Some("none"), 1),
            ("none", Some("none"), 1),
            ("", None, 0),
            ("noop deadline", None, 2),
        ] {
            let (scheduler, all) = schedulers(text);
            assert_eq!((scheduler.as_deref(), all.len()), (chosen, count), "{text}");
        }
        let some = |text: &str| Some(text.to_string());
        assert_eq!(model_name([some("ATA"), some("ST8000NM")]), some("ST8000NM"));
        assert_eq!(model_name([some("DELL"), some("PERC H730P")]), some("DELL PERC H730P"));
        assert_eq!(model_name([some("0x1af4"), None]), None);
    }
}
