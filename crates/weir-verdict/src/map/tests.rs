//! Maps of made-up devices: the edge is found, few points are asked for, and they lie where latency changes.

use std::collections::BTreeMap;

use super::cost::{CostModel, Sharing};
use super::made::{each, mapped, one_budget};
use super::sampler::{Plan, next};
use super::sure::Sure;
use super::{Ask, Commits, Line, LoadMap, Part, Seen, share};
use crate::from_record;
use crate::notes::StepKind;
use weir_core::result::record::{Class, ClassRecord, Interval, IntervalClass, Lateness};
use weir_core::stats::Histogram;
use weir_core::stats::random::Random;
use weir_core::units::Nanos;
use weir_core::workload::spec::{Arrival, Rate};

/// A device that follows the model, with noise, and whose latency grows as in a queue.
struct Device {
    model: CostModel,
    noise: f64,
    random: Random,
}

impl Device {
    fn new(reads: f64, writes: f64, interference: f64, noise: f64, seed: u64) -> Device {
        Device::sharing(reads, writes, Sharing::OneBudget { interference }, noise, seed)
    }

    fn sharing(reads: f64, writes: f64, sharing: Sharing, noise: f64, seed: u64) -> Device {
        let model = CostModel { reads, writes, sharing, error: 0.0, error_linear: 0.0, points: 0 };
        Device { model, noise, random: Random::new(seed) }
    }

    fn wobble(&mut self) -> f64 {
        let unit = (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        1.0 + self.noise * (2.0 * unit - 1.0)
    }

    fn measure(&mut self, ask: Ask) -> Seen {
        let (reads, writes) = match ask {
            Ask::Edge { share } => {
                let rate = self.model.edge(share) * self.wobble();
                (rate * (1.0 - share), rate * share)
            }
            Ask::Inside { reads, writes, .. } => (reads, writes),
        };
        let used = self.model.used(reads, writes).min(0.99);
        Seen { ask, reads, writes, p99_ns: 200_000.0 / (1.0 - used) * self.wobble() }
    }

    fn map(&mut self, plan: &Plan) -> Vec<Seen> {
        let mut seen = Vec::new();
        while let Some(ask) = next(plan, &seen) {
            seen.push(self.measure(ask));
            assert!(seen.len() <= plan.points_max, "more points than allowed");
        }
        seen
    }
}

#[test]
fn edges_are_recovered_with_tens_of_points() {
    for (seed, (reads, writes, interference)) in [
        (100_000.0, 30_000.0, 0.0),
        (3_000.0, 3_000.0, 0.0),
        (400_000.0, 60_000.0, 0.8),
        (9_000.0, 800.0, -0.6),
    ]
    .into_iter()
    .enumerate()
    {
        let mut device = Device::new(reads, writes, interference, 0.02, seed as u64 + 1);
        let seen = device.map(&Plan::default());
        let model = CostModel::fit(&seen).unwrap();
        assert!(seen.len() <= 40 && seen.len() >= 10, "{} points", seen.len());
        for share in [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0] {
            let (found, real) = (model.edge(share), device.model.edge(share));
            assert!((found / real - 1.0).abs() < 0.06, "{share}: {found} for {real}, {model:?}");
        }
    }
}

#[test]
fn points_lie_where_latency_changes() {
    let seen = Device::new(50_000.0, 20_000.0, 0.3, 0.0, 1).map(&Plan::default());
    let loads = seen.iter().filter_map(|s| match s.ask {
        Ask::Inside { load, .. } => Some(load),
        Ask::Edge { .. } => None,
    });
    let (high, low): (Vec<f64>, Vec<f64>) = loads.partition(|load| *load > 0.55);
    assert!(high.len() >= low.len(), "{high:?} {low:?}");
}

#[test]
fn a_device_unlike_the_model_gets_more_edges_and_says_how_far_it_is_off() {
    let mut seen = Vec::new();
    while let Some(ask) = next(&Plan::default(), &seen) {
        let share = ask.share();
        // Half the rate where reads with some writes come: neither shape bends on one side only.
        let full = if share > 0.05 && share < 0.4 { 10_000.0 } else { 20_000.0 };
        let (reads, writes) = match ask {
            Ask::Edge { share } => (full * (1.0 - share), full * share),
            Ask::Inside { reads, writes, .. } => (reads, writes),
        };
        seen.push(Seen { ask, reads, writes, p99_ns: 1e6 });
    }
    let model = CostModel::fit(&seen).unwrap();
    assert!(model.points > 5 && model.error > 0.1, "{model:?}");
}

#[test]
fn nothing_is_fitted_without_both_ends_and_the_same_points_ask_for_the_same() {
    assert_eq!(CostModel::fit(&[]), None);
    let mut device = Device::new(50_000.0, 20_000.0, 0.3, 0.05, 9);
    let seen = device.map(&Plan { points_max: 17, ..Plan::default() });
    assert_eq!(seen.len(), 17);
    for count in 0..seen.len() {
        assert_eq!(next(&Plan::default(), &seen[..count]), Some(seen[count].ask), "{count}");
    }
    let none = Seen { ask: Ask::Edge { share: 0.0 }, reads: 0.0, writes: 0.0, p99_ns: 0.0 };
    assert_eq!(CostModel::fit(&[none]), None);
}

#[test]
fn limits_apart_are_known_from_one_budget() {
    for (reads, writes) in [(2_000.0, 800.0), (1_000.0, 1_000.0)] {
        let mut device = Device::sharing(reads, writes, Sharing::LimitEach, 0.01, 3);
        let model = CostModel::fit(&device.map(&Plan::default())).unwrap();
        assert_eq!(model.sharing, Sharing::LimitEach, "{model:?}");
        assert!(model.error < 0.06 && model.error_linear > 0.3, "{model:?}");
        let mut device = Device::new(reads, writes, 0.0, 0.01, 3);
        let model = CostModel::fit(&device.map(&Plan::default())).unwrap();
        assert!(matches!(model.sharing, Sharing::OneBudget { .. }) && model.error_linear < 0.06, "{model:?}");
    }
}

#[test]
fn repeated_ends_count_as_their_mean() {
    let edge = |share: f64, rate: f64| Seen {
        ask: Ask::Edge { share },
        reads: rate * (1.0 - share),
        writes: rate * share,
        p99_ns: 1e6,
    };
    let seen = [edge(0.0, 900.0), edge(1.0, 500.0), edge(0.0, 1100.0), edge(0.5, 667.0)];
    let model = CostModel::fit(&seen).unwrap();
    assert_eq!((model.reads, model.writes, model.points), (1000.0, 500.0, 3));
    assert_eq!(CostModel::fit(&seen[..3]), None, "how they share is not known from the ends");
}

fn map_of(device: &CostModel) -> LoadMap {
    from_record(&mapped(device).record(Vec::new())).unwrap().map.unwrap()
}

fn line<'a>(map: &'a LoadMap, id: &str) -> &'a Line {
    map.lines.iter().find(|line| line.id == id).unwrap()
}

#[test]
fn a_record_gives_back_the_device_that_was_mapped() {
    for device in [each(2000.0, 800.0), one_budget(50_000.0, 20_000.0, 0.4), one_budget(1000.0, 1000.0, 0.0)]
    {
        let map = map_of(&device);
        let model = map.model.unwrap();
        assert!(
            (model.reads / device.reads - 1.0).abs() < 0.02
                && (model.writes / device.writes - 1.0).abs() < 0.02
        );
        assert!(model.error < 0.05 && map.drift.edge.is_some_and(|drift| drift < 0.01), "{map:?}");
        assert!(map.inside.iter().all(|point| point.kept && point.load < 1.0 && point.load > 0.2));
        let alone: Vec<_> = map.commits.iter().filter(|one| one.load == 0.0).collect();
        assert_eq!((alone.len(), map.commits.len(), map.pages.beside.len()), (1, 7, 3));
    }
}

/// 150 a second at random over 2.67 s are 400, more or less by chance.
#[test]
fn a_rate_is_kept_where_all_that_came_due_finished_in_time() {
    const ASKED_NS: u64 = 2_670_000_000;
    for (intended, finished, elapsed_ns, kept) in [
        (Some(370), 370, ASKED_NS, true),
        (Some(430), 400, ASKED_NS, false),
        // All finished, the last of them late.
        (Some(400), 400, ASKED_NS * 6 / 5, false),
        // Ended early by the user.
        (Some(200), 199, ASKED_NS / 2, true),
        (None, 370, ASKED_NS, false),
        (None, 400, ASKED_NS, true),
    ] {
        let lab = mapped(&each(2000.0, 800.0));
        let at = lab.notes.steps.iter().position(|step| step.kind == StepKind::Map(Part::Inside)).unwrap();
        let id = lab.notes.steps[at].id.clone();
        let mut record = lab.record(Vec::new());
        let job = &mut record.jobs[at];
        job.job.rate = Some(Rate { iops: 150.0, arrival: Arrival::Poisson });
        job.job.duration = Nanos(ASKED_NS);
        job.elapsed_ns = elapsed_ns;
        job.lateness = intended.map(|intended| Lateness { intended, ..Lateness::default() });
        let mut latency = Histogram::new();
        latency.record_many(1_000_000, finished);
        job.classes = BTreeMap::from([(Class::Read, ClassRecord { bytes: 0, errors: 0, latency })]);
        let map = from_record(&record).unwrap().map.unwrap();
        let point = map.inside.iter().find(|point| point.measurement == id).unwrap();
        assert_eq!(point.kept, kept, "{intended:?} {finished} {elapsed_ns}");
    }
}

#[test]
fn lines_are_in_the_words_of_their_programs_and_as_sure_as_the_map() {
    let map = map_of(&one_budget(50_000.0, 20_000.0, 0.0));
    let model = line(&map, "iocost-model");
    assert_eq!(
        model.text.as_deref(),
        Some(
            "253:16 ctrl=user model=linear rbps=5242880000 rseqiops=75000 rrandiops=50000 wbps=2097152000 wseqiops=30000 \
             wrandiops=20000"
        )
    );
    assert_eq!(model.how_sure.sure, Sure::Sure, "{}", model.how_sure.why);
    let qos = line(&map, "iocost-qos").text.as_deref().unwrap();
    assert!(qos.starts_with("253:16 enable=1 ctrl=user rpct=95.00 rlat="), "{qos}");
    assert!(qos.ends_with("min=90.00 max=110.00"), "{qos}");
    let properties = line(&map, "io-properties").text.as_deref().unwrap();
    assert!(properties.starts_with("disks:\n  - mountpoint: /srv\n    read_iops: 50000\n"), "{properties}");
    // Two times three times 400 µs, the tail of commits alone, is less than what is good for them; at half it is within.
    let innodb = line(&map, "innodb");
    assert_eq!(
        innodb.text.as_deref(),
        Some("innodb_io_capacity = 7500\ninnodb_io_capacity_max = 15000"),
        "{}",
        innodb.how_sure.why
    );
}

/// Three writes for each read; the reads come unevenly.
#[test]
fn a_mixture_is_measured_whole() {
    let lab = mapped(&one_budget(2000.0, 800.0, 0.0));
    let is_mixed = |at: &usize| {
        let share = share(&lab.jobs()[*at]);
        lab.notes.steps[*at].kind == StepKind::Map(Part::Edge) && share > 0.5 && share < 1.0
    };
    let at = (0..lab.jobs().len()).find(is_mixed).unwrap();
    let mut record = lab.record(Vec::new());
    record.jobs[at].intervals = (0..8)
        .map(|i| {
            let done = |count| IntervalClass { count, ..IntervalClass::default() };
            let classes = BTreeMap::from([(Class::Read, done(10 + i)), (Class::Write, done(30))]);
            Interval { start_ns: i * 250_000_000, len_ns: 250_000_000, classes, ..Interval::default() }
        })
        .collect();
    let report = from_record(&record).unwrap();
    let (m, map) = (&report.measurements[at], report.map.unwrap());
    let point = map.edges.iter().find(|point| point.measurement == m.id).unwrap();
    assert_eq!((m.latency.n, m.latency.p99_ns, m.class), (point.n, point.p99_ns, Class::Write));
    let rate = point.reads + point.writes;
    assert!(point.reads > 0.0 && (m.iops.mean / rate - 1.0).abs() < 1e-9, "{m:?}");
    assert!((m.bytes_per_second / (rate * 4096.0) - 1.0).abs() < 1e-9, "{m:?}");
    assert!(m.iops.high > m.iops.low, "{m:?}");
}

/// The server takes no less than 100 for either variable. Commits keep their bound beside three quarters of all pages here.
#[test]
fn the_server_takes_every_value_that_a_line_gives_it() {
    for (writes, text, why) in [
        (400.0, Some((150, 300)), "of the most) commits took"),
        (200.0, Some((100, 150)), "the least that the server takes, instead of half"),
        (134.0, Some((100, 100)), "the least that the server takes, instead of half"),
        (130.0, None, "beside 97 pages/s at most: less than 100 pages/s, the least that the server takes"),
    ] {
        let map = map_of(&one_budget(2000.0, writes, 0.0));
        let innodb = line(&map, "innodb");
        let expected =
            text.map(|(low, most)| format!("innodb_io_capacity = {low}\ninnodb_io_capacity_max = {most}"));
        assert_eq!(innodb.text, expected);
        assert!(innodb.how_sure.why.contains(why), "{innodb:?}");
    }
}

#[test]
fn a_device_that_does_not_add_up_is_not_called_sure() {
    let map = map_of(&each(2000.0, 800.0));
    assert_eq!(line(&map, "iocost-model").how_sure.sure, Sure::DoNotUse);
    assert!(line(&map, "iocost-model").how_sure.why.contains("the sum of the costs"));
    let mut lab = mapped(&one_budget(2000.0, 800.0, 0.0));
    lab.conditions.target.as_mut().unwrap().device = None;
    let map = from_record(&lab.record(Vec::new())).unwrap().map.unwrap();
    let model = line(&map, "iocost-model");
    assert_eq!((model.text.as_ref(), model.how_sure.sure), (None, Sure::DoNotUse));
    assert!(model.how_sure.why.contains("no single disk"), "{}", model.how_sure.why);
    assert!(line(&map, "io-properties").text.is_some());
}

#[test]
fn processors_make_an_edge_a_lower_bound() {
    let mut record = mapped(&one_budget(2000.0, 800.0, 0.0)).record(Vec::new());
    for job in record.jobs.iter_mut().filter(|job| job.job.rate.is_none() && job.job.read_percent == 100.0) {
        job.cpu.process_user_ns = job.elapsed_ns;
    }
    let report = from_record(&record).unwrap();
    let map = report.map.unwrap();
    assert_eq!(map.capped, [0.0]);
    assert_eq!(line(&map, "io-properties").how_sure.sure, Sure::Roughly);
    let said =
        report.findings.iter().flat_map(|f| &f.statements).any(|s| s.text.contains("no processor left"));
    assert!(said);
}

#[test]
fn a_quota_bounds_the_generator_and_not_the_machine() {
    // Of 64 processors others keep six busy, and weir may use two.
    for (own, capped) in [(1, vec![]), (2, vec![0.0])] {
        let mut record = mapped(&one_budget(2000.0, 800.0, 0.0)).record(Vec::new());
        for job in &mut record.jobs {
            (job.job.threads, job.cpu.processors, job.cpu.allowed) = (8, 64, Some(2));
            job.cpu.machine_busy_ns = job.elapsed_ns * 6;
            if job.job.rate.is_none() && job.job.read_percent == 100.0 {
                job.cpu.process_user_ns = job.elapsed_ns * own;
            }
        }
        let report = from_record(&record).unwrap();
        assert_eq!(report.map.unwrap().capped, capped, "{own} busy");
        let busiest = report.measurements.iter().filter_map(|m| m.cpu_busy).fold(0.0, f64::max);
        let expected = if own == 2 { 1.0 } else { 0.5 };
        assert!((busiest - expected).abs() < 1e-9, "{own} busy: {busiest}");
        let others = report.measurements.iter().filter_map(|m| m.cpu_busy).fold(1.0, f64::min);
        assert!((others - 6.0 / 64.0).abs() < 1e-9, "{others}");
    }
}

#[test]
fn what_was_not_repeated_is_said_not_to_be_measured() {
    let mut lab = mapped(&one_budget(50_000.0, 20_000.0, 0.0));
    let again = lab.notes.steps.iter().position(|step| step.kind == StepKind::Map(Part::Again));
    lab.keep(again.unwrap());
    let map = from_record(&lab.record(Vec::new())).unwrap().map.unwrap();
    for (id, what) in [("iocost-model", "the edge"), ("innodb", "commits")] {
        let how_sure = &line(&map, id).how_sure;
        let says = format!("the drift of {what} between start and end was not measured; ");
        assert!(how_sure.sure == Sure::Roughly && how_sure.why.starts_with(&says), "{how_sure:?}");
    }
}

#[test]
fn the_longest_commit_stands_where_too_few_finished() {
    let one = Commits {
        share: 1.0,
        load: 0.5,
        reads: 0.0,
        writes: 10.0,
        rate: 5.0,
        n: 10,
        p50_ns: None,
        p99_ns: None,
        max_ns: 7,
        measurement: String::new(),
    };
    assert_eq!(one.tail_ns(), Some(7));
    assert_eq!(Commits { p99_ns: Some(3), ..one.clone() }.tail_ns(), Some(3));
    assert_eq!(Commits { n: 0, max_ns: 0, ..one }.tail_ns(), None);
}
