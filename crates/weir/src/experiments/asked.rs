//! What an experiment is asked for: its workload, and how each trial is made.

use std::path::PathBuf;

use weir_core::units::Nanos;
use weir_core::workload::Job;
use weir_experiment::{Arm, Conduct, Goal, Workload};
use weir_knobs::Setting;

use crate::databases::Named;
use crate::servers::Logins;

/// An experiment as typed, but for what only the machine can say.
#[derive(Debug, Clone)]
pub struct Asked {
    /// What each arm runs, unless it says otherwise.
    pub measured: Measured,
    /// Floods beside it.
    pub floods: Vec<String>,
    /// What is to improve, where that was typed.
    pub goal: Option<Goal>,
    /// Measured time of a trial.
    pub duration_ns: u64,
    /// Trials of each arm, where that was typed.
    pub repeats: Option<u32>,
    /// Pairs, where that was typed.
    pub pairs: Option<u32>,
    /// Seed of the order.
    pub seed: u64,
    /// Time for everything.
    pub budget_ns: u64,
    /// How each trial is made.
    pub conduct: Conduct,
    /// How trials log in to the servers of their transactions.
    pub logins: Logins,
    /// Block devices that may be written to.
    pub destroys: Vec<PathBuf>,
    /// What the user should know before the first trial. For stderr.
    pub notes: Vec<String>,
}

/// What is measured where.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The workload.
    pub workload: Workload,
    /// The folder, file or device whose storage it is about; empty where that is not seen from this machine.
    pub place: PathBuf,
    /// The database that has to be entered before it is measured.
    pub database: Option<Entry>,
}

/// A database that is there, with the workload's tables: looked at before the first trial, so that none has to fail for it.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The servers.
    pub named: Named,
    /// Whether tables that sysbench made are taken, too.
    pub any_maker: bool,
    /// Whether the trials' place is where the data lie, if that is on this machine.
    pub at_data: bool,
}

impl Asked {
    /// The machine as it is found, under the floods.
    pub fn found(&self) -> Arm {
        self.arm("baseline", Vec::new())
    }

    /// The machine as it is found, without floods.
    pub fn idle(&self) -> Arm {
        Arm { floods: Vec::new(), ..self.arm("idle", Vec::new()) }
    }

    /// The workload under settings.
    pub fn arm(&self, label: &str, settings: Vec<Setting>) -> Arm {
        let workload = self.measured.workload.clone();
        Arm { label: label.to_string(), settings, workload, floods: self.floods.clone(), guarded: false }
    }

    /// The folder or file whose device is watched.
    pub fn place(&self) -> PathBuf {
        self.measured.place.clone()
    }

    /// Another name of the place, such as one without links.
    pub fn move_to(&mut self, place: PathBuf) {
        self.conduct.place = place.display().to_string();
        self.measured.place = place;
    }

    /// The workload with another command.
    pub fn command_arm(&self, command: &str) -> Arm {
        let mut arm = self.arm(command, Vec::new());
        if let Workload::Command(spec) = &mut arm.workload {
            spec.command = command.to_string();
        }
        arm
    }
}

impl Measured {
    /// Names of a command's figures.
    pub fn figures(&self) -> Vec<&str> {
        match &self.workload {
            Workload::Job(_) | Workload::Transactions(_) => Vec::new(),
            Workload::Command(spec) => spec.metrics.iter().map(|(name, _)| name.as_str()).collect(),
        }
    }

    /// The job, if it is one.
    pub fn job(&self) -> Option<&Job> {
        match &self.workload {
            Workload::Job(job) => Some(job),
            Workload::Transactions(_) | Workload::Command(_) => None,
        }
    }

    /// The time that the workload itself states.
    pub fn duration(&self) -> Option<Nanos> {
        let duration = match &self.workload {
            Workload::Job(job) => Some(job.duration),
            Workload::Transactions(transactions) => Some(transactions.spec.duration),
            Workload::Command(_) => None,
        };
        duration.filter(|duration| duration.0 > 0)
    }
}
