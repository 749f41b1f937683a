//! A guard beside what other commands measure of floods, and the guard that an experiment starts.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::thread;

use serde_json::Value;
use tempfile::TempDir;
use weir_control::{
    Action, Branch, Cost, Decision, DeviceState, Inputs, Mood, Second, Sensor, SensorSource, Standing, State,
    Target, Totals, state,
};

use crate::lab::{LoopDevice, root_or_say};
use crate::weir::{Ended, Weir, ended};

/// A folder for `WEIR_RUN` in which somebody answers as a guard of sda would.
fn answered(shadow: bool) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(folder.path().join("guard.sock")).unwrap();
    let line = serde_json::to_string(&guard_of_sda(shadow)).unwrap() + "\n";
    // Ends with the process of the tests.
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let mut wish = String::new();
            if BufReader::new(&stream).read_line(&mut wish).is_ok() && wish == "state\n" {
                let _ = (&stream).write_all(line.as_bytes());
            }
        }
    });
    folder
}

fn guard_of_sda(shadow: bool) -> State {
    let standing = if shadow { Standing::Shadow } else { Standing::Guarding };
    let decision = Decision {
        at_ns: 0,
        action: Action::Keep,
        branch: Branch::Steady,
        inputs: Inputs::default(),
        mood: Mood::Released,
    };
    State {
        schema: state::SCHEMA.to_string(),
        weir_version: "0.2.0".to_string(),
        pid: 17,
        since: "2026-11-25T03:00:00Z".to_string(),
        at: "2026-11-25T03:00:01Z".to_string(),
        at_ms: 1000,
        shadow,
        target: Target::default(),
        protect: "all".to_string(),
        devices: vec![DeviceState {
            name: "sda".to_string(),
            number: Default::default(),
            standing,
            sensor: Sensor { source: SensorSource::Syscalls, silent_ns: 0, lost: 0 },
            actuator: "vm.dirty_bytes".to_string(),
            private_actuator: None,
            saved_bytes: 1 << 30,
            floor_bytes: 1 << 20,
            second: Second::default(),
            private_cgroups: 0,
            decision,
            writers: Vec::new(),
            totals: Totals::default(),
        }],
        decisions: Vec::new(),
        cost: Cost::default(),
        remarks: Vec::new(),
    }
}

/// A command line in a folder of its own beside what answers in `run`.
fn beside(run: &TempDir, line: &str) -> Ended {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    let mut command = weir.command(folder.path(), &line.split(' ').collect::<Vec<_>>());
    command.env("WEIR_RUN", run.path());
    ended(command)
}

#[test]
fn figures_beside_a_flood_say_whether_a_guard_acted_on_it() {
    let bench = "bench --dir . --size 1M --duration 300ms --json";
    let tune = "tune ab job:threads=1 job:threads=2 --engine null --duration 200ms --warmup 0s --pairs 1 \
                --build-up 100ms --washout 1s --format record";
    let flood = " --flood dd:size=1M,bs=64k";
    let said = "a guard acted on sda (process 17): ";
    for (shadow, flood, acted) in [(false, flood, true), (false, "", false), (true, flood, false)] {
        let run = answered(shadow);
        let measured = beside(&run, &format!("{bench}{flood}"));
        let result: Value = serde_json::from_str(&measured.stdout).unwrap();
        let notes = result["notes"].as_array().unwrap();
        let noted = notes.iter().find(|note| note["key"] == "guard-acting");
        let noted = noted.map(|note| note["text"].as_str().unwrap().starts_with(said));
        assert_eq!(noted, acted.then_some(true), "{shadow} {flood}: {result}");

        let tried = beside(&run, &format!("{tune}{flood}"));
        let record: Value = serde_json::from_str(&tried.stdout).unwrap();
        let remarks = record["extra"]["remarks"].to_string();
        assert_eq!(remarks.contains(said), acted, "{shadow} {flood}: {remarks}");
        assert_eq!(tried.stderr.contains(said), acted, "{shadow} {flood}: {}", tried.stderr);
    }
}

#[test]
fn root_an_experiment_with_a_guard_is_refused_beside_another() {
    if !root_or_say("root_an_experiment_with_a_guard_is_refused_beside_another", &[]) {
        return;
    }
    for shadow in [false, true] {
        let run = answered(shadow);
        let refused = beside(&run, "db flood --sandbox mariadb");
        assert_eq!(refused.code, 3, "{refused:?}");
        for part in ["a guard runs already: it answers on ", "hint: stop it", "systemctl stop weir-guard"] {
            assert!(refused.stderr.contains(part), "{part}: {refused:?}");
        }
    }
}

/// Where this machine's settings of the guard would keep it from its start.
#[test]
fn root_alone_the_guard_of_an_experiment_has_the_default_settings() {
    let test = "root_alone_the_guard_of_an_experiment_has_the_default_settings";
    if !root_or_say(test, &["mkfs.ext4", "unshare", "mariadbd"]) {
        return;
    }
    let (weir, etc, run) = (Weir::alone(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let device = LoopDevice::create(&["fs=ext4", "size=1G"]);
    let script = "cp -a /etc/. \"$0\" && mkdir -p \"$0/weir\" && echo 'actuator = \"none\"' >\"$0/weir/guard.toml\" \
                  && chmod 755 \"$0\" && mount --bind \"$0\" /etc && exec \"$@\"";
    let wrapper = ["unshare", "--mount", "sh", "-c", script, &etc.path().to_string_lossy()];
    let line = "db flood commit --sandbox mariadb --dir . --time 500ms --table-size 500 --threads 2 --washout 1s \
                --repeats 1 --flood dd:size=64M,rate=1M --format record";
    let mut command = weir.wrapped(&wrapper, &device.mount(), &line.split(' ').collect::<Vec<_>>());
    command.env("WEIR_RUN", run.path()).env("WEIR_JOURNAL", run.path().join("journal"));
    let ended = ended(command);
    assert_eq!(ended.code, 0, "{ended:?}");
    let record: Value = serde_json::from_str(&ended.stdout).unwrap();
    let trials = record["extra"]["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 3, "{}", ended.stderr);
    for trial in trials {
        assert!(trial["observation"]["outcome"]["measured"].is_object(), "{trial}\n{}", ended.stderr);
    }
    let mut journal = fs::read_dir(run.path().join("journal")).unwrap().flatten();
    assert!(
        journal.all(|file| file.path().extension().is_none_or(|e| e != "json")),
        "its limits are restored"
    );
}
