//! What only runs of one kind have, and how it is read from a stored record.

use serde::de::DeserializeOwned;
use serde_json::Value;
use weir_blocktrace::replay::{self, ReplayRecord};
use weir_control::{History, history};
use weir_core::json::typed;
use weir_core::result::Record;
use weir_experiment::{Experiment, count_alike, log, study};
use weir_oltp::OltpRecord;
use weir_verdict::{Examined, notes};

/// What only runs of one kind have.
#[derive(Debug, Clone)]
pub enum Body {
    /// Jobs, as of `weir bench` and sysbench's fileio: they are in the head.
    Jobs,
    /// A recording that was played; its job is in the head.
    Replay(Box<ReplayRecord>),
    /// An examination by the doctor.
    Doctor(Box<Examined>),
    /// Transactions of a database.
    Oltp(Box<OltpRecord>),
    /// An experiment.
    Experiment(Box<Experiment>),
    /// A guard's history.
    Guard(Box<History>),
    /// Of one of these kinds, but not readable by this weir: why.
    Unread(String),
}

impl Body {
    /// Reads the body of a stored record: the only place that distinguishes kinds and versions.
    pub(crate) fn decode(record: &Record) -> Body {
        let extra = &record.extra;
        let body = match record.kind.as_str() {
            replay::KIND => versioned(extra, replay::SCHEMA).map(Body::Replay),
            notes::KIND => examined(record).map(Body::Doctor),
            weir_oltp::record::KIND => versioned(extra, weir_oltp::record::SCHEMA).map(Body::Oltp),
            study::KIND => experiment(record).map(Body::Experiment),
            history::KIND => versioned(extra, history::SCHEMA).map(Body::Guard),
            _ => Ok(Body::Jobs),
        };
        body.unwrap_or_else(Body::Unread)
    }

    /// What ended a run of transactions before its time, other than a signal. (A job's failure is with the job.)
    pub fn failure(&self) -> Option<&str> {
        match self {
            Body::Oltp(raw) => raw.error.as_deref(),
            _ => None,
        }
    }
}

fn examined(record: &Record) -> Result<Box<Examined>, String> {
    let notes = versioned(&record.extra, notes::SCHEMA)?;
    let conditions = typed(&record.conditions).map_err(|error| format!("damaged conditions: {error}"))?;
    Ok(Box::new(Examined { notes, conditions }))
}

fn experiment(record: &Record) -> Result<Box<Experiment>, String> {
    let mut experiment: Box<Experiment> = versioned(&record.extra, log::SCHEMA)?;
    count_alike(&mut experiment, &record.jobs);
    Ok(experiment)
}

/// What a tree says that names its schema.
fn versioned<T: DeserializeOwned>(extra: &Value, schema: &str) -> Result<T, String> {
    let found = extra.get("schema").and_then(Value::as_str).unwrap_or("-");
    if found != schema {
        return Err(format!("its schema is {found}, this weir reads {schema}"));
    }
    typed(extra).map_err(|error| format!("damaged: {error}"))
}
