//! The jobs that `weir bench` is to run.

use std::path::{Path, PathBuf};

use anyhow::Context;
use weir_core::units::{Bytes, Nanos};
use weir_core::workload::draft::{Draft, Place};
use weir_core::workload::replay::{GAP_MAX, Rules};
use weir_core::workload::spec::{BlockSize, EngineKind, Job, Space, Target};
use weir_core::workload::{SpecError, fio, jobfile, validate};

use crate::cli::bench::{Args, JobArgs, PlaceArgs, SpaceArg};
use crate::failure::Usage;
use crate::output::Format;

/// Everything `weir bench` needs to know.
#[derive(Debug, Clone, PartialEq)]
pub struct BenchSettings {
    /// The jobs, each looked at on its own and all together.
    pub jobs: Vec<Job>,
    /// A recording that is played; the only job says where and how.
    pub replay: Option<ReplaySettings>,
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

/// The recording that `weir bench --replay` plays.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplaySettings {
    /// As typed.
    pub recording: PathBuf,
    /// Its device, by name or number.
    pub device: Option<String>,
    /// Part of it: from and to, ns after its first event.
    pub window_ns: (u64, Option<u64>),
    /// Time and space.
    pub rules: Rules,
    /// Operations in flight at most, where that was asked for.
    pub depth: Option<u32>,
    /// Whether a size of the file to be made was asked for.
    pub has_size: bool,
    /// Play what comes before the place where a file breaks.
    pub keep_going: bool,
}

/// The origin of the jobs; files are read already.
#[derive(Debug)]
pub enum Source {
    /// One job, from flags; the target may have been typed as a bare path.
    Flags(Option<Place>),
    /// A job file.
    JobFile {
        /// Its name, for errors.
        path: PathBuf,
        /// Its content.
        text: String,
    },
    /// A job file of fio's.
    Fio {
        /// Its name, for errors.
        path: PathBuf,
        /// Its content.
        imported: fio::Imported,
        /// Files that its jobs use and that do not exist.
        absent: Vec<PathBuf>,
    },
}

/// Merges what was typed with the job file and defaults. Errors are [`Usage`].
pub fn bench(args: Args, source: Source) -> anyhow::Result<BenchSettings> {
    let replay = replay(&args)?;
    let flags = if replay.is_some() { playing(draft(&args)) } else { draft(&args) };
    let mut notes = Vec::new();
    let mut jobs = match source {
        Source::Flags(Some(place)) if flags.place.is_some() => return Err(two_targets(&place).into()),
        Source::Flags(place) => {
            let place = Draft { place, ..Draft::default() };
            vec![flags.over(&place).finish().map_err(usage)?]
        }
        Source::JobFile { path, .. } if replay.is_some() => return Err(job_file_and_recording(&path).into()),
        Source::JobFile { path, text } => from_job_file(&path, &text, &flags)?,
        Source::Fio { path, imported, absent } => from_fio(&path, imported, &absent, &flags, &mut notes)?,
    };
    if let (Some(_), [job]) = (&replay, jobs.as_slice()) {
        check_playing(job)?;
    }
    for job in &mut jobs {
        notes.extend(round_size(job));
    }
    validate::together(&jobs).map_err(usage)?;
    Ok(BenchSettings {
        jobs,
        replay,
        floods: args.job.course.flood,
        format: args.output.format,
        destroys: args.job.place.i_know_this_destroys,
        print_job: args.output.print_job,
        notes,
    })
}

/// What was typed of a recording.
fn replay(args: &Args) -> anyhow::Result<Option<ReplaySettings>> {
    let typed = &args.replay;
    let Some(recording) = typed.replay.clone() else { return Ok(None) };
    if let (Some(from), Some(to)) = (typed.from, typed.to)
        && from >= to
    {
        return Err(Usage { what: format!("--from {from} is not before --to {to}"), hint: None }.into());
    }
    let space = typed.space.map(|space| match space {
        SpaceArg::Recorded => Space::Recorded,
        SpaceArg::Wrap => Space::Wrap,
        SpaceArg::Scale => Space::Scale,
    });
    let gap_ns_max = typed.gap_max.unwrap_or(GAP_MAX).0;
    Ok(Some(ReplaySettings {
        recording,
        device: typed.replay_device.clone(),
        window_ns: (typed.from.map_or(0, |from| from.0), typed.to.map(|to| to.0)),
        rules: Rules { speed: typed.speed.unwrap_or(1.0), space, gap_ns_max },
        depth: args.job.engine.depth,
        has_size: args.job.place.size.is_some(),
        keep_going: typed.keep_going,
    }))
}

/// Where and how a recording is played; which operations, it says itself.
fn playing(flags: Draft) -> Draft {
    Draft {
        name: flags.name.or(Some("replay".to_string())),
        engine: flags.engine.or(Some(EngineKind::IoUring)),
        duration: flags.duration.or(Some(Nanos(0))),
        // The recording has its own flushes.
        sync_at_end: flags.sync_at_end.or(Some(false)),
        block: Some(BlockSize::Fixed(PLAYING_BLOCK)),
        ..flags
    }
}

/// Stands for the blocks of a recording until it is read: a multiple of what any target asks for.
const PLAYING_BLOCK: Bytes = Bytes(64 << 10);

/// A synchronous engine cannot have in flight what the recording had.
fn check_playing(job: &Job) -> Result<(), Usage> {
    if job.engine.is_async() || job.engine == EngineKind::Null {
        return Ok(());
    }
    let what = format!("{} waits for each operation and cannot play a recording", job.engine.name());
    Err(Usage { what, hint: Some("use the engine io_uring or libaio".to_string()) })
}

fn job_file_and_recording(path: &Path) -> Usage {
    Usage {
        what: format!("both the job file {} and a recording were given", path.display()),
        hint: Some("a recording says itself which operations are issued: name a target only".to_string()),
    }
}

fn two_targets(place: &Place) -> Usage {
    let (Place::Dir(path) | Place::File(path) | Place::Device(path)) = place;
    Usage {
        what: format!("both {} and another target were given", path.display()),
        hint: Some("leave out the path, or --dir, --file and --device".to_string()),
    }
}

fn from_job_file(path: &Path, text: &str, flags: &Draft) -> anyhow::Result<Vec<Job>> {
    let in_file = || format!("job file {}", path.display());
    let drafts = jobfile::parse_drafts(text)
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

fn from_fio(
    path: &Path,
    imported: fio::Imported,
    absent: &[PathBuf],
    flags: &Draft,
    notes: &mut Vec<String>,
) -> anyhow::Result<Vec<Job>> {
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
        notes.extend(make_missing_file(&mut job, absent));
        flags.clone().over(&Draft::of(&job)).finish().map_err(usage)
    };
    imported.jobs.into_iter().map(finish).collect()
}

/// fio makes a file that is not there. weir never makes a file under a name that it was told, so that it cannot take
/// one away by mistake: it makes one of its own beside.
fn make_missing_file(job: &mut Job, absent: &[PathBuf]) -> Option<String> {
    let Target::File { path, size } = &job.target else {
        return None;
    };
    if !absent.contains(path) || size.0 == 0 {
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
        invalidate: engine.invalidate,
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
