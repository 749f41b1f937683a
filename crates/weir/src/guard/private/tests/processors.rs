//! Who writes pages of others, and copies that follow one another.

use super::*;

/// One copy follows another, and the next is in its first write for as long as the device takes.
#[test]
fn whose_copy_has_just_ended_is_held_while_somebody_of_its_account_is_inside() {
    let procs = "/sys/fs/cgroup/backup.service/cgroup.procs";
    for (inside, of_others, expected) in [(true, false, 1), (false, false, 0), (true, true, 0)] {
        let mut stage = Stage::new(&[]);
        // Where it writes to is known from the second look on.
        while stage.privates.devices[0].groups.homes_len() == 0 {
            stage.sample_tenth();
        }
        assert_eq!(stage.done.borrow().taken.len(), 0);
        fs::remove_dir_all(stage.folder.path().join(format!("proc/{DD}"))).unwrap();
        stage.set(procs, if inside { "77" } else { "" });
        stage.put(77, "dd", "elsewhere.service");
        if of_others {
            stage.owns(77, 4_000_000);
        }
        stage.sample(1);
        assert_eq!(stage.done.borrow().taken.len(), expected, "{inside} {of_others}");
    }
}

/// It writes pages that another cgroup has, and a log of its own on another device.
#[test]
fn who_is_held_by_its_processor_time_alone_has_not_left_for_its_log_s_device() {
    let mut stage = Stage::new(&[]);
    let file = |name: &str| format!("/sys/fs/cgroup/backup.service/{name}");
    stage.set(&file("cpu.max"), "max 100000");
    stage.set(&file("cpu.stat"), "usage_usec 0");
    stage.set(&file("memory.stat"), "anon 1000000\nkernel 2000000\nfile 60000000");
    stage.put(5, "log", "other.service");
    (stage.kept, stage.counted, stage.to) = (Kept::Bad(0.1), 0, 1);
    stage.sample(4);
    let limits =
        |stage: &Stage| stage.privates.devices[0].groups.held.iter().find_map(|held| held.limits.quota);
    assert!(limits(&stage).is_some(), "{:?}", stage.privates.remarks(0));
    for second in 1..40 {
        stage.set(
            &file("io.stat"),
            &format!("7:0 rbytes=0 wbytes=0\n7:1 rbytes=0 wbytes={}", second * MB / 2),
        );
        stage.sample(1);
        assert!(limits(&stage).is_some(), "after {second} s: {:?}", stage.privates.remarks(0));
    }
}
