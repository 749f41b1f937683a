//! Where a commit's time went: in the device's queue, in the device, in its flush, or before the block layer.

use std::collections::BTreeSet;

use super::doctor::{CommitStages, Finding, Measurement, Statement, Topic};
use super::notes::{DoctorNotes, StepKind, StepNote};
use super::view::{View, latency_of, mean_time, percent, threads};
use weir_blocktrace::{Cell, Class, Stage, StageTable};

/// Flushes per commit from which a flush counts as part of one; group commit shares them.
const FLUSHES_MIN: f64 = 0.02;

/// The commits whose stages were seen, in the order they were measured.
pub fn of_commits(notes: &DoctorNotes, measurements: &[Measurement]) -> Vec<CommitStages> {
    let steps = notes.steps.iter().zip(measurements);
    let commits = steps
        .filter(|(step, m)| matches!(step.kind, StepKind::Commit(_) | StepKind::Flood(_)) && m.latency.n > 0);
    commits.filter_map(|(step, m)| of_commit(m, step, step.stages.as_ref()?)).collect()
}

/// A commit waits for its writes one after the other, as far as it has several, and for a flush. Its writes are the
/// synchronous ones: write-back of a flood is not (REQ_SYNC is set where somebody waits). Copies of a write on several
/// disks are one that is waited for, so are the pages that RAID 5 makes of it side by side, and so is a flush, which every
/// disk gets.
fn of_commit(m: &Measurement, step: &StepNote, table: &StageTable) -> Option<CommitStages> {
    let of = |class: Class| table.sum(|key| key.classes.has(class));
    let (writes, flushes) = (of(Class::SyncWrite), of(Class::Flush));
    let flushed: BTreeSet<_> =
        table.cells().filter(|(key, _)| key.classes.has(Class::Flush)).map(|(key, _)| key.device).collect();
    let waited_for =
        (writes.ios as f64 / step.copies.unwrap_or(1.0)).min(step.writes_above.unwrap_or(f64::INFINITY));
    let writes_per_commit = waited_for / m.latency.n as f64;
    let flushes_per_commit = flushes.ios as f64 / flushed.len().max(1) as f64 / m.latency.n as f64;
    let mean = |cell: &Cell, stage: Stage| cell.stage(stage).mean_ns();
    if writes.stage(Stage::D2C).is_empty() {
        return None;
    }
    let times = writes_per_commit.max(1.0);
    let queue_ns = times * mean(&writes, Stage::G2DAll);
    let device_ns = times * mean(&writes, Stage::D2C);
    let flush_ns = if flushes_per_commit < FLUSHES_MIN { 0.0 } else { whole(&flushes) };
    let mean_ns = m.latency.mean_ns;
    Some(CommitStages {
        measurement: m.id.clone(),
        title: m.title.clone(),
        commits: m.latency.n,
        mean_ns,
        writes_per_commit,
        flushes_per_commit,
        queue_ns,
        device_ns,
        flush_ns,
        elsewhere_ns: (mean_ns - queue_ns - device_ns - flush_ns).max(0.0),
    })
}

/// A flush's whole time, the wait for others' included.
fn whole(flushes: &Cell) -> f64 {
    let stage = if flushes.stage(Stage::G2C).is_empty() { Stage::D2C } else { Stage::G2C };
    flushes.stage(stage).mean_ns()
}

/// Idle, and under the flood where there was one.
pub fn judge(view: &View) -> Option<Finding> {
    let all = of_commits(view.notes, view.measurements);
    let found = |id: &str| all.iter().find(|stages| stages.measurement == id);
    let effect = view.flood.and_then(|flood| flood.effects.first());
    let pairs = match effect {
        Some(effect) => {
            vec![("Idle", &effect.idle.measurement), ("Under the bulk writer", &effect.flood.measurement)]
        }
        None => vec![("Idle", &view.typical_commit()?.id)],
    };
    let limited = view.target().is_some_and(|target| !target.throttles.is_empty());
    let first = pairs.iter().find_map(|(_, id)| found(id))?;
    let [queue, device, flush, elsewhere] = first.shares().map(percent);
    let summary =
        format!("{queue} in the queue, {device} in the device, {flush} in its flush, {elsewhere} elsewhere");
    let statements: Vec<Statement> = pairs
        .into_iter()
        .filter_map(|(when, id)| {
            let m = view.measurements.iter().find(|m| m.id == *id)?;
            Some(statement(when, found(id)?, m, limited))
        })
        .collect();
    (!statements.is_empty()).then_some(Finding { topic: Topic::Stages, grade: None, summary, statements })
}

fn statement(when: &str, s: &CommitStages, m: &Measurement, limited: bool) -> Statement {
    // A cgroup holds I/O back before it enters the queue.
    let outside = if limited { "the cgroup's limit, " } else { "" };
    let [queue, device, flush, elsewhere] = s.shares().map(percent);
    let text = format!(
        "{when}, a commit of {} takes {} on average: {queue} in the device's queue, {device} in the device, {flush} in its flush, and {elsewhere} outside of the block layer ({outside}page cache, file system, throttled writers, processors).",
        threads(m.threads),
        mean_time(s.mean_ns),
    );
    Statement::new(text, vec![latency_of(m, "mean", s.mean_ns.round() as u64)])
}

#[cfg(test)]
mod tests {
    use crate::doctor::Topic;
    use crate::from_record;
    use crate::synthetic::{throttled_and_flooded, with_stages};
    use weir_blocktrace::{Class, StageTable};

    #[test]
    fn a_commits_time_is_divided_and_a_floods_writes_are_not_its_own() {
        let unseen = from_record(&throttled_and_flooded().record(Vec::new())).unwrap();
        assert!(unseen.commit_stages.is_empty());
        let report = from_record(&with_stages()).unwrap();
        let [stages] = &report.commit_stages[..] else { panic!("{:?}", report.commit_stages) };
        let shares = stages.shares().map(|share| (share * 100.0).round());
        assert_eq!(shares, [20.0, 30.0, 10.0, 40.0], "{stages:?}");
        let finding = report.findings.iter().find(|f| f.topic == Topic::Stages).unwrap();
        assert!(finding.summary.contains("30 % in the device, 10 % in its flush"), "{}", finding.summary);
        // The page has it as a heading over the first sentence, which says more.
        assert!(!finding.statements[0].text.contains(&finding.summary), "{}", finding.summary);
        assert!(finding.statements[0].text.contains("40 % outside of the block layer"), "{finding:?}");
    }

    #[test]
    fn what_a_mirror_writes_twice_is_waited_for_once() {
        let single = with_stages();
        let mut mirrored = single.clone();
        let mut steps = mirrored.extra["steps"].as_array_mut().unwrap().iter_mut();
        let step = steps.find(|step| !step["stages"].is_null()).unwrap();
        let one: StageTable = serde_json::from_value(step["stages"].clone()).unwrap();
        let mut both = one.clone();
        for (key, cell) in one.cells() {
            let mut other = *key;
            other.device.minor += 1;
            *both.cell_mut(other) = cell.clone();
        }
        step["stages"] = serde_json::to_value(&both).unwrap();
        step["copies"] = 2.0.into();
        let [one, two] = [single, mirrored].map(|record| from_record(&record).unwrap().commit_stages);
        assert_eq!(one, two);
    }

    #[test]
    fn pages_of_one_write_side_by_side_are_waited_for_once() {
        let with_pieces = |pieces: u64, above: Option<u64>| {
            let mut record = with_stages();
            let mut steps = record.extra["steps"].as_array_mut().unwrap().iter_mut();
            let step = steps.find(|step| !step["stages"].is_null()).unwrap();
            let one: StageTable = serde_json::from_value(step["stages"].clone()).unwrap();
            let mut all = StageTable::default();
            (0..pieces).for_each(|_| all.merge(&one));
            let ios = one.sum(|key| key.classes.has(Class::SyncWrite)).ios;
            step["stages"] = serde_json::to_value(&all).unwrap();
            step["writes_above"] = above.map(|each| each * ios).into();
            let [stages] = &from_record(&record).unwrap().commit_stages[..] else { panic!() };
            (stages.writes_per_commit, stages.queue_ns, stages.device_ns)
        };
        let one = with_pieces(1, None);
        assert_eq!(with_pieces(4, Some(1)), one);
        // A flood's writes pass the device too: then it tells nothing.
        assert_eq!(with_pieces(1, Some(50)), one);
        assert!(with_pieces(4, None).0 > 3.0 * one.0);
    }
}
