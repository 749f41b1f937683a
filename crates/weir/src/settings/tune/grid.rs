//! Values to try where none are typed.

use weir_core::units::Bytes;
use weir_knobs::{Reading, Value};

/// How long the device may take to write what is dirty at the limit, s: small limits cost the bulk writer, large ones
/// the commits. Where one turns into the other, as field reports found it, they lie close together.
const DRAIN_SECONDS: [f64; 8] = [0.02, 0.032, 0.05, 0.075, 0.12, 0.22, 0.5, 1.0];
const LEAST: f64 = 1e6;
/// Parts of a number that is found.
const PARTS: [f64; 4] = [0.25, 0.5, 2.0, 4.0];

/// Limits of dirty pages for a device that writes so many bytes a second, all below the limit that is found.
pub fn dirty_values(bytes_per_second: f64, found: Bytes) -> Vec<String> {
    let limits = DRAIN_SECONDS.iter().map(|seconds| (bytes_per_second * seconds).max(LEAST));
    let mut values: Vec<u64> = limits.map(rounded).filter(|bytes| found.0 == 0 || *bytes < found.0).collect();
    values.dedup();
    values.iter().map(u64::to_string).collect()
}

/// To two digits.
fn rounded(bytes: f64) -> u64 {
    let unit = 10f64.powf(bytes.log10().floor() - 1.0);
    ((bytes / unit).round() * unit).round() as u64
}

/// Values around the one that is found, or the other words that the kernel offers.
pub fn default_values(reading: &Reading) -> Vec<String> {
    let found = reading.value.as_ref();
    if !reading.choices.is_empty() {
        let current = found.map(Value::to_string);
        return reading.choices.iter().filter(|word| Some(*word) != current.as_ref()).cloned().collect();
    }
    let Some(number) = found.and_then(Value::number).filter(|number| *number > 0) else { return Vec::new() };
    let inside = |value: &i64| {
        *value != number && reading.min.is_none_or(|m| *value >= m) && reading.max.is_none_or(|m| *value <= m)
    };
    let values = PARTS.iter().map(|part| (number as f64 * part).round() as i64).filter(inside);
    values.filter(|value| *value > 0).map(|value| value.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_follow_the_devices_rate_and_stay_below_the_found_one() {
        let all = dirty_values(200e6, Bytes(5_000_000_000));
        assert_eq!(
            all,
            ["4000000", "6400000", "10000000", "15000000", "24000000", "44000000", "100000000", "200000000"]
        );
        assert_eq!(dirty_values(200e6, Bytes(50_000_000)).len(), 6);
        assert_eq!(dirty_values(5e6, Bytes(0)), ["1000000", "1100000", "2500000", "5000000"]);
    }

    #[test]
    fn words_and_numbers_around_the_found_one() {
        let mut reading = Reading {
            knob: "sda/nr_requests".parse().unwrap(),
            path: String::new(),
            value: Some(Value::Number(64)),
            unreadable: None,
            choices: Vec::new(),
            min: Some(4),
            max: Some(128),
            writable: true,
            owners: Vec::new(),
        };
        assert_eq!(default_values(&reading), ["16", "32", "128"]);
        reading.value = Some(Value::Word("none".into()));
        reading.choices = vec!["none".into(), "mq-deadline".into()];
        assert_eq!(default_values(&reading), ["mq-deadline"]);
    }
}
