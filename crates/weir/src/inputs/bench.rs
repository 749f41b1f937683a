//! The job files and paths of `weir bench`.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use weir_core::workload::draft::Place;
use weir_core::workload::fio;
use weir_core::workload::spec::Target;

use crate::cli::bench::Args;
use crate::failure::{Lacking, Usage};
use crate::settings::bench::{BenchSettings, Source, bench};

/// What was typed, merged with the job file that it names.
///
/// # Errors
/// [`Usage`], or [`Lacking`] where a path is missing.
pub fn settings(args: Args) -> anyhow::Result<BenchSettings> {
    let source = source(args.path.as_deref(), args.from_fio.as_deref())?;
    bench(args, source)
}

/// The origin of the jobs, read where it is a file.
///
/// # Errors
/// [`Usage`], or [`Lacking`] where a path is missing.
pub fn source(path: Option<&Path>, from_fio: Option<&Path>) -> anyhow::Result<Source> {
    if let Some(path) = from_fio {
        let imported = fio::import(&read(path)?);
        let absent = imported.jobs.iter().filter_map(|job| absent(&job.target)).collect();
        return Ok(Source::Fio { path: path.to_path_buf(), imported, absent });
    }
    Ok(match path {
        None => Source::Flags(None),
        Some(path) if path.extension().is_some_and(|extension| extension == "toml") => {
            Source::JobFile { path: path.to_path_buf(), text: read(path)? }
        }
        Some(path) => Source::Flags(Some(kind_of(path)?)),
    })
}

fn absent(target: &Target) -> Option<PathBuf> {
    match target {
        Target::File { path, .. } if !path.exists() => Some(path.clone()),
        _ => None,
    }
}

/// The kind of a bare path.
fn kind_of(path: &Path) -> anyhow::Result<Place> {
    let kind = fs::metadata(path).map_err(|error| unreadable(path, &error))?.file_type();
    if kind.is_dir() {
        Ok(Place::Dir(path.to_path_buf()))
    } else if kind.is_block_device() {
        Ok(Place::Device(path.to_path_buf()))
    } else if kind.is_file() {
        Ok(Place::File(path.to_path_buf()))
    } else {
        let what = format!("{} is neither a folder, a file nor a block device", path.display());
        Err(Usage { what, hint: Some("name one of these, or a job file (.toml)".to_string()) }.into())
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Lacking {
    let hint = match error.kind() {
        io::ErrorKind::NotFound => {
            Some("name an existing folder, file, block device or job file (.toml)".to_string())
        }
        io::ErrorKind::PermissionDenied => Some("run as a user who may read it".to_string()),
        _ => None,
    };
    Lacking { what: format!("cannot read {}: {error}", path.display()), hint }
}

fn read(path: &Path) -> anyhow::Result<String> {
    let bytes = fs::read(path).map_err(|error| unreadable(path, &error))?;
    String::from_utf8(bytes).map_err(|_| {
        let hint = Some("a job file is text in UTF-8".to_string());
        Usage { what: format!("{} is not a text file", path.display()), hint }.into()
    })
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn a_bare_path_is_what_it_is() {
        let folder = TempDir::new().unwrap();
        let (file, jobs) = (folder.path().join("data"), folder.path().join("jobs.toml"));
        fs::write(&file, "x").unwrap();
        fs::write(&jobs, "[[job]]\n").unwrap();
        let check = |path: &Path| source(Some(path), None).unwrap();
        assert!(matches!(check(folder.path()), Source::Flags(Some(Place::Dir(dir))) if dir == folder.path()));
        assert!(matches!(check(&file), Source::Flags(Some(Place::File(path))) if path == file));
        assert!(matches!(check(&jobs), Source::JobFile { text, .. } if text == "[[job]]\n"));
        for path in ["/nowhere/at/all", "/nowhere/jobs.toml"] {
            assert!(source(Some(Path::new(path)), None).unwrap_err().is::<Lacking>(), "{path}");
        }
        fs::write(&jobs, [0xff]).unwrap();
        assert!(source(Some(&jobs), None).unwrap_err().is::<Usage>());
    }

    #[test]
    fn files_that_a_fio_job_lacks_are_named() {
        let folder = TempDir::new().unwrap();
        let (here, gone) = (folder.path().join("here"), folder.path().join("gone"));
        let path = folder.path().join("old.fio");
        fs::write(&here, "x").unwrap();
        let section = |name: &str, file: &Path| {
            format!("[{name}]\nfilename={}\nrw=randread\nsize=1m\nruntime=5\n", file.display())
        };
        fs::write(&path, section("a", &here) + &section("b", &gone)).unwrap();
        match source(None, Some(&path)).unwrap() {
            Source::Fio { absent, .. } => assert_eq!(absent, [gone]),
            other => panic!("{other:?}"),
        }
    }
}
