//! Made-up experiments of every design, for the tests of text, page and JSON.

use std::collections::BTreeMap;

use weir_core::result::Record;
use weir_core::result::samples;
use weir_core::stats::bootstrap::RatioInterval;
use weir_core::stats::random::{Random, simulate};
use weir_core::workload::Job;
use weir_experiment::{
    Arm, ArmSummary, CommandSpec, Conduct, Counted, Effect, Experiment, Finding, Goal, Judgement, Measures,
    Metric, Observation, Outcome, Phase, Proposal, Recommendation, ScalabilityLaw, Second, Study,
    Transactions, TrialLog, Washout, Workload, log,
};
use weir_knobs::Setting;
use weir_oltp::OltpSpec;

const SECOND: u64 = 1_000_000_000;
const MS: f64 = 1e6;

/// A record without jobs, as a frame for an experiment.
pub fn record() -> Record {
    let mut record = samples::record(Vec::new());
    record.kind = "tune".to_string();
    record.command = ["weir", "tune", "sweep", "vm.dirty_bytes", "--dir", "/srv/db", "--flood", "dd"]
        .map(String::from)
        .to_vec();
    record
}

/// What an arm truly does.
#[derive(Clone, Copy)]
struct Truth {
    rate: f64,
    p99_ns: f64,
    bulk: Option<f64>,
    dirty: f64,
    submit_p95_ns: Option<f64>,
}

struct Maker {
    random: Random,
    arms: Vec<Arm>,
    truths: Vec<Truth>,
    trials: Vec<TrialLog>,
    seconds: u64,
}

fn settings(words: &[&str]) -> Vec<Setting> {
    words.iter().map(|word| word.parse().unwrap()).collect()
}

impl Maker {
    fn new(seconds: u64) -> Maker {
        Maker { random: Random::new(11), arms: Vec::new(), truths: Vec::new(), trials: Vec::new(), seconds }
    }

    fn arm(&mut self, label: &str, set: &[&str], flooded: bool, truth: Truth) {
        let mut job = Job { name: "commits".to_string(), ..Job::default() };
        job.sync.every = 1;
        self.arms.push(Arm {
            label: label.to_string(),
            settings: settings(set),
            workload: Workload::Job(Box::new(job)),
            floods: if flooded { vec!["dd".to_string()] } else { Vec::new() },
            guarded: false,
        });
        self.truths.push(truth);
    }

    fn trial(&mut self, arm: usize, block: u32, phase: Phase) {
        let truth = self.truths[arm];
        let rates = simulate::series(&mut self.random, self.seconds as usize, truth.rate, 0.05, 0.3);
        let second = |(i, rate): (usize, &f64)| Second {
            at_ns: i as u64 * SECOND,
            len_ns: SECOND,
            rate: rate.max(0.0),
            p99_ns: Some((truth.p99_ns * truth.rate / rate.max(1.0)) as u64),
            bulk: truth.bulk.map(|bulk| bulk * rate / truth.rate),
            device: Some(2e8),
            dirty_bytes: (truth.dirty * (0.9 + 0.02 * i as f64)) as u64,
        };
        let seconds: Vec<Second> = rates.iter().enumerate().map(second).collect();
        let rate = rates.iter().sum::<f64>() / rates.len() as f64;
        let mut values = BTreeMap::from([
            (Metric::Rate, rate),
            (Metric::Mean, truth.p99_ns / 4.0),
            (Metric::P50, truth.p99_ns / 5.0),
            (Metric::P95, truth.p99_ns / 1.6),
            (Metric::P99, truth.p99_ns),
            (Metric::Max, truth.p99_ns * 9.0),
        ]);
        values.extend(truth.bulk.map(|bulk| (Metric::Bulk, bulk * rate / truth.rate)));
        values.extend(truth.submit_p95_ns.map(|ns| (Metric::SubmitP95, ns)));
        let operations = (rate * self.seconds as f64) as u64;
        let proposal = Proposal { arm, block, phase, duration_ns: self.seconds * SECOND, abort_age_ns: None };
        let start_ns = self.trials.last().map_or(2 * SECOND, |t| t.start_ns + t.took_ns + 3 * SECOND);
        self.trials.push(TrialLog {
            left_ns: 600 * SECOND,
            start_ns,
            took_ns: (self.seconds + 3) * SECOND,
            washout: Washout { took_ns: 2 * SECOND, left_bytes: 900_000, timed_out: false },
            observation: Observation {
                proposal,
                outcome: Outcome::Measured(Measures { values, seconds, operations }),
            },
            job: None,
            transactions: None,
            stages: None,
            remarks: Vec::new(),
        });
    }

    fn summaries(&self) -> Vec<ArmSummary> {
        (0..self.arms.len()).map(|arm| self.summary(arm)).collect()
    }

    fn summary(&self, arm: usize) -> ArmSummary {
        let of_arm = || self.trials.iter().filter(move |t| t.proposal().arm == arm);
        let measured: Vec<&Measures> = of_arm().filter_map(|t| t.observation.outcome.measured()).collect();
        let mut summary = ArmSummary { label: self.arms[arm].label.clone(), ..ArmSummary::default() };
        summary.trials = measured.len() as u32;
        summary.spoilt = of_arm().count() as u32 - summary.trials;
        let metrics: Vec<Metric> =
            measured.first().map_or(Vec::new(), |m| m.values.keys().cloned().collect());
        for metric in metrics {
            let values: Vec<f64> = measured.iter().filter_map(|m| m.get(&metric)).collect();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let half = mean * 0.04;
            summary.values.insert(metric.clone(), mean);
            summary.intervals.insert(metric, (mean - half, mean + half));
        }
        summary
    }

    fn effect(&self, from: usize, to: usize, metric: Metric) -> Effect {
        let of = |arm: usize| self.summary(arm).values.get(&metric).copied().unwrap_or(1.0);
        let ratio = of(to) / of(from);
        let interval = RatioInterval { ratio, low: ratio * 0.94, high: ratio * 1.07 };
        let up = ratio > 1.0;
        let judgement = match interval.covers_one() {
            true => Judgement::NoDifference,
            false if up == metric.more_is_better() => Judgement::Better,
            false => Judgement::Worse,
        };
        Effect { from, to, metric, ratio: Some(interval), units: 30, judgement }
    }

    fn study<'a>(self, record: &'a Record, design: &str, finding: Finding, found: &[&str]) -> Study<'a> {
        let experiment = Experiment {
            schema: log::SCHEMA.to_string(),
            design: design.to_string(),
            plan: serde_json::json!({ "repeats": 3 }),
            goal: Goal::of(Metric::Rate),
            seed: 7,
            budget_ns: 900 * SECOND,
            conduct: Conduct::default(),
            found: settings(found),
            counted: Some(Counted::Commits),
            trials: self.trials,
            notes: Vec::new(),
            remarks: Vec::new(),
        };
        let path = Some("/home/dba/.local/state/weir/runs/20261121-081359-506-0f1e.json".to_string());
        Study { record, path, experiment, arms: self.arms, finding }
    }
}

fn change(arm: usize, set: &[&str]) -> Recommendation {
    Recommendation::Change {
        arm,
        settings: settings(set),
        cost: "The flood gets 176 MB/s instead of 187 MB/s (-5.9 %).".to_string(),
        durability: "None: less unwritten data is lost in a crash.".to_string(),
        reversibility: "Exact: the baseline value is restored.".to_string(),
    }
}

/// `vm.dirty_bytes` on a device of 1,500 write IOPS and 200 MB/s under a flood, eight values, three repeats.
pub fn sweep(record: &Record) -> Study<'_> {
    let truth = |rate: f64, p99: f64, bulk: Option<f64>, dirty: f64| Truth {
        rate,
        p99_ns: p99 * MS,
        bulk: bulk.map(|bulk| bulk * 1e6),
        dirty,
        submit_p95_ns: None,
    };
    let mut maker = Maker::new(10);
    maker.arm("idle", &[], false, truth(758.0, 15.2, None, 2e5));
    maker.arm("baseline", &[], true, truth(33.7, 1_590.0, Some(187.0), 4.1e9));
    for (bytes, rate, p99, bulk) in [
        (1_000_000u64, 741.0, 16.1, 61.0),
        (4_000_000, 729.0, 17.4, 128.0),
        (8_000_000, 716.0, 19.0, 158.0),
        (15_000_000, 703.0, 21.8, 176.0),
        (32_000_000, 540.0, 44.0, 183.0),
        (64_000_000, 322.0, 96.0, 186.0),
        (256_000_000, 118.0, 410.0, 187.0),
        (1_024_000_000, 52.0, 1_120.0, 187.0),
    ] {
        let setting = format!("vm.dirty_bytes={bytes}");
        maker.arm(&setting, &[&setting], true, truth(rate, p99, Some(bulk), bytes as f64));
    }
    let mut random = Random::new(5);
    for block in 0..3 {
        let mut order: Vec<usize> = (0..maker.arms.len()).collect();
        random.shuffle(&mut order);
        order.into_iter().for_each(|arm| maker.trial(arm, block, Phase::Measure));
    }
    let effects = (2..10)
        .flat_map(|arm| [(1, arm, Metric::Rate), (1, arm, Metric::Bulk), (1, arm, Metric::P99)])
        .map(|(from, to, metric)| maker.effect(from, to, metric))
        .collect();
    let finding = Finding {
        headline: "vm.dirty_bytes = 15 MB keeps 93 % of the idle commits/s under the flood, 20.9 times the \
                   baseline, and bulk writing keeps 94 % of its rate."
            .to_string(),
        recommendation: change(5, &["vm.dirty_bytes=15000000"]),
        arms: maker.summaries(),
        effects,
        front: vec![2, 3, 4, 5, 6, 7, 8],
        knee: Some(5),
        remarks: vec![
            "Below 15 MB commits gain 5 % at most, and bulk writing loses up to two thirds.".to_string(),
        ],
        ..Finding::default()
    };
    let mut study = maker.study(record, "sweep", finding, &["vm.dirty_ratio=20"]);
    study.experiment.trials[4].washout =
        Washout { took_ns: 60 * SECOND, left_bytes: 130 << 20, timed_out: true };
    study.experiment.trials[9].remarks.push("another process wrote 41 MB/s to the device".to_string());
    study
}

/// One change after another, as somebody tunes by hand.
pub fn ladder(record: &Record) -> Study<'_> {
    let mut maker = Maker::new(10);
    let steps: [(&str, f64, f64, f64); 7] = [
        ("dsync", 224.0, 33.12, 33.12),
        ("direct", 247.0, 29.19, 29.19),
        ("direct, async (backlog 128)", 780.0, 171.0, 0.04),
        ("backlog 256", 842.0, 322.0, 0.04),
        ("backlog 2", 244.0, 26.2, 26.0),
        ("backlog 256, 16 threads", 943.0, 3_100.0, 0.06),
        ("backlog 256, 2 threads, caches dropped, swappiness 0", 870.0, 318.0, 0.05),
    ];
    for (label, rate, p95, submit) in steps {
        let truth =
            Truth { rate, p99_ns: p95 * 1.6 * MS, bulk: None, dirty: 1e6, submit_p95_ns: Some(submit * MS) };
        maker.arm(label, &[], false, truth);
    }
    for block in 0..3 {
        (0..steps.len()).for_each(|arm| maker.trial(arm, block, Phase::Measure));
    }
    let effects = (1..steps.len())
        .flat_map(|to| [Metric::Rate, Metric::P95].map(|metric| (to, metric)))
        .map(|(to, metric)| maker.effect(to - 1, to, metric))
        .collect();
    let finding = Finding {
        headline: "Of 6 steps, 3 gained throughput; \"direct, async (backlog 128)\" gained most, 3.2 times.".to_string(),
        recommendation: Recommendation::None,
        arms: maker.summaries(),
        effects,
        remarks: vec![
            "Step 3: the p95 of 0.04 ms that sysbench would print is the time of submitting. The true p95 is 171 ms, \
             5.9 times that of the step before."
                .to_string(),
        ],
        ..Finding::default()
    };
    maker.study(record, "ladder", finding, &["vm.swappiness=60"])
}

/// Two schedulers in ten pairs; `gain` is what B truly does better.
pub fn ab(record: &Record, gain: f64) -> Study<'_> {
    let mut maker = Maker::new(10);
    let truth = |rate: f64| Truth { rate, p99_ns: 14e9 / rate, bulk: None, dirty: 1e6, submit_p95_ns: None };
    maker.arm("sda/scheduler=mq-deadline", &["sda/scheduler=mq-deadline"], false, truth(4_900.0));
    maker.arm("sda/scheduler=none", &["sda/scheduler=none"], false, truth(4_900.0 * gain));
    for pair in 0..10 {
        let order = if pair % 2 == 0 { [0, 1] } else { [1, 0] };
        order.into_iter().for_each(|arm| maker.trial(arm, pair, Phase::Measure));
    }
    let effects: Vec<Effect> = [Metric::Rate, Metric::P99].map(|metric| maker.effect(0, 1, metric)).to_vec();
    let better = effects[0].judgement == Judgement::Better;
    let finding = Finding {
        headline: if better { "B is better.".to_string() } else { "No difference is shown.".to_string() },
        recommendation: if better {
            change(1, &["sda/scheduler=none"])
        } else {
            Recommendation::Keep { why: "the data show no difference".to_string() }
        },
        arms: maker.summaries(),
        effects,
        ..Finding::default()
    };
    maker.study(record, "ab", finding, &["sda/scheduler=mq-deadline"])
}

/// Two jobs of which the better one opens its files with O_DIRECT and keeps more in flight.
pub fn direct(record: &Record) -> Study<'_> {
    let mut study = ab(record, 1.4);
    for (arm, label) in study.arms.iter_mut().zip(["direct=false", "direct=true,depth=32"]) {
        (arm.label, arm.settings) = (label.to_string(), Vec::new());
    }
    if let Workload::Job(job) = &mut study.arms[1].workload {
        (job.direct, job.depth) = (true, 32);
    }
    study.finding.recommendation = change(1, &[]);
    study
}

/// Four knobs: screened, raced, confirmed.
pub fn race(record: &Record) -> Study<'_> {
    let mut maker = Maker::new(5);
    let truth =
        |rate: f64| Truth { rate, p99_ns: 15e9 / rate, bulk: Some(1.7e8), dirty: 2e7, submit_p95_ns: None };
    maker.arm("baseline", &[], true, truth(33.0));
    let rates = [704.0, 655.0, 610.0, 420.0, 390.0, 120.0, 60.0];
    for (i, rate) in rates.into_iter().enumerate() {
        let set = [
            format!("vm.dirty_bytes={}", 15_000_000 << i),
            format!("vm.dirty_background_bytes={}", 7_500_000 << i),
            format!("sda/nr_requests={}", 32 << (i % 3)),
            format!("sda/max_sectors_kb={}", 128 << (i % 4)),
        ];
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        maker.arm(&set.join(" "), &set, true, truth(rate));
    }
    maker.arm("idle", &[], false, Truth { bulk: None, ..truth(740.0) });
    (0..8).for_each(|arm| maker.trial(arm, 0, Phase::Screen));
    for (block, survivors) in [8, 4, 2].into_iter().enumerate() {
        (0..survivors).for_each(|arm| maker.trial(arm, block as u32, Phase::Race));
    }
    for pair in 0..10 {
        [0, 1, 8].into_iter().for_each(|arm| maker.trial(arm, pair, Phase::Confirm));
    }
    let finding = Finding {
        headline: "A dirty limit of 15 MB is confirmed on fresh data.".to_string(),
        recommendation: change(1, &["vm.dirty_bytes=15000000", "sda/nr_requests=32"]),
        arms: maker.summaries(),
        effects: vec![maker.effect(0, 1, Metric::Rate), maker.effect(0, 1, Metric::Bulk)],
        ..Finding::default()
    };
    maker.study(
        record,
        "race",
        finding,
        &["vm.dirty_ratio=20", "vm.dirty_background_ratio=10", "sda/nr_requests=64"],
    )
}

/// The same transactions from more and more connections, whose rates follow a law with its peak at 16.
pub fn scale(record: &Record) -> Study<'_> {
    let law = ScalabilityLaw { alone: 500.0, contention: 0.05, coherency: 0.0037 };
    let mut maker = Maker::new(10);
    for threads in [1, 2, 4, 8, 12, 16, 32, 64] {
        let n = f64::from(threads);
        let rate = law.at(n);
        let truth = Truth { rate, p99_ns: n / rate * 3e9, bulk: None, dirty: 1e6, submit_p95_ns: None };
        maker.arm(&format!("{threads} connections"), &[], false, truth);
        let spec = OltpSpec { threads, ..OltpSpec::default() };
        let transactions = Transactions { spec, server: "mysql://root@localhost/weir".to_string() };
        maker.arms.last_mut().unwrap().workload = Workload::Transactions(Box::new(transactions));
    }
    for block in 0..3 {
        (0..8).for_each(|arm| maker.trial(arm, block, Phase::Measure));
    }
    let finding = Finding {
        headline: "Of the numbers tried, 16 connections do most: 3,033 transactions/s; 12 connections give 97 % of it."
            .to_string(),
        recommendation: Recommendation::Keep { why: "a scale changes nothing".to_string() },
        arms: maker.summaries(),
        effects: (1..8).map(|to| maker.effect(to - 1, to, Metric::Rate)).collect(),
        knee: Some(4),
        law: Some(law),
        ..Finding::default()
    };
    maker.study(record, "scale", finding, &[])
}

/// Trials that went wrong, names that try to break out, nothing recommended.
pub fn spoilt(record: &Record) -> Study<'_> {
    let mut study = sweep(record);
    let measured = study.experiment.trials[3].observation.outcome.measured().cloned().unwrap();
    study.experiment.trials[3].observation.outcome =
        Outcome::Aborted { why: "an operation was outstanding for 12 s".to_string(), measures: measured };
    study.experiment.trials[5].observation.outcome =
        Outcome::Failed { why: "write /proc/sys/vm/dirty_bytes: <b>EINVAL</b>".to_string() };
    study.arms[2].label = "</svg><script>alert(1)</script>".to_string();
    study.arms[2].workload =
        Workload::Command(CommandSpec { command: "a & b".to_string(), metrics: Vec::new() });
    study.finding.arms[9] = ArmSummary { label: "none".to_string(), spoilt: 3, ..ArmSummary::default() };
    study.finding.recommendation = Recommendation::Infeasible {
        why: "no value keeps p99 below 1 ms; 15 MB reaches 21.8 ms".to_string(),
    };
    study.experiment.remarks.push("The experiment went on after an interruption of 3 min.".to_string());
    study
}

/// A sweep for whose last value no time was left.
pub fn cut_short(record: &Record) -> Study<'_> {
    let mut study = sweep(record);
    let label = study.finding.arms[9].label.clone();
    study.finding.arms[9] = ArmSummary { label, ..ArmSummary::default() };
    study
}

/// An experiment that ended before anything was measured.
pub fn empty<'a>(record: &'a Record, design: &str) -> Study<'a> {
    let finding = Finding { headline: "Nothing was measured.".to_string(), ..Finding::default() };
    Maker::new(1).study(record, design, finding, &[])
}
