//! The state as metrics in the OpenMetrics text format, version 1.0.0.

use std::sync::Arc;

use weir_control::{DeviceState, SensorSource, Standing, State};
use weir_report::guard as words;

use crate::daemon::openmetrics::{OfDevice, Page};
use crate::daemon::{Board, scrape};

const STANDINGS: [&str; 4] = ["guarding", "shadow", "stood-down", "gone"];
const SENSORS: [(&str, SensorSource); 3] = [
    ("syscalls", SensorSource::Syscalls),
    ("canary", SensorSource::Canary),
    ("diskstats", SensorSource::Diskstats),
];

/// A state as a page of metrics.
pub fn exposition(state: &State, started_unix_seconds: f64) -> String {
    let mut page = Page::default();
    page.family("weir_guard_build", "info", "", "Version of weir.");
    page.sample("weir_guard_build_info", &[("version", &state.weir_version)], 1);
    page.family("weir_guard_shadow", "gauge", "", "1 where the guard decides and changes nothing.");
    page.sample("weir_guard_shadow", &[], u8::from(state.shadow));
    page.family("weir_guard_start_seconds", "gauge", "seconds", "When the guard began, Unix time.");
    page.sample("weir_guard_start_seconds", &[], started_unix_seconds);
    own_cost(&mut page, state);
    limits(&mut page, &state.devices);
    latencies(&mut page, &state.devices);
    amounts(&mut page, &state.devices);
    decisions(&mut page, &state.devices);
    sensors(&mut page, &state.devices);
    page.end()
}

fn own_cost(page: &mut Page, state: &State) {
    page.family("weir_guard_cpu_seconds", "counter", "seconds", "Processor time of the guard itself.");
    page.sample("weir_guard_cpu_seconds_total", &[], state.cost.cpu_ns as f64 / 1e9);
    page.family("weir_guard_resident_memory_bytes", "gauge", "bytes", "Memory of the guard itself.");
    page.sample("weir_guard_resident_memory_bytes", &[], state.cost.rss_bytes);
    page.family("weir_guard_late_looks", "counter", "", "Samples that came too late.");
    page.sample("weir_guard_late_looks_total", &[], state.cost.late_looks);
}

fn limits(page: &mut Page, devices: &[DeviceState]) {
    page.each(
        "weir_guard_limit_bytes",
        "bytes",
        "Limit in force: of dirty pages, or of what a cgroup may write in a tenth of a second.",
        devices,
        |device| Some(device.second.limit_bytes),
    );
    page.each("weir_guard_limit_saved_bytes", "bytes", "Baseline limit.", devices, |device| {
        Some(device.saved_bytes)
    });
    page.each("weir_guard_limit_floor_bytes", "bytes", "Least limit allowed.", devices, |device| {
        Some(device.floor_bytes)
    });
    page.each(
        "weir_guard_backlog_bytes",
        "bytes",
        "Dirty pages and those being written.",
        devices,
        |device| Some(device.second.backlog_bytes),
    );
    page.each("weir_guard_holding", "", "1 while the guard's limit is in force.", devices, |device| {
        Some(u8::from(device.second.holding))
    });
    let help = "What bulk writers' own cgroups may have dirty, while they are held (memory.high).";
    page.each("weir_guard_private_dirty_bytes", "bytes", help, devices, |device| {
        device.second.private_dirty_bytes
    });
    let help =
        "What bulk writers' own cgroups may write in a second, while they are paced (io.max, or cpu.max).";
    page.each("weir_guard_private_pace_bytes", "bytes", help, devices, |device| device.second.private_pace);
    let help = "Cgroups of bulk writers that are held by limits of their own.";
    page.each("weir_guard_private_cgroups", "", help, devices, |device| Some(device.private_cgroups));
    let help = "What the guard does with the device.";
    page.family("weir_guard_standing", "stateset", "", help);
    for device in devices {
        let now = match device.standing {
            Standing::Guarding => "guarding",
            Standing::Shadow => "shadow",
            Standing::StoodDown { .. } => "stood-down",
            Standing::Gone => "gone",
        };
        for name in STANDINGS {
            let labels = [("device", device.name.as_str()), ("weir_guard_standing", name)];
            page.sample("weir_guard_standing", &labels, u8::from(name == now));
        }
    }
}

fn latencies(page: &mut Page, devices: &[DeviceState]) {
    let help = "Durations of syncs: quantiles of the last second, count and sum since the start.";
    page.family("weir_guard_sync_seconds", "summary", "seconds", help);
    for device in devices {
        let name = ("device", device.name.as_str());
        let second = &device.second;
        for (quantile, us) in [("0.5", second.p50_us), ("0.99", second.p99_us), ("1", second.max_us)] {
            if let Some(us) = us {
                page.sample("weir_guard_sync_seconds", &[name, ("quantile", quantile)], us as f64 / 1e6);
            }
        }
        page.sample("weir_guard_sync_seconds_count", &[name], device.totals.syncs);
        page.sample("weir_guard_sync_seconds_sum", &[name], device.totals.sync_ns as f64 / 1e9);
    }
    let seconds = |us: u64| us as f64 / 1e6;
    let help = "Target of the 99th percentile, as far as it is known.";
    page.each("weir_guard_sync_target_seconds", "seconds", help, devices, |device| {
        device.second.target_us.map(seconds)
    });
    let help = "Greatest age of a sync under way in the last second.";
    page.each("weir_guard_sync_oldest_seconds", "seconds", help, devices, |device| {
        Some(seconds(device.second.oldest_us))
    });
    let help = "Share of their undisturbed rate that syncs keep, where it is known.";
    page.each("weir_guard_sync_kept_ratio", "ratio", help, devices, |device| device.second.kept);
    let help = "Seconds with syncs.";
    page.counter("weir_guard_sync_watched_seconds", "seconds", help, devices, |device| device.totals.seconds);
    let help = "Seconds whose syncs took longer than the target.";
    page.counter("weir_guard_sync_over_target_seconds", "seconds", help, devices, |device| {
        device.totals.seconds_over_target
    });
}

fn amounts(page: &mut Page, devices: &[DeviceState]) {
    let help = "Written to the device, by all.";
    page.counter("weir_guard_written_bytes", "bytes", help, devices, |device| device.totals.written_bytes);
    let help = "Written to the device by bulk writers, as far as the writers are known.";
    page.counter("weir_guard_bulk_written_bytes", "bytes", help, devices, |device| device.totals.bulk_bytes);
    let help = "Time that bulk writers were throttled, summed over their threads.";
    page.counter("weir_guard_bulk_held_seconds", "seconds", help, devices, |device| {
        device.totals.bulk_held_ms as f64 / 1e3
    });
    let help = "Time that the protected were throttled for their own pages, summed over their threads.";
    page.counter("weir_guard_own_held_seconds", "seconds", help, devices, |device| {
        device.totals.own_held_ms as f64 / 1e3
    });
}

fn decisions(page: &mut Page, devices: &[DeviceState]) {
    page.family("weir_guard_limit_changes", "counter", "", "Limits set, by the reason and the direction.");
    for device in devices {
        for (direction, counts) in [("cut", &device.totals.cuts), ("raise", &device.totals.raises)] {
            for count in counts {
                let branch = words::branch(count.branch);
                let labels =
                    [("device", device.name.as_str()), ("branch", branch.as_str()), ("direction", direction)];
                page.sample("weir_guard_limit_changes_total", &labels, count.times);
            }
        }
    }
    let help = "Limits that the kernel refused.";
    page.counter("weir_guard_limit_refused", "", help, devices, |device| device.totals.refused);
    let help = "Times that another program changed the limit and the guard yielded.";
    page.counter("weir_guard_stood_down", "", help, devices, |device| device.totals.stood_down);
}

fn sensors(page: &mut Page, devices: &[DeviceState]) {
    page.family("weir_guard_sensor", "stateset", "", "Where latencies come from.");
    for device in devices {
        for (name, source) in SENSORS {
            let labels = [("device", device.name.as_str()), ("weir_guard_sensor", name)];
            page.sample("weir_guard_sensor", &labels, u8::from(device.sensor.source == source));
        }
    }
    let help = "Time since the sensor last answered.";
    page.each("weir_guard_sensor_silent_seconds", "seconds", help, devices, |device| {
        Some(device.sensor.silent_ns as f64 / 1e9)
    });
    let help = "Syncs that the sensor could not follow.";
    page.counter("weir_guard_sensor_lost", "", help, devices, |device| device.totals.lost);
}

impl OfDevice for DeviceState {
    fn device(&self) -> &str {
        &self.name
    }
}

/// The page of a guard's newest state, written once however often it is asked for.
pub struct Metrics {
    board: Board<State>,
    started_unix_seconds: f64,
    last: Option<(u64, Arc<str>)>,
}

impl Metrics {
    /// Of what a guard publishes.
    pub fn new(board: Board<State>, started_unix_seconds: f64) -> Metrics {
        Metrics { board, started_unix_seconds, last: None }
    }
}

impl scrape::Page for Metrics {
    fn text(&mut self) -> Option<Arc<str>> {
        let state = self.board.read()?;
        if self.last.as_ref().is_none_or(|(at_ms, _)| *at_ms != state.at_ms) {
            self.last = Some((state.at_ms, exposition(&state, self.started_unix_seconds).into()));
        }
        self.last.as_ref().map(|(_, text)| text.clone())
    }
}

#[cfg(test)]
mod tests;
