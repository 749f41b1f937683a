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
use weir_host::Host;
use weir_io::flood::{Flood, FloodSpec};
use weir_io::runner::{JobPlan, Observer, RunOptions, Stop, Tick, run};
use weir_record::{Body, Record};
use weir_sysbench::database::without_passwords;

use crate::machine::Machine;
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
    let floods = floods.into_iter().map(Flood::start).collect::<Result<Vec<_>, _>>()?;
    let mut ages = Ages { floods: &floods, by_job: BTreeMap::new(), observer };
    let jobs = run(plans, options, &mut ages, stop);
    let mut ages = ages.by_job;
    let floods = floods.into_iter().map(Flood::stop).collect();
    let mut jobs = jobs?;
    for (index, job) in jobs.iter_mut().enumerate() {
        job.flood_ages_ns = ages.remove(&index).unwrap_or_default();
    }
    Ok(Ran { jobs, floods, notes: Vec::new() })
}

/// Notes how old each flood is when measuring a job begins: floods begin before all jobs, and jobs warm up or follow others.
struct Ages<'a> {
    floods: &'a [Flood],
    by_job: BTreeMap<usize, Vec<u64>>,
    observer: &'a mut dyn Observer,
}

impl Observer for Ages<'_> {
    fn tick(&mut self, tick: &Tick<'_>) {
        // Negative while a job warms up.
        if let Ok(at_ns) = u64::try_from(tick.at_ns) {
            let ages = || self.floods.iter().map(|flood| flood.age_ns().saturating_sub(at_ns)).collect();
            self.by_job.entry(tick.job_index).or_insert_with(ages);
        }
        self.observer.tick(tick);
    }

    fn started(&mut self, job: &Job) {
        self.observer.started(job);
    }

    fn measuring(&mut self, job: &Job) {
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
