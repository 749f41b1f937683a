//! Buffered, direct, O_DSYNC: which way to a durable write is shortest here. A difference is one only if the
//! intervals are apart and it is at least a tenth.

use crate::doctor::{Advice, Finding, Measurement, Statement, Topic};
use crate::notes::SyncPath;
use crate::view::{View, quoted, rate_of, times};
use weir_core::units::{Bytes, per_second};

const WORTH_SAYING: f64 = 1.10;

/// The ways with one thread, at the size where all were measured.
struct Ways<'a> {
    all: Vec<(SyncPath, &'a Measurement)>,
    /// One that is faster than buffered writes, and how many times.
    better: Option<(SyncPath, f64)>,
}

fn ways<'a>(view: &View<'a>) -> Option<Ways<'a>> {
    let of = |path| view.commits(path, Bytes(16 << 10), false);
    let buffered = of(SyncPath::Buffered)?;
    let mut all = vec![(SyncPath::Buffered, buffered)];
    all.extend(of(SyncPath::Direct).map(|m| (SyncPath::Direct, m)));
    all.extend(of(SyncPath::DirectDsync).map(|m| (SyncPath::DirectDsync, m)));
    let (path, best) = *all.iter().max_by(|a, b| a.1.iops.mean.total_cmp(&b.1.iops.mean))?;
    let gain = best.iops.mean / buffered.iops.mean.max(f64::MIN_POSITIVE);
    let is_better = path != SyncPath::Buffered && gain >= WORTH_SAYING && best.iops.low > buffered.iops.high;
    (all.len() > 1).then_some(Ways { all, better: is_better.then_some((path, gain)) })
}

/// Compares them.
pub fn judge(view: &View) -> Option<Finding> {
    let ways = ways(view)?;
    let rate =
        |(path, m): &(SyncPath, &Measurement)| format!("{} {}/s", path.title(), per_second(m.iops.mean));
    let rates: Vec<String> = ways.all.iter().map(rate).collect();
    let (summary, conclusion) = match ways.better {
        None => ("no way beats buffered writes".into(), "none beats buffered writes beyond the noise".into()),
        Some((path, gain)) => (
            format!("{} is {} buffered", path.title(), times(gain)),
            format!("{} is {} as fast as buffered", path.title(), times(gain)),
        ),
    };
    let text = format!("One thread, 16 KiB: {}: {conclusion}.", rates.join(", "));
    let evidence = ways.all.iter().map(|(_, m)| rate_of(m)).collect();
    let statements = vec![Statement::new(text, evidence)];
    Some(Finding { topic: Topic::SyncPath, grade: None, summary, statements })
}

/// A way that is faster is a setting to try where a server can write its log so. That is MariaDB alone: O_DIRECT is
/// innodb_log_file_buffering = OFF (10.8.4, MDEV-28766), O_DSYNC innodb_log_file_write_through = ON (11.0, MDEV-30136).
/// PostgreSQL goes through the page cache unless a developers' option says otherwise (debug_io_direct), and MySQL always:
/// its innodb_flush_method = O_DIRECT is of data files.
pub fn advise(view: &View) -> Option<Advice> {
    let ways = ways(view)?;
    let (path, gain) = ways.better?;
    let (command, undo) = match path {
        SyncPath::DirectDsync => (
            "SET GLOBAL innodb_log_file_write_through = ON (MariaDB 11.0; innodb_log_file_buffering stays OFF)",
            "SET GLOBAL innodb_log_file_write_through = OFF",
        ),
        _ => (
            "SET GLOBAL innodb_log_file_buffering = OFF (MariaDB 10.8.4, where it is the default)",
            "SET GLOBAL innodb_log_file_buffering = ON",
        ),
    };
    let cost = format!(
        "Not measured with a database: run `weir db run` before and after. MySQL and PostgreSQL write their logs \
         through the page cache; `weir doctor --for postgres {}` compares the ways that PostgreSQL has.",
        quoted(&view.notes.path)
    );
    let evidence = ways.all.iter().map(|(_, m)| rate_of(m)).collect();
    Some(Advice {
        topic: Topic::SyncPath,
        knob: "how MariaDB writes its log".into(),
        current: SyncPath::Buffered.title().into(),
        proposed: path.title().into(),
        measured: false,
        effect: Statement::new(format!("Alone, it is {} as fast for one thread.", times(gain)), evidence),
        cost: Statement::new(cost, Vec::new()),
        durability: "none".into(),
        reversibility: "at once, and by a restart unless the server's configuration has it".into(),
        command: command.into(),
        undo: undo.into(),
    })
}
