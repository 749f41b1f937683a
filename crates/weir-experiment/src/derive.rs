//! From what a trial recorded to its figures.

use std::collections::BTreeMap;

use crate::arm::Counted;
use crate::measures::{Measures, Metric, Second};
use weir_core::result::record::{Class, Interval, JobRecord};
use weir_core::result::series;
use weir_core::stats::Histogram;
use weir_core::stats::quantile::quantile;
use weir_oltp::{Kind, OltpRecord};

/// What is counted of a database's statements.
const KINDS: &[Kind] = &[Kind::Transaction];

/// The machine at one moment of a trial.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Moment {
    /// Since the start of measuring, ns.
    pub at_ns: u64,
    /// Bytes that the floods have handed over since they began; `None` once they have ended, and where there are none.
    pub flood_bytes: Option<u64>,
    /// Bytes that the device has written since some fixed moment; `None` where it is not seen.
    pub device_bytes: Option<u64>,
    /// Dirty and under writeback.
    pub dirty_bytes: u64,
}

/// The figures of one of weir's jobs. `moments` are in order, the first at the start of measuring.
pub fn of_job(job: &JobRecord, counted: Counted, moments: &[Moment]) -> Measures {
    let latency = latency(job, counted);
    let mut values = of_latency(&latency, job.elapsed_ns, moments);
    let submits = job.engine.submits.as_ref().and_then(|submits| quantile(submits, 0.95).ns());
    values.extend(submits.map(|ns| (Metric::SubmitP95, ns as f64)));
    // A commit is counted with its write.
    let (counts, timed): (&[Class], &[Class]) = match counted {
        Counted::Commits => (&[Class::Commit], &[Class::Commit]),
        Counted::Operations => (&[Class::Read, Class::Write], &[Class::Read, Class::Write, Class::Commit]),
    };
    let seconds = seconds(&job.intervals, job.job.duration.0, (counts, timed), moments);
    Measures { values, seconds, operations: latency.count() }
}

/// A job's figures anew in what a trial measured; the machine's stay.
pub(crate) fn count_again(measures: &mut Measures, job: &JobRecord, counted: Counted) {
    let again = of_job(job, counted, &[]);
    measures.operations = again.operations;
    measures.values.retain(|metric, _| matches!(metric, Metric::Bulk | Metric::Device));
    measures.values.extend(again.values);
    for (second, again) in measures.seconds.iter_mut().zip(again.seconds) {
        (second.rate, second.p99_ns) = (again.rate, again.p99_ns);
    }
}

/// The figures of a database's transactions. `moments` as in [`of_job`].
pub fn of_transactions(record: &OltpRecord, moments: &[Moment]) -> Measures {
    let nothing = Histogram::new();
    let latency = record.kinds.get(&Kind::Transaction).map_or(&nothing, |kind| &kind.latency);
    Measures {
        values: of_latency(latency, record.elapsed_ns, moments),
        seconds: seconds(&record.intervals, record.spec.duration.0, (KINDS, KINDS), moments),
        operations: latency.count(),
    }
}

/// Rate and latencies of operations, and the machine's figures.
fn of_latency(latency: &Histogram, elapsed_ns: u64, moments: &[Moment]) -> BTreeMap<Metric, f64> {
    let mut values = of_machine(moments);
    if elapsed_ns > 0 {
        values.insert(Metric::Rate, latency.count() as f64 * 1e9 / elapsed_ns as f64);
    }
    values.extend(latency.mean().map(|mean| (Metric::Mean, mean)));
    values.extend(latency.max().map(|max| (Metric::Max, max as f64)));
    let percentiles = [(Metric::P50, 0.5), (Metric::P95, 0.95), (Metric::P99, 0.99), (Metric::P999, 0.999)];
    for (metric, q) in percentiles {
        values.extend(quantile(latency, q).ns().map(|ns| (metric, ns as f64)));
    }
    values
}

/// The figures of a command: those it printed, and the machine's. Its course is the machine's alone.
pub fn of_command(figures: &[(String, f64)], moments: &[Moment]) -> Measures {
    let mut values = of_machine(moments);
    values.extend(figures.iter().map(|(name, value)| (Metric::Named(name.clone()), *value)));
    let course = moments.windows(2).map(|pair| second_between(&pair[0], &pair[1]));
    Measures { values, seconds: course.collect(), operations: 0 }
}

/// Times that operations took, from the start to the end of the sync that they wait for.
fn latency(job: &JobRecord, counted: Counted) -> Histogram {
    let of = |class: Class| job.classes.get(&class).map(|record| &record.latency);
    let commits = of(Class::Commit).cloned().unwrap_or_default();
    if counted == Counted::Commits {
        return commits;
    }
    let other_writes = of(Class::Write).map(|writes| all_but(writes, commits.count()));
    let mut all = commits;
    of(Class::Read).into_iter().chain(&other_writes).for_each(|other| all.merge(other));
    all
}

/// A histogram without `n` of its values that lie like all of them: of writes that a commit follows, the commits have the
/// whole time.
fn all_but(histogram: &Histogram, n: u64) -> Histogram {
    let (count, left) = (u128::from(histogram.count()), u128::from(histogram.count().saturating_sub(n)));
    let (mut rest, mut seen, mut kept) = (Histogram::new(), 0, 0);
    for (bucket, n) in histogram.nonzero() {
        seen += u128::from(n);
        let upto = seen * left / count;
        rest.add_bucket(bucket, (upto - kept) as u64);
        kept = upto;
    }
    if let (Some(min), Some(max)) = (histogram.min().filter(|_| left > 0), histogram.max()) {
        let sum = histogram.sum();
        rest.set_exact(sum / count * left + sum % count * left / count, min, max);
    }
    rest
}

/// Bulk over the time that floods ran, and what the device wrote over the whole. `moments` as in [`of_job`].
pub fn of_machine(moments: &[Moment]) -> BTreeMap<Metric, f64> {
    let mut values = BTreeMap::new();
    let flooded = moments.iter().take_while(|moment| moment.flood_bytes.is_some()).last();
    let ends = [(Metric::Bulk, flooded), (Metric::Device, moments.last())];
    for (metric, last) in ends {
        let (Some(first), Some(last)) = (moments.first(), last) else { continue };
        let second = second_between(first, last);
        let rate = if metric == Metric::Bulk { second.bulk } else { second.device };
        values.extend(rate.map(|rate| (metric, rate)));
    }
    values
}

/// What the machine did between two moments.
fn second_between(from: &Moment, to: &Moment) -> Second {
    let len_ns = to.at_ns.saturating_sub(from.at_ns);
    let rate = |bytes: f64| (len_ns > 0).then(|| bytes * 1e9 / len_ns as f64);
    let handed = to.flood_bytes.zip(from.flood_bytes).map(|(to, from)| to.saturating_sub(from) as f64);
    let written = to.device_bytes.zip(from.device_bytes).map(|(to, from)| to.saturating_sub(from) as f64);
    let growth = to.dirty_bytes as f64 - from.dirty_bytes as f64;
    // Others' pages that are written back meanwhile can outweigh a slow flood, and pages that are overwritten while they
    // are dirty were handed over and reach the device once: it cannot have been given more than it took.
    let bulk = handed.map(|handed| (handed - growth).max(0.0).min(written.unwrap_or(f64::INFINITY)));
    Second {
        at_ns: from.at_ns,
        len_ns,
        bulk: bulk.and_then(rate),
        device: written.and_then(rate),
        dirty_bytes: to.dirty_bytes,
        ..Second::default()
    }
}

/// A run's intervals, without the stub at its end and without those past its time: what was stuck then was let go. Of
/// `classes`, the first are counted; the others' latencies count.
fn seconds<K: Ord>(
    intervals: &[Interval<K>],
    duration_ns: u64,
    classes: (&[K], &[K]),
    moments: &[Moment],
) -> Vec<Second> {
    let limit_ns = if duration_ns > 0 { duration_ns } else { u64::MAX };
    // An operation that was stuck at the end may hold up the last interval beyond all others.
    let within = intervals.iter().filter(|interval| interval.start_ns < limit_ns);
    series::whole(within).into_iter().map(|interval| second(interval, classes, moments)).collect()
}

fn second<K: Ord>(interval: &Interval<K>, (counts, timed): (&[K], &[K]), moments: &[Moment]) -> Second {
    let of = |class: &K| interval.classes.get(class);
    let count: u64 = counts.iter().filter_map(of).map(|class| class.count).sum();
    let end_ns = interval.start_ns + interval.len_ns;
    let machine = nearest(moments, interval.start_ns)
        .zip(nearest(moments, end_ns))
        .filter(|(from, to)| from.at_ns < to.at_ns)
        .map(|(from, to)| second_between(from, to))
        .unwrap_or_default();
    Second {
        at_ns: interval.start_ns,
        len_ns: interval.len_ns,
        rate: count as f64 * 1e9 / interval.len_ns as f64,
        // Of several classes, the slower one's.
        p99_ns: timed.iter().filter_map(of).filter(|class| class.count > 0).map(|class| class.p99_ns).max(),
        ..machine
    }
}

fn nearest(moments: &[Moment], at_ns: u64) -> Option<&Moment> {
    moments.iter().min_by_key(|moment| moment.at_ns.abs_diff(at_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::result::record::{ClassRecord, IntervalClass};
    use weir_core::units::Nanos;
    use weir_core::workload::Job;

    const SECOND_NS: u64 = 1_000_000_000;

    fn moment(at_s: f64, flood: Option<u64>, device: u64, dirty: u64) -> Moment {
        let at_ns = (at_s * 1e9) as u64;
        Moment { at_ns, flood_bytes: flood, device_bytes: Some(device), dirty_bytes: dirty }
    }

    /// Each second: so many commits of 1 ms and as many reads of 5 ms.
    fn job(counts: &[u64], elapsed_ns: u64) -> JobRecord {
        let commits_and_reads =
            |count: &u64| vec![(Class::Commit, *count, 1_000), (Class::Read, *count, 5_000)];
        JobRecord { elapsed_ns, ..of_classes(&counts.iter().map(commits_and_reads).collect::<Vec<_>>()) }
    }

    /// Of each second, classes with their counts and their latency in µs.
    fn of_classes(seconds: &[Vec<(Class, u64, u64)>]) -> JobRecord {
        let mut of_run: BTreeMap<Class, ClassRecord> = BTreeMap::new();
        let mut intervals = Vec::new();
        for (index, done) in seconds.iter().enumerate() {
            let mut classes = BTreeMap::new();
            for (class, count, latency_us) in done {
                let latency_ns = latency_us * 1_000;
                of_run.entry(*class).or_default().latency.record_many(latency_ns, *count);
                let interval = IntervalClass { count: *count, p99_ns: latency_ns, ..Default::default() };
                classes.insert(*class, interval);
            }
            let start_ns = index as u64 * SECOND_NS;
            intervals.push(Interval { start_ns, len_ns: SECOND_NS, classes, ..Default::default() });
        }
        JobRecord {
            job: Job { duration: Nanos(2 * SECOND_NS), ..Job::default() },
            elapsed_ns: seconds.len() as u64 * SECOND_NS,
            classes: of_run,
            intervals,
            ..JobRecord::default()
        }
    }

    #[test]
    fn commits_speak_for_a_job_that_commits_and_few_samples_for_no_percentile() {
        let measures = of_job(&job(&[100, 140], 2 * SECOND_NS), Counted::Commits, &[]);
        assert_eq!(measures.operations, 240);
        assert_eq!(measures.get(&Metric::Rate), Some(120.0));
        assert_eq!(measures.get(&Metric::Mean), Some(1e6));
        assert!(measures.get(&Metric::P95).is_some() && measures.get(&Metric::P999).is_none());
        assert_eq!(measures.get(&Metric::Bulk), None);
        assert_eq!(measures.seconds.iter().map(|s| s.rate).collect::<Vec<_>>(), [100.0, 140.0]);
        assert_eq!(measures.seconds[0].p99_ns, Some(1_000_000));
    }

    #[test]
    fn an_operation_is_a_read_or_a_write_with_the_sync_that_it_waits_for() {
        let (read, write, commit) = (Class::Read, Class::Write, Class::Commit);
        for (done, rate, median_us, longest_us, mean_us) in [
            // Every tenth write of 20 µs waits for a sync.
            (vec![(write, 100, 20), (commit, 10, 8_000)], 100.0, 20.0, 8_000.0, 818.0),
            // The same work without a sync, and with one after each write.
            (vec![(write, 100, 20)], 100.0, 20.0, 20.0, 20.0),
            (vec![(write, 100, 20), (commit, 100, 8_000)], 100.0, 8_000.0, 8_000.0, 8_000.0),
            (vec![(read, 60, 100), (write, 40, 20), (commit, 40, 8_000)], 100.0, 100.0, 8_000.0, 3_260.0),
        ] {
            let measures = of_job(&of_classes(&vec![done.clone(); 10]), Counted::Operations, &[]);
            assert_eq!((measures.get(&Metric::Rate), measures.operations), (Some(rate), 1_000), "{done:?}");
            for (metric, us) in [(Metric::P50, median_us), (Metric::P99, longest_us), (Metric::Mean, mean_us)]
            {
                let measured = measures.get(&metric).unwrap() / 1e3;
                assert!((measured / us - 1.0).abs() < 1e-3, "{done:?}: {metric} {measured}, not {us}");
            }
            let second = &measures.seconds[0];
            assert_eq!((second.rate, second.p99_ns), (rate, Some(longest_us as u64 * 1_000)), "{done:?}");
        }
    }

    #[test]
    fn what_is_counted_can_be_changed_later_and_the_machines_figures_stay() {
        let moments = [moment(0.0, Some(0), 0, 0), moment(2.0, Some(4_000), 3_000, 0)];
        let job = of_classes(&vec![vec![(Class::Write, 100, 20), (Class::Commit, 10, 8_000)]; 2]);
        let mut measures = of_job(&job, Counted::Commits, &moments);
        assert_eq!((measures.get(&Metric::Rate), measures.seconds[0].rate), (Some(10.0), 10.0));
        count_again(&mut measures, &job, Counted::Operations);
        assert_eq!(measures, of_job(&job, Counted::Operations, &moments));
    }

    #[test]
    fn a_job_of_which_no_commit_came_through_has_a_rate_of_none() {
        let mut stuck = job(&[0], 9 * SECOND_NS);
        stuck.classes.clear();
        let measures = of_job(&stuck, Counted::Commits, &[]);
        assert_eq!((measures.get(&Metric::Rate), measures.get(&Metric::Max)), (Some(0.0), None));
    }

    #[test]
    fn bulk_is_what_was_handed_over_less_what_stayed_in_memory_while_the_flood_ran() {
        // Two seconds of flood, then it was ended to let a stuck commit go: its dirty pages vanish.
        let moments = [
            moment(0.0, Some(1_000), 0, 500),
            moment(1.0, Some(2_000), 400, 1_200),
            moment(2.0, Some(3_000), 1_200, 1_500),
            moment(4.0, None, 1_600, 0),
        ];
        let measures = of_job(&job(&[10, 10, 5, 5], 4 * SECOND_NS), Counted::Commits, &moments);
        assert_eq!(measures.get(&Metric::Bulk), Some((2_000.0 - 1_000.0) / 2.0));
        assert_eq!(measures.get(&Metric::Device), Some(400.0));
        let bulk: Vec<_> = measures.seconds.iter().map(|s| s.bulk).collect();
        assert_eq!(bulk, [Some(300.0), Some(700.0)], "seconds past the job's time are left out");
        assert_eq!(measures.seconds[1].dirty_bytes, 1_500);
    }

    #[test]
    fn a_stall_past_the_jobs_time_takes_no_second_away() {
        let mut stalled = job(&[100, 90], 5 * SECOND_NS);
        let start_ns = 2 * SECOND_NS;
        stalled.intervals.push(Interval { start_ns, len_ns: 3 * SECOND_NS, ..Default::default() });
        let measures = of_job(&stalled, Counted::Commits, &[]);
        let rates: Vec<f64> = measures.seconds.iter().map(|s| s.rate).collect();
        assert_eq!(rates, [100.0, 90.0]);
    }

    #[test]
    fn pages_overwritten_while_dirty_are_no_bulk() {
        let moments = [moment(0.0, Some(0), 0, 900), moment(1.0, Some(5_000), 200, 900)];
        assert_eq!(of_command(&[], &moments).get(&Metric::Bulk), Some(200.0));
    }

    #[test]
    fn a_commands_figures_stand_beside_the_machines() {
        let moments = [moment(0.0, None, 0, 0), moment(2.0, None, 4_000, 7)];
        let measures = of_command(&[("tps".to_string(), 12.5)], &moments);
        assert_eq!(measures.get(&Metric::Named("tps".into())), Some(12.5));
        assert_eq!(measures.get(&Metric::Device), Some(2_000.0));
        assert_eq!((measures.seconds.len(), measures.seconds[0].dirty_bytes), (1, 7));
    }
}
