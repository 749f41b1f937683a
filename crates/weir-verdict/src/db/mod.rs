//! From a watched server to findings and advice: what `weir db doctor` says. Nothing is measured here; the same
//! examination gives the same report again.

mod commits;
mod flushing;
mod log;
mod pool;
#[cfg(any(test, feature = "samples"))]
pub mod synthetic;
#[cfg(test)]
mod tests;
mod waits;

use serde::{Deserialize, Serialize};

use super::condition_rows;
use super::doctor::{Fact, Grade, Headline, NextStep, Statement};
use super::view::percent;
use weir_core::target::{Conditions, Load};
use weir_core::units::{Bytes, Nanos, megabytes_per_second, per_second};
use weir_oltp::Dialect;
use weir_oltp::limits::Counters;
use weir_oltp::vitals::{Commits, Vitals, bytes};

/// Value of [`Examination::schema`] and [`DbReport::schema`] that this version writes.
pub const SCHEMA: &str = "weir.db-doctor/1";

/// Fewer statements or transactions than this tell nothing of how a server does under its load.
const REQUESTS_MIN: u64 = 100;
/// Two figures that differ by less than this factor are printed as one.
const ALIKE: f64 = 1.05;

/// What was seen of a server, before anything is concluded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Examination {
    /// Always [`SCHEMA`] when written by this version.
    pub schema: String,
    /// `unix:/run/…` or `host:port`.
    pub place: String,
    /// The server.
    pub vitals: Vitals,
    /// Where its data lie; `None` where it does not say, or is on another machine.
    pub data_dir: Option<String>,
    /// Where its redo log or WAL lies; `None` where that is the file system of the data, or is not seen.
    #[serde(default)]
    pub log: Option<LogPlace>,
    /// What the data stand on, where they are on this machine.
    pub conditions: Option<Conditions>,
    /// What this machine did meanwhile.
    pub load: Option<Load>,
    /// Sentences: what could not be seen.
    pub unseen: Vec<String>,
    /// Why it ended early, if it did.
    pub ended_early: Option<String>,
}

/// A log on a file system of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPlace {
    /// Its folder.
    pub dir: String,
    /// Free bytes there.
    pub free_bytes: u64,
}

/// What it comes to.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DbReport {
    /// Always [`SCHEMA`] when written by this version.
    pub schema: String,
    /// The verdict in one sentence.
    pub headline: Headline,
    /// What was read and counted, in reading order.
    pub facts: Vec<Fact>,
    /// One topic each.
    pub findings: Vec<DbFinding>,
    /// What to change; empty: see `closing`.
    pub advice: Vec<DbAdvice>,
    /// What is to be done, in one sentence: that nothing is, or that nothing is advised.
    #[serde(default)]
    pub closing: String,
    /// What would tell more.
    pub next: Vec<NextStep>,
    /// What weakens it.
    pub caveats: Vec<String>,
    /// What it was derived from.
    pub examination: Examination,
}

/// One conclusion about a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DbFinding {
    /// `Durability`, `Log`, `Buffer pool`, `Flushing`, `Waits`, `Device`.
    pub topic: String,
    /// How good that is; absent where it is no matter of good or bad.
    pub grade: Option<Grade>,
    /// The sentences; the first carries the conclusion.
    pub statements: Vec<Statement>,
}

/// A variable to consider. weir never changes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DbAdvice {
    /// Its name.
    pub variable: String,
    /// Its value now.
    pub current: String,
    /// The value to try.
    pub proposed: String,
    /// What for, with the figures.
    pub why: String,
    /// What it costs.
    pub cost: String,
    /// Whether the server has to be started again.
    pub restart: bool,
    /// What to type, in the server's client or its configuration file.
    pub apply: String,
    /// What puts it back.
    pub undo: String,
}

/// What the rules look at.
struct View<'a> {
    exam: &'a Examination,
    vitals: &'a Vitals,
    counters: Counters,
}

impl<'a> View<'a> {
    fn of(exam: &'a Examination) -> View<'a> {
        View { exam, vitals: &exam.vitals, counters: exam.vitals.counters() }
    }

    fn variable(&self, name: &str) -> Option<&'a str> {
        self.vitals.variables.get(name).map(String::as_str)
    }

    fn size(&self, name: &str) -> Option<u64> {
        bytes(self.variable(name)?)
    }

    fn is_postgres(&self) -> bool {
        self.vitals.dialect == Dialect::Postgres
    }

    fn is_mariadb(&self) -> bool {
        weir_oltp::vitals::is_mariadb(&self.vitals.version)
    }

    fn rate(&self, count: Option<u64>) -> f64 {
        count.map_or(0.0, |count| self.vitals.per_second(count))
    }

    /// What clients asked for: statements of MySQL, transactions of PostgreSQL.
    fn requests(&self) -> u64 {
        self.vitals.requests().unwrap_or(0)
    }

    /// Whether it worked enough for its counters to mean something.
    fn is_loaded(&self) -> bool {
        self.requests() >= REQUESTS_MIN
    }

    /// Advice with the commands that the server's family takes; `value` as one would type it.
    fn advise(
        &self,
        variable: &str,
        value: &str,
        restart: bool,
        why: String,
        cost: &str,
    ) -> Option<DbAdvice> {
        let current = self.variable(variable)?.to_string();
        let (apply, undo) = match (self.is_postgres(), restart) {
            (true, true) => (
                format!("ALTER SYSTEM SET {variable} = '{value}';  then restart"),
                format!("ALTER SYSTEM RESET {variable};  then restart"),
            ),
            (true, false) => (
                format!("ALTER SYSTEM SET {variable} = '{value}'; SELECT pg_reload_conf();"),
                format!("ALTER SYSTEM RESET {variable}; SELECT pg_reload_conf();"),
            ),
            (false, true) => (
                format!("[mysqld] {variable} = {value}  in its option file, then restart"),
                format!("[mysqld] {variable} = {current}  likewise"),
            ),
            (false, false) => {
                (format!("SET GLOBAL {variable} = {value};"), format!("SET GLOBAL {variable} = {current};"))
            }
        };
        let (variable, proposed) = (variable.to_string(), value.to_string());
        Some(DbAdvice { variable, current, proposed, why, cost: cost.to_string(), restart, apply, undo })
    }
}

/// A conclusion with what it is drawn from.
struct Judged {
    finding: DbFinding,
    advice: Vec<DbAdvice>,
}

impl Judged {
    fn new(topic: &str, grade: Option<Grade>, statements: Vec<Statement>) -> Judged {
        Judged { finding: DbFinding { topic: topic.to_string(), grade, statements }, advice: Vec::new() }
    }

    fn with(mut self, advice: Option<DbAdvice>) -> Judged {
        self.advice.extend(advice);
        self
    }
}

/// Derives the report.
pub fn report(exam: Examination) -> DbReport {
    let view = View::of(&exam);
    let judged: Vec<Judged> = [
        commits::judge(&view),
        log::judge(&view),
        pool::judge(&view),
        flushing::judge(&view),
        waits::judge(&view),
    ]
    .into_iter()
    .flatten()
    .collect();
    let closing = closing(&judged);
    let headline = headline(&view, &judged, &closing);
    let facts = facts(&view);
    let next = next(&view);
    let caveats = caveats(&view);
    let (findings, advice): (Vec<DbFinding>, Vec<Vec<DbAdvice>>) =
        judged.into_iter().map(|judged| (judged.finding, judged.advice)).unzip();
    let advice = advice.into_iter().flatten().collect();
    DbReport {
        schema: SCHEMA.to_string(),
        headline,
        facts,
        findings,
        advice,
        closing: sentence_case(&closing),
        next,
        caveats,
        examination: exam,
    }
}

/// Worst of the grades given.
fn worst(judged: &[Judged]) -> Option<Grade> {
    judged.iter().filter_map(|j| j.finding.grade.filter(|grade| *grade != Grade::Unknown)).max()
}

/// What is to be done: the headline and the list of advice both say this.
fn closing(judged: &[Judged]) -> String {
    match (judged.iter().map(|j| j.advice.len()).sum::<usize>(), worst(judged)) {
        (0, Some(Grade::Good) | None) => "nothing to change".to_string(),
        (0, Some(_)) => "no variable to advise".to_string(),
        (1, _) => "one variable to consider".to_string(),
        (n, _) => format!("{n} variables to consider"),
    }
}

fn sentence_case(words: &str) -> String {
    let mut chars = words.chars();
    chars.next().map_or(String::new(), |first| format!("{}{}.", first.to_uppercase(), chars.as_str()))
}

fn headline(view: &View, judged: &[Judged], advice: &str) -> Headline {
    let worst = worst(judged);
    let of_worst = judged.iter().find(|j| j.finding.grade == worst && worst.is_some());
    let text = match (worst, of_worst.and_then(|j| j.finding.statements.first())) {
        (Some(Grade::Good), _) if view.is_loaded() => {
            format!("In order under the present load; {advice}.")
        }
        (Some(Grade::Good), _) => format!("Its settings are in order; {advice}."),
        (Some(_), Some(first)) => format!("{} In all, {advice}.", first.text),
        _ => format!("Too little could be seen for a verdict; {advice}."),
    };
    Headline { grade: worst.unwrap_or(Grade::Unknown), text }
}

fn facts(view: &View) -> Vec<Fact> {
    let row = |label: &str, value: String, source: &str| Fact {
        label: label.to_string(),
        value,
        source: source.to_string(),
    };
    let vitals = view.vitals;
    let counters = &view.counters;
    let mut rows = vec![row("server", format!("{} at {}", vitals.version, view.exam.place), "")];
    rows.extend(view.exam.data_dir.as_ref().map(|dir| row("data", dir.clone(), "datadir")));
    rows.extend(view.exam.log.as_ref().map(|log| row("log", log.dir.clone(), "log")));
    let statements = vitals.requests().filter(|_| !view.is_postgres());
    let rates = [
        (statements, "statements/s"),
        (counters.syncs, "syncs/s"),
        (counters.page_reads, "page reads/s"),
        (counters.page_writes, "page writes/s"),
    ];
    let rate = |count| per_second(vitals.per_second(count));
    let transactions = vitals.commits().map(|Commits { least, most }| {
        format!("{} transactions/s", span(least as f64, most as f64, &[rate(least), rate(most)]))
    });
    let others = rates.into_iter().filter_map(|(count, unit)| Some(format!("{} {unit}", rate(count?))));
    let mut load: Vec<String> = transactions.into_iter().chain(others).collect();
    load.extend(counters.log_bytes.map(|n| format!("log {}", megabytes_per_second(vitals.per_second(n)))));
    rows.push(row(
        "its load",
        format!("{}, over {}", load.join(", "), Nanos(vitals.elapsed_ns)),
        "its counters",
    ));
    let pool = vitals.pool_bytes().map(|pool| {
        let hits = vitals
            .hit_ratio()
            .map_or(String::new(), |hits| format!(", {} of page requests hit", percent(hits)));
        row("buffer pool", format!("{}{hits}", Bytes(pool)), "its counters")
    });
    rows.extend(pool);
    if let Some(conditions) = &view.exam.conditions {
        rows.extend(condition_rows::of_conditions(conditions));
    }
    rows.extend(device(view).map(|value| row("device load", value, "/proc/diskstats")));
    rows
}

/// Two figures as `A to B`, or one where they are alike.
fn span(least: f64, most: f64, words: &[String; 2]) -> String {
    if most <= least * ALIKE { words[1].clone() } else { format!("{} to {}", words[0], words[1]) }
}

fn device(view: &View) -> Option<String> {
    let load = view.exam.load.as_ref()?;
    let name = view.exam.conditions.as_ref()?.target.as_ref()?.device.as_ref()?;
    let device = load.devices.get(name)?;
    Some(format!(
        "{name}: {} reads/s of {:.2} ms, {} writes/s of {:.2} ms, {} flushes/s, busy {:.0} % of the time",
        per_second(device.reads_per_second),
        device.read_wait_ms,
        per_second(device.writes_per_second),
        device.write_wait_ms,
        per_second(device.flushes_per_second),
        device.util_percent,
    ))
}

/// Whether the data are in memory.
fn is_memory(view: &View) -> bool {
    let target = view.exam.conditions.as_ref().and_then(|conditions| conditions.target.as_ref());
    let kind = target.and_then(|target| target.file_system.as_ref()).map(|fs| fs.kind.as_str());
    matches!(kind, Some("tmpfs" | "ramfs"))
}

fn next(view: &View) -> Vec<NextStep> {
    let mut steps = Vec::new();
    if let Some(dir) =
        view.exam.data_dir.as_ref().filter(|_| view.exam.conditions.is_some() && !is_memory(view))
    {
        steps.push(NextStep {
            why: "Its storage bounds the cost of commits and reads.".to_string(),
            command: format!("weir doctor {}", crate::view::quoted(dir)),
            purpose: "examine the storage under its data".to_string(),
        });
    }
    if !view.is_postgres() && flushing::is_held_back(view) {
        steps.push(NextStep {
            why: "Flushing runs at the rate that innodb_io_capacity allows.".to_string(),
            command: "weir db io-capacity".to_string(),
            purpose: "find the value by measurement".to_string(),
        });
    }
    steps
}

fn caveats(view: &View) -> Vec<String> {
    let mut caveats = Vec::new();
    if !view.is_loaded() {
        caveats.push(format!(
            "clients asked for {} {} in {}: findings that depend on load are missing; repeat it while the \
             server works",
            view.requests(),
            if view.is_postgres() { "transactions" } else { "statements" },
            Nanos(view.vitals.elapsed_ns)
        ));
    }
    caveats.extend(view.exam.ended_early.clone());
    caveats.extend(view.exam.vitals.unseen.iter().map(|what| format!("not seen: {what}")));
    caveats.extend(view.exam.unseen.iter().map(|what| format!("not seen: {what}")));
    caveats
}
