//! Devices whose pages come to be another bdi's.

use super::*;

/// A disk that was unplugged while it was mounted, or a file system that was mounted late.
#[test]
fn a_device_that_comes_back_under_another_name_has_that_ones_limit() {
    for of_device in [true, false] {
        let mut stage = Stage::new(1, of_device);
        stage.sample(&[set(20)]);
        (stage.there.borrow_mut()[0], stage.names.borrow_mut()[0]) = (false, "loop7".to_string());
        stage.sample(&[KEEP]);
        stage.told();
        stage.there.borrow_mut()[0] = true;
        *stage.bdi.borrow_mut() = "share".to_string();
        stage.share.borrow_mut().refuses = of_device;
        (0..10).for_each(|_| stage.sample(&[KEEP]));
        if of_device {
            assert_eq!(stage.told(), ["loop0: the kernel refused: none here"], "it is not there yet");
            stage.share.borrow_mut().refuses = false;
            (0..10).for_each(|_| stage.sample(&[KEEP]));
        }
        let mut told = stage.told();
        let turns = told.pop_if(|last| *last == "loop7: turns share now");
        assert_eq!(told, ["loop0: loop7 is guarded in its place", "loop7: the device is back"]);
        assert_eq!(turns.is_some(), of_device);
        stage.done();
        stage.sample(&[set(10)]);
        let of_another = std::mem::take(&mut stage.share.borrow_mut().done);
        let (before, now) = (stage.done(), vec!["set 10".to_string()]);
        assert_eq!((before, of_another), if of_device { (vec![], now) } else { (now, vec![]) });
        assert_eq!(stage.control_loop.state(stage.now, 0).devices[0].name, "loop7");
    }
}

/// btrfs has a bdi of its own, which goes with an unmount; the next mount brings another one.
#[test]
fn a_device_has_the_limit_of_the_bdi_that_has_its_pages() {
    let mut stage = Stage::new(1, true);
    stage.sample(&[set(20)]);
    stage.told();
    // The device is there all the time.
    *stage.bdi.borrow_mut() = "share".to_string();
    stage.knob.borrow_mut().beats.push_back(Move::Gone { said: String::new() });
    (0..10).for_each(|_| stage.sample(&[KEEP]));
    let told = ["loop0: the device is gone", "loop0: the device is back", "loop0: turns share now"];
    assert_eq!(stage.told(), told);
    // Now a limit is in force that does not go.
    stage.sample(&[set(10)]);
    stage.told();
    stage.done();
    let mut remount = |bdi: &str, refuses: bool| {
        *stage.bdi.borrow_mut() = bdi.to_string();
        stage.share.borrow_mut().refuses = refuses;
        stage.remounted.set(true);
        (0..11).for_each(|_| stage.sample(&[KEEP]));
        assert!(!stage.remounted.get());
        let device = stage.control_loop.state(stage.now, 0).devices[0].clone();
        assert_eq!(device.standing, Standing::Guarding);
        (device.actuator, stage.told())
    };
    assert_eq!(remount("share", false), ("share".to_string(), vec![]));
    // Where several bdis have its pages, it stays.
    assert_eq!(remount("knob", true), ("share".to_string(), vec![]));
    let told = ["loop0: the device is gone", "loop0: the device is back", "loop0: turns knob now"];
    assert_eq!(remount("knob", false), ("knob".to_string(), told.map(String::from).to_vec()));
    stage.sample(&[set(9)]);
    assert_eq!(stage.done(), ["set 9"]);
    stage.told();
    stage.share.borrow_mut().refuses = true;
    stage.there.borrow_mut()[0] = false;
    stage.sample(&[KEEP]);
    stage.there.borrow_mut()[0] = true;
    (0..10).for_each(|_| stage.sample(&[KEEP]));
    assert_eq!(stage.told(), told[..2], "that of before");
    stage.sample(&[set(8)]);
    assert_eq!(stage.done(), ["set 8"]);
}

/// As a btrfs over two devices has.
#[test]
fn devices_leave_a_bdi_and_come_to_it_together() {
    let mut stage = Stage::new(2, true);
    for bdi in ["share", "knob"] {
        stage.there.borrow_mut().fill(false);
        stage.sample(&[KEEP]);
        stage.there.borrow_mut().fill(true);
        *stage.bdi.borrow_mut() = bdi.to_string();
        (0..10).for_each(|_| stage.sample(&[KEEP]));
        let devices = stage.control_loop.state(stage.now, 0).devices;
        assert_eq!(devices.iter().map(|device| device.actuator.as_str()).collect::<Vec<_>>(), [bdi, bdi]);
        assert_eq!(stage.control_loop.homes[0], stage.control_loop.homes[1], "{bdi}");
    }
    assert_eq!((stage.knob.borrow().taken, stage.share.borrow().taken), (2, 1));
    // Limits of cgroups come after all of those.
    let knob = "cgroup:/backup/io.max/7:0/wbps".parse().unwrap();
    let turned = Switch::Cgroup { actuator: Actuator::Cgroup(knob), why: "dd is past it".to_string() };
    *stage.chosen.next.borrow_mut() = Some(turned);
    stage.sample(&[set(8), set(9)]);
    let of_cgroup = stage.throttle.borrow().done.clone();
    assert_eq!((stage.done(), of_cgroup), (vec!["set 8".to_string()], vec!["set 9".to_string()]));
    // One that goes leaves the limit to the other.
    stage.there.borrow_mut()[0] = false;
    stage.sample(&[set(7)]);
    assert_eq!(stage.done(), ["set 7"]);
}
