//! Does %util mean anything here? It counts the time with at least one request in flight; a device that serves many
//! at once is not full at 100 % (Documentation/admin-guide/iostats.rst, field 10).

use crate::doctor::{Curve, CurvePoint, Finding, Statement, Topic};
use crate::view::{View, fact, point_of, time, times};
use weir_core::units::per_second;

/// Parallelism from which %util misleads, and below which it can be trusted.
const MISLEADS: f64 = 3.0;
const HOLDS: f64 = 1.5;

/// Judges by the read curve, else by the write curve: what %util at the smallest depth promises for 100 %, against
/// what the device does with more in flight.
pub fn judge(view: &View) -> Option<Finding> {
    let curve = view.curve("read").or_else(|| view.curve("write"))?;
    let (first, best) = (curve.points.first()?, best_up_to(curve, 32)?);
    if first.iops.mean <= 0.0 || curve.points.len() < 2 {
        return None;
    }
    // A lone thread on a starved processor leaves even a slow device idle between requests.
    let seen = utilization_at(view, first);
    let share = seen.unwrap_or(1.0).clamp(0.02, 1.0);
    let promised = first.iops.mean / share;
    let mut evidence = vec![point_of(first), point_of(best)];
    evidence
        .extend(seen.map(|s| fact("diskstats", format!("{:.0} %util at depth {}", s * 100.0, first.depth))));
    let (summary, mut text) = words(curve, first, best, share, promised);
    if seen.is_none() {
        text.push_str(" %util itself could not be seen; 100 is assumed at the smallest depth.");
    }
    let mut statements = vec![Statement::new(text, evidence)];
    statements.extend(view.curves.iter().filter_map(saturation));
    Some(Finding { topic: Topic::Utilization, grade: None, summary, statements })
}

/// The highest rate at no more than `depth`.
fn best_up_to(curve: &Curve, depth: u32) -> Option<&CurvePoint> {
    let within = curve.points.iter().filter(|p| p.depth <= depth);
    within.max_by(|a, b| a.iops.mean.total_cmp(&b.iops.mean))
}

fn utilization_at(view: &View, point: &CurvePoint) -> Option<f64> {
    view.measurements.iter().find(|m| m.id == point.measurement)?.utilization
}

fn words(
    curve: &Curve,
    first: &CurvePoint,
    best: &CurvePoint,
    share: f64,
    promised: f64,
) -> (String, String) {
    let (gain, word) = (best.iops.mean / promised, curve.class.name());
    let seen = format!(
        "{} {word} in flight at a time makes {} IOPS at {:.0} %util, which promises {} at 100 %; {} in flight bring {}",
        first.depth,
        per_second(first.iops.mean),
        share * 100.0,
        per_second(promised),
        best.depth,
        per_second(best.iops.mean),
    );
    if gain >= MISLEADS {
        let text = format!("%util means little here: {seen} ({} as much).", times(gain));
        ("%util misleads".to_string(), text)
    } else if gain < HOLDS {
        (
            "%util can be trusted".to_string(),
            format!("%util can be trusted here, near 100 % means full: {seen}."),
        )
    } else {
        (
            "%util exaggerates".to_string(),
            format!("%util exaggerates here: {seen} ({} as much).", times(gain)),
        )
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
