//! Scale: the same transactions from more and more connections, the law that their rates follow, and the peak.
//!
//! Each repeat is a block that runs every number of connections once, in an order of its own, so that what drifts with
//! time is not taken for the effect of more connections.

mod scalability_law;

pub use scalability_law::{POINTS_MIN, ScalabilityLaw};

use crate::arm::{Arm, Workload};
use crate::design::{Design, Observation, Proposal};
use crate::effects::{EffectJudge, Wanted};
use crate::finding::{ArmSummary, Finding, Recommendation};
use crate::measures::Metric;
use crate::plan::ArmsPlan;
use crate::schedule::Schedule;
use crate::words;
use weir_core::units::{per_second, significant};

/// As good as the best, for whoever pays for connections.
const AS_GOOD: f64 = 0.95;
/// A law that is farther than this from a rate does not describe it.
const DESCRIBES: f64 = 0.15;
/// More than in proportion by this factor is no noise.
const SUPERLINEAR: f64 = 1.1;

/// Whether every trial of a number of connections gave a figure.
fn is_whole(arm: &ArmSummary) -> bool {
    arm.trials > 0 && arm.spoilt == 0
}

/// A scale under way.
#[derive(Debug, Clone)]
pub struct Scale {
    plan: ArmsPlan,
    schedule: Schedule,
}

/// Connections of an arm.
pub fn connections(arm: &Arm) -> u32 {
    match &arm.workload {
        Workload::Transactions(transactions) => transactions.spec.threads,
        Workload::Job(job) => job.threads,
        Workload::Command(_) => 0,
    }
}

impl Scale {
    /// A scale by a plan, whose arms are one for each number of connections, ascending.
    ///
    /// # Errors
    /// A sentence where there is one number of connections only, or they do not ascend; no repeats, or no time.
    pub fn new(plan: ArmsPlan) -> Result<Scale, String> {
        if plan.arms.len() < 2 || !plan.arms.is_sorted_by_key(connections) {
            return Err("a scale needs at least two numbers of connections, in ascending order".to_string());
        }
        plan.check("a scale")?;
        Ok(Scale { schedule: plan.shuffled(), plan })
    }

    /// Connections and rate of every trial that ran to its end.
    pub fn points(&self) -> Vec<(f64, f64)> {
        let point = |observation: &Observation| {
            let rate = observation.outcome.measured()?.get(&Metric::Rate)?;
            let arm = self.plan.arms.get(observation.proposal.arm)?;
            Some((f64::from(connections(arm)), rate))
        };
        self.schedule.observations.iter().filter_map(point).collect()
    }

    /// The law nearest to the rates of all trials, and how far it is from the one it describes worst.
    fn fit(&self) -> Option<(ScalabilityLaw, f64)> {
        let points = self.points();
        let law = ScalabilityLaw::fit(&points)?;
        Some((law, law.worst_error(&points)))
    }

    fn remarks(&self, arms: &[ArmSummary], best: usize, fit: Option<(ScalabilityLaw, f64)>) -> Vec<String> {
        let mut remarks = Vec::new();
        remarks.extend(arms.iter().filter_map(|arm| {
            let spoilt = words::spoilt(arm)?;
            Some(format!("With {} {spoilt}: it is not among those that do most.", arm.label))
        }));
        remarks.extend(self.superlinear(arms));
        remarks.push(law_in_words(fit));
        if best + 1 == arms.len() {
            let most = connections(&self.plan.arms[best]);
            remarks.push(format!(
                "The rate was still highest at the most connections tried ({most}): the peak was not reached."
            ));
        }
        remarks
    }

    /// What no law of contention can do: a machine whose processors sleep between the statements of one connection.
    fn superlinear(&self, arms: &[ArmSummary]) -> Option<String> {
        let rate = |i: usize| arms.get(i)?.values.get(&Metric::Rate).copied();
        let (first, second) = (rate(0)?, rate(1)?);
        let n = |i: usize| f64::from(connections(&self.plan.arms[i]));
        (second / first > n(1) / n(0) * SUPERLINEAR).then(|| {
            format!(
                "From {} to {} connections the rate grew {} times, more than in proportion: with few connections \
                 processors go to sleep between statements, and waking them is what was measured there.",
                n(0),
                n(1),
                significant(second / first)
            )
        })
    }
}

fn law_in_words(fit: Option<(ScalabilityLaw, f64)>) -> String {
    let Some((law, error)) = fit else {
        return format!("A scalability law needs rates at {POINTS_MIN} numbers of connections at least.");
    };
    if error > DESCRIBES {
        return format!(
            "The Universal Scalability Law does not describe this server: it is up to {:.0} % off.",
            100.0 * error
        );
    }
    let shape = match (law.peak(), law.ceiling()) {
        (Some(peak), _) => format!(
            "highest at {} with {}/s",
            words::count(peak.round() as usize, "connection"),
            per_second(law.at(peak.round()))
        ),
        (None, Some(ceiling)) => format!("never above {}/s", per_second(ceiling)),
        (None, None) => "in proportion to the connections as far as was tried".to_string(),
    };
    format!(
        "Universal Scalability Law: one alone {}/s, contention σ = {}, coherency κ = {}: {shape} (fits within \
         {:.0} %).",
        per_second(law.alone),
        significant(law.contention),
        significant(law.coherency),
        100.0 * error
    )
}

impl Design for Scale {
    fn arms(&self) -> &[Arm] {
        &self.plan.arms
    }

    fn propose(&mut self, left_ns: u64) -> Option<Proposal> {
        self.schedule.propose(left_ns)
    }

    fn observe(&mut self, observation: &Observation) {
        self.schedule.observe(observation);
    }

    fn finding(&self) -> Finding {
        let judge = EffectJudge::new(&self.schedule.observations, &self.plan.goal, self.plan.seed);
        let arms = judge.summaries(&self.plan.arms);
        let rate = |arm: usize| arms[arm].values.get(&Metric::Rate).copied();
        let best = (0..arms.len())
            .filter(|arm| is_whole(&arms[*arm]))
            .max_by(|a, b| rate(*a).unwrap_or(0.0).total_cmp(&rate(*b).unwrap_or(0.0)));
        let Some((best, highest)) = best.and_then(|best| Some((best, rate(best)?))) else {
            return Finding { headline: "Nothing was measured.".to_string(), arms, ..Finding::default() };
        };
        let fewest = (0..=best)
            .filter(|arm| is_whole(&arms[*arm]))
            .find(|arm| rate(*arm).is_some_and(|rate| rate >= highest * AS_GOOD))
            .unwrap_or(best);
        let n = |arm: usize| connections(&self.plan.arms[arm]);
        let interval = arms[best].intervals.get(&Metric::Rate);
        let interval = interval
            .map(|(low, high)| format!(" ({}–{})", per_second(*low), per_second(*high)))
            .unwrap_or_default();
        let enough = if fewest < best {
            format!(
                "; {} connections give {:.0} % of it",
                n(fewest),
                100.0 * rate(fewest).unwrap_or(0.0) / highest
            )
        } else {
            String::new()
        };
        let fit = self.fit();
        let steps = (1..arms.len()).map(|to| Wanted { from: to - 1, to, metric: Metric::Rate });
        let effects = judge.effects(&steps.collect::<Vec<_>>());
        Finding {
            headline: format!(
                "Of the numbers tried, {} connections do most: {}{interval} transactions/s{enough}.",
                n(best),
                per_second(highest)
            ),
            recommendation: Recommendation::Keep {
                why: "a scale changes nothing; the number of connections belongs into the pool before the server"
                    .to_string(),
            },
            remarks: self.remarks(&arms, best, fit),
            effects,
            knee: Some(fewest),
            law: fit.and_then(|(law, error)| (error <= DESCRIBES).then_some(law)),
            arms,
            ..Finding::default()
        }
    }

    fn remaining(&self) -> usize {
        self.schedule.remaining()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arm::Transactions;
    use crate::design::Outcome;
    use crate::goal::Goal;
    use crate::measures::{Measures, Second};
    use weir_core::stats::random::Random;
    use weir_oltp::OltpSpec;

    fn plan(ladder: &[u32]) -> ArmsPlan {
        let arm = |threads: &u32| Arm {
            label: format!("{threads} connections"),
            settings: Vec::new(),
            workload: Workload::Transactions(Box::new(Transactions {
                spec: OltpSpec { threads: *threads, ..OltpSpec::default() },
                server: "mysql://root@localhost/weir".to_string(),
            })),
            floods: Vec::new(),
            guarded: false,
        };
        ArmsPlan {
            arms: ladder.iter().map(arm).collect(),
            repeats: 3,
            duration_ns: 5_000_000_000,
            abort_age_ns: None,
            seed: 7,
            goal: Goal::of(Metric::Rate),
        }
    }

    /// Runs the whole plan against a server whose rate follows a function.
    fn run(ladder: &[u32], rate: impl Fn(f64) -> f64) -> (Scale, Finding) {
        let mut scale = Scale::new(plan(ladder)).unwrap();
        let mut noise = Random::new(11);
        while let Some(proposal) = scale.propose(u64::MAX) {
            let n = f64::from(connections(&scale.plan.arms[proposal.arm]));
            let mean = rate(n) * (1.0 + 0.01 * noise.normal());
            let second = |at: u64| Second {
                at_ns: at * 1_000_000_000,
                len_ns: 1_000_000_000,
                rate: mean,
                ..Second::default()
            };
            let measures = Measures {
                values: [(Metric::Rate, mean)].into(),
                seconds: (0..5).map(second).collect(),
                operations: (mean * 5.0) as u64,
            };
            scale.observe(&Observation { proposal, outcome: Outcome::Measured(measures) });
        }
        let finding = scale.finding();
        (scale, finding)
    }

    #[test]
    fn the_peak_and_the_law_are_named() {
        let law = ScalabilityLaw { alone: 500.0, contention: 0.05, coherency: 0.002 };
        let (scale, finding) = run(&[1, 2, 4, 8, 16, 32, 64], |n| law.at(n));
        assert!(finding.headline.contains("16 connections do most"), "{}", finding.headline);
        let fitted = ScalabilityLaw::fit(&scale.points()).unwrap();
        assert!((fitted.peak().unwrap() - law.peak().unwrap()).abs() < 3.0, "{fitted:?}");
        assert!(
            finding.remarks.iter().any(|r| r.starts_with("Universal Scalability Law")),
            "{:?}",
            finding.remarks
        );
        assert_eq!(finding.law, Some(fitted));
        assert_eq!(scale.remaining(), 0);
        assert_eq!(scale.schedule.observations.len(), 21);
    }

    #[test]
    fn a_server_that_only_gets_slower_has_its_peak_at_one_connection() {
        let (_, finding) = run(&[1, 2, 4, 8], |n| 1000.0 - 50.0 * n.log2());
        let law = finding.law.unwrap();
        assert!(law.contention >= 1.0, "{law:?}");
        let told = finding.remarks.join("\n");
        assert!(
            told.contains("highest at 1 connection with 1,0")
                || told.contains("highest at 1 connection with 9"),
            "{told}"
        );
        assert!(!told.contains("in proportion"), "{told}");
    }

    /// One good trial beside two that failed is no highest rate.
    #[test]
    fn numbers_whose_trials_failed_are_not_named() {
        let mut scale = Scale::new(plan(&[1, 2, 4])).unwrap();
        let mut of_four = 0;
        while let Some(proposal) = scale.propose(u64::MAX) {
            let n = connections(&scale.plan.arms[proposal.arm]);
            of_four += u32::from(n == 4);
            let rate = 500.0 * f64::from(n);
            let outcome = if n == 4 && of_four > 1 {
                Outcome::Failed { why: "too many connections".to_string() }
            } else {
                let values = [(Metric::Rate, rate)].into();
                Outcome::Measured(Measures { values, operations: rate as u64, ..Measures::default() })
            };
            scale.observe(&Observation { proposal, outcome });
        }
        let finding = scale.finding();
        assert!(finding.headline.contains("2 connections do most"), "{}", finding.headline);
        assert!(finding.remarks.iter().any(|r| r.contains("2 of 3 trials")), "{:?}", finding.remarks);
    }

    #[test]
    fn what_the_law_cannot_say_is_said() {
        let (_, finding) = run(&[1, 2, 4, 8], |n| if n < 2.0 { 500.0 } else { 3000.0 - 100.0 * n });
        assert!(
            finding.remarks.iter().any(|r| r.contains("more than in proportion")),
            "{:?}",
            finding.remarks
        );
        assert!(finding.remarks.iter().any(|r| r.contains("does not describe")), "{:?}", finding.remarks);
        assert_eq!(finding.law, None);
        let (_, finding) = run(&[1, 2], |n| 500.0 * n);
        assert!(
            finding.remarks.iter().any(|r| r.contains("4 numbers of connections")),
            "{:?}",
            finding.remarks
        );
        assert!(finding.remarks.iter().any(|r| r.contains("was not reached")), "{:?}", finding.remarks);
    }

    #[test]
    fn plans_that_show_nothing_are_refused() {
        assert!(Scale::new(plan(&[4])).is_err());
        assert!(Scale::new(plan(&[4, 2])).is_err());
        assert!(Scale::new(ArmsPlan { repeats: 0, ..plan(&[1, 2]) }).is_err());
    }
}
