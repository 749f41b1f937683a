//! Throw-away servers that root starts beside accounts that mean harm: each test is an attack that once led somewhere.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::json;
use tempfile::TempDir;

use crate::db_sandbox::{Yard, installed, is_alive, wait_until};
use crate::lab::root_or_say;
use crate::weir::{Weir, without_terminal};

/// The account of attackers: one that no process of the machine has, so that nobody but the test is in what is its.
const NOBODY: u32 = 2_013_000_007;

/// A folder that belongs to an unprivileged account.
fn folder_of_nobody() -> TempDir {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    folder
}

/// A file that only root may write, and what it looks like.
struct Victim {
    folder: TempDir,
}

impl Victim {
    fn new() -> Victim {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(folder.path().join("data")).unwrap();
        for name in ["precious", "data/precious"] {
            fs::write(folder.path().join(name), "root's own").unwrap();
            fs::set_permissions(folder.path().join(name), Permissions::from_mode(0o600)).unwrap();
        }
        Victim { folder }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("precious")
    }

    fn check_whole(&self, what: &str) {
        for name in ["precious", "data/precious"] {
            let path = self.folder.path().join(name);
            let found = fs::metadata(&path).unwrap_or_else(|error| panic!("{what}: {name}: {error}"));
            assert_eq!(fs::read_to_string(&path).unwrap(), "root's own", "{what}: {name}");
            assert_eq!((found.uid(), found.mode() & 0o777), (0, 0o600), "{what}: {name}");
        }
    }
}

#[test]
fn root_a_folder_of_another_account_is_refused_and_its_links_are_not_followed() {
    let test = "root_a_folder_of_another_account_is_refused_and_its_links_are_not_followed";
    if !root_or_say(test, &[]) {
        return;
    }
    for server in installed(test) {
        for name in ["server.log", "server.conf", "weir-sandbox.json.new", "data", "tmp"] {
            let (victim, theirs, yard) = (Victim::new(), folder_of_nobody(), Yard::new());
            let dir = theirs.path().join("d");
            fs::create_dir(&dir).unwrap();
            let identity =
                json!({"schema": "weir.sandbox/1", "flavour": server, "version": "", "initialised": false});
            fs::write(dir.join("weir-sandbox.json"), identity.to_string()).unwrap();
            let target = if name == "data" || name == "tmp" {
                victim.folder.path().to_path_buf()
            } else {
                victim.file()
            };
            symlink(&target, dir.join(name)).unwrap();
            for path in [dir.clone(), dir.join("weir-sandbox.json")] {
                chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
            let ended = yard.run(&[server, "--dir", dir.to_str().unwrap(), "--", "true"]);
            victim.check_whole(&format!("{server}, {name}"));
            let owner = fs::metadata(victim.folder.path()).unwrap().uid();
            assert_eq!(owner, 0, "{server}, {name}: the folder was given away");
            assert_eq!(ended.code, 3, "{server}, {name}: {ended:?}");
            let words = [&format!("it belongs to account {NOBODY}"), "hint: name a folder that"];
            assert!(words.iter().all(|word| ended.stderr.contains(*word)), "{ended:?}");
            assert!(dir.join(name).is_symlink(), "{name}: something was removed");
        }
    }
}

/// The owner of the folder above may rename what root made in it. What takes its place stays as it is.
#[test]
fn root_what_takes_the_place_of_a_sandbox_is_not_removed_for_it() {
    let test = "root_what_takes_the_place_of_a_sandbox_is_not_removed_for_it";
    if !root_or_say(test, &[]) {
        return;
    }
    for server in installed(test) {
        for kill in [true, false] {
            let (victim, theirs, yard) = (Victim::new(), folder_of_nobody(), Yard::new());
            let (dir, moved) = (theirs.path().join("d"), theirs.path().join("moved"));
            let (mut running, pid) = yard.start(&[server, "--dir", dir.to_str().unwrap()]);
            wait_until("the data are whole", || dir.join("data").exists());
            fs::rename(&dir, &moved).unwrap();
            symlink(victim.folder.path(), &dir).unwrap();
            running.signal(if kill { "KILL" } else { "TERM" });
            running.finish();
            wait_until("the server has gone", || !is_alive(pid));
            wait_until("its data have gone", || !moved.join("data").exists());
            wait_until("its entry has gone", || yard.listed().is_empty());
            victim.check_whole(&format!("{server}, killed: {kill}"));
        }
    }
}

/// What /proc says of a process.
fn status(pid: u32) -> BTreeMap<String, String> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let pair =
        |line: &str| line.split_once(':').map(|(key, value)| (key.to_string(), value.trim().to_string()));
    text.lines().filter_map(pair).collect()
}

/// A folder that only root may enter is where capabilities were once given for.
#[test]
fn root_a_servers_account_has_no_right_descriptor_or_variable_of_roots() {
    let test = "root_a_servers_account_has_no_right_descriptor_or_variable_of_roots";
    if !root_or_say(test, &[]) {
        return;
    }
    for server in installed(test) {
        let yard = Yard::new();
        let secret = yard.folder().join("secret");
        fs::write(&secret, "root's own").unwrap();
        // An open descriptor and variables as a careless caller leaves them.
        let mut command = Command::new("sh");
        command.args(["-c", "exec 7<\"$0\"; exec \"$@\""]).arg(&secret);
        let weir = yard.command(&[server, "--dir", "d"]);
        command.arg(weir.get_program()).args(weir.get_args()).current_dir(yard.folder());
        command.envs(weir.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("LD_PRELOAD", "/nonexistent/preloaded.so").env("MYSQL_HOME", "/nonexistent");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (mut running, pid) = yard.started(command);
        let status = status(pid);
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert_eq!(status[set], "0000000000000000", "{server}: {set}");
        }
        assert_eq!(status["NoNewPrivs"], "1", "{server}");
        assert_eq!(status["Groups"], "", "{server}");
        assert!(!status["Uid"].split_whitespace().any(|uid| uid == "0"), "{server}: {}", status["Uid"]);
        let environment = fs::read_to_string(format!("/proc/{pid}/environ")).unwrap();
        for line in environment.split('\0').filter(|line| !line.is_empty()) {
            let name = line.split('=').next().unwrap();
            // PostgreSQL sets the last two itself.
            let known = ["PATH", "LC_ALL", "PG_GRANDPARENT_PID", "PGSYSCONFDIR", "PGLOCALEDIR"];
            assert!(known.contains(&name), "{server}: {line}");
        }
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
        let links = descriptors.map(|entry| fs::read_link(entry.unwrap().path()).unwrap_or_default());
        assert!(links.into_iter().all(|link| link != secret), "{server}: a descriptor was inherited");
        // Its session has no terminal whose input it could write.
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        assert_eq!((fields[3], fields[4]), (pid.to_string().as_str(), "0"), "{server}: session, terminal");
        let sockets = || fs::read_dir(yard.run_folder()).unwrap().map(|run| run.unwrap().path().join("s"));
        wait_until("it is in use", || sockets().all(|folder| fs::metadata(folder).unwrap().uid() == 0));
        check_root_owns(&yard.run_folder(), server);
        running.signal("TERM");
        running.finish();
    }
}

/// The folders in which markers and sockets' folders lie are root's.
fn check_root_owns(run: &Path, server: &str) {
    for entry in fs::read_dir(run).unwrap() {
        let path = entry.unwrap().path();
        let found = fs::metadata(&path).unwrap();
        assert_eq!((found.uid(), found.mode() & 0o022), (0, 0), "{server}: {}", path.display());
        assert_eq!(fs::metadata(path.join("sandbox.json")).unwrap().uid(), 0, "{server}");
        // Nor can the account put a link to another server in the place of its own socket, once that is in use.
        assert_eq!(fs::metadata(path.join("s")).unwrap().uid(), 0, "{server}");
    }
}

#[test]
fn root_a_program_that_a_server_starts_cannot_write_where_root_alone_may() {
    let test = "root_a_program_that_a_server_starts_cannot_write_where_root_alone_may";
    if !root_or_say(test, &["psql"]) || !installed(test).contains(&"postgres") {
        return;
    }
    let (victim, yard) = (Victim::new(), Yard::new());
    let copy = format!("COPY (SELECT 'owned') TO PROGRAM 'cat >{}'", victim.file().display());
    let script = "psql -v ON_ERROR_STOP=1 -c \"$0\"; echo \"psql ended with $?\"";
    // The yard's own folder is root's alone, which is what the server's account once got a capability for.
    let ended = yard.run(&["postgres", "--dir", "d", "--", "sh", "-c", script, &copy]);
    victim.check_whole("COPY TO PROGRAM");
    assert!(ended.stdout.contains("psql ended with 1"), "it was not tried: {ended:?}");
    assert!(ended.stderr.contains("child process exited"), "{ended:?}");
}

/// Whoever makes the folder beforehand, as mktemp does, closes it to everybody else.
#[test]
fn root_a_folder_that_is_closed_to_the_servers_account_serves() {
    let test = "root_a_folder_that_is_closed_to_the_servers_account_serves";
    if !root_or_say(test, &[]) {
        return;
    }
    for server in installed(test) {
        for parent in ["/var/tmp", "/dev/shm"] {
            let (yard, folder) = (Yard::new(), tempfile::tempdir_in(parent).unwrap());
            fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
            let ended = yard.run(&[server, "--dir", folder.path().to_str().unwrap(), "--", "true"]);
            assert_eq!(ended.code, 0, "{server} in {parent}: {ended:?}");
            let left = fs::read_dir(folder.path()).unwrap().count();
            assert_eq!((left, fs::metadata(folder.path()).unwrap().mode() & 0o777), (0, 0o700), "{server}");
        }
    }
}

/// What a sandbox's folder says of itself.
fn identity(made: bool, server: serde_json::Value) -> serde_json::Value {
    json!({
        "schema": "weir.sandbox/1", "flavour": "mariadb", "version": "", "initialised": true, "keep": false,
        "made_dir": made, "accounts": [], "server": server,
    })
}

/// What a killed weir leaves beside a socket: a lock that nobody has, and a pointer to a folder of this device and inode.
fn write_marker(yard: &Yard, dir: &Path, folder: [u64; 2], identity: &serde_json::Value) -> PathBuf {
    let run = yard.run_folder().join("1-1");
    fs::create_dir_all(&run).unwrap();
    fs::write(run.join("lock"), "").unwrap();
    let text = json!({"dir": dir, "folder": folder, "identity": identity});
    fs::write(run.join("sandbox.json"), text.to_string()).unwrap();
    run
}

/// A process of root's that must not die, with what a marker says of it.
struct Sleeper(Child);

impl Sleeper {
    fn start() -> Sleeper {
        Sleeper(Command::new("sleep").arg("600").spawn().unwrap())
    }

    fn identity(&self) -> serde_json::Value {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        let ticks: u64 =
            stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap();
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        json!({"pid": self.0.id(), "started_ticks": ticks, "boot_id": boot.trim()})
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn root_markers_that_another_account_can_write_are_not_heeded() {
    let test = "root_markers_that_another_account_can_write_are_not_heeded";
    if !root_or_say(test, &[]) {
        return;
    }
    // Whose the marker's folder and the marker are, and the mode of the folder of all of them.
    for (folder, marker, mode) in
        [(NOBODY, NOBODY, 0o755), (0, NOBODY, 0o755), (NOBODY, 0, 0o755), (0, 0, 0o777)]
    {
        let what = format!("folder of {folder}, marker of {marker}, in mode {mode:o}");
        let (victim, yard, mut sleeper) = (Victim::new(), Yard::new(), Sleeper::start());
        let said = identity(false, sleeper.identity());
        fs::write(victim.folder.path().join("weir-sandbox.json"), said.to_string()).unwrap();
        let found = fs::metadata(victim.folder.path()).unwrap();
        let run = write_marker(&yard, victim.folder.path(), [found.dev(), found.ino()], &said);
        fs::set_permissions(yard.run_folder(), Permissions::from_mode(mode)).unwrap();
        chown(run.join("sandbox.json"), Some(marker), Some(marker)).unwrap();
        chown(&run, Some(folder), Some(folder)).unwrap();
        let ended = yard.run(&["clean"]);
        assert!(sleeper.0.try_wait().unwrap().is_none(), "{what}: a process of root's was killed: {ended:?}");
        victim.check_whole(&what);
        assert_eq!(yard.listed().len(), 0, "{what}");
    }
}

/// A number that the kernel has given out again since.
#[test]
fn a_process_that_only_has_the_number_of_a_server_is_left_alone() {
    let (yard, mut sleeper) = (Yard::new(), Sleeper::start());
    let mut server = sleeper.identity();
    server["started_ticks"] = json!(server["started_ticks"].as_u64().unwrap() - 1);
    let device = fs::metadata(yard.folder()).unwrap().dev();
    let run = write_marker(&yard, &yard.folder().join("gone"), [device, 1], &identity(true, server));
    let ended = yard.run(&["clean"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.stdout.starts_with("removed "), "{ended:?}");
    assert!(sleeper.0.try_wait().unwrap().is_none(), "{ended:?}");
    assert!(!run.exists());
}

/// Its file system was unmounted, which a marker's device tells.
#[test]
fn what_cannot_be_seen_is_not_forgotten() {
    let yard = Yard::new();
    let device = fs::metadata(yard.folder()).unwrap().dev();
    let said = identity(true, json!(null));
    let run = write_marker(&yard, &yard.folder().join("hidden"), [device + 1, 1], &said);
    let ended = yard.run(&["clean"]);
    assert_eq!((ended.code, ended.stdout.as_str(), run.exists()), (3, "", true), "{ended:?}");
    assert!(ended.stderr.contains("its file system is not mounted"), "{ended:?}");
    assert!(ended.stderr.contains(&format!("rm -r {}", run.display())), "{ended:?}");
    assert_eq!(yard.listed()[0]["abandoned"], true);
}

#[test]
fn what_is_no_tree_is_refused_with_a_hint() {
    let yard = Yard::new();
    fs::create_dir_all(yard.folder().join("empty/usr/bin")).unwrap();
    fs::create_dir_all(yard.folder().join("bare/usr/bin")).unwrap();
    fs::create_dir_all(yard.folder().join("bare/etc")).unwrap();
    for (root, code, words) in [
        ("/nonexistent", 3, "cannot open the tree"),
        ("empty", 2, "it lacks etc"),
        ("bare", 3, "bare/usr/sbin"),
    ] {
        let ended = yard.run(&["postgres", "--dir", "d", "--root", root, "--", "true"]);
        assert_eq!(ended.code, code, "{root}: {ended:?}");
        assert!(ended.stderr.contains(words) && ended.stderr.contains("hint: "), "{root}: {}", ended.stderr);
        assert!(!yard.folder().join("d").exists(), "{root}");
    }
    let without = Weir::new().run(yard.folder(), &["db", "scale", "--root", "bare", "--postgres"]);
    assert_eq!(without.code, 2, "{without:?}");
    assert!(without.stderr.contains("--root is for a throw-away server"), "{without:?}");
}

fn has_memory_files(process: u32) -> bool {
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    name == "postgres\n" && maps.contains("/dev/shm/PostgreSQL.")
}

/// A plain user's PostgreSQL leaves nothing in /dev/shm either, whoever is killed and when.
#[test]
fn root_a_plain_users_killed_postgresql_leaves_no_memory_files() {
    let test = "root_a_plain_users_killed_postgresql_leaves_no_memory_files";
    if !root_or_say(test, &["setpriv"]) || !installed(test).contains(&"postgres") {
        return;
    }
    // initdb asks for the account's name, so it is a real one, and gets its folders when root has done with them.
    const USER: u32 = 65_534;
    let folder_of_root = || tempfile::tempdir_in("/var/tmp").unwrap();
    let (folder, run) = (folder_of_root(), folder_of_root());
    let weir = folder.path().join("weir");
    fs::copy(assert_cmd::cargo::cargo_bin!("weir"), &weir).unwrap();
    for path in [folder.path(), run.path()] {
        chown(path, Some(USER), Some(USER)).unwrap();
    }
    for hangs in [false, true] {
        let mut command = without_terminal();
        command
            .args(["setpriv", &format!("--reuid={USER}"), &format!("--regid={USER}")])
            .args(["--clear-groups", "--"])
            .arg(&weir)
            .args(["db", "sandbox", "postgres", "--dir", "d"])
            .current_dir(folder.path())
            .env("WEIR_RUN", run.path())
            .env("WEIR_STORE", folder.path().join("store"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = Weir::started(command, |_| true);
        let mut server = 0;
        wait_until("it has memory files", || {
            server = running.children().into_iter().find(|child| has_memory_files(*child)).unwrap_or(0);
            server > 0
        });
        if hangs {
            crate::weir::signal("STOP", server);
        }
        running.signal("KILL");
        running.finish();
        wait_until("the minder has removed its data", || !folder.path().join("d").exists());
        let runs = || fs::read_dir(run.path().join("sandbox")).unwrap().count();
        wait_until("the minder has removed its socket", || runs() == 0);
        assert!(!is_alive(server), "hangs: {hangs}");
        let left = fs::read_dir("/dev/shm").unwrap().flatten();
        let left: Vec<_> = left
            .filter(|file| file.metadata().is_ok_and(|f| f.uid() == NOBODY))
            .map(|f| f.file_name())
            .collect();
        assert!(left.is_empty(), "hangs: {hangs}: {left:?} are left");
    }
}

/// A tree, `t`, that holds a shell and nothing else.
fn tree_with_a_shell(folder: &Path) -> PathBuf {
    let tree = folder.join("t");
    let needs = Command::new("ldd").arg("/bin/sh").output().unwrap().stdout;
    let needs = String::from_utf8(needs).unwrap();
    let libraries = needs.split_whitespace().filter(|word| word.starts_with('/'));
    for file in libraries.chain(["/bin/sh"]) {
        let copy = tree.join(&file[1..]);
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(file, copy).unwrap();
    }
    for name in ["usr/bin", "etc"] {
        fs::create_dir_all(tree.join(name)).unwrap();
    }
    tree
}

/// A program out of a tree, or beside the installed ones, that does what it likes as the account that root gives it: it
/// must not reach what another account has, not even the account that a server of this machine has.
#[test]
fn root_a_hostile_program_reaches_nothing_of_a_server_of_this_machine() {
    let test = "root_a_hostile_program_reaches_nothing_of_a_server_of_this_machine";
    if !root_or_say(test, &["setpriv", "ldd", "unshare"]) {
        return;
    }
    // Without namespaces its `kill -1` would be for real servers of this machine.
    if !Command::new("unshare").args(["-mpf", "true"]).status().is_ok_and(|status| status.success()) {
        _ = writeln!(std::io::stderr(), "not run: {test}: no namespaces");
        return;
    }
    for (account, server) in [("postgres", "postgres"), ("mysql", "mysql"), ("nobody", "mariadb")] {
        let passwd = fs::read_to_string("/etc/passwd").unwrap();
        let Some(line) = passwd.lines().find(|line| line.starts_with(&format!("{account}:"))) else {
            continue;
        };
        let uid: u32 = line.split(':').nth(2).unwrap().parse().unwrap();
        // What stands for the server of this machine: a process, and a folder that is closed to others.
        let precious = tempfile::tempdir_in("/var/tmp").unwrap();
        fs::write(precious.path().join("table"), "rows").unwrap();
        fs::set_permissions(precious.path(), Permissions::from_mode(0o700)).unwrap();
        // The folder last: from then on that account has its hands in it.
        for path in [precious.path().join("table"), precious.path().to_path_buf()] {
            chown(path, Some(uid), Some(uid)).unwrap();
        }
        let mut stand_in = without_terminal();
        stand_in.args(["setpriv", &format!("--reuid={uid}"), &format!("--regid={uid}"), "--clear-groups"]);
        let mut stand_in = Sleeper(stand_in.args(["sleep", "600"]).spawn().unwrap());
        let pid = stand_in.0.id();
        let deed = format!(
            "for file in {0}/table /proc/{pid}/root{0}/table; do echo owned 2>/dev/null >$file; done\n\
             for p in /proc/[0-9]*; do echo owned 2>/dev/null >$p/root{0}/table; done\nkill -9 {pid} -1\n",
            precious.path().display()
        );
        for tree in [false, true] {
            let yard = Yard::new();
            let program = tree_with_a_shell(yard.folder()).join("usr/bin/hostile");
            fs::write(&program, format!("#!/bin/sh\n{deed}echo tried {server}\n")).unwrap();
            fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
            fs::set_permissions(yard.folder(), Permissions::from_mode(0o755)).unwrap();
            let outside = program.to_str().unwrap();
            let line: &[&str] = if tree {
                &[server, "--dir", "d", "--root", "t", "--binary", "/usr/bin/hostile", "--", "true"]
            } else {
                &[server, "--dir", "d", "--binary", outside, "--", "true"]
            };
            let ended = yard.run(line);
            let what = format!("{server} as {account}, tree: {tree}: {ended:?}");
            assert!(ended.stderr.contains("it says `tried"), "{what}");
            assert!(stand_in.0.try_wait().unwrap().is_none(), "a process of {account} was killed: {what}");
            assert_eq!(fs::read_to_string(precious.path().join("table")).unwrap(), "rows", "{what}");
        }
    }
}

/// The lab's way into a tree: what runs there is the account's that owns the folder, never root.
#[test]
fn root_a_tree_of_the_labs_runs_nothing_as_root() {
    if !root_or_say("root_a_tree_of_the_labs_runs_nothing_as_root", &["setpriv", "ldd", "unshare"]) {
        return;
    }
    let (around, theirs) = (tempfile::tempdir_in("/var/tmp").unwrap(), folder_of_nobody());
    fs::set_permissions(around.path(), Permissions::from_mode(0o755)).unwrap();
    let tree = tree_with_a_shell(around.path());
    for name in ["proc", "dev"] {
        fs::create_dir_all(tree.join(name)).unwrap();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/in-tree");
    let made = theirs.path().join("made");
    let deed = format!("echo x >{}", made.display());
    let run = |folder: &Path| {
        let mut command = Command::new(&script);
        command.arg(&tree).arg(folder).args(["--", "/bin/sh", "-c", &deed]);
        command.output().unwrap()
    };
    let ended = run(theirs.path());
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    assert_eq!(fs::metadata(&made).unwrap().uid(), NOBODY);
    let refused = run(around.path());
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("is root's"));
    // Before its root is the root, a link of the tree leads to the machine.
    let first = theirs.path().iter().nth(1).unwrap();
    let aside = tempfile::tempdir_in("/var/tmp").unwrap();
    let _ = fs::remove_dir(tree.join(first));
    std::os::unix::fs::symlink(aside.path(), tree.join(first)).unwrap();
    let refused = run(theirs.path());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("lie on the way to"), "{refused:?}");
    assert_eq!(fs::read_dir(aside.path()).unwrap().count(), 0);
}

/// In a user namespace of its own a server could mount, and show others what is not there; the keys of root's session
/// are root's (keyctl: the session keyring's number).
#[test]
fn root_a_server_makes_no_user_namespace_and_mounts_nothing() {
    let test = "root_a_server_makes_no_user_namespace_and_mounts_nothing";
    if !root_or_say(test, &["python3", "setpriv"]) {
        return;
    }
    // CLONE_NEWUSER, and with it CLONE_NEWNS; a process that is made so by clone(2); mount(2).
    let program = "#!/usr/bin/python3\nimport ctypes, os, platform\nc = ctypes.CDLL(None, use_errno=True)\n\
                   clone, keyctl = (220, 219) if platform.machine() == 'aarch64' else (56, 250)\n\
                   made = c.syscall(clone, 0x10000011, 0, 0, 0, 0)\nif made == 0: os._exit(0)\n\
                   print('tried', c.unshare(0x10000000), c.unshare(0x10020000), made, c.mount(b'x', b'/tmp', b'tmpfs', 0, b''), c.syscall(keyctl, 0, -3, 0))\n";
    let (yard, folder) = (Yard::new(), folder_of_nobody());
    let hostile = folder.path().join("hostile");
    fs::write(&hostile, program).unwrap();
    fs::set_permissions(&hostile, Permissions::from_mode(0o755)).unwrap();
    let ended = yard.run(&["mysql", "--dir", "d", "--binary", hostile.to_str().unwrap(), "--", "true"]);
    assert!(ended.stderr.contains("it says `tried -1 -1 -1 -1 -1`"), "{ended:?}");
}

/// The owner of the folder above can put another sandbox in the place of one whose weir was killed.
#[test]
fn what_lies_at_the_path_of_a_killed_sandbox_is_not_removed_for_it() {
    for (moved, code) in [(0, 0), (1, 3)] {
        let (yard, folder) = (Yard::new(), tempfile::tempdir_in("/var/tmp").unwrap());
        let said = identity(false, json!(null));
        fs::write(folder.path().join("weir-sandbox.json"), said.to_string()).unwrap();
        fs::create_dir(folder.path().join("data")).unwrap();
        let found = fs::metadata(folder.path()).unwrap();
        let run = write_marker(&yard, folder.path(), [found.dev(), found.ino() + moved], &said);
        let ended = yard.run(&["clean"]);
        assert_eq!(ended.code, code, "{ended:?}");
        // What is not removed is not forgotten either.
        assert_eq!((run.exists(), folder.path().join("data").exists()), (code == 3, code == 3), "{ended:?}");
        assert_eq!(ended.stdout.is_empty(), code == 3, "{ended:?}");
        assert_eq!(ended.stderr.contains("is not the folder any more that"), code == 3, "{ended:?}");
    }
}

/// Its path stands in the configuration file, and whoever has a folder above it named that.
#[test]
fn a_folder_s_name_is_no_line_of_a_server_s_configuration() {
    let (yard, folder) = (Yard::new(), tempfile::tempdir_in("/var/tmp").unwrap());
    let program = folder.path().join("mysqld");
    fs::write(
        &program,
        "#!/bin/sh\necho 'mysqld  Ver 8.0.44 for Linux on x86_64 (MySQL Community Server - GPL)'\n",
    )
    .unwrap();
    for path in [folder.path(), &program] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
    let odd = folder.path().join("q\n[mysqld]\nplugin_dir=").join("x");
    fs::create_dir_all(&odd).unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&odd, &link).unwrap();
    let (dir, program) = (link.join("one"), program.to_str().unwrap());
    let ended = yard.run(&["mysql", "--dir", dir.to_str().unwrap(), "--binary", program, "--", "true"]);
    assert!(ended.code != 0 && ended.stderr.contains("does not fit a server's configuration"), "{ended:?}");
    assert_eq!(fs::read_dir(&odd).unwrap().count(), 0);
}

/// A server that lets everybody write where its socket lies, and then puts a link to another server in its place, again and
/// again.
const SWAPS: &str = r#"#!/usr/bin/python3
import os, re, socket, sys, threading, time
if "--version" in sys.argv:
    print("mysqld  Ver 8.0.44 for Linux on x86_64 (MySQL Community Server - GPL)")
elif "--initialize-insecure" not in sys.argv:
    text = open(sys.argv[1].split("=", 1)[1]).read()
    path = re.search('^socket = "(.*)"', text, re.M).group(1)
    own = socket.socket(socket.AF_UNIX)
    own.bind(path)
    os.chmod(os.path.dirname(path), 0o777)
    own.listen(9)
    def swap():
        while True:
            try:
                os.symlink("@VICTIM@", path + "x")
                os.rename(path + "x", path)
            except OSError:
                pass
            time.sleep(0.005)
    while True:
        client = own.accept()[0]
        client.send(b"\x05\0\0\0\x0a8.0\0")
        client.close()
        threading.Thread(target=swap, daemon=True).start()
"#;

#[test]
fn root_a_server_cannot_lead_roots_connections_to_another() {
    let test = "root_a_server_cannot_lead_roots_connections_to_another";
    if !root_or_say(test, &["python3"]) {
        return;
    }
    let yard = Yard::new();
    let victim = yard.folder().join("victim.sock");
    let listener = std::os::unix::net::UnixListener::bind(&victim).unwrap();
    listener.set_nonblocking(true).unwrap();
    fs::set_permissions(&victim, Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(yard.folder(), Permissions::from_mode(0o755)).unwrap();
    let program = yard.folder().join("mysqld");
    fs::write(&program, SWAPS.replace("@VICTIM@", victim.to_str().unwrap())).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let connects = "import os, socket, time\ntime.sleep(0.5)\npath = os.environ['MYSQL_UNIX_PORT']\n\
                    print(oct(os.stat(os.path.dirname(path)).st_mode & 0o7777))\n\
                    socket.socket(socket.AF_UNIX).connect(path)\nprint('connected')";
    for _ in 0..3 {
        let line =
            ["mysql", "--dir", "d", "--binary", program.to_str().unwrap(), "--", "python3", "-c", connects];
        let ended = yard.run(&line);
        // Either the link was seen, or the socket is the server's own for good.
        assert!(
            ended.stdout == "0o700\nconnected\n"
                || ended.stderr.contains("took the place of the socket")
                || ended.stderr.contains("did not answer")
                || ended.stderr.contains("did not start"),
            "{ended:?}"
        );
        assert!(listener.accept().is_err(), "root was led to another server: {ended:?}");
    }
}

/// The server may let everybody write among its data, and somebody may then move there what he may neither read nor remove.
#[test]
fn root_what_others_moved_among_kept_data_is_neither_given_away_nor_removed() {
    let test = "root_what_others_moved_among_kept_data_is_neither_given_away_nor_removed";
    if !root_or_say(test, &[]) {
        return;
    }
    for server in installed(test) {
        let (yard, victim) = (Yard::new(), Victim::new());
        let ended = yard.run(&[server, "--dir", "d", "--keep", "--", "true"]);
        assert_eq!(ended.code, 0, "{ended:?}");
        let data = yard.folder().join("d/data");
        fs::set_permissions(&data, Permissions::from_mode(0o777)).unwrap();
        fs::copy(victim.file(), data.join("a")).unwrap();
        fs::set_permissions(data.join("a"), Permissions::from_mode(0o600)).unwrap();
        fs::create_dir_all(data.join("b/c")).unwrap();
        fs::write(data.join("b/c/precious"), "another's").unwrap();
        for (name, owner) in [("b", NOBODY), ("b/c", 12_345), ("b/c/precious", 12_345)] {
            chown(data.join(name), Some(owner), Some(owner)).unwrap();
        }
        let check = |what: &str, stay: &[(&str, &str, u32)]| {
            for &(name, text, owner) in stay {
                let path = data.join(name);
                let found =
                    fs::metadata(&path).unwrap_or_else(|error| panic!("{server}, {what}: {name}: {error}"));
                assert_eq!(
                    (fs::read_to_string(&path).unwrap().as_str(), found.uid()),
                    (text, owner),
                    "{server}, {what}"
                );
            }
        };
        let again = yard.run(&[server, "--dir", "d", "--keep", "--", "true"]);
        assert_eq!(again.code, 3, "{again:?}");
        assert!(again.stderr.contains("belongs to account"), "{again:?}");
        let (of_root, of_another) = (("a", "root's own", 0), ("b/c/precious", "another's", 12_345));
        check("kept", &[of_root, of_another]);
        let last = yard.run(&[server, "--dir", "d", "--", "true"]);
        assert_eq!(last.code, 3, "{last:?}");
        check("kept again", &[of_root, of_another]);
        // And by the minder of one that is killed.
        fs::remove_dir_all(yard.folder().join("d")).unwrap();
        let (mut running, pid) = yard.start(&[server, "--dir", "d"]);
        wait_until("the data are whole", || data.exists());
        fs::create_dir(data.join("b")).unwrap();
        fs::write(data.join("b/precious"), "another's").unwrap();
        chown(data.join("b"), Some(NOBODY), Some(NOBODY)).unwrap();
        // A folder of somebody else is not entered: what is in it may become a link at any moment.
        let (own, account) = (data.join("b/own"), fs::metadata(&data).unwrap().uid());
        fs::create_dir(&own).unwrap();
        chown(&own, Some(account), Some(account)).unwrap();
        fs::set_permissions(&own, Permissions::from_mode(0o777)).unwrap();
        running.signal("KILL");
        running.finish();
        wait_until("the server has gone", || !is_alive(pid));
        wait_until("what was the server's own is gone", || fs::read_dir(&data).unwrap().count() == 1);
        wait_until("the minder has ended", || yard.listed()[0]["abandoned"] == true);
        let cleaned = yard.run(&["clean"]);
        assert_eq!((cleaned.code, cleaned.stdout.as_str()), (3, ""), "{cleaned:?}");
        assert!(cleaned.stderr.contains("holds folders of another account"), "{cleaned:?}");
        assert_eq!(yard.listed().len(), 1, "what is left is forgotten");
        let again = yard.run(&[server, "--dir", "d", "--", "true"]);
        assert!(again.code == 2 && again.stderr.contains("was left by a killed weir"), "{again:?}");
        assert_eq!(fs::metadata(&own).unwrap().mode() & 0o777, 0o777, "{server}");
        assert_eq!(fs::read_to_string(data.join("b/precious")).unwrap(), "another's", "{server}");
        fs::remove_dir_all(data.join("b")).unwrap();
        let cleaned = yard.run(&["clean"]);
        assert_eq!((cleaned.code, yard.listed().len()), (0, 0), "{cleaned:?}");
        assert!(!yard.folder().join("d").exists());
    }
}
