//! All that is known of one row.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;
use weir_blocktrace::fsync::{Anatomy, Way};
use weir_blocktrace::{DeviceFrame, Stage};

use super::figures::{bar, duration, duration_of, megabytes, percent, rate, spark};
use super::panes::anatomy_of;
use super::table::{Line, scrolled, wrapped};
use super::theme::Look;
use crate::model::Model;
use crate::pane::Pane;
use crate::sample::Process;

/// Cells of a bar.
const BAR: usize = 20;
/// Points of a sparkline.
const POINTS: usize = 120;

/// Draws what the selected pane's selected row holds.
pub fn draw(model: &Model, look: Look, area: Rect, buffer: &mut Buffer) {
    let lines = match model.pane {
        Pane::Devices | Pane::Classes => model.device().map(|frame| device(model, look, frame, area.width)),
        Pane::Processes => model.process().map(|it| process(model, look, it)),
        Pane::Slow => model.slow_sync().map(|(clock, slow)| {
            let mut lines = vec![heading(
                look,
                &format!(
                    "{} of {} took {}",
                    slow.call.name(),
                    slow.process.name(),
                    duration(slow.took_ns as f64)
                ),
            )];
            lines.push(plain(format!("thread {}, on {}, until {clock}", slow.tid, model.device_name(slow))));
            lines.extend(anatomy(look, &anatomy_of(slow)));
            lines
        }),
    };
    let lines = lines.unwrap_or_else(|| vec![plain("it is not in this sample".to_string())]);
    scrolled(&lines, model, look, area, buffer);
}

fn plain(text: String) -> Line {
    vec![(text, Style::new())]
}

fn heading(look: Look, text: &str) -> Line {
    vec![(text.to_string(), look.title(false))]
}

fn device(model: &Model, look: Look, frame: &DeviceFrame, width: u16) -> Vec<Line> {
    let load = &frame.load;
    let mut lines = vec![heading(look, &format!("device {} ({})", frame.name, frame.number))];
    lines.push(plain(format!(
        "{} IOPS, {} MB/s, busy {:.0} %, depth {} on the mean, {} now",
        rate(frame.iops()),
        megabytes(frame.bytes_per_second()),
        load.util_percent,
        rate(load.queue_mean),
        load.in_flight
    )));
    lines.extend(frame.limits.iter().flat_map(|limit| wrapped(&limit.words(), width)).map(plain));
    let points = model.history.points(frame.number, POINTS.min(usize::from(width.saturating_sub(10))));
    let latency: Vec<Option<f64>> =
        points.iter().map(|point| point.and_then(|point| point.latency_ns)).collect();
    let iops: Vec<Option<f64>> = points.iter().map(|point| point.map(|point| point.iops)).collect();
    lines.push(Line::new());
    lines.push(vec![(format!("{:<9}", "IOPS"), look.faint()), (spark(&iops), look.bar())]);
    lines.push(vec![(format!("{:<9}", "latency"), look.faint()), (spark(&latency), look.bar())]);
    for row in &frame.rows {
        lines.push(Line::new());
        let errors = if row.errors > 0 { format!(", {} failed", row.errors) } else { String::new() };
        let total = row.total.map_or_else(String::new, |total| {
            format!(
                ": mean {}, p50 {}, p99 {}, longest {}",
                duration(total.mean_ns),
                duration_of(total.p50_ns),
                duration_of(total.p99_ns),
                duration_of(total.max_ns)
            )
        });
        let name = row.class.words();
        lines.push(heading(look, &format!("{name}, {}/s{errors}{total}", rate(row.iops))));
        let whole = row.total.map_or(1.0, |total| total.mean_ns.max(1.0));
        lines.extend(row.stages.iter().map(|(stage, spread)| {
            let share = spread.mean_ns * spread.count as f64 / (whole * row.ios.max(1) as f64);
            vec![
                (
                    format!("  {:<5}{:<22}{:>9}  ", stage.name(), meaning(*stage), duration(spread.mean_ns)),
                    Style::new(),
                ),
                (bar(share, BAR), look.bar()),
            ]
        }));
    }
    lines
}

fn meaning(stage: Stage) -> &'static str {
    match stage {
        Stage::Q2G => "request made",
        Stage::G2I => "plugged",
        Stage::G2D | Stage::G2DAll => "until the driver",
        Stage::I2D => "in the scheduler",
        Stage::Q2M => "until a merge",
        Stage::M2D => "merged, waiting",
        Stage::D2C => "driver and device",
        Stage::Q2C | Stage::G2C => "all of it",
        Stage::Q2D => "before the driver",
    }
}

fn process(model: &Model, look: Look, process: &Process) -> Vec<Line> {
    let length_ns = model.history.shown().map_or(1, |sample| sample.frame.length_ns);
    let pid = process.pid.map(|pid| format!(" ({pid})")).unwrap_or_default();
    let unit = process.unit.as_ref().map(|unit| format!(" in {unit}")).unwrap_or_default();
    let known = |rate: Option<f64>| rate.map_or_else(|| "?".to_string(), megabytes);
    let mut lines = vec![heading(look, &format!("process {}{pid}{unit}", process.name))];
    lines.push(plain(format!("writes {} MB/s, reads {} MB/s", known(process.written), known(process.read))));
    match &process.syncs {
        Some(syncs) => {
            let latency = &syncs.latency;
            lines.push(plain(format!(
                "{} syncs/s: p50 {}, p95 {}, p99 {}, longest {}",
                rate(process.syncs_per_second(length_ns)),
                duration(latency.p50_ns as f64),
                duration(latency.p95_ns as f64),
                duration(latency.p99_ns as f64),
                duration(latency.max_ns as f64)
            )));
            lines.push(plain(format!(
                "{} threads wait inside a sync, on the mean",
                rate(process.waiting(length_ns))
            )));
            lines.extend(anatomy(look, syncs));
        }
        None => lines.push(plain("it did not sync in this interval".to_string())),
    }
    lines
}

/// Where the time went, whose I/O it was, where it slept.
fn anatomy(look: Look, anatomy: &Anatomy) -> Vec<Line> {
    let share = |name: String, share: f64, more: String| -> Line {
        vec![
            (format!("  {:>5} ", percent(share)), Style::new()),
            (format!("{:<BAR$} ", bar(share, BAR)), look.bar()),
            (format!("{name}{more}"), Style::new()),
        ]
    };
    let mut lines = vec![Line::new(), heading(look, "its time inside syncs")];
    for row in &anatomy.phases {
        // The largest first: a narrow screen cuts off the end.
        let mut causes: Vec<_> = row.causes.iter().filter(|(_, share)| *share >= 0.005).collect();
        causes.sort_by(|a, b| b.1.total_cmp(&a.1));
        let causes: Vec<String> =
            causes.iter().map(|(cause, share)| format!("{} {}", percent(*share), cause.name())).collect();
        let more = if causes.is_empty() { String::new() } else { format!(": {}", causes.join(", ")) };
        lines.push(share(row.phase.name().to_string(), row.share, more));
    }
    if !anatomy.culprits.is_empty() {
        lines.extend([Line::new(), heading(look, "behind the I/O of")]);
        for culprit in &anatomy.culprits {
            let way = match culprit.way {
                Way::Writeback => "write-back of its pages",
                Way::Reads => "its reads",
                Way::DirectWrites => "its direct writes",
                Way::Discards => "its discards",
                Way::WritesPassedOn => "passed on",
            };
            lines.push(share(culprit.name(), culprit.share, format!(", {way}")));
        }
    }
    if !anatomy.sites.is_empty() {
        lines.extend([Line::new(), heading(look, "asleep in the kernel's")]);
        lines.extend(
            anatomy.sites.iter().map(|site| share(site.functions.clone(), site.share, String::new())),
        );
    }
    lines
}
