//! Files that appear under their name when they are whole.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Gid, Mode, Uid};

use crate::dir::{Access, Dir};
use crate::owner::caller;
use crate::resolve::check_name;

/// Bytes of the final name that a temporary one repeats: with what is added it stays below 255.
const NAME_BYTES: usize = 150;

/// A file being written beside its place. [`Fresh::commit`] puts it there; dropping it removes it.
#[derive(Debug)]
pub struct Fresh {
    dir: Dir,
    name: OsString,
    temporary: OsString,
    file: File,
    /// Whether it replaces what has the name by then.
    replaces: bool,
    placed: bool,
}

impl Dir {
    /// Starts a file that will be called `name`, with these permission bits less the umask's. Nobody sees it under that name until
    /// [`Fresh::commit`].
    ///
    /// # Errors
    /// Those of openat(2).
    pub fn beside(&self, name: impl AsRef<OsStr>, mode: u32) -> io::Result<Fresh> {
        let name = name.as_ref();
        check_name(name)?;
        let temporary = temporary_name(name, std::process::id())?;
        let file = self.create_new(&temporary, mode)?;
        Ok(Fresh {
            dir: self.try_clone()?,
            name: name.to_os_string(),
            temporary,
            file,
            replaces: true,
            placed: false,
        })
    }

    /// Puts a file of this content in the place of `name`, durably and at once; a link there is replaced, not followed.
    ///
    /// # Errors
    /// Those of writing, fsync(2) and renameat(2). The old file is whole then.
    pub fn replace(&self, name: impl AsRef<OsStr>, mode: u32, content: &[u8]) -> io::Result<()> {
        let mut fresh = self.beside(name, mode)?;
        fresh.write_all(content)?;
        fresh.commit()
    }

    /// Removes files that writers which were killed left beside their places. Only regular files of the caller, of
    /// whose writers no process has the number any more.
    pub fn remove_leftovers(&self) {
        self.remove_leftovers_of(|pid| !Path::new(&format!("/proc/{pid}")).exists());
    }

    /// As [`Dir::remove_leftovers`], for the only writer there is, before it writes: whoever has their numbers now, it is not those
    /// that left them. In a container the writer may have the same one each time.
    pub fn remove_all_leftovers(&self) {
        self.remove_leftovers_of(|_| true);
    }

    fn remove_leftovers_of(&self, is_dead: impl Fn(u32) -> bool) {
        let Ok(names) = self.names() else { return };
        for name in names.flatten() {
            if writer_of(&name).is_some_and(&is_dead)
                && let Ok(file) = self.open_file(&name, Access::Read)
                && file.metadata().is_ok_and(|data| data.uid() == caller())
            {
                let _ = self.remove_file(&name);
            }
        }
    }
}

impl Fresh {
    /// The file, to write to.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The same file, which replaces nothing: committing it fails where something has the name by then.
    #[must_use]
    pub fn as_new(mut self) -> Fresh {
        self.replaces = false;
        self
    }

    /// Sets the permission bits exactly.
    ///
    /// # Errors
    /// Those of fchmod(2).
    pub fn chmod(&self, mode: u32) -> io::Result<()> {
        Ok(rustix::fs::fchmod(&self.file, Mode::from_raw_mode(mode))?)
    }

    /// Gives the file to an account and a group.
    ///
    /// # Errors
    /// Those of fchown(2).
    pub fn chown(&self, uid: u32, gid: u32) -> io::Result<()> {
        Ok(rustix::fs::fchown(&self.file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?)
    }

    /// Makes what was written durable and puts it in its place.
    ///
    /// # Errors
    /// Those of fsync(2) and renameat(2). The file that had the name before is whole then.
    pub fn commit(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        self.place()?;
        // A folder that may not be listed cannot be synced either; the file is in its place.
        match self.dir.sync() {
            Err(error) if error.raw_os_error() != Some(rustix::io::Errno::BADF.raw_os_error()) => Err(error),
            _ => Ok(()),
        }
    }

    /// As [`Fresh::commit`], under a name that was not known at the beginning.
    ///
    /// # Errors
    /// Those of [`Fresh::commit`], and `InvalidInput` for what is no name of a file.
    pub fn commit_as(mut self, name: impl AsRef<OsStr>) -> io::Result<()> {
        check_name(name.as_ref())?;
        self.name = name.as_ref().to_os_string();
        self.commit()
    }

    /// Puts what was written in its place, without waiting for the disk: whole for everybody who looks, but a failure
    /// of the power may leave nothing of it.
    ///
    /// # Errors
    /// Those of renameat(2).
    pub fn commit_unsynced(mut self) -> io::Result<()> {
        self.place()
    }

    fn place(&mut self) -> io::Result<()> {
        match self.replaces {
            true => self.dir.rename(&self.temporary, &self.name)?,
            false => self.dir.rename_new(&self.temporary, &self.name)?,
        }
        self.placed = true;
        Ok(())
    }
}

impl Write for Fresh {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        if !self.placed {
            let _ = self.dir.remove_file(&self.temporary);
        }
    }
}

/// `.{name}.{process}.{random}.tmp`
fn temporary_name(name: &OsStr, process: u32) -> io::Result<OsString> {
    let text = name.to_string_lossy();
    let end = (0..=text.len().min(NAME_BYTES)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    Ok(format!(".{}.{process}.{}.tmp", &text[..end], crate::unguessable()?).into())
}

/// The process that wrote a file of such a name.
fn writer_of(name: &OsStr) -> Option<u32> {
    let inner = name.to_str()?.strip_prefix('.')?.strip_suffix(".tmp")?;
    let (before, random) = inner.rsplit_once('.')?;
    let random_fits = random.len() == 32 && random.bytes().all(|b| b.is_ascii_hexdigit());
    before.rsplit_once('.').filter(|_| random_fits)?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_names_say_who_writes() {
        for name in ["a.json", &"ü".repeat(120), "x"] {
            let temporary = temporary_name(OsStr::new(name), 4711).unwrap();
            assert!(temporary.len() < 255, "{temporary:?}");
            assert_eq!(writer_of(&temporary), Some(4711));
        }
        for other in [".a.json.12.tmp", "a.1.00000000000000000000000000000000.tmp", ".weir-notes", ".tmp", ""]
        {
            assert_eq!(writer_of(OsStr::new(other)), None, "{other}");
        }
    }
}
