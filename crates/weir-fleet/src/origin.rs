//! Where the tables are read: in a folder of this machine, or in a bucket.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use datafusion::object_store::ObjectStore;
use url::Url;
use weir_cli::failure::usage;
use weir_fs::Access;

use crate::archive::{Archive, Stored};
use crate::bucket::Bucket;

/// Tables to ask.
pub enum Origin {
    /// In a folder.
    Here(Archive),
    /// In a bucket.
    There(Bucket),
}

impl Origin {
    /// The tables of a folder of results, or of a bucket where one is named.
    ///
    /// # Errors
    /// An address that is none.
    pub fn new(results: &Path, bucket: Option<&str>) -> anyhow::Result<Origin> {
        Ok(match bucket {
            Some(text) => Origin::There(Bucket::new(text)?),
            None => Origin::Here(Archive::below(results)),
        })
    }

    /// The files that count. Damaged ones are said and left out, as far as their ends show it; those of a bucket went through that
    /// when they were pushed.
    ///
    /// # Errors
    /// Where there are none.
    pub fn files(&self) -> anyhow::Result<Vec<Stored>> {
        match self {
            Origin::There(bucket) => bucket.files(),
            Origin::Here(archive) => Ok(parted(archive)?.0),
        }
    }

    /// Whether none of these has gone; of a bucket it is taken for granted.
    pub fn has_all(&self, files: &[Stored]) -> bool {
        let Origin::Here(archive) = self else { return true };
        archive
            .open()
            .is_ok_and(|root| files.iter().all(|file| root.open_file(file.below(), Access::Read).is_ok()))
    }

    /// Reads every file whole; those that are damaged, which are said. Not in a bucket.
    pub fn damaged(&self, files: &[Stored]) -> BTreeSet<Stored> {
        let Origin::Here(archive) = self else { return BTreeSet::new() };
        files.iter().filter(|file| !is_whole(archive, file, archive.rows(file))).cloned().collect()
    }

    /// The address of the tables, without a slash at its end.
    ///
    /// # Errors
    /// A path that cannot be said.
    pub fn url(&self) -> std::io::Result<String> {
        Ok(match self {
            Origin::Here(archive) => {
                format!("file://{}", escaped(std::path::absolute(archive.root())?.as_os_str().as_bytes()))
            }
            Origin::There(bucket) => bucket.url().as_str().trim_end_matches('/').to_string(),
        })
    }

    /// How a bucket is read, and for which addresses that holds.
    pub fn object_store(&self) -> Option<(Url, Arc<dyn ObjectStore>)> {
        match self {
            Origin::Here(_) => None,
            Origin::There(bucket) => Some((bucket.url().clone(), bucket.store())),
        }
    }
}

/// The files of an archive: whole ones, and those that are damaged, which are said, as far as their ends show it.
///
/// # Errors
/// Where none is whole.
pub fn parted(archive: &Archive) -> anyhow::Result<(Vec<Stored>, Vec<Stored>)> {
    let files = archive.files()?.into_iter();
    let (whole, damaged): (Vec<_>, Vec<_>) =
        files.partition(|file| is_whole(archive, file, archive.check(file)));
    if whole.is_empty() {
        return Err(usage(
            format!("no tables in {}", archive.root().display()),
            "`weir fleet import` makes them of what recorders and runs left; --into names another folder",
        ));
    }
    Ok((whole, damaged))
}

/// Whether a file could be read. If not, it is said.
fn is_whole<T>(archive: &Archive, file: &Stored, read: Result<T, String>) -> bool {
    read.map_err(|why| archive.left_out(file, &why)).is_ok()
}

/// A path as part of a URL, so that nothing in it is a pattern.
pub fn escaped(path: &[u8]) -> String {
    let mut text = String::new();
    for &byte in path {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'=' | b'~' => text.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => text.push(char::from(byte)),
            byte => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}
