//! From what was typed to recordings: files, names as blktrace knows them, folders, standard input.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::open;
use super::source::{Source, per_cpu};
use crate::failure::Lacking;

/// Files that belong together: what was recorded at the same time on one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// Where it came from, as shown.
    pub name: String,
    /// Its files.
    pub sources: Vec<Source>,
}

/// The recordings behind what was typed, in that order. Per-CPU files of one folder are one recording; every other
/// file is one of its own.
pub fn find(typed: &[PathBuf]) -> anyhow::Result<Vec<Recording>> {
    let mut sources: Vec<Source> = Vec::new();
    for argument in typed {
        for source in behind(argument)? {
            // A file that is named twice is one file.
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
    }
    let recordings = grouped(sources);
    for recording in &recordings {
        say_what_is_left_out(recording);
    }
    Ok(recordings)
}

fn behind(argument: &Path) -> anyhow::Result<Vec<Source>> {
    if argument.as_os_str() == "-" {
        return Ok(vec![Source { path: None, stem: None, named: true }]);
    }
    match fs::metadata(argument) {
        Ok(metadata) if metadata.is_dir() => of_folder(argument),
        Ok(_) => Ok(vec![Source { named: true, ..Source::file(argument.to_path_buf()) }]),
        Err(error) => {
            let found = of_stem(argument);
            if !found.is_empty() {
                return Ok(found);
            }
            let what = format!("cannot read {}: {error}", argument.display());
            let hint = format!("no {}.blktrace.0 either", argument.display());
            Err(Lacking { what, hint: Some(hint) }.into())
        }
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Regular files of a folder, in order of their names.
fn files_in(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// `sda`: the files `sda.blktrace.0` and so on, by CPU.
fn of_stem(argument: &Path) -> Vec<Source> {
    let Some(stem) = argument.file_name().and_then(|name| name.to_str()) else { return Vec::new() };
    // A name that is complete but for its CPU is meant too.
    let stem = stem.strip_suffix(".blktrace").unwrap_or(stem);
    let bare = argument.parent().is_none_or(|folder| folder.as_os_str().is_empty());
    let mut found: Vec<(u32, PathBuf)> = files_in(folder_of(argument))
        .unwrap_or_default()
        .into_iter()
        .filter_map(|path| per_cpu(&path).filter(|(of, _)| of == stem).map(|(_, cpu)| (cpu, path)))
        .collect();
    found.sort();
    let plain = |path: PathBuf| if bare { PathBuf::from(path.file_name().unwrap_or_default()) } else { path };
    found.into_iter().map(|(_, path)| Source::file(plain(path))).collect()
}

/// The per-CPU files of a folder; where there are none, whatever in it is a recording.
fn of_folder(folder: &Path) -> anyhow::Result<Vec<Source>> {
    let files = files_in(folder).with_context(|| format!("cannot read the folder {}", folder.display()))?;
    let (mut per_cpu_files, others): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|path| per_cpu(path).is_some());
    per_cpu_files.sort_by_key(|path| per_cpu(path));
    let found: Vec<Source> = if per_cpu_files.is_empty() {
        others.into_iter().filter(|path| open::is_recording(path)).map(Source::file).collect()
    } else {
        per_cpu_files.into_iter().map(Source::file).collect()
    };
    if found.is_empty() {
        let what = format!("no recording in the folder {}", folder.display());
        let hint = "blktrace writes NAME.blktrace.0, NAME.blktrace.1 and so on".to_string();
        return Err(Lacking { what, hint: Some(hint) }.into());
    }
    Ok(found)
}

fn grouped(sources: Vec<Source>) -> Vec<Recording> {
    let mut recordings: Vec<Recording> = Vec::new();
    let mut of_folder: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for source in sources {
        let folder = match (&source.path, &source.stem) {
            (Some(path), Some(_)) => folder_of(path).to_path_buf(),
            _ => {
                recordings.push(Recording { name: source.name(), sources: vec![source] });
                continue;
            }
        };
        let next = recordings.len();
        let at = *of_folder.entry(folder).or_insert(next);
        match recordings.get_mut(at) {
            Some(recording) => recording.sources.push(source),
            None => recordings.push(Recording { name: String::new(), sources: vec![source] }),
        }
    }
    for recording in recordings.iter_mut().filter(|recording| recording.name.is_empty()) {
        recording.name = name_of(&recording.sources);
    }
    recordings
}

/// The stem's path where all files share it, else the folder.
fn name_of(sources: &[Source]) -> String {
    let [first, rest @ ..] = sources else { return String::new() };
    let (Some(path), Some(stem)) = (&first.path, &first.stem) else { return first.name() };
    if rest.iter().all(|source| source.stem == first.stem) {
        path.with_file_name(stem).display().to_string()
    } else {
        folder_of(path).display().to_string()
    }
}

/// One CPU's file alone shows I/Os that never end: whoever gives only some of them should know.
fn say_what_is_left_out(recording: &Recording) {
    let mut beside: Vec<PathBuf> = Vec::new();
    for source in &recording.sources {
        let (Some(path), Some(stem)) = (&source.path, &source.stem) else { continue };
        let of_same = of_stem(&path.with_file_name(stem)).into_iter().filter_map(|source| source.path);
        beside.extend(of_same);
    }
    beside.sort();
    beside.dedup();
    let same = |a: &Path, b: &Path| a.canonicalize().ok() == b.canonicalize().ok();
    let given = |path: &PathBuf| recording.sources.iter().flat_map(|s| &s.path).any(|p| same(p, path));
    let left_out = beside.iter().filter(|path| !given(path)).count();
    if left_out > 0 {
        say!(
            "note: {left_out} more per-CPU files of {} lie beside and are not read; without `.blktrace.N` all are",
            recording.name
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[&str], typed: &[&str], expected: &[(&str, &[&str])]) {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, b"").unwrap();
        }
        let typed: Vec<PathBuf> = typed.iter().map(|name| folder.path().join(name)).collect();
        let root = format!("{}/", folder.path().display());
        let plain = |text: String| text.replace(&root, "").replace(root.trim_end_matches('/'), ".");
        let found: Vec<(String, Vec<String>)> = find(&typed)
            .unwrap()
            .into_iter()
            .map(|r| (plain(r.name), r.sources.iter().map(|s| plain(s.name())).collect()))
            .collect();
        let expected: Vec<(String, Vec<String>)> = expected
            .iter()
            .map(|(name, files)| (name.to_string(), files.iter().map(|f| f.to_string()).collect()))
            .collect();
        assert_eq!(found, expected, "{typed:?}");
    }

    #[test]
    fn per_cpu_files_are_grouped_and_others_stand_alone() {
        let files = ["sda.blktrace.0", "sda.blktrace.1", "sda.blktrace.10", "sda.blktrace.2.gz", "b.bin"];
        let all = ["sda.blktrace.0", "sda.blktrace.1", "sda.blktrace.2.gz", "sda.blktrace.10"];
        check(&files, &["sda"], &[("sda", &all)]);
        check(&files, &["sda.blktrace"], &[("sda", &all)]);
        check(&files, &[""], &[("sda", &all)]);
        check(&files, &["b.bin", "sda"], &[("b.bin", &["b.bin"]), ("sda", &all)]);
        check(&files, &["sda.blktrace.1", "sda.blktrace.1"], &[("sda", &["sda.blktrace.1"])]);
        let two = ["x/sda.blktrace.0", "x/dm-0.blktrace.0", "y/sda.blktrace.0"];
        check(
            &two,
            &["x", "y"],
            &[("x", &["x/dm-0.blktrace.0", "x/sda.blktrace.0"]), ("y/sda", &["y/sda.blktrace.0"])],
        );
    }

    #[test]
    fn what_is_not_there_is_said_with_a_hint() {
        let folder = tempfile::tempdir().unwrap();
        for (typed, expected) in
            [("gone", "gone.blktrace.0 either"), ("", "no recording in"), ("a.blktrace.x", "cannot read")]
        {
            let error = find(&[folder.path().join(typed)]).unwrap_err();
            let lacking = error.downcast_ref::<Lacking>().unwrap();
            let all = format!("{} {}", lacking.what, lacking.hint.as_deref().unwrap());
            assert!(all.contains(expected), "{typed}: {all}");
        }
    }
}
