//! Why a throw-away server could not be had.

use std::io;
use std::path::{Path, PathBuf};

use super::Flavour;

/// Why a throw-away server could not be had.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// No server is installed, or not all of it.
    #[error("no {flavour} server is installed, or not all of it: looked for {names} in {}", folders(.looked))]
    NotInstalled {
        /// Whose.
        flavour: Flavour,
        /// The programs looked for.
        names: String,
        /// Where.
        looked: Vec<PathBuf>,
        /// That was a tree of its own.
        in_tree: bool,
    },
    /// What was named as a tree is none.
    #[error("{} is not a tree of a server: it lacks {lacking}", .path.display())]
    NoTree {
        /// What was named.
        path: PathBuf,
        /// What every tree has.
        lacking: &'static str,
    },
    /// The account of the server cannot reach its folder.
    #[error("the account {uid}, as which the server would run, cannot pass through {}", .folder.display())]
    OutOfReach {
        /// The folder that is closed to it.
        folder: PathBuf,
        /// The account.
        uid: u32,
    },
    /// The binary is no such server.
    #[error("{} is not a {flavour} server: {why}", .binary.display())]
    NotThisServer {
        /// The binary.
        binary: PathBuf,
        /// Whose it was to be.
        flavour: Flavour,
        /// What it says.
        why: String,
    },
    /// The folder holds something else.
    #[error("{} is not empty, and holds no throw-away server of weir's", .0.display())]
    NotEmpty(PathBuf),
    /// Another process has it.
    #[error("the throw-away server in {} is in use by another weir", .0.display())]
    InUse(PathBuf),
    /// A weir that was killed left a server in it.
    #[error("{} holds a throw-away server that was left by a killed weir", .0.display())]
    Abandoned(PathBuf),
    /// Data that an earlier sandbox kept are not for this one.
    #[error("{} holds data of {flavour} that `weir db sandbox --keep` left", .dir.display())]
    Kept {
        /// The folder.
        dir: PathBuf,
        /// Whose they are.
        flavour: Flavour,
    },
    /// Nothing that weir could remove.
    #[error("{} holds no throw-away server of weir's", .0.display())]
    NoSandbox(PathBuf),
    /// At its path lies something else.
    #[error("{} is not the folder any more that the throw-away server had", .0.display())]
    Replaced(PathBuf),
    /// A server that a killed weir left cannot be ended.
    #[error("the server in {} (process {pid}) does not end", .dir.display())]
    Survives {
        /// Its folder.
        dir: PathBuf,
        /// The server.
        pid: u32,
    },
    /// The folder was kept by a server of another family.
    #[error("{} holds data of {found}, not of {wanted}", .dir.display())]
    OtherFlavour {
        /// The folder.
        dir: PathBuf,
        /// Whose they are.
        found: Flavour,
        /// Who was asked for.
        wanted: Flavour,
    },
    /// A socket's path has to fit 107 bytes.
    #[error("{} is {} bytes long, and the path of a Unix socket may have 107", .0.display(), .0.as_os_str().len())]
    SocketPath(PathBuf),
    /// A variable cannot be written into a configuration file.
    #[error("the variable `{name}` = `{value}`: {why}")]
    Variable {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
        /// What is odd.
        why: &'static str,
    },
    /// No unprivileged account to run as.
    #[error("a {flavour} server does not run as root, and none of the accounts {accounts} exists here")]
    NoAccount {
        /// Whose.
        flavour: Flavour,
        /// The accounts looked for.
        accounts: String,
    },
    /// The server or its set-up failed; the end of its log.
    #[error("{what}; the end of its log ({}):\n  {}", .log.display(), .lines.join("\n  "))]
    Server {
        /// What it did.
        what: String,
        /// Its log.
        log: PathBuf,
        /// The last lines of it.
        lines: Vec<String>,
    },
    /// It runs, and must not for this.
    #[error("the server in {} runs: stop it first", .0.display())]
    Runs(PathBuf),
    /// A file or a process could not be handled.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Somebody asked to stop.
    #[error("stopped")]
    Stopped,
}

impl SandboxError {
    pub(super) fn io<'a>(
        action: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(io::Error) -> SandboxError + 'a {
        move |source| SandboxError::Io { action, path: path.to_path_buf(), source }
    }

    /// Whether what was asked for is at fault, rather than the machine.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            SandboxError::NotThisServer { .. }
                | SandboxError::NotEmpty(_)
                | SandboxError::NoTree { .. }
                | SandboxError::OutOfReach { .. }
                | SandboxError::InUse(_)
                | SandboxError::Abandoned(_)
                | SandboxError::Kept { .. }
                | SandboxError::NoSandbox(_)
                | SandboxError::OtherFlavour { .. }
                | SandboxError::Variable { .. }
                | SandboxError::Runs(_)
        )
    }

    /// What may help.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            SandboxError::NotInstalled { in_tree: true, .. } | SandboxError::NoTree { .. } => {
                "a tree has the contents of a small / with the server in it: docs/reference/db-sandbox.md \
                 says how to make one"
                    .to_string()
            }
            SandboxError::OutOfReach { .. } => {
                "this root may not mount (a container?): choose a folder that every account can \
                 enter"
                    .to_string()
            }
            SandboxError::NotInstalled { flavour, .. } => match flavour {
                Flavour::Mysql => {
                    "install it (dev.mysql.com has packages), or name its mysqld: --binary FILE".to_string()
                }
                Flavour::Mariadb => {
                    "Debian: apt-get install mariadb-server-core mariadb-client-core; or name its mariadbd: --binary FILE"
                        .to_string()
                }
                Flavour::Postgres => {
                    "Debian: apt-get install postgresql; or name its postgres: --binary FILE".to_string()
                }
            },
            SandboxError::NotEmpty(_) => "name a folder that does not exist, or an empty one".to_string(),
            SandboxError::InUse(_) => "`weir db sandbox list` shows it; choose another folder".to_string(),
            SandboxError::Abandoned(dir) => {
                format!("`weir db sandbox clean {}` ends it, and removes what was not to be kept", dir.display())
            }
            SandboxError::OtherFlavour { .. } => "choose another folder".to_string(),
            SandboxError::Kept { dir, flavour } => {
                let (word, dir) = (flavour.word(), dir.display());
                format!("choose another folder; `weir db sandbox {word} {dir}` takes the data up")
            }
            SandboxError::NoSandbox(_) => "`weir db sandbox list` shows those that were left".to_string(),
            SandboxError::Survives { .. } => "the user who started it can end it, and root".to_string(),
            SandboxError::SocketPath(_) => "set WEIR_RUN to a shorter folder, or leave it out".to_string(),
            SandboxError::NoAccount { .. } => "start weir as a plain user".to_string(),
            SandboxError::Server { lines, .. } => return hint_of_log(&lines.join("\n")),
            // Said by weir itself: others can change it.
            SandboxError::Io { source, .. }
                if source.kind() == io::ErrorKind::PermissionDenied && source.raw_os_error().is_none() =>
            {
                "name a folder that does not exist, or one that only root and you can write to".to_string()
            }
            SandboxError::Io { source, .. } => return hint_of_io(source),
            _ => return None,
        })
    }
}

/// What the words of a server mean for its user.
fn hint_of_log(text: &str) -> Option<String> {
    let text = text.to_lowercase();
    let known = [
        ("unknown variable", "the variable is not one of this server's: see its manual, or leave it out"),
        (
            "unrecognized configuration parameter",
            "the variable is not one of this server's: see its manual, or leave it out",
        ),
        ("no space left", "the file system is full"),
        (
            "cannot allocate memory",
            "the machine has too little memory for this buffer pool: --memory makes it smaller",
        ),
        (
            "permission denied",
            "a security module (AppArmor, SELinux) may keep the server out of this folder: `dmesg` says so",
        ),
    ];
    known.iter().find(|(words, _)| text.contains(words)).map(|(_, hint)| hint.to_string())
}

fn hint_of_io(error: &io::Error) -> Option<String> {
    match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT) => Some("the file system is full".to_string()),
        Some(libc::EROFS) => {
            Some("the file system is mounted read-only: choose a folder elsewhere".to_string())
        }
        Some(libc::EACCES | libc::EPERM) => {
            Some("this user may not write there: choose another folder".to_string())
        }
        Some(libc::ENOENT | libc::ENOTDIR) => Some("its parent folder does not exist".to_string()),
        _ => None,
    }
}

fn folders(looked: &[PathBuf]) -> String {
    looked.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
}
