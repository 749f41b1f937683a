//! A stored run, decoded once: what every run has, and what only its kind has.
#![forbid(unsafe_code)]

mod body;
mod comparison;
#[cfg(test)]
mod tests;

pub use body::Body;
pub use comparison::{NotCompared, compare};

use serde::Serialize;
use weir_core::result;
use weir_core::stats::claims;
use weir_verdict::saturation::Known;

/// A run.
#[derive(Debug, Clone)]
pub struct Record {
    /// What every run has, as it is stored: command, conditions, jobs; `extra` is the body's JSON.
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
    /// A run that has ended, with its body put into the head for the store.
    ///
    /// # Errors
    /// When the body cannot be written as JSON.
    pub fn new(mut head: result::Record, body: Body) -> serde_json::Result<Record> {
        if let Some(extra) = body.to_json()? {
            head.extra = extra;
        }
        Ok(Record { head, body })
    }

    /// Decodes what the store holds. What a guard has added to its record is in `additions`: lines of JSON.
    ///
    /// # Errors
    /// When the additions are damaged. A body that cannot be read is [`Body::Unread`]: the head is of use all the same.
    pub fn decode(mut head: result::Record, additions: Option<&[u8]>) -> serde_json::Result<Record> {
        let mut body = Body::decode(&head);
        if let (Body::Guard(history), Some(additions)) = (&mut body, additions) {
            claims::check_figures(additions)?;
            history.take_in(&String::from_utf8_lossy(additions));
            head.extra = serde_json::to_value(history)?;
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
            Body::Jobs | Body::Oltp(_) | Body::Experiment(_) | Body::Guard(_) => Known::of_jobs(&self.head),
        }
    }
}

/// As the store holds it.
impl Serialize for Record {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.head.serialize(serializer)
    }
}
