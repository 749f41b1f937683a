//! Buffered, direct, O_DSYNC: which way to a durable write is shortest here. A difference is one only if the
//! intervals are apart and it is at least a tenth.

use crate::units::{Bytes, per_second};
use crate::verdict::doctor::{Finding, Measurement, Statement, Topic};
use crate::verdict::notes::SyncPath;
use crate::verdict::view::{View, rate_of, times};

const WORTH_SAYING: f64 = 1.10;

/// Compares the ways with one thread, at the size where all were measured.
pub fn judge(view: &View) -> Option<Finding> {
    let of = |path| view.commits(path, Bytes(16 << 10), false);
    let buffered = of(SyncPath::Buffered)?;
    let mut ways = vec![(SyncPath::Buffered, buffered)];
    ways.extend(of(SyncPath::Direct).map(|m| (SyncPath::Direct, m)));
    ways.extend(of(SyncPath::DirectDsync).map(|m| (SyncPath::DirectDsync, m)));
    let best = *ways.iter().max_by(|a, b| a.1.iops.mean.total_cmp(&b.1.iops.mean))?;
    if ways.len() < 2 {
        return None;
    }
    let rates: Vec<String> =
        ways.iter().map(|(path, m)| format!("{} {}/s", path.title(), per_second(m.iops.mean))).collect();
    let (summary, conclusion) = conclude(best, buffered);
    let text = format!("One thread, 16 KiB: {}: {conclusion}.", rates.join(", "));
    let evidence = ways.iter().map(|(_, m)| rate_of(m)).collect();
    let statements = vec![Statement::new(text, evidence)];
    Some(Finding { topic: Topic::SyncPath, grade: None, summary, statements })
}

fn conclude(best: (SyncPath, &Measurement), buffered: &Measurement) -> (String, String) {
    let (path, m) = best;
    let gain = m.iops.mean / buffered.iops.mean.max(f64::MIN_POSITIVE);
    let apart = m.iops.low > buffered.iops.high;
    if path == SyncPath::Buffered || gain < WORTH_SAYING || !apart {
        return ("no way beats buffered writes".into(), "none beats buffered writes beyond the noise".into());
    }
    let setting = match path {
        SyncPath::DirectDsync => "such as wal_sync_method = open_datasync or innodb_flush_method = O_DIRECT",
        _ => "such as innodb_flush_method = O_DIRECT",
    };
    let conclusion =
        format!("{} is {} as fast as buffered ({setting}, worth a trial)", path.title(), times(gain));
    (format!("{} is {} buffered", path.title(), times(gain)), conclusion)
}
