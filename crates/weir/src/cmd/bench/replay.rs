//! `weir bench --replay`: a recording is read, brought into the target, and played by the runner that every job has.

use std::path::{Path, PathBuf};

use weir_blocktrace::StageTable;
use weir_blocktrace::analysis::Device;
use weir_blocktrace::replay::{Chosen, From, KIND, NotChosen, ReplayRecord, SCHEMA, Sent};
use weir_core::units::{Bytes, Nanos, grouped};
use weir_core::workload::replay::{Ground, Plan, Recorded};
use weir_core::workload::spec::{Job, Replay, Target};
use weir_core::workload::{SpecError, validate};
use weir_host::Host;
use weir_io::files::{Prepared, block_bytes, prepare};
use weir_io::runner::{JobPlan, Stop};
use weir_record::{Body, Record};

use super::{floods, run_beside};
use crate::devices::refuse_devices_in_use;
use crate::failure::{Lacking, Usage};
use crate::progress::Progress;
use crate::session::Session;
use crate::settings::BenchSettings;
use crate::settings::bench::ReplaySettings;
use crate::stages::StageWatch;
use crate::trace_input::{self, Analysed, Filter, Reader};

/// Size of a file that is made for a recording, unless another is asked for; smaller where the recording is.
const FILE_BYTES_MAX: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// What a recording says of the device that is played.
struct Source {
    chosen: Chosen,
    analysed: Analysed,
}

/// Plays a recording and returns what was measured.
pub fn play(
    asked: &ReplaySettings,
    settings: &BenchSettings,
    command: &[String],
    stop: &Stop,
) -> anyhow::Result<Record> {
    let mut progress = Progress::new();
    let source = read(asked, stop, &mut progress)?;
    progress.clear();
    let [how] = settings.jobs.as_slice() else { anyhow::bail!("a replay is one job") };
    let how = sized(how.clone(), asked, &source.chosen.ios);
    refuse_devices_in_use(std::slice::from_ref(&how), &settings.destroys)?;
    let prepared = prepare(&how, stop, &mut |done, all| progress.filling(done, all))?;
    let (plan, replay) = fitted(asked, source, &how, &prepared)?;
    let job = plan.job(how, of_job(asked, &replay), asked.depth, replay.depth_max);
    validate::job(&job).map_err(usage)?;
    say!("{}", announcement(&job, &replay));
    let place = job.target.place().to_path_buf();
    let floods = floods(settings, &place)?;
    // After the files are there, so that the conditions are those of the run.
    let session = Session::begin(KIND, command, &place);
    let mut watch = Watch::begin(&place);
    let plans = vec![JobPlan { job, source: Box::new(plan.source()), places: prepared.places.clone() }];
    let ran = run_beside(plans, floods, &mut progress, stop)?;
    let (replayed, unseen) = watch.end();
    progress.clear();
    drop(prepared);
    let replay = ReplayRecord { replayed, unseen, ..replay };
    Ok(Record { head: session.record(ran, stop), body: Body::Replay(Box::new(replay)) })
}

/// Reads the recording: its statistics, and the I/Os of the device that is meant.
fn read(asked: &ReplaySettings, stop: &Stop, progress: &mut Progress) -> anyhow::Result<Source> {
    let recordings = trace_input::find(&[PathBuf::from(&asked.recording)])?;
    let [recording] = recordings.as_slice() else {
        let found: Vec<&str> = recordings.iter().map(|recording| recording.name.as_str()).collect();
        let what =
            format!("{} holds {} recordings: {}", asked.recording.display(), found.len(), found.join(", "));
        return Err(Usage { what, hint: Some("name one of them".to_string()) }.into());
    };
    let (from_ns, to_ns) = asked.window_ns;
    let filter = Filter { from_ns: (from_ns > 0).then_some(from_ns), to_ns, ..Filter::default() };
    let mut sent = Sent::new(from_ns, to_ns);
    let mut reader = Reader {
        filter: &filter,
        keep_going: asked.keep_going,
        stop,
        progress,
        rows: None,
        events: Some(&mut sent),
    };
    let analysed = trace_input::analyse(recording, &mut reader)?;
    if analysed.interrupted.is_some() {
        let what = "interrupted while the recording was read; nothing was played".to_string();
        return Err(Lacking { what, hint: None }.into());
    }
    let chosen = sent.choose(asked.device.as_deref()).map_err(|why| refuse(&why))?;
    Ok(Source { chosen, analysed })
}

fn refuse(why: &NotChosen) -> anyhow::Error {
    let what = why.to_string();
    match why {
        NotChosen::None => Lacking {
            what,
            hint: Some("`weir trace read` shows what is in it; --from and --to take a part".to_string()),
        }
        .into(),
        NotChosen::Several(_) => {
            Usage { what, hint: Some("name the one to play with --replay-device".to_string()) }.into()
        }
        NotChosen::Absent { .. } => Usage { what, hint: None }.into(),
    }
}

/// The job that says where and how, as far as it depends on the recording: whether it writes, and how large a file is
/// made for it.
fn sized(how: Job, asked: &ReplaySettings, ios: &[Recorded]) -> Job {
    let writes = ios.iter().any(|io| io.is_write && io.bytes > 0);
    let extent = ios.iter().map(|io| io.offset.saturating_add(u64::from(io.bytes))).max().unwrap_or(0);
    let fitting = extent.div_ceil(MIB).saturating_mul(MIB).clamp(MIB, FILE_BYTES_MAX);
    let target = match how.target {
        Target::Files { dir, prefix, count, keep, .. } if !asked.has_size => {
            Target::Files { dir, prefix, count, size: Bytes(fitting), keep }
        }
        stated => stated,
    };
    Job { target, read_percent: if writes { 0.0 } else { 100.0 }, ..how }
}

/// The plan for the target that is there, and the recording's side of the record.
fn fitted(
    asked: &ReplaySettings,
    source: Source,
    how: &Job,
    prepared: &Prepared,
) -> anyhow::Result<(Plan, ReplayRecord)> {
    let Source { chosen, analysed } = source;
    let block = match prepared.places.first() {
        Some(place) => block_bytes(place, how.direct)?,
        None => 512,
    };
    let bytes = prepared.file_bytes.first().copied().unwrap_or(0);
    let ground = Ground { bytes, base: how.offset.0, block };
    let plan = Plan::new(chosen.ios, &asked.rules, &ground).map_err(usage)?;
    let recorded = analysed.analysis.device(chosen.device);
    let (depth_mean, depth_max) = recorded.map_or((0.0, 0), |device| depth(device, chosen.from));
    let mut notes = analysed.notes;
    notes.extend(recorded.and_then(|device| missing(analysed.analysis.events_dropped_of(device))));
    let record = ReplayRecord {
        schema: SCHEMA.to_string(),
        recording: analysed.name,
        device: chosen.label,
        from: chosen.from,
        depth_mean,
        depth_max,
        left_out: chosen.left_out,
        fitted: plan.fitted.clone(),
        recorded: of_device(&analysed.analysis.table, &chosen.device),
        notes,
        ..ReplayRecord::default()
    };
    Ok((plan, record))
}

/// Mean and largest number in flight: between Q and C, or D and C where there is no Q.
fn depth(device: &Device, from: From) -> (f64, u64) {
    let depth = match from {
        From::Queue => &device.depth_queue,
        From::Issue => &device.depth_issue,
    };
    (depth.mean(), depth.max)
}

/// What the recorder lost nobody can play.
fn missing(events: u64) -> Option<String> {
    let what = "events are missing from the recording: I/Os whose event is among them are not played";
    (events > 0).then(|| format!("{} {what}", grouped(events)))
}

fn of_device(table: &StageTable, device: &weir_core::target::DeviceNumber) -> StageTable {
    let cells = table.cells().filter(|(key, _)| key.device == *device);
    cells.map(|(key, cell)| (*key, cell.clone())).collect::<Vec<_>>().into()
}

fn of_job(asked: &ReplaySettings, replay: &ReplayRecord) -> Replay {
    Replay {
        recording: replay.recording.clone(),
        device: replay.device.clone(),
        speed: asked.rules.speed,
        space: replay.fitted.space,
    }
}

/// What is about to happen, and for how long.
fn announcement(job: &Job, replay: &ReplayRecord) -> String {
    let fitted = &replay.fitted;
    format!(
        "weir: plays {} I/Os of {} in {} on {}",
        grouped(fitted.ios),
        replay.device,
        Nanos(fitted.span_ns),
        job.target.place().display()
    )
}

fn usage(error: SpecError) -> anyhow::Error {
    Usage { what: error.what, hint: error.hint }.into()
}

/// A watch over the stages of the target's device.
struct Watch(Result<StageWatch, String>);

impl Watch {
    fn begin(place: &Path) -> Watch {
        let target = Host::live().target(place).map_err(|error| error.to_string());
        let mut watch = target.map(|target| StageWatch::begin_in_full(&target));
        if let Ok(watch) = &mut watch {
            watch.step();
        }
        Watch(watch)
    }

    /// The stages, or why there are none.
    fn end(&mut self) -> (Option<StageTable>, Option<String>) {
        match &mut self.0 {
            Ok(watch) => match watch.taken() {
                Some(table) => (Some(table), None),
                None => (None, watch.unseen()),
            },
            Err(why) => (None, Some(why.clone())),
        }
    }
}
