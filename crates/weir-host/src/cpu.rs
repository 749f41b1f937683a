//! Processors: what they are, and how busy.

use std::collections::BTreeMap;

use weir_core::target::{Cpu, CpuLoad};

use crate::error::{BadLine, HostError};
use crate::host::Host;
use crate::tree::{Tree, noted};

impl Host {
    /// Processors online.
    ///
    /// # Errors
    /// When neither `/sys/devices/system/cpu/online` nor `/proc/cpuinfo` can be read.
    pub fn processors(&self) -> Result<u32, HostError> {
        processors(&self.tree)
    }
}

fn processors(tree: &Tree) -> Result<u32, HostError> {
    if let Ok(count) = tree.parsed("/sys/devices/system/cpu/online", parse_cpu_list) {
        return Ok(count);
    }
    let text = tree.text("/proc/cpuinfo")?;
    Ok(text.lines().filter(|line| line.starts_with("processor")).count() as u32)
}

pub(crate) fn read(tree: &Tree, notes: &mut Vec<String>) -> Cpu {
    let info = noted(tree.text("/proc/cpuinfo"), notes).unwrap_or_default();
    Cpu {
        model: model(&info),
        processors: noted(processors(tree), notes).unwrap_or(0),
        governors: governors(tree),
        virtualised: virtualised(tree, &info),
    }
}

/// `0-3,8,10-11` → 7.
pub(crate) fn parse_cpu_list(text: &str) -> Result<u32, BadLine> {
    let mut count = 0;
    for range in text.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) else {
            return Err(BadLine::new(1, "a list of processors", text.trim()));
        };
        if last < first {
            return Err(BadLine::new(1, "a list of processors", text.trim()));
        }
        count = u32::saturating_add(count, (last - first).saturating_add(1));
    }
    Ok(count)
}

fn field<'a>(info: &'a str, key: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix(':').map(str::trim))
}

/// arm64 kernels give numbers instead of a name.
fn model(info: &str) -> Option<String> {
    let arm =
        || Some(format!("implementer {} part {}", field(info, "CPU implementer")?, field(info, "CPU part")?));
    field(info, "model name").map(str::to_string).or_else(arm)
}

fn governors(tree: &Tree) -> BTreeMap<String, u32> {
    let mut governors = BTreeMap::new();
    for name in tree.names("/sys/devices/system/cpu") {
        if let Some(governor) = tree.line(&format!("/sys/devices/system/cpu/{name}/cpufreq/scaling_governor"))
        {
            *governors.entry(governor).or_insert(0) += 1;
        }
    }
    governors
}

/// Why this looks like a virtual machine.
fn virtualised(tree: &Tree, info: &str) -> Option<String> {
    // Names that hypervisors and clouds put into the firmware tables.
    const VENDORS: [&str; 9] =
        ["QEMU", "VMware", "Xen", "Amazon EC2", "Google", "innotek", "OpenStack", "Virtual", "KVM"];
    let vendor = tree.line("/sys/class/dmi/id/sys_vendor").unwrap_or_default();
    let product = tree.line("/sys/class/dmi/id/product_name").unwrap_or_default();
    let board = format!("{vendor} {product}").trim().to_string();
    let is_virtual = VENDORS.iter().any(|name| board.contains(name)) && !board.contains(".metal");
    if is_virtual {
        return Some(board);
    }
    if let Some(hypervisor) = tree.line("/sys/hypervisor/type") {
        return Some(hypervisor);
    }
    let flagged = field(info, "flags").is_some_and(|flags| flags.split(' ').any(|f| f == "hypervisor"));
    flagged.then(|| "hypervisor flag of the processor".to_string())
}

/// Time the processors spent, in ticks, from the first line of `/proc/stat`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ticks {
    pub busy: u64,
    /// The part of `busy` that ran with a lowered priority.
    pub nice: u64,
    pub idle: u64,
    pub iowait: u64,
    pub steal: u64,
}

/// `cpu  user nice system idle iowait irq softirq steal guest guest_nice`; guest time is in user time already.
pub(crate) fn parse_stat(text: &str) -> Result<Ticks, BadLine> {
    let line = text.lines().next().unwrap_or_default();
    let bad = || BadLine::new(1, "cpu and at least 7 numbers", line);
    let numbers: Option<Vec<u64>> =
        line.strip_prefix("cpu ").ok_or_else(bad)?.split_whitespace().map(|n| n.parse().ok()).collect();
    match numbers.as_deref() {
        Some([user, nice, system, idle, iowait, irq, softirq, rest @ ..]) => Ok(Ticks {
            busy: [user, nice, system, irq, softirq].into_iter().fold(0, |sum, n| sum.saturating_add(*n)),
            nice: *nice,
            idle: *idle,
            iowait: *iowait,
            steal: rest.first().copied().unwrap_or(0),
        }),
        _ => Err(bad()),
    }
}

/// Shares between two readings. Stolen time is not idle, but it is not ours either: it counts as neither.
pub(crate) fn load(earlier: &Ticks, later: &Ticks) -> CpuLoad {
    let delta = |pick: fn(&Ticks) -> u64| pick(later).saturating_sub(pick(earlier)) as f64;
    let (busy, iowait, steal) = (delta(|t| t.busy), delta(|t| t.iowait), delta(|t| t.steal));
    let total = busy + iowait + steal + delta(|t| t.idle);
    let percent = |ticks: f64| if total > 0.0 { 100.0 * ticks / total } else { 0.0 };
    CpuLoad { busy_percent: percent(busy), iowait_percent: percent(iowait), steal_percent: percent(steal) }
}

/// `0.20 0.18 0.12 1/80 11206`.
pub(crate) fn parse_loadavg(text: &str) -> Result<[f64; 3], BadLine> {
    let mut averages = text.split_whitespace().map(|word| word.parse().ok());
    let mut next =
        || averages.next().flatten().ok_or_else(|| BadLine::new(1, "three load averages", text.trim()));
    Ok([next()?, next()?, next()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_counted() {
        for (text, count) in [("0-3,8,10-11\n", 7), ("0\n", 1), ("0-127", 128)] {
            assert_eq!(parse_cpu_list(text), Ok(count), "{text}");
        }
        assert!(parse_cpu_list("0-x").is_err() && parse_cpu_list("").is_err());
    }

    #[test]
    fn shares_come_from_two_readings() {
        let earlier = parse_stat("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 …").unwrap();
        let later = parse_stat("cpu  130 5 60 840 60 3 2 0 30 0").unwrap();
        let load = load(&earlier, &later);
        assert_eq!((load.busy_percent, load.iowait_percent), (50.0, 10.0));
        assert_eq!((later.busy, later.nice), (200, 5));
        assert_eq!(super::load(&later, &later), CpuLoad::default());
        for bad in ["", "cpu  1 2 3", "cpu0 1 2 3 4 5 6 7 8", "cpu  1 2 3 4 x 6 7 8"] {
            assert!(parse_stat(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_loadavg("0.20 0.18 12.5 1/80 11206").unwrap(), [0.2, 0.18, 12.5]);
        assert!(parse_loadavg("0.20 0.18").is_err());
    }
}
