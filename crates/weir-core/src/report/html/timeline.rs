//! What happened when: rates, latencies and the age of the oldest operation in flight, and a heat map.

use super::Table;
use super::job::look_of;
use crate::report::plot::{Axis, Figure, HeatCell, Join, Panel, Scale, Series, Unit, heat};
use crate::result::record::{Class, FloodRecord, Interval, JobRecord};

/// A rate that varies by more than this factor is drawn on a log scale, so that a collapse shows its depth.
const COLLAPSE: f64 = 30.0;

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn rate(interval: &Interval, class: Class) -> f64 {
    let count = interval.classes.get(&class).map_or(0, |c| c.count);
    count as f64 / seconds(interval.len_ns).max(1e-9)
}

/// Rates above, latencies below, floods at the foot.
pub fn figure(id: &str, finding: &str, job: &JobRecord, floods: &[FloodRecord], classes: &[Class]) -> Figure {
    let mut panels = vec![rates(job, classes)];
    panels.extend(latencies(job, classes));
    if !floods.is_empty() {
        panels.push(flood_rates(job, floods));
    }
    Figure {
        id: id.to_string(),
        title: "Over time".to_string(),
        finding: finding.to_string(),
        x: Axis { include: vec![0.0], ..Axis::x("time", Unit::Seconds, Scale::Linear) },
        panels,
        regions: Vec::new(),
    }
}

fn rates(job: &JobRecord, classes: &[Class]) -> Panel {
    let series: Vec<Series> = classes
        .iter()
        .map(|class| {
            let points = job.intervals.iter().map(|i| (seconds(i.start_ns), rate(i, *class)));
            Series {
                join: Join::Step,
                area: classes.len() == 1,
                ..closed(class.name(), look_of(*class), points, job)
            }
        })
        .collect();
    let values = || series.iter().flat_map(|s| s.points.iter().map(|p| p.1));
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    let scale = if low * COLLAPSE < high { Scale::LogOrZero } else { Scale::Linear };
    Panel::of(Axis::y("operations finished", Unit::Iops, scale), series, 0.6)
}

/// A stepped series ends where its last interval ends.
fn closed(name: &str, look: usize, points: impl Iterator<Item = (f64, f64)>, job: &JobRecord) -> Series {
    let mut points: Vec<(f64, f64)> = points.collect();
    if let (Some(last), Some(interval)) = (points.last().copied(), job.intervals.last()) {
        points.push((seconds(interval.start_ns + interval.len_ns), last.1));
    }
    Series::line(name, look, points)
}

/// Medians with a band up to the 99th percentile, and the age of what had not finished. Several classes have a
/// panel each: bands over each other show nothing.
fn latencies(job: &JobRecord, classes: &[Class]) -> Vec<Panel> {
    let axis = |title: &str| Axis::y(title, Unit::Latency, Scale::Log);
    let oldest = oldest_in_flight(job);
    if let [class] = classes {
        let series = std::iter::once(median_and_p99(job, *class)).chain(oldest).collect();
        return vec![Panel::of(axis("latency"), series, 0.9)];
    }
    let panel = |class: &Class| {
        let title = format!("{} latency, median to p99", class.name());
        Panel::of(axis(&title), vec![median_and_p99(job, *class)], 0.5)
    };
    let mut panels: Vec<Panel> = classes.iter().map(panel).collect();
    panels.extend(oldest.map(|s| Panel::of(axis("age of the oldest operation in flight"), vec![s], 0.4)));
    panels
}

fn median_and_p99(job: &JobRecord, class: Class) -> Series {
    let middle = |i: &Interval| seconds(i.start_ns) + seconds(i.len_ns) / 2.0;
    let of = |i: &Interval| {
        i.classes.get(&class).filter(|c| c.count > 0).map(|c| (c.p50_ns as f64, c.p99_ns as f64))
    };
    let values = job.intervals.iter().map(|i| (middle(i), of(i).unwrap_or((f64::NAN, f64::NAN))));
    let (points, band) = values.map(|(x, (p50, p99))| ((x, p50), (x, p50, p99))).unzip();
    Series { band, ..Series::line(format!("{} median…p99", class.name()), look_of(class), points) }
}

/// Age of the oldest operation in flight at the end of each interval; `None` if nothing ever was.
fn oldest_in_flight(job: &JobRecord) -> Option<Series> {
    let age = |i: &Interval| if i.oldest_ns > 0 { i.oldest_ns as f64 } else { f64::NAN };
    let ages: Vec<(f64, f64)> =
        job.intervals.iter().map(|i| (seconds(i.start_ns + i.len_ns), age(i))).collect();
    let seen = ages.iter().filter(|a| a.1.is_finite()).count();
    // Where most ticks met nothing in flight, a line between the others would tell of a course that was not seen.
    let join = if seen * 2 < ages.len() { Join::None } else { Join::Line };
    (seen > 0).then(|| Series { join, ..Series::line("oldest in flight", 5, ages) })
}

fn flood_rates(job: &JobRecord, floods: &[FloodRecord]) -> Panel {
    let series = floods.iter().enumerate().map(|(i, flood)| {
        let step = seconds(flood.elapsed_ns) / flood.bytes_per_second.len().max(1) as f64;
        let points = flood.bytes_per_second.iter().enumerate().map(|(k, b)| (k as f64 * step, *b));
        Series {
            join: Join::Step,
            area: true,
            ..closed(&format!("flood {}", flood.spec), 1 + 2 * i, points, job)
        }
    });
    Panel::of(Axis::y("flood", Unit::BytesPerSecond, Scale::Linear), series.collect(), 0.4)
}

/// One row for each interval.
pub fn table(job: &JobRecord, classes: &[Class]) -> Table {
    let mut head = vec!["from".to_string()];
    for class in classes {
        head.extend(["/s", " p50", " p99", " longest"].map(|what| format!("{}{what}", class.name())));
    }
    head.push("oldest in flight".to_string());
    let row = |interval: &Interval| {
        let mut row = vec![Unit::Seconds.value(seconds(interval.start_ns))];
        for class in classes {
            row.push(Unit::Iops.value(rate(interval, *class)));
            match interval.classes.get(class).filter(|c| c.count > 0) {
                Some(c) => {
                    row.extend([c.p50_ns, c.p99_ns, c.max_ns].map(|ns| Unit::Latency.value(ns as f64)))
                }
                None => row.extend(["–"; 3].map(str::to_string)),
            }
        }
        row.push(Unit::Latency.value(interval.oldest_ns as f64));
        row
    };
    Table { head, rows: job.intervals.iter().map(row).collect(), ..Table::default() }
}

/// Every operation's latency against the time it finished.
pub fn heat_map(id: &str, finding: &str, job: &JobRecord, class: Class) -> Figure {
    let latency = Axis::y(format!("{} latency", class.name()), Unit::Latency, Scale::Log);
    Figure {
        id: id.to_string(),
        title: format!("Every {}", class.name()),
        finding: finding.to_string(),
        x: Axis { include: vec![0.0], ..Axis::x("time", Unit::Seconds, Scale::Linear) },
        panels: vec![Panel { heat: cells(&job.intervals, class), ..Panel::of(latency, Vec::new(), 1.0) }],
        regions: Vec::new(),
    }
}

fn cells(intervals: &[Interval], class: Class) -> Vec<HeatCell> {
    let cells = |interval: &Interval| {
        let x = (seconds(interval.start_ns), seconds(interval.start_ns + interval.len_ns));
        let buckets = interval.classes.get(&class).into_iter().flat_map(|c| c.coarse.iter().copied());
        heat::column(x, buckets)
    };
    intervals.iter().flat_map(cells).collect()
}
