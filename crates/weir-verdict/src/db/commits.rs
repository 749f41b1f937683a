//! Whether a commit survives a crash, and what it costs in syncs.

use super::{Judged, View, is_memory, span};
use crate::doctor::{Grade, Statement};
use crate::view::fact;
use weir_core::units::per_second;
use weir_oltp::durability;
use weir_oltp::vitals::is_on;

pub(super) fn judge(view: &View) -> Option<Judged> {
    let mut lost = durability::lost(&view.vitals.variables);
    let off = |name: &str| view.variable(name).and_then(is_on) == Some(false);
    let mut torn = Vec::new();
    if off("innodb_doublewrite") {
        torn.push(
            "innodb_doublewrite = OFF: a page half written in a crash cannot be repaired, unless the \
            storage writes 16 KiB atomically",
        );
    }
    if off("full_page_writes") {
        torn.push(
            "full_page_writes = off: a page half written in a crash cannot be repaired, unless the \
            storage writes 8 KiB atomically",
        );
    }
    let is_fatal = !torn.is_empty() || off("fsync") || durability::is_nosync(&view.vitals.variables);
    lost.extend(torn.into_iter().map(str::to_string));
    let names = [
        "innodb_flush_log_at_trx_commit",
        "innodb_flush_method",
        "sync_binlog",
        "innodb_doublewrite",
        "fsync",
        "synchronous_commit",
    ];
    let evidence =
        || names.iter().filter_map(|name| Some(fact(name, view.variable(name)?))).collect::<Vec<_>>();
    if evidence().is_empty() {
        return None;
    }
    let sentence = |text: String| Statement::new(format!("{text}."), Vec::new());
    let (grade, mut statements) = match (lost.is_empty(), is_fatal) {
        (true, _) if is_memory(view) => {
            let text = "The data are in memory: whatever the settings promise, commits end with the machine.";
            (Grade::Poor, vec![Statement::new(text, evidence())])
        }
        (true, _) if never_syncs(view) => {
            let text = "Its settings promise that a commit is on the device when it is answered, but it \
                wrote log and made no \
                        sync of it: check the place of its log, and whether it takes that for persistent memory.";
            (Grade::Poor, vec![Statement::new(text, evidence())])
        }
        (true, _) => {
            let text = "By its settings a commit is on the device when it is answered; `weir db run` checks \
                whether its syncs reach the device.";
            (Grade::Good, vec![Statement::new(text, evidence())])
        }
        (false, fatal) => {
            let mut statements: Vec<Statement> = lost.into_iter().map(sentence).collect();
            statements[0].evidence = evidence();
            (if fatal { Grade::Poor } else { Grade::Fair }, statements)
        }
    };
    statements.extend(syncs(view));
    Some(Judged::new("Durability", Some(grade), statements))
}

/// Log that so many transactions leave at least.
const LOG_OF_COMMITS: u64 = 64 << 10;

/// Whether it wrote log for commits and counts not one sync, where it would count them.
fn never_syncs(view: &View) -> bool {
    let logged = view.counters.log_bytes.is_some_and(|bytes| bytes >= LOG_OF_COMMITS);
    let counts = !durability::writes_durably(&view.vitals.variables);
    view.is_loaded() && logged && counts && view.counters.syncs == Some(0)
}

/// Several commits in one sync is what makes many sessions fast.
fn syncs(view: &View) -> Option<Statement> {
    let syncs = view.counters.syncs.filter(|_| view.is_loaded())?;
    let commits = view.vitals.commits().filter(|commits| commits.most > 0)?;
    let each = |transactions: u64| syncs as f64 / transactions.max(1) as f64;
    let (least, most) = (each(commits.most), each(commits.least));
    let of = span(least, most, &[format!("{least:.2}"), format!("{most:.2}")]);
    let rate = per_second(view.rate(Some(syncs)));
    let text = format!(
        "{of} syncs a transaction ({rate} syncs/s) by the server's own count; the kernel's were not watched."
    );
    let mut statement = Statement::new(text, Vec::new());
    if commits.least != commits.most {
        statement.text +=
            " The server does not count which writing statements were transactions of their own.";
    }
    Some(statement)
}
