//! Where a command can have a cgroup of its own.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use weir_host::Host;

/// What its limits need.
const CONTROLLERS: [&str; 2] = ["memory", "io"];
/// So many tenths of a second it is waited for processes that end.
const REMOVE_TRIES: usize = 20;
/// What cgroups made here are called, with this process's number.
pub const PREFIX: &str = "weir-exec-";

/// A place for one command.
pub enum Place {
    /// A scope of systemd's, whose manager makes it and takes it away.
    Scope {
        /// Of the user's manager.
        is_users: bool,
        /// The slice it is to lie in.
        slice: Option<String>,
    },
    /// A cgroup made here.
    Cgroup {
        /// It.
        folder: PathBuf,
        /// What it does not have.
        lacks: Vec<String>,
    },
    /// None could be had.
    Nowhere(String),
}

impl Place {
    /// The best there is.
    pub fn find(host: &Host, slice: Option<&str>) -> Place {
        Place::among(has_systemd_run().then(|| answers(&manager_sockets())), host, slice)
    }

    /// A scope where there is a manager that answers, else a cgroup of this process's making, else none.
    fn among(manager: Option<Result<(), String>>, host: &Host, slice: Option<&str>) -> Place {
        let silent = match manager {
            Some(Ok(())) => {
                return Place::Scope { is_users: !is_root(), slice: slice.map(str::to_string) };
            }
            Some(Err(why)) => Some(why),
            None => None,
        };
        make(host, slice).unwrap_or_else(|why| {
            Place::Nowhere(silent.into_iter().chain([why]).collect::<Vec<_>>().join("; "))
        })
    }

    /// What is lacking, in sentences.
    pub fn lacks(&self) -> Vec<String> {
        match self {
            Place::Scope { .. } => Vec::new(),
            Place::Cgroup { lacks, .. } => lacks.clone(),
            Place::Nowhere(why) => {
                vec![format!("no cgroup of its own, so it cannot be held alone: {why}")]
            }
        }
    }

    /// Whether what is lacking shows only once the command is there: a manager is not asked which controllers it has.
    pub fn tells_late(&self) -> bool {
        matches!(self, Place::Scope { .. })
    }

    /// The command, to be started there.
    pub fn command(&self, words: &[String]) -> Command {
        match self {
            Place::Scope { is_users, slice } => scope(*is_users, slice.as_deref(), words),
            Place::Cgroup { folder, .. } => {
                // It enters by itself, so that nothing it does is counted elsewhere.
                let mut command = Command::new("/bin/sh");
                command.args(["-c", "echo $$ >\"$0/cgroup.procs\"; exec \"$@\""]).arg(folder).args(words);
                command
            }
            Place::Nowhere(_) => {
                let mut command = Command::new(&words[0]);
                command.args(&words[1..]);
                command
            }
        }
    }

    /// Takes away what was made; says what stays and why.
    pub fn remove(self) -> Option<String> {
        let Place::Cgroup { folder, .. } = self else { return None };
        // What it started may take a moment to end with it.
        let mut tries = 0;
        while let Err(error) = fs::remove_dir(&folder) {
            tries += 1;
            if error.kind() == std::io::ErrorKind::ResourceBusy && tries < REMOVE_TRIES {
                std::thread::sleep(Duration::from_millis(100));
                continue;
            }
            return Some(format!("the cgroup {} stays: {error}", folder.display()));
        }
        None
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Where systemd-run(1) asks the manager: its own socket, and the bus.
fn manager_sockets() -> Vec<PathBuf> {
    if is_root() {
        return vec![PathBuf::from("/run/systemd/private"), PathBuf::from("/run/dbus/system_bus_socket")];
    }
    let folder = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    folder.map_or(Vec::new(), |folder| vec![folder.join("systemd/private"), folder.join("bus")])
}

/// Whether somebody listens on one of these: after su, in cron and in some containers a user has no manager, and systemd-run would end
/// without the command.
fn answers(sockets: &[PathBuf]) -> Result<(), String> {
    let mut why = "systemd's manager of this user is not there: XDG_RUNTIME_DIR is not set".to_string();
    for socket in sockets {
        match UnixStream::connect(socket) {
            Ok(_) => return Ok(()),
            Err(error) => why = format!("systemd's manager does not answer at {}: {error}", socket.display()),
        }
    }
    Err(why)
}

/// Whether systemd runs here (sd_booted(3)) and can be asked.
fn has_systemd_run() -> bool {
    let in_path = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join("systemd-run").is_file()));
    in_path && Path::new("/run/systemd/system").is_dir()
}

/// Accounting switches the controllers on for it. Any other property would be a limit of the unit's own, which the guard leaves
/// alone.
fn scope(is_users: bool, slice: Option<&str>, words: &[String]) -> Command {
    let mut command = Command::new("systemd-run");
    command.args(["--scope", "--quiet", "--collect", "-pIOAccounting=yes", "-pMemoryAccounting=yes"]);
    command.arg(format!("--unit={PREFIX}{}", std::process::id()));
    command.args(is_users.then_some("--user"));
    command.args(slice.map(|slice| format!("--slice={slice}")));
    command.arg("--").args(words);
    command
}

/// Makes a cgroup beside this process's own, or in the one that was named.
fn make(host: &Host, slice: Option<&str>) -> Result<Place, String> {
    let (root, own) = host.cgroup_folders().ok_or("cgroup version 2 is not mounted here")?;
    let parent = match slice {
        Some(name) => {
            let folder = root.join(name.trim_matches('/'));
            switch_on(&root);
            fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
            folder
        }
        // A cgroup with processes in it gives no controllers to those below, but for the root.
        None if own == root => root,
        None => own.parent().unwrap_or(&root).to_path_buf(),
    };
    switch_on(&parent);
    sweep(&parent);
    let folder = parent.join(format!("{PREFIX}{}", std::process::id()));
    fs::create_dir(&folder).map_err(|error| {
        format!(
            "{}: {error}; root may make one, and so may a user whose manager has it delegated",
            folder.display()
        )
    })?;
    let lacks = lacks_of(&folder, &parent);
    Ok(Place::Cgroup { folder, lacks })
}

/// Which limits a cgroup below this one does not have, in sentences.
pub(super) fn lacks_of(folder: &Path, parent: &Path) -> Vec<String> {
    let needed = [("memory.high", "dirty pages", "memory"), ("io.max", "writes", "io")].into_iter();
    let lacking = needed.filter(|(file, _, _)| !folder.join(file).exists());
    let sentence = |(file, what, controller)| {
        let above = parent.display();
        format!(
            "its cgroup has no {file}, so its {what} cannot be held: {above} gives no `{controller}` (cgroup.subtree_control)"
        )
    };
    lacking.map(sentence).collect()
}

/// Gives controllers to the cgroups below, where they are not given yet. They stay: others who use them meanwhile would lose
/// their limits with them.
fn switch_on(folder: &Path) {
    let file = folder.join("cgroup.subtree_control");
    let given = fs::read_to_string(&file).unwrap_or_default();
    for controller in CONTROLLERS {
        if !given.split_whitespace().any(|name| name == controller) {
            // A refusal shows in the files that are lacking.
            let _ = fs::write(&file, format!("+{controller}"));
        }
    }
}

/// Takes away what a killed one left: a cgroup with processes in it stays.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let maker = name.strip_prefix(PREFIX).and_then(|number| number.parse::<u32>().ok());
        if maker.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &Command) -> Vec<String> {
        let program = std::iter::once(command.get_program());
        program.chain(command.get_args()).map(|word| word.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_scope_is_asked_for_as_its_user() {
        let dd = ["dd".to_string(), "if=/dev/zero".to_string()];
        let place = Place::Scope { is_users: true, slice: Some("backup.slice".to_string()) };
        let asked = words(&place.command(&dd));
        for word in ["systemd-run", "--scope", "-pIOAccounting=yes", "--user", "--slice=backup.slice"] {
            assert!(asked.iter().any(|asked| asked == word), "{word}: {asked:?}");
        }
        assert_eq!(asked[asked.len() - 3..], ["--", "dd", "if=/dev/zero"]);
    }

    #[test]
    fn a_manager_that_does_not_answer_is_not_asked_to_run_the_command() {
        let folder = tempfile::tempdir().unwrap();
        let (dead, alive) = (folder.path().join("private"), folder.path().join("bus"));
        let why = answers(std::slice::from_ref(&dead)).unwrap_err();
        assert!(why.contains("does not answer at") && why.contains("private"), "{why}");
        assert!(answers(&[]).unwrap_err().contains("XDG_RUNTIME_DIR is not set"));
        let _listens = std::os::unix::net::UnixListener::bind(&alive).unwrap();
        assert_eq!(answers(&[dead, alive]), Ok(()));
        // A tree without cgroups: the command runs all the same, and both reasons are told.
        let host = Host::at(folder.path());
        let place = Place::among(Some(Err(why.clone())), &host, None);
        let Place::Nowhere(told) = &place else { panic!("it has a cgroup") };
        assert_eq!(*told, format!("{why}; cgroup version 2 is not mounted here"));
        assert_eq!(words(&place.command(&["true".to_string()])), ["true"]);
        assert!(matches!(Place::among(Some(Ok(())), &host, None), Place::Scope { .. }));
    }

    #[test]
    fn without_a_cgroup_it_runs_all_the_same_and_that_is_said() {
        let place = Place::Nowhere("there is none".to_string());
        assert_eq!(words(&place.command(&["true".to_string()])), ["true"]);
        assert!(place.lacks()[0].contains("cannot be held alone: there is none"));
        assert_eq!(place.remove(), None);
    }

    #[test]
    fn a_cgroup_is_made_and_taken_away_with_what_it_needed() {
        let folder = tempfile::tempdir().unwrap();
        let (own, old) = (folder.path().join("a"), folder.path().join(format!("{PREFIX}4000001")));
        [&own, &old].iter().for_each(|folder| fs::create_dir(folder).unwrap());
        fs::write(folder.path().join("cgroup.subtree_control"), "io\n").unwrap();
        switch_on(folder.path());
        sweep(folder.path());
        let given = fs::read_to_string(folder.path().join("cgroup.subtree_control")).unwrap();
        assert!(given == "+memory" && !old.exists(), "{given}");
        let place = Place::Cgroup { folder: own.clone(), lacks: Vec::new() };
        let entered = place.command(&["sh".to_string(), "-c".to_string(), "exit 7".to_string()]).status();
        assert_eq!(entered.unwrap().code(), Some(7));
        assert!(fs::read_to_string(own.join("cgroup.procs")).unwrap().trim().parse::<u32>().is_ok());
        fs::remove_file(own.join("cgroup.procs")).unwrap();
        assert_eq!(place.remove(), None);
        assert!(!own.exists());
    }
}
