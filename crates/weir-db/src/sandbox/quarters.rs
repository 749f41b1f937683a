//! Where and as whom the programs of a server run.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::account::{self, Account};
use super::jail::{self, Folder, Jail};
use super::tree::Tree;
use super::{Flavour, SandboxError};

/// Where a system's programs are.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// An account, and the tree whose programs it runs.
#[derive(Debug)]
pub(super) struct Quarters {
    /// Who.
    pub account: Account,
    /// Out of which: the machine itself, or a tree.
    pub tree: Tree,
}

impl Quarters {
    /// Those of a server on this machine, or out of the tree at `root`.
    ///
    /// # Errors
    /// When there is no such tree, or root finds no other account.
    pub fn find(flavour: Flavour, root: Option<&Path>) -> Result<Quarters, SandboxError> {
        let tree = root.map_or_else(Tree::of_machine, Tree::open)?;
        Ok(Quarters { account: Account::choose(flavour)?, tree })
    }

    /// Whether memory files of a server there are among those of this very user.
    pub fn shares_memory(&self) -> bool {
        self.tree.is_machine() && !self.account.is_other()
    }

    /// A command that runs there and reaches these folders, with nothing of weir's own but its error output.
    pub fn command(&self, program: &Path, folders: &[Folder<'_>]) -> Result<Command, SandboxError> {
        let account = self.account;
        let mut jail = self.jail(folders)?;
        let mut command = Command::new(program);
        command.env_clear().env("PATH", self.path()).env("LC_ALL", "C").stdin(Stdio::null());
        let settle = move || -> io::Result<()> {
            account::come_away()?;
            jail.enter()?;
            rustix::process::chdir(c"/")?;
            account::keep_to_itself();
            account.become_it()
        };
        // SAFETY: between fork and exec only system calls are made, all of them async-signal-safe.
        unsafe { command.pre_exec(settle) };
        Ok(command)
    }

    fn jail(&self, folders: &[Folder<'_>]) -> Result<Jail, SandboxError> {
        let at = self.tree.path();
        let closed = || folders.iter().find_map(|folder| self.account.closed_above(folder.path));
        if !self.tree.is_machine() {
            Jail::of_tree(&self.tree, &self.account, folders).map_err(SandboxError::io("use the tree", at))
        } else if !self.account.is_other() {
            Ok(Jail::default())
        } else if jail::may_mount() {
            Jail::of_machine(&self.account, folders).map_err(SandboxError::io("make a view of", at))
        } else if let Some(folder) = closed() {
            Err(SandboxError::OutOfReach { folder, uid: self.account.ids().0 })
        } else {
            Ok(Jail::default())
        }
    }

    /// A tree's programs are where they always are.
    fn path(&self) -> OsString {
        let mut path = match std::env::var_os("PATH") {
            Some(path) if self.tree.is_machine() && !path.is_empty() => path,
            _ => return PATH.into(),
        };
        path.push(":");
        path.push(PATH);
        path
    }
}
