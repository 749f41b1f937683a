//! What `require` finds: files beside a script, and the scripts that come with weir, with the names, tables and statements of
//! sysbench's own.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::Source;
use crate::credentials::believed;

/// Their names.
pub const NAMES: [&str; 12] = [
    "oltp_common",
    "oltp_read_write",
    "oltp_read_only",
    "oltp_write_only",
    "oltp_point_select",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_insert",
    "oltp_delete",
    "bulk_insert",
    "select_random_points",
    "select_random_ranges",
];

const TEXTS: [&str; 12] = [
    include_str!("lua/oltp_common.lua"),
    include_str!("lua/oltp_read_write.lua"),
    include_str!("lua/oltp_read_only.lua"),
    include_str!("lua/oltp_write_only.lua"),
    include_str!("lua/oltp_point_select.lua"),
    include_str!("lua/oltp_update_index.lua"),
    include_str!("lua/oltp_update_non_index.lua"),
    include_str!("lua/oltp_insert.lua"),
    include_str!("lua/oltp_delete.lua"),
    include_str!("lua/bulk_insert.lua"),
    include_str!("lua/select_random_points.lua"),
    include_str!("lua/select_random_ranges.lua"),
];

/// The text of a module.
pub fn text(name: &str) -> Option<&'static str> {
    NAMES.iter().position(|known| *known == name).map(|index| TEXTS[index])
}

/// The path and text of a module that lies beside the script, or in the current folder. Nobody named it: root or the caller must
/// have chosen what it says, or the stranger whose script was named.
pub fn beside(script: &Source, name: &str) -> Option<(String, String)> {
    let is_file = script.text.is_some();
    let folder = Path::new(&script.name).parent().filter(|folder| is_file && !folder.as_os_str().is_empty());
    let name = name.replace('.', "/");
    let name = name.trim_start_matches('/');
    let files = [format!("{name}.lua"), format!("{name}/init.lua")];
    let paths = folder
        .into_iter()
        .chain([Path::new(".")])
        .flat_map(|folder| files.iter().map(|file| folder.join(file)));
    // A script of root's or the caller's may have been put beside others' files.
    let is_stranger = |uid: &u32| ![0, rustix::process::geteuid().as_raw()].contains(uid);
    let author = fs::metadata(&script.name).ok().filter(|_| is_file).map(|script| script.uid());
    let author = author.filter(is_stranger);
    let text = |path: &Path| believed_text(path).or_else(|| of_author(path, author?));
    paths.into_iter().find_map(|path| Some((path.display().to_string(), text(&path)?)))
}

/// A file that nobody named, where root or the caller must have written it.
pub fn believed_text(path: &Path) -> Option<String> {
    String::from_utf8(believed(path).ok()?).ok()
}

/// A file of the account whose script runs already.
fn of_author(path: &Path, author: u32) -> Option<String> {
    let file = weir_fs::regular_file(path).ok()?;
    if file.metadata().ok()?.uid() == author { io::read_to_string(file).ok() } else { None }
}
