//! The part of weir's JSON that hosts are compared by. What a host answers is anybody's: all else is skipped, and no list is kept beyond
//! what weir ever writes, so that an answer takes hardly more memory here than its own text.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, de};

/// What is kept of a list: several times as much as weir writes.
const FEW: usize = 256;

/// The first elements of a list.
#[derive(Debug)]
pub struct Few<T>(pub Vec<T>);

impl<T> Default for Few<T> {
    fn default() -> Few<T> {
        Few(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Few<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Few<T>, D::Error> {
        deserializer.deserialize_seq(First(PhantomData))
    }
}

struct First<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for First<T> {
    type Value = Few<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Few<T>, A::Error> {
        let mut few = Vec::new();
        while few.len() < FEW {
            match list.next_element()? {
                Some(element) => few.push(element),
                None => return Ok(Few(few)),
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Few(few))
    }
}

/// What an answer begins with.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Any {
    /// Which of the others it is.
    pub schema: String,
}

/// Of schema `weir.doctor/1`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Doctor {
    /// The verdict.
    pub headline: Headline,
    /// What was read.
    pub facts: Few<Fact>,
    /// What was concluded.
    pub findings: Few<Finding>,
    /// What was measured.
    pub measurements: Few<Measurement>,
    /// Where the time of commits went.
    pub commit_stages: Few<CommitStages>,
}

/// A verdict.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Headline {
    /// A word.
    pub grade: String,
    /// The sentence.
    pub text: String,
}

/// A fact.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Fact {
    /// What it is about.
    pub label: String,
    /// With its unit.
    pub value: String,
}

/// A conclusion.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Finding {
    /// What it is about.
    pub topic: String,
    /// A few words.
    pub summary: String,
}

/// A measurement.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Measurement {
    /// Which.
    pub id: String,
    /// Operations a second.
    pub iops: Estimate,
    /// How long they took.
    pub latency: Latency,
}

/// A figure with its interval, which is not needed here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Estimate {
    /// The figure.
    pub mean: Option<f64>,
}

/// Percentiles, ns.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Latency {
    /// Median.
    pub p50_ns: Option<u64>,
    /// 95th.
    pub p95_ns: Option<u64>,
    /// 99th.
    pub p99_ns: Option<u64>,
}

/// Mean times of a commit, ns.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct CommitStages {
    /// Id of the measurement.
    pub measurement: String,
    /// In the device's queue.
    pub queue_ns: Option<f64>,
    /// In driver and device.
    pub device_ns: Option<f64>,
    /// In flushes.
    pub flush_ns: Option<f64>,
    /// The rest.
    pub elsewhere_ns: Option<f64>,
}

/// Of schema `weir.result/1`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Run {
    /// Its jobs.
    pub jobs: Few<Job>,
}

/// A job.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Job {
    /// The class that it is about.
    pub headline: Option<String>,
    /// What ended it.
    pub error: Option<String>,
    /// By class.
    pub classes: Classes,
}

/// Operations by class.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Classes {
    read: Option<Class>,
    write: Option<Class>,
    sync: Option<Class>,
    commit: Option<Class>,
}

impl Classes {
    /// The class of that name.
    pub fn of(&self, name: &str) -> Option<&Class> {
        match name {
            "read" => self.read.as_ref(),
            "write" => self.write.as_ref(),
            "sync" => self.sync.as_ref(),
            "commit" => self.commit.as_ref(),
            _ => None,
        }
    }
}

/// Operations of a class.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Class {
    /// Operations a second.
    pub iops: Option<f64>,
    /// Median.
    pub p50: Quantile,
    /// 95th percentile.
    pub p95: Quantile,
    /// 99th.
    pub p99: Quantile,
}

/// A percentile, where there were operations enough for it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Quantile {
    value: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Value {
    ns: u64,
}

impl Quantile {
    /// It, in ns.
    pub fn ns(&self) -> Option<u64> {
        self.value.as_ref().map(|value| value.ns)
    }
}

/// Reads an answer; what is none is left out.
pub fn parsed<'de, T: de::Deserialize<'de>>(text: &'de str) -> Option<T> {
    serde_json::from_str(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_kept_as_far_as_weir_writes_one() {
        let text = format!("{{\"facts\":[{}{{}}],\"jobs\":7}}", "{\"label\":\"a\"},".repeat(100_000));
        let doctor: Doctor = parsed(&text).unwrap();
        assert_eq!((doctor.facts.0.len(), doctor.facts.0[255].label.as_str()), (FEW, "a"));
        assert!(parsed::<Run>(&text).is_none(), "a list that is none");
        assert!(parsed::<Doctor>("{\"facts\":[{},{}]}").unwrap().facts.0.len() == 2);
    }
}
