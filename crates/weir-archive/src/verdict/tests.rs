//! Nights made up: a flood, a device at a tenth of its rate, commits that wait for something else.

use super::*;
use crate::series::{DeviceSlot, Histogram};

const SPAN_MS: i64 = 10_000;
const MS: i64 = 1_000_000;

fn db() -> User {
    User::of("mariadbd", "mariadb.service")
}

fn dd() -> User {
    User::of("dd", "backup.service")
}

fn passed_on() -> (User, String) {
    (User::named("writes by kernel threads"), "writes_passed_on".to_string())
}

/// 100 commits a second of 1 ms each; the device serves 8 KiB a commit at 80 MB/s.
fn usual() -> Slot {
    let mut slot = Slot { span_ms: SPAN_MS, ..Slot::default() };
    syncs(
        &mut slot,
        1000,
        MS,
        &[("own_data", "device", 700_000), ("journal", "queue", 200_000), ("cpu", "", 100_000)],
    );
    device(&mut slot, 1000, 8_000_000, 100, 1000);
    slot.processes.insert(db(), (0, 8_000_000));
    slot
}

/// Replaces the syncs: each of `each_ns`, with parts of a sync.
fn syncs(slot: &mut Slot, count: i64, each_ns: i64, parts: &[(&str, &str, i64)]) {
    let waits = parts.iter().map(|(part, cause, ns)| ((part.to_string(), cause.to_string()), ns * count));
    let user = UserSlot {
        latency: Histogram::from([(each_ns, count)]),
        waits: waits.collect(),
        ..UserSlot::default()
    };
    slot.users.insert(db(), user);
}

fn device(slot: &mut Slot, writes: i64, bytes: i64, busy_ms: i64, write_ms: i64) {
    device_named(slot, "sda", [writes, bytes, busy_ms, write_ms]);
}

fn device_named(slot: &mut Slot, name: &str, [writes, bytes, busy_ms, write_ms]: [i64; 4]) {
    let counters = [("writes", writes), ("write_bytes", bytes), ("busy_ms", busy_ms), ("write_ms", write_ms)];
    let counters = counters.map(|(name, value)| (name.to_string(), value)).into();
    slot.devices.insert(name.to_string(), DeviceSlot { counters, ..DeviceSlot::default() });
}

/// Twenty minutes, of which those of the places are changed.
fn night(changed: std::ops::Range<usize>, change: impl Fn(&mut Slot)) -> Series {
    let mut series = Series::default();
    for at in 0..120 {
        let mut slot = usual();
        if changed.contains(&at) {
            change(&mut slot);
        }
        series.slots.insert(at as i64 * SPAN_MS, slot);
    }
    series
}

/// The end of such a night.
const END_MS: i64 = 120 * SPAN_MS;

fn whole(series: &Series) -> Verdict {
    judge(series, 0, END_MS)
}

fn judged(series: &Series) -> Vec<Trouble> {
    whole(series).troubles
}

fn only(series: &Series) -> Trouble {
    let troubles = judged(series);
    assert_eq!(troubles.len(), 1, "{troubles:#?}");
    troubles.into_iter().next().unwrap()
}

fn flooded(slot: &mut Slot) {
    syncs(slot, 50, 200 * MS, &[("own_data", "others", 150 * MS), ("journal", "device", 50 * MS)]);
    let behind = ((dd(), "writeback".to_string()), (50 * 140 * MS, 700_000_000));
    slot.users.get_mut(&db()).unwrap().behind.insert(behind.0, behind.1);
    device(slot, 8000, 800_000_000, 9_900, 800_000);
    slot.processes.insert(dd(), (0, 900_000_000));
}

#[test]
fn nothing_is_said_of_a_quiet_night() {
    let verdict = whole(&night(0..0, |_| {}));
    assert_eq!((&verdict.troubles[..], verdict.unrecorded_ms), (&[][..], 0));
    assert_eq!(verdict.blind, Vec::<String>::new());
    assert_eq!((verdict.users[0].p99_ns, verdict.users[0].per_s), (MS, 100.0));
    assert_eq!(verdict.devices[0].busy_bytes_per_s, 80_000_000);
}

#[test]
fn a_flood_has_its_culprit_and_its_share() {
    let trouble = only(&night(60..66, flooded));
    assert_eq!((trouble.begin_ms, trouble.end_ms), (600_000, 660_000));
    let Cause::Flood { culprit, way, share, bytes_per_s, .. } = &trouble.cause else { panic!("{trouble:?}") };
    assert_eq!((culprit, way.as_str(), *bytes_per_s), (&dd(), "writeback", 90_000_000));
    assert!(*share > 0.6 && *share < 0.75, "{share}");
    let seen = trouble.syncs.unwrap();
    assert_eq!((seen.per_s, seen.normal_per_s, seen.p99_ns), (5.0, 100.0, Some(200 * MS)));
    let began = Change::Load { user: dd(), bytes_per_s: 90_000_000, normal_bytes_per_s: 0 };
    assert_eq!(trouble.changes, [began]);
}

/// On encrypted volumes most is written by a kernel thread, for everybody.
#[test]
fn what_kernel_threads_wrote_is_nobody_s_flood() {
    for (passed_on_ms, is_flood) in [(9_000, false), (5_000, true)] {
        let encrypted = |slot: &mut Slot| {
            flooded(slot);
            slot.users.get_mut(&db()).unwrap().behind.insert(passed_on(), (passed_on_ms * MS, 1));
        };
        let cause = only(&night(60..66, encrypted)).cause;
        assert!(
            if is_flood { matches!(cause, Cause::Flood { .. }) } else { cause == Cause::Unclear },
            "{cause:?}"
        );
    }
}

#[test]
fn time_on_devices_that_are_not_seen_has_no_cause() {
    for (unseen_ms, kernel_ms, device_ms, is_clear) in
        [(390, 1, 1, false), (150, 100, 140, false), (100, 290, 1, true)]
    {
        let remote = |slot: &mut Slot| {
            let waits = [
                ("own_data", "unseen", unseen_ms * MS),
                ("own_data", "kernel", kernel_ms * MS),
                ("own_data", "device", device_ms * MS),
            ];
            syncs(slot, 20, 400 * MS, &waits);
        };
        let cause = only(&night(60..64, remote)).cause;
        let is_elsewhere = matches!(&cause, Cause::NotStorage { place, .. } if place == "kernel");
        assert!(if is_clear { is_elsewhere } else { cause == Cause::Unclear }, "{cause:?}");
    }
}

#[test]
fn a_device_at_a_tenth_of_its_rate_is_named() {
    let tired = |slot: &mut Slot| {
        syncs(slot, 100, 100 * MS, &[("own_data", "device", 60 * MS), ("journal", "queue", 40 * MS)]);
        device(slot, 1000, 8_000_000, 1_000, 100_000);
    };
    let trouble = only(&night(60..64, tired));
    let Cause::SlowDevice { device, bytes_per_s, normal_bytes_per_s, share, .. } = &trouble.cause else {
        panic!("{trouble:?}")
    };
    assert_eq!((device.as_str(), *bytes_per_s, *normal_bytes_per_s), ("sda", 8_000_000, 80_000_000));
    assert!(share.unwrap() > 0.95);
    // The same where nobody's syncs are known.
    let mut series = night(60..64, tired);
    series.slots.values_mut().for_each(|slot| slot.users.clear());
    let trouble = only(&series);
    assert!(trouble.user.is_none() && matches!(trouble.cause, Cause::SlowDevice { .. }), "{trouble:?}");
    assert!(!whole(&series).blind.is_empty());
}

#[test]
fn few_commits_on_a_slow_device_are_not_called_no_matter_of_storage() {
    for each_ms in [1, 3] {
        let tired = |slot: &mut Slot| {
            syncs(slot, 100, each_ms * MS, &[("own_data", "device", each_ms * MS)]);
            device(slot, 100, 800_000, 1_000, 10_000);
        };
        let cause = only(&night(60..64, tired)).cause;
        assert!(matches!(&cause, Cause::SlowDevice { device, .. } if device == "sda"), "{cause:?}");
    }
}

#[test]
fn commits_that_wait_for_something_else_are_not_storage() {
    let blocked = |slot: &mut Slot| {
        syncs(slot, 10, MS, &[("own_data", "device", 700_000), ("cpu", "", 300_000)]);
        device(slot, 10, 80_000, 1, 10);
    };
    let trouble = only(&night(60..64, blocked));
    assert_eq!(trouble.cause, Cause::FewerNotStorage { busiest_percent: 0, normal_percent: 1 });
    let locked = |slot: &mut Slot| {
        syncs(slot, 20, 400 * MS, &[("lock", "kernel", 390 * MS), ("own_data", "device", 700_000)]);
    };
    let trouble = only(&night(60..64, locked));
    let Cause::NotStorage { place, share } = &trouble.cause else { panic!("{trouble:?}") };
    assert!(place == "lock" && *share > 0.9, "{trouble:?}");
}

/// A job that commits in bursts: what lies between two bursts is few, the bursts are not.
#[test]
fn a_burst_of_commits_is_no_part_of_a_time_with_few() {
    let mut series = night(60..66, |slot| syncs(slot, 10, MS, &[("own_data", "device", MS)]));
    syncs(series.slots.get_mut(&620_000).unwrap(), 20_000, MS, &[("own_data", "device", MS)]);
    let troubles = judged(&series);
    let times: Vec<(i64, i64)> = troubles.iter().map(|it| (it.begin_ms, it.end_ms)).collect();
    assert_eq!(times, [(600_000, 620_000), (630_000, 660_000)]);
    let few = troubles.iter().filter_map(|it| it.syncs.as_ref());
    assert!(few.clone().count() == 2 && few.clone().all(|seen| seen.per_s < 0.3 * seen.normal_per_s));
}

/// While a table is locked the server alone writes now and then: each sync is slower, and all of them take a thousandth of the time.
#[test]
fn few_syncs_that_hardly_take_time_are_not_why_there_are_few() {
    let locked = |each_ms: i64| {
        move |slot: &mut Slot| {
            let own = ((db(), "direct_writes".to_string()), (each_ms * MS, 1_000_000));
            syncs(slot, 35, each_ms * MS, &[("own_data", "others", each_ms * MS)]);
            slot.users.get_mut(&db()).unwrap().behind.insert(own.0, own.1);
            device(slot, 100, 2_000_000, 30, 100);
        }
    };
    let trouble = only(&night(60..63, locked(3)));
    assert!(matches!(trouble.cause, Cause::FewerNotStorage { .. }), "{trouble:?}");
    // Slow ones that fill the time are.
    let trouble = only(&night(60..63, locked(200)));
    assert!(matches!(trouble.cause, Cause::Flood { .. }), "{trouble:?}");
}

#[test]
fn commits_that_are_few_on_a_busy_device_have_the_culprit_of_others_syncs() {
    // PostgreSQL beside it writes its log through the page cache: it waits in a write, and does not sync at all.
    let postgres = User::named("postgres");
    let slot = |slot: &mut Slot, count: i64| {
        let waits = [(("own_data".to_string(), "device".to_string()), count * MS)].into();
        let latency = Histogram::from([(MS, count)]);
        slot.users.insert(postgres.clone(), UserSlot { latency, waits, ..UserSlot::default() });
    };
    let mut series = night(60..66, flooded);
    series.slots.iter_mut().for_each(|(ts_ms, at)| {
        if !(600_000..660_000).contains(ts_ms) {
            slot(at, 1000);
        }
    });
    let troubles = judged(&series);
    let of = |user: &User| troubles.iter().find(|trouble| trouble.user.as_ref() == Some(user)).unwrap();
    assert!(matches!(&of(&db()).cause, Cause::Flood { .. }));
    let Cause::FewerBusy { device, busy_percent, normal_percent, culprit, share } = &of(&postgres).cause
    else {
        panic!("{troubles:#?}")
    };
    assert_eq!((device.as_str(), *busy_percent, *normal_percent, culprit), ("sda", 99, 1, &Some(dd())));
    assert!(*share > 0.6 && *share < 0.75, "{share}");
    assert_eq!(troubles.len(), 2, "{troubles:#?}");
    // Writes of kernel threads are nobody's, however many they are.
    let waiting = series.slots.values_mut().filter_map(|slot| slot.users.get_mut(&db()));
    waiting.filter(|syncs| !syncs.behind.is_empty()).for_each(|syncs| {
        syncs.behind.insert(passed_on(), (9_000 * MS, 1));
    });
    let troubles = judged(&series);
    let few = troubles.iter().find(|trouble| trouble.user.as_ref() == Some(&postgres)).unwrap();
    assert!(matches!(&few.cause, Cause::FewerBusy { culprit: Some(who), .. } if *who == dd()), "{few:?}");
}

#[test]
fn one_long_sync_of_somebody_is_no_trouble_of_its_own() {
    // The flood syncs what it wrote at its end: nobody knows how long that normally takes.
    let mut series = night(0..0, |_| {});
    for slot in series.slots.values_mut().skip(50).take(9) {
        let waits = [(("request_queue".to_string(), "queue".to_string()), 9_900 * MS)].into();
        slot.users.insert(dd(), UserSlot { waits, ..UserSlot::default() });
    }
    let last = series.slots.values_mut().nth(59).unwrap();
    last.users.insert(dd(), UserSlot { latency: Histogram::from([(90_000 * MS, 1)]), ..UserSlot::default() });
    assert_eq!(judged(&series), []);
}

#[test]
fn syncs_that_never_return_are_trouble_too() {
    let stuck = |slot: &mut Slot| {
        let waits = [(("own_data".to_string(), "others".to_string()), 9_900 * MS)].into();
        let behind = [((dd(), "writeback".to_string()), (9_800 * MS, 1))].into();
        slot.users.insert(db(), UserSlot { waits, behind, ..UserSlot::default() });
    };
    let trouble = only(&night(60..63, stuck));
    assert!(matches!(&trouble.cause, Cause::Flood { share, .. } if *share > 0.9), "{trouble:?}");
    assert_eq!(trouble.syncs.unwrap().p99_ns, None);
}

/// Four threads commit all the time and stand still for 24 s. In the interval in which their syncs return, few of many are slow, or
/// all of the time goes to syncs as it normally does.
#[test]
fn trouble_lasts_until_its_open_syncs_have_returned() {
    let behind = [((dd(), "writeback".to_string()), (39_000 * MS, 1))];
    for (fast, each_ms, p99_ms) in [(20_000, 1, 1), (200, 1, 24_000)] {
        let mut series = night(0..0, |_| {});
        for slot in series.slots.values_mut() {
            syncs(slot, 40_000, MS, &[("own_data", "device", MS)]);
        }
        for (nth, slot) in series.slots.values_mut().enumerate().skip(60).take(3) {
            let returned =
                if nth == 62 { [(each_ms * MS, fast), (24_000 * MS, 4)].into() } else { [].into() };
            let waits = [(("own_data".to_string(), "others".to_string()), 39_900 * MS)].into();
            let behind = behind.clone().into();
            slot.users.insert(db(), UserSlot { latency: returned, waits, behind });
        }
        // Whenever it is asked.
        for until_ms in [63 * SPAN_MS, 64 * SPAN_MS, END_MS] {
            let troubles = judge(&series, 0, until_ms).troubles;
            let [trouble] = &troubles[..] else { panic!("{troubles:#?}") };
            assert_eq!((trouble.begin_ms, trouble.end_ms), (600_000, 630_000));
            assert!(matches!(trouble.cause, Cause::Flood { .. }), "{trouble:?}");
            let seen = trouble.syncs.as_ref().unwrap();
            assert_eq!((seen.p99_ns, seen.max_ns), (Some(p99_ms * MS), Some(24_000 * MS)));
        }
    }
}

#[test]
fn throttling_and_a_late_device_are_told_apart() {
    let throttled = |slot: &mut Slot| syncs(slot, 100, 90 * MS, &[("own_data", "held", 89 * MS)]);
    assert!(matches!(only(&night(60..64, throttled)).cause, Cause::Throttled { share } if share > 0.9));
    let late = |slot: &mut Slot| {
        syncs(slot, 100, 90 * MS, &[("flush", "device_flush", 89 * MS)]);
    };
    assert!(matches!(only(&night(60..64, late)).cause, Cause::LateDevice { share } if share > 0.9));
}

#[test]
fn a_knob_that_changed_shortly_before_is_said() {
    let mut series = night(60..64, |slot| syncs(slot, 100, 90 * MS, &[("own_data", "held", 89 * MS)]));
    let knob = |ts_ms| Event { ts_ms, kind: "knob".into(), detail: "{}".into(), ..Event::default() };
    // The recorder reads settings at the end of an interval: that of the first slow one is 610 s.
    series.events = vec![knob(100_000), knob(595_000), knob(610_000), knob(620_000)];
    assert_eq!(only(&series).changes, [595_000, 610_000].map(|ts_ms| Change::Event(knob(ts_ms))));
}

#[test]
fn who_syncs_now_and_then_is_in_no_trouble_when_it_does_not() {
    let mut series = night(0..0, |_| {});
    let user = |count: i64, each_ns: i64| UserSlot {
        latency: Histogram::from([(each_ns, count)]),
        waits: [(("own_data".to_string(), "device".to_string()), each_ns * count)].into(),
        ..UserSlot::default()
    };
    for (nth, slot) in series.slots.values_mut().enumerate() {
        if nth % 4 == 0 {
            slot.users.insert(User::named("cron"), user(500, MS));
        }
        // One that synced once, for long: nobody knows what is normal for it.
        if nth == 50 {
            slot.users.insert(User::named("sync"), user(1, 9_000 * MS));
        }
        // One slow sync among a thousand is told among the slowest, not as trouble.
        if nth == 60 {
            let rare = slot.users.get_mut(&db()).unwrap();
            rare.latency.insert(300 * MS, 15);
        }
    }
    assert_eq!(judged(&series), []);
}

#[test]
fn troubles_that_are_many_are_told_by_their_weight() {
    let mut series = night(0..0, |_| {});
    for (nth, slot) in series.slots.values_mut().enumerate().filter(|(nth, _)| nth % 6 == 3) {
        syncs(slot, 100, (20 + nth as i64) * MS, &[("own_data", "held", (20 + nth as i64) * MS)]);
    }
    let verdict = whole(&series);
    assert_eq!((verdict.troubles.len(), verdict.untold), (TOLD_MOST, 20 - TOLD_MOST));
    assert!(verdict.troubles.iter().all(|trouble| trouble.begin_ms > 40 * SPAN_MS));
    assert!(verdict.troubles.windows(2).all(|pair| pair[0].begin_ms < pair[1].begin_ms));
}

#[test]
fn gaps_and_losses_are_said() {
    let mut series = night(0..0, |_| {});
    series.slots.retain(|ts_ms, _| !(300_000..500_000).contains(ts_ms));
    let lost =
        |ts_ms, detail: &str| Event { ts_ms, kind: "lost".into(), detail: detail.into(), ..Event::default() };
    let requests = r#"{"what": "requests", "count": 7}"#;
    series.events = vec![lost(5, requests), lost(SPAN_MS + 5, requests), lost(5, "torn"), lost(-7, requests)];
    // What was only not kept one by one has a kind of its own, for which no alert fires.
    let slow = r#"{"what": "slow syncs one by one", "count": 3}"#;
    series.events.push(Event { kind: "left_out".into(), ..lost(5, slow) });
    let blind = whole(&series).blind;
    assert!(blind.iter().any(|said| said.contains("3.33 min")), "{blind:?}");
    let expected = "not recorded: 14 requests; 3 slow syncs one by one; 1 times something";
    assert!(blind.iter().any(|said| said == expected), "{blind:?}");
    assert!(judge(&series, -10, 0).blind[0].contains("nothing was recorded"));
}

#[test]
fn a_trouble_does_not_span_time_in_which_nothing_was_recorded() {
    let ends_of = |gone: std::ops::Range<i64>| -> Vec<(i64, i64)> {
        let mut series = night(60..80, flooded);
        series.slots.retain(|ts_ms, _| !gone.contains(ts_ms));
        judged(&series).iter().map(|trouble| (trouble.begin_ms, trouble.end_ms)).collect()
    };
    assert_eq!(ends_of(650_000..750_000), [(600_000, 650_000), (750_000, 800_000)]);
    // As short as an interval without trouble, which ends none.
    assert_eq!(ends_of(650_000..660_000), [(600_000, 800_000)]);
}

#[test]
fn a_unit_of_which_no_sync_was_recorded_is_not_called_usual() {
    let unseen = |has_others| {
        let mut series = night(0..0, |_| {});
        series.slots.values_mut().for_each(|slot| slot.users.clear());
        (series.unit, series.has_others) = (Some("mariadbx".to_string()), has_others);
        whole(&series)
    };
    let verdict = unseen(true);
    assert_eq!((verdict.unseen.as_deref(), &verdict.troubles[..]), (Some("mariadbx"), &[][..]));
    assert_eq!(verdict.blind, ["no syncs of mariadbx were recorded"]);
    // Where nobody's were, nothing may have synced.
    assert!(unseen(false).blind[0].contains("nothing synced, or the recorder did not see it"));
    let mut series = night(0..0, |_| {});
    series.unit = Some("mariadb".to_string());
    assert_eq!(whole(&series).unseen, None);
}

#[test]
fn a_device_of_which_nothing_was_recorded_is_not_called_usual() {
    let mut series = night(0..0, |_| {});
    series.device = Some("sda".to_string());
    assert_eq!(whole(&series).unseen_device, None);
    series.device = Some("sdz".to_string());
    let verdict = whole(&series);
    assert_eq!(verdict.unseen_device.as_deref(), Some("sdz"));
    assert_eq!(verdict.blind, ["no I/O of sdz was recorded"]);
}

#[test]
fn time_at_the_edges_in_which_nothing_was_recorded_is_said() {
    let of = |since_ms, until_ms| judge(&night(0..0, |_| {}), since_ms, until_ms);
    // The recorder began at 0 and ended at END_MS.
    for (since_ms, until_ms, unrecorded_ms) in [
        (0, END_MS, 0),
        (0, END_MS + 600_000, 600_000),
        (-300_000, END_MS, 300_000),
        (-300_000, END_MS + 600_000, 900_000),
        (-600_000, -300_000, 300_000),
        // An interval lies over the start, and one goes on.
        (SPAN_MS / 10, END_MS, 0),
        (0, END_MS + SPAN_MS, 0),
    ] {
        let verdict = of(since_ms, until_ms);
        assert_eq!(verdict.unrecorded_ms, unrecorded_ms, "{since_ms} to {until_ms}");
        assert_eq!(verdict.blind.is_empty(), unrecorded_ms == 0, "{:?}", verdict.blind);
    }
    assert!(of(0, END_MS + 600_000).blind[0].contains("nothing was recorded for 10.0 min of that time"));
    for (ms, words) in [(7_199_000, "120 min"), (7_200_000, "2.00 hours"), (2_591_689_000, "30.0 days")] {
        assert_eq!(length(ms), words);
    }
}

#[test]
fn what_the_recorder_of_that_time_did_not_see_is_said_again() {
    let mut series = night(0..0, |_| {});
    let event = |ts_ms, kind: &str, sentences: &[&str]| Event {
        ts_ms,
        kind: kind.into(),
        detail: serde_json::json!({ "not_seen": sentences }).to_string(),
        ..Event::default()
    };
    series.events = vec![
        event(0, "start", &["syncs are not seen"]),
        event(SPAN_MS, "start", &["stages are not seen"]),
        event(2 * SPAN_MS, "not_seen", &["stages are not seen"]),
        event(50 * SPAN_MS, "start", &[]),
    ];
    let said = |since: i64, until: i64| judge(&series, since * SPAN_MS, until * SPAN_MS).blind;
    assert_eq!(said(0, 40), ["syncs are not seen", "stages are not seen"]);
    assert_eq!(said(3, 40), ["stages are not seen"]);
    assert_eq!(said(51, 120), [""; 0]);
}

/// sda is flooded; nothing of the database lies on sdb, which is slow at the same time.
#[test]
fn a_slow_device_that_the_syncs_did_not_go_to_is_told_beside_their_cause() {
    let mut series = night(60..66, flooded);
    for (ts_ms, slot) in &mut series.slots {
        let tired = (600_000..660_000).contains(ts_ms);
        let of_sdb = if tired { [1000, 8_000_000, 1_000, 100_000] } else { [1000, 8_000_000, 100, 1000] };
        device_named(slot, "sdb", of_sdb);
    }
    let slow_sync = |device: &str| Event {
        ts_ms: 610_000,
        kind: "slow_sync".into(),
        device: device.into(),
        comm: db().comm,
        unit: db().unit,
        ..Event::default()
    };
    series.events = vec![slow_sync("sda"), slow_sync("")];
    let [flood, slow] = &judged(&series)[..] else { panic!("{:#?}", judged(&series)) };
    assert!(flood.user == Some(db()) && matches!(flood.cause, Cause::Flood { .. }), "{flood:?}");
    assert!(slow.user.is_none(), "{slow:?}");
    assert!(matches!(&slow.cause, Cause::SlowDevice { device, .. } if device == "sdb"), "{slow:?}");
    // Its syncs go to both.
    series.events.push(slow_sync("sdb"));
    assert!(matches!(&only(&series).cause, Cause::SlowDevice { device, .. } if device == "sdb"));
}

#[test]
fn trouble_for_less_than_half_of_the_time_does_not_become_normal() {
    // No time before it to learn from.
    let series = night(0..50, flooded);
    let troubles = judged(&series);
    assert!(troubles.iter().any(|trouble| matches!(trouble.cause, Cause::Flood { .. })), "{troubles:?}");
}

/// Any account may sync under other names in each interval. Where each name costs all intervals, this takes minutes.
#[test]
fn names_that_are_others_in_each_interval_hide_nothing_and_cost_their_rows() {
    const INTERVALS: i64 = 3_000;
    let mut series = Series::default();
    for at in 0..INTERVALS {
        let mut slot = usual();
        if (2_900..2_906).contains(&at) {
            flooded(&mut slot);
        }
        // Each name is known from enough intervals, and slow in one of them.
        for n in 0..20 {
            let low_ns = if at % 8 == n % 8 { 500 * MS } else { MS };
            let of = UserSlot {
                latency: Histogram::from([(low_ns, 2)]),
                waits: [(("journal".to_string(), "device".to_string()), 2 * low_ns)].into(),
                ..UserSlot::default()
            };
            slot.users.insert(User::of(&format!("p{}-{n}", at / 8), "user@1000.service"), of);
        }
        series.slots.insert(at * SPAN_MS, slot);
    }
    let verdict = judge(&series, 0, INTERVALS * SPAN_MS);
    assert_eq!(verdict.users.len(), 1 + 20 * 375);
    assert_eq!((verdict.troubles.len() + verdict.untold, verdict.troubles.len()), (1 + 20 * 375, TOLD_MOST));
    let of_db: Vec<&Trouble> = verdict.troubles.iter().filter(|trouble| trouble.user == Some(db())).collect();
    assert!(matches!(of_db[..], [trouble] if matches!(trouble.cause, Cause::Flood { .. })), "{of_db:?}");
}
