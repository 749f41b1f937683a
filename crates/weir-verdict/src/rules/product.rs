//! Whether storage suits a product: its checks held against what its steps measured, and what to set.

use crate::doctor::{BarResult, Evidence, Finding, Grade, Headline, LatencySummary, Measurement, Statement};
use crate::products::{Check, Demand, Product, Source};
use crate::rules::headline::worst;
use crate::rules::{class, tails};
use crate::view::{View, latency_of, percent, quoted, rate_of, throughput_of, time};
use weir_core::units::{megabytes_per_second, per_second};

/// Too few samples for a p99 speak for storage all the same where there are so many and even the longest is below the bar.
const ENOUGH: u64 = 30;

/// A check, held against what was measured.
struct Judged {
    check: &'static Check,
    /// `10 ms` or `50 appends/s`.
    demanded: String,
    /// The measured figure in words, and its evidence; absent where too little was measured.
    found: Option<(Grade, String, Vec<Evidence>)>,
}

/// What holds and what does not, one check each.
pub fn findings(view: &View, product: Product) -> Vec<Finding> {
    product.checks().iter().map(|check| finding(&judge(view, check))).collect()
}

/// The checks as bars, which decide the exit code.
pub fn bars(view: &View, product: Product) -> Vec<BarResult> {
    product.checks().iter().map(|check| bar(&judge(view, check))).collect()
}

/// Fit or not, by the check that decides.
pub fn headline(view: &View, product: Product, ended_early: Option<&str>, closing: &str) -> Headline {
    let judged: Vec<Judged> = product.checks().iter().map(|check| judge(view, check)).collect();
    let worst = judged.iter().map(Judged::grade).max().unwrap_or(Grade::Unknown);
    // What is missed outweighs what is unknown: the storage does not become fit by being measured for longer.
    let missed = judged.iter().find(|j| j.grade() == Grade::Poor);
    let grade = if missed.is_some() { Grade::Poor } else { worst };
    let decides = missed.or(judged.iter().find(|j| j.grade() == grade));
    let own = judged.iter().all(|j| matches!(j.check.source, Source::Own(_)));
    let verdict = match grade {
        Grade::Good if own => format!("Fit for {} by weir's own grade", product.title()),
        Grade::Good => format!("Fit for {}", product.title()),
        Grade::Fair => format!("Fit for {}, with little in reserve", product.title()),
        Grade::Poor => format!("Not fit for {}", product.title()),
        Grade::Unknown => format!("Too little was measured to call it fit for {}", product.title()),
    };
    let why = decides.map_or(String::new(), |judged| format!(": {}", judged.sentence()));
    let end = match ended_early {
        Some(why) => format!(" It ended early ({why}), so this is incomplete."),
        None => format!(" {closing}"),
    };
    Headline { grade, text: format!("{verdict}{why}{end}") }
}

/// The limits that cgroups set beside a product that is not well off: no step of it tells whether they are the cause.
pub fn limited(view: &View, findings: &[Finding]) -> Option<String> {
    let limits = class::cgroup_limits(view).filter(|_| worst(findings) != Grade::Good)?;
    let command = format!("weir doctor {}", quoted(&view.notes.path));
    Some(format!("A cgroup limits {limits}: `{command}` tells whether that is the cause."))
}

fn finding(judged: &Judged) -> Finding {
    let evidence = judged.found.as_ref().map_or(Vec::new(), |(.., evidence)| evidence.clone());
    let figure = judged.found.as_ref().map_or("not judged", |(_, figure, _)| figure);
    let summary = format!("{}: {figure}", judged.check.name);
    let text = capitalised(&judged.sentence());
    let statements = vec![Statement::new(text, evidence)];
    Finding { topic: judged.check.topic, grade: Some(judged.grade()), summary, statements }
}

fn bar(judged: &Judged) -> BarResult {
    let bar = format!("{} {}", judged.check.name, judged.demanded);
    let met = judged.found.as_ref().map(|(grade, ..)| *grade != Grade::Poor);
    let (text, evidence) = match &judged.found {
        Some((_, figure, evidence)) => {
            let word = if met == Some(true) { "met" } else { "missed" };
            (format!("{bar} is {word}: {figure}."), evidence.clone())
        }
        None => (format!("{bar} could not be judged: too little was measured."), Vec::new()),
    };
    let statement = Statement::new(text, evidence);
    BarResult { bar, met, statement, source: Some(judged.check.source.text()) }
}

impl Judged {
    fn grade(&self) -> Grade {
        self.found.as_ref().map_or(Grade::Unknown, |(grade, ..)| *grade)
    }

    fn sentence(&self) -> String {
        let Judged { check, demanded, found } = self;
        match found {
            Some((_, figure, _)) => match check.demand {
                Demand::SyncP99 { .. } | Demand::TransactionP99 { .. } => {
                    format!("{} take {figure} (bar: {demanded}).", check.what)
                }
                Demand::Kept { .. } => format!("{figure} {} (bar: {demanded}).", check.what),
                _ => format!("{}: {figure} (bar: {demanded}).", check.what),
            },
            None => format!("{}: too little was measured (bar: {demanded}).", check.what),
        }
    }
}

fn judge(view: &View, check: &'static Check) -> Judged {
    let measured = of_step(view, check.step);
    let (demanded, found) = match check.demand {
        Demand::SyncP99 { bar, good } => {
            let found = measured.and_then(|m| tail(m, m.sync.as_ref()?, bar, good));
            (format!("≤ {}", time(bar)), found)
        }
        Demand::TransactionP99 { bar, good } => {
            (format!("≤ {}", time(bar)), measured.and_then(|m| tail(m, &m.latency, bar, good)))
        }
        Demand::Rate { bar, good, units, unit } => {
            let found = measured.filter(has_rate).map(|m| {
                let rate = m.iops.mean * units;
                let figure = format!("{} {unit}", per_second(rate));
                (at_least(rate, bar, good), figure, vec![rate_of(m)])
            });
            (format!("≥ {} {unit}", per_second(bar)), found)
        }
        Demand::Bytes { bar, good } => {
            let found = measured.filter(has_rate).map(|m| {
                let rate = m.bytes_per_second;
                (at_least(rate, bar, good), megabytes_per_second(rate), vec![throughput_of(m)])
            });
            (format!("≥ {}", megabytes_per_second(bar)), found)
        }
        Demand::Kept { bar, good, of } => {
            let alone = of_step(view, of).filter(|m| m.iops.mean > 0.0);
            let found = measured.filter(has_rate).zip(alone).map(|(m, alone)| {
                let share = m.bytes_per_second / alone.bytes_per_second;
                (at_least(share, bar, good), percent(share), vec![rate_of(alone), rate_of(m)])
            });
            (format!("≥ {}", percent(bar)), found)
        }
    };
    Judged { check, demanded, found }
}

fn of_step<'a>(view: &View<'a>, id: &str) -> Option<&'a Measurement> {
    view.measurements.iter().find(|m| m.id == id && m.error.is_none())
}

fn at_least(value: f64, bar: f64, good: f64) -> Grade {
    match value {
        v if v >= good => Grade::Good,
        v if v >= bar => Grade::Fair,
        _ => Grade::Poor,
    }
}

fn at_most(ns: u64, bar: u64, good: u64) -> Grade {
    match ns {
        ns if ns <= good => Grade::Good,
        ns if ns <= bar => Grade::Fair,
        _ => Grade::Poor,
    }
}

/// Fewer whole intervals tell no rate: a step may end at once where the user ends it.
const INTERVALS_MIN: u32 = 3;

/// The step, where it ran for long enough to have a rate.
fn has_rate(m: &&Measurement) -> bool {
    m.iops.intervals >= INTERVALS_MIN
}

/// A p99 against its bar. With too few samples for one, a p95 above the bar decides as well, and so does the longest
/// below it; and an operation that had not ended when the step did. A stall is no more than one slow operation to a p99:
/// a step with one is not good.
fn tail(m: &Measurement, l: &LatencySummary, bar: u64, good: u64) -> Option<(Grade, String, Vec<Evidence>)> {
    let of = |name: &'static str, ns: u64| {
        let of_these = Measurement { latency: l.clone(), ..m.clone() };
        vec![latency_of(&of_these, name, ns)]
    };
    let longest = l.max_ns.max(m.oldest_ns_max);
    match (l.p99_ns, l.p95_ns) {
        (Some(p99), _) if tails::grade(longest) == Grade::Poor => {
            let figure = format!("up to {}, and one took {}", time(p99), time(longest));
            Some((at_most(p99, bar, good).max(Grade::Fair), figure, of("p99", p99)))
        }
        (Some(p99), _) => Some((at_most(p99, bar, good), format!("up to {}", time(p99)), of("p99", p99))),
        (None, Some(p95)) if p95 > bar => {
            Some((Grade::Poor, format!("more than {} (p95)", time(p95)), of("p95", p95)))
        }
        _ if l.n >= ENOUGH && longest <= bar => Some((
            at_most(longest, bar, good),
            format!("up to {} (longest of {})", time(longest), l.n),
            of("longest", longest),
        )),
        _ if l.n < ENOUGH && longest > bar && l.n as f64 * bar as f64 <= m.elapsed_ns as f64 / 2.0 => Some((
            Grade::Poor,
            format!("up to {} (longest of {})", time(longest), l.n),
            of("longest", longest),
        )),
        _ => None,
    }
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::DoctorReport;
    use crate::from_record;
    use crate::notes::StepKind;
    use crate::products::transaction_of;
    use crate::synthetic::{Behaviour, Lab};
    use weir_core::result::record::{Class, ClassRecord, Record};
    use weir_core::stats::Histogram;

    /// Commits of this latency in each step, as often as that allows.
    fn report(product: Product, usual_ns: u64, rates: &[(&str, f64)]) -> DoctorReport {
        from_record(&record(product, usual_ns, rates)).unwrap()
    }

    fn record(product: Product, usual_ns: u64, rates: &[(&str, f64)]) -> Record {
        recorded(lab(product, usual_ns, rates))
    }

    fn recorded(lab: Lab) -> Record {
        let mut record = lab.record(Vec::new());
        record.jobs.iter_mut().for_each(|job| job.job.read_percent = 0.0);
        record
    }

    fn lab(product: Product, usual_ns: u64, rates: &[(&str, f64)]) -> Lab {
        let mut lab = Lab::new();
        lab.notes.product = Some(product);
        for step in product.steps() {
            let listed = rates.iter().find(|(id, _)| *id == step.id).map(|(_, iops)| *iops);
            let iops = listed.unwrap_or(1e9 / usual_ns as f64);
            // Of those that are timed as a whole, one follows another.
            let whole = transaction_of(step.id).is_some_and(|t| !t.is_single() && iops > 0.0);
            let usual_ns = if whole { (1e9 / iops) as u64 } else { usual_ns };
            let how = Behaviour { iops, usual_ns, slow_ns: usual_ns };
            lab.step(step.id, StepKind::Product, Class::Commit, (4 << 20, 1, 1), &how);
        }
        lab
    }

    #[test]
    fn fast_storage_is_fit_for_every_product_and_slow_for_none() {
        for product in Product::ALL {
            let fit = report(product, 1_000_000, &[]);
            assert!(fit.bars.iter().all(|bar| bar.met == Some(true)), "{product:?}: {:?}", fit.bars);
            assert_eq!(fit.headline.grade, Grade::Good, "{product:?}: {}", fit.headline.text);
            assert!(
                fit.headline.text.starts_with(&format!("Fit for {}", product.title())),
                "{}",
                fit.headline.text
            );
            let unfit = report(product, 250_000_000, &[]);
            assert_eq!(unfit.headline.grade, Grade::Poor, "{product:?}: {}", unfit.headline.text);
            assert!(unfit.bars.iter().any(|bar| bar.met == Some(false)), "{product:?}");
            assert!(unfit.headline.text.starts_with("Not fit for "), "{}", unfit.headline.text);
        }
    }

    /// Each bar says where it comes from, and each sentence what it stands on.
    #[test]
    fn bars_name_their_source_and_sentences_their_evidence() {
        for report in Product::ALL.map(|product| report(product, 1_000_000, &[])) {
            for bar in &report.bars {
                assert!(bar.source.as_ref().is_some_and(|source| source.len() > 20), "{bar:?}");
            }
            let statements = report.findings.iter().flat_map(|f| &f.statements);
            for evidence in statements.chain(report.bars.iter().map(|bar| &bar.statement)).flat_map(|s| {
                assert!(!s.evidence.is_empty(), "no evidence: {}", s.text);
                &s.evidence
            }) {
                assert!(report.measurements.iter().any(|m| m.id == evidence.source), "{evidence:?}");
            }
            assert!(
                report.headline.text.contains("own grade")
                    || report.bars.iter().any(|b| !b.source.as_ref().unwrap().contains("own"))
            );
        }
    }

    /// To a p99 a stall of a second is no more than one slow operation.
    #[test]
    fn storage_that_stalled_is_not_good() {
        let mut record = record(Product::Etcd, 1_000_000, &[]);
        for job in &mut record.jobs {
            job.classes.values_mut().for_each(|class| class.latency.record(2_000_000_000));
        }
        let report = from_record(&record).unwrap();
        let bar = report.bars.iter().find(|bar| bar.statement.text.contains("and one took 2.00 s"));
        assert_eq!(
            (bar.map(|bar| bar.met), report.headline.grade),
            (Some(Some(true)), Grade::Fair),
            "{:?}",
            report.bars
        );
    }

    /// Its steps are held against no curve, so the limit is named and not called the cause.
    #[test]
    fn a_cgroups_limit_is_named_where_a_product_is_not_well_off() {
        let closing = |usual_ns| {
            let mut lab = lab(Product::Etcd, usual_ns, &[]);
            lab.throttle("wiops", 1500);
            let report = from_record(&recorded(lab)).unwrap();
            assert!(report.headline.text.ends_with(&report.closing), "{:?}", report.headline);
            report.closing
        };
        let named =
            "A cgroup limits vdb to 1,500 write IOPS: `weir doctor /srv/db` tells whether that is the cause.";
        assert!(closing(90_000_000).ends_with(named), "{}", closing(90_000_000));
        assert_eq!(closing(1_000_000), "Nothing to change.");
    }

    /// The user ended it before anything was counted.
    #[test]
    fn a_step_that_hardly_ran_is_not_judged() {
        let mut record = record(Product::Etcd, 1_000_000, &[]);
        for job in &mut record.jobs {
            (job.elapsed_ns, job.classes) = (1, Default::default());
            job.intervals.clear();
        }
        let report = from_record(&record).unwrap();
        assert!(report.bars.iter().all(|bar| bar.met.is_none()), "{:?}", report.bars);
    }

    /// 64 MiB in 0.65 s are 103 MB/s, although the bytes of the first lie in the warm-up and those of the last end behind the
    /// step. In an older record, a last one that stalls has no latency, and its time counts.
    #[test]
    fn bytes_of_whole_transactions_are_held_against_their_own_time() {
        const MIB_64: f64 = (64 << 20) as f64;
        let at = Product::Kafka.steps().iter().position(|step| step.id == "kafka-append").unwrap();
        // The last ran with writes of half the size.
        for (elapsed_ns, written, bytes_per_second, met) in [
            (2_875_000_000, 256 << 20, MIB_64 / 0.65, true),
            (6_000_000_000, 256 << 20, MIB_64 * 4.0 / 6.0, false),
            (2_875_000_000, 128 << 20, MIB_64 / 2.0 / 0.65, false),
        ] {
            let mut record = record(Product::Kafka, 1_000_000, &[]);
            let mut latency = Histogram::new();
            latency.record_many(650_000_000, 4);
            let job = &mut record.jobs[at];
            job.elapsed_ns = elapsed_ns;
            job.classes.insert(Class::Commit, ClassRecord { bytes: 4 << 20, errors: 0, latency });
            let mut writes = Histogram::new();
            writes.record_many(1_000_000, 256);
            job.classes.insert(Class::Write, ClassRecord { bytes: written, errors: 0, latency: writes });
            let report = from_record(&record).unwrap();
            let found = report.measurements.iter().find(|m| m.id == "kafka-append").unwrap();
            assert!((found.bytes_per_second / bytes_per_second - 1.0).abs() < 1e-9, "{found:?}");
            assert_eq!(report.bars[0].met, Some(met), "{:?}", report.bars[0]);
        }
    }

    /// The bar of etcd is that of the sync alone, here half of the commit.
    #[test]
    fn etcd_is_held_to_its_syncs() {
        let met = |usual_ns| report(Product::Etcd, usual_ns, &[]).bars[0].met;
        assert_eq!((met(19_000_000), met(21_000_000)), (Some(true), Some(false)));
    }

    #[test]
    fn too_few_samples_decide_only_where_they_can() {
        let etcd =
            |iops, usual_ns| report(Product::Etcd, usual_ns, &[("etcd-wal", iops), ("etcd-backend", iops)]);
        // 40 of 5 ms each: all below. 40 of 60 ms: p95 needs 60. Nothing at all: not judged.
        assert_eq!(etcd(10.0, 5_000_000).bars[0].met, Some(true));
        assert_eq!(etcd(20.0, 60_000_000).bars[0].met, Some(false));
        let none = etcd(0.0, 5_000_000);
        assert_eq!((none.bars[0].met, none.bars[1].met), (None, None));
        assert!(none.headline.text.starts_with("Not fit"), "no append in 4 s: {}", none.headline.text);
    }

    #[test]
    fn the_best_method_is_advised_only_if_it_wins_with_two_blocks_too() {
        let wins = [("pg-open-datasync", 1500.0), ("pg-open-datasync-2", 1000.0)];
        let advice = report(Product::Postgres, 1_000_000, &wins).advice;
        assert_eq!((advice.len(), advice[0].proposed.as_str()), (1, "open_datasync"));
        assert!(advice[0].command.contains("wal_sync_method = 'open_datasync'"), "{}", advice[0].command);
        let loses = [("pg-open-datasync", 1500.0), ("pg-open-datasync-2", 500.0)];
        let report = report(Product::Postgres, 1_000_000, &loses);
        assert!(report.advice.is_empty() && report.findings[1].summary.contains("no wal_sync_method beats"));
    }
}
