//! Throw-away servers, on both that packages bring.
#![allow(
    clippy::unwrap_used,
    reason = "test code throughout; clippy knows that only of functions under #[test]"
)]

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use weir_db::sandbox::{Binaries, Flavour, Sandbox, SandboxError, SandboxSpec, Variables, list};
use weir_db::{Connection, DbError, Place, Secret, Server};

/// The servers that Debian packages; the set-up of the tests installs them.
fn installed(test: &str) -> Vec<Flavour> {
    let found = |flavour: &Flavour| match Binaries::find(*flavour, None) {
        Ok(_) => true,
        Err(error) => {
            _ = writeln!(std::io::stderr(), "not run: {test} ({flavour}): {error}");
            false
        }
    };
    [Flavour::Mariadb, Flavour::Postgres].into_iter().filter(found).collect()
}

fn go_on() -> bool {
    false
}

fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

/// Nothing of a sandbox in `dir` is left: no folder, no process, no entry in the list.
fn check_gone(dir: &Path, run: &Path, pid: u32) {
    assert!(!dir.exists(), "{} is left", dir.display());
    assert!(!run.exists(), "{} is left", run.display());
    assert!(!is_alive(pid), "process {pid} is left");
    assert!(list().iter().all(|listed| listed.dir != dir));
}

#[test]
fn a_server_starts_restarts_with_variables_crashes_and_goes_away() {
    for flavour in installed("a_server_starts_restarts_with_variables_crashes_and_goes_away") {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("data base");
        let spec = SandboxSpec::new(flavour, &dir);
        let mut sandbox = Sandbox::start(&spec, &go_on).unwrap();
        let run = sandbox.socket().parent().unwrap().to_path_buf();
        let first = sandbox.pid().unwrap();
        assert!(list().iter().any(|l| l.dir == dir && !l.abandoned), "{flavour}: not in the list");

        let (name, value) = match flavour {
            Flavour::Postgres => ("max_connections", "17"),
            _ => ("innodb_io_capacity", "321"),
        };
        sandbox.restart(&Variables::from([(name.into(), value.into())]), &go_on).unwrap();
        assert!(!is_alive(first));
        sandbox.kill().unwrap();
        assert_eq!(sandbox.pid(), None);
        sandbox.run(&go_on).unwrap();
        let last = sandbox.pid().unwrap();
        assert!(sandbox.ended().unwrap().is_none());
        drop(sandbox);
        check_gone(&dir, &run, last);
    }
}

/// Names of memory files and numbers of System V segments that this account has on this machine.
fn shared_memory(uid: u32) -> BTreeSet<String> {
    let files = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let own = files.filter(|entry| entry.metadata().is_ok_and(|found| found.uid() == uid));
    let names = own.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let table = fs::read_to_string("/proc/sysvipc/shm").unwrap();
    let fields = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let segments = fields.filter(|fields| fields[7] == uid.to_string()).map(|fields| fields[1].to_string());
    names.filter(|name| name.starts_with("PostgreSQL.")).chain(segments).collect()
}

#[test]
fn a_killed_postgresql_with_a_port_of_its_own_leaves_no_shared_memory() {
    let test = "a_killed_postgresql_with_a_port_of_its_own_leaves_no_shared_memory";
    if !installed(test).contains(&Flavour::Postgres) {
        return;
    }
    let parent = tempfile::tempdir().unwrap();
    let spec = SandboxSpec::new(Flavour::Postgres, parent.path().join("d")).set("port", "6001");
    let mut sandbox = Sandbox::start(&spec, &go_on).unwrap();
    assert!(sandbox.socket().ends_with(".s.PGSQL.6001"), "{}", sandbox.socket().display());
    let process = format!("/proc/{}", sandbox.pid().unwrap());
    let uid = fs::metadata(&process).unwrap().uid();
    let maps = fs::read_to_string(format!("{process}/maps")).unwrap();
    assert!(
        maps.contains("/dev/shm/PostgreSQL.") && maps.contains("SYSV"),
        "it has none: this test looks at nothing"
    );
    sandbox.kill().unwrap();
    sandbox.run(&go_on).unwrap();
    sandbox.kill().unwrap();
    drop(sandbox);
    assert_eq!(shared_memory(uid), BTreeSet::new());
}

#[test]
fn a_copy_has_the_same_data_and_needs_a_stopped_server() {
    for flavour in installed("a_copy_has_the_same_data_and_needs_a_stopped_server") {
        let parent = tempfile::tempdir().unwrap();
        let copy_dir = parent.path().join("copy");
        let mut sandbox =
            Sandbox::start(&SandboxSpec::new(flavour, parent.path().join("a")), &go_on).unwrap();
        let error = sandbox.clone_to(&copy_dir, &go_on).unwrap_err();
        assert!(matches!(error, SandboxError::Runs(_)), "{error}");
        assert!(!copy_dir.exists());
        sandbox.stop().unwrap();
        let mut copy = sandbox.clone_to(&copy_dir, &go_on).unwrap();
        copy.run(&go_on).unwrap();
        sandbox.run(&go_on).unwrap();
        assert_ne!(copy.socket(), sandbox.socket());
    }
}

#[test]
fn kept_data_are_taken_up_again_by_the_same_server_only() {
    for flavour in installed("kept_data_are_taken_up_again_by_the_same_server_only") {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("kept");
        let fresh = SandboxSpec::new(flavour, &dir);
        let spec = SandboxSpec { take_up: true, ..fresh.clone() };
        drop(Sandbox::start(&SandboxSpec { keep: true, ..spec.clone() }, &go_on).unwrap());
        let sign = dir.join("data/of the first");
        fs::write(&sign, "").unwrap();
        let owner = fs::metadata(dir.join("data")).unwrap();
        std::os::unix::fs::chown(&sign, Some(owner.uid()), Some(owner.gid())).unwrap();
        let taken = Sandbox::start(&spec, &go_on).unwrap();
        assert!(taken.keeps());
        drop(taken);
        assert!(sign.exists(), "{flavour}: they stayed for one call alone");
        let error = Sandbox::start(&spec.clone().set("no_such_variable", "1"), &go_on).unwrap_err();
        assert!(matches!(error, SandboxError::Server { .. }), "{error}");
        let error = Sandbox::start(&fresh, &go_on).unwrap_err();
        assert!(matches!(error, SandboxError::Kept { .. }) && error.is_usage(), "{error}");
        assert!(sign.exists());
        let other = if flavour == Flavour::Postgres { Flavour::Mariadb } else { Flavour::Postgres };
        if Binaries::find(other, None).is_ok() {
            let error = Sandbox::create(&SandboxSpec { flavour: other, ..spec }, &go_on).unwrap_err();
            assert!(matches!(error, SandboxError::OtherFlavour { .. }), "{error}");
            assert!(sign.exists());
        }
    }
}

#[test]
fn what_goes_wrong_is_said_and_leaves_nothing() {
    for flavour in installed("what_goes_wrong_is_said_and_leaves_nothing") {
        let parent = tempfile::tempdir().unwrap();
        let at = |name: &str| SandboxSpec::new(flavour, parent.path().join(name));
        let before: Vec<PathBuf> = list().into_iter().map(|l| l.run).collect();

        fs::create_dir(parent.path().join("full")).unwrap();
        fs::write(parent.path().join("full/mine"), "").unwrap();
        let in_use = Sandbox::start(&at("used"), &go_on).unwrap();
        let cases = [
            (at("full"), "is not empty"),
            (at("used"), "in use by another weir"),
            (at("missing/folder"), "No such file"),
            (at("bad").set("no_such_variable", "1"), "no_such_variable"),
            (at("odd").set("a b", "1"), "letters, digits"),
            (SandboxSpec { binary: Some("/bin/true".into()), ..at("true") }, "/bin/true is no"),
        ];
        for (spec, part) in cases {
            let error = Sandbox::start(&spec, &go_on).unwrap_err();
            let name = spec.dir.display();
            assert!(error.to_string().contains(part), "{flavour}, {name}: {error}");
            assert!(error.hint().is_some() || error.is_usage() || part.contains("/bin"), "{name}: {error}");
        }
        let stopped = Sandbox::start(&at("stopped"), &|| true).unwrap_err();
        assert!(matches!(stopped, SandboxError::Stopped), "{stopped}");
        drop(in_use);
        let left: Vec<String> = fs::read_dir(parent.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert_eq!(left, ["full"]);
        let own = |l: &weir_db::sandbox::Listed| l.dir.starts_with(parent.path());
        assert!(list().iter().all(|l| !own(l) || before.contains(&l.run)));
    }
}

/// Every account of the machine reaches a port of it.
#[test]
fn by_tcp_nobody_is_superuser_without_a_password() {
    for flavour in installed("by_tcp_nobody_is_superuser_without_a_password") {
        let parent = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (open, addresses) = match flavour {
            Flavour::Postgres => ("listen_addresses", "127.0.0.1"),
            _ => ("skip_networking", "0"),
        };
        let spec = SandboxSpec::new(flavour, parent.path().join("d"))
            .set(open, addresses)
            .set("port", &port.to_string());
        let sandbox = Sandbox::start(&spec, &go_on).unwrap();
        let local = sandbox.server();
        let grant = match flavour {
            Flavour::Postgres => "CREATE ROLE known LOGIN PASSWORD 'p'",
            _ => "CREATE USER known@'127.0.0.1' IDENTIFIED BY 'p'",
        };
        Connection::open(&local).unwrap().run(grant).unwrap();
        let by_tcp = |user: &str, password: &str| {
            let place = Place::Tcp { host: "127.0.0.1".into(), port };
            let (user, password) = (user.to_string(), Secret::new(password));
            Connection::open(&Server { place, user, password, ..local.clone() }).map(drop)
        };
        by_tcp("known", "p").unwrap();
        for (user, password) in
            [(local.user.as_str(), ""), (local.user.as_str(), "p"), ("", ""), ("known", "")]
        {
            let came = by_tcp(user, password);
            assert!(
                matches!(came, Err(DbError::Server(_) | DbError::Login { .. })),
                "{flavour}: {user:?} {password:?}: {came:?}"
            );
        }
    }
}

#[test]
fn a_deep_folder_does_not_matter() {
    for flavour in installed("a_deep_folder_does_not_matter") {
        let parent = tempfile::tempdir().unwrap();
        let deep = parent.path().join("d".repeat(90)).join("e".repeat(90));
        fs::create_dir_all(&deep).unwrap();
        let sandbox = Sandbox::start(&SandboxSpec::new(flavour, deep.join("data")), &go_on).unwrap();
        assert!(sandbox.socket().as_os_str().len() < 108);
    }
}
