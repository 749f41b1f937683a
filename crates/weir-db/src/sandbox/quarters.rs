//! Where and as whom the programs of a server run.

use std::ffi::OsString;
use std::path::Path;

use super::account::{self, Account};
use super::filter::Filter;
use super::jail::{Folder, Jail};
use super::spawn::Program;
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
    /// In namespaces of its own, where it sees no other process, and whose processes and shared memory the kernel takes
    /// away with its first process.
    pub is_apart: bool,
}

impl Quarters {
    /// Those of a server on this machine, or out of the tree at `root`. Where a container or a kernel forbids namespaces,
    /// the machine's own programs run without.
    ///
    /// # Errors
    /// When there is no such tree, root finds no other account, or namespaces fail for a reason that may pass.
    pub fn find(flavour: Flavour, root: Option<&Path>) -> Result<Quarters, SandboxError> {
        let tree = root.map_or_else(Tree::of_machine, Tree::open)?;
        let account = Account::unused().map_err(SandboxError::io("read", Path::new("/dev/urandom")))?;
        let apart = Quarters { account, tree, is_apart: true };
        if !apart.tree.is_machine() {
            return Ok(apart);
        }
        let possible = apart.command(Path::new("/"), &[])?.is_possible();
        if possible.map_err(SandboxError::io("make namespaces beside", Path::new("/")))? {
            return Ok(apart);
        }
        Ok(Quarters { account: Account::of_machine(flavour)?, is_apart: false, ..apart })
    }

    /// A program that runs there and reaches these folders.
    pub fn command(&self, program: &Path, folders: &[Folder<'_>]) -> Result<Program, SandboxError> {
        let account = self.account;
        let mut jail = self.jail(folders)?;
        let variable = |name: &str, value: OsString| {
            let mut variable = OsString::from(name);
            variable.push(value);
            variable
        };
        let path = if self.tree.is_machine() { path_of_programs() } else { PATH.into() };
        let environment = vec![variable("PATH=", path), variable("LC_ALL=", "C".into())];
        let spaces = jail.spaces();
        let filter = Filter::of_servers();
        let settle = move || {
            account::come_away()?;
            jail.enter()?;
            rustix::process::chdir(c"/")?;
            account::keep_to_itself();
            account.become_it()?;
            filter.enter()
        };
        Ok(Program::new(program, environment, spaces, Box::new(settle)))
    }

    fn jail(&self, folders: &[Folder<'_>]) -> Result<Jail, SandboxError> {
        let at = self.tree.path();
        if !self.tree.is_machine() {
            return Jail::of_tree(&self.tree, &self.account, folders)
                .map_err(SandboxError::io("use the tree", at));
        }
        if self.is_apart {
            return Jail::of_machine(&self.tree, &self.account, folders)
                .map_err(SandboxError::io("make a view of", at));
        }
        match folders.iter().find_map(|folder| self.account.closed_above(folder.path)) {
            Some(folder) => Err(SandboxError::OutOfReach { folder, uid: self.account.ids().0 }),
            None => Ok(Jail::default()),
        }
    }
}

/// Where this machine's programs are, the user's first.
fn path_of_programs() -> OsString {
    let named = std::env::var_os("PATH").unwrap_or_default();
    // One that follows from where a process stands would be whoever's that place is.
    let named = std::env::split_paths(&named).filter(|folder| folder.is_absolute());
    let all = named.chain(std::env::split_paths(PATH));
    std::env::join_paths(all).unwrap_or_else(|_| PATH.into())
}
