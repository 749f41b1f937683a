//! The runs of a sustained examination, put together from its jobs and notes: what each kind of writes can keep up.

use crate::notes::{DoctorNotes, StepKind};
use crate::sustained::{Courses, Part, Pressure, Sustained, SustainedNotes, course, judge};
use weir_core::result::record::JobRecord;
use weir_core::target::DeviceCounters;

/// What the jobs of a sustained examination say; nothing where it was none.
pub fn derive(notes: &DoctorNotes, jobs: &[JobRecord]) -> Option<Sustained> {
    let own = notes.sustained.as_ref()?;
    let pressures = Pressure::ALL.into_iter().filter_map(|pressure| {
        let courses = courses(pressure, notes, own, jobs)?;
        Some(judge::judge(pressure, &courses))
    });
    Some(Sustained { pressures: pressures.collect(), counters: grown(own) })
}

fn courses(
    pressure: Pressure,
    notes: &DoctorNotes,
    own: &SustainedNotes,
    jobs: &[JobRecord],
) -> Option<Courses> {
    let at = |part: Part| {
        let index = notes.steps.iter().position(|step| step.kind == StepKind::Sustained(pressure, part))?;
        Some((jobs.get(index)?, own.stretches.get(index).copied().unwrap_or_default(), index))
    };
    let course = |part: Part| at(part).map_or(Vec::new(), |(job, ..)| course::of_record(job));
    let (_, drain, index) = at(Part::Drain)?;
    let again_ns = at(Part::Again).map_or(0, |(_, stretch, _)| stretch.start_ns);
    let end = |part: Part| at(part).map(|(_, stretch, _)| stretch.end_ns);
    let writes_end = end(Part::Other).unwrap_or(drain.end_ns);
    let last_end = end(Part::Reads).unwrap_or(writes_end);
    let bytes = |job: &JobRecord| job.classes.values().map(|class| class.bytes).max().unwrap_or(0);
    // Only what came right before: the other kind of writes had its own idle time.
    let before = jobs.first().filter(|_| index == 1);
    let first_ns = own.stretches.first().map_or(0, |stretch| stretch.start_ns);
    Some(Courses {
        drain: course(Part::Drain),
        other: course(Part::Other),
        reads: course(Part::Reads),
        again: course(Part::Again),
        idle_ns: again_ns.saturating_sub(last_end),
        idle_of_writes_ns: again_ns.saturating_sub(writes_end),
        written_before: before
            .map_or((0, 0.0), |job| (bytes(job), drain.start_ns.saturating_sub(first_ns) as f64 / 1e9)),
    })
}

/// What the counters grew by; those that do not count (a temperature) keep their last value.
fn grown(own: &SustainedNotes) -> Vec<DeviceCounters> {
    let before = |after: &DeviceCounters| {
        own.counters_before.iter().find(|b| b.device == after.device && b.source == after.source)
    };
    own.counters_after
        .iter()
        .map(|after| {
            let values = after.values.iter().map(|(name, value)| {
                let was = before(after).and_then(|b| b.values.get(name)).copied().unwrap_or(*value);
                let grew = if DeviceCounters::counts(name) { value.saturating_sub(was) } else { *value };
                (name.clone(), grew)
            });
            DeviceCounters { values: values.collect(), ..after.clone() }
        })
        .collect()
}
