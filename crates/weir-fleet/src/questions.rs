//! `weir fleet show slow`, `latency` and so on: the tables are asked, and the answer is judged and said.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};
use weir_cli::failure::usage;
use weir_core::printable;
use weir_core::units::{Nanos, grouped, significant};
use weir_report::html;
use weir_report::text::labelled_at;
use weir_store::layout::minute;
use weir_store::questions::{Parameters, Question};
use weir_store::verdict::{
    self, Change, Drifted, Figure, Latency, Near, NotCompared, Slow, Subject, Tail, Why,
};

use crate::ask::{Asker, seconds};
use crate::cli::{Asking, Period};
use crate::page::{self, PAGE};
use crate::remarks::{self, NAMES_ON_A_PAGE, NAMES_SHOWN, Remark, counted};
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
    let answer = answer(question, &mut asker, &with)?;
    if let Some(path) = &asking.html {
        let drawn = html::fleet(&drawn(question, &mut asker, &with, &answer, results.root())?);
        page::write(path, &drawn, PAGE)?;
    }
    print(&if asking.json {
        let mut whole = json!({
            "schema": format!("weir.fleet.{}/1", question.name()),
            "from_s": with.from_s, "until_s": with.until_s, "rows": answer.rows,
        });
        for (name, value) in answer.beside {
            whole[name] = value;
        }
        json(&whole)?
    } else {
        let head = format!("{} to {}: {}", minute(with.from_s), minute(with.until_s), answer.sentence);
        let mut text = String::new();
        labelled_at(&mut text, "", 0, &head);
        text.push_str(&answer.shown.text());
        answer.remarks.iter().for_each(|remark| labelled_at(&mut text, "", 0, &remark.words(NAMES_SHOWN)));
        printable::lines(&text).into_owned()
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
        remarks: answer.remarks.iter().map(|remark| remark.words(NAMES_ON_A_PAGE)).collect(),
        slow: answer.slow.clone(),
        windows: if over_time { asker.rows(Question::Windows, with)? } else { Vec::new() },
        loads: if answer.slow.is_empty() { Vec::new() } else { asker.rows(Question::Loads, with)? },
        folder: folder.display().to_string(),
        weir_version: env!("CARGO_PKG_VERSION").to_string(),
    })
}

#[derive(Default)]
struct Said {
    sentence: String,
    shown: Listing,
    rows: Value,
    named: bool,
    slow: Vec<Slow>,
    /// Below the table.
    remarks: Vec<Remark>,
    /// Beside the rows, for programs.
    beside: Vec<(&'static str, Value)>,
}

fn said(sentence: String, shown: Listing, rows: &impl Serialize, named: bool) -> anyhow::Result<Said> {
    Ok(Said { sentence, shown, rows: serde_json::to_value(rows)?, named, ..Said::default() })
}

fn answer(question: Question, asker: &mut Asker, with: &Parameters) -> anyhow::Result<Said> {
    match question {
        Question::Slow => answer_slow(asker, with),
        Question::Windows | Question::Loads | Question::Peers => Err(usage(
            format!("`{}` is a part of other answers", question.name()),
            "ask for `slow`, `latency`, `drift` or `capacity`",
        )),
        Question::Latency => {
            let rows = asker.rows::<Latency>(question, with)?;
            let mut sentence = "latency by class and stage".to_string();
            if rows.is_empty() {
                sentence.push_str(": no device has a thousand requests of a class");
            }
            said(sentence, latency(&rows), &rows, false)
        }
        Question::Drift => answer_drift(asker, with),
        Question::Change => {
            let rows = asker.rows::<Change>(question, with)?;
            let judged: Vec<&str> = rows.iter().map(verdict::change).collect();
            let mut sentence = format!("before and after {}", minute(with.at_s));
            if rows.is_empty() {
                sentence.push_str(": no device has a thousand requests at the same load before and after");
            }
            said(sentence, change(&rows, &judged), &rows, judged.contains(&"worse"))
        }
        Question::Capacity => answer_capacity(asker, with),
        Question::Tails => {
            let all = asker.rows::<Tail>(question, with)?;
            let rows: Vec<&Tail> = all.iter().filter(|tail| tail.has_grown()).collect();
            let sentence = match (rows.len(), all.len()) {
                (_, 0) => {
                    "no device has a thousand requests at the same load in each third of the time".to_string()
                }
                (1, of) => format!("1 tail of {of} has grown since the first third"),
                (n, of) => format!("{n} tails of {of} have grown since the first third"),
            };
            said(sentence, tails(&rows), &rows, !rows.is_empty())
        }
    }
}

fn answer_slow(asker: &mut Asker, with: &Parameters) -> anyhow::Result<Said> {
    let figures = asker.rows::<Figure>(Question::Slow, with)?;
    let subjects = asker.rows::<Subject>(Question::Peers, with)?;
    let rows = verdict::slow(&figures);
    let not_judged = verdict::not_compared(&subjects, &figures, with.peers);
    let all = remarks::count(subjects.iter().map(|one| one.device.as_str()));
    let not = remarks::count(not_judged.iter().map(|one| one.device.as_str()));
    let judged = [all[0] - not[0], all[1] - not[1]];
    let [devices, hosts] = remarks::count(rows.iter().map(|row| row.device.as_str()));
    let sentence = slow_sentence(devices, hosts, judged);
    let answer = said(sentence, slow(&rows), &rows, !rows.is_empty())?;
    Ok(Said {
        slow: rows,
        remarks: remarks::not_judged(&not_judged, with),
        beside: vec![
            ("judged", json!({ "devices": judged[0], "hosts": judged[1] })),
            ("not_judged", json!(not_judged)),
        ],
        ..answer
    })
}

/// Devices of which no facts say what they are.
fn not_known(subjects: &[Subject]) -> Vec<NotCompared> {
    let devices = subjects.iter().filter(|one| one.is_device() && one.is_known == 0);
    devices.map(|one| NotCompared::of(one, Why::ModelNotKnown)).collect()
}

fn answer_drift(asker: &mut Asker, with: &Parameters) -> anyhow::Result<Said> {
    let mut rows = asker.rows::<Drifted>(Question::Drift, with)?;
    let sums = rows.pop().filter(|row| row.name.is_empty());
    let (compared, all) = sums.map_or((0, 0), |row| (row.usual_n, row.total));
    let not_judged = not_known(&asker.rows::<Subject>(Question::Peers, with)?);
    let sentence = drift_sentence(rows.len(), compared, all - compared, with.peers);
    let answer = said(sentence, drift(&rows), &rows, !rows.is_empty())?;
    let beside = vec![
        ("facts", json!({ "compared": compared, "not_compared": all - compared })),
        ("not_judged", json!(not_judged)),
    ];
    Ok(Said { remarks: remarks::not_judged(&not_judged, with), beside, ..answer })
}

fn drift_sentence(differ: usize, compared: i64, not_compared: i64, peers: u32) -> String {
    if compared == 0 {
        return format!("no fact could be compared: fewer than {peers} of a kind have any");
    }
    let few = match not_compared {
        0 => String::new(),
        n => format!("; {n} not compared, which fewer than {peers} of a kind have"),
    };
    match differ {
        1 => format!("1 fact differs from that of most peers{few}"),
        n => format!("{n} facts differ from those of most peers{few}"),
    }
}

fn answer_capacity(asker: &mut Asker, with: &Parameters) -> anyhow::Result<Said> {
    let all = asker.rows::<Near>(Question::Capacity, with)?;
    let subjects = asker.rows::<Subject>(Question::Peers, with)?;
    // A device may be near with its reads and with its writes.
    let devices = |is_meant: &dyn Fn(&Near) -> bool| {
        let meant = all.iter().filter(|row| is_meant(row));
        meant.map(|row| (row.host.as_str(), row.device.as_str())).collect::<BTreeSet<_>>()
    };
    let (judged, near, beyond) = (devices(&|_| true), devices(&Near::is_near), devices(&Near::is_beyond));
    let with_knee = devices(&|row| row.knee.is_some());
    let mut not_judged = not_known(&subjects);
    let few = |one: &&Subject| {
        let is_judged = judged.contains(&(one.host.as_str(), one.device.as_str()));
        one.is_device() && one.is_known == 1 && !is_judged
    };
    not_judged.extend(subjects.iter().filter(few).map(|one| NotCompared::of(one, Why::FewRequests)));
    let alone: Vec<(&str, &str)> = devices(&|row| row.model.is_empty()).into_iter().collect();
    let steady: Vec<(&str, &str)> = judged.difference(&with_knee).copied().collect();
    let sentence = capacity_sentence(judged.len(), near.len(), beyond.len());
    let rows: Vec<&Near> = all.iter().filter(|row| row.is_near()).collect();
    let answer = said(sentence, capacity(&rows), &rows, !beyond.is_empty())?;
    let mut remarks = remarks::not_judged(&not_judged, with);
    remarks.extend(Remark::of("whose model slows down at no load that was seen", "not near", &steady));
    remarks.extend(Remark::of("of an unknown model, each by its own requests alone", "judged", &alone));
    let list = |devices: &[(&str, &str)]| -> Value {
        devices.iter().map(|(host, device)| json!({ "host": host, "device": device })).collect()
    };
    let beside = vec![
        ("judged", json!({ "devices": judged.len() })),
        ("not_judged", json!(not_judged)),
        ("slows_down_nowhere", list(&steady)),
        ("model_not_known", list(&alone)),
    ];
    Ok(Said { remarks, beside, ..answer })
}

fn capacity_sentence(judged: usize, near: usize, beyond: usize) -> String {
    if judged == 0 {
        return "no device could be judged".to_string();
    }
    let who = if near == 1 { "1 device is".to_string() } else { format!("{near} devices are") };
    format!(
        "{who} within a factor of two of the load at which the model slows down, {beyond} of them beyond it"
    )
}

/// `2 devices and 1 host are slow at equal load`, and of how many.
fn slow_sentence(devices: usize, hosts: usize, judged: [usize; 2]) -> String {
    let Some(of) = counted(judged[0], judged[1]) else {
        return "no device and no host could be compared with others".to_string();
    };
    let who = counted(devices, hosts).unwrap_or_else(|| "no device".to_string());
    let verb = if devices + hosts > 1 { "are" } else { "is" };
    format!("{who} {verb} slow at equal load, of {of}")
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
            grouped(row.requests.unsigned_abs()),
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

fn capacity(all: &[&Near]) -> Listing {
    const HEAD: &[&str] =
        &["host", "device", "class", "load/s", "knee/s", "p99 at low", "at its load", "model", "where"];
    Listing::of(HEAD, &[false, false, false, true, true, true, true, false, false], all, |row| {
        vec![
            row.host.clone(),
            row.device.clone(),
            row.class.clone(),
            row.load.to_string(),
            row.knee.map_or("-".to_string(), |knee| knee.to_string()),
            ns(row.base_ns as f64),
            ns(row.at_load_ns as f64),
            or_dash(&row.model),
            if row.is_beyond() { "beyond" } else { "near" }.to_string(),
        ]
    })
}

fn tails(all: &[&Tail]) -> Listing {
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
            let expected = format!("{who} slow at equal load, of 9 devices and 3 hosts");
            assert_eq!(slow_sentence(devices, hosts, [9, 3]), expected);
        }
        assert_eq!(slow_sentence(0, 0, [0, 0]), "no device and no host could be compared with others");
    }
}
