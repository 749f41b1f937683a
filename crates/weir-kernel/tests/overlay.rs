//! Syncs of files on overlayfs, as containers have: the kernel says neither the disk nor the inode that is written.

#![allow(clippy::unwrap_used)] // test code throughout; clippy knows that only of functions under #[test]

#[allow(dead_code)] // other tests limit what is dirty on theirs
mod lab;

use std::io::{self, Write};
use std::process::{Command, Stdio};

use lab::Device;
use weir_blocktrace::fsync::{Analyst, Cause, Sampling};
use weir_kernel::fsync::{FsyncSession, Options, Storage};
use weir_kernel::sync_sensor::{SyncSession, Whose};

/// Syncs twenty times for each line that it reads.
const SYNCS: &str = "import os,sys\nf=os.open('a',66)\nfor line in sys.stdin:\n for i in range(20): os.pwrite(f,b'x'*4096,0); os.fsync(f)";

/// A program of Python in a folder on overlayfs, as a container has, whose upper layer is on the device. `a` is a file of the lower
/// layer. `None`, and a word of it, where this kernel has no overlayfs.
fn python_on_overlay(test: &str, device: &Device, program: &str) -> Option<Command> {
    const MOUNT: &str = "mkdir -p lower upper work over && echo >>lower/a && \
        mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work over && cd over && exec \"$@\"";
    let on_overlay = |words: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", MOUNT, "sh"]).args(words).current_dir(device.mount());
        command
    };
    if !on_overlay(&["true"]).status().unwrap().success() {
        let _ = writeln!(io::stderr(), "not run: {test} lacks overlayfs");
        return None;
    }
    Some(on_overlay(&["python3", "-Ic", program]))
}

/// CLOCK_MONOTONIC.
fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing; this clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[test]
fn root_syncs_on_overlayfs_are_those_of_the_disk_of_its_upper_layer() {
    let test = "root_syncs_on_overlayfs_are_those_of_the_disk_of_its_upper_layer";
    let Some(device) = Device::create(test, "ext4") else { return };
    let programs = [
        "f=os.open('new',66)\nfor i in range(10): os.write(f,b'x'*4096); os.fsync(f)",
        "f=os.open('a',66)\nfor i in range(10): os.write(f,b'x'*4096); os.fdatasync(f)",
        "f=os.open('new',66|os.O_DSYNC)\nfor i in range(10): os.write(f,b'x'*4096)",
        "f=os.open('new',66);os.ftruncate(f,4096);m=mmap.mmap(f,4096)\nfor i in range(10): m[0]=i; m.flush()",
    ];
    let mut session = SyncSession::start(&Whose::Everybody).unwrap();
    for program in programs {
        let Some(mut command) = python_on_overlay(test, &device, &format!("import os,mmap\n{program}"))
        else {
            return;
        };
        assert!(command.status().unwrap().success(), "{program}");
        let found = session.look(now_ns()).devices.remove(&device.number).unwrap_or_default();
        assert_eq!((found.syncs.ended.count(), found.syncs.under_way), (10, 0), "{program}");
    }
}

/// A database in a container that has no volume.
#[test]
fn root_what_syncs_on_overlayfs_wait_for_is_seen_on_the_disk_of_its_upper_layer() {
    let test = "root_what_syncs_on_overlayfs_wait_for_is_seen_on_the_disk_of_its_upper_layer";
    let Some(device) = Device::create(test, "ext4") else { return };
    let Some(mut python) = python_on_overlay(test, &device, SYNCS) else { return };
    device.throttle("write_iops=200");
    let mut syncer = python.stdin(Stdio::piped()).spawn().unwrap();

    let mut storage = Storage::default();
    let options = Options { pid: Some(syncer.id()), stack_every_ns: 1_000_000, ..Options::default() };
    let mut session = FsyncSession::start(&mut storage, &options).unwrap();
    let mut analyst = Analyst::new(Sampling { stack_every_ns: 1_000_000, slow_ns: None });
    writeln!(syncer.stdin.take().unwrap(), "go").unwrap();
    assert!(syncer.wait().unwrap().success());
    session.drain(&mut analyst).unwrap();
    let ledgers = analyst.take_ledgers();
    let share = |causes: &[Cause]| -> f64 {
        let of_all = ledgers.iter().flat_map(|of| &of.phases).flat_map(|row| &row.causes);
        of_all.filter(|(cause, _)| causes.contains(cause)).map(|(_, share)| share).sum()
    };
    assert_eq!((ledgers.len(), share(&[Cause::Unseen])), (1, 0.0), "{ledgers:?}");
    let of_the_device = [Cause::Held, Cause::Queue, Cause::Device, Cause::DeviceFlush];
    assert!(share(&of_the_device) > 0.5, "{ledgers:?}");
}
