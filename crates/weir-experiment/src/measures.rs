//! What a trial measured.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use weir_core::units::{Nanos, megabytes_per_second, per_second, significant};

/// A figure of a trial. *The workload's operations* are what [`crate::Counted`] says of a job, else transactions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum Metric {
    /// The workload's operations per second.
    Rate,
    /// Mean latency of the workload's operations, ns.
    Mean,
    /// Median latency, ns.
    P50,
    /// 95th percentile, ns.
    P95,
    /// 99th percentile, ns.
    P99,
    /// 99.9th percentile, ns.
    P999,
    /// Longest latency, ns.
    Max,
    /// 95th percentile of the time that *submitting* takes, ns: what sysbench calls the latency of asynchronous I/O.
    SubmitP95,
    /// Bytes per second that the floods got written back: what they handed over, less what they left in memory.
    Bulk,
    /// Bytes per second that the device wrote, of whatever origin.
    Device,
    /// A figure of a command.
    Named(String),
}

impl Metric {
    /// Whether more is better.
    pub fn more_is_better(&self) -> bool {
        match self {
            Metric::Rate | Metric::Bulk | Metric::Device | Metric::Named(_) => true,
            Metric::Mean
            | Metric::P50
            | Metric::P95
            | Metric::P99
            | Metric::P999
            | Metric::Max
            | Metric::SubmitP95 => false,
        }
    }

    /// Whether it is a latency in ns.
    pub fn is_latency(&self) -> bool {
        !matches!(self, Metric::Rate | Metric::Bulk | Metric::Device | Metric::Named(_))
    }

    /// A value of it in its unit, for people.
    pub fn shown(&self, value: f64) -> String {
        match self {
            Metric::Bulk | Metric::Device => megabytes_per_second(value),
            Metric::Rate => format!("{}/s", per_second(value)),
            metric if metric.is_latency() => Nanos(value.max(0.0) as u64).to_string(),
            _ => significant(value),
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Metric::Rate => "rate",
            Metric::Mean => "mean",
            Metric::P50 => "p50",
            Metric::P95 => "p95",
            Metric::P99 => "p99",
            Metric::P999 => "p99.9",
            Metric::Max => "max",
            Metric::SubmitP95 => "submit-p95",
            Metric::Bulk => "bulk",
            Metric::Device => "device",
            Metric::Named(name) => name,
        })
    }
}

impl From<String> for Metric {
    /// A word that is none of weir's is a figure of a command.
    fn from(word: String) -> Metric {
        match word.as_str() {
            "rate" | "iops" | "sync-iops" => Metric::Rate,
            "mean" | "avg" => Metric::Mean,
            "p50" | "median" => Metric::P50,
            "p95" => Metric::P95,
            "p99" | "sync-p99" => Metric::P99,
            "p99.9" | "p999" => Metric::P999,
            "max" => Metric::Max,
            "submit-p95" => Metric::SubmitP95,
            "bulk" => Metric::Bulk,
            "device" => Metric::Device,
            _ => Metric::Named(word),
        }
    }
}

impl From<Metric> for String {
    fn from(metric: Metric) -> String {
        metric.to_string()
    }
}

impl FromStr for Metric {
    type Err = std::convert::Infallible;
    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Ok(Metric::from(word.to_string()))
    }
}

/// Figures with their values, each in its own unit: per second, ns, bytes per second.
pub type Figures = BTreeMap<Metric, f64>;

/// What a trial measured, as a whole and second by second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Measures {
    /// The whole trial after warm-up. A percentile without samples enough is absent.
    pub values: Figures,
    /// The trial's course; the unit that intervals are resampled from.
    pub seconds: Vec<Second>,
    /// Operations counted.
    pub operations: u64,
}

/// One interval of a trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Since the start of measuring.
    pub at_ns: u64,
    /// Length.
    pub len_ns: u64,
    /// Operations per second.
    pub rate: f64,
    /// 99th percentile of the interval's latencies, ns; `null` where none finished.
    pub p99_ns: Option<u64>,
    /// Bytes per second that the floods handed over less the growth of what is dirty.
    pub bulk: Option<f64>,
    /// Bytes per second that the device wrote.
    pub device: Option<f64>,
    /// Dirty and under writeback at its end.
    pub dirty_bytes: u64,
}

impl Measures {
    /// One figure.
    pub fn get(&self, metric: &Metric) -> Option<f64> {
        self.values.get(metric).copied()
    }
}
