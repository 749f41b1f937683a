//! The conditions as a few rows for people. Everything else stays in the record.

use super::doctor::Fact;
use super::notes::DoctorNotes;
use crate::target::{Conditions, FileSystem, Layer, LayerKind, TargetFacts};
use crate::units::{Bytes, megabytes_per_second, per_second};

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
    let layers: Vec<String> = target.stack.iter().filter(|l| l.beneath_loop.is_none()).map(layer).collect();
    (!layers.is_empty()).then(|| row("device", layers.join(" → "), "/sys/block"))
}

fn layer(layer: &Layer) -> String {
    let detail = match &layer.kind {
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
    let queue = target.device_queue()?;
    let mut parts = Vec::new();
    parts.extend(queue.scheduler.as_ref().map(|s| format!("scheduler {s}")));
    parts.extend(queue.nr_requests.map(|n| format!("{n} requests")));
    parts.extend(queue.write_cache.as_ref().map(|c| format!("cache {c}")));
    parts.extend(queue.rotational.map(|r| if r { "claims to rotate" } else { "not rotating" }.to_string()));
    parts.extend(queue.wbt_lat_usec.map(|us| format!("wbt {us} µs")));
    let device = target.device.as_deref().unwrap_or("");
    Some(row("queue", parts.join(", "), format!("/sys/block/{device}/queue")))
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
