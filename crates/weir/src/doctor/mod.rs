//! The doctor: facts first, then a plan that states the room and time it takes, then measurements in a folder of our
//! own, a record in the store, and the verdict derived from it.

mod examine;
mod flood;
mod jobs;
mod map;
mod plan;
mod product;
mod progress;
mod room;
mod survey;
mod sustained;
mod timeline;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use weir_core::result::Record;
use weir_core::units::Bytes;
use weir_fs::Dir;
use weir_host::knob::{Journal, recover_stale};
use weir_io::runner::Stop;
use weir_io::scratch;
use weir_verdict::notes::{self, Bar, DatabaseNote, DoctorNotes};
use weir_verdict::products::Product;
use weir_verdict::{DoctorReport, Examined};

use self::examine::Examination;
use self::flood::{Consent, FloodTrial, Quiet};
pub use self::plan::Mode;
use self::plan::Plan;
use self::progress::Steps;
use self::room::Room;
use self::survey::Survey;
use crate::session::{self, Ran, Session};

/// What is to be examined, and how.
#[derive(Debug, Clone)]
pub struct Request {
    /// A folder on the storage.
    pub path: PathBuf,
    /// How long it may take.
    pub mode: Mode,
    /// Size of the test file, where it was stated.
    pub size: Option<Bytes>,
    /// What the result is held against.
    pub bars: Vec<Bar>,
    /// Whether a bulk writer is part of it.
    pub flood: bool,
    /// Whether a setting may be lowered for a trial.
    pub knobs: bool,
    /// That trial, though others are writing.
    pub even_if_busy: bool,
    /// Whether the stages of the I/O are watched.
    pub stages: bool,
    /// The product whose workload is run instead of the general one.
    pub product: Option<Product>,
    /// Whether writes until the rate has fallen are run instead.
    pub sustained: bool,
    /// Whether a map of mixed loads is made instead.
    pub map: bool,
}

/// Examines a place. The report is derived once, from what is in the store by then; with it comes where that lies.
///
/// # Errors
/// When the place cannot be examined, or there is no room for it.
pub fn examine(
    request: &Request,
    command: &[String],
    stop: &Stop,
) -> anyhow::Result<(DoctorReport, Option<PathBuf>)> {
    let survey = survey::look(&request.path)?;
    let mut plan = match request.product {
        Some(product) => plan::of_product(request.mode, request.size, product.steps().len()),
        None if request.map => plan::of_map(request.mode, request.size),
        None if request.sustained => plan::of_sustained(request.mode, request.size),
        None => plan::plan(request.mode, request.size),
    };
    let room = room_for(&survey, &mut plan, request)?;
    recover(&survey);
    state(&survey, &plan, room);
    if request.sustained {
        say!(
            "weir: it writes at full speed until the rate has fallen or the time is up: that spends the credit of a volume, \
             and wears flash"
        );
    }
    if request.map {
        let steps = map::Extent::of(request.mode).steps();
        say!(
            "weir: it measures at most {steps} short steps of reads, writes and commits up to what the storage takes"
        );
    }
    let session = Session::begin("doctor", command, &survey.path);
    let started = Instant::now();
    let (record, examined) = {
        let folder = scratch::make(&scratch::open(&survey.path)?, "doctor")?;
        let mut exam = examination(&survey, &plan, request, folder.dir(), stop)?;
        measure(&mut exam, &survey, &plan, room, request)?;
        finish(exam, session, started, stop)
    };
    let path = session::save(&record.with_extra(&examined.notes));
    Ok((weir_verdict::report(&record, &examined), path))
}

/// Room for test file and flood, or for test file and the product's own files, which are not made smaller.
fn room_for(survey: &Survey, plan: &mut Plan, request: &Request) -> anyhow::Result<Room> {
    let Some(product) = request.product else {
        let flood_wanted = survey.flood_wanted(request.mode, request.flood);
        let log = if request.map { map::LOG_BYTES } else { 0 };
        let whole = Plan { file_size: Bytes(plan.file_size.0 + log), ..plan.clone() };
        let room = survey.room(&whole, request.size.is_some(), flood_wanted)?;
        plan.file_size = Bytes(room.file.0.saturating_sub(log));
        return Ok(room);
    };
    let whole = Plan { file_size: Bytes(plan.file_size.0 + product.extra_bytes()), ..plan.clone() };
    survey.room(&whole, true, Bytes(0))
}

/// Puts right what a killed run may have left: its folders here, and settings.
fn recover(survey: &Survey) {
    for folder in scratch::remove_abandoned(&survey.path) {
        say!("weir: {folder}");
    }
    if survey.conditions.limits.root {
        for sentence in recover_stale(&survey.host, &Journal::of_root()) {
            say!("weir: {sentence}");
        }
    }
}

/// Says what will be taken before anything is written.
fn state(survey: &Survey, plan: &Plan, room: Room) {
    let minutes = weir_core::units::Nanos(plan.mode.budget_ns);
    // In half a minute there is no time to spare for commits that are stuck behind a bulk writer.
    let bound = if plan.mode.name == Mode::QUICK.name && room.flood.0 > 0 { "about" } else { "at most" };
    let flood = match room.flood {
        Bytes(0) => String::new(),
        size => format!(" and up to {size} for the bulk writer"),
    };
    say!(
        "weir: examining {} ({}): needs {} for a test file{flood}, {bound} {minutes}; everything is removed again",
        survey.path.display(),
        survey.kind(),
        room.file,
    );
    if survey.is_memory() {
        say!("weir: warning: {} is memory, not storage", survey.kind());
    }
}

fn examination<'a>(
    survey: &Survey,
    plan: &Plan,
    request: &Request,
    folder: &'a Dir,
    stop: &'a Stop,
) -> anyhow::Result<Examination<'a>> {
    let special = request.product.is_some() || request.sustained || request.map;
    let with_flood = request.flood && !special;
    let with_rescue = with_flood && consent(request, survey).is_ok();
    let phases = if with_flood { plan.flood.steps() } else { 0 };
    let phases = phases + if with_rescue { plan.flood.steps_of_rescue() } else { 0 };
    let budget = Duration::from_nanos(plan.mode.budget_ns);
    let of_product = request.product.map_or(0, |product| product.steps().len());
    let expected_ns = plan.expected_ns(with_flood, with_rescue) + of_product as u64 * plan.product_step_ns;
    let extent = request.map.then(|| map::Extent::of(plan.mode));
    let of_map_ns = extent.map_or(0, |extent| extent.expected_ns());
    let expected = if request.sustained { budget } else { Duration::from_nanos(expected_ns + of_map_ns) };
    let of_sustained = if request.sustained { sustained::STEPS } else { 0 };
    let of_special = of_product + of_sustained + extent.map_or(0, |extent| extent.steps());
    let progress = Steps::new(2 + plan.steps.len() + of_special + phases, expected);
    let mut exam = Examination::new(survey.host.clone(), survey.target.clone(), folder, stop, progress)?;
    exam.deadline = Instant::now() + budget;
    if !special {
        exam.watch_stages(request.stages);
    }
    exam.notes = DoctorNotes {
        schema: notes::SCHEMA.to_string(),
        path: survey.path.display().to_string(),
        mode: plan.mode.name.to_string(),
        budget_ns: plan.mode.budget_ns,
        bars: request.bars.clone(),
        stages_unseen: exam.stages.unseen().filter(|_| !special),
        product: request.product,
        databases: databases_at(survey),
        ..DoctorNotes::default()
    };
    Ok(exam)
}

/// Servers with their data on the file system examined.
fn databases_at(survey: &Survey) -> Vec<DatabaseNote> {
    let servers = survey.host.database_servers_beside(&survey.path).into_iter();
    servers
        .map(|server| DatabaseNote { family: server.family, data_dir: server.data_dir.display().to_string() })
        .collect()
}

/// Watches others, measures, floods. The examination keeps what was measured before an interruption.
fn measure(
    exam: &mut Examination<'_>,
    survey: &Survey,
    plan: &Plan,
    room: Room,
    request: &Request,
) -> anyhow::Result<()> {
    let consent = consent(request, survey);
    exam.progress.next("watching other processes");
    exam.notes.others = survey.others(Duration::from_nanos(plan.watch_ns), exam.stop);
    let with_flood = room.flood.0 > 0;
    let reserve_ns = if with_flood { plan.flood.expected_ns(consent.is_ok()) } else { 0 };
    let zero = Instant::now();
    if !exam.stopped() {
        exam.run_steps(plan, reserve_ns)?;
    }
    if request.sustained {
        return Ok(sustained::run(exam, zero)?);
    }
    if exam.stopped() {
        return Ok(());
    }
    if request.map {
        return Ok(map::run(exam, map::Extent::of(plan.mode))?);
    }
    if let Some(product) = exam.notes.product {
        return Ok(product::run(exam, product, plan.product_step_ns)?);
    }
    if !with_flood {
        let why = if consent.as_ref().is_err_and(|why| why == NO_FLOOD) {
            NO_FLOOD
        } else {
            "not enough free space"
        };
        exam.skip("survival under a bulk writer", why);
        return Ok(());
    }
    if let Err(error) = FloodTrial::new(exam, plan.flood.clone(), room.flood).run(consent) {
        // The measurements until then are worth a verdict all the same.
        exam.notes.flood.remarks.push(format!("The bulk writer's part ended early: {error}."));
    }
    Ok(())
}

const NO_FLOOD: &str = "--no-flood was given";

/// Whether a machine-wide limit may be lowered for a trial.
fn consent(request: &Request, survey: &Survey) -> Consent {
    if !request.flood {
        Err(NO_FLOOD.to_string())
    } else if !request.knobs {
        Err("--no-knobs was given".to_string())
    } else if !survey.conditions.limits.root {
        Err("it takes root".to_string())
    } else {
        Ok(if request.even_if_busy { Quiet::Waived } else { Quiet::Needed })
    }
}

/// The record of what ran, and what it holds of the examination.
fn finish(mut exam: Examination<'_>, session: Session, started: Instant, stop: &Stop) -> (Record, Examined) {
    exam.progress.clear();
    exam.notes.elapsed_ns = started.elapsed().as_nanos() as u64;
    let examined = Examined { notes: exam.notes, conditions: session.conditions.clone() };
    (session.record(Ran { jobs: exam.jobs, floods: exam.floods, ..Ran::default() }, stop), examined)
}
