//! Configurations as machines have them, and as nobody would write them.

use proptest::prelude::*;

use super::*;

fn file(path: &str, text: &str) -> File {
    File { path: path.to_string(), text: text.to_string() }
}

/// Who sets a knob, as `kind place=value`.
fn owners(configuration: &Configuration, knob: &str) -> Vec<String> {
    let said = |owner: Owner| format!("{} {} = {}", owner.kind, owner.place, owner.value);
    // sda turns; of other devices nothing is known.
    let knob: KnobName = knob.parse().unwrap();
    let is_sda = knob.scope == Scope::Device("sda".to_string());
    let attribute = |name: &str| (is_sda && name == "queue/rotational").then(|| "1\n".to_string());
    configuration.owners(&knob, &attribute).into_iter().map(said).collect()
}

#[test]
fn sysctl_files_are_read_by_name_and_the_folder_that_wins() {
    let configuration = Configuration {
        sysctl: vec![
            file("/usr/lib/sysctl.d/50-default.conf", "vm.swappiness = 10\n"),
            file("/etc/sysctl.d/50-default.conf", "# ours\n; too\n\nvm/swappiness=20\n"),
            file("/usr/lib/sysctl.d/99-tail.conf", "-vm.swappiness = 30\nvm.dirty_ratio=5\n"),
            file("/etc/sysctl.d/10-first.conf", "vm.dirty_bytes=15000000\nvm.dirty*=1\nno equals sign\n"),
        ],
        ..Configuration::default()
    };
    for (knob, expected) in [
        (
            "vm.swappiness",
            &[
                "sysctl.d /usr/lib/sysctl.d/99-tail.conf:1 = 30",
                "sysctl.d /etc/sysctl.d/50-default.conf:4 = 20",
            ][..],
        ),
        (
            "vm.dirty",
            &[
                "sysctl.d /usr/lib/sysctl.d/99-tail.conf:2 = ratio=5",
                "sysctl.d /etc/sysctl.d/10-first.conf:1 = bytes=15000000",
            ],
        ),
        ("vm.dirty_expire_centisecs", &["sysctl.d /etc/sysctl.d/10-first.conf:2 = 1"]),
        ("vm.vfs_cache_pressure", &[]),
    ] {
        assert_eq!(owners(&configuration, knob), expected, "{knob}");
        // TuneD applies the files of /etc once more, after all of them.
        let tuned = Configuration { tuned_active: "balanced\n".to_string(), ..configuration.clone() };
        let again: Vec<&str> = expected.iter().rev().copied().collect();
        assert_eq!(owners(&tuned, knob), again, "{knob}");
    }
}

#[test]
fn sysctl_exceptions_and_the_old_single_file() {
    let configuration = Configuration {
        sysctl: vec![
            file("/etc/sysctl.conf", "vm.swappiness=1\n"),
            file("/etc/sysctl.d/99-z.conf", "vm.*=7\n-vm.vfs_cache_pressure\nvm.swappiness=2\n"),
        ],
        ..Configuration::default()
    };
    assert_eq!(
        owners(&configuration, "vm.swappiness"),
        ["sysctl.d /etc/sysctl.conf:1 = 1", "sysctl.d /etc/sysctl.d/99-z.conf:3 = 2"]
    );
    assert!(owners(&configuration, "vm.vfs_cache_pressure").is_empty());
    assert_eq!(
        owners(&configuration, "vm.dirty_expire_centisecs"),
        ["sysctl.d /etc/sysctl.d/99-z.conf:1 = 7"]
    );
}

#[test]
fn udev_rules_are_matched_by_the_name_and_told_with_their_conditions() {
    let rules = "# schedulers\n\
        ACTION==\"add|change\", KERNEL==\"sd[a-z]|nvme*n*\", ATTR{queue/scheduler}=\"none\"\n\
        KERNEL==\"sd*\", \\\n  ATTR{queue/rotational}==\"1\", \\\n  ATTR{queue/scheduler}=\"bfq\"\n\
        KERNEL!=\"sda\", ATTR{queue/scheduler}=\"kyber\"\n\
        KERNEL==\"sda\", ATTR{queue/rotational}==\"0\", ATTR{queue/scheduler}=\"y\"\n\
        SUBSYSTEM==\"net\", ATTR{queue/scheduler}=\"x\"\n\
        KERNEL==\"sda\", ATTR{bdi/max_ratio}=\"50\", ATTR{queue/scheduler}==\"none\"\n\
        KERNEL==\"sda\", ENV{DEVTYPE}==\"partition\", ATTR{queue/nr_requests}=\"9\"\n";
    let configuration = Configuration {
        udev: vec![file("/etc/udev/rules.d/60-io.rules", rules)],
        ..Configuration::default()
    };
    let rule = "udev /etc/udev/rules.d/60-io.rules";
    for (knob, expected) in [
        ("sda/scheduler", vec![format!("{rule}:3 = bfq"), format!("{rule}:2 = none")]),
        (
            "sdb/scheduler",
            vec![
                format!("{rule}:6 = kyber"),
                format!("{rule}:3 (where ATTR{{queue/rotational}}==\"1\") = bfq"),
                format!("{rule}:2 = none"),
            ],
        ),
        ("nvme0n1/scheduler", vec![format!("{rule}:6 = kyber"), format!("{rule}:2 = none")]),
        ("vda/scheduler", vec![format!("{rule}:6 = kyber")]),
        ("sda/bdi/max_ratio", vec![format!("{rule}:9 (where ATTR{{queue/scheduler}}==\"none\") = 50")]),
        ("sda/nr_requests", vec![]),
    ] {
        assert_eq!(owners(&configuration, knob), expected, "{knob}");
    }
}

#[test]
fn a_tuned_profile_beats_what_it_includes() {
    let base =
        "[main]\nsummary=base\n[sysctl]\nvm.dirty_ratio = 10\nvm.swappiness=10\n[disk]\nreadahead=>4096\n";
    let own = "[main]\ninclude=throughput-performance, own\n[vm]\ntransparent_hugepages=never\ndirty_bytes=5000\n\
        [fast]\ntype=disk\ndevices=nvme*,!nvme1n1\nelevator=none\n[sysfs]\n/sys/block/sd*/queue/nr_requests=512\n";
    let configuration = Configuration {
        tuned: vec![
            file("/usr/lib/tuned/throughput-performance/tuned.conf", base),
            file("/etc/tuned/own/tuned.conf", own),
            file("/usr/lib/tuned/own/tuned.conf", "[sysctl]\nvm.swappiness=99\n"),
            file("/usr/lib/tuned/powersave/tuned.conf", "[sysctl]\nvm.swappiness=98\n"),
        ],
        tuned_active: "own\n".to_string(),
        ..Configuration::default()
    };
    for (knob, expected) in [
        (
            "vm.dirty",
            &[
                "TuneD /etc/tuned/own/tuned.conf:5 = bytes=5000",
                "TuneD /usr/lib/tuned/throughput-performance/tuned.conf:4 = ratio=10",
            ][..],
        ),
        ("nvme0n1/scheduler", &["TuneD /etc/tuned/own/tuned.conf:9 = none"]),
        ("nvme1n1/scheduler", &[]),
        ("sda/scheduler", &[]),
        ("sda/nr_requests", &["TuneD /etc/tuned/own/tuned.conf:11 = 512"]),
        ("sda/read_ahead_kb", &["TuneD /usr/lib/tuned/throughput-performance/tuned.conf:7 = >4096"]),
        ("transparent_hugepage", &["TuneD /etc/tuned/own/tuned.conf:4 = never"]),
    ] {
        let found: Vec<String> = owners(&configuration, knob);
        // An include that leads back to itself is followed only so far.
        let mut once = found.clone();
        once.dedup();
        assert_eq!(
            once.iter().take(expected.len()).collect::<Vec<_>>(),
            expected.iter().collect::<Vec<_>>(),
            "{knob}"
        );
        assert_eq!(once.is_empty(), expected.is_empty(), "{knob}: {once:?}");
    }
}

#[test]
fn the_last_to_run_comes_first() {
    let configuration = Configuration {
        sysctl: vec![
            file("/usr/lib/sysctl.d/10-a.conf", "vm.swappiness=1"),
            file("/etc/sysctl.d/10-b.conf", "vm.swappiness=2"),
        ],
        tmpfiles: vec![file(
            "/etc/tmpfiles.d/vm.conf",
            "w! /proc/sys/vm/swappiness - - - - 3\nd /proc/sys/vm/swappiness",
        )],
        tuned: vec![file("/etc/tuned/db/tuned.conf", "[sysctl]\nvm.swappiness=4")],
        tuned_active: "db".to_string(),
        units: vec![file(
            "/etc/systemd/system/db-io.service",
            "[Service]\nExecStart=/bin/sh -c 'echo 5 > /proc/sys/vm/swappiness'\nExecStart=sysctl -w vm.swappiness=6\n\
             ExecStart=/bin/sh -c 'echo 7 > /proc/sys/vm/swappiness_old'\n",
        )],
        cmdline: "root=/dev/sda sysctl.vm.swappiness=8 quiet".to_string(),
        ..Configuration::default()
    };
    assert_eq!(
        owners(&configuration, "vm.swappiness"),
        [
            "systemd /etc/systemd/system/db-io.service:2 = 5",
            "systemd /etc/systemd/system/db-io.service:3 = ",
            "sysctl.d /etc/sysctl.d/10-b.conf:1 = 2",
            "TuneD /etc/tuned/db/tuned.conf:2 = 4",
            "sysctl.d /usr/lib/sysctl.d/10-a.conf:1 = 1",
            "tmpfiles.d /etc/tmpfiles.d/vm.conf:1 = 3",
            "kernel command line sysctl.vm.swappiness = 8",
        ]
    );
    assert_eq!(owners(&configuration, "cgroup:/db.slice/memory.high"), ["systemd db.slice = "]);
    assert!(owners(&configuration, "cgroup:/machine/memory.high").is_empty());
    assert!(owners(&configuration, "vm.nonsense").is_empty());
}

proptest! {
    #[test]
    fn damaged_files_are_read_without_harm(
        text in "(\\PC|[\\[\\]{}=\"\\\\*?!#;,. \n-]|KERNEL|ATTR|queue/scheduler|\\[disk\\]|include|own|vm\\.dirty|w /sys){0,60}",
        knob in prop::sample::select(vec!["vm.dirty", "vm.swappiness", "sda/scheduler", "sda/bdi/max_ratio"]),
    ) {
        let files = |dir: &str, end: &str| vec![file(&format!("{dir}/a{end}"), &text), file(&format!("/x{end}"), &text)];
        let configuration = Configuration {
            sysctl: files("/etc/sysctl.d", ".conf"),
            udev: files("/etc/udev/rules.d", ".rules"),
            tmpfiles: files("/etc/tmpfiles.d", ".conf"),
            tuned: files("/etc/tuned/own", "/tuned.conf").into_iter().chain([file("/etc/tuned/own/tuned.conf", &text)]).collect(),
            tuned_active: "own".to_string(),
            units: files("/etc/systemd/system", ".service"),
            cmdline: text.clone(),
        };
        // Every owner is named with a place in one of the files.
        for owner in configuration.owners(&knob.parse().unwrap(), &|_| None) {
            prop_assert!(!owner.place.is_empty());
        }
    }
}
