//! Depth curves: where a device saturates, by IOPS and by p99.

use super::doctor::{Curve, CurvePoint, Measurement};
use super::notes::{DoctorNotes, StepKind};

/// Share of the highest IOPS that marks the knee.
const KNEE: f64 = 0.9;
/// Growth of p99 over the smallest depth's up to which a depth still counts as free of queueing.
const P99_GROWTH: u64 = 3;
/// Gain of a doubling of depth below which the curve counts as flat.
pub const FLAT_GAIN: f64 = 1.10;

/// Groups the depth steps by kind and block size into curves, each in ascending depth.
pub fn curves(measurements: &[Measurement], notes: &DoctorNotes) -> Vec<Curve> {
    let mut groups: Vec<(StepKind, u64, Vec<&Measurement>)> = Vec::new();
    for (step, measurement) in notes.steps.iter().zip(measurements) {
        if !matches!(step.kind, StepKind::ReadDepth | StepKind::WriteDepth) || measurement.latency.n == 0 {
            continue;
        }
        let key = (step.kind, measurement.block.0);
        match groups.iter_mut().find(|(kind, block, _)| (*kind, *block) == key) {
            Some(group) => group.2.push(measurement),
            None => groups.push((key.0, key.1, vec![measurement])),
        }
    }
    groups.into_iter().filter_map(|(kind, _, group)| curve(kind, group, notes)).collect()
}

fn curve(kind: StepKind, mut group: Vec<&Measurement>, notes: &DoctorNotes) -> Option<Curve> {
    group.sort_by_key(|m| in_flight(m));
    let first = group.first()?;
    let word = if kind == StepKind::ReadDepth { "read" } else { "write" };
    let id = format!("{word}-{}k", first.block.0 / 1024);
    let points: Vec<CurvePoint> = group.iter().map(|m| point(m)).collect();
    let max_iops = points.iter().map(|p| p.iops.mean).fold(0.0, f64::max);
    let knee = points.iter().find(|p| p.iops.mean >= KNEE * max_iops)?;
    Some(Curve {
        title: format!("random {word}s {}, O_DIRECT", first.block),
        class: first.class,
        block: first.block,
        max_iops,
        knee_depth: knee.depth,
        p99_depth: p99_depth(&points),
        saturated: is_flat(&points),
        stopped: notes.skipped.iter().find(|s| s.what.starts_with(&id)).map(|s| s.why.clone()),
        id,
        points,
    })
}

fn in_flight(m: &Measurement) -> u32 {
    m.depth.saturating_mul(m.threads)
}

fn point(m: &Measurement) -> CurvePoint {
    CurvePoint {
        depth: in_flight(m),
        measurement: m.id.clone(),
        n: m.latency.n,
        iops: m.iops,
        mean_ns: m.latency.mean_ns,
        p50_ns: m.latency.p50_ns,
        p99_ns: m.latency.p99_ns,
    }
}

/// Largest depth, going up without a gap, whose p99 is at most [`P99_GROWTH`] times the smallest depth's.
fn p99_depth(points: &[CurvePoint]) -> Option<u32> {
    let base = points.first()?.p99_ns?;
    points.iter().take_while(|p| p.p99_ns.is_some_and(|p99| p99 <= base * P99_GROWTH)).last().map(|p| p.depth)
}

/// Whether the largest depth no longer brought [`FLAT_GAIN`] over the best before it (by at least half again): one depth may have had a
/// bad moment.
pub fn is_flat(points: &[CurvePoint]) -> bool {
    let Some((last, before)) = points.split_last() else { return false };
    let best = before.iter().max_by(|a, b| a.iops.mean.total_cmp(&b.iops.mean));
    best.is_some_and(|best| last.depth * 2 >= best.depth * 3 && last.iops.mean < best.iops.mean * FLAT_GAIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Estimate;

    #[test]
    fn a_curve_is_flat_where_the_largest_depth_is_no_better_than_the_best_before() {
        let point = |(depth, iops): &(u32, f64)| CurvePoint {
            depth: *depth,
            measurement: String::new(),
            n: 1000,
            iops: Estimate { mean: *iops, ..Estimate::default() },
            mean_ns: 1e6,
            p50_ns: None,
            p99_ns: None,
        };
        let cases: [(&[(u32, f64)], bool); 7] = [
            (&[(1, 1633.0), (8, 1344.0), (32, 1544.0)], true),
            (&[(1, 1000.0), (8, 1500.0), (32, 1510.0)], true),
            (&[(1, 1000.0), (8, 900.0), (32, 1200.0)], false),
            (&[(1, 1000.0), (8, 4000.0), (32, 8000.0)], false),
            // Hardly deeper.
            (&[(8, 8000.0), (10, 8100.0)], false),
            (&[(8, 8000.0)], false),
            (&[], false),
        ];
        for (rates, expected) in cases {
            assert_eq!(is_flat(&rates.iter().map(point).collect::<Vec<_>>()), expected, "{rates:?}");
        }
    }
}
