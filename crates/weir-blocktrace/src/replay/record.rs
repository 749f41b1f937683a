//! What a replay keeps beside its job: the recording's side of every comparison.

use serde::{Deserialize, Serialize};
use weir_core::stats::quantile::needed;
use weir_core::workload::replay::Fitted;

use super::collect::{From, LeftOut};
use crate::class::Class;
use crate::stage::Stage;
use crate::table::StageTable;

/// Value of [`ReplayRecord::schema`] that this version writes.
pub const SCHEMA: &str = "weir.replay/1";
/// The kind of a run that played a recording.
pub const KIND: &str = "replay";

/// Classes that are compared, in the order of reports.
const CLASSES: [Class; 4] = [Class::Read, Class::Write, Class::SyncWrite, Class::Flush];
/// Stages that are compared: the device's part, and all of it.
const STAGES: [Stage; 2] = [Stage::D2C, Stage::Q2C];

/// A replay.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReplayRecord {
    /// Always [`SCHEMA`] when written by this version.
    pub schema: String,
    /// The recording, as it was named.
    pub recording: String,
    /// Its device.
    pub device: String,
    /// Which of its events were played.
    pub from: From,
    /// Mean number of I/Os between Q and C in the recording.
    pub depth_mean: f64,
    /// The most.
    pub depth_max: u64,
    /// What was not played.
    pub left_out: LeftOut,
    /// What became of the rest.
    pub fitted: Fitted,
    /// Stages of the recorded device in the recording.
    pub recorded: StageTable,
    /// Stages of the target's device while the recording was played, others' I/O included; absent where they could not
    /// be seen.
    pub replayed: Option<StageTable>,
    /// Why not.
    pub unseen: Option<String>,
    /// What reading the recording noticed.
    pub notes: Vec<String>,
}

/// A stage of one class, in the recording and in the replay.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StageRow {
    /// The class.
    pub class: Class,
    /// The stage.
    #[serde(serialize_with = "crate::diff::key_of_stage")]
    pub stage: Stage,
    /// In the recording; absent where it has none.
    pub recorded: Option<Figures>,
    /// In the replay, likewise.
    pub replayed: Option<Figures>,
}

/// A distribution's figures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figures {
    /// I/Os.
    pub count: u64,
    /// Mean, ns.
    pub mean_ns: f64,
    /// Median, ns.
    pub p50_ns: u64,
    /// 99th percentile, ns; absent with fewer than 300 I/Os.
    pub p99_ns: Option<u64>,
}

impl ReplayRecord {
    /// D2C and Q2C by class; rows without any I/O in the recording are left out.
    pub fn stages(&self) -> Vec<StageRow> {
        let row = |class: Class, stage: Stage| StageRow {
            class,
            stage,
            recorded: figures(&self.recorded, class, stage),
            replayed: self.replayed.as_ref().and_then(|table| figures(table, class, stage)),
        };
        let rows = CLASSES.into_iter().flat_map(|class| STAGES.map(|stage| row(class, stage)));
        rows.filter(|row| row.recorded.is_some()).collect()
    }
}

fn figures(table: &StageTable, class: Class, stage: Stage) -> Option<Figures> {
    let cell = table.sum(|key| key.classes.has(class));
    let distribution = cell.stage(stage);
    let [p50_ns, p99_ns] = distribution.quantiles([0.5, 0.99]);
    let count = distribution.count();
    (count > 0).then(|| Figures {
        count,
        mean_ns: distribution.mean_ns(),
        p50_ns,
        p99_ns: (count >= needed(0.99)).then_some(p99_ns),
    })
}
