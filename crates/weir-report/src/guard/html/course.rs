//! One device over time: latency against its target, commits, throughput, and the limit's path with its decisions.

use crate::guard::{
    Change, DeviceStory, Stretch, change, done, is_of_cgroup, moved, rate_of_tenth, reason, size,
};
use crate::page::{Table, figure};
use crate::plot::{At, Axis, Figure, Join, Panel, Reference, Region, Scale, Series, Tint, Unit};
use maud::Markup;
use weir_control::{Noted, Second, UNLIMITED_BYTES};

/// More points than this a line has no room for.
const COLUMNS_MOST: usize = 600;
/// Decisions drawn of each kind: further ones would only cover each other.
const MARKS_MOST: usize = 100;
/// More phases than this have no room to be distinguished.
const REGIONS_MOST: usize = 40;

/// Neighbouring seconds drawn as one.
struct Column<'a> {
    seconds: &'a [Second],
}

impl Column<'_> {
    /// Its end, s.
    fn at(&self) -> f64 {
        self.seconds.last().map_or(0.0, |second| second.at_ms as f64 / 1000.0)
    }

    fn start(&self) -> f64 {
        self.seconds.first().map_or(0.0, |second| second.at_ms.saturating_sub(1000) as f64 / 1000.0)
    }

    /// The worst second.
    fn most(&self, value: impl Fn(&Second) -> Option<u64>) -> f64 {
        self.seconds.iter().filter_map(value).max().map_or(f64::NAN, |value| value as f64)
    }

    fn mean(&self, value: impl Fn(&Second) -> Option<u64>) -> f64 {
        let values: Vec<u64> = self.seconds.iter().filter_map(value).collect();
        let n = values.len();
        if n == 0 { f64::NAN } else { values.iter().sum::<u64>() as f64 / n as f64 }
    }
}

/// The figure, where there is more than one moment to show.
pub fn html(i: usize, device: &DeviceStory<'_>) -> Markup {
    let per_column = device.device.seconds.len().div_ceil(COLUMNS_MOST).max(1);
    let columns: Vec<Column<'_>> =
        device.device.seconds.chunks(per_column).map(|seconds| Column { seconds }).collect();
    if columns.len() < 2 {
        return Markup::default();
    }
    let finding = match per_column {
        1 => "Seconds; a mark on the limit is a decision and says why when pointed at.".to_string(),
        n => format!(
            "Columns of {n} s: the worst second's latency, mean rates. A mark on the limit is a decision and says why \
             when pointed at."
        ),
    };
    let drawn = Figure {
        id: format!("course-{i}"),
        title: "Latency, commits, throughput and the limit".to_string(),
        finding,
        x: Axis { include: vec![0.0], ..Axis::x("time", Unit::Seconds, Scale::Linear) },
        panels: [latency(&columns), commits(&columns), written(&columns), limit(device, &columns)]
            .into_iter()
            .chain(cgroup_limit(device, &columns))
            .collect(),
        regions: regions(device),
    };
    figure(&drawn, &Table::default())
}

/// Floods, distinguished by whether the guard's limit was in force.
fn regions(device: &DeviceStory<'_>) -> Vec<Region> {
    if device.phases.len() > REGIONS_MOST {
        return Vec::new();
    }
    let end = |at: usize| device.device.seconds.get(at).map_or(0.0, |second| second.at_ms as f64 / 1000.0);
    let regions = device.phases.iter().map(|phase| {
        let held = device.seconds(phase).iter().filter(|second| second.holding).count();
        let (label, tint) = match phase.stretch {
            Stretch::Quiet => (phase.name.clone(), Tint::Plain),
            Stretch::Flood if held * 2 > phase.range.1 - phase.range.0 => {
                (format!("{}, guarded", phase.name), Tint::Eased)
            }
            Stretch::Flood => (phase.name.clone(), Tint::Disturbed),
        };
        let from = if phase.range.0 == 0 { 0.0 } else { end(phase.range.0 - 1) };
        // Where many floods follow each other their names have no room; the shades stay.
        let optional = device.phases.len() > 3;
        Region { from, to: end(phase.range.1 - 1), label, tint, optional, parts: Vec::new() }
    });
    regions.collect()
}

/// A line over the columns, broken where no second was seen.
fn line(name: &str, look: usize, columns: &[Column<'_>], value: impl Fn(&Column<'_>) -> f64) -> Series {
    let mut points: Vec<(f64, f64)> = Vec::with_capacity(columns.len());
    let mut seen_until: Option<f64> = None;
    for column in columns {
        if let Some(before) = seen_until.filter(|before| column.start() - before > 1.5) {
            points.push((f64::midpoint(before, column.start()), f64::NAN));
        }
        seen_until = Some(column.at());
        points.push((column.at(), value(column)));
    }
    Series::line(name, look, points)
}

fn stepped(series: Series) -> Series {
    Series { join: Join::Step, ..series }
}

/// Microseconds as the axis has them; nothing where there was nothing, for 0 has no logarithm.
fn nanoseconds(us: Option<u64>) -> Option<u64> {
    us.filter(|us| *us > 0).map(|us| us * 1000)
}

fn seen(series: &Series) -> bool {
    series.points.iter().any(|point| point.1.is_finite())
}

fn latency(columns: &[Column<'_>]) -> Panel {
    let p99 = line("p99", 0, columns, |c| c.most(|s| nanoseconds(s.p99_us)));
    let oldest = line("oldest sync under way", 5, columns, |c| c.most(|s| nanoseconds(Some(s.oldest_us))));
    let target = stepped(line("target", 1, columns, |c| c.most(|s| nanoseconds(s.target_us))));
    let series = [target, oldest, p99].into_iter().filter(seen).collect();
    Panel::of(Axis::y("latency of syncs", Unit::Latency, Scale::Log), series, 0.75)
}

fn commits(columns: &[Column<'_>]) -> Panel {
    let syncs = line("syncs", 2, columns, |c| c.mean(|s| Some(s.syncs)));
    Panel::of(Axis::y("syncs", Unit::Count("a second"), Scale::Linear), vec![syncs], 0.5)
}

fn written(columns: &[Column<'_>]) -> Panel {
    let device = line("device", 5, columns, |c| c.mean(|s| Some(s.written_bytes)));
    let bulk = line("bulk writers", 1, columns, |c| c.mean(|s| s.bulk_bytes));
    let pace = stepped(line("private pace", 0, columns, |c| {
        c.seconds.last().and_then(|s| s.private_pace).map_or(f64::NAN, |pace| pace as f64)
    }));
    let series = [Series { area: true, ..bulk }, device, pace].into_iter().filter(seen).collect();
    Panel::of(Axis::y("written", Unit::BytesPerSecond, Scale::Linear), series, 0.42)
}

fn limit(device: &DeviceStory<'_>, columns: &[Column<'_>]) -> Panel {
    let path = stepped(line("limit", 0, columns, |c| {
        let last = c.seconds.last().filter(|s| !s.of_cgroup);
        last.map_or(f64::NAN, |s| s.limit_bytes as f64)
    }));
    let backlog = line("dirty and under way", 3, columns, |c| {
        // 0 has no logarithm; below a megabyte nothing is told by it.
        c.most(|s| Some(s.backlog_bytes.max(1_000_000)))
    });
    let mut series = vec![Series { area: true, ..backlog }, path];
    series.extend(marks(device, false, |bytes| bytes as f64));
    let mut panel = Panel::of(Axis::y("limit of dirty pages", Unit::Distance, Scale::Log), series, 0.9);
    let saved = device.device.saved_bytes;
    panel.references =
        vec![Reference { at: At::Y(saved as f64), label: format!("baseline: {}", size(saved)) }];
    panel
}

/// What the throttled cgroup might write, where there was one; no limit is a gap.
fn cgroup_limit(device: &DeviceStory<'_>, columns: &[Column<'_>]) -> Option<Panel> {
    let rate = |bytes: u64| if bytes < UNLIMITED_BYTES { rate_of_tenth(bytes) } else { f64::NAN };
    let path = stepped(line("limit of a cgroup", 0, columns, |c| {
        c.seconds.last().filter(|s| s.of_cgroup).map_or(f64::NAN, |s| rate(s.limit_bytes))
    }));
    let series: Vec<Series> = std::iter::once(path).filter(seen).chain(marks(device, true, rate)).collect();
    let axis = Axis::y("limit of the throttled cgroup", Unit::BytesPerSecond, Scale::Log);
    (!series.is_empty()).then(|| Panel::of(axis, series, 0.6))
}

/// Decisions where they led a limit to, a series for each kind.
fn marks(device: &DeviceStory<'_>, of_cgroup: bool, value: impl Fn(u64) -> f64) -> Vec<Series> {
    let kinds = [(Change::Cut, 1), (Change::Raised, 2), (Change::Released, 3), (Change::None, 4)];
    let of_kind = |(kind, look): (Change, usize)| {
        let fits = |noted: &&&Noted| change(noted) == kind && is_of_cgroup(noted) == of_cgroup;
        let all: Vec<_> = device.decisions.iter().filter(fits).collect();
        let every = all.len().div_ceil(MARKS_MOST).max(1);
        let (points, hints) = all
            .iter()
            .step_by(every)
            .filter_map(|noted| {
                let at = noted.at_ms as f64 / 1000.0;
                let y = value(moved(noted).or_else(|| limit_at(device, noted.at_ms, of_cgroup))?);
                let did = done(noted).map_or(String::new(), |done| format!("{done}: "));
                y.is_finite().then(|| ((at, y), format!("{at:.1} s: {did}{}", reason(noted))))
            })
            .unzip();
        Series { join: Join::None, hints, ..Series::line(kind.name(), look, points) }
    };
    kinds.into_iter().map(of_kind).filter(|series| !series.points.is_empty()).collect()
}

/// The limit in force at a moment, bytes, where it is of that kind.
fn limit_at(device: &DeviceStory<'_>, at_ms: u64, of_cgroup: bool) -> Option<u64> {
    let seconds = &device.device.seconds;
    let at = seconds.partition_point(|second| second.at_ms < at_ms).min(seconds.len().checked_sub(1)?);
    Some(&seconds[at]).filter(|second| second.of_cgroup == of_cgroup).map(|second| second.limit_bytes)
}
