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

/// A flood beside a job.
pub struct Beside<'a> {
    /// What it did.
    pub flood: &'a FloodRecord,
    /// Its age when measuring began; unknown in older records.
    pub age_ns: Option<u64>,
}

impl Beside<'_> {
    /// Its rates from the begin of measuring to the end; `None` where it is unknown which of them fall into that time.
    fn steps<K>(&self, intervals: &[Interval<K>]) -> Option<Vec<(f64, f64)>> {
        let last = intervals.last()?;
        let (until_ns, elapsed_ns) = (last.start_ns + last.len_ns, self.flood.elapsed_ns);
        let known_ns = (elapsed_ns < until_ns.saturating_add(last.len_ns)).then_some(0);
        let age = seconds(self.age_ns.or(known_ns)?);
        let end = seconds(until_ns).min(seconds(elapsed_ns) - age);
        let step = seconds(elapsed_ns) / self.flood.bytes_per_second.len().max(1) as f64;
        let from = |k: usize| k as f64 * step - age;
        let rates = self.flood.bytes_per_second.iter().enumerate();
        let shown = rates.filter(|(k, _)| from(k + 1) > 0.0 && from(*k) < end);
        let mut steps: Vec<(f64, f64)> = shown.map(|(k, rate)| (from(k).max(0.0), *rate)).collect();
        steps.extend(steps.last().map(|(_, rate)| (end, *rate)));
        Some(steps)
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
    floods: &[Beside<'_>],
    classes: &[K],
) -> Figure {
    let mut panels = vec![rates(intervals, classes)];
    panels.extend(latencies(intervals, classes));
    panels.extend(flood_rates(intervals, floods));
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

fn flood_rates<K>(intervals: &[Interval<K>], floods: &[Beside<'_>]) -> Option<Panel> {
    let series = floods.iter().enumerate().filter_map(|(i, beside)| {
        let name = format!("flood {}", beside.flood.spec);
        let steps = beside.steps(intervals).filter(|steps| !steps.is_empty())?;
        Some(Series { join: Join::Step, area: true, ..Series::line(name, 1 + 2 * i, steps) })
    });
    let series: Vec<Series> = series.collect();
    let axis = Axis::y("flood", Unit::BytesPerSecond, Scale::Linear);
    (!series.is_empty()).then(|| Panel::of(axis, series, 0.4))
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

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn flood(seconds: u64) -> FloodRecord {
        let bytes_per_second = (0..seconds).map(|k| k as f64).collect();
        FloodRecord { elapsed_ns: seconds * SECOND_NS, bytes_per_second, ..FloodRecord::default() }
    }

    /// A flood begins before the job, which warms up or follows another one.
    #[test]
    fn a_flood_is_drawn_on_the_job_s_time() {
        let second = |at: u64| Interval::<Class> {
            start_ns: at * SECOND_NS,
            len_ns: SECOND_NS,
            ..Interval::default()
        };
        let intervals: Vec<_> = (0..60).map(second).collect();
        for (ran, age_ns, expected) in [
            (90, Some(30 * SECOND_NS), Some((30.0, 60.0))),
            // The job follows another one: others follow it.
            (180, Some(60 * SECOND_NS), Some((60.0, 60.0))),
            (180, Some(61 * SECOND_NS + SECOND_NS / 2), Some((61.0, 60.0))),
            // It failed within the job, or before it.
            (40, Some(30 * SECOND_NS), Some((30.0, 10.0))),
            (40, Some(50 * SECOND_NS), None),
            // Older records: as long as the job, and longer.
            (60, None, Some((0.0, 60.0))),
            (61, None, None),
        ] {
            let flood = flood(ran);
            let beside = Beside { flood: &flood, age_ns };
            let panel = flood_rates(&intervals, &[beside]);
            let points = panel.map(|panel| panel.series[0].points.clone());
            let found = points.as_ref().map(|points| (points[0].1, points[points.len() - 1].0));
            assert_eq!(found, expected, "{ran} s, {age_ns:?}");
            let points = points.unwrap_or_default();
            assert!(points.first().is_none_or(|point| point.0 == 0.0), "{points:?}");
            assert!(points.is_sorted_by(|a, b| a.0 <= b.0), "{points:?}");
        }
    }
}
