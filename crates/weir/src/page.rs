//! The file of a page.

use std::io::{Read, Write};
use std::path::Path;

use anyhow::Context;
use weir_fs::{Access, Dir, Output};
use weir_report::html;

use crate::failure::{Lacking, Usage};

/// Permission bits of a page of figures, ...
pub const OF_FIGURES: u32 = 0o644;
/// ... and of one that names processes, units or files of all accounts, as recordings and the recorder's archive do.
pub const OF_PROCESSES: u32 = 0o600;

/// Writes a page with these permission bits beside its place and renames it there, so that nobody ever sees half a page. Replaces a page that
/// weir made before, and nothing else.
pub fn write(path: &Path, page: &str, mode: u32) -> anyhow::Result<()> {
    write_form(path, page, html::OPENING, mode)
}

/// The same of another form, whose files begin with `opening`.
pub fn write_form(path: &Path, page: &str, opening: &str, mode: u32) -> anyhow::Result<()> {
    check_form(path, opening)?;
    let written = Output::create(path, mode).and_then(|mut output| {
        output.write_all(page.as_bytes())?;
        output.commit()
    });
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// Refuses a path where `write` could not put a page: something else is there, or its folder is missing.
pub fn check(path: &Path) -> anyhow::Result<()> {
    check_form(path, html::OPENING)
}

/// The same of another form.
pub fn check_form(path: &Path, opening: &str) -> anyhow::Result<()> {
    let page = if opening == html::OPENING { "page" } else { "file" };
    let hint = Some(format!("name another file for the {page}"));
    if path.symlink_metadata().is_ok() && !begins(path, opening) {
        let what = format!("{} exists and is not a {page} of weir's", path.display());
        return Err(Usage { what, hint }.into());
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path.file_name().is_none() || !folder.is_dir() {
        let what = format!("cannot write {}: {} is not a folder", path.display(), folder.display());
        return Err(Lacking { what, hint }.into());
    }
    Ok(())
}

/// Whether a regular file begins as every one of its form by weir does. Links are not followed: they may lead to a device.
fn begins(path: &Path, opening: &str) -> bool {
    let mut head = Vec::new();
    let mut read = || {
        let folder = Dir::open(path.parent().unwrap_or(Path::new("")))?;
        let file = folder.open_file(path.file_name().unwrap_or_default(), Access::Read)?;
        file.take(opening.len() as u64).read_to_end(&mut head)
    };
    read().is_ok() && head == opening.as_bytes()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn replaces_its_own_pages_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("page.html");
        let page = format!("{}first", html::OPENING);
        write(&path, &page, OF_PROCESSES).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o077, 0, "nobody else's to read");
        write(&path, &page.replace("first", "second"), OF_FIGURES).unwrap();
        assert!(fs::read_to_string(&path).unwrap().ends_with("second"));

        let other = dir.path().join("notes.html");
        fs::write(&other, "<!doctype html>\nmine").unwrap();
        let link = dir.path().join("link.html");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        for refused in [&other, &link, &dir.path().to_path_buf()] {
            assert!(write(refused, &page, OF_FIGURES).unwrap_err().is::<Usage>(), "{}", refused.display());
        }
        assert_eq!(fs::read_to_string(&other).unwrap(), "<!doctype html>\nmine");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3, "a temporary file was left");
    }
}
