//! Which devices and hosts are slow, and why.
//!
//! A device is slow if, in most of its windows and loads, one of its percentiles is beyond 3.5 robust deviations and 30 % of the
//! median of its peers: once is chance. The cause is the stage whose time exceeds the peers' by most; of time before the device,
//! what the syncs of the host say they waited for.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A row of the question: a figure of a device that is beyond its peers' in some bins, or that could be compared in most.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Model, firmware and scheduler.
    pub peers: String,
    /// Host.
    pub host: String,
    /// Device; empty for syncs and waits of the host.
    pub device: String,
    /// `write d2c` and such; `sync`; `wait CAUSE`.
    pub what: String,
    /// 500 for the median, 990 for the 99th percentile; 0 for waits, which are a mean by sync.
    pub permille: i64,
    /// Bins in which it could be compared; without any the rest is 0.
    pub bins: i64,
    /// Those in which it is slow.
    pub slow_bins: i64,
    /// The fewest devices of such a bin; where there is none, the most of another.
    pub peers_n: i64,
    /// Median of its figures, ns.
    pub own_ns: f64,
    /// Median of the peers' medians, ns.
    pub usual_ns: f64,
}

/// Fewer bins than this say nothing.
pub(super) const BINS_MIN: i64 = 3;

impl Figure {
    pub(super) fn is_of_waits(&self) -> bool {
        self.permille == 0
    }

    fn is_slow(&self) -> bool {
        self.bins >= BINS_MIN && self.slow_bins * 10 >= self.bins * 7
    }

    fn excess_ns(&self) -> f64 {
        self.own_ns - self.usual_ns
    }
}

/// Why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The device takes long.
    Device,
    /// The device takes long for one request in a hundred, and not for most.
    DeviceTail,
    /// Requests wait for the device, behind the host's own.
    Queue,
    /// They wait behind writeback of other processes.
    Others,
    /// A limit on IOPS or bandwidth.
    Throttled,
    /// Syncs take long, and of what is seen neither device nor queue nor limits do.
    Elsewhere,
}

impl Cause {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Cause::Device => "device",
            Cause::DeviceTail => "device, the slowest requests only",
            Cause::Queue => "queue",
            Cause::Others => "write-back of others",
            Cause::Throttled => "throttled",
            Cause::Elsewhere => "not seen at the device",
        }
    }
}

/// A slow device, or a host whose syncs are slow without one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Slow {
    /// Host.
    pub host: String,
    /// Device; empty where the host is meant.
    pub device: String,
    /// What its peers have in common.
    pub peers: String,
    /// How many they are.
    pub peers_n: i64,
    /// Why.
    pub cause: Cause,
    /// The figure that says so: the one that exceeds the peers' by most.
    pub figure: Figure,
}

/// Judges. The worst come first, by how often they exceed their peers.
pub fn slow(rows: &[Figure]) -> Vec<Slow> {
    let mut hosts: BTreeMap<&str, Vec<&Figure>> = BTreeMap::new();
    rows.iter().filter(|row| row.is_slow()).for_each(|row| hosts.entry(&row.host).or_default().push(row));
    let mut all = Vec::new();
    for figures in hosts.values() {
        let waits: Vec<&Figure> =
            figures.iter().copied().filter(|row| row.what.starts_with("wait ")).collect();
        let mut devices: BTreeMap<&str, Vec<&Figure>> = BTreeMap::new();
        for row in figures.iter().filter(|row| !row.device.is_empty()) {
            devices.entry(&row.device).or_default().push(row);
        }
        let found = all.len();
        for figures in devices.values() {
            all.extend(device(figures, &waits));
        }
        if all.len() == found {
            all.extend(host(figures, &waits));
        }
    }
    let factor = |slow: &Slow| slow.figure.own_ns / slow.figure.usual_ns.max(1.0);
    all.sort_by(|a, b| factor(b).total_cmp(&factor(a)).then_with(|| a.host.cmp(&b.host)));
    all
}

/// The figure that exceeds its peers' by most.
fn worst<'a>(figures: impl Iterator<Item = &'a Figure>) -> Option<&'a Figure> {
    figures.max_by(|a, b| a.excess_ns().total_cmp(&b.excess_ns()))
}

fn device(figures: &[&Figure], waits: &[&Figure]) -> Option<Slow> {
    let of = |permille: i64| figures.iter().copied().filter(move |row| row.permille == permille);
    // Where most requests are slow, their stage says why; the slowest have waited for the others, too.
    let most = worst(of(500)).or_else(|| worst(of(990)))?;
    let at_device = most.what.ends_with("d2c");
    let queued = of(500).any(|row| row.what.ends_with("g2d"));
    let cause = match (at_device, most.permille, wait_cause(waits)) {
        // Requests of others make the device slower for all, too.
        (_, 500, Some(cause @ (Cause::Others | Cause::Throttled))) if queued => cause,
        (true, 500, _) => Cause::Device,
        (true, _, _) => Cause::DeviceTail,
        (false, _, _) => Cause::Queue,
    };
    Some(concluded(most, cause))
}

fn host(figures: &[&Figure], waits: &[&Figure]) -> Option<Slow> {
    let most = worst(figures.iter().copied().filter(|row| row.what == "sync"))?;
    Some(concluded(most, wait_cause(waits).unwrap_or(Cause::Elsewhere)))
}

fn concluded(figure: &Figure, cause: Cause) -> Slow {
    Slow {
        host: figure.host.clone(),
        device: figure.device.clone(),
        peers: figure.peers.clone(),
        peers_n: figure.peers_n,
        cause,
        figure: figure.clone(),
    }
}

/// By what of waits exceeds the peers' most.
fn wait_cause(waits: &[&Figure]) -> Option<Cause> {
    let most = worst(waits.iter().copied())?;
    Some(match most.what.trim_start_matches("wait ") {
        "others" | "own_others" => Cause::Others,
        "held" => Cause::Throttled,
        "queue" => Cause::Queue,
        "device" | "device_flush" => Cause::Device,
        _ => Cause::Elsewhere,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(device: &str, what: &str, permille: i64, own_ns: f64, usual_ns: f64) -> Figure {
        Figure {
            peers: "NV-A1, 1.0, none".into(),
            host: "db1".into(),
            device: device.into(),
            what: what.into(),
            permille,
            bins: 12,
            slow_bins: 11,
            peers_n: 40,
            own_ns,
            usual_ns,
        }
    }

    fn causes(rows: &[Figure]) -> Vec<(String, Cause)> {
        slow(rows).into_iter().map(|slow| (slow.device, slow.cause)).collect()
    }

    #[test]
    fn each_cause_is_named() {
        let queue = figure("sda", "write g2d", 500, 9e6, 1e6);
        let device = figure("sda", "write d2c", 500, 3e6, 1e6);
        let tail = figure("sda", "write d2c", 990, 90e6, 3e6);
        let sync = figure("", "sync", 990, 90e6, 3e6);
        let others = figure("", "wait others", 0, 5e6, 1e6);
        let held = figure("", "wait held", 0, 50e6, 0.0);
        for (rows, device, cause) in [
            (vec![device.clone()], "sda", Cause::Device),
            (
                vec![device.clone(), tail.clone(), figure("sda", "write g2d", 500, 1.2e6, 1e6)],
                "sda",
                Cause::Device,
            ),
            (vec![tail.clone(), sync.clone()], "sda", Cause::DeviceTail),
            (vec![queue.clone(), device.clone()], "sda", Cause::Queue),
            (vec![queue.clone(), device.clone(), others.clone(), sync.clone()], "sda", Cause::Others),
            (vec![device.clone(), others.clone()], "sda", Cause::Device),
            (vec![sync.clone(), held.clone(), others.clone()], "", Cause::Throttled),
            (vec![sync.clone()], "", Cause::Elsewhere),
            (vec![sync.clone(), figure("", "wait unseen", 0, 50e6, 0.0)], "", Cause::Elsewhere),
        ] {
            assert_eq!(causes(&rows), [(device.to_string(), cause)], "{rows:?}");
        }
        assert_eq!(causes(&[held, others]), [], "waits alone make nobody slow");
    }

    #[test]
    fn once_is_chance() {
        let few = Figure { bins: 12, slow_bins: 8, ..figure("sda", "read d2c", 500, 9e6, 1e6) };
        let short = Figure { bins: 2, slow_bins: 2, ..few.clone() };
        assert_eq!(causes(&[few, short]), []);
    }
}
