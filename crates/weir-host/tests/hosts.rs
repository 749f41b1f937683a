//! Captured and hand-made trees of machines: what is read from them, and what is said of what is not.
#![allow(clippy::unwrap_used)] // test code throughout; clippy knows that only of functions under #[test]

use std::path::{Path, PathBuf};

use weir_core::target::{Conditions, LayerKind, TargetFacts};
use weir_host::Host;

fn tree(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts").join(name)
}

fn facts(name: &str, path: &str) -> TargetFacts {
    Host::at(&tree(name)).target(Path::new(path)).unwrap()
}

fn conditions(name: &str) -> Conditions {
    Host::at(&tree(name)).conditions(None)
}

/// The stack in one line: kinds and names from the top down.
fn line(facts: &TargetFacts) -> String {
    let file_system = facts.file_system.iter().map(|fs| fs.kind.clone());
    let layers = facts.stack.iter().map(|layer| format!("{} {}", layer.kind.word(), layer.name));
    file_system.chain(layers).collect::<Vec<_>>().join(" > ")
}

#[test]
fn every_target_resolves_to_its_stack() {
    let raid = "md md0 > partition sda2 > disk sda > partition sdb2 > disk sdb > partition sdc2 > disk sdc > partition sdd2 > disk sdd";
    for (name, path, stack, device, bdi) in [
        ("virtio-ext4", "/srv/db", "ext4 > disk vda", Some("vda"), Some("254:0")),
        ("virtio-ext4", "/mnt/loop/x", "xfs > loop loop0 > disk vda", Some("loop0"), Some("7:0")),
        ("virtio-ext4", "/dev/loop0", "loop loop0 > disk vda", Some("loop0"), Some("7:0")),
        ("virtio-ext4", "/dev/shm/x", "tmpfs", None, None),
        (
            "lvm-md-raid10-xfs",
            "/var/lib/mysql/ibdata1",
            &format!("xfs > dm dm-0 > {raid}"),
            Some("md0"),
            Some("253:0"),
        ),
        (
            "lvm-md-raid10-xfs",
            "/dev/mapper/vg0-mysql",
            &format!("dm dm-0 > {raid}"),
            Some("md0"),
            Some("253:0"),
        ),
        (
            "lvm-md-raid10-xfs",
            "/srv/two words/f",
            &format!("xfs > dm dm-1 > {raid}"),
            Some("md0"),
            Some("253:1"),
        ),
        ("lvm-md-raid10-xfs", "/srv", "ext4 > partition sda1 > disk sda", Some("sda"), Some("8:0")),
        (
            "nvme-partitions",
            "/srv/pg",
            "ext4 > partition nvme0n1p3 > disk nvme0n1",
            Some("nvme0n1"),
            Some("259:0"),
        ),
        (
            "dm-crypt-lvm",
            "/home",
            "ext4 > dm dm-1 > dm dm-0 > partition sda3 > disk sda",
            Some("sda"),
            Some("252:1"),
        ),
        (
            "btrfs-two-disks",
            "/data/db",
            "btrfs > partition sdb1 > disk sdb > disk sdc",
            None,
            Some("btrfs-1"),
        ),
        ("container-overlay", "/var/lib/mysql", "overlay", None, None),
        (
            "container-overlay",
            "/data",
            "xfs > partition nvme1n1p1 > disk nvme1n1",
            Some("nvme1n1"),
            Some("259:0"),
        ),
        ("container-overlay", "/hidden", "ext4", None, None),
        ("container-overlay", "/backup", "nfs4", None, Some("0:70")),
    ] {
        let facts = facts(name, path);
        assert_eq!(line(&facts), stack, "{name} {path}");
        assert_eq!(facts.device.as_deref(), device, "{name} {path}");
        assert_eq!(facts.bdi.map(|bdi| bdi.name).as_deref(), bdi, "{name} {path}");
    }
}

#[test]
fn what_cannot_be_seen_is_said() {
    for (name, path, said) in [
        ("virtio-ext4", "/", "vda: a virtual disk"),
        ("virtio-ext4", "/dev/shm", "in memory and swap"),
        ("lvm-md-raid10-xfs", "/srv/two words", "logdev=/dev/sde1: part of this file system"),
        ("dm-crypt-lvm", "/", "sda (DELL PERC H730P Mini): a controller or hypervisor presents it"),
        ("btrfs-two-disks", "/", "btrfs over sdb1, sdc: which of them holds a block"),
        ("btrfs-two-disks", "/", "no single device stands for it"),
        ("container-overlay", "/x", "upper folder /var/lib/containers/17/diff is not visible"),
        ("container-overlay", "/hidden", "device 259:9 is not under /sys/dev/block"),
        ("container-overlay", "/backup", "10.0.0.5:/export/backup is served over the network"),
        ("container-overlay", "/data", "nvme1n1 (Amazon Elastic Block Store): a controller or hypervisor"),
        ("container-overlay", "/tank", "zfs: pool and devices of tank/db"),
        ("container-overlay", "/ro", "overlay without upperdir"),
        ("container-overlay", "/share", "virtiofs: the hypervisor's host"),
        ("container-overlay", "/s3", "fuse.s3fs: s3fs is served over the network"),
        ("damaged", "/", "sys/class/block/sda/queue/nr_requests, line 1: expected u64, got `many`"),
        ("damaged", "/", "sys/class/bdi/8:0/max_ratio, line 1: expected u64, got `-`"),
    ] {
        let blind = facts(name, path).blind;
        assert!(
            blind.iter().any(|sentence| sentence.contains(said)),
            "{name} {path}: {said} not in {blind:#?}"
        );
    }
    assert!(facts("nvme-partitions", "/srv/pg").blind.is_empty());
}

#[test]
fn layers_and_queues_carry_their_details() {
    let raid = facts("lvm-md-raid10-xfs", "/var/lib/mysql");
    let LayerKind::Md { level, raid_disks, chunk_bytes, sync_action, .. } = &raid.layer("md0").unwrap().kind
    else {
        panic!("{:?}", raid.stack);
    };
    assert_eq!(
        (level.as_str(), *raid_disks, *chunk_bytes, sync_action.as_str()),
        ("raid10", 4, 524_288, "check")
    );
    let LayerKind::Dm { dm_name, dm_type } = &raid.stack[0].kind else { panic!("{:?}", raid.stack[0]) };
    assert_eq!((dm_name.as_str(), dm_type.as_str()), ("vg0-mysql", "LVM"));
    assert_eq!(raid.disks().filter(|d| d.model.as_deref() == Some("ST4000NM0035-1V4")).count(), 4);
    let disk = raid.layer("sda").unwrap();
    assert_eq!((disk.size_bytes, disk.firmware.as_deref()), (7_814_037_168 * 512, Some("TN03")));
    let queue = disk.queue.as_ref().unwrap();
    assert_eq!((queue.rotational, queue.wbt_lat_usec), (Some(true), Some(75_000)));
    let options = raid.file_system.unwrap().options;
    assert!(["noatime", "logbsize=256k"].iter().all(|o| options.contains(&o.to_string())), "{options:?}");

    let nvme = facts("nvme-partitions", "/srv/pg");
    let queue = nvme.device_queue().unwrap();
    assert_eq!(
        (queue.scheduler.as_deref(), queue.fua, queue.hardware_queues),
        (Some("none"), Some(true), Some(4))
    );
    assert_eq!(nvme.bdi.as_ref().unwrap().max_ratio_ppm, Some(1_000_000));
    assert_eq!(nvme.device_layer().unwrap().bus.as_deref(), Some("nvme"));

    let looped = facts("virtio-ext4", "/mnt/loop");
    let LayerKind::Loop { backing_file, file_system, direct_io, .. } = &looped.stack[0].kind else {
        panic!("{:?}", looped.stack);
    };
    assert_eq!((backing_file.as_str(), *direct_io), ("/srv/image", true));
    assert_eq!(file_system.as_ref().unwrap().kind, "ext4");
    assert_eq!(looped.layer("vda").unwrap().beneath_loop.as_deref(), Some("loop0"));
}

#[test]
fn throttles_of_both_versions_reach_the_facts() {
    let limits = |facts: TargetFacts| {
        let one = |t: weir_core::target::Throttle| {
            format!("v{} {} {} {:?}", t.version, t.cgroup, t.device, t.limits)
        };
        facts.throttles.into_iter().map(one).collect::<Vec<_>>()
    };
    for (name, path, expected) in [
        ("virtio-ext4", "/mnt/loop", vec![r#"v1 / loop0 {"wbps": 262144000, "wiops": 3000}"#]),
        ("virtio-ext4", "/", vec![]),
        (
            "lvm-md-raid10-xfs",
            "/var/lib/mysql",
            vec![
                r#"v2 /system.slice/mysql.service dm-0 {"wbps": 104857600, "wiops": 2000}"#,
                r#"v2 /system.slice sda {"latency_us": 75000}"#,
                r#"v2 /system.slice dm-0 {"latency_us": 50000}"#,
            ],
        ),
        (
            "container-overlay",
            "/data",
            vec![r#"v2 /c1 nvme1n1 {"rbps": 52428800, "riops": 3000, "wiops": 3000}"#],
        ),
    ] {
        assert_eq!(limits(facts(name, path)), expected, "{name} {path}");
    }
}

#[test]
fn conditions_describe_each_machine() {
    for (name, kernel, architecture, processors, virtualised) in [
        ("virtio-ext4", "6.18.44", "x86_64", 2, Some("hypervisor flag of the processor")),
        ("lvm-md-raid10-xfs", "5.15.0-113-generic", std::env::consts::ARCH, 24, None),
        ("nvme-partitions", "6.12.41+deb13-amd64", "x86_64", 64, None),
        ("container-overlay", "6.6.52-cloud", "x86_64", 8, Some("Amazon EC2 m6i.2xlarge")),
    ] {
        let found = conditions(name);
        assert_eq!((found.kernel.as_str(), found.architecture.as_str()), (kernel, architecture), "{name}");
        assert_eq!(
            (found.cpu.processors, found.cpu.virtualised.as_deref()),
            (processors, virtualised),
            "{name}"
        );
    }
    let nvme = conditions("nvme-partitions");
    assert_eq!((nvme.cpu.governors["performance"], nvme.cpu.governors["schedutil"]), (3, 1));
    assert_eq!((nvme.limits.root, nvme.limits.io_uring_disabled), (false, Some(1)));
    assert_eq!((nvme.vm.dirty.bytes, nvme.vm.dirty.ratio_percent), (Some(268_435_456), Some(0)));
    assert!(nvme.unreadable.iter().any(|sentence| sentence.contains("needs root")), "{:?}", nvme.unreadable);

    let raid = conditions("lvm-md-raid10-xfs");
    assert_eq!((raid.memory.swaps[0].used_bytes, raid.vm.swappiness), (94_300 << 10, Some(10)));
    assert_eq!(raid.cgroups[0].limits["/system.slice/mysql.service memory.max"], "51539607552");
    assert!(
        !raid.cgroups[0].limits.keys().any(|key| key.ends_with("memory.high") || key.ends_with("cpu.max"))
    );

    let arm = conditions("dm-crypt-lvm");
    assert_eq!(arm.cpu.model.as_deref(), Some("implementer 0x41 part 0xd0c"));
    assert_eq!(arm.limits.memlock_bytes, None);
    assert!(arm.unreadable.iter().any(|sentence| sentence.contains("the kernel keeps none")));

    let pod = conditions("container-overlay");
    let limits: Vec<&String> = pod.cgroups[0].limits.keys().collect();
    assert_eq!(limits, ["/ memory.max", "/c1 cpu.max", "/c1 io.max", "/c1 memory.max"]);
}

#[test]
fn damage_is_named_and_stops_nothing_else() {
    let found = conditions("damaged");
    for said in [
        "proc/meminfo, line 2: expected NAME: NUMBER kB, got `MemFree: lots`",
        "proc/pressure/io, line 1: expected avg10=PERCENT",
        "proc/self/cgroup, line 1: expected ID:CONTROLLERS:/PATH, got `nonsense`",
        "proc/loadavg, line 1: expected three load averages",
        "proc/sys/vm/swappiness, line 1: expected u64, got `sixty`",
        "proc/self/status, line 1: expected Uid:",
    ] {
        assert!(found.unreadable.iter().any(|s| s.contains(said)), "{said} not in {:#?}", found.unreadable);
    }
    assert_eq!((found.kernel.as_str(), found.vm.dirty.ratio_percent), ("6.1.0", Some(20)));
    let host = Host::at(&tree("damaged"));
    let sample = host.sample(&host.target(Path::new("/")).unwrap());
    for said in
        ["proc/diskstats, line 1: expected sectors read, got `three`", "proc/stat, line 1: expected cpu"]
    {
        assert!(sample.unreadable.iter().any(|s| s.contains(said)), "{said} not in {:#?}", sample.unreadable);
    }
    let error = Host::at(&tree("damaged-mountinfo")).target(Path::new("/")).unwrap_err().to_string();
    assert!(error.contains("proc/self/mountinfo, line 4: expected a hyphen"), "{error}");
    let error = Host::at(&tree("no-such-tree")).target(Path::new("/")).unwrap_err();
    assert!(error.is_absent() && error.to_string().contains("mountinfo"), "{error}");
}

#[test]
fn samples_of_a_tree_cover_the_targets_devices() {
    let host = Host::at(&tree("lvm-md-raid10-xfs"));
    let facts = host.target(Path::new("/var/lib/mysql")).unwrap();
    let load = host.sample(&facts).since(&host.sample(&facts));
    assert_eq!(load.devices.len(), facts.stack.len());
    assert_eq!(load.devices["md0"].reads_per_second, 0.0);
    assert_eq!((load.memory.dirty_bytes, load.loadavg), (1024 * 4096, Some([1.25, 0.8, 0.4])));
    assert_eq!(load.pressure.len(), 3);
}
