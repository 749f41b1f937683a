//! Rates over time until they fell, and again after an idle time.

use crate::page::{Table, figure};
use crate::plot::{At, Axis, Figure, Join, Panel, Reference, Region, Scale, Series, Tint, Unit};
use maud::{Markup, html};
use weir_core::units::{Nanos, per_second, significant};
use weir_verdict::doctor::DoctorReport;
use weir_verdict::sustained::{Endurance, Figure as Estimated, LimitUnit, Pressure, Sustained};

/// One figure for each kind of writes, and the counters that moved meanwhile.
pub fn html(report: &DoctorReport) -> Markup {
    let Some(sustained) = &report.sustained else { return Markup::default() };
    html! {
        @for one in sustained.pressures.iter().filter(|one| one.course.len() >= 2) {
            (figure(&timeline(one), &table(one)))
        }
        (counters(sustained))
    }
}

/// Operations a second, or bytes where those are what counts.
fn scale(one: &Endurance) -> (f64, Unit) {
    match (one.unit, one.pressure) {
        (Some(LimitUnit::Bytes), _) | (None, Pressure::Bulk) => (one.block.0 as f64, Unit::BytesPerSecond),
        _ => (1.0, Unit::Iops),
    }
}

/// Figures of an endurance are in its unit already; only where none was found are they operations.
fn value(one: &Endurance, figure: &Estimated) -> f64 {
    let factor = if one.unit.is_none() { scale(one).0 } else { 1.0 };
    figure.value * factor
}

/// Length of the last interval.
const LAST_S: f64 = 0.2;

fn timeline(one: &Endurance) -> Figure {
    let (factor, unit) = scale(one);
    let end = one.course.last().map_or(0.0, |(at, _)| *at) + LAST_S;
    let idle_s = one.idle_ns as f64 / 1e9;
    let again = end + idle_s;
    let mut points: Vec<(f64, f64)> = one.course.iter().map(|(at, rate)| (*at, rate * factor)).collect();
    let mut regions = vec![region(0.0, end, "writes", Tint::Plain)];
    if !one.course_again.is_empty() {
        points.push((f64::midpoint(end, again), f64::NAN));
        points.extend(one.course_again.iter().map(|(at, rate)| (again + at, rate * factor)));
        let last = one.course_again.last().map_or(again, |(at, _)| again + at + LAST_S);
        regions.push(region(end, again, "idle", Tint::Eased));
        regions.push(region(again, last, "writes again", Tint::Plain));
    }
    let series = Series { join: Join::Step, area: true, ..Series::line("writes", 1, points) };
    let mut panel = Panel::of(Axis::y("rate", unit, Scale::Linear), vec![series], 0.8);
    panel.references.push(reference("sustained", value(one, &one.sustained)));
    panel.references.extend(one.burst.as_ref().map(|burst| reference("burst", value(one, burst))));
    Figure {
        id: format!("sustained-{}", one.pressure.name()),
        title: match one.pressure {
            Pressure::Small => "Random writes of 4 KiB over time",
            Pressure::Bulk => "Sequential writes of 1 MiB over time",
        }
        .to_string(),
        finding: finding(one),
        x: Axis::x("time", Unit::Seconds, Scale::Linear),
        panels: vec![panel],
        regions,
    }
}

fn region(from: f64, to: f64, label: &str, tint: Tint) -> Region {
    Region { from, to, label: label.to_string(), tint, optional: true, parts: Vec::new() }
}

fn reference(label: &str, value: f64) -> Reference {
    Reference { at: At::Y(value), label: label.to_string() }
}

fn finding(one: &Endurance) -> String {
    match (one.burst_ns, one.idle_ns) {
        (Some(ns), 0) => format!("The rate fell after {}.", Nanos(ns)),
        (Some(ns), idle) => format!(
            "The rate fell after {}. {} idle follow, and writes again; the runs between are left out.",
            Nanos(ns),
            Nanos(idle)
        ),
        (None, _) => format!("The rate did not fall in {}.", Nanos(one.elapsed_ns)),
    }
}

fn table(one: &Endurance) -> Table {
    let row = |name: &str, figure: Option<Estimated>| {
        figure.map(|figure| {
            let shown = |v: f64| if v >= 1e6 { significant(v) } else { per_second(v) };
            vec![
                name.to_string(),
                shown(figure.value),
                format!("{} … {}", shown(figure.low), shown(figure.high)),
            ]
        })
    };
    let what = if one.unit == Some(LimitUnit::Bytes) { "bytes" } else { "operations" };
    let rows = [
        row("burst, a second", one.burst),
        row("sustained, a second", Some(one.sustained)),
        row("credit", one.credit),
        row("refill, a second", one.refill),
    ];
    Table {
        head: ["", what, "95 % interval"].map(str::to_string).to_vec(),
        rows: rows.into_iter().flatten().collect(),
        ..Table::default()
    }
}

/// What provider and device counted meanwhile.
fn counters(sustained: &Sustained) -> Markup {
    let rows = sustained.counters.iter().flat_map(|counters| {
        let name = |key: &String| format!("{} {}", counters.device, key.replace('_', " "));
        counters.values.iter().map(move |(key, value)| (name(key), value.to_string(), String::new()))
    });
    let rows: Vec<(String, String, String)> = rows.collect();
    html! { @if !rows.is_empty() { (crate::page::facts_table(&rows)) } }
}

#[cfg(test)]
mod tests {
    use crate::{html, text};
    use weir_verdict::from_record;
    use weir_verdict::synthetic::bucket_of_operations;

    #[test]
    fn page_and_text_show_how_long_a_burst_lasted() {
        let report = from_record(&bucket_of_operations().record(Vec::new())).unwrap();
        let page = html::doctor(&report);
        for part in ["id=\"sustained-small\"", "writes again", "burst", "sustained, a second"] {
            assert!(page.contains(part), "{part} is missing");
        }
        assert!(!page.contains("NaN"), "a figure without a value");
        let text = text::doctor(&report);
        assert!(text.starts_with("weir doctor --sustained /srv/db: POOR\n"), "{text}");
        assert!(text.contains("\nSustained    POOR."), "{text}");
    }
}
