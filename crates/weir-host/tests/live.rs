//! The machine itself: loop devices made here are resolved, measured and examined, and always taken away again.
#![allow(clippy::unwrap_used)] // test code throughout; clippy knows that only of functions under #[test]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use weir_core::target::{LayerKind, TargetFacts};
use weir_host::Host;
use weir_host::signature::examine_device;

const MIB: u64 = 1 << 20;
/// How long anything may take that has to happen at all.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs a tool; its output, or why it cannot run here.
fn tool(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output =
        Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_string());
    }
    Err(format!("{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// Past the capture of the test harness, in the words that `make test` counts.
fn not_run(sentence: &str) {
    let _ = writeln!(std::io::stderr(), "not run: {sentence}");
}

fn until(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "{what}: did not happen");
        sleep(Duration::from_millis(10));
    }
}

/// Everything a test put on the machine, in the order of its making; taken away in reverse.
struct Bench {
    folder: tempfile::TempDir,
    undo: Vec<(&'static str, Vec<String>)>,
}

impl Bench {
    /// A bench, or a plain word of what it lacks.
    fn new(test: &str, tools: &[&str]) -> Option<Self> {
        let is_root = Host::live().conditions(None).limits.root;
        let lacks = |tool: &&&str| Command::new(tool).arg("--version").output().is_err();
        let missing: Vec<String> = tools.iter().filter(lacks).map(|tool| tool.to_string()).collect();
        if !is_root || !missing.is_empty() {
            let missing = if is_root { missing.join(", ") } else { "root".to_string() };
            not_run(&format!("{test} lacks {missing}"));
            return None;
        }
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        Some(Bench { folder, undo: Vec::new() })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn made_folder(&self, name: &str) -> String {
        let path = self.path(name);
        fs::create_dir_all(&path).unwrap();
        path.display().to_string()
    }

    /// A loop device over a new sparse file. The scan also drops partitions that an earlier user of the device left.
    fn attach(&mut self, name: &str, mib: u64, content: &[u8]) -> String {
        let path = self.path(name);
        let mut file = fs::File::create(&path).unwrap();
        file.write_all(content).unwrap();
        file.set_len(mib * MIB).unwrap();
        let device =
            tool("losetup", &["--find", "--show", "--partscan", &path.display().to_string()]).unwrap();
        self.undo.push(("losetup", vec!["--detach".into(), device.clone()]));
        device
    }

    fn mount(&mut self, arguments: &[&str], on: &str) -> String {
        let folder = self.made_folder(on);
        tool("mount", &[arguments, &[&folder]].concat()).unwrap();
        self.undo.push(("umount", vec![folder.clone()]));
        folder
    }

    fn undo_last(&mut self) {
        let (program, arguments) = self.undo.pop().unwrap();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        tool(program, &arguments).unwrap();
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        for (program, arguments) in self.undo.drain(..).rev() {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            if let Err(error) = tool(program, &arguments) {
                eprintln!("left behind: {error}");
            }
        }
    }
}

fn facts(path: &str) -> TargetFacts {
    Host::live().target(Path::new(path)).unwrap()
}

fn kernel_name(device: &str) -> &str {
    device.strip_prefix("/dev/").unwrap()
}

fn has(sentences: &[String], part: &str) {
    assert!(sentences.iter().any(|sentence| sentence.contains(part)), "{part:?} is not in {sentences:#?}");
}

#[test]
fn this_machine_is_read_without_complaint() {
    let host = Host::live();
    let here = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let found = host.target(here).unwrap();
    let file_system = found.file_system.as_ref().unwrap();
    assert!(here.starts_with(&file_system.mount_point), "{file_system:?}");
    let space = host.free_space(here).unwrap();
    assert!(
        space.size_bytes > space.free_bytes && file_system.size_bytes == Some(space.size_bytes),
        "{space:?}"
    );
    // A path that does not exist yet belongs where its nearest folder is.
    let planned = host.target(&here.join("not/there/yet")).unwrap();
    assert_eq!((planned.path.as_str(), &planned.stack), (found.path.as_str(), &found.stack));
    let conditions = host.conditions(Some(&found));
    assert!(conditions.memory.total_bytes > 0 && !conditions.kernel.is_empty(), "{conditions:?}");
    assert_eq!(conditions.cpu.processors, host.processors().unwrap());
    let parse_failures: Vec<&String> =
        conditions.unreadable.iter().filter(|s| s.contains(", line ")).collect();
    assert!(parse_failures.is_empty(), "{parse_failures:?}");
    let earlier = host.sample(&found);
    let load = host.sample(&found).since(&earlier);
    assert_eq!(load.devices.len(), found.stack.len());
    assert!(
        host.target(Path::new("/proc/self/mountinfo")).unwrap().blind.iter().any(|s| s.starts_with("proc:"))
    );
    assert!(examine_device(here).unwrap_err().to_string().contains("is not a block device"));
}

#[test]
fn root_xfs_on_a_loop_device_is_resolved_measured_and_examined() {
    let Some(mut bench) = Bench::new("xfs on a loop device", &["losetup", "mkfs.xfs", "mount"]) else {
        return;
    };
    let device = bench.attach("image", 320, &[]);
    let name = kernel_name(&device).to_string();
    assert!(examine_device(Path::new(&device)).unwrap().is_empty(), "a new device is empty");
    tool("mkfs.xfs", &["-q", &device]).unwrap();
    assert_eq!(examine_device(Path::new(&device)).unwrap(), ["it holds an xfs file system"]);
    let folder = bench.mount(&[&device], "mounted");

    let found = facts(&format!("{folder}/new"));
    assert_eq!(found.file_system.as_ref().unwrap().kind, "xfs");
    assert_eq!((found.stack[0].name.as_str(), found.device.as_deref()), (name.as_str(), Some(name.as_str())));
    let LayerKind::Loop { backing_file, file_system, .. } = &found.stack[0].kind else { panic!("{found:?}") };
    assert_eq!(Path::new(backing_file), bench.path("image").canonicalize().unwrap());
    let beneath = facts(env!("CARGO_TARGET_TMPDIR"));
    assert_eq!(file_system.as_ref().unwrap().mount_point, beneath.file_system.unwrap().mount_point);
    let names =
        |layers: &[weir_core::target::Layer]| layers.iter().map(|l| l.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&found.stack[1..]), names(&beneath.stack), "the backing file's own stack follows");
    assert_eq!(found.bdi.as_ref().unwrap().name, found.stack[0].number.to_string());

    let reasons = examine_device(Path::new(&device)).unwrap();
    for part in [
        "it holds an xfs file system",
        &format!("{name} is mounted on {folder} (xfs)"),
        "exclusive open fails",
    ] {
        has(&reasons, part);
    }
    writes_are_seen(&found, &name, &format!("{folder}/file"));
    bench.undo_last();
    // A mount namespace that another test made meanwhile keeps the file system until it ends.
    let left = ["it holds an xfs file system"];
    until("the file system is let go of", || examine_device(Path::new(&device)).unwrap() == left);
}

/// dd writes 8 MiB and then waits for more: the device and the process both show it.
fn writes_are_seen(found: &TargetFacts, name: &str, file: &str) {
    let host = Host::live();
    let (earlier, processes) = (host.sample(found), host.processes());
    let mut dd = Command::new("dd")
        .args([&format!("of={file}"), "bs=1M", "iflag=fullblock", "oflag=direct"])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = dd.stdin.take().unwrap();
    input.write_all(&vec![7; 8 * MIB as usize]).unwrap();
    until("dd writes", || fs::metadata(file).is_ok_and(|meta| meta.len() == 8 * MIB));
    let load = host.sample(found).since(&earlier);
    let writers = host.processes().since(&processes);
    drop(input);
    dd.wait().unwrap();
    let device = &load.devices[name];
    let written = (device.write_bytes_per_second * load.elapsed_ns as f64 / 1e9).round();
    assert!(written >= 8.0 * MIB as f64 && device.writes_per_second > 0.0, "{written} bytes: {device:?}");
    let writer = writers.iter().find(|process| process.pid == dd.id()).unwrap();
    assert!(writer.name == "dd" && writer.write_bytes_per_second > 0.0, "{writer:?}");
    let alignment = host.direct_alignment(Path::new(file)).unwrap().unwrap();
    let logical = found.device_queue().unwrap().logical_block_bytes.unwrap();
    assert!(alignment.offset_bytes >= logical && alignment.offset_bytes.is_power_of_two(), "{alignment:?}");
}

#[test]
fn root_partitions_and_swap_on_a_loop_device_are_seen() {
    let Some(mut bench) =
        Bench::new("partitions on a loop device", &["losetup", "addpart", "delpart", "mkswap", "swapon"])
    else {
        return;
    };
    // One MBR partition of 16 MiB from sector 2048 on.
    let mut mbr = vec![0; 512];
    mbr[446 + 4] = 0x83;
    mbr[446 + 8..446 + 12].copy_from_slice(&2048_u32.to_le_bytes());
    mbr[446 + 12..446 + 16].copy_from_slice(&32768_u32.to_le_bytes());
    mbr[510..].copy_from_slice(&[0x55, 0xaa]);
    let device = bench.attach("image", 32, &mbr);
    let partition = format!("{device}p1");
    // Told where the scan did not find it: some kernels are built without partition tables.
    if !Path::new(&partition).exists() {
        tool("addpart", &[&device, "1", "2048", "32768"]).unwrap();
    }
    bench.undo.push(("delpart", vec![device.clone(), "1".into()]));
    until("the partition appears", || Path::new(&partition).exists());

    let found = facts(&partition);
    let expected = LayerKind::Partition { disk: kernel_name(&device).into(), number: 1, start_bytes: MIB };
    assert_eq!((&found.stack[0].kind, found.stack[0].size_bytes), (&expected, 16 * MIB));
    assert_eq!(found.device.as_deref(), Some(kernel_name(&device)));
    let reasons = examine_device(Path::new(&device)).unwrap();
    has(&reasons, &format!("has partitions: {}", kernel_name(&partition)));
    has(&reasons, "it holds an MBR partition table");
    assert!(examine_device(Path::new(&partition)).unwrap().is_empty());

    tool("mkswap", &["-q", &partition]).unwrap();
    tool("swapon", &["--priority", "0", &partition]).unwrap();
    bench.undo.push(("swapoff", vec![partition.clone()]));
    for examined in [&device, &partition] {
        has(&examine_device(Path::new(examined)).unwrap(), "is in use as swap");
    }
    has(&examine_device(Path::new(&partition)).unwrap(), "it holds a swap area");
    let swaps = Host::live().conditions(None).memory.swaps;
    assert!(swaps.iter().any(|swap| swap.path == partition && swap.kind == "partition"), "{swaps:?}");
}

#[test]
fn root_btrfs_over_two_loop_devices_shows_both() {
    let Some(mut bench) = Bench::new("btrfs over two loop devices", &["losetup", "mkfs.btrfs"]) else {
        return;
    };
    let devices = [bench.attach("one", 192, &[]), bench.attach("two", 192, &[])];
    tool("mkfs.btrfs", &["-q", &devices[0], &devices[1]]).unwrap();
    let folder = bench.mount(&["-t", "btrfs", &devices[0]], "mounted");
    let found = facts(&folder);
    for device in &devices {
        assert!(found.layer(kernel_name(device)).is_some(), "{device} is missing: {:?}", found.stack);
        let reasons = examine_device(Path::new(device)).unwrap();
        has(&reasons, "it holds a btrfs file system");
        has(&reasons, "exclusive open fails");
    }
    has(&found.blind, "which of them holds a block");
    assert!(found.bdi.is_none_or(|bdi| bdi.name.starts_with("btrfs-")));
}

#[test]
fn root_an_overlay_is_followed_to_its_upper_folder() {
    let Some(mut bench) = Bench::new("an overlay", &["mount"]) else { return };
    if facts(&bench.made_folder("upper")).file_system.unwrap().kind == "overlay" {
        not_run("an overlay lacks a test folder that is not on an overlay itself");
        return;
    }
    let [lower, upper, work] = ["lower", "upper", "work"].map(|name| bench.made_folder(name));
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
    let folder = bench.mount(&["-t", "overlay", "overlay", "-o", &options], "mounted");
    let (found, beneath) = (facts(&folder), facts(&upper));
    assert_eq!(found.file_system.unwrap().kind, "overlay");
    assert_eq!((found.stack, found.device), (beneath.stack, beneath.device));
    has(&found.blind, &format!("writes land in {upper}"));
}

/// A process in a mount namespace of its own, which ends with this.
struct Container(Child);

impl Container {
    /// Runs a script there, which ends in a line `ready` and goes on.
    fn start(script: &str) -> Container {
        let mut child = Command::new("unshare")
            .args(["--mount", "sh", "-ec", script])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Container(child)
    }

    /// A path as the process sees it, named from here.
    fn path(&self, within: &str) -> String {
        format!("/proc/{}/root{within}", self.0.id())
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn root_a_path_in_a_container_is_resolved_as_the_container_sees_it() {
    let Some(mut bench) = Bench::new("a mount namespace", &["losetup", "mkfs.ext4", "mount", "unshare"])
    else {
        return;
    };
    let device = bench.attach("image", 32, &[]);
    tool("mkfs.ext4", &["-q", &device]).unwrap();
    let [volume, other] = ["volume", "other"].map(|name| bench.made_folder(name));
    // Its link to the data leads where it sees them, whatever lies at that name here.
    let container = Container::start(&format!(
        "mount {device} {volume}; mkdir {volume}/data; ln -s {volume}/data {other}/link; echo ready; exec sleep 100"
    ));
    for (asked, within) in [
        (format!("{volume}/data/new"), format!("{volume}/data")),
        (format!("{other}/link/new"), format!("{volume}/data")),
    ] {
        let found = facts(&container.path(&asked));
        assert_eq!(found.path, container.path(&within), "{asked}");
        assert_eq!(found.device.as_deref(), Some(kernel_name(&device)), "{asked}: {found:?}");
        let system = found.file_system.unwrap();
        assert_eq!((system.kind.as_str(), system.mount_point), ("ext4", container.path(&volume)));
        assert!(system.size_bytes.is_some_and(|bytes| bytes < 32 * MIB), "{:?}", system.size_bytes);
    }
    assert_eq!(
        Host::live().resolved(Path::new(&container.path(&format!("{other}/link")))).unwrap(),
        Path::new(&container.path(&format!("{volume}/data")))
    );
    // Here nothing is mounted at that place.
    assert_eq!(facts(&volume).device, facts(&other).device);
}

#[test]
fn root_a_container_on_an_overlay_writes_where_its_upper_folder_lies() {
    let Some(mut bench) = Bench::new("a container", &["losetup", "mkfs.ext4", "mount", "unshare", "chroot"])
    else {
        return;
    };
    let device = bench.attach("image", 32, &[]);
    tool("mkfs.ext4", &["-q", &device]).unwrap();
    let (layers, root) = (bench.mount(&[&device], "layers"), bench.made_folder("root"));
    let [upper, work] = ["upper", "work"].map(|name| format!("{layers}/{name}"));
    for folder in [&upper, &work] {
        fs::create_dir(folder).unwrap();
    }
    let container = Container::start(&format!(
        "mount -t overlay overlay -o lowerdir=/,upperdir={upper},workdir={work} {root}; \
         exec chroot {root} sh -c 'echo ready; exec sleep 100'"
    ));
    let found = facts(&container.path("/var/lib"));
    let system = found.file_system.as_ref().unwrap();
    assert_eq!((system.kind.as_str(), system.mount_point.as_str()), ("overlay", &*container.path("")));
    assert_eq!(found.device.as_deref(), Some(kernel_name(&device)), "{found:?}");
    has(&found.blind, &format!("writes land in {upper}"));
    // The same name may be another folder here: an overlay does not stand on a file system of another size.
    fs::rename(&upper, format!("{layers}/moved")).unwrap();
    std::os::unix::fs::symlink(bench.made_folder("elsewhere"), &upper).unwrap();
    let found = facts(&container.path("/var/lib"));
    has(&found.blind, &format!("its upper folder {upper} is not visible here"));
    assert_eq!(found.device, None);
}

#[test]
fn root_throttles_and_deleted_backing_files_are_told() {
    let Some(mut bench) = Bench::new("a throttle on a loop device", &["losetup"]) else { return };
    let device = bench.attach("image", 32, &[]);
    fs::remove_file(bench.path("image")).unwrap();
    let found = facts(&device);
    has(&found.blind, "is deleted; the file system under it is unknown");
    assert!(found.stack.len() == 1 && found.throttles.is_empty(), "{found:?}");
    let file = Path::new("/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device");
    if !file.exists() {
        not_run(&format!(
            "a throttle on a loop device lacks {} (the root of cgroup v2 has no io.max)",
            file.display()
        ));
        return;
    }
    let number = found.stack[0].number;
    fs::write(file, format!("{number} 1048576")).unwrap();
    let throttles = facts(&device).throttles;
    fs::write(file, format!("{number} 0")).unwrap();
    assert!(
        throttles.iter().any(|t| t.limits.get("wbps") == Some(&1_048_576) && t.cgroup == "/"),
        "{throttles:?}"
    );
    assert!(facts(&device).throttles.is_empty());
}
