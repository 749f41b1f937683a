//! Plans of a machine with one disk.

use super::*;

/// What a machine has: `NAME=VALUE`, with mq-deadline's settings where that is the scheduler.
struct Machine {
    settings: Vec<Setting>,
}

impl Machine {
    fn new(scheduler: &str) -> Machine {
        let own = match scheduler {
            "mq-deadline" => &["sda/iosched/fifo_batch=32", "sda/iosched/async_depth=256"][..],
            "bfq" => &["sda/iosched/slice_idle=8", "sda/iosched/slice_idle_us=8000"],
            _ => &[],
        };
        let scheduler = format!("sda/scheduler={scheduler}");
        let always = [
            scheduler.as_str(),
            "vm.dirty_ratio=20",
            "vm.dirty_background_ratio=10",
            "vm.swappiness=60",
            "sda/nr_requests=64",
            "sda/wbt_lat_usec=2000",
            "sda/max_sectors_kb=1280",
            "sda/write_cache=write back",
            "sda/bdi/max_ratio=100",
            "sda/bdi/max_ratio_fine=1000000",
            "sda/bdi/min_ratio=10",
            "sda/bdi/strict_limit=0",
            "sda/iostats=1",
            "cgroup:/db/memory.high=max",
            "cgroup:/db/cpu.max=5000 100000",
            "cgroup:/db/cpu.max=max 100000",
        ];
        let settings = always.iter().chain(own).map(|text| text.parse().unwrap()).collect();
        Machine { settings }
    }

    fn read(&self, knob: &KnobName) -> Option<Reading> {
        let action = *knob == KnobName::machine("vm.drop_caches");
        let known = self.settings.iter().find(|setting| setting.knob == *knob);
        known.or_else(|| self.settings.first().filter(|_| action))?;
        let is = |setting: &str| knob.setting == setting;
        Some(Reading {
            knob: knob.clone(),
            path: catalog::path(knob).unwrap(),
            value: known.map(|setting| setting.value.clone()),
            unreadable: action.then(|| "write-only".to_string()),
            choices: match is("scheduler") {
                true => ["none", "mq-deadline", "kyber", "bfq"].map(str::to_string).to_vec(),
                false => Vec::new(),
            },
            min: is("vm.dirty").then_some(8192),
            max: if is("nr_requests") { Some(128) } else { is("max_sectors_kb").then_some(1280) },
            writable: !is("iostats"),
            owners: Vec::new(),
        })
    }

    fn plan(&self, wanted: &[&str], allow: bool) -> Result<Plan, Vec<Refusal>> {
        let wanted: Vec<Setting> = wanted.iter().map(|text| text.parse().unwrap()).collect();
        plan(&wanted, &|knob| self.read(knob), allow)
    }
}

/// Steps as `NAME=VALUE`, in order.
fn steps(plan: &Plan) -> Vec<String> {
    plan.steps.iter().map(|step| setting_of(step).to_string()).collect()
}

#[test]
fn a_setting_that_cannot_be_is_refused_with_path_value_and_range() {
    for (setting, why) in [
        ("vm.swapiness=10", "no knob has this name"),
        ("vm.swappiness=201", "/proc/sys/vm/swappiness takes 0 to 200, not 201"),
        ("vm.swappiness=low", "takes 0 to 200, not low"),
        ("vm.dirty_bytes=4096", "/proc/sys/vm/dirty_bytes takes 8192 or more bytes, not 4096"),
        ("vm.dirty_ratio=0", "/proc/sys/vm/dirty_ratio takes 1 to 100 %, not 0"),
        ("vm.dirty_ratio=101", "takes 1 to 100 %"),
        ("vm.dirty=20", "a limit is set as vm.dirty_bytes=BYTES or vm.dirty_ratio=PERCENT"),
        ("vm.dirty_background_bytes=0", "takes 1 or more bytes"),
        ("vm.drop_caches=4", "takes 1 to 3, not 4"),
        ("vm.nr_hugepages=10", "shows this knob and does not change it"),
        ("sda/scheduler=cfq", "takes none | mq-deadline | kyber | bfq, not cfq"),
        ("sda/scheduler=1", "takes none | mq-deadline | kyber | bfq, not 1"),
        ("sda/nr_requests=3", "/sys/block/sda/queue/nr_requests takes 4 to 128 requests, not 3"),
        ("sda/nr_requests=256", "takes 4 to 128 requests"),
        ("sda/max_sectors_kb=2560", "takes 4 to 1280 KiB, not 2560"),
        ("sda/wbt_lat_usec=-1", "takes 0 to 2^32-1 µs, not -1"),
        ("sda/iosched/fifo_batch=1", "a setting of the scheduler mq-deadline, but none will be in force"),
        ("sda/iostats=0", "/sys/block/sda/queue/iostats is read-only"),
        (
            "sda/bdi/max_bytes=4096",
            "no /sys/block/sda/bdi/max_bytes on this machine; kernels have it since 6.2",
        ),
        ("sdb/nr_requests=4", "no /sys/block/sdb/queue/nr_requests on this machine"),
        ("sda/bdi/max_ratio=5", "the kernel refuses sda/bdi/min_ratio=10 above sda/bdi/max_ratio=5"),
        ("sda/write_cache=write through", "this can lose data"),
        ("cgroup:/db/cpu.max=5000", "takes QUOTA PERIOD or max PERIOD"),
        ("cgroup:/db/cpu.max=100 100000", "a QUOTA of 1000 or more"),
        ("cgroup:/db/memory.high=low", "takes max, or 0 or more bytes, not low"),
        ("cgroup:/db/io.max/8:0/wbps=0", "no /sys/fs/cgroup/db/io.max on this machine"),
    ] {
        let refusals = Machine::new("none").plan(&[setting], false).expect_err(setting);
        let text = refusals.iter().map(Refusal::to_string).collect::<Vec<_>>().join("\n");
        assert!(text.starts_with(setting) && text.contains(why), "{setting}: expected {why:?}, got {text}");
    }
}

#[test]
fn contradictions_are_refused() {
    for (wanted, why) in [
        (&["vm.swappiness=1", "vm.swappiness=2"][..], "the same knob is set twice"),
        (
            &["vm.dirty_bytes=1GB", "vm.dirty_ratio=10"],
            "the same knob is set twice; the other is vm.dirty_bytes=1000000000",
        ),
        (&["vm.dirty_bytes=1MB", "vm.dirty_background_bytes=1MB"], "not below vm.dirty_bytes=1000000"),
        (&["vm.dirty_background_ratio=30", "vm.dirty_ratio=20"], "not below vm.dirty_ratio=20"),
        (
            &["sda/bdi/max_ratio=50", "sda/bdi/max_ratio_fine=500000"],
            "this is sda/bdi/max_ratio in another unit",
        ),
        (&["sda/scheduler=none", "sda/iosched/fifo_batch=4"], "but none will be in force"),
        (&["sda/scheduler=none", "sda/nr_requests=200"], "takes 4 to 128 requests"),
    ] {
        let refusals = Machine::new("mq-deadline").plan(wanted, false).expect_err(why);
        let text = refusals.iter().map(Refusal::to_string).collect::<Vec<_>>().join("\n");
        assert!(text.contains(why), "expected {why:?}, got {text}");
        assert_eq!(refusals.len(), 1, "{text}");
    }
}

#[test]
fn all_reasons_are_told_at_once() {
    let refusals = Machine::new("none").plan(&["vm.swappiness=999", "sda/nr_requests=1", "x=1"], false);
    assert_eq!(refusals.unwrap_err().len(), 3);
}

#[test]
fn steps_come_in_the_order_that_works() {
    for (wanted, expected) in [
        (
            &[
                "sda/wbt_lat_usec=0",
                "sda/iosched/fifo_batch=4",
                "sda/nr_requests=256",
                "sda/scheduler=mq-deadline",
            ][..],
            &[
                "sda/scheduler=mq-deadline",
                "sda/nr_requests=256",
                "sda/iosched/fifo_batch=4",
                "sda/wbt_lat_usec=0",
            ][..],
        ),
        (
            &["vm.dirty_bytes=15MB", "vm.dirty_background_bytes=7MB"],
            &["vm.dirty_background_bytes=7000000", "vm.dirty_bytes=15000000"],
        ),
        (
            &["vm.dirty_background_ratio=30", "vm.dirty_ratio=40"],
            &["vm.dirty_ratio=40", "vm.dirty_background_ratio=30"],
        ),
        (
            &["vm.dirty_ratio=8", "vm.dirty_background_ratio=4"],
            &["vm.dirty_background_ratio=4", "vm.dirty_ratio=8"],
        ),
        (&["sda/bdi/max_ratio=5", "sda/bdi/min_ratio=1"], &["sda/bdi/min_ratio=1", "sda/bdi/max_ratio=5"]),
        (
            &["vm.drop_caches=3", "sda/bdi/strict_limit=1", "sda/bdi/max_ratio=50"],
            &["sda/bdi/max_ratio=50", "sda/bdi/strict_limit=1", "vm.drop_caches=3"],
        ),
    ] {
        let plan = Machine::new("none").plan(wanted, false).unwrap();
        assert_eq!(steps(&plan), expected);
    }
}

#[test]
fn what_a_step_resets_is_kept_too() {
    let deadline = Machine::new("mq-deadline");
    let touched = |plan: &Plan| plan.touched.iter().map(Setting::to_string).collect::<Vec<_>>();
    let switch = deadline.plan(&["sda/scheduler=none"], false).unwrap();
    assert_eq!(
        touched(&switch),
        [
            "sda/nr_requests=64",
            "sda/wbt_lat_usec=2000",
            "sda/iosched/async_depth=256",
            "sda/iosched/fifo_batch=32"
        ]
    );
    let depth = deadline.plan(&["sda/nr_requests=512"], false).unwrap();
    assert_eq!(touched(&depth), ["sda/iosched/async_depth=256"]);
    let share = deadline.plan(&["sda/bdi/max_ratio=50"], false).unwrap();
    assert_eq!(touched(&share), ["sda/bdi/max_ratio_fine=1000000"]);
}

#[test]
fn a_value_in_force_is_no_step_unless_it_will_be_reset() {
    let none = Machine::new("none");
    let idle = none.plan(&["sda/nr_requests=64"], false).unwrap();
    assert_eq!((idle.steps.len(), idle.notes), (0, vec!["sda/nr_requests=64 already".to_string()]));
    let kept = none.plan(&["sda/nr_requests=64", "sda/scheduler=mq-deadline"], false).unwrap();
    assert_eq!(steps(&kept), ["sda/scheduler=mq-deadline", "sda/nr_requests=64"]);
    assert!(kept.touched.iter().all(|setting| setting.knob.setting != "nr_requests"));
}

#[test]
fn a_setting_of_the_scheduler_to_be_starts_from_its_default() {
    let wanted = ["sda/scheduler=mq-deadline", "sda/iosched/fifo_batch=4", "sda/iosched/async_depth=32"];
    let plan = Machine::new("none").plan(&wanted, false).unwrap();
    let from: Vec<String> = plan.steps.iter().map(|step| step.from.to_string()).collect();
    assert_eq!(from, ["none", "16", "64"]);
}

#[test]
fn traps_are_told_before_the_transaction() {
    let none = Machine::new("none");
    for (wanted, note) in [
        (
            &["vm.dirty_bytes=15MB"][..],
            Some(
                "vm.dirty_background_ratio=10 stays; where that is not below vm.dirty, the kernel takes half of it",
            ),
        ),
        (&["vm.dirty_ratio=15"], None),
        (&["vm.dirty_ratio=5"], Some("the kernel takes half of it")),
        (&["vm.dirty_bytes=15MB", "vm.dirty_background_bytes=7MB"], None),
        (
            &["sda/bdi/strict_limit=1"],
            Some("sda/bdi/strict_limit=1 has no effect while sda/bdi/max_ratio is 100"),
        ),
        (&["sda/bdi/strict_limit=1", "sda/bdi/max_ratio=50"], None),
    ] {
        let notes = none.plan(wanted, false).unwrap().notes.join("\n");
        match note {
            Some(note) => assert!(notes.contains(note), "{wanted:?}: {notes}"),
            None => assert_eq!(notes, "", "{wanted:?}"),
        }
    }
}

#[test]
fn data_may_be_risked_only_by_name() {
    let plan = Machine::new("none").plan(&["sda/write_cache=write through"], true).unwrap();
    assert_eq!(steps(&plan), ["sda/write_cache=write through"]);
}
