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

/// Whether the last step up in depth (by at least half again) no longer brought [`FLAT_GAIN`].
pub fn is_flat(points: &[CurvePoint]) -> bool {
    match points {
        [.., before, last] => {
            last.depth * 2 >= before.depth * 3 && last.iops.mean < before.iops.mean * FLAT_GAIN
        }
        _ => false,
    }
}
