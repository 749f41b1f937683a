//! Stages of the device's requests, arm beside arm.

use weir_blocktrace::{Cell, Class, Stage, StageTable};
use weir_experiment::Study;

/// Fewest requests that give a 99th percentile.
const P99_MIN: u64 = 300;

/// The stages that are distinguished, and what each is.
const SHOWN: [(Stage, &str); 4] = [
    (Stage::G2DAll, "queue (G2D)"),
    (Stage::I2D, "scheduler (I2D)"),
    (Stage::D2C, "device (D2C)"),
    (Stage::G2C, "request (G2C)"),
];

/// One stage of all arms asked for.
pub struct Row {
    /// What it is, with its short name.
    pub name: String,
    /// The arms, in the order asked for.
    pub sides: Vec<Side>,
}

/// One stage of one arm.
pub struct Side {
    /// Requests counted.
    pub count: u64,
    /// Mean.
    pub mean_ns: f64,
    /// 99th percentile, with samples enough.
    pub p99_ns: Option<u64>,
}

/// Rows for some arms; none unless all of them were watched. Writes that a process waits for, where there were any:
/// the flood's write-back is none of these.
pub fn rows(study: &Study<'_>, arms: &[usize]) -> Vec<Row> {
    let tables: Vec<StageTable> = arms.iter().filter_map(|arm| of_arm(study, *arm)).collect();
    if tables.len() < arms.len() {
        return Vec::new();
    }
    let of =
        |class: Class| -> Vec<Cell> { tables.iter().map(|t| t.sum(|key| key.classes.has(class))).collect() };
    let waited_for = of(Class::SyncWrite);
    let cells = if waited_for.iter().any(|cell| cell.ios > 0) { waited_for } else { of(Class::All) };
    let row = |(stage, name): (Stage, &str)| {
        let seen = cells.iter().any(|cell| !cell.stage(stage).is_empty());
        seen.then(|| Row {
            name: name.to_string(),
            sides: cells.iter().map(|cell| side(cell, stage)).collect(),
        })
    };
    SHOWN.into_iter().filter_map(row).collect()
}

fn side(cell: &Cell, stage: Stage) -> Side {
    let distribution = cell.stage(stage);
    let count = distribution.count();
    Side {
        count,
        mean_ns: distribution.mean_ns(),
        p99_ns: (count >= P99_MIN).then(|| distribution.quantile(0.99)),
    }
}

/// The sum over an arm's trials; `None` if none of them was watched.
fn of_arm(study: &Study<'_>, arm: usize) -> Option<StageTable> {
    let trials = study.experiment.trials.iter().filter(|t| t.proposal().arm == arm);
    trials.filter_map(|t| t.stages.as_ref()).fold(None, |sum, table| {
        let mut sum: StageTable = sum.unwrap_or_default();
        sum.merge(table);
        Some(sum)
    })
}
