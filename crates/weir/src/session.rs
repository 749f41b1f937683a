//! From jobs to a record: conditions first, then floods and jobs, then the record in the store before anything is
//! printed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::{Timestamp, Zoned};
use serde_json::Value;
use weir_core::result;
use weir_core::result::record::{FloodRecord, JobRecord, Note, SCHEMA};
use weir_core::target::Conditions;
use weir_core::workload::Job;
use weir_host::{Host, Space};
use weir_io::flood::{Flood, FloodSpec, Room};
use weir_io::runner::{JobPlan, Observer, RunOptions, Stop, Tick, run};
use weir_record::{Body, Record};
use weir_sysbench::database::without_passwords;

use crate::machine::Machine;
use crate::moments::{Moments, filled_memory};
use crate::quiet;
use crate::store::{Store, Stored};

/// What is known before anything runs.
pub struct Session {
    /// `bench`, `fileio` or `doctor`.
    kind: &'static str,
    /// The exact command.
    command: Vec<String>,
    /// The machine, and what the target stands on.
    pub conditions: Conditions,
    started_at: String,
    id: String,
}

/// What ran.
#[derive(Default)]
pub struct Ran {
    /// Records of the jobs.
    pub jobs: Vec<JobRecord>,
    /// Records of the floods.
    pub floods: Vec<FloodRecord>,
    /// What was noticed of the whole run.
    pub notes: Vec<Note>,
}

impl Session {
    /// Reads the conditions around `path`. The conditions say also what cannot be read.
    pub fn begin(kind: &'static str, command: &[String], path: &Path) -> Session {
        Session::begin_at(kind, command, Some(path))
    }

    /// The same where the storage may be on another machine: without a path, the conditions are this machine's alone.
    pub fn begin_at(kind: &'static str, command: &[String], path: Option<&Path>) -> Session {
        let host = Host::live();
        let target = path.and_then(|path| host.target(path).ok());
        Session {
            kind,
            command: without_passwords(command),
            conditions: host.conditions(target.as_ref()),
            started_at: Zoned::now().strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
            id: weir_cli::new_id(Timestamp::now()),
        }
    }

    /// The record of what ran.
    pub fn record(self, ran: Ran, stop: &Stop) -> result::Record {
        let failure = ran.jobs.iter().find_map(|job| job.error.clone());
        let ended_early = stop.requested().map(signal_name).or(failure);
        let Ran { jobs, floods, notes } = ran;
        result::Record { jobs, floods, notes, ..self.head(ended_early) }
    }

    /// The record of something else than jobs.
    pub fn record_of(self, body: Body, stop: &Stop) -> Record {
        let failure = body.failure().map(str::to_string);
        let head = self.head(stop.requested().map(signal_name).or(failure));
        Record { head, body }
    }

    fn head(self, ended_early: Option<String>) -> result::Record {
        result::Record {
            schema: SCHEMA.to_string(),
            id: self.id,
            weir_version: env!("CARGO_PKG_VERSION").to_string(),
            command: self.command,
            kind: self.kind.to_string(),
            started_at: self.started_at,
            conditions: serde_json::to_value(self.conditions).unwrap_or(Value::Null),
            jobs: Vec::new(),
            floods: Vec::new(),
            notes: Vec::new(),
            ended_early,
            extra: Value::Null,
        }
    }
}

/// Options of a run on this machine.
pub fn run_options() -> RunOptions {
    RunOptions { surroundings: Arc::new(Machine::live()), ..RunOptions::default() }
}

/// Runs jobs with floods beside them. The floods' files are gone when this returns, however it returns.
pub fn run_jobs(
    plans: Vec<JobPlan>,
    floods: Vec<FloodSpec>,
    options: &RunOptions,
    observer: &mut dyn Observer,
    stop: &Stop,
) -> anyhow::Result<Ran> {
    let host = Host::live();
    let target = floods.first().map(|spec| host.target(&spec.dir).unwrap_or_default());
    let memory = target.as_ref().map(|target| (quiet::throttled_from(&host), Moments::new(&host, target)));
    let floods = sized(&host, floods).into_iter().map(Flood::start).collect::<Result<Vec<_>, _>>()?;
    let mut beside = Beside { floods: &floods, ages: BTreeMap::new(), memory, observer };
    let jobs = run(plans, options, &mut beside, stop);
    let (mut ages, filled) = (std::mem::take(&mut beside.ages), beside.filled_memory());
    let floods = floods.into_iter().map(Flood::stop).collect();
    let mut jobs = jobs?;
    for (index, job) in jobs.iter_mut().enumerate() {
        job.flood_ages_ns = ages.remove(&index).unwrap_or_default();
    }
    let filled = filled.map(|text| Note { key: "flood-in-memory".to_string(), text });
    Ok(Ran { jobs, floods, notes: filled.into_iter().collect() })
}

/// Floods beside each other, those without a size with one that fits this machine.
pub fn sized(host: &Host, floods: Vec<FloodSpec>) -> Vec<FloodSpec> {
    let count = floods.len() as u64;
    let dirty_limit_bytes = host.vm_settings().dirty_threshold_bytes.unwrap_or(0);
    let sized = |spec: FloodSpec| match host.free_space(&spec.dir) {
        Ok(Space { size_bytes, free_bytes, .. }) => {
            spec.sized(&Room { size_bytes, free_bytes, dirty_limit_bytes, floods: count })
        }
        Err(_) => spec,
    };
    floods.into_iter().map(sized).collect()
}

/// Notes how old each flood is when measuring a job begins (floods begin before all jobs, and jobs warm up or follow others),
/// and the machine while jobs are measured.
struct Beside<'a> {
    floods: &'a [Flood],
    ages: BTreeMap<usize, Vec<u64>>,
    /// The dirty bytes from which writers are throttled, and moments of the machine; nothing where no flood runs.
    memory: Option<(u64, Moments<'a>)>,
    observer: &'a mut dyn Observer,
}

impl Beside<'_> {
    fn note(&mut self) {
        if let Some((_, moments)) = &mut self.memory {
            moments.note(Some(self.floods.iter().map(Flood::bytes).sum()));
        }
    }

    fn noted(&self) -> usize {
        self.memory.as_ref().map_or(0, |(_, moments)| moments.all().len())
    }

    fn filled_memory(mut self) -> Option<String> {
        // Jobs that were too short for a tick.
        if self.noted() == 1 {
            self.note();
        }
        let (enough, moments) = self.memory?;
        filled_memory(moments.all(), enough)
    }
}

impl Observer for Beside<'_> {
    fn tick(&mut self, tick: &Tick<'_>) {
        // Negative while a job warms up.
        if let Ok(at_ns) = u64::try_from(tick.at_ns) {
            let ages = || self.floods.iter().map(|flood| flood.age_ns().saturating_sub(at_ns)).collect();
            self.ages.entry(tick.job_index).or_insert_with(ages);
            self.note();
        }
        self.observer.tick(tick);
    }

    fn started(&mut self, job: &Job) {
        self.observer.started(job);
    }

    fn measuring(&mut self, job: &Job) {
        if let Some((_, moments)) = self.memory.as_mut().filter(|(_, moments)| moments.all().is_empty()) {
            moments.begin();
        }
        self.note();
        self.observer.measuring(job);
    }
}

/// Saves a record; a store that cannot be written to is a warning, for what was measured is worth printing.
pub fn save(record: &impl Stored) -> Option<PathBuf> {
    match Store::open().and_then(|store| store.save(record)) {
        Ok(path) => Some(path),
        Err(error) => {
            say!("warning: this run is not kept: {error:#}");
            None
        }
    }
}

/// The name of a signal by its number.
pub fn signal_name(signal: u8) -> String {
    match signal {
        1 => "SIGHUP".to_string(),
        2 => "SIGINT".to_string(),
        15 => "SIGTERM".to_string(),
        other => format!("signal {other}"),
    }
}
