//! The guard as a service, installed under a folder of the test's own and removed again; a guard's record looked at.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::weir::{Ended, Weir};

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

fn contains(text: &str, parts: &[&str]) {
    parts.iter().for_each(|part| assert!(text.contains(part), "no `{part}` in\n{text}"));
}

/// `weir guard …` with a folder for `/`.
fn guard(weir: &Weir, root: &Path, arguments: &[&str]) -> Ended {
    let root = root.to_string_lossy().into_owned();
    let words: Vec<&str> = ["guard"].iter().chain(arguments).copied().chain(["--root", &root]).collect();
    weir.run(Path::new("/"), &words)
}

const INSTALL: [&str; 6] =
    ["install", "--shadow", "--protect", "mariadb.service", "--metrics", "127.0.0.1:9750"];

#[test]
fn a_service_is_installed_as_said_and_removed_without_a_trace() {
    let (weir, root) = (Weir::new(), tempfile::tempdir().unwrap());
    fs::create_dir_all(root.path().join("etc/systemd/system")).unwrap();
    let shown = guard(&weir, root.path(), &[&INSTALL[..], &["--dry-run"]].concat());
    assert_eq!((shown.code, files(root.path()).len()), (0, 0), "{shown:?}");

    let done = guard(&weir, root.path(), &INSTALL);
    assert_eq!(done.code, 0, "{done:?}");
    contains(
        &done.stdout,
        &["wrote ", "guard.toml\n", "systemctl enable --now weir-guard", "weir guard watch"],
    );
    let read = |path: &str| fs::read_to_string(root.path().join(path)).unwrap();
    let unit = read("etc/systemd/system/weir-guard.service");
    contains(&unit, &["Type=notify\n", "WatchdogSec=30\n", " knobs rollback --stale\n", "AF_INET"]);
    let config = read("etc/weir/guard.toml");
    contains(&config, &["shadow = true\n", "mariadb.service", "127.0.0.1:9750"]);
    let board: serde_json::Value =
        serde_json::from_str(&read("usr/local/share/weir/grafana-guard.json")).unwrap();
    assert_eq!(board["uid"], "weir-guard");
    contains(&shown.stdout, &[&unit, &config]);
    // What was installed the guard itself reads.
    let file = root.path().join("etc/weir/guard.toml").to_string_lossy().into_owned();
    let read_back = weir.run(Path::new("/"), &["guard", "run", "--print-config", "--config", &file]);
    assert_eq!((read_back.code, read_back.stdout), (0, config), "{}", read_back.stderr);

    let again = guard(&weir, root.path(), &INSTALL);
    assert_eq!(again.code, 0, "{again:?}");
    let gone = guard(&weir, root.path(), &["uninstall"]);
    assert_eq!(gone.code, 0, "{gone:?}");
    assert_eq!(files(root.path()), Vec::<PathBuf>::new());
    assert!(!root.path().join("etc/weir").exists() && root.path().join("etc/systemd/system").exists());
    contains(&guard(&weir, root.path(), &["uninstall"]).stdout, &["nothing to remove"]);
}

#[test]
fn a_configuration_that_was_edited_stays() {
    let (weir, root) = (Weir::new(), tempfile::tempdir().unwrap());
    assert_eq!(guard(&weir, root.path(), &INSTALL).code, 0);
    let config = root.path().join("etc/weir/guard.toml");
    fs::write(&config, "shadow = false\n").unwrap();
    let refused = guard(&weir, root.path(), &INSTALL);
    assert_eq!(refused.code, 3, "{refused:?}");
    contains(&refused.stderr, &["guard.toml was changed since weir wrote it", "nothing was written"]);
    let gone = guard(&weir, root.path(), &["uninstall"]);
    contains(&gone.stdout, &["left ", "guard.toml: it was changed since"]);
    assert_eq!(files(root.path()), [config]);
}

/// A service starts in no folder of its user's, and on no settings that nobody named.
#[test]
fn a_service_is_told_whole_paths_and_what_was_typed() {
    let (weir, root, data) = (Weir::new(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::create_dir(data.path().join("log")).unwrap();
    let place = root.path().to_string_lossy().into_owned();
    let install =
        |more: &[&str]| weir.run(data.path(), &[&["guard", "install", "--root", &place][..], more].concat());
    let refused = install(&["--print-config"]);
    assert_eq!((refused.code, files(root.path()).len()), (2, 0), "{refused:?}");
    let done = install(&[".", "sdx", "--shadow", "--log", "log/guard.log"]);
    assert_eq!(done.code, 0, "{done:?}");
    let config = root.path().join("etc/weir/guard.toml");
    let (text, here) = (fs::read_to_string(&config).unwrap(), data.path().to_string_lossy());
    contains(
        &text,
        &[&format!("\"{here}"), "\"sdx\"", &format!("\"{here}/log/guard.log\""), "shadow = true\n"],
    );
    // The step that it prints; what it changes is still weir's.
    let config_name = config.to_string_lossy().into_owned();
    let acts = install(&["--config", &config_name, "--shadow=false"]);
    assert_eq!(acts.code, 0, "{acts:?}");
    assert_eq!(fs::read_to_string(&config).unwrap(), text.replace("shadow = true", "shadow = false"));
    let recorder = weir.run(
        data.path(),
        &["recorder", "install", "--root", &place, "--devices", "log,sdx", "--slow", "50ms"],
    );
    assert_eq!(recorder.code, 0, "{recorder:?}");
    let unit = fs::read_to_string(root.path().join("etc/systemd/system/weir-recorder.service")).unwrap();
    contains(&unit, &[&format!(" --devices {here}/log,sdx --slow 50ms\n")]);
    for service in ["guard", "recorder"] {
        assert_eq!(weir.run(data.path(), &[service, "uninstall", "--root", &place]).code, 0);
    }
    assert_eq!(files(root.path()), Vec::<PathBuf>::new());
}

#[test]
fn systemd_takes_the_unit() {
    let (weir, root) = (Weir::new(), tempfile::tempdir().unwrap());
    assert_eq!(guard(&weir, root.path(), &INSTALL).code, 0);
    let unit = root.path().join("etc/systemd/system/weir-guard.service");
    let verified = std::process::Command::new("systemd-analyze").arg("verify").arg(&unit).output();
    let Ok(verified) = verified else {
        _ = writeln!(std::io::stderr(), "not run: systemd_takes_the_unit: it needs systemd-analyze");
        return;
    };
    let said = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success() && !said.contains("weir-guard.service"), "{said}");
}

#[test]
fn a_guards_record_is_shown_listed_and_drawn() {
    const RECORD: &str = include_str!("../fixtures/record-guard.json");
    const ID: &str = "20261121-180000-000-beef";
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    fs::write(weir.store().join(format!("{ID}.json")), RECORD).unwrap();
    let run = |arguments: &[&str]| {
        let run = weir.run(folder.path(), arguments);
        assert_eq!(run.code, 0, "{arguments:?}: {run:?}");
        run.stdout
    };
    contains(&run(&["results", "list"]), &[ID, "guard", "loop0", "Syncs kept 92 %"]);
    contains(
        &run(&["results", "show", "beef"]),
        &["Syncs kept 92 % of their rate under a flood", "mariadb.service"],
    );
    let json: serde_json::Value =
        serde_json::from_str(&run(&["results", "show", "beef", "--format", "json"])).unwrap();
    assert_eq!(json["schema"], "weir.guard/1");
    let page = run(&["report", "beef", "-o", "-"]);
    contains(&page, &["id=\"course-0\"", "Every decision", "flood, guarded"]);
}
