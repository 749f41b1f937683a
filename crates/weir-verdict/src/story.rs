//! The flood's story: phases and samples from the notes, joined with the commits measured in them.

use super::doctor::{EffectSide, FloodEffect, FloodPhase, FloodStory, Measurement, PhaseKind};
use super::notes::DoctorNotes;

/// Share of the background limit that dirty pages must reach for a flood to count as provoked.
const PRESSED: f64 = 0.9;

/// Builds the story; `None` where no flood was tried.
pub fn story(notes: &DoctorNotes, measurements: &[Measurement]) -> Option<FloodStory> {
    let flood = &notes.flood;
    if flood.phases.is_empty() && flood.remarks.is_empty() {
        return None;
    }
    let background = flood.background_limit.0 as f64;
    let peak = flood.samples.iter().map(|s| s.dirty_bytes + s.writeback_bytes).max().unwrap_or(0) as f64;
    Some(FloodStory {
        phases: flood.phases.clone(),
        samples: flood.samples.clone(),
        effects: effects(notes, measurements),
        provoked: background > 0.0 && peak >= PRESSED * background,
        remarks: flood.remarks.clone(),
    })
}

fn effects(notes: &DoctorNotes, measurements: &[Measurement]) -> Vec<FloodEffect> {
    let sides = |kind: PhaseKind, threads: u32| {
        let phases = notes.flood.phases.iter().filter(move |p| p.kind == kind && p.threads == threads);
        phases.filter_map(|phase| side(notes, phase, measurements)).collect::<Vec<_>>()
    };
    let mut counts: Vec<u32> = notes.flood.phases.iter().map(|p| p.threads).filter(|n| *n > 0).collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts.dedup();
    let effect = |threads| {
        let idle = sides(PhaseKind::Idle, threads).into_iter().next()?;
        let flood = sides(PhaseKind::Flood, threads).into_iter().next()?;
        let mut rescues = sides(PhaseKind::Rescue, threads);
        rescues.sort_by_key(|r| r.dirty_bytes);
        Some(FloodEffect { threads, idle, flood, rescues })
    };
    counts.into_iter().filter_map(effect).collect()
}

fn side(notes: &DoctorNotes, phase: &FloodPhase, measurements: &[Measurement]) -> Option<EffectSide> {
    let id = phase.measurement.as_ref()?;
    let m = measurements.iter().find(|m| m.id == *id)?;
    Some(EffectSide {
        measurement: id.clone(),
        dirty_bytes: phase.dirty_bytes,
        iops: m.iops,
        n: m.latency.n,
        mean_ns: m.latency.mean_ns,
        p99_ns: m.latency.p99_ns,
        worst_ns: m.latency.max_ns.max(m.oldest_ns_max),
        flood_bytes_per_second: phase.flood_bytes_per_second,
        device_bytes_per_second: device_rate(notes, phase),
    })
}

/// Mean of the samples within a phase.
fn device_rate(notes: &DoctorNotes, phase: &FloodPhase) -> Option<f64> {
    let within = notes.flood.samples.iter().filter(|s| s.at_ns > phase.start_ns && s.at_ns <= phase.end_ns);
    let rates: Vec<f64> = within.filter_map(|s| s.device_bytes_per_second).collect();
    (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
}
