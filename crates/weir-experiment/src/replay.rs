//! Designs from their plans, and back to where an experiment stopped.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::ab::Ab;
use crate::arm::{Arm, Counted, Workload, commit_every};
use crate::beside::Beside;
use crate::derive;
use crate::design::{Design, Outcome};
use crate::ladder::Ladder;
use crate::log::Experiment;
use crate::race::Race;
use crate::scale::Scale;
use crate::sweep::Sweep;
use weir_core::result::record::JobRecord;

/// The design of that name with that plan.
///
/// # Errors
/// A sentence where there is no such design, or the plan is not one of its own or cannot be carried out.
pub fn build(design: &str, plan: &Value) -> Result<Box<dyn Design>, String> {
    match design {
        "ab" => Ok(Box::new(Ab::new(read(design, plan)?)?)),
        "beside" => Ok(Box::new(Beside::new(read(design, plan)?)?)),
        "ladder" => Ok(Box::new(Ladder::new(read(design, plan)?)?)),
        "race" => Ok(Box::new(Race::new(read(design, plan)?)?)),
        "scale" => Ok(Box::new(Scale::new(read(design, plan)?)?)),
        "sweep" => Ok(Box::new(Sweep::new(read(design, plan)?)?)),
        other => Err(format!("no such design: `{other}`")),
    }
}

fn read<T: DeserializeOwned>(design: &str, plan: &Value) -> Result<T, String> {
    T::deserialize(plan).map_err(|error| format!("not a plan of a {design}: {error}"))
}

/// The design of a logged experiment after the trials that were made: ready to go on, or to state its finding.
///
/// # Errors
/// A sentence where [`build`] fails, or where the log names a trial that the plan does not lead to.
pub fn replay(experiment: &Experiment) -> Result<Box<dyn Design>, String> {
    let mut design = build(&experiment.design, &experiment.plan)?;
    for (place, trial) in experiment.trials.iter().enumerate() {
        let proposed = design.propose(trial.left_ns);
        if proposed.as_ref() != Some(trial.proposal()) {
            let planned = proposed.map_or("none".to_string(), |proposal| {
                format!("arm {} in block {}", proposal.arm, proposal.block)
            });
            return Err(format!(
                "the log does not follow the plan: trial {} was arm {} in block {}, the plan has {planned}",
                place + 1,
                trial.proposal().arm,
                trial.proposal().block,
            ));
        }
        design.observe(&trial.observation);
    }
    Ok(design)
}

/// Lets the figures of a log of an earlier version count the same in all arms. There an arm counted its commits as soon as
/// it had one, and nothing else. Arms of one workload are alike in that, and the plan may follow from their figures: those
/// stay. Arms of several are counted again from the `jobs` of the record.
pub fn count_alike(experiment: &mut Experiment, jobs: &[JobRecord]) {
    let (None, Ok(design)) = (experiment.counted, build(&experiment.design, &experiment.plan)) else {
        return;
    };
    let commits = |arm: &Arm| matches!(&arm.workload, Workload::Job(job) if commit_every(job).is_some());
    let one_workload = design.arms().windows(2).all(|pair| pair[0].workload == pair[1].workload);
    let counted = match design.arms() {
        [first, ..] if one_workload && commits(first) => Counted::Commits,
        arms => Counted::of(arms),
    };
    if counted == Counted::Operations && design.arms().iter().any(commits) {
        for trial in &mut experiment.trials {
            let job = trial.job.and_then(|place| jobs.get(place));
            if let (Outcome::Measured(measures) | Outcome::Aborted { measures, .. }, Some(job)) =
                (&mut trial.observation.outcome, job)
            {
                derive::count_again(measures, job, counted);
            }
        }
    }
    experiment.counted = Some(counted);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::of_job;
    use crate::design::Observation;
    use crate::goal::Goal;
    use crate::measures::{Measures, Metric};
    use crate::plan::ArmsPlan;
    use crate::synthetic;
    use weir_core::result::record::{Class, ClassRecord};
    use weir_core::workload::Job;
    use weir_core::workload::spec::{OpenSync, SyncMode};

    const SECOND_NS: u64 = 1_000_000_000;

    /// Ten seconds of 60 % reads of 100 µs and 40 % writes of 20 µs, of which each `every`th waits 8 ms for its sync.
    fn record(job: &Job, operations: u64) -> JobRecord {
        let (reads, writes) = (operations * 6 / 10, operations * 4 / 10);
        let commits = writes.checked_div(job.sync.every).unwrap_or(0);
        let done = [(Class::Read, reads, 100), (Class::Write, writes, 20), (Class::Commit, commits, 8_000)];
        let of_class = |(class, count, us): (Class, u64, u64)| {
            let mut record = ClassRecord::default();
            record.latency.record_many(us * 1_000, count);
            (class, record)
        };
        let classes = done.into_iter().filter(|(_, count, _)| *count > 0).map(of_class).collect();
        JobRecord { job: job.clone(), elapsed_ns: 10 * SECOND_NS, classes, ..JobRecord::default() }
    }

    /// As earlier versions counted: commits wherever there are any.
    fn by_arm(record: &JobRecord) -> Measures {
        let commits = record.classes.contains_key(&Class::Commit);
        of_job(record, if commits { Counted::Commits } else { Counted::Operations }, &[])
    }

    /// A log of an earlier version, of a ladder whose steps sync so often, with the jobs of its record.
    fn logged(every: [u64; 2]) -> (Experiment, Vec<JobRecord>) {
        let arms = every.map(|every| {
            let mut arm = synthetic::arm(&format!("sync.every={every}"), &[], false);
            if let Workload::Job(job) = &mut arm.workload {
                (job.read_percent, job.sync.every) = (60.0, every);
            }
            arm
        });
        let plan = ArmsPlan {
            arms: arms.to_vec(),
            repeats: 6,
            duration_ns: 10 * SECOND_NS,
            abort_age_ns: None,
            seed: 1,
            goal: Goal::of(Metric::Rate),
        };
        let mut jobs = Vec::new();
        let mut ladder = Ladder::new(plan.clone()).unwrap();
        let mut trials = synthetic::run(&mut ladder, u64::MAX / 2, SECOND_NS, |proposal| {
            let Workload::Job(job) = &arms[proposal.arm].workload else { unreachable!() };
            // Blocks differ; steps differ in their syncs alone.
            jobs.push(record(job, 10_000 + 100 * u64::from(proposal.block)));
            Outcome::Measured(by_arm(&jobs[jobs.len() - 1]))
        });
        trials.iter_mut().enumerate().for_each(|(place, trial)| trial.job = Some(place));
        (synthetic::experiment("ladder", &plan, plan.goal.clone(), trials), jobs)
    }

    fn rate(observation: &Observation) -> f64 {
        observation.outcome.measured().unwrap().get(&Metric::Rate).unwrap()
    }

    #[test]
    fn steps_that_sync_differently_are_counted_alike_also_in_old_logs() {
        let (mut old, jobs) = logged([1, 0]);
        let before = replay(&old).unwrap().finding();
        assert!(before.headline.contains("the rate rose with sync.every=0 (+150 %)"), "{}", before.headline);
        count_alike(&mut old, &jobs);
        assert_eq!(old.counted, Some(Counted::Operations));
        assert_eq!(rate(&old.trials[0].observation), 1_000.0);
        let finding = replay(&old).unwrap().finding();
        assert!(finding.headline.contains("none of 1 step changed the rate"), "{}", finding.headline);
        // Each write has its sync, or none.
        let [synced, free] = [0, 1].map(|arm| finding.arms[arm].values[&Metric::P95]);
        assert!(synced > 7e6 && free < 2e5, "{synced}, {free}");
        let again = old.trials.clone();
        count_alike(&mut old, &[]);
        assert_eq!(rate(&old.trials[5].observation), rate(&again[5].observation));
    }

    #[test]
    fn figures_of_one_workload_stay_as_an_old_log_has_them() {
        let (commits, operations) = (Counted::Commits, Counted::Operations);
        for (every, mode, counted, rates) in [
            (100, "fdatasync", commits, 4.0),
            (100, "sync-file-range", commits, 4.0),
            (0, "fdatasync", operations, 1_000.0),
        ] {
            let (mut old, jobs) = logged([every, every]);
            for arm in [0, 1] {
                old.plan["arms"][arm]["workload"]["job"]["sync"]["mode"] = mode.into();
            }
            let before = replay(&old).unwrap().finding();
            count_alike(&mut old, &jobs);
            assert_eq!((old.counted, rate(&old.trials[0].observation)), (Some(counted), rates));
            assert_eq!(replay(&old).unwrap().finding(), before);
        }
    }

    #[test]
    fn commits_are_counted_where_every_write_of_every_arm_is_one() {
        let arm = |every: u64, open_sync: OpenSync, read_percent: f64| {
            let mut arm = synthetic::arm("arm", &[], false);
            if let Workload::Job(job) = &mut arm.workload {
                (job.sync.every, job.open_sync, job.read_percent) = (every, open_sync, read_percent);
            }
            arm
        };
        let by_range = |open_sync: OpenSync| {
            let mut arm = arm(1, open_sync, 0.0);
            if let Workload::Job(job) = &mut arm.workload {
                job.sync.mode = SyncMode::SyncFileRange;
            }
            arm
        };
        let (plain, dsync) = (OpenSync::None, OpenSync::Dsync);
        for (arms, counted) in [
            (vec![arm(1, plain, 0.0), arm(1, plain, 60.0)], Counted::Commits),
            (vec![arm(1, plain, 0.0), arm(0, dsync, 0.0), arm(10, dsync, 0.0)], Counted::Commits),
            (vec![arm(1, plain, 0.0), arm(10, plain, 0.0)], Counted::Operations),
            (vec![arm(1, plain, 0.0), arm(0, plain, 0.0)], Counted::Operations),
            (vec![arm(1, plain, 0.0), arm(1, plain, 100.0)], Counted::Operations),
            (vec![arm(100, plain, 0.0); 2], Counted::Operations),
            (vec![arm(1, plain, 0.0), by_range(dsync)], Counted::Commits),
            (vec![arm(1, plain, 0.0), by_range(plain)], Counted::Operations),
            (Vec::new(), Counted::Operations),
        ] {
            assert_eq!(Counted::of(&arms), counted, "{arms:?}");
        }
    }
}
