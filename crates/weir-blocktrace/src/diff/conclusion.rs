//! A comparison in words.

use super::{ClassDiff, Diff, Effect, LatencyChange, StageDiff};
use crate::{Class, Stage};
use weir_core::units::{Nanos, grouped, significant};

/// Depths at the driver that differ by this factor may explain another D2C by themselves.
const DEPTH_FACTOR: f64 = 1.25;
/// Where so much more of one side's I/Os are inserted, one has a scheduler and the other has not.
const SCHEDULER_SHARE: f64 = 0.5;
/// A part of the latency smaller than this is not worth a sentence.
const PART_MIN: f64 = 0.02;

/// What follows from a comparison, the most important first.
pub(super) fn verdict(diff: &Diff) -> Vec<String> {
    let class = main_class(diff);
    let mut sentences = Vec::new();
    sentences.extend(class.map_or_else(|| Some(not_comparable(diff)), |class| whole(diff, class)));
    sentences.extend(errors(diff));
    if let Some(class) = class {
        sentences.extend(device(diff, class));
        sentences.extend(scheduler(diff, class).or_else(|| before_driver(class)));
        sentences.extend(tail(diff, class));
        sentences.extend(other_classes(diff, class));
        sentences.extend(left_out(class));
    }
    sentences.extend(losses(diff));
    sentences
}

/// The class the verdict is about: all I/Os with data where these can be compared, else the largest that can.
fn main_class(diff: &Diff) -> Option<&ClassDiff> {
    let comparable = || diff.classes.iter().filter(|class| class.comparable);
    let all = comparable().find(|class| class.class == Class::All);
    all.or_else(|| comparable().max_by_key(|class| class.ios[0].min(class.ios[1])))
}

fn not_comparable(diff: &Diff) -> String {
    let common = diff.class(Class::All).map_or([0.0; 2], |class| class.common);
    format!(
        "the mixes cannot be compared: only {:.0} % of A's and {:.0} % of B's I/Os are of a kind and size that both \
         have; record both under the same load",
        common[0] * 100.0,
        common[1] * 100.0
    )
}

/// Everything the same, or nothing known: the sentence that stands for all.
fn whole(diff: &Diff, class: &ClassDiff) -> Option<String> {
    let total = total(class)?;
    let effect = total.mean?;
    let parts = [Stage::D2C, Stage::Q2D, Stage::G2DAll].iter().filter_map(|&stage| class.stage(stage));
    let all_same = parts
        .filter(|part| matters(part, &effect))
        .all(|part| part.judgement == LatencyChange::Same || part.stage != Stage::D2C);
    let name = total.stage.name();
    match total.judgement {
        LatencyChange::Same if all_same => Some(format!(
            "the same within {}: {name} {} against {} on average, D2C {}{}",
            percent_around(&effect),
            time(effect.a_ns),
            time(effect.b_ns),
            class.stage(Stage::D2C).and_then(|d2c| d2c.mean).map_or("not known".to_string(), |d2c| {
                format!("{} against {}", time(d2c.a_ns), time(d2c.b_ns))
            }),
            if errors(diff).is_none() { ": B is as healthy as A" } else { "" },
        )),
        LatencyChange::Undecided => Some(format!(
            "{name} {}: no difference is shown, and one of up to {} is not excluded; for a margin of {:.0} % record longer",
            interval_of(&effect),
            furthest(&effect),
            diff.margin * 100.0
        )),
        LatencyChange::NoInterval => Some(format!(
            "{name} {} on average, without an interval: too short to say more",
            times(effect.ratio)
        )),
        _ => Some(format!("{name} {}", change(&effect))),
    }
}

/// A device with errors is not well, however fast it is.
fn errors(diff: &Diff) -> Option<String> {
    let [a, b] = diff.devices.each_ref().map(|side| (side.errors, grouped(side.errors), grouped(side.ios)));
    (a.0.max(b.0) > 0)
        .then(|| format!("{} of A's {} I/Os and {} of B's {} ended with an error", a.1, a.2, b.1, b.2))
}

fn losses(diff: &Diff) -> Option<String> {
    let [a, b] = diff.devices.each_ref().map(|side| side.events_dropped);
    (a.max(b) > 0).then(|| {
        format!(
            "{} events of A and {} of B are missing: their I/Os are in no figure, and depths and rates are not exact",
            grouped(a),
            grouped(b)
        )
    })
}

/// Whether a part is so much of the whole that it is worth words.
fn matters(part: &StageDiff, total: &Effect) -> bool {
    part.mean.is_some_and(|part| part.a_ns.max(part.b_ns) >= PART_MIN * total.a_ns.max(total.b_ns))
}

fn total(class: &ClassDiff) -> Option<&StageDiff> {
    [Stage::Q2C, Stage::G2C, Stage::D2C]
        .iter()
        .find_map(|&stage| class.stage(stage).filter(|s| s.mean.is_some()))
}

fn device(diff: &Diff, class: &ClassDiff) -> Option<String> {
    let d2c = class.stage(Stage::D2C)?;
    let effect = d2c.mean?;
    if !matches!(d2c.judgement, LatencyChange::Longer | LatencyChange::Shorter) {
        let differs = total(class).is_some_and(|total| total.judgement != LatencyChange::Same);
        let same = d2c.judgement == LatencyChange::Same && differs;
        return same.then(|| format!("D2C the same within {}: not the device", percent_around(&effect)));
    }
    // Idle time, of which one recording may have more, lowers the mean and makes no request faster.
    let depths = match diff.devices.each_ref().map(|side| side.depth_at_work) {
        [Some(a), Some(b)] => [a, b],
        _ => diff.devices.each_ref().map(|side| side.depth_at_driver.unwrap_or_default()),
    };
    let (more, less) = (depths[0].max(depths[1]), depths[0].min(depths[1]));
    let with_depth = (depths[1] > depths[0]) == (d2c.judgement == LatencyChange::Longer);
    let why = if with_depth && more > less * DEPTH_FACTOR && more > 1.0 {
        format!(
            "but B's device had {} requests at once, A's {}: that alone makes a difference; record both at the same depth",
            significant(depths[1]),
            significant(depths[0])
        )
    } else {
        "the hardware or its cache".to_string()
    };
    Some(format!("D2C {} at the same size mix: {why}", change(&effect)))
}

/// One side is known to have a scheduler and the other to have none: their ways to the driver are compared as wholes.
fn scheduler(diff: &Diff, class: &ClassDiff) -> Option<String> {
    let [a, b] = diff.devices.each_ref().map(|side| side.inserted_share);
    let (a, b) = (a?, b?);
    if (a - b).abs() < SCHEDULER_SHARE {
        return None;
    }
    let (with, without) = if a > b { ("A", "B") } else { ("B", "A") };
    let mut ways = [(Stage::G2DAll, "request"), (Stage::Q2D, "queue")].into_iter();
    let (from, effect) = ways.find_map(|(way, from)| Some((from, class.stage(way)?.mean?)))?;
    let total = total(class).and_then(|total| total.mean)?;
    let share = |part_ns: f64, total_ns: f64| 100.0 * part_ns / total_ns;
    Some(format!(
        "{with}'s I/Os go through a scheduler (G2I and I2D), {without}'s go straight to the driver (G2D): from {from} to \
         driver {} against {}, {:.1} % of the latency against {:.1} %: {}",
        time(effect.a_ns),
        time(effect.b_ns),
        share(effect.a_ns, total.a_ns),
        share(effect.b_ns, total.b_ns),
        scheduler_matters(&effect, &total)
    ))
}

fn scheduler_matters(effect: &Effect, total: &Effect) -> String {
    let costs_ns = effect.b_ns - effect.a_ns;
    let of_total = (costs_ns / total.a_ns).abs();
    if of_total < PART_MIN {
        return "the scheduler makes next to no difference".to_string();
    }
    let (side, what) = if costs_ns > 0.0 { ("B", "longer") } else { ("B", "less") };
    format!("{side} takes {} {what}, {:.0} % of A's latency", time(costs_ns.abs()), of_total * 100.0)
}

fn before_driver(class: &ClassDiff) -> Option<String> {
    let total = total(class)?.mean?;
    let stage =
        [Stage::I2D, Stage::Q2D].iter().find_map(|&stage| class.stage(stage).filter(|s| s.mean.is_some()))?;
    let effect = stage.mean?;
    let name = match stage.stage {
        Stage::I2D => "I2D (the scheduler)",
        _ => "Q2D (all before the driver)",
    };
    match stage.judgement {
        _ if !matters(stage, &total) => Some(format!(
            "{name} is {:.1} % of the latency in A and {:.1} % in B, too little to matter",
            100.0 * effect.a_ns / total.a_ns,
            100.0 * effect.b_ns / total.b_ns
        )),
        LatencyChange::Same => Some(format!("{name} the same within {}", percent_around(&effect))),
        LatencyChange::Longer | LatencyChange::Shorter => Some(format!("{name} {}", change(&effect))),
        _ => Some(format!("{name} {}: no difference is shown", interval_of(&effect))),
    }
}

/// The slowest, where they say something else than the mean.
fn tail(diff: &Diff, class: &ClassDiff) -> Option<String> {
    let total = total(class)?;
    let (name, differs) =
        (total.stage.name(), matches!(total.judgement, LatencyChange::Longer | LatencyChange::Shorter));
    if let Some(p50) = total.p50
        && total.judgement != LatencyChange::Same
        && p50.judgement(diff.margin) == LatencyChange::Same
    {
        let rest = if differs { ": it is the slow ones that differ" } else { "" };
        return Some(format!("the median of {name} is the same within {}{rest}", percent_around(&p50)));
    }
    let p99 = total.p99?;
    let judgement = p99.judgement(diff.margin);
    let told =
        matches!(judgement, LatencyChange::Longer | LatencyChange::Shorter) && judgement != total.judgement;
    told.then(|| format!("the slowest differ from the mean: p99 of {} {}", total.stage.name(), change(&p99)))
}

/// Reads and writes, flushes, where they go another way than all of them together.
fn other_classes(diff: &Diff, main: &ClassDiff) -> Vec<String> {
    let d2c = |class: &ClassDiff| class.stage(Stage::D2C).map(|d2c| (d2c.judgement, d2c.mean));
    let whole = d2c(main);
    let wanted = [Class::Read, Class::Write, Class::Discard, Class::Flush];
    let classes =
        diff.classes.iter().filter(|class| class.class != main.class && wanted.contains(&class.class));
    let told = classes.filter_map(|class| {
        let (judgement, Some(effect)) = d2c(class)? else { return None };
        let tells = match judgement {
            LatencyChange::Longer | LatencyChange::Shorter => whole.map(|(of, _)| of) != Some(judgement),
            LatencyChange::Same => whole.map(|(of, _)| of) != Some(LatencyChange::Same),
            _ => false,
        };
        let what = match judgement {
            LatencyChange::Same => format!("the same within {}", percent_around(&effect)),
            _ => change(&effect),
        };
        tells.then(|| format!("{}: D2C {what}", class.class.words()))
    });
    told.collect()
}

fn left_out(class: &ClassDiff) -> Option<String> {
    let left = class.common.map(|share| (1.0 - share) * 100.0);
    (left[0].max(left[1]) >= 5.0).then(|| {
        format!(
            "left out are {:.0} % of A's and {:.0} % of B's I/Os: the other has too few of their kind and size",
            left[0], left[1]
        )
    })
}

/// `2.4 × as long (2.2 .. 2.6): 0.0906 ms against 0.217 ms`.
fn change(effect: &Effect) -> String {
    let how = if effect.ratio >= 1.0 {
        format!("{} as long in B as in A", times(effect.ratio))
    } else {
        format!("{} as long in A as in B", times(1.0 / effect.ratio))
    };
    let interval = effect
        .interval
        .map(|[low, high]| if effect.ratio >= 1.0 { [low, high] } else { [1.0 / high, 1.0 / low] });
    let interval =
        interval.map_or(String::new(), |[low, high]| format!(" ({} .. {})", ratio(low), ratio(high)));
    format!("{how}{interval}: A {}, B {}", time(effect.a_ns), time(effect.b_ns))
}

fn interval_of(effect: &Effect) -> String {
    effect.interval.map_or_else(
        || times(effect.ratio),
        |[low, high]| format!("{} ({} .. {})", times(effect.ratio), ratio(low), ratio(high)),
    )
}

/// The whole percents that contain the interval.
fn percent_around(effect: &Effect) -> String {
    format!("{:.0} %", ((factor(effect) - 1.0) * 100.0).ceil().max(1.0))
}

/// The same, as a factor where percents would be hard to read.
fn furthest(effect: &Effect) -> String {
    if factor(effect) < 2.0 { percent_around(effect) } else { times(factor(effect)) }
}

/// How far from 1 the interval reaches, up or down.
fn factor(effect: &Effect) -> f64 {
    let [low, high] = effect.interval.unwrap_or([effect.ratio; 2]);
    high.max(1.0 / low).max(1.0)
}

fn times(of: f64) -> String {
    format!("{} ×", ratio(of))
}

/// Two decimals near 1, where they matter, else what is significant.
fn ratio(of: f64) -> String {
    if of < 2.0 {
        format!("{of:.2}")
    } else if of < 10.0 {
        format!("{of:.1}")
    } else {
        format!("{of:.0}")
    }
}

fn time(ns: f64) -> String {
    Nanos(ns.round() as u64).to_string()
}
