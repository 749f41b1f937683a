//! Values of knobs, and knobs with a value.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::catalog;
use crate::name::{BadName, KnobName, Scope};
use weir_core::units::Bytes;

/// What a knob holds. Prints and parses as `bytes=15000000`, `ratio=20`, `256`, `mq-deadline`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Value {
    /// A pair's limit in bytes.
    Bytes(u64),
    /// A pair's limit in percent of available memory.
    Ratio(u64),
    /// A number in the knob's own unit.
    Number(i64),
    /// A word: a scheduler, `write back`, `max`.
    Word(String),
}

/// A knob with a value. Prints and parses as people write it: `vm.dirty_bytes=15000000`, `sda/scheduler=none`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Setting {
    /// The knob.
    pub knob: KnobName,
    /// Its value.
    pub value: Value,
}

/// A text that is no setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSetting {
    /// There is no `=`.
    #[error("expected NAME=VALUE, got `{0}`")]
    NoValue(String),
    /// The name.
    #[error(transparent)]
    Name(#[from] BadName),
    /// The value of a pair.
    #[error("`{0}`: {1}")]
    Value(String, String),
}

impl Value {
    /// Without the prefix of a pair.
    pub fn written(&self) -> String {
        match self {
            Value::Bytes(number) | Value::Ratio(number) => number.to_string(),
            other => other.to_string(),
        }
    }

    /// Quota and period, if it is a limit of processor time: `5000 100000`.
    pub fn quota(&self) -> Option<(u64, u64)> {
        let Value::Word(word) = self else { return None };
        let (quota, period) = word.split_once(' ')?;
        Some((quota.parse().ok()?, period.parse().ok()?))
    }

    /// The number in it, if it is one.
    pub fn number(&self) -> Option<i64> {
        match self {
            Value::Bytes(number) | Value::Ratio(number) => i64::try_from(*number).ok(),
            Value::Number(number) => Some(*number),
            Value::Word(_) => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bytes(bytes) => write!(f, "bytes={bytes}"),
            Value::Ratio(ratio) => write!(f, "ratio={ratio}"),
            Value::Number(number) => write!(f, "{number}"),
            Value::Word(word) => f.write_str(word),
        }
    }
}

impl FromStr for Value {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |number: &str| {
            number.parse::<u64>().map_err(|_| {
                format!(
                    "expected a whole number, got \
                `{number}`"
                )
            })
        };
        Ok(match text.split_once('=') {
            Some(("bytes", bytes)) => Value::Bytes(number(bytes)?),
            Some(("ratio", ratio)) => Value::Ratio(number(ratio)?),
            _ => text.parse().map_or_else(|_| Value::Word(text.to_string()), Value::Number),
        })
    }
}

impl From<Value> for String {
    fn from(value: Value) -> Self {
        value.to_string()
    }
}

impl TryFrom<String> for Value {
    type Error = String;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl Setting {
    /// The file a value goes to: of a pair, the one that is to be in force.
    pub fn file(&self) -> Option<String> {
        let path = catalog::path(&self.knob)?;
        Some(match self.value {
            Value::Bytes(_) => format!("{path}_bytes"),
            Value::Ratio(_) => format!("{path}_ratio"),
            _ => path,
        })
    }

    /// A knob with a value.
    pub fn new(knob: KnobName, value: Value) -> Setting {
        Setting { knob, value }
    }

    /// The file name people know: of a pair, the one in force.
    pub fn written_name(&self) -> String {
        match self.value {
            Value::Bytes(_) => format!("{}_bytes", self.knob),
            Value::Ratio(_) => format!("{}_ratio", self.knob),
            _ => self.knob.to_string(),
        }
    }

    /// The name where one server alone is spoken of: its variable's. Of anything else, [`Setting::written_name`].
    pub fn short_name(&self) -> String {
        match self.knob.scope {
            Scope::Server(_) => self.knob.setting.clone(),
            _ => self.written_name(),
        }
    }

    /// The value without the pair's prefix.
    pub fn written_value(&self) -> String {
        self.value.written()
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.written_name(), self.written_value())
    }
}

impl FromStr for Setting {
    type Err = BadSetting;
    /// Sizes may have units: `vm.dirty_bytes=15MB`, `cgroup:/db.slice/memory.high=8GiB`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, value) = text.split_once('=').ok_or_else(|| BadSetting::NoValue(text.to_string()))?;
        let bad = |why: String| BadSetting::Value(text.to_string(), why);
        let knob: KnobName = name.trim().parse()?;
        let value = value.trim();
        let value = match name.trim() {
            "vm.dirty_bytes" | "vm.dirty_background_bytes" => {
                Value::Bytes(value.parse::<Bytes>().map_err(|error| bad(error.to_string()))?.0)
            }
            "vm.dirty_ratio" | "vm.dirty_background_ratio" => Value::Ratio(
                value.trim_end_matches('%').parse().map_err(|_| bad("expected a percentage".into()))?,
            ),
            _ => number_with_unit(&knob, value).map_or_else(|| value.parse().map_err(bad), Ok)?,
        };
        if value == Value::Word(String::new()) {
            return Err(bad("there is no value".to_string()));
        }
        Ok(Setting { knob, value })
    }
}

/// A size with a unit, for a knob that counts bytes.
fn number_with_unit(knob: &KnobName, value: &str) -> Option<Value> {
    catalog::spec(knob).filter(|spec| spec.unit.starts_with("bytes"))?;
    let bytes: Bytes = value.parse().ok()?;
    i64::try_from(bytes.0).ok().map(Value::Number)
}

impl From<Setting> for String {
    fn from(setting: Setting) -> Self {
        setting.to_string()
    }
}

impl TryFrom<String> for Setting {
    type Error = BadSetting;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_print_as_people_write_them() {
        for (text, printed) in [
            ("vm.dirty_bytes=15MB", "vm.dirty_bytes=15000000"),
            ("vm.dirty_ratio=20%", "vm.dirty_ratio=20"),
            ("vm.dirty=ratio=20", "vm.dirty_ratio=20"),
            ("vm.swappiness=0", "vm.swappiness=0"),
            ("sda/scheduler=none", "sda/scheduler=none"),
            ("sda/wbt_lat_usec=-1", "sda/wbt_lat_usec=-1"),
            ("cgroup:/db/memory.high=1GiB", "cgroup:/db/memory.high=1073741824"),
            ("cgroup:/db/memory.high=max", "cgroup:/db/memory.high=max"),
        ] {
            let setting: Setting = text.parse().unwrap();
            assert_eq!(setting.to_string(), printed);
            assert_eq!(printed.parse::<Setting>().unwrap(), setting);
        }
        for text in ["vm.dirty_bytes", "vm.dirty_bytes=", "vm.dirty_bytes=much", "=5", "sda/scheduler="] {
            assert!(text.parse::<Setting>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_pair_is_set_by_the_file_that_is_to_be_in_force() {
        let file = |setting: &str| setting.parse::<Setting>().unwrap().file();
        assert_eq!(file("vm.dirty_bytes=1GB").as_deref(), Some("/proc/sys/vm/dirty_bytes"));
        assert_eq!(
            file("vm.dirty_background_ratio=5").as_deref(),
            Some("/proc/sys/vm/dirty_background_ratio")
        );
    }
}
