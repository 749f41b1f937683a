//! Does %util mean anything here? It counts the time with at least one request in flight; a device that serves many
//! at once is not full at 100 % (Documentation/admin-guide/iostats.rst, field 10).

use crate::units::per_second;
use crate::verdict::doctor::{Curve, CurvePoint, Evidence, Finding, Statement, Topic};
use crate::verdict::view::{View, fact, point_of, time, times};

/// Parallelism from which %util misleads, and below which it can be trusted.
const MISLEADS: f64 = 3.0;
const HOLDS: f64 = 1.5;

/// Judges by the gain from depth on the read curve, else on the write curve.
pub fn judge(view: &View) -> Option<Finding> {
    let curve = view.curve("read").or_else(|| view.curve("write"))?;
    let (first, best) = (curve.points.first()?, best_up_to(curve, 32)?);
    if first.iops.mean <= 0.0 || curve.points.len() < 2 {
        return None;
    }
    let gain = best.iops.mean / first.iops.mean;
    let mut evidence = vec![point_of(first), point_of(best)];
    evidence.extend(utilization_at(view, first));
    let (summary, text) = words(curve, first, best, gain);
    let mut statements = vec![Statement::new(text, evidence)];
    statements.extend(view.curves.iter().filter_map(saturation));
    Some(Finding { topic: Topic::Utilization, grade: None, summary, statements })
}

/// The highest rate at no more than `depth`.
fn best_up_to(curve: &Curve, depth: u32) -> Option<&CurvePoint> {
    let within = curve.points.iter().filter(|p| p.depth <= depth);
    within.max_by(|a, b| a.iops.mean.total_cmp(&b.iops.mean))
}

fn utilization_at(view: &View, point: &CurvePoint) -> Option<Evidence> {
    let measurement = view.measurements.iter().find(|m| m.id == point.measurement)?;
    let share = measurement.utilization?;
    Some(fact("diskstats", format!("{:.0} %util at depth {}", share * 100.0, point.depth)))
}

fn words(curve: &Curve, first: &CurvePoint, best: &CurvePoint, gain: f64) -> (String, String) {
    let word = curve.class.name();
    let (low, high) = (per_second(first.iops.mean), per_second(best.iops.mean));
    if gain >= MISLEADS {
        let text = format!(
            "%util means little here: {} {word} in flight keeps it near 100 % at {low} IOPS, yet {} in flight \
             bring {high} ({}).",
            first.depth,
            best.depth,
            times(gain)
        );
        ("%util misleads".to_string(), text)
    } else if gain < HOLDS {
        let text = format!(
            "%util can be trusted here: {low} {word} IOPS with {} in flight, at most {high} with more: near \
             100 % means full.",
            first.depth
        );
        ("%util can be trusted".to_string(), text)
    } else {
        let text = format!(
            "%util exaggerates here: {} {word} in flight keeps it near 100 % at {low} IOPS; the device has {} \
             that ({high}).",
            first.depth,
            times(gain)
        );
        ("%util exaggerates".to_string(), text)
    }
}

/// Where a curve bends, by IOPS and by p99.
fn saturation(curve: &Curve) -> Option<Statement> {
    let knee = curve.points.iter().find(|p| p.depth == curve.knee_depth)?;
    let last = curve.points.last()?;
    let block = curve.block;
    let mut text = if curve.saturated {
        format!(
            "Random {}s of {block} saturate at {} IOPS; {} in flight are enough for 90 %",
            curve.class.name(),
            per_second(curve.max_iops),
            curve.knee_depth
        )
    } else {
        format!(
            "Random {}s of {block} were still gaining at {} in flight ({} IOPS): the limit was not reached",
            curve.class.name(),
            last.depth,
            per_second(last.iops.mean)
        )
    };
    if let (Some(depth), Some(p99)) = (curve.p99_depth, last.p99_ns)
        && depth < last.depth
    {
        text.push_str(&format!("; p99 stays within 3× up to {depth} and is {} at {}", time(p99), last.depth));
    }
    text.push('.');
    Some(Statement::new(text, vec![point_of(knee), point_of(last)]))
}
