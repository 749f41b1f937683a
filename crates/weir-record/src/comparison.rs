//! Two records compared, by what their kind measures.

use weir_core::result::{self, Comparison};

use crate::{Body, Record, Unread};

/// Two records that are not compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotCompared {
    /// One of them holds an experiment.
    #[error("{id} is an experiment, which compares its own arms")]
    Experiment {
        /// The record.
        id: String,
    },
    /// They measured different things.
    #[error("{} is a {} run and {} a {} run", a.0, a.1, b.0, b.1)]
    Kinds {
        /// Name and kind of the first.
        a: (String, String),
        /// Of the second.
        b: (String, String),
    },
    /// One of them cannot be read.
    #[error(transparent)]
    Unread(#[from] Unread),
}

/// Compares B with A. `seed` drives the resamples: the same seed gives the same intervals.
///
/// # Errors
/// When an experiment is among them, when they measured different things, or when one cannot be read.
pub fn compare(a: &Record, b: &Record, seed: u64) -> Result<Comparison, NotCompared> {
    for record in [a, b] {
        match &record.body {
            Body::Experiment(_) => return Err(NotCompared::Experiment { id: record.head.id.clone() }),
            Body::Unread(why) => return Err(record.unread(why).into()),
            _ => {}
        }
    }
    match (&a.body, &b.body) {
        (Body::Oltp(raw_a), Body::Oltp(raw_b)) => {
            Ok(weir_oltp::compare((&a.head, raw_a), (&b.head, raw_b), seed))
        }
        (Body::Oltp(_), _) | (_, Body::Oltp(_)) => {
            let named = |record: &Record| (record.head.id.clone(), record.head.kind.clone());
            Err(NotCompared::Kinds { a: named(a), b: named(b) })
        }
        _ => Ok(result::compare(&a.head, &b.head, seed)),
    }
}
