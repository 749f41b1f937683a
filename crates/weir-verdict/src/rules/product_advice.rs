//! What a product's own settings gain on this storage, from its steps: methods of syncing, modes of journals, the price of
//! the doublewrite file.

use crate::doctor::{Advice, Evidence, Finding, Measurement, Statement, Topic};
use crate::products::innodb::{DOUBLEWRITE, DOUBLEWRITE_PAGES};
use crate::products::postgres::{METHODS, TWO_BLOCKS};
use crate::products::sqlite::MODES;
use crate::products::{Product, title_of};
use crate::view::{View, percent, rate_of, times};
use weir_core::units::per_second;

/// A difference is one if it is at least a tenth and the intervals are apart.
const WORTH_SAYING: f64 = 1.10;

/// What a comparison of the product's own ways shows, where it has several.
pub fn findings(view: &View, product: Product) -> Vec<Finding> {
    let found = match product {
        Product::Postgres => methods(view),
        Product::Mysql | Product::Mariadb => doublewrite(view),
        Product::Sqlite => modes(view),
        Product::Etcd | Product::Kafka | Product::Rocksdb => None,
    };
    found.into_iter().collect()
}

/// The setting that a comparison speaks for.
pub fn advise(view: &View, product: Product) -> Option<Advice> {
    match product {
        Product::Postgres => method(view),
        Product::Sqlite => wal_mode(view),
        _ => None,
    }
}

fn of<'a>(view: &View<'a>, id: &str) -> Option<&'a Measurement> {
    view.measurements.iter().find(|m| m.id == id && m.latency.n > 0 && m.error.is_none())
}

/// How many times as fast one is as another; absent where that may be noise.
fn gain(better: &Measurement, than: &Measurement) -> Option<f64> {
    let gain = better.iops.mean / than.iops.mean.max(f64::MIN_POSITIVE);
    (gain >= WORTH_SAYING && better.iops.low > than.iops.high).then_some(gain)
}

/// The fastest method if it beats the default with one block and does not lose with two.
fn better_method(view: &View) -> Option<(&'static str, f64)> {
    let default = of(view, METHODS[0].1)?;
    let others = METHODS[1..].iter().filter_map(|(name, id)| Some((*name, of(view, id)?)));
    let (name, best) = others.max_by(|a, b| a.1.iops.mean.total_cmp(&b.1.iops.mean))?;
    let gain_by = gain(best, default)?;
    let [by_sync, by_opening] = TWO_BLOCKS.map(|id| of(view, id));
    let loses =
        name.starts_with("open") && by_sync.zip(by_opening).is_some_and(|(s, o)| gain(s, o).is_some());
    (!loses).then_some((name, gain_by))
}

/// As pg_test_fsync compares them.
fn methods(view: &View) -> Option<Finding> {
    let measured: Vec<(&str, &Measurement)> =
        METHODS.iter().filter_map(|(name, id)| Some((*name, of(view, id)?))).collect();
    let rate = |(name, m): &(&str, &Measurement)| format!("{name} {}/s", per_second(m.iops.mean));
    let rates: Vec<String> = measured.iter().map(rate).collect();
    let better = better_method(view);
    let (summary, conclusion) = match better {
        Some((name, by)) => {
            (format!("wal_sync_method {name} is {} fdatasync", times(by)), format!("{name} is the fastest"))
        }
        None => (
            "no wal_sync_method beats fdatasync".to_string(),
            "keep fdatasync, the default; none beats it beyond the noise with one block and with two"
                .to_string(),
        ),
    };
    let text = format!("One block of 8 KiB through the page cache: {}: {conclusion}.", rates.join(", "));
    let mut statements = vec![Statement::new(text, measured.iter().map(|(_, m)| rate_of(m)).collect())];
    statements.extend(in_words(view, "Two blocks in a commit", &TWO_BLOCKS));
    let direct = ["pg-direct-datasync", "pg-direct-sync"];
    statements.extend(in_words(
        view,
        "With O_DIRECT, as pg_test_fsync opens its file and the server does not",
        &direct,
    ));
    (measured.len() > 1).then_some(Finding { topic: Topic::SyncPath, grade: None, summary, statements })
}

fn in_words(view: &View, lead: &str, ids: &[&'static str]) -> Option<Statement> {
    let measured: Vec<&Measurement> = ids.iter().filter_map(|id| of(view, id)).collect();
    let name = |m: &Measurement| title_of(&m.id).and_then(|t| t.rsplit(", ").next()).unwrap_or("");
    let rates: Vec<String> =
        measured.iter().map(|m| format!("{} {}/s", name(m), per_second(m.iops.mean))).collect();
    let text = format!("{lead}: {}.", rates.join(", "));
    (!measured.is_empty()).then(|| Statement::new(text, measured.iter().map(|m| rate_of(m)).collect()))
}

fn method(view: &View) -> Option<Advice> {
    let (name, by) = better_method(view)?;
    let evidence = METHODS.iter().filter_map(|(_, id)| of(view, id)).map(rate_of).collect();
    let reload = "SELECT pg_reload_conf()";
    Some(Advice {
        topic: Topic::SyncPath,
        knob: "wal_sync_method".into(),
        current: "fdatasync, Linux's default".into(),
        proposed: name.into(),
        measured: false,
        effect: Statement::new(format!("Alone, it is {} as fast.", times(by)), evidence),
        cost: Statement::new("Not measured with a server: run `weir db run` before and after.", Vec::new()),
        durability: "none: each of these methods makes the log durable".into(),
        reversibility: "at once, by a reload".into(),
        command: format!("ALTER SYSTEM SET wal_sync_method = '{name}'; {reload}"),
        undo: format!("ALTER SYSTEM RESET wal_sync_method; {reload}"),
    })
}

/// What protection against torn pages costs.
fn doublewrite(view: &View) -> Option<Finding> {
    let [without, with] = DOUBLEWRITE.map(|id| of(view, id));
    let (without, with) = (without?, with?);
    let share = with.iops.mean / without.iops.mean;
    let pages = |m: &Measurement| format!("{} pages/s", per_second(m.iops.mean * DOUBLEWRITE_PAGES));
    let text = format!(
        "Pages of 16 KiB reach their place at {} by way of the doublewrite file and at {} without it: {} of the rate \
         remains. Leave innodb_doublewrite on: it repairs a page that a power failure has torn, unless device and file \
         system promise writes of 16 KiB that are never torn, which software cannot try.",
        pages(with),
        pages(without),
        percent(share)
    );
    let summary = format!("doublewrite keeps {} of the page rate", percent(share));
    let statements = vec![Statement::new(text, vec![rate_of(without), rate_of(with)])];
    Some(Finding { topic: Topic::Sequential, grade: None, summary, statements })
}

fn both_modes<'a>(view: &View<'a>) -> Option<(&'a Measurement, &'a Measurement, Vec<Evidence>)> {
    let [wal, rollback] = MODES.map(|id| of(view, id));
    let (wal, rollback) = (wal?, rollback?);
    Some((wal, rollback, vec![rate_of(wal), rate_of(rollback)]))
}

fn modes(view: &View) -> Option<Finding> {
    let (wal, rollback, evidence) = both_modes(view)?;
    let ratio = wal.iops.mean / rollback.iops.mean.max(f64::MIN_POSITIVE);
    let text = format!(
        "One connection commits {} times a second in WAL mode and {} with a rollback journal (synchronous=FULL).",
        per_second(wal.iops.mean),
        per_second(rollback.iops.mean)
    );
    let summary = format!("WAL mode is {} a rollback journal", times(ratio));
    Some(Finding {
        topic: Topic::SyncPath,
        grade: None,
        summary,
        statements: vec![Statement::new(text, evidence)],
    })
}

fn wal_mode(view: &View) -> Option<Advice> {
    let (wal, rollback, evidence) = both_modes(view)?;
    let by = gain(wal, rollback)?;
    Some(Advice {
        topic: Topic::SyncPath,
        knob: "journal_mode".into(),
        current: "delete, the default".into(),
        proposed: "wal".into(),
        measured: false,
        effect: Statement::new(format!("Commits are {} as fast.", times(by)), evidence),
        cost: Statement::new("All processes must be on one machine, and checkpoints take time.", Vec::new()),
        durability: "none with synchronous=FULL; with NORMAL the last commits may be lost".into(),
        reversibility: "at once, when no other connection is open".into(),
        command: "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL".into(),
        undo: "PRAGMA journal_mode=DELETE".into(),
    })
}
