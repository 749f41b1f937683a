//! Is a device with a high %util saturated? What it does now, against the depth curve that was once measured on it.
//!
//! %util is the time with at least one request in flight (Documentation/admin-guide/iostats.rst, field 10): a device
//! that serves many at once may be at 100 % and have most of its capacity left.

use serde::{Deserialize, Serialize};

use super::Examined;
use super::curve;
use super::doctor::Curve;
use super::measurement::measure;
use super::notes::{DoctorNotes, StepKind, StepNote};
use super::view::{percent, times};
use weir_blocktrace::Row;
use weir_core::result::Record;
use weir_core::result::record::{Class, JobRecord};
use weir_core::target::{Conditions, DeviceLoad, Layer, LayerKind};
use weir_core::units::{Bytes, per_second, significant};
use weir_core::workload::spec::Access;

/// Value of [`Utilization::schema`] that this version writes.
pub const SCHEMA: &str = "weir.utilization/1";
/// Sizes of requests may differ by this factor and still be compared.
const SIZE_RATIO_MAX: f64 = 2.0;
/// Share of the curve's best from which a device counts as saturated.
const SATURATED: f64 = 0.9;
/// Up to so many requests in flight while busy, one is served at a time.
const ONE_AT_A_TIME: f64 = 1.15;

/// What a device did while it was watched, and what follows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Utilization {
    /// Always [`SCHEMA`] when written by this version.
    pub schema: String,
    /// The kernel's name.
    pub device: String,
    /// How long it was watched.
    pub elapsed_ns: u64,
    /// The kernel's counters; %util, rates, waits, and the mean depth as rate × mean wait (Little).
    pub load: DeviceLoad,
    /// Reads, writes and discards per second.
    pub iops: f64,
    /// Mean time from queue to completion, ms; absent without I/O.
    pub await_ms: Option<f64>,
    /// Mean requests in flight while there were any; absent without I/O.
    pub in_flight_while_busy: Option<f64>,
    /// The time one request keeps the device, ms, where it serves one at a time; absent where that means nothing.
    pub service_ms: Option<f64>,
    /// Stages of all I/O, where they could be seen.
    pub stages: Option<Row>,
    /// The record that it is compared with.
    pub record_id: Option<String>,
    /// Reads and writes against that record's curves.
    pub against: Vec<Against>,
    /// Share of the device's best, reads and writes together; absent without a curve for what it does.
    pub saturation: Option<f64>,
    /// What follows, the answer first.
    pub statements: Vec<String>,
}

/// One direction against its curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Against {
    /// Read or write.
    pub class: Class,
    /// What the device does now.
    pub iops: f64,
    /// Mean length of its requests.
    pub bytes_mean: f64,
    /// The curve, in words.
    pub curve: String,
    /// Size of the curve's operations.
    pub block: Bytes,
    /// The curve's best, and the depth that reached it.
    pub max_iops: f64,
    /// See `max_iops`.
    pub max_depth: u32,
    /// Whether the curve had become flat.
    pub saturated: bool,
    /// `iops / max_iops`, where the sizes can be compared.
    pub share: Option<f64>,
}

/// Curves of one record.
#[derive(Debug, Clone)]
pub struct Known {
    /// The record.
    pub record_id: String,
    /// When it was measured.
    pub started_at: String,
    /// Its curves.
    pub curves: Vec<Curve>,
}

impl Known {
    /// The curves of an examination by the doctor.
    pub fn of_doctor(record: &Record, examined: &Examined) -> Option<Known> {
        Known::of(record, of_doctor(record, examined))
    }

    /// The curves of plain jobs.
    pub fn of_jobs(record: &Record) -> Option<Known> {
        Known::of(record, of_jobs(record))
    }

    /// None where there are none.
    fn of(record: &Record, curves: Vec<Curve>) -> Option<Known> {
        let known = Known { record_id: record.id.clone(), started_at: record.started_at.clone(), curves };
        (!known.curves.is_empty()).then_some(known)
    }

    /// The curve for requests of about this size.
    fn curve(&self, class: Class, bytes_mean: f64) -> Option<&Curve> {
        let distance = |curve: &Curve| (curve.block.0 as f64 / bytes_mean.max(1.0)).ln().abs();
        let of_class = self.curves.iter().filter(|curve| curve.class == class);
        of_class.min_by(|a, b| distance(a).total_cmp(&distance(b)))
    }
}

/// The doctor's depth curves; its bulk reads and writes stand as curves of one depth.
fn of_doctor(record: &Record, examined: &Examined) -> Vec<Curve> {
    let bulk = examined.notes.steps.iter().zip(&record.jobs).filter_map(|(step, job)| match step.kind {
        StepKind::SequentialRead => Some((StepKind::ReadDepth, job)),
        StepKind::SequentialWrite => Some((StepKind::WriteDepth, job)),
        _ => None,
    });
    let mut curves = super::report(record, examined).curves;
    curves.extend(
        grouped(bulk.collect())
            .into_iter()
            // Large blocks in a queue are as much as the device moves.
            .map(|curve| Curve {
                title: curve.title.replacen("random", "sequential", 1),
                saturated: true,
                ..curve
            }),
    );
    curves
}

/// A bench's jobs of one kind, size and several depths. A job with a rate tells what was asked of the device, not what it
/// can do.
fn of_jobs(record: &Record) -> Vec<Curve> {
    let kind = |job: &JobRecord| match job.job.read_percent {
        100.0 => Some(StepKind::ReadDepth),
        0.0 => Some(StepKind::WriteDepth),
        _ => None,
    };
    let fits = |job: &&JobRecord| {
        let spec = &job.job;
        let made_up = matches!(spec.access, Access::Random(_)) && spec.replay.is_none();
        made_up && spec.direct && spec.rate.is_none() && spec.sync.every == 0 && job.error.is_none()
    };
    grouped(record.jobs.iter().filter(fits).filter_map(|job| Some((kind(job)?, job))).collect())
}

fn grouped(jobs: Vec<(StepKind, &JobRecord)>) -> Vec<Curve> {
    let step = |(kind, job): &(StepKind, &JobRecord)| StepNote {
        id: job.job.name.clone(),
        kind: *kind,
        utilization: None,
        stages: None,
        copies: None,
        writes_above: None,
    };
    let notes = DoctorNotes { steps: jobs.iter().map(step).collect(), ..DoctorNotes::default() };
    let measurements: Vec<_> =
        notes.steps.iter().zip(&jobs).map(|(step, (_, job))| measure(step, job)).collect();
    curve::curves(&measurements, &notes)
}

/// Whether a record was measured on this device, as far as name, size, model and backing file tell.
pub fn is_about(record: &Record, device: &Layer) -> bool {
    let Ok(conditions) = weir_core::json::typed::<Conditions>(&record.conditions) else {
        return false;
    };
    let Some(target) = conditions.target else { return false };
    let then = match &target.file_system {
        Some(_) => target.device_layer(),
        None => target.stack.first(),
    };
    then.is_some_and(|then| {
        let identity =
            |layer: &Layer| (layer.name.clone(), layer.size_bytes, layer.model.clone(), backing(layer));
        identity(then) == identity(device)
    })
}

fn backing(layer: &Layer) -> Option<String> {
    match &layer.kind {
        LayerKind::Loop { backing_file, .. } => Some(backing_file.clone()),
        _ => None,
    }
}

/// What a device's figures mean, with the curves known of it.
pub fn judge(
    device: &Layer,
    load: &DeviceLoad,
    elapsed_ns: u64,
    stages: Option<Row>,
    known: Option<&Known>,
) -> Utilization {
    let iops = load.reads_per_second + load.writes_per_second + load.discards_per_second;
    let waits = load.reads_per_second * load.read_wait_ms
        + load.writes_per_second * load.write_wait_ms
        + load.discards_per_second * load.discard_wait_ms;
    let await_ms = (iops > 0.0).then(|| waits / iops);
    let busy = load.util_percent / 100.0;
    let in_flight_while_busy = (iops > 0.0 && busy > 0.0).then(|| load.queue_mean / busy);
    let one = in_flight_while_busy.is_some_and(|n| n <= ONE_AT_A_TIME);
    let against: Vec<Against> = known.map(|known| against(load, known)).unwrap_or_default();
    let shares: Option<Vec<f64>> = against.iter().map(|a| a.share).collect();
    let saturation = shares.filter(|shares| !shares.is_empty()).map(|shares| shares.iter().sum());
    let mut utilization = Utilization {
        schema: SCHEMA.to_string(),
        device: device.name.clone(),
        elapsed_ns,
        load: load.clone(),
        iops,
        await_ms,
        in_flight_while_busy,
        service_ms: await_ms.filter(|_| one),
        stages,
        record_id: known.map(|known| known.record_id.clone()),
        against,
        saturation,
        statements: Vec::new(),
    };
    utilization.statements = statements(&utilization, known);
    utilization
}

fn against(load: &DeviceLoad, known: &Known) -> Vec<Against> {
    let sides = [
        (Class::Read, load.reads_per_second, load.read_bytes_per_second),
        (Class::Write, load.writes_per_second, load.write_bytes_per_second),
    ];
    let busy = sides.into_iter().filter(|(_, iops, _)| *iops > 0.0);
    let compare = |(class, iops, bytes): (Class, f64, f64)| {
        let bytes_mean = bytes / iops;
        let curve = known.curve(class, bytes_mean)?;
        let best = curve.points.iter().max_by(|a, b| a.iops.mean.total_cmp(&b.iops.mean))?;
        let ratio = curve.block.0 as f64 / bytes_mean.max(1.0);
        let alike = (1.0 / SIZE_RATIO_MAX..=SIZE_RATIO_MAX).contains(&ratio) && best.iops.mean > 0.0;
        Some(Against {
            class,
            iops,
            bytes_mean,
            curve: curve.title.clone(),
            block: curve.block,
            max_iops: best.iops.mean,
            max_depth: best.depth,
            saturated: curve.saturated,
            share: alike.then(|| iops / best.iops.mean),
        })
    };
    busy.filter_map(compare).collect()
}

/// The answer, then what it rests on, then what %util itself is worth here.
fn statements(u: &Utilization, known: Option<&Known>) -> Vec<String> {
    if u.iops <= 0.0 {
        let flushes = if u.load.flushes_per_second > 0.0 { " but flushes" } else { "" };
        return vec![format!("No I/O{flushes} reached {} while it was watched.", u.device)];
    }
    let mut said = vec![answer(u, known)];
    said.extend(u.against.iter().filter_map(|a| against_statement(u, a)));
    if u.against.len() > 1 && u.saturation.is_some() {
        said.push(
            "The shares of reads and writes are added up as if each took its part of the device.".to_string(),
        );
    }
    said.push(service(u));
    said.extend(flushes(u));
    said.extend(coarse(u));
    said
}

/// "Accounting the containing request is enough" (block/blk-mq.c, `blk_account_io_done`): that of a sync is a write of no bytes.
fn flushes(u: &Utilization) -> Option<String> {
    let commands = per_second(u.load.flushes_per_second);
    let of_data = u.stages.as_ref().map(|row| {
        format!(
            "; {} requests a second moved data, and `in queue` and `in device` are of these",
            per_second(row.iops)
        )
    });
    (u.load.flushes_per_second > 0.0).then(|| {
        format!(
            "The kernel counts a flush that carries no data among the writes, so that rates, sizes and await are of both \
             ({commands} flush commands a second){}.",
            of_data.unwrap_or_default()
        )
    })
}

fn answer(u: &Utilization, known: Option<&Known>) -> String {
    let util = format!("%util is {:.0} %", u.load.util_percent);
    let measure = "with `weir doctor FOLDER` (a folder on it), or, read only, with `weir bench JOBFILE` and jobs of several \
                   depths (docs/reference/trace-live.md)";
    let Some(known) = known else {
        return format!(
            "{util}; no curve of {} is stored to compare it with. Measure one {measure}.",
            u.device
        );
    };
    // A curve that still rose says nothing of where the device ends.
    let of_the_end: f64 = u.against.iter().filter(|a| a.saturated).filter_map(|a| a.share).sum();
    match u.saturation {
        None => {
            format!("{util}; record {} has no curve for requests of this kind and size.", known.record_id)
        }
        Some(share) if of_the_end >= SATURATED => {
            format!(
                "{} is saturated: {} of what it did at its best, at {:.0} %util.",
                u.device,
                percent(share),
                u.load.util_percent
            )
        }
        Some(share) if share >= SATURATED => {
            format!(
                "{util} and {} is at {} of the most that was measured of it, which need not be its limit. Measure deeper {measure}.",
                u.device,
                percent(share)
            )
        }
        Some(share) => {
            let word = if u.load.util_percent / 100.0 > share * 1.5 { ", yet" } else { " and" };
            format!(
                "{util}{word} {} is at {} of what it did at its best: {} as much is left.",
                u.device,
                percent(share),
                times((1.0 - share) / share)
            )
        }
    }
}

fn against_statement(u: &Utilization, a: &Against) -> Option<String> {
    let record = u.record_id.as_ref()?;
    let word = a.class.name();
    let Some(share) = a.share else {
        return Some(format!(
            "Its {word}s are of {} on average, and the nearest curve is of {}: too far apart to compare ({}, record {record}).",
            Bytes(a.bytes_mean.round() as u64),
            a.block,
            a.curve
        ));
    };
    let more = if a.saturated { "" } else { ", where it was still rising or was not tried deeper" };
    Some(format!(
        "{} {word} IOPS are {} of the {} that the curve reached at depth {}{more} ({}, record {record}).",
        per_second(a.iops),
        percent(share),
        per_second(a.max_iops),
        a.max_depth,
        a.curve
    ))
}

fn service(u: &Utilization) -> String {
    let in_flight = u.in_flight_while_busy.unwrap_or(0.0);
    match u.service_ms {
        Some(ms) => format!(
            "It served one request at a time ({} in flight while busy), so a request's service time is its await, {} ms.",
            significant(in_flight),
            significant(ms)
        ),
        None => format!(
            "It has no service time: {} requests were in flight while it was busy; %util / IOPS, {} ms, is the time of none of them (await {} ms).",
            significant(in_flight),
            significant(u.load.util_percent * 10.0 / u.iops),
            significant(u.await_ms.unwrap_or(0.0))
        ),
    }
}

/// The kernel counts busy time in whole ticks of its clock, which overstates it for short requests: a device cannot
/// have been busy for longer than all its requests took together.
fn coarse(u: &Utilization) -> Option<String> {
    let most_percent = u.load.queue_mean * 100.0;
    (u.load.util_percent > most_percent * 1.2 + 1.0 && u.load.in_flight == 0).then(|| {
        format!(
            "The kernel's %util counts whole ticks: all requests together took {} of the time, so it was busy for no more.",
            percent(most_percent / 100.0)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::throttled_and_flooded;
    use weir_core::workload::spec::{Arrival, Rate};

    fn device() -> Layer {
        Layer { name: "sda".into(), ..Layer::default() }
    }

    fn load(writes: f64, kib: f64, util: f64, wait_ms: f64) -> DeviceLoad {
        DeviceLoad {
            util_percent: util,
            writes_per_second: writes,
            write_bytes_per_second: writes * kib * 1024.0,
            write_wait_ms: wait_ms,
            queue_mean: writes * wait_ms / 1000.0,
            ..DeviceLoad::default()
        }
    }

    #[test]
    fn a_busy_device_is_held_against_its_curve() {
        let record = throttled_and_flooded().record(Vec::new());
        let examined = Examined {
            notes: weir_core::json::typed(&record.extra).unwrap(),
            conditions: weir_core::json::typed(&record.conditions).unwrap(),
        };
        let known = Known::of_doctor(&record, &examined).unwrap();
        let curve = known.curve(Class::Write, 4096.0).unwrap();
        let best = curve.max_iops;
        for (writes, kib, util, expected, says) in [
            (
                best * 0.31,
                4.0,
                93.0,
                Some(0.31),
                "%util is 93 %, yet sda is at 31 % of what it did at its best",
            ),
            (best * 0.97, 4.0, 100.0, Some(0.97), "sda is saturated: 97 %"),
            (best * 0.31, 5.5, 30.0, Some(0.31), "%util is 30 % and sda is at 31 %"),
            (10.0, 700.0, 93.0, None, "no curve for requests of this kind and size"),
            (0.0, 4.0, 0.0, None, "No I/O reached sda"),
        ] {
            let u = judge(&device(), &load(writes, kib, util, 1.0), 1, None, Some(&known));
            assert_eq!(u.saturation.map(|s| (s * 100.0).round()), expected.map(|s| s * 100.0), "{u:?}");
            assert!(u.statements[0].contains(says), "{:?}", u.statements);
        }
        let u = judge(&device(), &load(5.0, 4.0, 93.0, 1.0), 1, None, None);
        assert!(u.statements[0].contains("no curve of sda is stored"), "{:?}", u.statements);
    }

    /// A bench of random reads, 10,000 a second at each depth.
    fn bench(depths: &[u32]) -> Record {
        let mut lab = crate::synthetic::Lab::new();
        let rates: Vec<(u32, f64)> = depths.iter().map(|depth| (*depth, 10_000.0)).collect();
        lab.curve(StepKind::ReadDepth, &rates);
        let mut record = lab.record(Vec::new());
        record.jobs.iter_mut().for_each(|job| job.job.direct = true);
        record
    }

    #[test]
    fn a_curve_that_did_not_become_flat_shows_no_saturation() {
        let one = Known::of_jobs(&bench(&[1])).unwrap();
        let flat = Known::of_jobs(&bench(&[8, 16])).unwrap();
        for (known, reads, is_saturated) in
            [(&one, 10_000.0, false), (&one, 50_000.0, false), (&one, 3_000.0, false), (&flat, 9_900.0, true)]
        {
            let load = DeviceLoad {
                util_percent: 100.0,
                reads_per_second: reads,
                read_bytes_per_second: reads * 4096.0,
                ..DeviceLoad::default()
            };
            let u = judge(&device(), &load, 1, None, Some(known));
            let said = &u.statements[0];
            assert_eq!(said.contains("is saturated"), is_saturated, "{said}");
            assert_eq!(said.contains("Measure deeper"), !is_saturated && reads >= 10_000.0, "{said}");
        }
        let mut asked = bench(&[8, 16]);
        for job in &mut asked.jobs {
            job.job.rate = Some(Rate { iops: 10_000.0, arrival: Arrival::Constant });
        }
        assert!(Known::of_jobs(&asked).is_none());
    }

    #[test]
    fn service_time_is_told_only_where_it_means_something() {
        for (writes, util, wait_ms, service_ms) in
            [(100.0, 50.0, 5.0, Some(5.0)), (1000.0, 50.0, 5.0, None), (1000.0, 100.0, 1.1, Some(1.1))]
        {
            let u = judge(&device(), &load(writes, 4.0, util, wait_ms), 1, None, None);
            assert_eq!(u.service_ms, service_ms, "{u:?}");
            assert_eq!(u.statements.iter().any(|s| s.contains("no service time")), service_ms.is_none());
        }
        let flushed = DeviceLoad { flushes_per_second: 50.0, ..load(100.0, 2.0, 50.0, 5.0) };
        for (load, expected) in [(flushed, true), (load(100.0, 4.0, 50.0, 5.0), false)] {
            let u = judge(&device(), &load, 1, None, None);
            let told = u.statements.iter().any(|s| s.contains("50.0 flush commands a second"));
            assert_eq!(told, expected, "{:?}", u.statements);
        }
        let short = judge(&device(), &load(100.0, 4.0, 40.0, 0.05), 1, None, None);
        assert!(short.statements.iter().any(|s| s.contains("whole ticks")), "{:?}", short.statements);
    }
}
