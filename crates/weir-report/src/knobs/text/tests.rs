//! Pages as people see them.

use super::*;
use crate::layout::COLUMNS;
use weir_core::target::FileSystem;
use weir_knobs::persist::{Keeper, Kept};
use weir_knobs::{Became, Plan, Setting, Step, catalog};

fn reading(setting: &str) -> Reading {
    let setting: Setting = setting.parse().unwrap();
    Reading {
        path: catalog::path(&setting.knob).unwrap(),
        choices: match setting.knob.setting.as_str() {
            "scheduler" => ["none", "mq-deadline"].map(str::to_string).to_vec(),
            _ => Vec::new(),
        },
        knob: setting.knob,
        value: Some(setting.value),
        unreadable: None,
        min: None,
        max: Some(128),
        writable: true,
        owners: Vec::new(),
    }
}

fn owned(setting: &str, place: &str, value: &str) -> Reading {
    let owner = Owner { kind: "sysctl.d".into(), place: place.into(), value: value.into() };
    Reading { owners: vec![owner], max: None, ..reading(setting) }
}

#[test]
fn a_list_says_value_range_owner_and_meaning() {
    let write_only = Reading { value: None, max: None, ..reading("vm.drop_caches=1") };
    let readings = [
        owned("vm.dirty_bytes=15000000", "/etc/sysctl.d/9.conf:3", "bytes=15000000"),
        write_only,
        reading("sda/scheduler=none"),
        reading("sda/nr_requests=64"),
        Reading { writable: false, ..reading("sda/write_cache=write back") },
        Reading { max: None, ..reading("sda/bdi/max_ratio=100") },
    ];
    let file_system = FileSystem {
        kind: "ext4".into(),
        mount_point: "/data".into(),
        options: vec!["rw".into(), "noatime".into()],
        ..FileSystem::default()
    };
    let text = list(&readings, Some(&file_system));
    assert!(text.starts_with("this machine\n  knob            value           takes  "), "{text}");
    for line in [
        "      Set by sysctl.d, /etc/sysctl.d/9.conf:3 sets bytes=15000000.",
        "  vm.dirty        15000000 bytes  1 to 100 %, or 8192 or more bytes  sysctl.d\n",
        "  vm.drop_caches  -               1 to 3                             nobody\n",
        "sda: queue and scheduler",
        "none | mq-deadline",
        "4 to 128 requests",
        "      Read-only on this machine.",
        "DATA AT RISK",
        "sda: its share of the dirty limits",
        "  ext4 at /data: rw, noatime",
    ] {
        assert!(text.contains(line), "{line:?} is missing in\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
}

#[test]
fn every_knob_can_be_shown_within_the_columns() {
    for spec in catalog::CATALOG {
        let text = known(spec);
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
        assert!(text.contains(&spec.meaning[..20]), "{text}");
    }
    let shown = one(&owned("vm.dirty_bytes=15000000", "/etc/sysctl.d/9.conf:3", "bytes=15000000"), None);
    for line in [
        "vm.dirty = 15000000 bytes",
        "takes     1 to 100 %, or 8192 or more bytes",
        "set by    sysctl.d, /etc/sysctl.d/9.conf:3 sets bytes=15000000",
        "weir knobs apply vm.dirty_bytes=BYTES --confirm-within 5m",
    ] {
        assert!(shown.contains(line), "{line:?} is missing in\n{shown}");
    }
    let cache = one(&reading("sda/write_cache=write back"), None);
    assert!(cache.contains("--i-accept-data-loss-risk sda/write_cache"), "{cache}");
}

#[test]
fn a_plan_says_before_and_after() {
    let step = |knob: &str, from: &str, to: &str| Step {
        knob: knob.parse().unwrap(),
        from: from.parse().unwrap(),
        to: to.parse().unwrap(),
    };
    let text = plan(&Plan {
        steps: vec![
            step("sda/scheduler", "none", "mq-deadline"),
            step("vm.dirty", "ratio=20", "bytes=15000000"),
            step("vm.drop_caches", "0", "3"),
        ],
        touched: vec!["sda/nr_requests=64".parse().unwrap()],
        notes: vec!["vm.swappiness=1 already".to_string()],
    });
    assert_eq!(
        text,
        "\x20 1  sda/scheduler   none → mq-deadline
  2  vm.dirty        20 % → 15000000 bytes
  3  vm.drop_caches  3  (done once, nothing to restore)
  also  sda/nr_requests=64: reset by this, and restored with it
  note  vm.swappiness=1 already
"
    );
}

#[test]
fn a_file_for_the_next_boot_is_shown_as_it_will_be() {
    let one = |setting: &str| Kept { setting: setting.parse().unwrap(), before: None };
    let file = Keeper::Systemd.persist(&[one("sda/nr_requests=8"), one("vm.drop_caches=1")], None);
    let text = persisted(&file, false);
    for line in [
        "would write /etc/systemd/system/weir-knobs.service\n",
        "  | ExecStart=-/bin/sh -c 'echo 8 > /sys/block/sda/queue/nr_requests'\n",
        "would write /etc/systemd/system/multi-user.target.wants/weir-knobs.service -> ",
        "not held vm.drop_caches=1: it is done once",
        "then     systemctl daemon-reload\n",
    ] {
        assert!(text.contains(line), "{line:?} is missing in\n{text}");
    }
}

#[test]
fn a_governed_knob_is_shown_with_its_band() {
    let limit = |bytes| Value::Bytes(bytes);
    let values = vec![
        (
            "vm.dirty".parse().unwrap(),
            Value::Ratio(20),
            Became::Governed { least: limit(2_001_579), most: limit(4_900_000_000) },
        ),
        ("sda/bdi/strict_limit".parse().unwrap(), Value::Number(0), Became::Value(Value::Number(1))),
        ("sda/nr_requests".parse().unwrap(), Value::Number(64), Became::Reset),
    ];
    let change = Change { title: "held by weir guard".to_string(), values };
    let text = changes(&[change]);
    for line in [
        "held by weir guard\n",
        "  vm.dirty              20 % → held between 2 MB and 4.9 GB\n",
        "  sda/bdi/strict_limit  0 → 1\n",
        "reset with it, was 64",
    ] {
        assert!(text.contains(line), "{line:?} is missing in\n{text}");
    }
    let held = Owner {
        kind: Owner::GUARD.into(),
        place: "/journal/1.json".into(),
        value: "between 2 MB and 4.9 GB".into(),
    };
    let text = list(&[Reading { owners: vec![held], ..reading("vm.swappiness=1") }], None);
    assert!(text.contains("Set by weir guard, /journal/1.json holds it between 2 MB and 4.9 GB."), "{text}");
}
