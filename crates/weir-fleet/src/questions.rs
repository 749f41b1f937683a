//! `weir fleet show slow`, `latency` and so on: the tables are asked, and the answer is judged and said.

use serde::Serialize;
use serde_json::json;
use weir_core::printable;
use weir_core::units::{Nanos, significant};
use weir_store::layout::date;
use weir_store::questions::{Parameters, Question};
use weir_store::verdict::{self, Change, Drifted, Figure, Latency, Near, Slow, Tail};

use crate::ask::{Asker, seconds};
use crate::cli::Asking;
use crate::report::table;
use crate::run::print;
use crate::store::Store;

/// Asks, and prints the answer. 1 where it names somebody.
pub fn run(question: Question, at: Option<&str>, asking: &Asking) -> anyhow::Result<u8> {
    let results = Store::new(asking.engine.folder.into.as_deref())?;
    let mut asker = Asker::open(results.root(), &asking.engine)?;
    let mut with = asker.parameters(&asking.period, question)?;
    if let Some(at) = at {
        with.at_s = seconds(at)?;
        if asking.period.since.is_none() && asking.period.last.is_none() {
            // As long before as after.
            with.from_s = with.from_s.max(2 * with.at_s - with.until_s);
        }
    }
    if asking.sql {
        print(&question.sql(&with))?;
        return Ok(0);
    }
    let answer = answer(question, &mut asker, &with)?;
    print(&if asking.json {
        let document = json!({
            "schema": format!("weir.fleet.{}/1", question.name()),
            "from_s": with.from_s, "until_s": with.until_s, "rows": answer.rows,
        });
        serde_json::to_string_pretty(&document)? + "\n"
    } else {
        let head = format!("{} to {}: {}\n", time(with.from_s), time(with.until_s), answer.sentence);
        printable::lines(&(head + &answer.text)).into_owned()
    })?;
    Ok(u8::from(answer.named))
}

struct Said {
    sentence: String,
    text: String,
    rows: serde_json::Value,
    named: bool,
}

fn said(sentence: String, text: String, rows: &impl Serialize, named: bool) -> anyhow::Result<Said> {
    Ok(Said { sentence, text, rows: serde_json::to_value(rows)?, named })
}

fn answer(question: Question, asker: &mut Asker, with: &Parameters) -> anyhow::Result<Said> {
    match question {
        Question::Slow => {
            let rows = verdict::slow(&asker.rows::<Figure>(question, with)?);
            let hosts = rows.iter().filter(|row| row.device.is_empty()).count();
            let sentence = format!("{} devices and {hosts} hosts are slow at equal load", rows.len() - hosts);
            said(sentence, slow(&rows), &rows, !rows.is_empty())
        }
        Question::Latency => {
            let rows = asker.rows::<Latency>(question, with)?;
            said("latency by class and stage".to_string(), latency(&rows), &rows, false)
        }
        Question::Drift => {
            let rows = asker.rows::<Drifted>(question, with)?;
            let sentence = format!("{} facts differ from those of most peers", rows.len());
            said(sentence, drift(&rows), &rows, !rows.is_empty())
        }
        Question::Change => {
            let rows = asker.rows::<Change>(question, with)?;
            let judged: Vec<&str> = rows.iter().map(verdict::change).collect();
            let sentence = format!("before and after {}", time(with.at_s));
            said(sentence, change(&rows, &judged), &rows, judged.contains(&"worse"))
        }
        Question::Capacity => {
            let rows = asker.rows::<Near>(question, with)?;
            let beyond = rows.iter().filter(|row| row.is_beyond()).count();
            let sentence = format!(
                "{} devices are within a factor of two of the load at which their model slows down, {beyond} beyond it",
                rows.len()
            );
            said(sentence, capacity(&rows), &rows, beyond > 0)
        }
        Question::Tails => {
            let rows = asker.rows::<Tail>(question, with)?;
            let sentence = format!("{} tails have grown since the first third", rows.len());
            said(sentence, tails(&rows), &rows, !rows.is_empty())
        }
    }
}

/// `2026-11-25 14:00`, UTC.
fn time(at_s: i64) -> String {
    format!("{} {:02}:{:02}", date(at_s), at_s.rem_euclid(86_400) / 3_600, at_s.rem_euclid(3_600) / 60)
}

fn ns(ns: f64) -> String {
    Nanos(ns.max(0.0) as u64).to_string()
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { "-".to_string() } else { text.to_string() }
}

/// A table, or nothing where there is no row.
fn rows<T>(head: &[&str], right: &[bool], all: &[T], row: impl Fn(&T) -> Vec<String>) -> String {
    if all.is_empty() { String::new() } else { table(head, right, &all.iter().map(row).collect::<Vec<_>>()) }
}

fn slow(all: &[Slow]) -> String {
    let head = ["host", "device", "cause", "figure", "its", "peers'", "bins", "peers", ""];
    rows(&head, &[false, false, false, false, true, true, true, true, false], all, |slow| {
        let figure = &slow.figure;
        let quantile = match figure.permille {
            500 => " p50",
            990 => " p99",
            _ => "",
        };
        vec![
            slow.host.clone(),
            or_dash(&slow.device),
            slow.cause.words().to_string(),
            format!("{}{quantile}", figure.what),
            ns(figure.own_ns),
            ns(figure.usual_ns),
            format!("{} of {}", figure.slow_bins, figure.bins),
            slow.peers_n.to_string(),
            slow.peers.clone(),
        ]
    })
}

fn latency(all: &[Latency]) -> String {
    let head = ["class", "stage", "devices", "requests", "p50", "p99", "least", "most", "spread", "slowest"];
    rows(&head, &[false, false, true, true, true, true, true, true, true, false], all, |row| {
        vec![
            row.class.clone(),
            row.stage.clone(),
            row.devices.to_string(),
            row.requests.to_string(),
            ns(row.p50_ns),
            ns(row.p99_ns),
            ns(row.p99_least_ns as f64),
            ns(row.p99_most_ns as f64),
            format!("{}×", significant(row.spread())),
            format!("{} {}", row.slowest_host, row.slowest_device).trim().to_string(),
        ]
    })
}

fn drift(all: &[Drifted]) -> String {
    let head = ["fact", "host", "device", "value", "usual", "", "peers"];
    rows(&head, &[false, false, false, false, false, true, false], all, |row| {
        vec![
            row.name.clone(),
            row.host.clone(),
            or_dash(&row.device),
            row.value.clone(),
            row.usual.clone(),
            format!("{} of {}", row.usual_n, row.total),
            row.peers.clone(),
        ]
    })
}

fn change(all: &[Change], judged: &[&str]) -> String {
    let head = ["class", "devices", "better", "worse", "after/before", "worst", "", "verdict"];
    let both: Vec<(&Change, &&str)> = all.iter().zip(judged).collect();
    rows(&head, &[false, true, true, true, true, true, false, false], &both, |(row, judged)| {
        vec![
            row.what.clone(),
            row.devices.to_string(),
            row.better.to_string(),
            row.worse.to_string(),
            significant(row.ratio),
            significant(row.worst_ratio),
            format!("{} {}", row.worst_host, row.worst_device).trim().to_string(),
            judged.to_string(),
        ]
    })
}

fn capacity(all: &[Near]) -> String {
    let head = ["host", "device", "class", "load/s", "knee/s", "p99 idle", "at its load", "model", ""];
    rows(&head, &[false, false, false, true, true, true, true, false, false], all, |row| {
        vec![
            row.host.clone(),
            row.device.clone(),
            row.class.clone(),
            row.load.to_string(),
            row.knee.to_string(),
            ns(row.base_ns as f64),
            ns(row.at_load_ns as f64),
            row.model.clone(),
            if row.is_beyond() { "beyond" } else { "near" }.to_string(),
        ]
    })
}

fn tails(all: &[Tail]) -> String {
    let head =
        ["host", "device", "class", "load/s", "p99, first third", "second", "third", "growth", "usual", ""];
    rows(&head, &[false, false, false, true, true, true, true, true, true, false], all, |row| {
        vec![
            row.host.clone(),
            row.device.clone(),
            row.what.clone(),
            row.load.to_string(),
            ns(row.first_ns as f64),
            ns(row.second_ns as f64),
            ns(row.third_ns as f64),
            format!("{}×", significant(row.growth)),
            format!("{}×", significant(row.usual)),
            if row.is_whole() { "median too" } else { "tail only" }.to_string(),
        ]
    })
}
