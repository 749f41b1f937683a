//! The jobs that `weir bench` is to run.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use weir_core::workload::draft::{Draft, Place};
use weir_core::workload::spec::{BlockSize, Job, Target};
use weir_core::workload::{SpecError, fio, jobfile, validate};

use crate::cli::bench::{Args, JobArgs, PlaceArgs};
use crate::failure::{Lacking, Usage};
use crate::output::Format;

/// Everything `weir bench` needs to know.
#[derive(Debug, Clone, PartialEq)]
pub struct BenchSettings {
    /// The jobs, each looked at on its own and all together.
    pub jobs: Vec<Job>,
    /// Floods to run beside them, as typed.
    pub floods: Vec<String>,
    /// Form of the results.
    pub format: Format,
    /// Block devices that may be written to.
    pub destroys: Vec<PathBuf>,
    /// Print the jobs and run nothing.
    pub print_job: bool,
    /// What the user should know before the run: rounded sizes, keys of a fio file that are not taken. For stderr.
    pub notes: Vec<String>,
}

/// Merges what was typed with the job file and defaults. Errors are [`Usage`], or [`Lacking`] where a path is missing.
pub fn bench(args: Args) -> anyhow::Result<BenchSettings> {
    let flags = draft(&args);
    let mut notes = Vec::new();
    let mut jobs = match source(&args)? {
        Source::Flags(place) => {
            let place = Draft { place, ..Draft::default() };
            vec![flags.over(&place).finish().map_err(usage)?]
        }
        Source::JobFile(path) => from_job_file(&path, &flags)?,
        Source::Fio(path) => from_fio(&path, &flags, &mut notes)?,
    };
    for job in &mut jobs {
        notes.extend(round_size(job));
    }
    validate::together(&jobs).map_err(usage)?;
    Ok(BenchSettings {
        jobs,
        floods: args.job.course.flood,
        format: args.output.format,
        destroys: args.job.place.i_know_this_destroys,
        print_job: args.output.print_job,
        notes,
    })
}

/// Where the jobs come from.
enum Source {
    /// One job, from flags; the target may have been typed as a bare path.
    Flags(Option<Place>),
    JobFile(PathBuf),
    Fio(PathBuf),
}

fn source(args: &Args) -> anyhow::Result<Source> {
    if let Some(path) = &args.from_fio {
        return Ok(Source::Fio(path.clone()));
    }
    let Some(path) = &args.path else {
        return Ok(Source::Flags(None));
    };
    if path.extension().is_some_and(|extension| extension == "toml") {
        return Ok(Source::JobFile(path.clone()));
    }
    let place = kind_of(path)?;
    if flag_place(args).is_some() {
        return Err(two_targets(path).into());
    }
    Ok(Source::Flags(Some(place)))
}

/// What a bare path is.
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

fn two_targets(path: &Path) -> Usage {
    Usage {
        what: format!("both {} and another target were given", path.display()),
        hint: Some("leave out the path, or --dir, --file and --device".to_string()),
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

fn from_job_file(path: &Path, flags: &Draft) -> anyhow::Result<Vec<Job>> {
    let in_file = || format!("job file {}", path.display());
    let drafts = jobfile::parse_drafts(&read(path)?)
        .map_err(|error| Usage { what: error.to_string(), hint: error.hint })
        .with_context(in_file)?;
    if drafts.len() > 1 && flags.name.is_some() {
        let hint = Some("leave out --name: each job of the file has its own".to_string());
        return Err(Usage { what: "one name for several jobs".to_string(), hint }.into());
    }
    let finish = |drafted: jobfile::DraftedJob| {
        let at_line = |error: SpecError| Usage {
            what: format!("line {}: {}", drafted.line, error.what),
            hint: error.hint,
        };
        flags.clone().over(&drafted.draft).finish().map_err(at_line).with_context(in_file)
    };
    drafts.into_iter().map(finish).collect()
}

fn from_fio(path: &Path, flags: &Draft, notes: &mut Vec<String>) -> anyhow::Result<Vec<Job>> {
    let imported = fio::import(&read(path)?);
    if imported.jobs.is_empty() {
        let sections = "a fio job file has one [section] for each job".to_string();
        let why = if imported.unsupported.is_empty() { sections } else { imported.unsupported.join("; ") };
        return Err(
            Usage { what: format!("no job of {} can be run", path.display()), hint: Some(why) }.into()
        );
    }
    notes
        .extend(imported.unsupported.iter().map(|what| format!("not taken from {}: {what}", path.display())));
    notes.extend(imported.notes);
    let finish = |mut job: Job| {
        notes.extend(make_missing_file(&mut job));
        flags.clone().over(&Draft::of(&job)).finish().map_err(usage)
    };
    imported.jobs.into_iter().map(finish).collect()
}

/// fio makes a file that is not there. weir never makes a file under a name that it was told, so that it cannot take
/// one away by mistake: it makes one of its own beside.
fn make_missing_file(job: &mut Job) -> Option<String> {
    let Target::File { path, size } = &job.target else {
        return None;
    };
    if path.exists() || size.0 == 0 {
        return None;
    }
    let name = path.file_name()?.to_string_lossy().into_owned();
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let dir = parent.map_or_else(|| PathBuf::from("."), Path::to_path_buf);
    let note =
        format!("{} does not exist: {name}.0 is made beside it and removed at the end", path.display());
    job.target = Target::Files { dir, prefix: name, count: 1, size: *size, keep: false };
    Some(note)
}

/// Files that weir makes hold whole blocks.
pub fn round_size(job: &mut Job) -> Option<String> {
    let block = job.block.smallest();
    let Target::Files { size, .. } = &mut job.target else {
        return None;
    };
    let asked = size.0;
    size.0 -= asked % block;
    (size.0 != asked).then(|| {
        format!(
            "{}: files of {} bytes instead of {asked}, a whole number of blocks of {block}",
            job.name, size.0
        )
    })
}

/// A mistake in a job as typed.
pub fn usage(error: SpecError) -> anyhow::Error {
    Usage { what: error.what, hint: error.hint }.into()
}

fn flag_place(args: &Args) -> Option<Place> {
    let PlaceArgs { dir, file, device, .. } = &args.job.place;
    let of_file = file.clone().map(Place::File);
    dir.clone().map(Place::Dir).or(of_file).or(device.clone().map(Place::Device))
}

/// What the flags state of a job.
pub fn draft(args: &Args) -> Draft {
    let Args { job: JobArgs { place, pattern, engine, sync, course }, output, .. } = args;
    Draft {
        name: output.name.clone(),
        place: flag_place(args),
        prefix: place.prefix.clone(),
        files: place.files,
        size: place.size,
        keep: place.keep,
        offset: place.offset,
        access: pattern.rw.map(|direction| direction.access),
        distribution: pattern.distribution,
        read_percent: pattern.read_percent.or(pattern.rw.map(|direction| direction.read_percent)),
        block: pattern.block.map(BlockSize::Fixed).or_else(|| pattern.block_split.clone()),
        engine: engine.engine,
        depth: engine.depth,
        threads: engine.threads,
        direct: engine.direct,
        iopoll: engine.iopoll,
        open_sync: sync.open_sync,
        sync_every: sync.sync_every,
        sync_mode: sync.sync_mode,
        sync_at_end: sync.sync_at_end,
        rate_iops: course.rate,
        arrival: course.arrival,
        late_after: course.late_after,
        duration: course.duration,
        operations: course.operations,
        warmup: course.warmup,
        ramp: course.ramp,
        seed: pattern.seed,
        data: pattern.data,
        verify: pattern.verify,
        after_previous: None,
    }
}

#[cfg(test)]
mod tests;
