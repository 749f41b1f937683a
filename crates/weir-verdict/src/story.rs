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
        cut_short: phase.cut_short,
        flood_bytes_per_second: phase.flood_bytes_per_second,
        device_bytes_per_second: device_rate(notes, phase),
    })
}

/// Bytes of a phase's samples over their time: the last of them may be far shorter than the others.
fn device_rate(notes: &DoctorNotes, phase: &FloodPhase) -> Option<f64> {
    let within = notes.flood.samples.iter().filter(|s| s.at_ns > phase.start_ns && s.at_ns <= phase.end_ns);
    let (mut from_ns, mut bytes, mut seen_ns) = (phase.start_ns, 0.0, 0.0);
    for sample in within {
        let len_ns = sample.at_ns.saturating_sub(from_ns) as f64;
        from_ns = sample.at_ns;
        if let Some(rate) = sample.device_bytes_per_second {
            bytes += rate * len_ns;
            seen_ns += len_ns;
        }
    }
    (seen_ns > 0.0).then(|| bytes / seen_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::FloodSample;

    #[test]
    fn the_devices_rate_weighs_each_sample_by_its_time() {
        for (last, expected) in [(0.0, 200e6 * 3000.0 / 3002.0), (1.4e9, (600e6 + 2.8e6) / 3.002)] {
            let sample = |at_ms: u64, rate: f64| FloodSample {
                at_ns: at_ms * 1_000_000,
                device_bytes_per_second: Some(rate),
                ..FloodSample::default()
            };
            let mut notes = DoctorNotes::default();
            // What another phase's device wrote does not count.
            notes.flood.samples = vec![sample(900, 9e9)];
            notes.flood.samples.extend((1..=6).map(|i| sample(1000 + i * 500, 200e6)));
            notes.flood.samples.extend([sample(4002, last), sample(4600, 9e9)]);
            let phase = FloodPhase {
                kind: PhaseKind::Flood,
                label: String::new(),
                threads: 1,
                dirty_bytes: None,
                start_ns: 1_000_000_000,
                end_ns: 4_002_000_000,
                measurement: None,
                flood_bytes_per_second: None,
                cut_short: false,
            };
            let rate = device_rate(&notes, &phase).unwrap();
            assert!((rate / expected - 1.0).abs() < 1e-9, "{rate} instead of {expected}");
        }
    }
}
