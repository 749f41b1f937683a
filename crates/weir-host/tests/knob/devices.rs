//! Knobs of a loop device of one's own, as its kernel has them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use weir_host::Host;
use weir_host::knob::{self, Applied, Hold, Journal, KnobError};
use weir_knobs::{KnobName, Plan, Step, Value};

use super::runs::{Run, settings};

/// A loop device with settings that are not the kernel's own, so that a switch of the scheduler resets them.
pub struct Disk {
    pub name: String,
    /// Where the backing file lies, and a journal.
    folder: tempfile::TempDir,
    /// What the device had before: it keeps its settings for whoever uses it next.
    found: Vec<(&'static str, String)>,
}

/// Settings that are not the kernel's own, a scheduler before what its switch resets.
const OWN: [(&str, &str); 7] = [
    ("queue/scheduler", "mq-deadline"),
    ("queue/nr_requests", "64"),
    ("queue/iosched/fifo_batch", "32"),
    ("queue/wbt_lat_usec", "3000"),
    ("queue/read_ahead_kb", "256"),
    ("bdi/max_ratio_fine", "1000000"),
    ("bdi/strict_limit", "0"),
];

impl Disk {
    pub fn new() -> Disk {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let file = folder.path().join("disk");
        fs::File::create(&file).unwrap().set_len(64 << 20).unwrap();
        let output = Command::new("losetup").args(["--find", "--show"]).arg(&file).output().unwrap();
        let device = String::from_utf8(output.stdout).unwrap().trim().to_string();
        let name = device.strip_prefix("/dev/").expect("losetup names a device").to_string();
        let mut disk = Disk { name, folder, found: Vec::new() };
        for (file, value) in OWN {
            // A scheduler's own settings go with it.
            if !file.contains("iosched") {
                disk.found.push((file, disk.chosen(file)));
            }
            disk.write(file, value);
        }
        disk
    }

    fn path(&self, file: &str) -> PathBuf {
        Path::new("/sys/block").join(&self.name).join(file)
    }

    pub fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).unwrap().trim().to_string()
    }

    /// The value in force, without brackets and the words around them.
    fn chosen(&self, file: &str) -> String {
        let text = self.read(file);
        text.split_once('[').and_then(|(_, rest)| Some(rest.split_once(']')?.0.to_string())).unwrap_or(text)
    }

    pub fn write(&self, file: &str, value: &str) {
        fs::write(self.path(file), value).unwrap();
    }

    pub fn journal(&self) -> PathBuf {
        self.folder.path().join("journal")
    }

    /// `SETTING=VALUE` of this device.
    pub fn settings(&self, texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| format!("{}/{text}", self.name)).collect()
    }

    pub fn trial(&self, texts: &[&str]) -> Result<Applied, KnobError> {
        knob::trial(&Host::live(), &Journal::at(&self.journal()), &settings(&self.settings(texts)))
    }

    /// Everything weir could have changed.
    pub fn snapshot(&self) -> BTreeMap<String, String> {
        let own = fs::read_dir(self.path("queue/iosched")).into_iter().flatten().flatten();
        let own = own.map(|file| format!("queue/iosched/{}", file.file_name().to_string_lossy()));
        let files =
            ["scheduler", "nr_requests", "read_ahead_kb", "max_sectors_kb", "wbt_lat_usec", "nomerges"]
                .map(|file| format!("queue/{file}"));
        let bdi = ["max_ratio_fine", "min_ratio_fine", "strict_limit"].map(|file| format!("bdi/{file}"));
        let files = files.into_iter().chain(own).chain(bdi);
        files.map(|file| (file.clone(), self.read(&file))).collect()
    }
}

impl Disk {
    /// Takes its file away, and gives it another one: the kernel counts it as another device.
    pub fn replace(&self) {
        let losetup = |arguments: &[&str]| {
            let done = Command::new("losetup").args(arguments).output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        };
        let (device, file) = (format!("/dev/{}", self.name), self.folder.path().join("disk"));
        losetup(&["--detach", &device]);
        losetup(&[&device, &file.display().to_string()]);
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        for (file, value) in &self.found {
            let _ = fs::write(self.path(file), value);
        }
        let detached = Command::new("losetup").args(["--detach", &format!("/dev/{}", self.name)]).status();
        assert!(detached.is_ok_and(|status| status.success()) || std::thread::panicking());
    }
}

pub fn root_a_switch_is_led_back() {
    let disk = Disk::new();
    let before = disk.snapshot();
    let texts =
        ["nr_requests=48", "wbt_lat_usec=5000", "scheduler=none", "max_sectors_kb=512", "bdi/max_ratio=7"];
    let applied = disk.trial(&texts).unwrap();
    assert!(disk.read("queue/scheduler").starts_with("[none]"));
    for (file, value) in [
        ("queue/nr_requests", "48"),
        ("queue/wbt_lat_usec", "5000"),
        ("queue/max_sectors_kb", "512"),
        ("bdi/max_ratio", "7"),
    ] {
        assert_eq!(disk.read(file), value, "{file}");
    }
    assert!(applied.old().any(|setting| setting.to_string().ends_with("/iosched/fifo_batch=32")));
    let said = applied.restore().unwrap().join("\n");
    assert_eq!(disk.snapshot(), before, "{said}");
    assert!(said.contains("takes it as set by hand"), "{said}");
    // And the other way round: settings of a scheduler that is not there yet.
    disk.write("queue/scheduler", "none");
    let before = disk.snapshot();
    let applied = disk.trial(&["scheduler=mq-deadline", "iosched/fifo_batch=4", "nr_requests=200"]).unwrap();
    assert_eq!(
        (disk.read("queue/iosched/fifo_batch"), disk.read("queue/nr_requests")),
        ("4".into(), "200".into())
    );
    drop(applied);
    assert_eq!(disk.snapshot(), before);
}

/// A plan that nobody has checked: what the kernel says of it is to be seen.
fn unchecked(texts: &[String]) -> Plan {
    let host = Host::live();
    let step = |setting: weir_knobs::Setting| Step {
        from: knob::read(&host, &setting.knob).unwrap().value.unwrap(),
        knob: setting.knob,
        to: setting.value,
    };
    Plan { steps: settings(texts).into_iter().map(step).collect(), ..Plan::default() }
}

fn apply_unchecked(journal: &Path, texts: &[String]) -> KnobError {
    let journal = Journal::at(journal);
    journal.apply(&Host::live(), &unchecked(texts), Hold::WhileAlive, Duration::ZERO).unwrap_err()
}

pub fn root_a_refusal_takes_all_back() {
    let disk = Disk::new();
    let before = disk.snapshot();
    let switch = disk.settings(&["scheduler=none"]);
    let mut plan = knob::plan(&Host::live(), &settings(&switch), false).unwrap();
    plan.steps.extend(unchecked(&disk.settings(&["nr_requests=100000", "read_ahead_kb=64"])).steps);
    plan.touched.retain(|setting| setting.knob.setting != "nr_requests");
    let journal = Journal::at(&disk.journal());
    let error = journal.apply(&Host::live(), &plan, Hold::Kept, Duration::ZERO).unwrap_err();
    assert!(error.to_string().contains("refuses the value: it takes 4 to 128 requests"), "{error}");
    assert_eq!(disk.snapshot(), before);
    assert!(knob::entries(&journal).0.is_empty());
    // What the kernel takes, but not as it was asked for, is a failure too.
    let error = apply_unchecked(&disk.journal(), &disk.settings(&["nr_requests=2"]));
    assert!(matches!(&error, KnobError::NotTaken { reads: Value::Number(4), .. }), "{error}");
    assert_eq!(disk.snapshot(), before);
    // Older kernels refuse what newer ones cut down.
    let error = apply_unchecked(&disk.journal(), &disk.settings(&["max_sectors_kb=99999999"]));
    assert!(matches!(&error, KnobError::NotTaken { .. } | KnobError::Refused { .. }), "{error}");
    assert_eq!(disk.snapshot(), before);
}

pub fn root_refusals_are_said_in_words() {
    let disk = Disk::new();
    let folder = disk.journal();
    for (text, words) in [
        (
            "vm.dirty_bytes=1".to_string(),
            "/proc/sys/vm/dirty_bytes: the kernel refuses the value: it takes 8192 or more bytes",
        ),
        ("vm.swappiness=201".to_string(), "it takes 0 to 200"),
        (format!("{}/scheduler=foo", disk.name), "it takes none | mq-deadline"),
        (format!("{}/bdi/max_ratio_fine=1000001", disk.name), "it takes 0 to 1000000"),
    ] {
        let error = apply_unchecked(&folder, std::slice::from_ref(&text)).to_string();
        assert!(error.starts_with(&text) && error.contains(words), "{text}: {error}");
    }
}

pub fn root_what_may_not_be_written_is_said_before_anything_is() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let wanted = ["vm.swappiness=61"];
    for (verb, says) in [
        (
            "__nobody",
            "vm.swappiness=61: /proc/sys/vm/swappiness: it may be written by root only; run weir as root",
        ),
        ("__read_only", "vm.swappiness=61: /proc/sys/vm/swappiness: its file system is mounted read-only"),
    ] {
        let said = Run::whole(verb, &journal, &wanted);
        assert!(said.starts_with(says), "{said}");
        assert!(!journal.exists(), "{verb}");
    }
}

pub fn root_a_share_in_bytes_is_led_back() {
    let disk = Disk::new();
    disk.write("bdi/max_ratio_fine", "123457");
    let applied = disk.trial(&["bdi/max_bytes=50000000", "bdi/strict_limit=1"]).unwrap();
    let bytes: u64 = disk.read("bdi/max_bytes").parse().unwrap();
    assert!(bytes.abs_diff(50_000_000) < 5_000_000, "{bytes}");
    assert_ne!(disk.read("bdi/max_ratio_fine"), "123457");
    applied.restore().unwrap();
    assert_eq!(
        (disk.read("bdi/max_ratio_fine"), disk.read("bdi/strict_limit")),
        ("123457".into(), "0".into())
    );
}

pub fn root_everything_of_a_device_is_read() {
    let disk = Disk::new();
    let host = Host::live();
    let target = host.target(Path::new("/dev").join(&disk.name).as_path()).unwrap();
    let readings = knob::readings(&host, Some(&target));
    let reading = |name: &str| {
        let knob: KnobName = name.parse().unwrap();
        readings.iter().find(|reading| reading.knob == knob).unwrap_or_else(|| panic!("{name} is not read"))
    };
    let of_disk = |setting: &str| reading(&format!("{}/{setting}", disk.name));
    assert_eq!(of_disk("scheduler").value, Some(Value::Word("mq-deadline".into())));
    assert!(of_disk("scheduler").choices.contains(&"none".to_string()));
    assert_eq!(
        (of_disk("nr_requests").value.clone(), of_disk("nr_requests").max),
        (Some(Value::Number(64)), Some(128))
    );
    assert_eq!(of_disk("max_sectors_kb").max, disk.read("queue/max_hw_sectors_kb").parse().ok());
    assert_eq!(of_disk("bdi/max_ratio").value, Some(Value::Number(100)));
    assert_eq!(of_disk("iosched/fifo_batch").value, Some(Value::Number(32)));
    assert!(of_disk("write_cache").value.is_some() && reading("vm.dirty").min == Some(8192));
    assert_eq!(reading("vm.drop_caches").value, None);
    assert!(
        readings.iter().all(|reading| reading.value.is_some() != (reading.knob.setting == "vm.drop_caches"))
    );
}
