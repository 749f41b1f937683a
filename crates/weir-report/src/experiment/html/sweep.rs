//! A sweep: one axis traded for the other, and both against the knob's value.

use super::{MEANS, arms, axis, axis_title, over, unit};
use crate::experiment::words;
use crate::page::{Table, bars, capitalised, figure, scatter};
use crate::plot::{
    At, Axis, Bar, BarFigure, Figure, Level, Panel, Reference, Scale, ScatterFigure, Spot, Unit,
};
use maud::{Markup, html};
use weir_experiment::{Metric, Role, Study};
use weir_knobs::Value;
use weir_verdict::view::percent;

/// Looks of what is tried and of the baseline.
const TRIED: usize = 0;
const FOUND: usize = 1;
/// Values further apart than this are shown on a logarithmic axis.
const FAR_APART: f64 = 8.0;

/// Trade-off first, then each axis over the values.
pub fn html(study: &Study<'_>) -> Markup {
    let traded = traded(study);
    html! {
        @if traded.spots.len() >= 2 { (scatter(&traded, &arms(study))) }
        @if !study.finding.arms.is_empty() {
            @match values(study) {
                Some(values) => { (figure(&against_value(study, &values), &Table::default())) }
                None => { (bars(&by_word(study), &Table::default())) }
            }
        }
    }
}

/// The other axis: what bulk writers get, else the tail.
fn other(study: &Study<'_>) -> Metric {
    let tail = if study.main_metric() == Metric::P99 { Metric::Rate } else { Metric::P99 };
    if study.has(&Metric::Bulk) { Metric::Bulk } else { tail }
}

fn traded(study: &Study<'_>) -> ScatterFigure {
    let (main, other) = (study.main_metric(), other(study));
    let place = |arm: usize| Some((study.value(arm, &other)?, study.value(arm, &main)?));
    let spots = (0..study.finding.arms.len()).filter_map(|arm| {
        Some(Spot {
            at: place(arm)?,
            x_interval: study.interval(arm, &other),
            y_interval: study.interval(arm, &main),
            label: label(study, arm),
            look: if study.role(arm) == Role::AsFound { FOUND } else { TRIED },
            ringed: words::recommended(study) == Some(arm) || study.finding.knee == Some(arm),
        })
    });
    let mut path: Vec<(f64, f64)> = study.finding.front.iter().filter_map(|arm| place(*arm)).collect();
    outermost(&mut path, &other, &main);
    let name = words::swept_name(study).unwrap_or_default();
    ScatterFigure {
        id: "trade-off".to_string(),
        title: capitalised(&format!("{} against {}", axis_title(study, &main), axis_title(study, &other))),
        finding: "Each point is a value, with 95 % intervals; further up and to the right is better. The dashed line joins \
                  the values that no other beats on both axes."
            .replace("further up and to the right", &better_corner(&main, &other)),
        x: axis(study, &other),
        y: axis(study, &main),
        spots: spots.collect(),
        path,
        references: idle(study, &main).into_iter().collect(),
        key: vec![(TRIED, name), (FOUND, "baseline".to_string())],
        all_named: true,
    }
}

/// Keeps the points that no other one beats on both axes, from left to right. The front itself also has arms that are
/// beaten by no more than noise, which a line through all of them would only follow.
fn outermost(points: &mut Vec<(f64, f64)>, x: &Metric, y: &Metric) {
    let better = |metric: &Metric, a: f64, b: f64| if metric.more_is_better() { a > b } else { a < b };
    let all = points.clone();
    points.retain(|p| !all.iter().any(|q| better(x, q.0, p.0) && better(y, q.1, p.1)));
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
}

fn better_corner(y: &Metric, x: &Metric) -> String {
    let vertical = if y.more_is_better() { "up" } else { "down" };
    let across = if x.more_is_better() { "right" } else { "left" };
    format!("further {vertical} and to the {across}")
}

/// `15 MB: knee, recommended`.
fn label(study: &Study<'_>, arm: usize) -> String {
    let marks: Vec<&str> = words::marks(study, arm).into_iter().filter(|mark| *mark != "front").collect();
    let name = words::arm(study, arm);
    if marks.is_empty() { name } else { format!("{name}: {}", marks.join(", ")) }
}

/// The line of the idle machine.
fn idle(study: &Study<'_>, metric: &Metric) -> Option<Level> {
    let at = study.value(study.arm_of(Role::Idle)?, metric)?;
    Some(Level { at, label: format!("idle: {}", words::figure(metric, at)) })
}

/// The line of the baseline.
fn found(study: &Study<'_>, metric: &Metric) -> Option<Level> {
    let arm = study.arm_of(Role::AsFound)?;
    let at = study.value(arm, metric)?;
    Some(Level { at, label: format!("{}: {}", words::arm(study, arm), words::figure(metric, at)) })
}

/// Arms with their place on the knob's axis; `None` where values are words.
struct Values {
    places: Vec<(usize, f64)>,
    unit: Unit,
}

fn values(study: &Study<'_>) -> Option<Values> {
    let knob = study.swept()?;
    let mut values = Values { places: Vec::new(), unit: Unit::Count("") };
    for arm in study.tried() {
        let Some(setting) = study.setting(arm, &knob) else { continue };
        values.places.push((arm, setting.value.number()? as f64));
        values.unit = match setting.value {
            Value::Bytes(_) => Unit::Distance,
            Value::Ratio(_) => Unit::Percent,
            _ => Unit::Count(""),
        };
    }
    values.places.sort_by(|a, b| a.1.total_cmp(&b.1));
    (!values.places.is_empty()).then_some(values)
}

/// One panel for each figure that matters, over the knob's value.
fn against_value(study: &Study<'_>, values: &Values) -> Figure {
    let main = study.main_metric();
    let mut metrics = vec![main.clone()];
    let further = [Metric::Bulk, Metric::Rate, Metric::P99];
    metrics.extend(further.into_iter().filter(|metric| *metric != main && study.has(metric)));
    let mut panels: Vec<Panel> =
        metrics.iter().enumerate().map(|(i, m)| panel(study, values, m, i)).collect();
    let name = words::swept_name(study).unwrap_or_default();
    if let (Some(first), Some(arm)) = (panels.first_mut(), words::recommended(study)) {
        let at = values.places.iter().find(|(tried, _)| *tried == arm);
        first.references.extend(at.map(|(_, value)| Reference {
            at: At::X(*value),
            label: format!("recommended: {}", words::arm(study, arm)),
        }));
    }
    let (least, most) =
        values.places.iter().fold((f64::INFINITY, 0f64), |(l, m), p| (l.min(p.1), m.max(p.1)));
    let scale = if least > 0.0 && most > least * FAR_APART { Scale::Log } else { Scale::Linear };
    Figure {
        id: "against-value".to_string(),
        title: format!("Over the values of {name}"),
        finding: against_finding(study),
        x: Axis::x(name, values.unit, scale),
        panels,
        regions: Vec::new(),
    }
}

fn against_finding(study: &Study<'_>) -> String {
    let rate = words::recommended(study).and_then(|arm| words::of_idle(study, arm));
    let kept = rate
        .map_or(String::new(), |share| format!(" The recommended value keeps {} of idle.", percent(share)));
    format!("{MEANS}{kept}")
}

fn panel(study: &Study<'_>, values: &Values, metric: &Metric, place: usize) -> Panel {
    let look = [0, 3, 2, 4][place % 4];
    let series = over(study, &values.places, metric, look);
    let mut panel = Panel::of(axis(study, metric), vec![series], if place == 0 { 0.8 } else { 0.55 });
    let levels = [idle(study, metric), found(study, metric)].into_iter().flatten();
    panel.references.extend(levels.map(|level| Reference { at: At::Y(level.at), label: level.label }));
    panel
}

/// Bars for a knob whose values are words.
fn by_word(study: &Study<'_>) -> BarFigure {
    let main = study.main_metric();
    let bar = |arm: usize| Bar {
        label: label(study, arm),
        value: study.value(arm, &main).unwrap_or(f64::NAN),
        interval: study.interval(arm, &main),
        note: study
            .value(arm, &Metric::P99)
            .map_or(String::new(), |ns| format!("p99 {}", words::figure(&Metric::P99, ns))),
        look: if study.role(arm) == Role::Tried { TRIED } else { FOUND },
    };
    BarFigure {
        id: "by-value".to_string(),
        title: format!("By {}", words::swept_name(study).unwrap_or("arm".to_string())),
        finding: MEANS.to_string(),
        axis: Axis::y(axis_title(study, &main), unit(&main), Scale::Linear),
        groups: vec![(String::new(), study.tried().map(bar).collect())],
    }
}
