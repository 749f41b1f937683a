//! The values that a search may try: each knob's range, seen as a place between 0 and 1, so that all knobs look alike.

use serde::{Deserialize, Serialize};

use weir_knobs::{KnobName, Setting, Value};

/// A knob to search over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dimension {
    /// The knob.
    pub knob: KnobName,
    /// What it may hold.
    pub range: Range,
    /// Its baseline value.
    pub found: Value,
    /// The place of that value, at an end where it lies outside the range.
    pub found_at: f64,
    /// It exists, or may be set, only while another knob holds one of these values.
    pub only_with: Option<(KnobName, Vec<Value>)>,
}

/// What a knob may hold in a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Range {
    /// Numbers on a logarithmic scale, both ends included.
    Scale {
        /// Least; at least 1.
        min: u64,
        /// Greatest.
        max: u64,
        /// Values are multiples of this.
        step: u64,
        /// Whether it is the limit in bytes of a pair.
        bytes: bool,
    },
    /// Some values, in order if they have one.
    Levels(Vec<Value>),
}

impl Range {
    /// The value at a place, rounded to two digits where it is a number.
    pub fn value(&self, at: f64) -> Value {
        let at = at.clamp(0.0, 1.0);
        match self {
            Range::Scale { min, max, step, bytes } => {
                let (low, high) = ((*min).max(1) as f64, (*max).max(1) as f64);
                let rounded = two_digits(low * (high / low).powf(at)) / step * step;
                let value = rounded.clamp(*min, (*max).max(*min));
                if *bytes { Value::Bytes(value) } else { Value::Number(value as i64) }
            }
            Range::Levels(levels) => {
                let index = ((at * levels.len() as f64) as usize).min(levels.len().saturating_sub(1));
                levels.get(index).cloned().unwrap_or(Value::Number(0))
            }
        }
    }

    /// The place of a value; of one outside the range, the nearer end. `None` for a word it does not know, and for a
    /// ratio, which means nothing without the memory it refers to.
    pub fn place(&self, value: &Value) -> Option<f64> {
        match self {
            Range::Scale { min, max, .. } => {
                let number = match value {
                    Value::Bytes(bytes) => *bytes as f64,
                    Value::Number(number) => *number as f64,
                    Value::Ratio(_) | Value::Word(_) => return None,
                };
                let (low, high) = ((*min).max(1) as f64, (*max).max(1) as f64);
                let of = (high / low).ln();
                Some(if of > 0.0 { ((number.max(low) / low).ln() / of).min(1.0) } else { 0.0 })
            }
            Range::Levels(levels) => {
                let index = levels.iter().position(|level| level == value)?;
                Some((index as f64 + 0.5) / levels.len() as f64)
            }
        }
    }

    /// How many values there are; a scale has many.
    pub fn levels(&self) -> Option<usize> {
        match self {
            Range::Scale { .. } => None,
            Range::Levels(levels) => Some(levels.len()),
        }
    }
}

/// The settings at a point: one place for each dimension. Left out are knobs that another one of the point rules out;
/// a background limit not below its dirty limit becomes half of that, as the kernel would take it.
pub fn settings(dimensions: &[Dimension], point: &[f64]) -> Vec<Setting> {
    let all: Vec<Setting> = dimensions
        .iter()
        .zip(point)
        .map(|(dimension, at)| Setting::new(dimension.knob.clone(), dimension.range.value(*at)))
        .collect();
    let held = |knob: &KnobName| {
        let set = all.iter().find(|setting| setting.knob == *knob).map(|setting| &setting.value);
        set.or_else(|| dimensions.iter().find(|d| d.knob == *knob).map(|d| &d.found))
    };
    let applies = |dimension: &Dimension| match &dimension.only_with {
        Some((knob, values)) => held(knob).is_none_or(|value| values.contains(value)),
        None => true,
    };
    let dirty = held(&KnobName::machine("vm.dirty")).cloned();
    let kept = dimensions.iter().zip(&all).filter(|(dimension, _)| applies(dimension));
    kept.map(|(_, setting)| below_dirty(setting, dirty.as_ref())).collect()
}

fn below_dirty(setting: &Setting, dirty: Option<&Value>) -> Setting {
    match (&setting.value, dirty) {
        (Value::Bytes(background), Some(Value::Bytes(dirty)))
            if setting.knob.setting == "vm.dirty_background" && background >= dirty =>
        {
            Setting::new(setting.knob.clone(), Value::Bytes(dirty / 2))
        }
        _ => setting.clone(),
    }
}

/// The point that settings lie at; knobs that they do not name are at the baseline.
pub fn point(dimensions: &[Dimension], settings: &[Setting]) -> Vec<f64> {
    let place = |dimension: &Dimension| {
        let set = settings.iter().find(|setting| setting.knob == dimension.knob);
        set.and_then(|setting| dimension.range.place(&setting.value)).unwrap_or(dimension.found_at)
    };
    dimensions.iter().map(place).collect()
}

fn two_digits(value: f64) -> u64 {
    let unit = 10f64.powf((value.max(1.0).log10().floor() - 1.0).max(0.0));
    ((value / unit).round() * unit) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dimension(knob: &str, range: Range, found: Value) -> Dimension {
        let found_at = range.place(&found).unwrap_or(1.0);
        Dimension { knob: knob.parse().unwrap(), range, found, found_at, only_with: None }
    }

    fn words(words: &[&str]) -> Range {
        Range::Levels(words.iter().map(|word| word.parse().unwrap()).collect())
    }

    #[test]
    fn places_and_values_lead_to_each_other() {
        let scale = Range::Scale { min: 8_000_000, max: 800_000_000, step: 1, bytes: true };
        for (at, value) in [(0.0, 8_000_000), (0.5, 80_000_000), (0.136_5, 15_000_000), (1.0, 800_000_000)] {
            assert_eq!(scale.value(at), Value::Bytes(value), "{at}");
            assert!((scale.place(&Value::Bytes(value)).unwrap() - at).abs() < 0.001, "{at}");
        }
        assert_eq!(scale.place(&Value::Bytes(u64::MAX)), Some(1.0));
        assert_eq!(scale.place(&Value::Ratio(20)), None);
        let kb = Range::Scale { min: 4, max: 1280, step: 4, bytes: false };
        assert_eq!(kb.value(0.6), Value::Number(128));
        let levels = words(&["none", "mq-deadline", "kyber"]);
        for word in ["none", "mq-deadline", "kyber"] {
            let value: Value = word.parse().unwrap();
            assert_eq!(levels.value(levels.place(&value).unwrap()), value);
        }
        assert_eq!(levels.place(&Value::Word("bfq".into())), None);
    }

    #[test]
    fn settings_of_a_point_leave_out_what_does_not_apply() {
        let scheduler =
            dimension("sda/scheduler", words(&["none", "mq-deadline"]), Value::Word("none".into()));
        let mut batch = dimension("sda/iosched/fifo_batch", words(&["1", "16"]), Value::Number(16));
        batch.only_with = Some((scheduler.knob.clone(), vec![Value::Word("mq-deadline".into())]));
        let limit = |min, max| Range::Scale { min, max, step: 1, bytes: true };
        let dirty = dimension("vm.dirty", limit(1_000_000, 100_000_000), Value::Ratio(20));
        let background = dimension("vm.dirty_background", limit(1_000_000, 100_000_000), Value::Ratio(10));
        let dimensions = [scheduler, batch, dirty, background];
        let texts = |point: &[f64]| {
            settings(&dimensions, point).iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            texts(&[0.0, 0.0, 0.5, 0.25]),
            "sda/scheduler=none vm.dirty_bytes=10000000 vm.dirty_background_bytes=3200000"
        );
        assert_eq!(
            texts(&[0.9, 0.0, 0.5, 1.0]),
            "sda/scheduler=mq-deadline sda/iosched/fifo_batch=1 vm.dirty_bytes=10000000 \
             vm.dirty_background_bytes=5000000"
        );
        let back = point(&dimensions, &["vm.dirty_bytes=10000000".parse().unwrap()]);
        assert_eq!(back, [0.25, 0.75, 0.5, 1.0]);
    }
}
