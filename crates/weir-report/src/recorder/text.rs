//! The verdict for people: what was not as usual first, then what is normal.

use std::collections::BTreeMap;

use serde_json::Value;
use weir_archive::series::User;
use weir_archive::stall::goes_on;
use weir_archive::tables::Event;
use weir_archive::verdict::{Cause, Change, NormalUser, Seen, Trouble, Verdict, length};
use weir_core::units::{Nanos, megabytes_per_second, per_second, significant};

use crate::layout::{labelled, labelled_at, table};
use crate::table::listing;

/// Of what comes less often a second, the time from one to the next is said.
const RARE_PER_S: f64 = 0.1;

/// The verdict. `time` says a Unix time, ms, in words; `unread` are sentences on files that could not be read.
pub fn verdict(verdict: &Verdict, unread: &[String], time: &dyn Fn(i64) -> String) -> String {
    let mut out = String::new();
    let (since, until) = (time(verdict.since_ms), time(verdict.until_ms));
    labelled_at(&mut out, "", 0, &format!("weir recorder: {since} to {until}. {}", headline(verdict)));
    for trouble in &verdict.troubles {
        out.push('\n');
        out.push_str(&of_trouble(trouble, time));
    }
    if verdict.untold > 0 {
        out.push('\n');
        let untold = match verdict.untold {
            1 => "A lesser one is not told.".to_string(),
            n => format!("{n} lesser ones are not told."),
        };
        labelled_at(&mut out, "", 0, &untold);
    }
    out.push('\n');
    normal(&mut out, verdict);
    if !verdict.slowest.is_empty() {
        out.push('\n');
        let rows = verdict.slowest.iter().map(|event| slow(event, time));
        let head = ["slowest syncs", "took", "process", "device", "waited for"].map(String::from).to_vec();
        let rows: Vec<Vec<String>> = [head].into_iter().chain(rows).collect();
        out.push_str(&listing(&rows, &[false, true, false, false, false]));
    }
    for stall in &verdict.stalls {
        labelled(&mut out, "stood still", &format!("{}: {}", time(stall.ts_ms), of_event(stall)));
    }
    for snapshot in &verdict.snapshots {
        labelled(&mut out, "snapshot", &format!("{}: {}", time(snapshot.ts_ms), of_event(snapshot)));
    }
    let not_seen: Vec<&String> = verdict.blind.iter().chain(unread).collect();
    if !not_seen.is_empty() {
        out.push('\n');
        not_seen.iter().for_each(|sentence| labelled(&mut out, "not seen", sentence));
    }
    out
}

pub(super) fn headline(verdict: &Verdict) -> String {
    match (verdict.intervals, verdict.troubles.len() + verdict.untold) {
        (0, _) => "Nothing was recorded then.".to_string(),
        (_, 0) => nothing_unusual(verdict),
        (_, 1) => "One thing was not as usual.".to_string(),
        (_, n) => format!("{n} things were not as usual."),
    }
}

fn nothing_unusual(verdict: &Verdict) -> String {
    let recorded_ms = verdict.until_ms - verdict.since_ms - verdict.unrecorded_ms;
    match (&verdict.unseen, &verdict.unseen_device) {
        (Some(unit), _) => format!("No syncs of {unit} were recorded then."),
        (_, Some(device)) => format!("No I/O of {device} was recorded then."),
        _ if verdict.unrecorded_ms > 0 => {
            format!("Everything was as usual for the {} that were recorded.", length(recorded_ms))
        }
        _ => "Everything was as usual.".to_string(),
    }
}

fn of_trouble(trouble: &Trouble, time: &dyn Fn(i64) -> String) -> String {
    let mut out = String::new();
    let length = length(trouble.end_ms - trouble.begin_ms);
    labelled_at(
        &mut out,
        "",
        0,
        &format!("{}, {length}: {}", time(trouble.begin_ms), cause(&trouble.cause, trouble.user.as_ref())),
    );
    if let (Some(user), Some(seen)) = (&trouble.user, &trouble.syncs) {
        labelled(&mut out, "syncs", &format!("{user}: {}", of_syncs(seen)));
    }
    labelled(&mut out, "evidence", &evidence(&trouble.cause));
    for change in changes(&trouble.changes, time) {
        labelled(&mut out, "changed", &change);
    }
    out
}

/// What changed, a sentence each. A knob that somebody turns again and again has one for all times.
pub(super) fn changes(all: &[Change], time: &dyn Fn(i64) -> String) -> Vec<String> {
    let knob = |change: &Change| match change {
        Change::Event(event) if event.kind == "knob" => Some(detail_word(event, "knob")),
        _ => None,
    };
    let mut turned: BTreeMap<String, Vec<&Event>> = BTreeMap::new();
    for change in all {
        if let (Change::Event(event), Some(knob)) = (change, knob(change)) {
            turned.entry(knob).or_default().push(event);
        }
    }
    let sentence = |change: &Change| match knob(change) {
        None => Some(of_change(change, time)),
        // Where it was first turned.
        Some(knob) => turned.remove(&knob).map(|events| of_knob(&knob, &events, time)),
    };
    all.iter().filter_map(sentence).collect()
}

fn of_knob(knob: &str, events: &[&Event], time: &dyn Fn(i64) -> String) -> String {
    let (Some(first), Some(last)) = (events.first(), events.last()) else { return String::new() };
    if events.len() == 1 {
        return format!("{}: {}", time(first.ts_ms), of_event(first));
    }
    format!(
        "{} to {}: {knob} went from {} to {} in {} changes.",
        time(first.ts_ms),
        time(last.ts_ms),
        detail_word(first, "before"),
        detail_word(last, "after"),
        events.len()
    )
}

fn detail_word(event: &Event, key: &str) -> String {
    let detail: Value = serde_json::from_str(&event.detail).unwrap_or_default();
    detail[key].as_str().unwrap_or_default().to_string()
}

/// `user` is the one whose syncs it was.
pub(super) fn cause(cause: &Cause, user: Option<&User>) -> String {
    match cause {
        Cause::Flood { culprit, share, .. } if Some(culprit) == user => {
            format!(
                "a flood. Syncs spent {} of their time behind I/O of other processes of {culprit}.",
                percent(*share)
            )
        }
        Cause::Flood { culprit, share, .. } => {
            format!("a flood. Syncs spent {} of their time behind I/O of {culprit}.", percent(*share))
        }
        Cause::SlowDevice { device, bytes_per_s, normal_bytes_per_s, .. } => format!(
            "the device {device} was slow. It moved {} of what it normally does while busy.",
            percent(*bytes_per_s as f64 / (*normal_bytes_per_s).max(1) as f64)
        ),
        Cause::LateDevice { .. } => "the device took longer for each sync.".to_string(),
        Cause::Throttled { .. } => "syncs were throttled before the device.".to_string(),
        Cause::NotStorage { place, .. } => format!("not storage. Syncs waited for {}.", place_words(place)),
        Cause::FewerNotStorage { .. } => {
            "not storage. Commits were few and each sync was as fast as usual.".to_string()
        }
        Cause::FewerBusy { device, culprit: Some(culprit), share, .. } => format!(
            "commits were few while {device} was busy. Others' syncs spent {} of their time behind I/O of {culprit}.",
            percent(*share)
        ),
        Cause::FewerBusy { device, .. } => format!("commits were few while {device} was busier than usual."),
        Cause::Unclear => "nothing that was recorded says why.".to_string(),
    }
}

fn place_words(place: &str) -> &'static str {
    match place {
        "lock" => "a lock of the file or file system",
        "processor" => "a processor",
        _ => "the kernel's own work",
    }
}

pub(super) fn evidence(cause: &Cause) -> String {
    match cause {
        Cause::Flood { culprit, way, all_others, bytes_per_s, .. } => {
            let moved = match bytes_per_s {
                0 => "what it moved itself was not seen".to_string(),
                rate => format!("it moved {} on average", rate_words(*rate)),
            };
            let way = way.replace('_', " ");
            format!(
                "{} of the added time went behind others' I/O together; {culprit} came by {way}, and {moved}.",
                percent(*all_others)
            )
        }
        Cause::SlowDevice {
            bytes_per_s, normal_bytes_per_s, request_ns, normal_request_ns, share, ..
        } => {
            let of_syncs = share.map_or(String::new(), |share| {
                format!(" Storage took {} of the syncs' added time.", percent(share))
            });
            format!(
                "{} while busy, normally {}; a request took {}, normally {}.{of_syncs}",
                rate_words(*bytes_per_s),
                rate_words(*normal_bytes_per_s),
                time_of(*request_ns),
                time_of(*normal_request_ns)
            )
        }
        Cause::LateDevice { share } => {
            format!("the device or its cache flush took {} of the added time.", percent(*share))
        }
        Cause::Throttled { share } => format!(
            "{} of the added time passed before requests went to the device: a cgroup's limit, a full queue, or pauses of writers.",
            percent(*share)
        ),
        Cause::NotStorage { share, .. } => {
            format!("{} of the added time went there, and less than half to any device.", percent(*share))
        }
        Cause::FewerNotStorage { busiest_percent, normal_percent } => format!(
            "the busiest device was busy {busiest_percent} % of the time, normally {normal_percent} %. Commits waited for something else, such as a lock of the database, or there was nothing to commit."
        ),
        Cause::FewerBusy { device, busy_percent, normal_percent, .. } => format!(
            "{device} was busy {busy_percent} % of the time, normally {normal_percent} %, and no sync took longer than usual. Commits waited elsewhere, such as in a write that the kernel held."
        ),
        Cause::Unclear => "no part of the time stands out.".to_string(),
    }
}

pub(super) fn of_syncs(seen: &Seen) -> String {
    let p99 = seen.p99_ns.map_or("none returned".to_string(), |ns| format!("p99 {}", time_of(ns)));
    let longest = seen.max_ns.map_or(String::new(), |ns| format!("; the longest took {}", time_of(ns)));
    format!(
        "{}{}; {p99}, normally {}{longest}.",
        rate(seen.per_s),
        normal_rate(seen),
        time_of(seen.normal_p99_ns)
    )
}

/// `758/s`, and of rare things `one in 30.0 s`.
pub(super) fn rate(per_s: f64) -> String {
    if per_s > 0.0 && per_s < RARE_PER_S {
        format!("one in {}", Nanos((1e9 / per_s) as u64))
    } else {
        format!("{}/s", per_second(per_s))
    }
}

/// What is normal, where there is any. Of syncs that most intervals have none of, the average says more than the median.
fn normal_rate(seen: &Seen) -> String {
    if seen.normal_per_s > 0.0 {
        format!(", normally {}", rate(seen.normal_per_s))
    } else if seen.normal_mean_per_s > 0.0 {
        format!(", on average {}", rate(seen.normal_mean_per_s))
    } else {
        String::new()
    }
}

fn of_change(change: &Change, time: &dyn Fn(i64) -> String) -> String {
    match change {
        Change::Load { user, bytes_per_s, normal_bytes_per_s } => {
            let now = rate_words(*bytes_per_s);
            let before = match normal_bytes_per_s {
                0 => "nothing".to_string(),
                rate => rate_words(*rate),
            };
            format!("{user} began: it moved {now} in the first interval, normally {before}.")
        }
        Change::Event(event) => format!("{}: {}", time(event.ts_ms), of_event(event)),
    }
}

pub(super) fn of_event(event: &Event) -> String {
    let word = |key: &str| detail_word(event, key);
    match event.kind.as_str() {
        "knob" => format!("{} went from {} to {}.", word("knob"), word("before"), word("after")),
        "guard" => format!("the guard: {}.", word("did")),
        "clock" => "the clock was set, or the machine slept.".to_string(),
        "stall" => {
            let more = if goes_on(event) { " or longer" } else { "" };
            format!("{} completed nothing for {}{more}.", event.device, time_of(event.took_ns))
        }
        "snapshot" => format!("{} ({})", word("file"), word("trigger").replace('_', " ")),
        "start" => "the recorder started.".to_string(),
        other => format!("{other}."),
    }
}

pub(super) fn slow(event: &Event, time: &dyn Fn(i64) -> String) -> Vec<String> {
    let detail: Value = serde_json::from_str(&event.detail).unwrap_or_default();
    let share = |value: &Value| value["share"].as_f64().unwrap_or(0.0);
    let phases = detail["phases"].as_array().cloned().unwrap_or_default();
    let most = phases.iter().max_by(|a, b| share(a).total_cmp(&share(b)));
    let part = most.map_or(String::new(), |row| {
        format!("{} {}", row["phase"].as_str().unwrap_or_default().replace('_', " "), percent(share(row)))
    });
    let culprit = detail["culprits"].as_array().and_then(|list| list.first().cloned());
    let behind = culprit.map_or(String::new(), |culprit| {
        let name = culprit["process"]["comm"].as_str().unwrap_or_default();
        format!(", behind {name} {}", percent(share(&culprit)))
    });
    let who = format!("{}[{}]", event.comm, event.pid);
    vec![time(event.ts_ms), time_of(event.took_ns), who, event.device.clone(), part + &behind]
}

fn normal(out: &mut String, verdict: &Verdict) {
    let intervals = format!("Normal is the median of {} intervals.", verdict.normal_from);
    labelled(out, "normal", &intervals);
    let users: Vec<Vec<String>> = shown_users(verdict)
        .map(|user| vec![user.user.to_string(), user_rate(user), time_of(user.p50_ns), time_of(user.p99_ns)])
        .collect();
    if !users.is_empty() {
        let head = ["syncs of", "rate", "p50", "p99"].map(String::from).to_vec();
        table(out, &[vec![head], users].concat(), 1);
    }
    let devices: Vec<Vec<String>> = verdict
        .devices
        .iter()
        .filter(|device| device.per_s > 0.0)
        .map(|device| {
            vec![
                device.device.clone(),
                rate(device.per_s),
                time_of(device.request_ns),
                format!("{} %", device.busy_percent),
                rate_words(device.busy_bytes_per_s),
            ]
        })
        .collect();
    if !devices.is_empty() {
        let head = ["device", "requests", "mean", "busy", "while busy"].map(String::from).to_vec();
        table(out, &[vec![head], devices].concat(), 1);
    }
}

/// Those that sync in most intervals; where nobody does, those that do now and then.
pub(super) fn shown_users(verdict: &Verdict) -> impl Iterator<Item = &NormalUser> {
    let is_any = verdict.users.iter().any(|user| user.per_s > 0.0);
    verdict.users.iter().filter(move |user| if is_any { user.per_s > 0.0 } else { user.mean_per_s > 0.0 })
}

pub(super) fn user_rate(user: &NormalUser) -> String {
    if user.per_s > 0.0 { rate(user.per_s) } else { format!("on average {}", rate(user.mean_per_s)) }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

pub(super) fn time_of(ns: i64) -> String {
    Nanos(u64::try_from(ns).unwrap_or(0)).to_string()
}

/// Of less than a tenth of a megabyte, thousands of bytes.
pub(super) fn rate_words(bytes_per_s: i64) -> String {
    match bytes_per_s {
        1..100_000 => format!("{} KB/s", significant(bytes_per_s as f64 / 1e3)),
        rate => megabytes_per_second(rate as f64),
    }
}

#[cfg(test)]
mod tests {
    use weir_archive::stall::Stall;

    use super::*;

    fn trouble(cause: Cause) -> Trouble {
        let syncs = Seen {
            per_s: 5.0,
            normal_per_s: 100.0,
            p99_ns: Some(200_000_000),
            max_ns: Some(14_000_000_000),
            ..Seen::default()
        };
        Trouble {
            begin_ms: 1000,
            end_ms: 61_000,
            user: Some(User::of("mariadbd", "mariadb.service")),
            syncs: Some(syncs),
            cause,
            changes: vec![
                Change::Event(Event {
                    kind: "knob".into(),
                    detail: r#"{"knob":"vm.dirty_bytes","before":"0","after":"1"}"#.into(),
                    ..Event::default()
                }),
                Change::Load { user: User::named("cp"), bytes_per_s: 447_000_000, normal_bytes_per_s: 0 },
            ],
        }
    }

    #[test]
    fn every_cause_says_what_and_why_within_the_width() {
        let culprit = User::of("dd", "backup.service");
        let cases = [
            (
                Cause::Flood {
                    culprit,
                    way: "writeback".into(),
                    share: 0.63,
                    all_others: 0.7,
                    bytes_per_s: 90_000_000,
                },
                ["63 %", "it moved 90.0 MB/s on average"],
            ),
            (
                Cause::SlowDevice {
                    device: "sda".into(),
                    bytes_per_s: 8_000_000,
                    normal_bytes_per_s: 80_000_000,
                    request_ns: 9_000_000,
                    normal_request_ns: 900_000,
                    share: Some(0.9),
                },
                ["sda", "10 %"],
            ),
            (Cause::NotStorage { place: "lock".into(), share: 0.9 }, ["not storage", "lock"]),
            (
                Cause::FewerNotStorage { busiest_percent: 1, normal_percent: 3 },
                ["not storage", "as fast as usual"],
            ),
            (Cause::Throttled { share: 0.8 }, ["throttled", "80 %"]),
            (Cause::LateDevice { share: 0.8 }, ["longer", "80 %"]),
            (Cause::Unclear, ["says why", "stands out"]),
        ];
        let normal = NormalUser { user: User::named("mariadbd"), per_s: 100.0, ..NormalUser::default() };
        for (cause, words) in cases {
            let whole = Verdict {
                since_ms: 0,
                until_ms: 100_000,
                intervals: 10,
                normal_from: 60,
                users: vec![normal.clone()],
                devices: Vec::new(),
                troubles: vec![trouble(cause)],
                untold: 0,
                stalls: vec![Event {
                    kind: "stall".into(),
                    device: "sda".into(),
                    took_ns: 3_000_000_000,
                    ..Event::default()
                }],
                snapshots: vec![Event {
                    kind: "snapshot".into(),
                    detail: r#"{"file":"snapshots/a.json","trigger":"slow_sync"}"#.into(),
                    ..Event::default()
                }],
                slowest: vec![Event { kind: "slow_sync".into(), detail: "torn".into(), ..Event::default() }],
                unseen: None,
                unseen_device: None,
                unrecorded_ms: 0,
                blind: vec!["something".into()],
            };
            let text = verdict(&whole, &["a file".into()], &|ms| format!("T{ms}"));
            let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
            for word in words.iter().chain(&[
                "One thing",
                "vm.dirty_bytes went from 0 to 1",
                "p99 200 ms, normally 0 s; the longest took 14.0 s.",
                "cp began: it moved 447 MB/s in the first interval, normally nothing.",
                "not seen a file",
                "sda completed nothing for 3.00 s",
                "snapshots/a.json (slow sync)",
            ]) {
                assert!(flat.contains(word), "{word}: {text}");
            }
            assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
            assert!(json_of(&whole).contains("\"schema\": \"weir.recorder.verdict/1\""));
            let nothing = Verdict { troubles: Vec::new(), ..whole };
            assert_eq!(headline(&nothing), "Everything was as usual.");
            let partly = Verdict { unrecorded_ms: 40_000, ..nothing };
            assert_eq!(headline(&partly), "Everything was as usual for the 60.0 s that were recorded.");
            let unseen = Verdict { unseen_device: Some("sdz".into()), ..partly };
            assert_eq!(headline(&unseen), "No I/O of sdz was recorded then.");
            let unseen = Verdict { unseen: Some("mariadbx".into()), ..unseen };
            assert_eq!(headline(&unseen), "No syncs of mariadbx were recorded then.");
        }
    }

    #[test]
    fn a_rate_below_the_digits_that_are_printed_is_said_by_its_time() {
        let seen = |per_s, normal_per_s, normal_mean_per_s| Seen {
            per_s,
            normal_per_s,
            normal_mean_per_s,
            ..Seen::default()
        };
        for (seen, expected) in [
            (seen(5.0, 100.0, 90.0), "5.00/s, normally 100/s; none returned"),
            (seen(0.0, 0.017, 1.0), "0/s, normally one in 58.8 s; none returned"),
            (seen(0.2, 0.0, 1.0 / 30.0), "0.20/s, on average one in 30.0 s; none returned"),
            (seen(0.002, 0.0, 33.3), "one in 8.33 min, on average 33.3/s; none returned"),
            (seen(5.0, 0.0, 0.0), "5.00/s; none returned"),
        ] {
            assert!(of_syncs(&seen).starts_with(expected), "{} {expected}", of_syncs(&seen));
        }
        for (bytes_per_s, expected) in [(0, "0 MB/s"), (3_100, "3.10 KB/s"), (447_000_000, "447 MB/s")] {
            assert_eq!(rate_words(bytes_per_s), expected);
        }
    }

    #[test]
    fn a_knob_that_is_turned_again_and_again_has_one_sentence() {
        let turned = |ts_ms, knob: &str, before: &str, after: &str| {
            let detail = format!(r#"{{"knob":"{knob}","before":"{before}","after":"{after}"}}"#);
            Change::Event(Event { ts_ms, kind: "knob".into(), detail, ..Event::default() })
        };
        let clock = Change::Event(Event { ts_ms: 3, kind: "clock".into(), ..Event::default() });
        let all = [turned(1, "a", "0", "1"), turned(2, "b", "8", "9"), clock, turned(4, "a", "1", "0")];
        assert_eq!(
            changes(&all, &|ms| format!("T{ms}")),
            [
                "T1 to T4: a went from 0 to 0 in 2 changes.",
                "T2: b went from 8 to 9.",
                "T3: the clock was set, or the machine slept."
            ]
        );
    }

    #[test]
    fn processes_of_one_name_in_the_way_of_each_other_are_called_others() {
        let [one, other] = ["dd", "cp"].map(User::named);
        let of = |culprit: &User| Cause::Flood {
            culprit: culprit.clone(),
            way: "writeback".into(),
            share: 0.9,
            all_others: 0.9,
            bytes_per_s: 0,
        };
        let words = "a flood. Syncs spent 90 % of their time behind I/O of ";
        for (culprit, whose) in [(&one, "other processes of dd."), (&other, "cp.")] {
            assert_eq!(cause(&of(culprit), Some(&one)), format!("{words}{whose}"));
        }
    }

    /// Who asks for a unit that syncs now and then sees what is normal for it.
    #[test]
    fn users_that_sync_now_and_then_are_shown_where_there_are_no_others() {
        let user = |name: &str, per_s, mean_per_s| NormalUser {
            user: User::named(name),
            per_s,
            mean_per_s,
            ..NormalUser::default()
        };
        let of = |users: Vec<NormalUser>| {
            let mut out = String::new();
            normal(&mut out, &Verdict { users, ..Verdict::default() });
            out
        };
        let rare = user("rarely", 0.0, 1.0 / 16.0);
        assert!(of(vec![rare.clone()]).contains("rarely    on average one in 16.0 s  0 s  0 s"));
        assert!(!of(vec![rare, user("often", 5.0, 5.0)]).contains("rarely"));
    }

    #[test]
    fn a_device_that_still_hangs_is_said_to() {
        let begun =
            Stall::Begun { device: "sda".into(), since_ms: 0, for_ns: 1_000_000_000, in_flight: 1 }.event();
        assert_eq!(of_event(&begun), "sda completed nothing for 1.00 s or longer.");
    }

    fn json_of(whole: &Verdict) -> String {
        crate::recorder::json::verdict(whole, &[]).unwrap()
    }
}
