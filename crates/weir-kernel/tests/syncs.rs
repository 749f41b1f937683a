//! The sensor of syncs against the truth: what other processes did to a file system of the test's own.

#![allow(clippy::unwrap_used)] // test code throughout; clippy knows that only of functions under #[test]

mod lab;

use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use lab::{Device, Frozen};
use weir_control::{Bulk, SensorSource};
use weir_core::target::DeviceNumber;
use weir_kernel::sync_sensor::{Brackets, DeviceLook, SyncSession, Unit, Whose, unit};

/// Python says each call as it is; its own files are elsewhere.
const PYTHON: &str = "import os,sys,time,mmap,ctypes\n";

fn python(device: &Device, program: &str) -> Command {
    let mut command = Command::new("python3");
    command.args(["-Ic", &format!("{PYTHON}{program}")]).current_dir(device.mount());
    command
}

fn run(mut command: Command) {
    assert!(command.status().unwrap().success(), "{command:?}");
}

/// CLOCK_MONOTONIC.
fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing; this clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn look(session: &mut SyncSession, device: &Device) -> DeviceLook {
    let mut look = session.look(now_ns());
    assert_eq!((look.sensor.source, look.sensor.silent_ns, look.sensor.lost), (SensorSource::Syscalls, 0, 0));
    look.devices.remove(&device.number).unwrap_or_default()
}

/// Looks ten times a second until `is_done` says so of all that was seen together, 20 s at most.
fn watch(
    session: &mut SyncSession,
    device: &Device,
    mut is_done: impl FnMut(&DeviceLook) -> bool,
) -> DeviceLook {
    let mut all = DeviceLook::default();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(20) {
        let found = look(session, device);
        all.syncs.ended.merge(&found.syncs.ended);
        all.syncs.under_way = found.syncs.under_way;
        all.syncs.oldest_ns = all.syncs.oldest_ns.max(found.syncs.oldest_ns);
        all.syncs.held_back += found.syncs.held_back;
        all.syncs.held_back_ns += found.syncs.held_back_ns;
        all.left_out += found.left_out;
        let Bulk { held_back, held_back_ns, writers, dirtied_bytes, protected_bytes, .. } = found.bulk;
        all.bulk.held_back += held_back;
        all.bulk.held_back_ns += held_back_ns;
        all.bulk.writers.extend(writers);
        all.bulk.dirtied_bytes += dirtied_bytes;
        all.bulk.protected_bytes += protected_bytes;
        if is_done(&all) {
            break;
        }
        sleep(Duration::from_millis(100));
    }
    all
}

#[test]
fn root_every_way_to_sync_is_counted_exactly() {
    for fs in ["ext4", "xfs"] {
        let Some(device) = Device::create("root_every_way_to_sync_is_counted_exactly", fs) else { return };
        let cases = [
            ("fsync", 50, "f=os.open('a',66)\nfor i in range(50): os.write(f,b'x'*4096); os.fsync(f)"),
            (
                "fdatasync",
                50,
                "f=os.open('a',66)\nfor i in range(50): os.write(f,b'x'*4096); os.fdatasync(f)",
            ),
            ("O_DSYNC", 50, "f=os.open('a',66|os.O_DSYNC)\nfor i in range(50): os.write(f,b'x'*4096)"),
            ("O_SYNC", 50, "f=os.open('a',66|os.O_SYNC)\nfor i in range(50): os.pwrite(f,b'x'*4096,i*4096)"),
            (
                "RWF_DSYNC",
                50,
                "f=os.open('a',66)\nfor i in range(50): os.pwritev(f,[b'x'*4096],0,os.RWF_DSYNC)",
            ),
            (
                "msync",
                50,
                "f=os.open('a',66);os.ftruncate(f,4096);m=mmap.mmap(f,4096)\nfor i in range(50): m[0]=i; m.flush()",
            ),
            (
                "sync_file_range, which makes nothing durable",
                0,
                "f=os.open('a',66);c=ctypes.CDLL(None)\nfor i in range(100): os.pwrite(f,b'x'*4096,0); c.sync_file_range(f,ctypes.c_long(0),ctypes.c_long(0),2 if i%2 else 7)",
            ),
            ("plain writes", 0, "f=os.open('a',66)\nfor i in range(50): os.write(f,b'x'*4096)"),
            ("sync and syncfs", 0, "os.write(os.open('a',66),b'x'*4096);os.sync()"),
        ];
        let mut session = SyncSession::start(&Whose::Everybody).unwrap();
        for (name, expected, program) in cases {
            let begun = Instant::now();
            run(python(&device, program));
            let took_ns = begun.elapsed().as_nanos();
            let found = look(&mut session, &device);
            let ended = &found.syncs.ended;
            assert_eq!((ended.count(), found.syncs.under_way), (expected, 0), "{fs}: {name}");
            assert!(ended.sum() <= took_ns && (expected == 0) == (ended.sum() == 0), "{fs}: {name}");
        }
    }
}

/// Whether no place of a sync under way stays taken. Of a session that watches some program alone: others on this machine may be in
/// one at any moment.
fn lets_go(session: &SyncSession) -> bool {
    let until = Instant::now() + Duration::from_secs(10);
    while session.places_taken()[0] > 0 && Instant::now() < until {
        sleep(Duration::from_millis(10));
    }
    session.places_taken()[0] == 0
}

/// By a file or a registered one, linked to the write or not: of 40 the program logs each.
#[test]
fn root_syncs_through_io_uring_are_counted_exactly() {
    let test = "root_syncs_through_io_uring_are_counted_exactly";
    for fs in ["ext4", "xfs"] {
        let Some(device) = Device::create(test, fs) else { return };
        if !has_rings(test) {
            return;
        }
        let program = device.mount().join("oplog");
        let mut compiler = Command::new("clang");
        compiler.args(["-O1", "-pthread", "-o"]).arg(&program);
        run({
            compiler.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab/kernel-guest/oplog.c"));
            compiler
        });
        for whose in [Whose::Everybody, Whose::Comm("oplog".to_string())] {
            let mut session = SyncSession::start(&whose).unwrap();
            let mut commits = Command::new(&program);
            commits.args(["commit", "a", "40", "4096", "4194304", "ring"]).current_dir(device.mount());
            let log = String::from_utf8(commits.output().unwrap().stdout).unwrap();
            let logged: Vec<Vec<u64>> = log
                .lines()
                .map(|line| line.split(' ').skip(1).map(|word| word.parse().unwrap()).collect())
                .collect();
            let took_ns: u64 = logged.iter().map(|op| op[1] - op[0]).sum();
            assert_eq!((logged.len(), logged.iter().filter(|op| op[4] != 0).count()), (40, 0), "{log}");
            let found = look(&mut session, &device);
            let ended = &found.syncs.ended;
            assert_eq!((ended.count(), found.syncs.under_way, found.left_out), (40, 0, 0), "{fs}: {whose:?}");
            let seen_ns = ended.sum() as u64;
            assert!((1..=took_ns).contains(&seen_ns), "{fs}: {seen_ns} ns of {took_ns}");
            assert!(whose == Whose::Everybody || lets_go(&session), "{fs}: {whose:?}");
        }
    }
}

/// Hands in five fsyncs by a ring that has room for the end of one and is never read, says so when they are over, and stays.
const OVERFLOWS: &str = r#"
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void)
{
    struct io_uring_params said = { .flags = IORING_SETUP_CQSIZE, .cq_entries = 1 };
    int file = open("a", O_CREAT | O_RDWR, 0600), fd = syscall(SYS_io_uring_setup, 1, &said);
    char *ring = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQ_RING);
    struct io_uring_sqe *sqe = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQES);
    unsigned *tail = (void *)(ring + said.sq_off.tail);
    int handed_in = 0;
    for (int i = 0; i < 5; i++) {
        if (write(file, "x", 1) != 1)
            return 1;
        *sqe = (struct io_uring_sqe){ .opcode = IORING_OP_FSYNC, .fd = file };
        __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
        handed_in += syscall(SYS_io_uring_enter, fd, 1, 0, 0, 0, 0);
        usleep(200000);
        /* Back from the kernel, it ends what it may. */
        getppid();
    }
    printf("%d\n", handed_in);
    fflush(stdout);
    getchar();
}
"#;

#[test]
fn root_what_a_full_ring_does_not_tell_is_not_taken_for_a_hang() {
    let test = "root_what_a_full_ring_does_not_tell_is_not_taken_for_a_hang";
    let Some(device) = Device::create(test, "ext4") else { return };
    if !has_rings(test) {
        return;
    }
    fs::write(device.mount().join("full.c"), OVERFLOWS).unwrap();
    let mut compiler = Command::new("clang");
    compiler.args(["-O1", "-o", "full", "full.c"]).current_dir(device.mount());
    run(compiler);
    let mut session = SyncSession::start(&Whose::Comm("full".to_string())).unwrap();
    let mut full = Command::new(device.mount().join("full"));
    full.current_dir(device.mount()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut full = full.spawn().unwrap();
    let mut said = [0; 2];
    full.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
    assert_eq!(&said, b"5\n");
    let found = look(&mut session, &device);
    assert!((1..=5).contains(&found.syncs.ended.count()), "{found:?}");
    assert_eq!((found.syncs.under_way, found.syncs.oldest_ns), (0, 0));
    assert!(lets_go(&session));
    drop(full.stdin.take());
    full.wait().unwrap();
}

fn has_rings(test: &str) -> bool {
    let off = fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    let has = off.trim() != "2";
    if !has {
        let _ = writeln!(std::io::stderr(), "not run: {test} lacks io_uring");
    }
    has
}

#[test]
fn root_a_sync_that_hangs_shows_its_age() {
    let Some(device) = Device::create("root_a_sync_that_hangs_shows_its_age", "xfs") else { return };
    let mut session = SyncSession::start(&Whose::Everybody).unwrap();
    let mut writer = ready_to_write(&device);
    let frozen = Frozen::now(device.mount());
    writer.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    let begun = Instant::now();
    let seen = watch(&mut session, &device, |all| all.syncs.under_way > 0);
    assert_eq!(seen.syncs.under_way, 1);
    let age_ns = seen.syncs.oldest_ns;
    let later = look(&mut session, &device);
    assert!(later.syncs.oldest_ns > age_ns, "{} after {age_ns}", later.syncs.oldest_ns);
    assert!(u128::from(later.syncs.oldest_ns) <= begun.elapsed().as_nanos());
    let age_ns = later.syncs.oldest_ns;
    drop(frozen);
    assert!(writer.wait().unwrap().success());
    let over = look(&mut session, &device);
    assert_eq!((over.syncs.under_way, over.syncs.oldest_ns, over.syncs.ended.count()), (0, 0, 1));
    assert!(over.syncs.ended.sum() > u128::from(age_ns));
}

/// Has a file of the device open with O_DSYNC, and writes to it once more when told by a line.
fn ready_to_write(device: &Device) -> Child {
    let mut writer = python(
        device,
        "f=os.open('a',66|os.O_DSYNC);os.write(f,b'x'*4096);print('ready',flush=True);sys.stdin.readline();os.write(f,b'x')",
    );
    let mut writer = writer.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut ready = [0; 6];
    std::io::Read::read_exact(writer.stdout.as_mut().unwrap(), &mut ready).unwrap();
    writer
}

#[test]
fn root_a_sensor_at_rest_costs_other_calls_nothing_and_sees_no_sync() {
    let test = "root_a_sensor_at_rest_costs_other_calls_nothing_and_sees_no_sync";
    let Some(device) = Device::create(test, "xfs") else { return };
    let mut session = SyncSession::start(&Whose::Everybody).unwrap();
    let every_call = session.brackets() == Brackets::AllCalls;
    let twenty = "f=os.open('a',66)\nfor i in range(20): os.write(f,b'x'*4096); os.fsync(f)";
    let seen = |session: &mut SyncSession| {
        session.look(now_ns()).devices.remove(&device.number).unwrap_or_default().syncs
    };
    for _ in 0..3 {
        run(python(&device, twenty));
        assert_eq!(look(&mut session, &device).syncs.ended.count(), 20);
        // One is under way when it goes to rest, and ends meanwhile.
        let mut writer = ready_to_write(&device);
        let frozen = Frozen::now(device.mount());
        writer.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        let before = watch(&mut session, &device, |all| all.syncs.under_way > 0);
        assert_eq!((before.syncs.ended.count(), before.syncs.under_way), (1, 1));
        session.rest();
        if every_call {
            until_detached(&mut session, &device);
        }
        drop(frozen);
        assert!(writer.wait().unwrap().success());
        run(python(&device, twenty));
        session.wake().unwrap();
        let syncs = seen(&mut session);
        let expected = if every_call { 0 } else { 21 };
        assert_eq!((syncs.ended.count(), syncs.under_way), (expected, 0));
    }
}

/// A child that another test has forked holds the programs, too, until it has become its own program.
fn until_detached(session: &mut SyncSession, device: &Device) {
    let begun = Instant::now();
    loop {
        // Nothing is dirty: a frozen file system takes it.
        run(python(device, "os.fsync(os.open('a',0))"));
        let look = session.look(now_ns()).devices.remove(&device.number).unwrap_or_default();
        if look.syncs.ended.count() == 0 {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "syncs are still seen");
    }
}

/// `dd` onto the device, with more operands.
fn dd(device: &Device, operands: &[&str]) -> Command {
    let mut command = Command::new("dd");
    command.args(["if=/dev/zero", "status=none"]).args(operands).current_dir(device.mount());
    command
}

const COMMITS: &str =
    "f=os.open('a',66)\nfor i in range(100): os.pwrite(f,b'x'*4096,i*4096); os.fdatasync(f); time.sleep(.01)";

#[test]
fn root_a_copy_beside_commits_is_bulk_and_its_sync_is_left_out() {
    let Some(device) = Device::create("root_a_copy_beside_commits_is_bulk_and_its_sync_is_left_out", "xfs")
    else {
        return;
    };
    let mut session = SyncSession::start(&Whose::Everybody).unwrap();
    let mut copy = dd(&device, &["of=b", "bs=1M", "count=150", "conv=fsync"]).spawn().unwrap();
    let mut commits = python(&device, COMMITS).spawn().unwrap();
    let pid = copy.id();
    let all = watch(&mut session, &device, |_| is_over(&mut copy) & is_over(&mut commits));
    let rest = look(&mut session, &device);
    let count = all.syncs.ended.count() + rest.syncs.ended.count();
    assert_eq!((count, all.left_out + rest.left_out), (100, 1));
    let bytes: u64 =
        all.bulk.writers.iter().filter(|writer| writer.pid == pid).map(|writer| writer.bytes).sum();
    assert!(all.bulk.writers.iter().all(|writer| writer.pid != pid || writer.comm == "dd"), "{:?}", all.bulk);
    // It may end between two looks, and what it wrote last with it.
    assert!(bytes <= 150 << 20, "{bytes}");

    let others = "open('c','wb').write(b'x'*4000000)";
    run(python(&device, others));
    let mut sync = Command::new("sync");
    sync.arg(device.mount().join("c"));
    run(sync);
    let found = look(&mut session, &device);
    assert_eq!((found.syncs.ended.count(), found.left_out), (0, 1), "it wrote nothing itself");
}

/// Whether a sync counts must not depend on when its program was read last.
#[test]
fn root_times_of_access_are_nothing_written() {
    let test = "root_times_of_access_are_nothing_written";
    let Some(device) = Device::create(test, "ext4-without-journal") else { return };
    let mut session = SyncSession::start(&Whose::Everybody).unwrap();
    let reads = "\
os.utime('read',(0,0)); os.sync()
if os.fork(): sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
open('read').read()
io=dict(line.split(': ') for line in open('/proc/self/io'))
assert (int(io['wchar']),int(io['write_bytes'])//4096)==(0,1), io
os.fsync(os.open('others',os.O_RDONLY))";
    for _ in 0..3 {
        run(python(&device, "for name in ['read','others']: open(name,'wb').write(b'x'*4000000)"));
        run(python(&device, reads));
        let found = look(&mut session, &device);
        assert_eq!((found.syncs.ended.count(), found.left_out), (0, 1));
    }
    run(python(&device, "m=mmap.mmap(os.open('read',os.O_RDWR),4096); m[0]=1; m.flush()"));
    assert_eq!(look(&mut session, &device).syncs.ended.count(), 1, "written by memory");
}

/// Serves a file system of one empty file from Python (fuse.h, 7.31), in a mount namespace of its own, and syncs its file.
const SERVED: &str = r#"
import os,ctypes,signal,struct
fd=os.open('/dev/fuse',os.O_RDWR)
folder=os.path.abspath('served')
os.mkdir(folder)
options=b'fd=%d,rootmode=40000,user_id=0,group_id=0'%fd
assert ctypes.CDLL(None).mount(b'served',folder.encode(),b'fuse',0,options)==0
def attr(node): return struct.pack('<6Q10I',node,0,0,0,0,0,0,0,0,0o40755 if node==1 else 0o100644,1,0,0,0,4096,0)
def answer(call,node):
    if call==26: return struct.pack('<IIIIHHII',7,31,0,0,8,6,4096,1).ljust(64,b'\0')
    if call==1: return struct.pack('<4QII',2,0,9,9,0,0)+attr(2)
    if call in (3,4): return struct.pack('<QII',9,0,0)+attr(node)
    if call==14: return bytes(16)
    return b''
child=os.fork()
if child==0:
    # What it serves ends with it.
    signal.alarm(20)
    while True:
        _,call,unique,node=struct.unpack('<IIQQ',os.read(fd,1<<17)[:24])
        if call in (2,36,42): continue
        said=answer(call,node)
        os.write(fd,struct.pack('<IiQ',16+len(said),0,unique)+said)
os.close(fd)
f=os.open(folder+'/file',os.O_RDWR)
for _ in range(5): os.fsync(f)
print(os.fstat(f).st_dev,flush=True)
os.kill(child,9)
os.wait()
"#;

#[test]
fn root_what_a_program_serves_takes_no_place_of_a_device() {
    let Some(device) = Device::create("root_what_a_program_serves_takes_no_place_of_a_device", "ext4") else {
        return;
    };
    let mut session = SyncSession::start(&Whose::Everybody).unwrap();
    let mut served = Command::new("unshare");
    served.args(["--mount", "python3", "-Ic", SERVED]).current_dir(device.mount());
    let output = served.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    run(python(&device, "os.fsync(os.open('a',66))"));
    let seen = session.look(now_ns()).devices;
    let text = String::from_utf8(output.stdout).unwrap();
    let minor = libc::minor(text.trim().parse().unwrap());
    assert!(seen.contains_key(&device.number));
    assert!(!seen.contains_key(&DeviceNumber { major: 0, minor }), "{seen:?}");
}

/// The node of a device that is not opened, which no sync reaches, and a pipe in a folder.
#[test]
fn root_syncs_of_what_lies_on_no_storage_are_none() {
    let Some(device) = Device::create("root_syncs_of_what_lies_on_no_storage_are_none", "ext4") else {
        return;
    };
    let mut session = SyncSession::start(&Whose::Everybody).unwrap();
    let program = "os.write(os.open('a',66),b'x'*100000)\n\
                   d=os.open(sys.argv[1],os.O_PATH)\n\
                   for i in range(50):\n \
                   try: os.fsync(d)\n \
                   except OSError: pass\n\
                   os.mkfifo('f'); f=os.open('f',os.O_RDWR|os.O_DSYNC)\n\
                   for i in range(50): os.write(f,b'x'*100)";
    let number = device.number;
    let node = fs::read_link(format!("/sys/dev/block/{number}")).unwrap();
    let node = std::path::Path::new("/dev").join(node.file_name().unwrap());
    let mut command = python(&device, program);
    command.arg(node);
    run(command);
    let found = look(&mut session, &device);
    assert_eq!((found.syncs.ended.count(), found.left_out), (0, 0));
}

fn is_over(child: &mut Child) -> bool {
    child.try_wait().unwrap().is_some()
}

#[test]
fn root_what_is_dirty_is_told_of_the_device_alone() {
    let Some(device) = Device::create("root_what_is_dirty_is_told_of_the_device_alone", "xfs") else {
        return;
    };
    let mut session = SyncSession::start(&Whose::Everybody).unwrap();
    // A sync names the device.
    run(python(&device, "f=open('a','wb'); f.write(b'x'*4096); f.flush(); os.fsync(f.fileno()); os.sync()"));
    let all = |found: DeviceLook| found.backlog.map(|told| told.dirty_bytes + told.writeback_bytes);
    assert!(all(look(&mut session, &device)).unwrap() < 4 << 20);
    run(python(&device, "f=open('b','wb'); f.write(b'x'*(30<<20)); f.close()"));
    let told = all(look(&mut session, &device)).unwrap();
    assert!((28 << 20..36 << 20).contains(&told), "{told} bytes dirty after 30 MiB were written");
    run(python(&device, "os.sync()"));
    assert!(all(look(&mut session, &device)).unwrap() < 4 << 20);
}

#[test]
fn root_only_those_asked_for_are_protected() {
    let Some(device) = Device::create("root_only_those_asked_for_are_protected", "ext4") else { return };
    let own = std::process::id();
    let commits = || dd(&device, &["of=a", "bs=4k", "count=20", "oflag=dsync"]);
    let cases = [
        (Whose::Comm("dd".to_string()), 20),
        (Whose::Comm("d".to_string()), 0),
        (Whose::Comm("mariadbd".to_string()), 0),
        (Whose::Descendants(own), 20),
        (Whose::Descendants(own + 1_000_000), 0),
        (Whose::Listed(vec![own]), 0),
    ];
    for (whose, expected) in cases {
        let mut session = SyncSession::start(&whose).unwrap();
        run(commits());
        let found = look(&mut session, &device);
        assert_eq!((found.syncs.ended.count(), found.left_out), (expected, 0), "{whose:?}");
    }
    let mut session = SyncSession::start(&Whose::Listed(Vec::new())).unwrap();
    let mut waits =
        python(&device, "sys.stdin.readline();f=os.open('a',66)\nfor i in range(20): os.fsync(f)");
    let mut waits = waits.stdin(Stdio::piped()).spawn().unwrap();
    session.list(&[waits.id()]).unwrap();
    waits.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert!(waits.wait().unwrap().success());
    assert_eq!(look(&mut session, &device).syncs.ended.count(), 20, "listed later");
}

/// Whether the fields of a mount are those of the hierarchy that is wanted.
type Wanted = fn(&[&str]) -> bool;

/// A group of a hierarchy, removed when dropped.
struct Group(PathBuf);

impl Group {
    fn new(name: &str, is_wanted: Wanted) -> Option<Group> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let mut mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let root = mounts.find(|fields| is_wanted(fields))?[1].to_string();
        let folder = PathBuf::from(root).join(name);
        fs::create_dir(&folder).unwrap();
        Some(Group(folder))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Its last process may not have gone yet.
        let gone = (0..50).any(|_| {
            sleep(Duration::from_millis(20));
            fs::remove_dir(&self.0).is_ok()
        });
        assert!(gone || std::thread::panicking(), "{} stays", self.0.display());
    }
}

/// A process with a thread on each of two processors, whose first syncs end at once: there is nothing to wait for. It says
/// when they are over, and stays.
const RACERS: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>
static int ready;
static void *race(void *name)
{
    int fd = open(name, O_RDWR | O_DSYNC);
    cpu_set_t one = { { 1 + (*(char *)name == 'a') } };
    sched_setaffinity(0, sizeof(one), &one);
    __atomic_fetch_add(&ready, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&ready, __ATOMIC_SEQ_CST) < 2)
        ;
    write(fd, "", 0);
    return 0;
}
int main(void)
{
    pthread_t other;
    getchar();
    pthread_create(&other, 0, race, "a");
    race("b");
    pthread_join(other, 0);
    puts("");
    fflush(stdout);
    getchar();
}
"#;

#[test]
fn root_a_process_takes_one_place_whoever_of_its_threads_comes_first() {
    let test = "root_a_process_takes_one_place_whoever_of_its_threads_comes_first";
    let Some(device) = Device::create(test, "ext4") else { return };
    let at = |name: &str| device.mount().join(name);
    fs::write(at("racers.c"), RACERS).unwrap();
    let mut compiler = Command::new("clang");
    compiler.args(["-O1", "-pthread", "-o", "racers", "racers.c"]).current_dir(device.mount());
    run(compiler);
    run(python(&device, "open('a','w'); open('b','w'); os.sync()"));
    let mut session = SyncSession::start(&Whose::Listed(Vec::new())).unwrap();
    for _ in 0..5 {
        let mut all: Vec<Child> = (0..20)
            .map(|_| {
                let mut racers = Command::new(at("racers"));
                racers
                    .current_dir(device.mount())
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .spawn()
                    .unwrap()
            })
            .collect();
        session.list(&all.iter().map(Child::id).collect::<Vec<_>>()).unwrap();
        for process in &mut all {
            process.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
            process.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        }
        assert_eq!(session.places_taken()[1], all.len());
        for mut process in all {
            drop(process.stdin.take());
            process.wait().unwrap();
        }
        session.look(now_ns());
        assert_eq!(session.places_taken()[1], 0);
    }
}

#[test]
fn root_units_are_found_in_both_kinds_of_hierarchies() {
    let Some(device) = Device::create("root_units_are_found_in_both_kinds_of_hierarchies", "ext4") else {
        return;
    };
    let kinds: [(&str, Wanted); 2] = [
        ("v2", |fields| fields[2] == "cgroup2"),
        ("v1", |fields| fields[2] == "cgroup" && fields[3].contains("name=systemd")),
    ];
    for (kind, is_wanted) in kinds {
        let name = format!("weir-test-{kind}-{}.service", std::process::id());
        let Some(group) = Group::new(&name, is_wanted) else {
            let _ = writeln!(std::io::stderr(), "a case not run: cgroup {kind} is not mounted");
            continue;
        };
        assert_eq!(unit(&name), None, "{kind}: nothing runs in it");
        let mut inside =
            python(&device, "sys.stdin.readline();f=os.open('a',66)\nfor i in range(20): os.fsync(f)");
        let mut inside = inside.stdin(Stdio::piped()).spawn().unwrap();
        fs::write(group.0.join("cgroup.procs"), inside.id().to_string()).unwrap();
        let found = unit(&name).unwrap();
        assert_eq!(matches!(found, Unit::Group(_)), kind == "v2", "{found:?}");
        let mut session = SyncSession::start(&found.whose()).unwrap();
        run(dd(&device, &["of=b", "bs=4k", "count=20", "oflag=dsync"]));
        inside.stdin.take().unwrap().write_all(b"\n").unwrap();
        assert!(inside.wait().unwrap().success());
        assert_eq!(look(&mut session, &device).syncs.ended.count(), 20, "{kind}");
    }
}

/// A file written in large pieces lies in memory in large folios, each of which the kernel accounts as a whole with
/// whoever changes a part of it.
#[test]
fn root_small_writes_count_as_what_they_are() {
    let Some(device) = Device::create("root_small_writes_count_as_what_they_are", "xfs") else { return };
    run(dd(&device, &["of=a", "bs=16M", "count=4", "conv=fsync"]));
    let mut session = SyncSession::start(&Whose::Everybody).unwrap();
    look(&mut session, &device);
    let commits = ["of=a", "bs=16k", "count=2000", "oflag=dsync", "conv=notrunc"];
    let mut commits = dd(&device, &commits).spawn().unwrap();
    let all = watch(&mut session, &device, |_| is_over(&mut commits));
    let written = 2000 * 16 * 1024;
    let Bulk { dirtied_bytes, protected_bytes, writers, .. } = all.bulk;
    assert!((written / 4..=written + (4 << 20)).contains(&protected_bytes), "{protected_bytes} of {written}");
    // What was written since the last look, somebody who is gone wrote.
    assert_eq!((dirtied_bytes, writers.as_slice()), (0, &[][..]));
    assert!(all.syncs.ended.count() > 500, "{:?}", all.syncs);
}

#[test]
fn root_pauses_are_those_of_who_paused() {
    let Some(device) = Device::create("root_pauses_are_those_of_who_paused", "xfs") else { return };
    if !device.limit_dirty(4 << 20) {
        let _ =
            writeln!(std::io::stderr(), "not run: root_pauses_are_those_of_who_paused lacks strict_limit");
        return;
    }
    device.throttle("write_bps=20000000");
    for (whose, is_protected) in [(Whose::Everybody, false), (Whose::Comm("dd".to_string()), true)] {
        let mut session = SyncSession::start(&whose).unwrap();
        let mut copy = dd(&device, &["of=b", "bs=1M", "count=40"]).spawn().unwrap();
        let all = watch(&mut session, &device, |_| is_over(&mut copy));
        let (theirs, other) = if is_protected {
            ((all.syncs.held_back, all.syncs.held_back_ns), all.bulk.held_back)
        } else {
            ((all.bulk.held_back, all.bulk.held_back_ns), all.syncs.held_back)
        };
        assert!(theirs.0 > 0 && theirs.1 > 0 && other == 0, "{whose:?}: {all:?}");
        let told = (all.bulk.protected_bytes > 0, all.bulk.dirtied_bytes > 0);
        assert_eq!(told, (is_protected, !is_protected), "{:?}", all.bulk);
        assert_eq!(all.bulk.writers.is_empty(), is_protected, "{:?}", all.bulk.writers);
    }
}

/// Maps a file, closes it, and writes to it all until it is told to end.
const MAPS: &str = r"
f=os.open('mapped',66);size=48<<20;os.posix_fallocate(f,0,size)
libc=ctypes.CDLL(None);libc.mmap.restype=ctypes.c_void_p
at=libc.mmap(None,ctypes.c_size_t(size),3,1,f,ctypes.c_long(0));os.close(f)
print(flush=True);sys.stdin.readline()
ctypes.memset(ctypes.c_void_p(at),1,size);print(flush=True);sys.stdin.readline()";

/// Who has no file open is known by where it had to pause; who has not paused may write anywhere.
#[test]
fn root_who_writes_without_an_open_file_is_a_writer() {
    let test = "root_who_writes_without_an_open_file_is_a_writer";
    let Some(device) = Device::create(test, "xfs") else { return };
    for pauses in [false, true] {
        if pauses && !device.limit_dirty(4 << 20) {
            let _ = writeln!(std::io::stderr(), "not run: {test} lacks strict_limit");
            return;
        }
        if pauses {
            device.throttle("write_bps=20000000");
        }
        let mut maps = python(&device, MAPS);
        let mut maps = maps.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let says = |line: &mut Child| line.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        says(&mut maps);
        let mut session = SyncSession::start(&Whose::Everybody).unwrap();
        maps.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        let (mut unlocated, mut named, begun) = (0, 0, Instant::now());
        // What it writes before its first pause is anywhere, too.
        let told = |unlocated, named| if pauses { named } else { unlocated } > 20_u64 << 20;
        while !told(unlocated, named) && begun.elapsed() < Duration::from_secs(20) {
            sleep(Duration::from_millis(100));
            let look = session.look(now_ns());
            unlocated += look.unlocated_bytes;
            let bulk = look.devices.get(&device.number).map(|found| found.bulk.clone()).unwrap_or_default();
            let of_it = bulk.writers.iter().filter(|writer| writer.pid == maps.id());
            named += of_it.map(|writer| writer.bytes).sum::<u64>();
        }
        assert!(told(unlocated, named), "{pauses}: {named} named, {unlocated} anywhere");
        assert!(if pauses { unlocated < named } else { named == 0 }, "{pauses}: {named}, {unlocated}");
        says(&mut maps);
        drop(maps.stdin.take());
        maps.wait().unwrap();
        run(python(&device, "os.remove('mapped'); os.sync()"));
    }
}

/// A process whose first thread ends before the one that syncs.
const SURVIVOR: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void *sync_on(void *first)
{
    int fd = open("a", O_RDWR | O_CREAT, 0600);
    pthread_join(*(pthread_t *)first, 0);
    write(fd, "x", 1);
    fsync(fd);
    puts("");
    fflush(stdout);
    getchar();
    return 0;
}
int main(void)
{
    static pthread_t first;
    pthread_t other;
    first = pthread_self();
    pthread_create(&other, 0, sync_on, &first);
    pthread_exit(0);
}
"#;

#[test]
fn root_a_process_lives_as_long_as_its_last_thread() {
    let Some(device) = Device::create("root_a_process_lives_as_long_as_its_last_thread", "ext4") else {
        return;
    };
    let at = |name: &str| device.mount().join(name);
    fs::write(at("survivor.c"), SURVIVOR).unwrap();
    let mut compiler = Command::new("clang");
    compiler.args(["-O1", "-pthread", "-o", "survivor", "survivor.c"]).current_dir(device.mount());
    run(compiler);
    let mut session = SyncSession::start(&Whose::Everybody).unwrap();
    let mut survivor = Command::new(at("survivor"));
    survivor.current_dir(device.mount()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut survivor = survivor.spawn().unwrap();
    survivor.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    for _ in 0..2 {
        session.look(now_ns());
        assert!(session.protected().contains(&survivor.id()), "it has a thread that syncs");
    }
    drop(survivor.stdin.take());
    survivor.wait().unwrap();
    (0..2).for_each(|_| drop(session.look(now_ns())));
    assert!(!session.protected().contains(&survivor.id()), "its place is free");
}

#[test]
fn root_a_session_leaves_nothing_behind() {
    let Some(device) = Device::create("root_a_session_leaves_nothing_behind", "ext4") else { return };
    let open = || fs::read_dir("/proc/self/fd").unwrap().count();
    drop(SyncSession::start(&Whose::Everybody).unwrap());
    let before = open();
    (0..3).for_each(|_| drop(SyncSession::start(&Whose::Everybody).unwrap()));
    // Other tests of this process open and close files of their own; what a session left open stays open.
    let patience = Instant::now() + Duration::from_secs(20);
    while open() > before && Instant::now() < patience {
        sleep(Duration::from_millis(20));
    }
    assert!(open() <= before, "{} files open, {before} before", open());
    let mut session = SyncSession::start(&Whose::Everybody).unwrap();
    (0..60).for_each(|_| run(dd(&device, &["of=a", "count=1", "oflag=dsync"])));
    assert_eq!(look(&mut session, &device).syncs.ended.count(), 60);
    // Whoever else syncs on this machine has a place too.
    let [_, processes, _] = session.places_taken();
    assert!(processes < 40, "{processes} of 60 processes that are gone");
    (0..100).for_each(|_| {
        assert_eq!(session.look(now_ns()).sensor.silent_ns, 0);
    });
    assert!(session.memory_bytes() < 2 << 20, "{}", session.memory_bytes());
}
