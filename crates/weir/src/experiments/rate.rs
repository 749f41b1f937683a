//! The device's own write rate, measured for a moment where a grid of limits is to follow from it.

use std::path::Path;

use weir_core::result::record::Class;
use weir_core::units::{Bytes, Nanos, megabytes_per_second};
use weir_core::workload::Job;
use weir_core::workload::spec::{Access, BlockSize, EngineKind, SyncPolicy, Target};
use weir_io::runner::{Silent, Stop, run};

use super::trial::Lab;
use crate::devices::folder_of;
use crate::session;

const TIME: Nanos = Nanos::from_secs(2);
const BLOCK: Bytes = Bytes(1 << 20);
const SIZE: Bytes = Bytes(256 << 20);
const DEPTH: u32 = 8;

/// Bytes per second of sequential direct writes over existing blocks; on the job's files where there is one.
pub fn measure(lab: &mut Lab<'_>, job: Option<&Job>, place: &Path, stop: &Stop) -> anyhow::Result<f64> {
    let own = Target::Files {
        dir: folder_of(place).to_path_buf(),
        prefix: "rate".to_string(),
        count: 1,
        size: SIZE,
        keep: false,
    };
    let bulk = Job {
        name: "rate".to_string(),
        target: job.map_or(own, |job| job.target.clone()),
        access: Access::Sequential,
        read_percent: 0.0,
        block: BlockSize::Fixed(BLOCK),
        engine: EngineKind::Libaio,
        depth: DEPTH,
        direct: true,
        sync: SyncPolicy { at_end: false, ..SyncPolicy::default() },
        duration: TIME,
        ..Job::default()
    };
    let plan = lab.plan(bulk)?;
    lab.progress.say("measuring the device's write rate, from which the grid follows");
    let records = run(vec![plan], &session::run_options(), &mut Silent, stop)?;
    let written =
        records.first().and_then(|job| Some((job.classes.get(&Class::Write)?.bytes, job.elapsed_ns)));
    let (bytes, elapsed_ns) = written.unwrap_or((0, 1));
    let rate = bytes as f64 * 1e9 / elapsed_ns.max(1) as f64;
    lab.progress.say(&format!("the device writes {}", megabytes_per_second(rate)));
    Ok(rate)
}
