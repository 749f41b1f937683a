//! What happened when: rates, latencies and the age of the oldest operation in flight, and a heat map.

use super::Table;
use crate::plot::{Axis, Figure, HeatCell, Join, Panel, Scale, Series, Unit, heat};
use weir_core::result::record::{Class, FloodRecord, Interval};
use weir_oltp::Kind;
use weir_oltp::kind::Tally;

/// A rate that varies by more than this factor is drawn on a log scale, so that a collapse shows its depth.
const COLLAPSE: f64 = 30.0;

/// What latencies are distinguished by, as plots show it.
pub trait Sort: Copy + Ord {
    /// Its name.
    fn name(self) -> &'static str;
    /// Colour, dash and marker: the same in every plot.
    fn look(self) -> usize;
}

impl Sort for Class {
    fn name(self) -> &'static str {
        Class::name(self)
    }

    fn look(self) -> usize {
        match self {
            Class::Read => 0,
            Class::Write => 1,
            Class::Commit => 2,
            Class::Sync => 3,
        }
    }
}

impl Sort for Kind {
    fn name(self) -> &'static str {
        Kind::name(self)
    }

    /// Transactions and commits are distinguished from everything else; sums of kinds share what is left.
    fn look(self) -> usize {
        match self {
            Kind::Transaction => 0,
            Kind::Commit => 2,
            kind => match kind.tally() {
                Some(Tally::Read) => 4,
                Some(Tally::Write) => 1,
                Some(Tally::Other) | None => 3,
            },
        }
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn rate<K: Sort>(interval: &Interval<K>, class: K) -> f64 {
    let count = interval.classes.get(&class).map_or(0, |c| c.count);
    count as f64 / seconds(interval.len_ns).max(1e-9)
}

/// Rates above, latencies below, floods at the foot.
pub fn figure<K: Sort>(
    id: &str,
    finding: &str,
    intervals: &[Interval<K>],
    floods: &[FloodRecord],
    classes: &[K],
) -> Figure {
    let mut panels = vec![rates(intervals, classes)];
    panels.extend(latencies(intervals, classes));
    if !floods.is_empty() {
        panels.push(flood_rates(intervals, floods));
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

fn rates<K: Sort>(intervals: &[Interval<K>], classes: &[K]) -> Panel {
    let series: Vec<Series> = classes
        .iter()
        .map(|class| {
            let points = intervals.iter().map(|i| (seconds(i.start_ns), rate(i, *class)));
            Series {
                join: Join::Step,
                area: classes.len() == 1,
                ..closed(class.name(), class.look(), points, intervals)
            }
        })
        .collect();
    let values = || series.iter().flat_map(|s| s.points.iter().map(|p| p.1));
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    let scale = if low * COLLAPSE < high { Scale::LogOrZero } else { Scale::Linear };
    Panel::of(Axis::y("operations finished", Unit::Iops, scale), series, 0.6)
}

/// A stepped series ends where its last interval ends.
fn closed<K>(
    name: &str,
    look: usize,
    points: impl Iterator<Item = (f64, f64)>,
    intervals: &[Interval<K>],
) -> Series {
    let mut points: Vec<(f64, f64)> = points.collect();
    if let (Some(last), Some(interval)) = (points.last().copied(), intervals.last()) {
        points.push((seconds(interval.start_ns + interval.len_ns), last.1));
    }
    Series::line(name, look, points)
}

/// Medians with a band up to the 99th percentile, and the age of what had not finished. Several classes have a
/// panel each: bands over each other show nothing.
fn latencies<K: Sort>(intervals: &[Interval<K>], classes: &[K]) -> Vec<Panel> {
    let axis = |title: &str| Axis::y(title, Unit::Latency, Scale::Log);
    let oldest = oldest_in_flight(intervals);
    if let [class] = classes {
        let series = std::iter::once(median_and_p99(intervals, *class)).chain(oldest).collect();
        return vec![Panel::of(axis("latency"), series, 0.9)];
    }
    let panel = |class: &K| {
        let title = format!("{} latency, median to p99", class.name());
        Panel::of(axis(&title), vec![median_and_p99(intervals, *class)], 0.5)
    };
    let mut panels: Vec<Panel> = classes.iter().map(panel).collect();
    panels.extend(oldest.map(|s| Panel::of(axis("age of the oldest operation in flight"), vec![s], 0.4)));
    panels
}

fn median_and_p99<K: Sort>(intervals: &[Interval<K>], class: K) -> Series {
    let middle = |i: &Interval<K>| seconds(i.start_ns) + seconds(i.len_ns) / 2.0;
    let of = |i: &Interval<K>| {
        i.classes.get(&class).filter(|c| c.count > 0).map(|c| (c.p50_ns as f64, c.p99_ns as f64))
    };
    let values = intervals.iter().map(|i| (middle(i), of(i).unwrap_or((f64::NAN, f64::NAN))));
    let (points, band) = values.map(|(x, (p50, p99))| ((x, p50), (x, p50, p99))).unzip();
    Series { band, ..Series::line(format!("{} median…p99", class.name()), class.look(), points) }
}

/// Age of the oldest operation in flight at the end of each interval; `None` if nothing ever was.
fn oldest_in_flight<K>(intervals: &[Interval<K>]) -> Option<Series> {
    let age = |i: &Interval<K>| if i.oldest_ns > 0 { i.oldest_ns as f64 } else { f64::NAN };
    let ages: Vec<(f64, f64)> = intervals.iter().map(|i| (seconds(i.start_ns + i.len_ns), age(i))).collect();
    let seen = ages.iter().filter(|a| a.1.is_finite()).count();
    // Where most ticks met nothing in flight, a line between the others would tell of a course that was not seen.
    let join = if seen * 2 < ages.len() { Join::None } else { Join::Line };
    (seen > 0).then(|| Series { join, ..Series::line("oldest in flight", 5, ages) })
}

fn flood_rates<K>(intervals: &[Interval<K>], floods: &[FloodRecord]) -> Panel {
    let series = floods.iter().enumerate().map(|(i, flood)| {
        let step = seconds(flood.elapsed_ns) / flood.bytes_per_second.len().max(1) as f64;
        let points = flood.bytes_per_second.iter().enumerate().map(|(k, b)| (k as f64 * step, *b));
        Series {
            join: Join::Step,
            area: true,
            ..closed(&format!("flood {}", flood.spec), 1 + 2 * i, points, intervals)
        }
    });
    Panel::of(Axis::y("flood", Unit::BytesPerSecond, Scale::Linear), series.collect(), 0.4)
}

/// One row for each interval.
pub fn table<K: Sort>(intervals: &[Interval<K>], classes: &[K]) -> Table {
    let mut head = vec!["from".to_string()];
    for class in classes {
        head.extend(["/s", " p50", " p99", " longest"].map(|what| format!("{}{what}", class.name())));
    }
    head.push("oldest in flight".to_string());
    let row = |interval: &Interval<K>| {
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
    Table { head, rows: intervals.iter().map(row).collect(), ..Table::default() }
}

/// Every operation's latency against the time it finished.
pub fn heat_map<K: Sort>(id: &str, finding: &str, intervals: &[Interval<K>], class: K) -> Figure {
    let latency = Axis::y(format!("{} latency", class.name()), Unit::Latency, Scale::Log);
    Figure {
        id: id.to_string(),
        title: format!("Every {}", class.name()),
        finding: finding.to_string(),
        x: Axis { include: vec![0.0], ..Axis::x("time", Unit::Seconds, Scale::Linear) },
        panels: vec![Panel { heat: cells(intervals, class), ..Panel::of(latency, Vec::new(), 1.0) }],
        regions: Vec::new(),
    }
}

fn cells<K: Ord>(intervals: &[Interval<K>], class: K) -> Vec<HeatCell> {
    let cells = |interval: &Interval<K>| {
        let x = (seconds(interval.start_ns), seconds(interval.start_ns + interval.len_ns));
        let buckets = interval.classes.get(&class).into_iter().flat_map(|c| c.coarse.iter().copied());
        heat::column(x, buckets)
    };
    intervals.iter().flat_map(cells).collect()
}
