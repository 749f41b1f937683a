//! Against real sshd, each in a network namespace with folders, and two with loop devices, of its own (`lab/ssh-hosts`).

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Ran;

/// What these tests need; a test that lacks something says so.
fn root_or_say(test: &str) -> bool {
    let is_root =
        fs::metadata("/proc/self").is_ok_and(|data| std::os::unix::fs::MetadataExt::uid(&data) == 0);
    let is_here = |name: &str| {
        ["/usr/bin", "/usr/sbin", "/sbin", "/bin"].iter().any(|folder| Path::new(folder).join(name).exists())
    };
    let lacking = if !is_root {
        Some("root")
    } else if !Path::new("/dev/loop-control").exists() {
        Some("loop devices")
    } else if !weir().exists() {
        Some("weir beside weir-fleet (cargo test --workspace builds it)")
    } else {
        ["ip", "sshd", "ssh", "ssh-keygen", "nsenter", "unshare"].into_iter().find(|name| !is_here(name))
    };
    if let Some(lacking) = lacking {
        let _ = writeln!(io::stderr(), "not run: {test} lacks {lacking}");
    }
    lacking.is_none()
}

fn weir() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_weir-fleet")).with_file_name("weir")
}

fn lab(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab").join(name)
}

/// A folder that a script of the lab made, and removes.
struct Lab(&'static str, PathBuf);

impl Lab {
    fn create(script: &'static str, options: &[&str]) -> Lab {
        let owner = format!("owner={}", std::process::id());
        let output = Command::new(lab(script)).arg("create").args(options).arg(owner).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Lab(script, PathBuf::from(String::from_utf8(output.stdout).unwrap().trim()))
    }

    fn text(&self, file: &str) -> String {
        fs::read_to_string(self.1.join(file)).unwrap().trim().to_string()
    }

    /// Temporary files of a host are on this device.
    fn onto(&self, host: &str, device: &Lab) {
        let own = self.1.join(host).join("tmp");
        fs::remove_dir(&own).unwrap();
        std::os::unix::fs::symlink(device.1.join("mnt"), own).unwrap();
    }

    fn fleet(&self, into: &Path, arguments: &[&str]) -> Ran {
        let mut command = Command::new(lab("ssh-hosts"));
        command
            .arg("run")
            .arg(&self.1)
            .arg(env!("CARGO_BIN_EXE_weir-fleet"))
            .arg("run")
            .arg("--binary")
            .arg(weir());
        command
            .arg("--ssh-config")
            .arg(self.1.join("config"))
            .arg("--into")
            .arg(into)
            .args(["--connect-timeout", "3s"]);
        Ran::of(command.args(arguments).output().unwrap())
    }

    fn left(&self, hosts: &[&str]) -> Vec<PathBuf> {
        let below =
            hosts.iter().flat_map(|host| fs::read_dir(self.1.join(host).join("tmp")).unwrap().flatten());
        below
            .map(|entry| entry.path())
            .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("weir-")))
            .collect()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = Command::new(lab(self.0)).arg("destroy").arg(&self.1).status();
    }
}

#[test]
fn root_real_hosts_are_measured_and_the_bad_ones_are_named() {
    if !root_or_say("root_real_hosts_are_measured_and_the_bad_ones_are_named") {
        return;
    }
    let (quick, slow) = (
        Lab::create("loop-device", &["size=128M"]),
        Lab::create("loop-device", &["size=128M", "write_iops=200"]),
    );
    let hosts = Lab::create("ssh-hosts", &["6", "gone=3", "changed=4", "unknown=5", "hung=6"]);
    hosts.onto("h1", &quick);
    hosts.onto("h2", &slow);
    let results = tempfile::tempdir().unwrap();
    // The pattern is that of the configuration's Host entries; weir runs as root, since the account is.
    let commit = [
        "--hosts",
        "h*",
        "--together",
        "bench",
        "--dir",
        "{out}",
        "--rw",
        "write",
        "--sync-every",
        "1",
        "--size",
        "8M",
        "--duration",
        "1s",
    ];
    let ran = hosts.fleet(results.path(), &commit);
    ran.says(
        3,
        &[
            "2 of 6 hosts done",
            "its host key has changed",
            "its host key is not known here",
            "started within",
            "h3",
            "unreachable: no",
        ],
    );
    assert!(!ran.out.contains("not confirmed"), "{}", ran.out);
    assert_eq!(hosts.left(&["h1", "h2"]), Vec::<PathBuf>::new());
    // The record is weir's own, under a name that no host chose.
    let day = fs::read_dir(results.path().join("kind=bench")).unwrap().flatten().next().unwrap().path();
    for host in ["h1", "h2"] {
        let files: Vec<PathBuf> = fs::read_dir(day.join(format!("host={host}")))
            .unwrap()
            .flatten()
            .map(|entry| entry.path())
            .collect();
        let record = files.iter().find(|file| file.to_string_lossy().ends_with("-record.json")).unwrap();
        assert!(
            fs::read_to_string(record).unwrap().starts_with("{\"schema\":\"weir.record/1\""),
            "{}",
            record.display()
        );
    }
}

/// A cgroup that goes when the test ends, however it ends. The next test removes those of tests that were killed.
struct Group(PathBuf);

impl Group {
    const NAME: &str = "weir-fleet-test-";

    fn make(controller: &Path) -> Group {
        for entry in fs::read_dir(controller).unwrap().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_left = |pid: &str| !Path::new("/proc").join(pid).exists();
            if name.strip_prefix(Group::NAME).is_some_and(is_left) {
                let _ = fs::remove_dir(entry.path());
            }
        }
        let path = controller.join(format!("{}{}", Group::NAME, std::process::id()));
        fs::create_dir(&path).unwrap();
        Group(path)
    }
}

impl Drop for Group {
    /// What is in it has been told to end.
    fn drop(&mut self) {
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while fs::remove_dir(&self.0).is_err() && self.0.exists() && std::time::Instant::now() < until {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}

/// A harmful limit: the host's own cgroup may write next to nothing. In version 1 of cgroups a sync pays for its own writes.
#[test]
fn root_a_harmful_change_is_taken_back() {
    if !root_or_say("root_a_harmful_change_is_taken_back") {
        return;
    }
    let throttles = Path::new("/sys/fs/cgroup/blkio");
    if !throttles.join("cgroup.procs").exists() {
        let _ = writeln!(
            io::stderr(),
            "not run: root_a_harmful_change_is_taken_back lacks the blkio controller of cgroup v1"
        );
        return;
    }
    let device = Lab::create("loop-device", &["size=128M"]);
    let name = device.text("dev").trim_start_matches("/dev/").to_string();
    let number = fs::read_to_string(format!("/sys/block/{name}/dev")).unwrap().trim().to_string();
    let group = Group::make(throttles);
    let hosts = Lab::create("ssh-hosts", &["1"]);
    hosts.onto("h1", &device);
    let group = &group.0;
    fs::write(group.join("cgroup.procs"), hosts.text("h1/pid")).unwrap();
    let results = tempfile::tempdir().unwrap();
    let probe = device.1.join("mnt");
    let limit = |bytes: u64| {
        format!(
            "cgroup:/{}/blkio.throttle.write_bps_device/{number}={bytes}",
            group.file_name().unwrap().to_string_lossy()
        )
    };
    let roll = |bytes: u64| {
        let setting = limit(bytes);
        let words = [
            "--hosts",
            "h1",
            "--canary",
            "all",
            "--probe",
            probe.to_str().unwrap(),
            "--probe-time",
            "1s",
            "--worse",
            "50",
            "knobs",
            "apply",
            &setting,
        ];
        hosts.fleet(results.path(), &words)
    };
    let in_force = || fs::read_to_string(group.join("blkio.throttle.write_bps_device")).unwrap();
    let (harmful, after_harm) = (roll(300_000), in_force());
    let (harmless, after_good) = (roll(10_000_000_000), in_force());
    harmful.says(1, &["below a bar", "rolled back"]);
    assert_eq!(after_harm, "");
    harmless.says(0, &["1 of 1 hosts done", "kept"]);
    assert!(after_good.contains("10000000000"), "{after_good}");
}
