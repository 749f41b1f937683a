//! `weir fleet show slow`, `latency` and so on: the tables are asked, and the answer is judged and said.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::json;
use weir_cli::failure::usage;
use weir_core::printable;
use weir_core::units::{Nanos, significant};
use weir_report::html;
use weir_store::layout::minute;
use weir_store::questions::{Parameters, Question};
use weir_store::verdict::{self, Change, Drifted, Figure, Latency, Near, Slow, Tail};

use crate::ask::{Asker, seconds};
use crate::cli::{Asking, Period};
use crate::page::{self, PAGE};
use crate::report::Listing;
use crate::run::{json, print};
use crate::store::Store;

/// Asks, and prints the answer. 1 where it names somebody.
pub fn run(question: Question, at: Option<&str>, asking: &Asking) -> anyhow::Result<u8> {
    asking.html.iter().try_for_each(|path| page::check(path, PAGE))?;
    let results = Store::new(asking.engine.folder.into.as_deref())?;
    let mut asker = Asker::open(results.root(), &asking.engine)?;
    let mut with = asker.parameters(&asking.period, question)?;
    if let Some(at) = at {
        divide(&mut with, at, &asking.period)?;
    }
    if asking.sql {
        print(&question.sql(&with))?;
        return Ok(0);
    }
    let mut answer = answer(question, &mut asker, &with)?;
    let not_judged = not_judged(question, &mut asker, &with)?;
    if let Some(who) = not_judged.as_ref().and_then(|not| counted(not.devices, not.hosts)) {
        answer.sentence.push_str(&format!("; {who} not judged: model not known"));
    }
    if let Some(who) = not_judged.as_ref().and_then(|not| counted(not.few_devices, not.few_hosts)) {
        answer.sentence.push_str(&format!("; {who} not judged: fewer than {} of their kind", with.peers));
    }
    if let Some(path) = &asking.html {
        let drawn = html::fleet(&drawn(question, &mut asker, &with, &answer, results.root())?);
        page::write(path, &drawn, PAGE)?;
    }
    print(&if asking.json {
        let mut whole = json!({
            "schema": format!("weir.fleet.{}/1", question.name()),
            "from_s": with.from_s, "until_s": with.until_s, "rows": answer.rows,
        });
        if let Some(not_judged) = not_judged {
            whole["not_judged"] = json!(not_judged);
        }
        json(&whole)?
    } else {
        let sentence = printable::line(&answer.sentence);
        let head = format!("{} to {}: {sentence}\n", minute(with.from_s), minute(with.until_s));
        printable::lines(&(head + &answer.shown.text())).into_owned()
    })?;
    Ok(u8::from(answer.named))
}

/// Divides a time into before and after; where its begin was not named, into parts of the same length.
fn divide(with: &mut Parameters, at: &str, period: &Period) -> anyhow::Result<()> {
    with.at_s = seconds(at)?;
    if period.since.is_none() && period.last.is_none() {
        // Rows are of whole hours.
        let from_s = 2 * with.at_s - with.until_s;
        with.from_s = from_s - from_s.rem_euclid(3_600);
    }
    if with.from_s < with.at_s && with.at_s < with.until_s {
        return Ok(());
    }
    let (from, until) = (minute(with.from_s), minute(with.until_s));
    Err(usage(
        format!("--at {at} is not within the time that is asked"),
        &if with.at_s < with.until_s {
            format!("give a time after {from}, or an earlier --since")
        } else {
            format!("give a time before {until}, or a later --until")
        },
    ))
}

/// How many are compared with none: those of an unknown model, and those with too few peers.
#[derive(Debug, Serialize, Deserialize)]
struct NotJudged {
    devices: usize,
    hosts: usize,
    few_devices: usize,
    few_hosts: usize,
}

/// Those of a question that compares devices with others of their model. Only one of them compares hosts likewise.
fn not_judged(question: Question, asker: &mut Asker, with: &Parameters) -> anyhow::Result<Option<NotJudged>> {
    if !matches!(question, Question::Slow | Question::Drift | Question::Capacity) {
        return Ok(None);
    }
    let all = asker.rows::<NotJudged>(Question::Unjudged, with)?.into_iter().next();
    let of_devices = |all: NotJudged| NotJudged { hosts: 0, few_devices: 0, few_hosts: 0, ..all };
    Ok(if question == Question::Slow { all } else { all.map(of_devices) })
}

/// The page of an answer: what it rests on is asked for, too.
fn drawn(
    question: Question,
    asker: &mut Asker,
    with: &Parameters,
    answer: &Said,
    folder: &Path,
) -> anyhow::Result<html::FleetAnswer> {
    let over_time = matches!(question, Question::Slow | Question::Latency);
    Ok(html::FleetAnswer {
        question: question.name().to_string(),
        from_s: with.from_s,
        until_s: with.until_s,
        slot_s: with.slot_s(),
        peers: with.peers,
        sentence: answer.sentence.clone(),
        listing: answer.shown.on_a_page(),
        slow: answer.slow.clone(),
        windows: if over_time { asker.rows(Question::Windows, with)? } else { Vec::new() },
        loads: if answer.slow.is_empty() { Vec::new() } else { asker.rows(Question::Loads, with)? },
        folder: folder.display().to_string(),
        weir_version: env!("CARGO_PKG_VERSION").to_string(),
    })
}

struct Said {
    sentence: String,
    shown: Listing,
    rows: serde_json::Value,
    named: bool,
    slow: Vec<Slow>,
}

fn said(sentence: String, shown: Listing, rows: &impl Serialize, named: bool) -> anyhow::Result<Said> {
    Ok(Said { sentence, shown, rows: serde_json::to_value(rows)?, named, slow: Vec::new() })
}

fn answer(question: Question, asker: &mut Asker, with: &Parameters) -> anyhow::Result<Said> {
    match question {
        Question::Slow => {
            let rows = verdict::slow(&asker.rows::<Figure>(question, with)?);
            let hosts = rows.iter().filter(|row| row.device.is_empty()).count();
            let sentence = slow_sentence(rows.len() - hosts, hosts);
            let answer = said(sentence, slow(&rows), &rows, !rows.is_empty())?;
            Ok(Said { slow: rows, ..answer })
        }
        Question::Windows | Question::Loads | Question::Unjudged => Err(usage(
            format!("`{}` is a part of other answers", question.name()),
            "ask for `slow`, `latency`, `drift` or `capacity`",
        )),
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
            let mut sentence = format!("before and after {}", minute(with.at_s));
            if rows.is_empty() {
                sentence.push_str(": no device has a thousand requests at the same load before and after");
            }
            said(sentence, change(&rows, &judged), &rows, judged.contains(&"worse"))
        }
        Question::Capacity => {
            let rows = asker.rows::<Near>(question, with)?;
            // A device may be near with its reads and with its writes.
            let devices = |is_meant: &dyn Fn(&Near) -> bool| {
                let meant = rows.iter().filter(|row| is_meant(row));
                meant.map(|row| (&row.host, &row.device)).collect::<BTreeSet<_>>().len()
            };
            let (near, beyond) = (devices(&|_| true), devices(&Near::is_beyond));
            let sentence = format!(
                "{} within a factor of two of the load at which the model slows down, {beyond} of them beyond it",
                if near == 1 { "1 device is".to_string() } else { format!("{near} devices are") }
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

/// `2 devices and 1 host are slow at equal load`.
fn slow_sentence(devices: usize, hosts: usize) -> String {
    let who = counted(devices, hosts).unwrap_or_else(|| "no device".to_string());
    let verb = if devices + hosts > 1 { "are" } else { "is" };
    format!("{who} {verb} slow at equal load")
}

/// `2 devices and 1 host`; none of nobody.
fn counted(devices: usize, hosts: usize) -> Option<String> {
    let one_kind = |(count, one): (usize, &str)| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        n => Some(format!("{n} {one}s")),
    };
    let kinds: Vec<String> =
        [(devices, "device"), (hosts, "host")].into_iter().filter_map(one_kind).collect();
    (!kinds.is_empty()).then(|| kinds.join(" and "))
}

fn ns(ns: f64) -> String {
    Nanos(ns.max(0.0) as u64).to_string()
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { "-".to_string() } else { text.to_string() }
}

fn slow(all: &[Slow]) -> Listing {
    const HEAD: &[&str] = &[
        "host",
        "device",
        "cause",
        "figure",
        "its",
        "peers'",
        "bins",
        "peers",
        "model, firmware, scheduler",
    ];
    Listing::of(HEAD, &[false, false, false, false, true, true, true, true, false], all, |slow| {
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

fn latency(all: &[Latency]) -> Listing {
    const HEAD: &[&str] =
        &["class", "stage", "devices", "requests", "p50", "p99", "least", "most", "spread", "slowest"];
    Listing::of(HEAD, &[false, false, true, true, true, true, true, true, true, false], all, |row| {
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

fn drift(all: &[Drifted]) -> Listing {
    const HEAD: &[&str] = &["fact", "host", "device", "value", "usual", "have it", "peers"];
    Listing::of(HEAD, &[false, false, false, false, false, true, false], all, |row| {
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

fn change(all: &[Change], judged: &[&str]) -> Listing {
    const HEAD: &[&str] =
        &["class", "devices", "better", "worse", "after/before", "worst", "whose", "verdict"];
    let both: Vec<(&Change, &&str)> = all.iter().zip(judged).collect();
    Listing::of(HEAD, &[false, true, true, true, true, true, false, false], &both, |(row, judged)| {
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

fn capacity(all: &[Near]) -> Listing {
    const HEAD: &[&str] =
        &["host", "device", "class", "load/s", "knee/s", "p99 idle", "at its load", "model", "where"];
    Listing::of(HEAD, &[false, false, false, true, true, true, true, false, false], all, |row| {
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

fn tails(all: &[Tail]) -> Listing {
    const HEAD: &[&str] = &[
        "host",
        "device",
        "class",
        "load/s",
        "p99, first third",
        "second",
        "third",
        "growth",
        "usual",
        "what grew",
    ];
    Listing::of(HEAD, &[false, false, false, true, true, true, true, true, true, false], all, |row| {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_slow_and_two_are() {
        for (devices, hosts, who) in [
            (0, 0, "no device is"),
            (1, 0, "1 device is"),
            (0, 1, "1 host is"),
            (1, 1, "1 device and 1 host are"),
            (2, 3, "2 devices and 3 hosts are"),
        ] {
            assert_eq!(slow_sentence(devices, hosts), format!("{who} slow at equal load"));
        }
    }
}
