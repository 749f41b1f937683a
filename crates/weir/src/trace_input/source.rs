//! One input of a recording.

use std::path::{Path, PathBuf};

/// One file, or standard input.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// Nothing for standard input.
    pub path: Option<PathBuf>,
    /// What stands before `.blktrace.N` in its name: blktrace names its files after the device.
    pub stem: Option<String>,
    /// Whether somebody named this very file, and not the folder it lies in or a part of its name.
    pub named: bool,
}

impl Source {
    pub fn file(path: PathBuf) -> Source {
        let stem = per_cpu(&path).map(|(stem, _)| stem);
        Source { path: Some(path), stem, named: false }
    }

    /// As errors name it.
    pub fn name(&self) -> String {
        self.path.as_ref().map_or("standard input".to_string(), |path| path.display().to_string())
    }
}

/// What `NAME.blktrace.CPU`, possibly with `.gz` or `.zst` behind it, says.
pub fn per_cpu(path: &Path) -> Option<(String, u32)> {
    let name = path.file_name()?.to_str()?;
    let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(name);
    let (stem, cpu) = name.rsplit_once(".blktrace.")?;
    (!stem.is_empty()).then_some((stem.to_string(), cpu.parse().ok()?))
}
