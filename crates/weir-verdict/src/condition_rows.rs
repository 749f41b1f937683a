//! The conditions as a few rows for people. Everything else stays in the record.

use super::doctor::Fact;
use super::notes::DoctorNotes;
use weir_core::target::{Conditions, FileSystem, Layer, LayerKind, Queue, TargetFacts};
use weir_core::units::{Bytes, megabytes_per_second, per_second};

/// Rows in reading order; what is unknown has no row.
pub fn rows(conditions: &Conditions, notes: &DoctorNotes) -> Vec<Fact> {
    let mut rows = of_conditions(conditions);
    rows.extend(others(notes));
    rows
}

/// Those about target and machine.
pub fn of_conditions(conditions: &Conditions) -> Vec<Fact> {
    let mut rows = Vec::new();
    if let Some(target) = &conditions.target {
        rows.extend(target.file_system.as_ref().map(file_system));
        rows.extend(stack(target));
        rows.extend(queue(target));
        rows.extend(limits(target));
    }
    rows.push(memory(conditions));
    rows.push(machine(conditions));
    rows
}

fn row(label: &str, value: String, source: impl Into<String>) -> Fact {
    Fact { label: label.into(), value, source: source.into() }
}

fn file_system(fs: &FileSystem) -> Fact {
    let room = match (fs.free_bytes, fs.size_bytes) {
        (Some(free), Some(size)) => format!(", {} of {} free", Bytes(free), Bytes(size)),
        _ => String::new(),
    };
    let value = format!("{} on {} ({}){room}", fs.kind, fs.mount_point, fs.options.join(","));
    row("file system", value, "/proc/self/mountinfo")
}

fn stack(target: &TargetFacts) -> Option<Fact> {
    let visible: Vec<&Layer> = target.stack.iter().filter(|layer| layer.beneath_loop.is_none()).collect();
    let stands_alone = |layer: &&&Layer| !visible.iter().any(|above| above.over.contains(&layer.name));
    let tops: Vec<&Layer> = visible.iter().filter(stands_alone).copied().collect();
    (!tops.is_empty()).then(|| row("device", side_by_side(&tops, &visible), "/sys/block"))
}

/// Layers beside each other, each with what it stands on.
fn side_by_side(layers: &[&Layer], visible: &[&Layer]) -> String {
    let downwards = |top: &&Layer| {
        let beneath: Vec<&Layer> = visible.iter().filter(|l| top.over.contains(&l.name)).copied().collect();
        match beneath.len() {
            0 => layer(top),
            1 => format!("{} → {}", layer(top), side_by_side(&beneath, visible)),
            _ => format!("{} → [{}]", layer(top), side_by_side(&beneath, visible)),
        }
    };
    layers.iter().map(downwards).collect::<Vec<_>>().join(" + ")
}

fn layer(layer: &Layer) -> String {
    let detail = match &layer.kind {
        LayerKind::Dm { dm_name, dm_type } if dm_type.is_empty() => {
            format!("{} {dm_name}", layer.kind.word())
        }
        LayerKind::Dm { dm_name, dm_type } => format!("{dm_type} {dm_name}"),
        LayerKind::Md { level, raid_disks, .. } => format!("{level} of {raid_disks}"),
        LayerKind::Loop { direct_io, .. } => {
            format!("loop, direct I/O {}", if *direct_io { "on" } else { "off" })
        }
        kind => [Some(kind.word()), layer.bus.as_deref(), layer.model.as_deref()]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(", "),
    };
    format!("{} ({})", layer.name, detail.trim())
}

fn queue(target: &TargetFacts) -> Option<Fact> {
    let layers = target.request_layers();
    // Those that are alike are told of once.
    let mut alike: Vec<(Vec<&str>, String)> = Vec::new();
    for layer in &layers {
        let Some(text) = layer.queue.as_ref().map(settings) else { continue };
        match alike.iter_mut().find(|(_, known)| *known == text) {
            Some((names, _)) => names.push(&layer.name),
            None => alike.push((vec![&layer.name], text)),
        }
    }
    let (names, _) = alike.first()?;
    let source = format!("/sys/block/{}/queue", names.first()?);
    let is_one = layers.len() == 1;
    let texts = alike.iter().map(|(names, text)| match is_one {
        true => text.clone(),
        false => format!("{}: {text}", names.join(", ")),
    });
    Some(row("queue", texts.collect::<Vec<_>>().join("; "), source))
}

fn settings(queue: &Queue) -> String {
    let mut parts = Vec::new();
    parts.extend(queue.scheduler.as_ref().map(|s| format!("scheduler {s}")));
    parts.extend(queue.nr_requests.map(|n| format!("{n} requests")));
    parts.extend(queue.write_cache.as_ref().map(|c| format!("cache {c}")));
    parts.extend(queue.rotational.map(|r| if r { "claims to rotate" } else { "not rotating" }.to_string()));
    parts.extend(queue.wbt_lat_usec.map(|us| format!("wbt {us} µs")));
    parts.join(", ")
}

fn limits(target: &TargetFacts) -> Option<Fact> {
    let unit = |key: &str, value: u64| match key {
        "rbps" | "wbps" => megabytes_per_second(value as f64),
        "riops" | "wiops" => format!("{} IOPS", per_second(value as f64)),
        _ => format!("{value} µs"),
    };
    let side = |key: &str| {
        if key.starts_with('r') {
            "read"
        } else if key.starts_with('w') {
            "write"
        } else {
            key
        }
        .to_string()
    };
    let texts: Vec<String> = target
        .throttles
        .iter()
        .flat_map(|t| t.limits.iter().map(move |(k, v)| format!("{} {} {}", t.device, side(k), unit(k, *v))))
        .collect();
    (!texts.is_empty()).then(|| row("cgroup limits", texts.join(", "), "/sys/fs/cgroup"))
}

fn memory(conditions: &Conditions) -> Fact {
    let mut value = Bytes(conditions.memory.total_bytes).to_string();
    let limit = |name: &str, bytes: Option<u64>| bytes.map(|b| format!(", {name} {}", Bytes(b)));
    value.extend(limit("writers wait at dirty", conditions.vm.dirty_threshold_bytes));
    value.extend(limit("write-back starts at", conditions.vm.dirty_background_threshold_bytes));
    row("memory", value, "/proc/meminfo, /proc/vmstat")
}

fn machine(conditions: &Conditions) -> Fact {
    let cpu = &conditions.cpu;
    let model = cpu.model.as_deref().unwrap_or("unknown model");
    let kind = if cpu.virtualised.is_some() { ", virtual machine" } else { "" };
    let value = format!("Linux {}, {} × {model}{kind}", conditions.kernel, cpu.processors);
    row("machine", value, "/proc/cpuinfo")
}

fn others(notes: &DoctorNotes) -> Option<Fact> {
    let others = &notes.others;
    if others.observed_ns == 0 {
        return None;
    }
    let mut value = format!("processors {:.0} % busy", others.cpu_busy * 100.0);
    if let (Some(read), Some(write)) = (others.read_iops, others.write_iops) {
        value.push_str(&format!(", {} reads/s, {} writes/s", per_second(read), per_second(write)));
    }
    value.extend(others.bytes_per_second.map(|b| format!(", {}", megabytes_per_second(b))));
    value.push_str(&format!(", {} dirty", others.dirty));
    Some(row("others, before", value, "/proc/stat, /proc/diskstats, /proc/meminfo"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer_of(name: &str, kind: LayerKind, over: &[&str], scheduler: &str) -> Layer {
        Layer {
            name: name.into(),
            kind,
            over: over.iter().map(ToString::to_string).collect(),
            queue: Some(Queue { scheduler: Some(scheduler.into()), ..Queue::default() }),
            ..Layer::default()
        }
    }

    #[test]
    fn legs_stand_beside_each_other_and_queues_are_those_of_the_disks() {
        let lvm = LayerKind::Dm { dm_name: "vg-db".into(), dm_type: "LVM".into() };
        let raid = LayerKind::Md {
            level: "raid1".into(),
            raid_disks: 2,
            degraded: 0,
            chunk_bytes: 0,
            state: "clean".into(),
            sync_action: "idle".into(),
        };
        for (second, expected) in [
            ("none", "sda, sdb: scheduler none"),
            ("mq-deadline", "sda: scheduler none; sdb: scheduler mq-deadline"),
        ] {
            let target = TargetFacts {
                stack: vec![
                    layer_of("dm-0", lvm.clone(), &["md0"], "own"),
                    layer_of("md0", raid.clone(), &["sda", "sdb"], "own"),
                    layer_of("sda", LayerKind::Disk, &[], "none"),
                    layer_of("sdb", LayerKind::Disk, &[], second),
                ],
                device: Some("md0".into()),
                ..TargetFacts::default()
            };
            let stack = stack(&target).unwrap().value;
            assert_eq!(stack, "dm-0 (LVM vg-db) → md0 (raid1 of 2) → [sda (disk) + sdb (disk)]");
            assert_eq!(queue(&target).unwrap().value, expected);
        }
        // weir-fleet takes the first word for the kind (`crates/weir-fleet/src/figures.rs`).
        let plain = LayerKind::Dm { dm_name: "db".into(), dm_type: String::new() };
        assert_eq!(layer(&layer_of("dm-1", plain, &[], "own")), "dm-1 (dm db)");
    }
}
