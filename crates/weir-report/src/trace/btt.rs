//! btt's sections, names and columns, for eyes and scripts used to them, from weir's own numbers.
//!
//! Stages are those of pieces that carry data. Figures that btt has no place for stand behind its own: the rows G2D and
//! M2D, and columns of these names in the overhead. A device without requests (device-mapper, md) has its Q2Q and
//! Q2C in the rows Q2Qdm and Q2Cdm, as btt has them.

use std::fmt::Write as _;

use super::figures::{Kind, share};
use weir_blocktrace::analysis::{Depth, Device, Direction, Parts, Seeks, Summary};
use weir_blocktrace::{Analysis, Cell, Class, Stage};
use weir_core::printable;
use weir_core::stats::Distribution;
use weir_core::target::DeviceNumber;

/// btt's tables by stage, and the two it lacks.
const STAGES: [Stage; 8] =
    [Stage::Q2G, Stage::G2I, Stage::Q2M, Stage::I2D, Stage::D2C, Stage::Q2C, Stage::G2D, Stage::M2D];
/// Upper ends of the classes of btt's Q2D histogram, s; one more class is open.
const Q2D_EDGES_S: [f64; 9] = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 1.0];

/// One device's numbers.
struct Row<'a> {
    device: &'a Device,
    all: Kind,
    /// It has no requests of its own.
    mapped: bool,
}

/// The report.
pub fn report(analysis: &Analysis) -> String {
    let rows: Vec<Row> = analysis
        .devices
        .iter()
        .map(|device| {
            let mapped = device.requests == 0 && device.events.issued == 0;
            Row { device, all: Kind::class(analysis, device, Class::All), mapped }
        })
        .collect();
    let mut out = String::new();
    per_process(&mut out, analysis);
    per_device(&mut out, &rows);
    all_devices(&mut out, &rows);
    overhead(&mut out, &rows);
    merges(&mut out, &rows);
    seeks(&mut out, &rows, "Q2Q", |device| &device.seeks_queue);
    seeks(&mut out, &rows, "D2D", |device| &device.seeks_issue);
    plugs(&mut out, &rows);
    active_at_q(&mut out, &rows);
    active_periods(&mut out, &rows);
    q2d_histogram(&mut out, &rows);
    out
}

/// Writing to a String cannot fail, so that its result says nothing.
macro_rules! line {
    ($out:expr $(, $argument:expr)+) => {{
        let _ = writeln!($out $(, $argument)+);
    }};
}

fn title(out: &mut String, name: &str) {
    line!(out, "==================== {name} ====================\n");
}

fn number(device: DeviceNumber) -> String {
    format!("({:>3},{:>3})", device.major, device.minor)
}

fn head(out: &mut String, name: &str) {
    line!(out, "{name:>15} {:>13} {:>13} {:>13} {:>11}", "MIN", "AVG", "MAX", "N");
    let dashes = ["-".repeat(15), "-".repeat(13), "-".repeat(13), "-".repeat(13), "-".repeat(11)];
    line!(out, "{}", dashes.join(" "));
}

fn summary(out: &mut String, name: &str, s: &Summary) {
    if s.count > 0 {
        let seconds = |ns: f64| ns / 1e9;
        let (min, max) = (seconds(s.min_ns as f64), seconds(s.max_ns as f64));
        line!(out, "{name:<15} {min:>13.9} {:>13.9} {max:>13.9} {:>11}", seconds(s.mean_ns()), s.count);
    }
}

fn of(d: &Distribution) -> Summary {
    let sum_ns = u64::try_from(d.sum_ns()).unwrap_or(u64::MAX);
    Summary { count: d.count(), sum_ns, min_ns: d.min_ns(), max_ns: d.max_ns() }
}

fn per_process(out: &mut String, analysis: &Analysis) {
    title(out, "Per Process");
    let processes = analysis.processes_by_name();
    for stage in STAGES {
        head(out, stage.name());
        for process in &processes {
            let pid = process.id.to_string();
            let name = if process.name.is_empty() { &pid } else { &process.name };
            let name: String = printable::line(name).chars().take(15).collect();
            summary(out, &name, &process.stages[stage as usize]);
        }
        out.push('\n');
    }
}

fn per_device(out: &mut String, rows: &[Row]) {
    title(out, "Per Device");
    let gaps = |row: &Row| row.device.queue_gaps;
    for (name, mapped) in [("Q2Qdm", true), ("Q2Q", false)] {
        device_table(out, rows.iter().filter(|row| row.mapped == mapped), name, gaps);
    }
    device_table(out, rows.iter().filter(|row| row.mapped), "Q2Cdm", |row| {
        of(row.all.cell.stage(Stage::Q2C))
    });
    for stage in STAGES {
        let rows = rows.iter().filter(|row| !row.mapped);
        device_table(out, rows, stage.name(), |row| of(row.all.cell.stage(stage)));
    }
}

fn device_table<'a, 'b: 'a>(
    out: &mut String,
    rows: impl Iterator<Item = &'a Row<'b>>,
    name: &str,
    figures: impl Fn(&Row) -> Summary,
) {
    head(out, name);
    rows.for_each(|row| summary(out, &number(row.device.device), &figures(row)));
    out.push('\n');
}

fn all_devices(out: &mut String, rows: &[Row]) {
    title(out, "All Devices");
    head(out, "ALL");
    for (mapped, suffix) in [(true, "dm"), (false, "")] {
        let (mut gaps, mut cell) = (Summary::default(), Cell::default());
        for row in rows.iter().filter(|row| row.mapped == mapped) {
            gaps.merge(&row.device.queue_gaps);
            cell.merge(&row.all.cell);
        }
        summary(out, &format!("Q2Q{suffix}"), &gaps);
        let order = [Stage::Q2G, Stage::G2I, Stage::Q2M, Stage::I2D, Stage::M2D, Stage::G2D, Stage::D2C];
        for stage in order.into_iter().filter(|_| !mapped) {
            summary(out, stage.name(), &of(cell.stage(stage)));
        }
        summary(out, &format!("Q2C{suffix}"), &of(cell.stage(Stage::Q2C)));
        if mapped && gaps.count > 0 {
            out.push('\n');
        }
    }
    out.push('\n');
}

fn overhead(out: &mut String, rows: &[Row]) {
    title(out, "Device Overhead");
    let columns = ["Q2G", "G2I", "Q2M", "I2D", "D2C", "G2D", "M2D"].map(|name| format!("{name:>9}"));
    line!(out, "{:>10} | {}", "DEV", columns.join(" "));
    let dashes = || format!("---------- | {}", ["---------"; 7].join(" "));
    line!(out, "{}", dashes());
    let mut overall = Parts::default();
    for row in rows.iter().filter(|row| !row.mapped) {
        overhead_line(out, &number(row.device.device), &row.all.parts);
        overall.merge(&row.all.parts);
    }
    if overall.total_ns() > 0 {
        line!(out, "{}", dashes());
        overhead_line(out, "Overall", &overall);
    }
    out.push('\n');
}

fn overhead_line(out: &mut String, name: &str, parts: &Parts) {
    let order = [Stage::Q2G, Stage::G2I, Stage::Q2M, Stage::I2D, Stage::D2C, Stage::G2D, Stage::M2D];
    let percent = order.map(|stage| format!("{:>8.4}%", parts.share(stage).unwrap_or(0.0) * 100.0));
    line!(out, "{name:>10} | {}", percent.join(" "));
}

/// #Q, #D, smallest, largest and sum of sectors.
type Merged = (u64, u64, u64, u64, u64);

fn merges(out: &mut String, rows: &[Row]) {
    title(out, "Device Merge Information");
    let header = format!(
        "{:>8} {:>8} {:>7} | {:>8} {:>8} {:>8} {:>8}",
        "#Q", "#D", "Ratio", "BLKmin", "BLKavg", "BLKmax", "Total"
    );
    let dashes = "---------- | -------- -------- ------- | -------- -------- -------- --------";
    line!(out, "{:>10} | {header}\n{dashes}", "DEV");
    let merged: Vec<(DeviceNumber, Merged)> = rows
        .iter()
        .filter_map(|Row { device, .. }| {
            let (least, most) = device.request_sectors?;
            let moved = [Direction::Read, Direction::Write].map(|d| device.traffic[d as usize].bytes / 512);
            let sectors: u64 = moved.iter().sum();
            let queued = device.events.queued - device.events.queued_flushes;
            let issued = device.events.issued - device.events.issued_flushes;
            Some((device.device, (queued, issued, least, most, sectors)))
        })
        .collect();
    for (device, figures) in &merged {
        merge_line(out, &number(*device), *figures);
    }
    if merged.len() > 1 {
        let add = |a: Merged, b: Merged| (a.0 + b.0, a.1 + b.1, a.2.min(b.2), a.3.max(b.3), a.4 + b.4);
        line!(out, "{dashes}\n{:>10} | {header}", "DEV");
        merged.into_iter().map(|(_, m)| m).reduce(add).into_iter().for_each(|m| merge_line(out, "TOTAL", m));
    }
    out.push('\n');
}

fn merge_line(out: &mut String, name: &str, (queued, issued, least, most, sectors): Merged) {
    let (ratio, mean) = (share(queued, issued), sectors / issued.max(1));
    line!(
        out,
        "{name:>10} | {queued:>8} {issued:>8} {ratio:>7.1} | {least:>8} {mean:>8} {most:>8} {sectors:>8}"
    );
}

fn seeks(out: &mut String, rows: &[Row], name: &str, of: impl Fn(&Device) -> &Seeks) {
    title(out, &format!("Device {name} Seek Information"));
    let columns = format!("{:>15} {:>15} {:>15} | {:<15}", "NSEEKS", "MEAN", "MEDIAN", "MODE");
    let dashes = "---------- | --------------- --------------- --------------- | ---------------";
    line!(out, "{:>10} | {columns}\n{dashes}", "DEV");
    let mut overall = Seeks::default();
    for row in rows {
        let seeks = of(row.device);
        if seeks.count > 0 {
            seek_line(out, &number(row.device.device), seeks);
            overall.merge(seeks);
        }
    }
    line!(out, "{dashes}\n{:>10} | {columns}", "Overall");
    seek_line(out, "Average", &overall);
    out.push('\n');
}

fn seek_line(out: &mut String, name: &str, seeks: &Seeks) {
    let (mode, n) = seeks.mode_sectors();
    let (mean, median) = (seeks.mean_sectors(), seeks.median_sectors());
    line!(out, "{name:>10} | {:>15} {mean:>15.1} {median:>15} | {mode}({n})", seeks.count);
}

fn plugs(out: &mut String, rows: &[Row]) {
    title(out, "Plug Information");
    line!(out, "{:>10} | {:>10} {:>10}  | {:>16}", "DEV", "# Plugs", "# Timer Us", "% Time Q Plugged");
    line!(out, "---------- | ---------- ----------  | ----------------");
    let seen = |row: &&Row| row.device.plugs.plugs + row.device.plugs.unplugs_by_schedule > 0;
    for row in rows.iter().filter(seen) {
        let (plugs, name) = (&row.device.plugs, number(row.device.device));
        let plugged = share(plugs.plugged_ns, row.device.span_ns()) * 100.0;
        line!(out, "{name:>10} | {:>10}({:>10}) | {plugged:>13.9}%", plugs.plugs, plugs.unplugs_by_schedule);
    }
    line!(out, "\n{:>10} | {:>10}   {:>10}", "DEV", "IOs/Unp", "IOs/Unp(to)");
    line!(out, "---------- | ----------   ----------");
    let mut sum = weir_blocktrace::analysis::Plugs::default();
    for row in rows {
        unplug_line(out, &number(row.device.device), &row.device.plugs);
        sum.merge(&row.device.plugs);
    }
    line!(out, "---------- | ----------   ----------");
    line!(out, "{:>10} | {:>10}   {:>10}", "Overall", "IOs/Unp", "IOs/Unp(to)");
    unplug_line(out, "Average", &sum);
    out.push('\n');
}

fn unplug_line(out: &mut String, name: &str, plugs: &weir_blocktrace::analysis::Plugs) {
    let own = share(plugs.requests, plugs.unplugs);
    let by_schedule = share(plugs.requests_by_schedule, plugs.unplugs_by_schedule);
    line!(out, "{name:>10} | {own:>10.1}   {by_schedule:>10.1}");
}

fn active_at_q(out: &mut String, rows: &[Row]) {
    title(out, "Active Requests At Q Information");
    line!(out, "{:>10} | {:>13}\n---------- | -------------", "DEV", "Avg Reqs @ Q");
    let (mut queued, mut seen, mut devices) = (0, 0, 0);
    for Row { device, .. } in rows.iter().filter(|row| !row.mapped && row.device.events.queued > 0) {
        let mean = share(device.issued_seen_by_queued_sum, device.events.queued);
        line!(out, "{:>10} | {mean:>13.1}", number(device.device));
        queued += device.events.queued;
        seen += device.issued_seen_by_queued_sum;
        devices += 1;
    }
    if devices > 1 {
        line!(out, "---------- | -------------\n{:>10} | {:>13}", "Overall", "Avgs Reqs @ Q");
        line!(out, "{:>10} | {:>13.1}", "Average", share(seen, queued));
    }
    out.push('\n');
}

fn active_periods(out: &mut String, rows: &[Row]) {
    title(out, "I/O Active Period Information");
    line!(out, "{:>10} | {:>10} {:>13} {:>13} {:>6}", "DEV", "# Live", "Avg. Act", "Avg. !Act", "% Live");
    let dashes = "---------- | ---------- ------------- ------------- ------";
    line!(out, "{dashes}");
    let mut sum = Depth::default();
    for row in rows {
        active_line(out, &number(row.device.device), &row.device.depth_issue);
        if !row.mapped {
            sum.merge(&row.device.depth_issue);
        }
    }
    line!(out, "{dashes}");
    active_line(out, "Total Sys", &sum);
    out.push('\n');
}

fn active_line(out: &mut String, name: &str, depth: &Depth) {
    let (active_ns, idle_ns) = (depth.active_ns(), depth.idle_ns());
    let mean = |ns: u64| share(ns, depth.active_periods) / 1e9;
    let live = share(active_ns, active_ns + idle_ns) * 100.0;
    let (active, idle) = (mean(active_ns), mean(idle_ns));
    line!(out, "{name:>10} | {:>10} {active:>13.9} {idle:>13.9} {live:>6.2}", depth.active_periods);
}

fn q2d_histogram(out: &mut String, rows: &[Row]) {
    title(out, "Q2D Histogram");
    let names = ["<.005", "<.010", "<.025", "<.050", "<.075", "<.100", "<.250", "<.500", "< 1.0", ">=1.0"];
    line!(out, "{:>10} | {}", "DEV", names.join(" "));
    line!(out, "{:>10} | {}", "---------", ["====="; 10].join(" "));
    let mut sum = Distribution::default();
    for row in rows.iter().filter(|row| !row.mapped) {
        let q2d = row.all.cell.stage(Stage::Q2D);
        q2d_line(out, &number(row.device.device), q2d);
        sum.merge(q2d);
    }
    line!(out, "========== | {}", ["====="; 10].join(" "));
    q2d_line(out, "AVG", &sum);
    out.push('\n');
}

fn q2d_line(out: &mut String, name: &str, q2d: &Distribution) {
    let mut counts = [0; Q2D_EDGES_S.len() + 1];
    for (low_ns, high_ns, n) in q2d.buckets() {
        let middle_s = (low_ns + (high_ns - low_ns) / 2) as f64 / 1e9;
        counts[Q2D_EDGES_S.partition_point(|edge_s| *edge_s <= middle_s)] += n;
    }
    let percent = counts.map(|n| format!("{:>5.1}", share(n, q2d.count()) * 100.0));
    line!(out, "{name:>10} | {}", percent.join(" "));
}
