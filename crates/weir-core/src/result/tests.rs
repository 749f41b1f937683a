//! From made-up records to results: each case names what the result must say.

use crate::result::comparison::Measure;
use crate::result::record::{Class, ClassRecord, FinalSync, JobRecord, Lateness, Note, Record, VerifyRecord};
use crate::result::run_result::{JobResult, RunResult, SteadyResult};
use crate::result::samples::{Second, interval_class, job, record, seconds};
use crate::result::{comparison, derive};
use crate::stats::random::Random;
use crate::stats::{Histogram, Quantile};
use crate::units::Nanos;
use crate::workload::spec::{Arrival, Rate, Replay};

fn steady_job(seed: u64, n: usize, count: f64, latency_ns: f64) -> JobRecord {
    let mut random = Random::new(seed);
    let of = seconds(&mut random, n, count, latency_ns, 0.03);
    job(&mut random, &[(Class::Read, of)])
}

fn only(record: &Record) -> JobResult {
    derive(record).jobs.remove(0)
}

fn keys(notes: &[Note]) -> Vec<&str> {
    notes.iter().map(|n| n.key.as_str()).collect()
}

#[test]
fn a_bucket_that_ends_before_it_begins_is_refused() {
    let mut job = serde_json::to_value(steady_job(1, 9, 100.0, 1e6)).unwrap();
    assert!(serde_json::from_value::<JobRecord>(job.clone()).is_ok());
    *job.pointer_mut("/intervals/0/classes/read/coarse/0/0").unwrap() = (1_u64 << 60).into();
    let error = serde_json::from_value::<JobRecord>(job).unwrap_err().to_string();
    assert!(error.contains("a bucket from 1152921504606846976 to "), "{error}");
}

#[test]
fn figures_of_a_steady_run() {
    let record = record(vec![steady_job(1, 30, 2_000.0, 400_000.0)]);
    let result = only(&record);
    let read = &result.classes[&Class::Read];
    assert_eq!(read.count, record.jobs[0].classes[&Class::Read].latency.count());
    assert!((read.iops - read.count as f64 / 30.0).abs() < 1e-6);
    assert!((read.bytes_per_second - read.iops * 4096.0).abs() < 1e-3);
    // Exponential with mean 400 µs: median 277 µs, p99 1.84 ms.
    let close = |q: Quantile, ns: f64| (q.ns().unwrap() as f64 / ns - 1.0).abs() < 0.03;
    assert!(close(read.latency.p50, 278_000.0) && close(read.latency.p99, 1_843_000.0), "{read:?}");
    assert!(matches!(read.latency.p99_99, Quantile::Value { .. }), "{read:?}");
    assert!(result.little.is_some_and(|l| l.holds && l.deviation.abs() < 1e-6), "{:?}", result.little);
    assert!(
        matches!(result.steady, SteadyResult::Judged { holds: true, p99: Some(_), .. }),
        "{:?}",
        result.steady
    );
    assert_eq!((result.regimes.len(), result.headline), (1, Some(Class::Read)));
    assert!((result.cpu.process_busy - 0.3).abs() < 1e-9 && (result.cpu.machine_busy - 0.5).abs() < 1e-9);
    let per_operation = result.cpu.process_ns_per_operation * result.total.operations as f64;
    assert!((per_operation / (0.3 * 30e9) - 1.0).abs() < 1e-9);
    assert_eq!(keys(&result.notes), [""; 0]);
}

#[test]
fn two_regimes_are_told_apart() {
    let mut random = Random::new(2);
    let mut of = seconds(&mut random, 25, 3_000.0, 200_000.0, 0.03);
    of.extend(seconds(&mut random, 35, 500.0, 1_500_000.0, 0.03));
    let result = only(&record(vec![job(&mut random, &[(Class::Write, of)])]));
    let [burst, rest] = result.regimes[..] else { panic!("{:?}", result.regimes) };
    assert!((24..=26).contains(&(rest.start_ns / 1_000_000_000)) && burst.end_ns == rest.start_ns);
    assert!(burst.iops > 2_800.0 && rest.iops < 600.0, "{burst:?} {rest:?}");
    assert!(burst.p50_ns < rest.p50_ns && burst.p99_ns.is_some());
    assert!(keys(&result.notes).contains(&"regimes"), "{:?}", result.notes);
}

/// Changes a steady job and expects notes with just these keys.
fn check(name: &str, change: impl FnOnce(&mut JobRecord), expected: &[&str]) {
    let mut made = steady_job(1, 30, 2_000.0, 400_000.0);
    change(&mut made);
    let result = only(&record(vec![made]));
    assert_eq!(keys(&result.notes), expected, "{name}: {:?}", result.notes);
}

#[test]
fn each_doubt_has_its_note() {
    check("wrong clock", |j| j.engine.in_flight_mean *= 2.0, &["little-violated"]);
    check("depth", |j| (j.job.depth, j.job.threads) = (32, 1), &["depth-without-effect"]);
    let said = Note { key: "depth-without-effect".into(), text: "the engine said so".into() };
    check("depth said", |j| (j.job.depth, j.notes) = (32, vec![said]), &["depth-without-effect"]);
    check("busy machine", |j| j.cpu.machine_busy_ns = j.elapsed_ns * 3 / 2, &["busy-machine"]);
    let of_many = |j: &mut JobRecord| {
        (j.cpu.processors, j.cpu.allowed, j.cpu.machine_busy_ns) = (64, Some(2), j.elapsed_ns * 6);
    };
    check("a few of many processors busy", of_many, &[]);
    check("stall", |j| j.intervals[7].oldest_ns = 1_500_000_000, &["stall"]);
    let slowest = |j: &mut JobRecord| {
        j.classes.get_mut(&Class::Read).unwrap().latency.record(2_000_000_000);
        j.engine.in_flight_mean += 2.0 / 30.0;
    };
    check("stall between ticks", slowest, &["stall"]);
    check("error", |j| j.error = Some("EIO".into()), &["io-error"]);
    check(
        "wrong data",
        |j| j.verify = Some(VerifyRecord { torn: 1, ..VerifyRecord::default() }),
        &["wrong-data"],
    );
    check("a short run", |j| j.intervals.truncate(4), &[]);
    check("final sync", |j| j.final_sync = Some(FinalSync::default()), &[]);
    let drift = |j: &mut JobRecord| {
        let of = (0..30).map(|i| Second { count: 1_000 + 50 * i, latency_ns: 400_000.0 }).collect();
        *j = job(&mut Random::new(1), &[(Class::Read, of)]);
    };
    check("drift", drift, &["never-settled", "regimes", "unsteady"]);
    let slow = |j: &mut JobRecord| *j = steady_job(1, 30, 5.0, 400_000.0);
    check("few samples", slow, &["insufficient-samples"]);
    let late = |j: &mut JobRecord| {
        j.job.rate = Some(Rate { iops: 1000.0, arrival: Arrival::Constant });
        j.engine.in_flight_mean *= 5.0;
        j.lateness = Some(Lateness { intended: 6_000, late: 1_020, ..Lateness::default() });
    };
    check("open loop", late, &["late"]);
    let cut_off = |j: &mut JobRecord| {
        j.job.rate = Some(Rate { iops: 1000.0, arrival: Arrival::Constant });
        j.lateness = Some(Lateness { intended: 6_000, late: 2, not_started: 2, ..Lateness::default() });
    };
    check("cut off by the end", cut_off, &[]);
    let used_up = |j: &mut JobRecord| {
        (j.job.operations, j.job.warmup.0) = (500, 1_000_000_000);
        (j.elapsed_ns, j.classes, j.intervals) = (1, Default::default(), Vec::new());
    };
    check("used up by the warm-up", used_up, &["used-up-by-warm-up"]);
    // Counted in ticks: nonsense over 1 ms, and no less than the process's own over a second.
    check("ticks", |j| (j.elapsed_ns, j.engine.in_flight_mean) = (1_000_000, 0.0), &[]);
}

#[test]
fn a_commit_counts_once_and_speaks_for_the_job() {
    let mut random = Random::new(3);
    let of = |latency_ns| vec![Second { count: 500, latency_ns }; 10];
    let classes =
        [(Class::Write, of(100_000.0)), (Class::Sync, of(900_000.0)), (Class::Commit, of(1_000_000.0))];
    let result = only(&record(vec![job(&mut random, &classes)]));
    assert_eq!((result.headline, result.total.operations), (Some(Class::Commit), 10_000));
    assert_eq!(result.total.bytes, 5_000 * 4096);
    assert!(result.little.is_some_and(|l| l.holds));
    // One call for both: the commit is all there is.
    let alone = only(&record(vec![job(&mut random, &classes[2..])]));
    assert_eq!(alone.total.operations, 5_000);
}

#[test]
fn results_survive_json_and_empty_records_say_so() {
    let result = derive(&record(vec![steady_job(1, 30, 200.0, 400_000.0)]));
    let back: RunResult = serde_json::from_str(&serde_json::to_string(&result).unwrap()).unwrap();
    assert_eq!(back, result);
    let mut empty = record(vec![job(&mut Random::new(1), &[])]);
    empty.ended_early = Some("SIGINT".to_string());
    let result = derive(&empty);
    assert_eq!(keys(&result.notes), ["ended-early", "no-operations"]);
    assert_eq!((result.jobs[0].headline, result.jobs[0].stall), (None, None));
}

#[test]
fn lateness_is_a_share_of_what_was_intended() {
    let mut made = steady_job(1, 6, 1_000.0, 400_000.0);
    made.lateness = Some(Lateness {
        intended: 6_000,
        late: 1_020,
        not_started: 3,
        start_delay_max_ns: 7,
        ..Lateness::default()
    });
    made.job.late_after = Nanos::from_millis(5);
    let late = only(&record(vec![made])).lateness.unwrap();
    assert!((late.late_share - 0.17).abs() < 1e-9);
    assert_eq!((late.late_after_ns, late.not_started, late.start_delay_max_ns), (5_000_000, 3, 7));
}

#[test]
fn a_replay_is_judged_by_its_starts() {
    let made = |delay_ns: u64, waited_for_depth| {
        let mut start_delay = Histogram::new();
        (0..6_000).for_each(|nth| start_delay.record(if nth % 20 == 0 { delay_ns } else { 5_000 }));
        let mut made = steady_job(1, 6, 1_000.0, 400_000.0);
        let start_delay = Some(start_delay);
        // As late as it likes to end: the recorded ones were slow, too.
        made.lateness = Some(Lateness {
            intended: 6_000,
            late: 5_000,
            start_delay,
            waited_for_depth,
            ..Lateness::default()
        });
        made.job.replay = Some(Replay::default());
        made.classes.insert(Class::Commit, made.classes[&Class::Read].clone());
        only(&record(vec![made]))
    };
    let kept = made(90_000, 0);
    assert!(kept.notes.iter().all(|note| !note.key.contains("late")), "{:?}", kept.notes);
    assert_eq!((kept.headline, kept.little), (Some(Class::Read), None), "a journal's write is no commit");
    assert_eq!(kept.lateness.unwrap().start_delay.unwrap().late_share, 0.0);
    let late = made(4_000_000, 9);
    let note = late.notes.iter().find(|note| note.key == "replay-late").unwrap();
    for expected in
        ["could not keep to the recording's times", "5.0 % of 6,000", "9 of them because the target"]
    {
        assert!(note.text.contains(expected), "{}", note.text);
    }
}

#[test]
fn comparisons_show_a_difference_only_where_there_is_one() {
    use comparison::Significance::{Better, NoDifference, Unknown, Worse};
    let run = |seed, n, count, latency_ns| record(vec![steady_job(seed, n, count, latency_ns)]);
    let a = run(11, 20, 1_000.0, 400_000.0);
    for (name, b, expected) in [
        ("the same again", run(12, 20, 1_000.0, 400_000.0), [NoDifference; 3]),
        ("itself", a.clone(), [NoDifference; 3]),
        ("half as fast", run(3, 20, 500.0, 800_000.0), [Worse; 3]),
        ("quicker", run(4, 20, 1_100.0, 350_000.0), [Better; 3]),
        ("much longer", run(14, 700, 1_000.0, 400_000.0), [NoDifference; 3]),
        ("four seconds", run(5, 4, 1_000.0, 400_000.0), [Unknown; 3]),
    ] {
        let compared = comparison::compare(&a, &b, 1);
        let verdicts: Vec<_> = compared.jobs[0].effects.iter().map(|e| e.verdict).collect();
        assert_eq!(verdicts, expected, "{name}: {:?}", compared.jobs[0].effects);
        let exact =
            derive(&b).jobs[0].classes[&Class::Read].iops / derive(&a).jobs[0].classes[&Class::Read].iops;
        assert_eq!(compared.jobs[0].effects[0].ratio, Some(exact), "{name}");
    }
}

#[test]
fn a_comparison_makes_a_false_claim_as_seldom_as_a_single_interval_would() {
    let run = |seed| record(vec![steady_job(seed, 12, 200.0, 400_000.0)]);
    let claiming = (0..100).filter(|seed| {
        let compared = comparison::compare(&run(100 + seed), &run(300 + seed), *seed);
        let mut effects = compared.jobs[0].effects.iter();
        effects.any(|e| e.interval.is_some_and(|interval| !interval.covers_one()))
    });
    // 5 % of 100 is 5, its standard deviation 2.2; each of three by itself would make it 14.
    let claiming = claiming.count();
    assert!(claiming <= 9, "{claiming} of 100");
}

/// A run whose latencies all lie in one coarse bucket, and whose seconds' medians differ by a hundredth.
fn narrow(seed: u64) -> Record {
    let (mut random, mut job) = (Random::new(seed), steady_job(seed, 20, 300.0, 84_000.0));
    let mut total = Histogram::new();
    for interval in &mut job.intervals {
        let median = 84_000.0 * (1.0 + 0.01 * random.normal());
        let mut second = ClassRecord::default();
        (0..300).for_each(|_| second.latency.record((median * (1.0 + 0.005 * random.normal())) as u64));
        total.merge(&second.latency);
        interval.classes.insert(Class::Read, interval_class(&second));
    }
    job.classes.get_mut(&Class::Read).unwrap().latency = total;
    record(vec![job])
}

/// The coarse bucket is a tenth wide: its width is not that of the run's quantiles.
#[test]
fn latencies_in_one_bucket_make_no_false_claims_either() {
    let claiming = (0..100).filter(|seed| {
        let compared = comparison::compare(&narrow(500 + seed), &narrow(700 + seed), *seed);
        compared.jobs[0].effects.iter().any(|effect| {
            effect.measure != Measure::Throughput && effect.interval.is_some_and(|i| !i.covers_one())
        })
    });
    let claiming = claiming.count();
    assert!(claiming <= 9, "{claiming} of 100");
}

/// The doctor's steps are jobs, and how many there are depends on what was found.
#[test]
fn jobs_are_paired_by_name() {
    let run = |names: &[(&str, f64)]| {
        let made = |(seed, (name, count)): (usize, &(&str, f64))| {
            let mut job = steady_job(seed as u64, 20, *count, 400_000.0);
            job.job.name = name.to_string();
            job
        };
        record(names.iter().enumerate().map(made).collect())
    };
    let a = run(&[("read", 900.0), ("read", 950.0), ("commit", 100.0), ("write", 500.0)]);
    let b = run(&[("read", 900.0), ("commit", 100.0), ("write", 500.0)]);
    let compared = comparison::compare(&a, &b, 1);
    let names: Vec<_> = compared.jobs.iter().map(|job| (job.a.as_str(), job.b.as_str())).collect();
    assert_eq!(names, [("read", "read"), ("commit", "commit"), ("write", "write")]);
    let ratios = compared.jobs.iter().map(|job| job.effects[0].ratio.unwrap());
    assert!(ratios.into_iter().all(|ratio| (ratio - 1.0).abs() < 0.05), "{:?}", compared.jobs);
    assert!(keys(&compared.warnings).contains(&"jobs-differ"), "{:?}", compared.warnings);
    let renamed = run(&[("before", 900.0)]);
    assert_eq!(comparison::compare(&renamed, &run(&[("after", 900.0)]), 1).jobs.len(), 1);
}

#[test]
fn comparisons_say_what_else_differs() {
    let a = record(vec![steady_job(1, 20, 1_000.0, 400_000.0)]);
    let mut b = a.clone();
    b.conditions["target"]["stack"][1]["queue"]["scheduler"] = "none".into();
    b.conditions["memory"]["free_bytes"] = 2.into();
    b.jobs[0].job.depth = 4;
    b.jobs[0].job.seed = 99;
    let compared = comparison::compare(&a, &b, 1);
    let what =
        |d: &[crate::result::difference::Difference]| d.iter().map(|d| d.what.clone()).collect::<Vec<_>>();
    assert_eq!(what(&compared.condition_differences), ["target.stack.sda.queue.scheduler"]);
    assert_eq!(what(&compared.workload_differences), ["job.made-up.depth"]);
    assert!(keys(&compared.warnings).contains(&"workloads-differ"), "{:?}", compared.warnings);
    let same = comparison::compare(&a, &a, 1);
    assert_eq!(keys(&same.warnings), [""; 0], "{:?}", same.warnings);
}
