//! A file of a form that weir writes: a page, a report for CI. It replaces only one of the same form.

use std::io::{Read, Write};
use std::path::Path;

use anyhow::Context;
use weir_fs::{Access, Dir, Output};

use crate::failure::{Lacking, Usage};

/// What a file is called in errors, and how every file of its form begins.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    /// `page`.
    pub name: &'static str,
    /// The first bytes.
    pub opening: &'static str,
}

/// Writes a file with these permission bits beside its place and renames it there, so that nobody ever sees half of it. Replaces a file of
/// the same form, and nothing else.
///
/// # Errors
/// As [`check`], and of the file system.
pub fn write(path: &Path, text: &str, form: Form, mode: u32) -> anyhow::Result<()> {
    replaceable(path, form)?;
    let written = Output::create(path, mode).and_then(|mut output| {
        output.write_all(text.as_bytes())?;
        output.commit()
    });
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// Refuses a path where [`write()`] could not put a file.
///
/// # Errors
/// Something else is there, or its folder is missing.
pub fn check(path: &Path, form: Form) -> anyhow::Result<()> {
    replaceable(path, form)?;
    // Who cannot write there learns it now, and not after the work.
    match Output::create(path, 0o600) {
        Ok(_) => Ok(()),
        Err(error) => {
            let hint = Some(format!("name another file for the {}", form.name));
            Err(Lacking { what: format!("cannot write {}: {error}", path.display()), hint }.into())
        }
    }
}

fn replaceable(path: &Path, form: Form) -> anyhow::Result<()> {
    let hint = Some(format!("name another file for the {}", form.name));
    if path.symlink_metadata().is_ok() && !begins(path, form.opening) {
        let what = format!("{} exists and is not a {} of weir's", path.display(), form.name);
        return Err(Usage { what, hint }.into());
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path.file_name().is_none() || !folder.is_dir() {
        let what = format!("cannot write {}: {} is not a folder", path.display(), folder.display());
        return Err(Lacking { what, hint }.into());
    }
    Ok(())
}

/// Whether a regular file is empty, or begins as every one of its form by weir does. Links are not followed: they may lead to a device.
fn begins(path: &Path, opening: &str) -> bool {
    let mut head = Vec::new();
    let mut read = || {
        let folder = Dir::open(path.parent().unwrap_or(Path::new("")))?;
        let file = folder.open_file(path.file_name().unwrap_or_default(), Access::Read)?;
        file.take(opening.len() as u64).read_to_end(&mut head)
    };
    read().is_ok() && (head.is_empty() || head == opening.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn replaces_its_own_pages_and_nothing_else() {
        let form = Form { name: "page", opening: "<!doctype html>\n<html lang=\"en\">" };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("page.html");
        let page = format!("{}first", form.opening);
        write(&path, &page, form, 0o600).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o077, 0, "nobody else's to read");
        write(&path, &page.replace("first", "second"), form, 0o644).unwrap();
        assert!(fs::read_to_string(&path).unwrap().ends_with("second"));

        let empty = dir.path().join("empty.html");
        fs::write(&empty, "").unwrap();
        write(&empty, &page, form, 0o600).unwrap();

        let other = dir.path().join("notes.html");
        fs::write(&other, "<!doctype html>\nmine").unwrap();
        let link = dir.path().join("link.html");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        for refused in [&other, &link, &dir.path().to_path_buf()] {
            assert!(write(refused, &page, form, 0o644).unwrap_err().is::<Usage>(), "{}", refused.display());
        }
        assert_eq!(fs::read_to_string(&other).unwrap(), "<!doctype html>\nmine");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 4, "a temporary file was left");
    }
}
