//! A stored run, decoded once: what every run has, and what only its kind has.
#![forbid(unsafe_code)]

mod body;
mod comparison;
#[cfg(test)]
mod tests;

pub use body::Body;
pub use comparison::{NotCompared, compare};

use serde::Serialize;
use serde_json::Value;
use weir_core::result;
use weir_core::stats::claims;
use weir_verdict::saturation::Known;

/// A run.
#[derive(Debug, Clone)]
pub struct Record {
    /// What every run has: command, conditions, jobs. Its `extra` is `null` unless the body is [`Body::Unread`].
    pub head: result::Record,
    /// What only runs of its kind have.
    pub body: Body,
}

/// A record whose body this weir cannot read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot use the record {id}: {why}")]
pub struct Unread {
    /// The record.
    pub id: String,
    /// What is wrong with it.
    pub why: String,
}

impl Record {
    /// Decodes what the store holds. `additions` has what a guard has added to its record: lines of JSON.
    ///
    /// # Errors
    /// When the additions are damaged. A body that cannot be read is [`Body::Unread`]: the head is of use all the same.
    pub fn decode(mut head: result::Record, additions: Option<&[u8]>) -> serde_json::Result<Record> {
        let mut body = Body::decode(&head);
        if let (Body::Guard(history), Some(additions)) = (&mut body, additions) {
            claims::check_figures(additions)?;
            history.take_in(&String::from_utf8_lossy(additions));
        }
        if !matches!(body, Body::Unread(_)) {
            head.extra = Value::Null;
        }
        Ok(Record { head, body })
    }

    /// The error of a record whose body cannot be read.
    pub fn unread(&self, why: impl Into<String>) -> Unread {
        Unread { id: self.head.id.clone(), why: why.into() }
    }

    /// The depth curves of its device; none where it holds nothing of the kind.
    pub fn curves(&self) -> Option<Known> {
        match &self.body {
            Body::Doctor(examined) => Known::of_doctor(&self.head, examined),
            Body::Unread(_) => None,
            Body::Jobs | Body::Replay(_) | Body::Oltp(_) | Body::Experiment(_) | Body::Guard(_) => {
                Known::of_jobs(&self.head)
            }
        }
    }
}

/// As the store holds it.
impl Serialize for Record {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.body {
            Body::Jobs | Body::Unread(_) => self.head.serialize(serializer),
            Body::Replay(replay) => self.head.with_extra(replay).serialize(serializer),
            Body::Doctor(examined) => self.head.with_extra(&examined.notes).serialize(serializer),
            Body::Oltp(raw) => self.head.with_extra(raw).serialize(serializer),
            Body::Experiment(experiment) => self.head.with_extra(experiment).serialize(serializer),
            Body::Guard(history) => self.head.with_extra(history).serialize(serializer),
        }
    }
}
