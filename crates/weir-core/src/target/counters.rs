//! Counters that a device or its provider keeps by itself, read from its log pages.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Who keeps the counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CounterSource {
    /// The statistics of a volume of Amazon EBS on NVMe (log page 0xD0).
    AmazonEbs,
    /// NVMe's SMART and health information (log page 0x02).
    NvmeSmart,
}

/// What one log page of a device holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceCounters {
    /// Name of the device in the stack.
    pub device: String,
    /// Whose they are.
    pub source: CounterSource,
    /// By name, the unit at its end.
    pub values: BTreeMap<String, u64>,
}

impl DeviceCounters {
    /// Whether a value grows with time; else it is a state, such as a temperature.
    pub fn counts(name: &str) -> bool {
        !["temperature_kelvin", "percentage_used", "critical_warning", "queue_length"].contains(&name)
    }
}
