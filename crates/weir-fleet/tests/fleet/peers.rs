//! Who is compared with whom: a device with others of its model, a host by the device that serves its syncs, and nobody by guess.

use serde_json::{Value, json};
use weir_archive::tables::{Event, Stage as Recorded};
use weir_store::tables::{Fact, Stage, Sync};

use crate::engines::put;
use crate::tables::{BEGIN_S, Fleet};

const HOSTS: usize = 20;
const HOURS: i64 = 72;

/// How much longer all of a host's requests take: six hosts of twenty have disks that turn.
fn slower(host: usize) -> i64 {
    if host < 14 { 1 } else { 50 }
}

/// Hosts whose data lies on sdb, all healthy, with these facts of device, name and value.
fn fleet(facts: impl Fn(usize) -> Vec<[&'static str; 3]>) -> Fleet {
    let fleet = Fleet::new();
    let (mut stages, mut syncs, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..HOSTS {
        let host = format!("db{n:02}");
        for [device, name, value] in facts(n) {
            let [device, name, value] = [device, name, value].map(String::from);
            all.push(Fact { host: host.clone(), ts: BEGIN_S, device, name, value });
        }
        for ts in (0..HOURS).map(|hour| BEGIN_S + 3_600 * hour) {
            for (class, stage) in
                [("write", "g2d"), ("write", "d2c"), ("write", "g2c"), ("sync_write", "g2c")]
            {
                stages.push(Stage {
                    host: host.clone(),
                    ts,
                    device: "sdb".into(),
                    class: class.into(),
                    stage: stage.into(),
                    load: 64,
                    bucket_low_ns: 65_536 * slower(n),
                    n: 5_000,
                });
            }
            // What the system writes to its own disk.
            stages.push(Stage {
                device: "sda".into(),
                bucket_low_ns: 65_536,
                n: 7,
                ..stages[stages.len() - 1].clone()
            });
            let (unit, bucket_low_ns) = (String::new(), 80_000 * slower(n));
            syncs.push(Sync { host: host.clone(), ts, unit, load: 64, bucket_low_ns, n: 5_000 });
        }
    }
    put(&fleet, &stages, |row| (row.host.clone(), row.ts));
    put(&fleet, &syncs, |row| (row.host.clone(), row.ts));
    put(&fleet, &all, |row| (row.host.clone(), row.ts));
    fleet
}

fn model(host: usize) -> &'static str {
    if slower(host) == 1 { "SAMSUNG" } else { "HD-D4" }
}

#[test]
fn a_device_of_an_unknown_model_is_not_judged() {
    // A scheduler that somebody changed says nothing of the device.
    for known in [vec![], vec![["sda", "scheduler", "none"], ["sdb", "scheduler", "none"]]] {
        let fleet = fleet(|_| known.clone());
        let not_judged =
            "not judged: 40 devices and 20 hosts without facts that say what they are: db00, db00 sda,";
        fleet.run(&["show", "slow"]).says(0, &["no device and no host could be compared", not_judged]);
        let said = json(&fleet, &["slow"]);
        assert_eq!(said["judged"], json!({"devices": 0, "hosts": 0}));
        assert_eq!(said["not_judged"].as_array().unwrap().len(), 60);
        let not_judged = "not judged: 40 devices without facts that say what they are: db00 sda,";
        fleet.run(&["show", "capacity"]).says(0, &["no device could be judged", not_judged]);
        fleet
            .run(&["show", "drift"])
            .says(0, &["no fact could be compared: fewer than 6 of a kind have any", not_judged]);
    }
    // Where all is known of a host, a device without a model is one.
    let fleet =
        fleet(|_| vec![["", "kernel", "6.12"], ["sda", "scheduler", "none"], ["sdb", "scheduler", "none"]]);
    let ran = fleet.run(&["show", "slow"]);
    ran.says(1, &["6 devices are slow at equal load, of 20 devices and 20 hosts", "db19"]);
    assert_eq!(only_boot_disks(&ran.out), 1, "{}", ran.out);
}

/// How many remarks there are on what is not judged, each of which is that the boot disks are hardly used.
fn only_boot_disks(out: &str) -> usize {
    let remark = "not judged: 20 devices without a thousand requests or syncs at one load: db00 sda,";
    let remarks = out.lines().filter(|line| line.starts_with("not judged"));
    remarks.inspect(|line| assert!(line.starts_with(remark), "{out}")).count()
}

fn json(fleet: &Fleet, question: &[&str]) -> Value {
    serde_json::from_str(&fleet.run(&[&["show"], question, &["--json"]].concat()).out).unwrap()
}

/// Nobody is called as fast as others where there are no others.
#[test]
fn those_with_too_few_peers_are_not_called_as_fast_as_others() {
    let fleet =
        fleet(|n| vec![["", "kernel", "6.12"], ["sda", "model", "INTEL"], ["sdb", "model", model(n)]]);
    let slow = ["slow", "--peers", "7"];
    let few = "not judged: 6 devices and 6 hosts with fewer than 7 of their kind: db14, db14 sdb,";
    let judged = "no device is slow at equal load, of 14 devices and 14 hosts";
    fleet.run(&[&["show"], &slow[..]].concat()).says(0, &[judged, few]);
    let said = json(&fleet, &slow);
    assert_eq!(said["judged"], json!({"devices": 14, "hosts": 14}));
    let why =
        |why: &str| said["not_judged"].as_array().unwrap().iter().filter(|one| one["why"] == why).count();
    assert_eq!((why("few-of-its-kind"), why("few-requests")), (12, 20));
    let page = fleet.path("page.html");
    let html = ["--html", page.to_str().unwrap()];
    fleet.run(&[&["show"], &slow[..], &html].concat()).says(0, &[few]);
    assert!(
        std::fs::read_to_string(page)
            .unwrap()
            .contains("Not judged: 6 devices and 6 hosts with fewer than 7")
    );
    let ran = fleet.run(&["show", "slow"]);
    assert!(ran.out.contains("no device is slow") && only_boot_disks(&ran.out) == 1, "{}", ran.out);
}

/// A device that is alone with its load, and one whose archive is of minutes, are not called as fast as others.
#[test]
fn those_that_could_not_be_compared_are_named_with_the_reason() {
    let fleet = Fleet::new();
    let (mut stages, mut facts) = (Vec::new(), Vec::new());
    for (n, host) in (0..14).map(|n| (n, format!("db{n:02}"))) {
        // Seven of one model for three days, one of them at another load; seven of another for an hour.
        let (value, hours) = if n < 7 { ("NV-A1", HOURS) } else { ("NV-B2", 1) };
        for (device, name) in [("", "kernel"), ("sda", "model")] {
            let [host, device, name, value] = [&host, device, name, value].map(String::from);
            facts.push(Fact { host, ts: BEGIN_S, device, name, value });
        }
        stages.extend((0..hours).map(|hour| Stage {
            host: host.clone(),
            ts: BEGIN_S + 3_600 * (HOURS - 1 - hour),
            device: "sda".into(),
            class: "write".into(),
            stage: "d2c".into(),
            load: if n == 6 { 1_024 } else { 64 },
            bucket_low_ns: 65_536,
            n: 5_000,
        }));
    }
    put(&fleet, &stages, |row| (row.host.clone(), row.ts));
    put(&fleet, &facts, |row| (row.host.clone(), row.ts));
    fleet.run(&["show", "slow"]).says(
        0,
        &[
            "no device is slow at equal load, of 6 devices\n",
            "not judged: 1 device with fewer than 6 of their kind at the same time and load: db06 sda\n",
            "not judged: 7 devices with too few times and loads at which they could be compared: db07 sda,",
        ],
    );
    let said = json(&fleet, &["slow"]);
    assert_eq!(said["not_judged"][0], json!({"host": "db06", "device": "sda", "why": "few-at-its-load"}));
    assert_eq!(said["not_judged"][1], json!({"host": "db07", "device": "sda", "why": "few-bins"}));
}

/// Writes of a device, each of so many milliseconds at a load.
fn write_of_db1(device: &str, load: i64, ms: i64) -> Stage {
    Stage {
        host: "db1".into(),
        ts: BEGIN_S,
        device: device.into(),
        class: "write".into(),
        stage: "g2c".into(),
        load,
        bucket_low_ns: ms * 1_000_000,
        n: 5_000,
    }
}

fn fact_of_db1(device: &str, name: &str, value: &str) -> Fact {
    Fact { host: "db1".into(), ts: BEGIN_S, device: device.into(), name: name.into(), value: value.into() }
}

/// Devices without a model are not one model: each is held against its own requests.
#[test]
fn capacity_takes_no_devices_of_unknown_models_together() {
    let fleet = Fleet::new();
    // A slow one that is as slow at every load, a fast one, and one with a knee of its own.
    let stages = [
        write_of_db1("vda", 256, 90),
        write_of_db1("vdb", 64, 1),
        write_of_db1("vdb", 128, 1),
        write_of_db1("vdc", 64, 1),
        write_of_db1("vdc", 256, 9),
    ];
    let fact = |device: &str, name: &str| fact_of_db1(device, name, "none");
    let facts =
        [fact("", "kernel"), fact("vda", "scheduler"), fact("vdb", "scheduler"), fact("vdc", "scheduler")];
    put(&fleet, &stages, |row| (row.host.clone(), row.ts));
    put(&fleet, &facts, |row| (row.host.clone(), row.ts));
    fleet.run(&["show", "capacity"]).says(
        1,
        &[
            "1 device is within a factor of two of the load at which the",
            "1 of them beyond it",
            "db1   vdc     write",
            "not near: 2 devices whose model slows down at no load that was seen: db1 vda, db1 vdb\n",
            "judged: 3 devices of an unknown model, each by its own requests alone: db1 vda, db1 vdb, db1 vdc\n",
        ],
    );
    assert_eq!(json(&fleet, &["capacity"])["model_not_known"].as_array().unwrap().len(), 3);
}

/// Latency may rise at one load and fall again beyond it: a device that is fast at its own load is not beyond a knee.
#[test]
fn a_device_that_is_fast_at_its_load_has_capacity() {
    let fleet = Fleet::new();
    let stages = [
        write_of_db1("sda", 64, 1),
        write_of_db1("sda", 128, 9),
        write_of_db1("sda", 256, 1),
        write_of_db1("sdb", 128, 9),
    ];
    let fact = |device: &str, name: &str| fact_of_db1(device, name, "SAMSUNG");
    let facts = [fact("", "kernel"), fact("sda", "model"), fact("sdb", "model")];
    put(&fleet, &stages, |row| (row.host.clone(), row.ts));
    put(&fleet, &facts, |row| (row.host.clone(), row.ts));
    let ran = fleet.run(&["show", "capacity"]);
    ran.says(1, &["1 device is within a factor of two", "1 of them beyond it", "sdb"]);
    assert!(!ran.out.contains("sda"), "{}", ran.out);
}

#[test]
fn hosts_are_compared_by_the_device_that_serves_their_syncs() {
    let with = |first: [&'static str; 3]| {
        fleet(move |n| {
            let boot = [["", "kernel", "6.12"], ["sda", "model", "INTEL"], ["sdb", "model", model(n)]];
            let schedulers = ["sda", "sdb"].map(|device| [device, "scheduler", "none"]);
            [&boot[..], &schedulers[..], &[first][..]].concat()
        })
    };
    for first in [["sda", "firmware", "1"], ["loop0", "scheduler", "none"]] {
        let fleet = with(first);
        let ran = fleet.run(&["show", "slow"]);
        ran.says(0, &["no device is slow at equal load, of 20 devices and 20 hosts"]);
        assert_eq!(only_boot_disks(&ran.out), 1, "{}", ran.out);
    }
}

/// What a record tells is of one stack of devices. The disk that serves nearly all syncs is another.
#[test]
fn hosts_are_not_compared_by_a_device_that_serves_few_of_their_syncs() {
    let fleet =
        fleet(|_| vec![["", "kernel", "6.12"], ["sda", "model", "INTEL"], ["sda", "scheduler", "none"]]);
    let words = [
        "no device and no host could be compared",
        "20 devices and 20 hosts without facts that say what they are: db00,",
    ];
    fleet.run(&["show", "slow"]).says(0, &words);
}

#[test]
fn hosts_of_which_syncs_alone_are_known_are_counted() {
    let fleet = Fleet::new();
    let of = |n: i64| Sync { host: format!("db{n}"), ts: BEGIN_S, n: 9, ..Sync::default() };
    put(&fleet, &(0..3).map(of).collect::<Vec<_>>(), |row| (row.host.clone(), row.ts));
    fleet
        .run(&["show", "slow"])
        .says(0, &["not judged: 3 hosts without facts that say what they are: db0, db1, db2"]);
}

/// An export begins after the recorder's start, whose segment may even be gone.
#[test]
fn facts_that_a_recorder_repeats_are_taken_and_kept_once() {
    let fleet = Fleet::new();
    let said = |hour: i64, firmware: &str, machine: &str| {
        let detail = json!({"machine": machine, "kernel": "6.12", "knobs": {"sda/scheduler": "none"},
            "devices": {"sda": {"model": "NV-A1", "firmware": firmware}}});
        let ts_ms = 1000 * (BEGIN_S + 3_600 * hour);
        Event { ts_ms, kind: "facts".into(), detail: detail.to_string(), ..Event::default() }
    };
    for (hour, firmware) in [(0, "1.0"), (1, "1.0"), (2, "1.0"), (3, "2.0")] {
        fleet.segment("db1", hour, &[said(hour, firmware, "aaaaaa01")]);
        if hour != 1 {
            fleet.import("db1").says(0, &[]);
        }
    }
    let of = |name: &str| fleet.ask(&format!("SELECT value FROM facts WHERE name = '{name}' ORDER BY ts"));
    let value = |value: &str| json!({ "value": value });
    assert_eq!((of("model"), of("firmware")), (vec![value("NV-A1")], vec![value("1.0"), value("2.0")]));
    // Another machine of that name is known by them, too.
    fleet.segment("other", 0, &[said(0, "1.0", "bbbbbb02")]);
    fleet.segment("other", 0, &[Recorded { ts_ms: 1000 * BEGIN_S, count: 1, ..Recorded::default() }]);
    fleet.run(&["import", "--host", "db1", fleet.path("other").to_str().unwrap()]).says(0, &[]);
    assert_eq!(fleet.ask("SELECT host FROM stages"), [json!({"host": "db1~bbbbbb"})]);
}
