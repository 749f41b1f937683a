//! Ranges to search, cut by what the device can do: a dirty limit of less than some milliseconds of its rate starves
//! it, and one of more than ten seconds is no limit. What trades durability for speed is never searched.

use crate::space::{Dimension, Range};
use weir_core::units::Bytes;
use weir_knobs::{Kind, KnobName, Reading, Risk, Value, catalog};

/// What was measured of the device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Facts {
    /// Bytes per second that it writes under the flood.
    pub write_bps: f64,
    /// The dirty threshold in force, bytes: a ratio times available memory, or the limit in bytes.
    pub dirty_threshold: u64,
    /// The background threshold in force, bytes.
    pub background_threshold: u64,
}

/// What may be searched, and what of the knobs given may not.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Space {
    /// The knobs with their ranges.
    pub dimensions: Vec<Dimension>,
    /// Sentences on those left out.
    pub left_out: Vec<String>,
}

/// No limit below this, bytes: per-CPU counters alone are off by some of it.
const DIRTY_MIN: f64 = 8.0 * 1_048_576.0;
/// Dirty data that takes less than this to write starves the device, s.
const DRAIN_MIN_S: f64 = 0.02;
/// Dirty data that takes longer than this to write is no limit, s.
const DRAIN_MAX_S: f64 = 10.0;
/// Most requests that any scheduler takes.
const REQUESTS_MAX: i64 = 2048;

/// The space that these knobs span on this device.
pub fn space(readings: &[Reading], facts: &Facts) -> Space {
    let mut space = Space::default();
    for reading in readings {
        match dimension(reading, readings, facts) {
            Ok(dimension) => space.dimensions.push(dimension),
            Err(why) => space.left_out.push(format!("{} is not searched: {why}", reading.knob)),
        }
    }
    space
}

fn dimension(reading: &Reading, all: &[Reading], facts: &Facts) -> Result<Dimension, String> {
    let setting = reading.knob.setting.as_str();
    let spec = catalog::spec(&reading.knob);
    match spec.map(|spec| (spec.kind, spec.risk)) {
        Some((_, Risk::Durability(why))) => {
            return Err(format!("it would trade durability for speed: {why}"));
        }
        Some((_, Risk::Shown(why))) => return Err(why.to_string()),
        Some((Kind::Action, _)) => return Err("it is an action and holds no value".to_string()),
        _ => {}
    }
    if !reading.writable {
        return Err(format!("{} may not be written", reading.path));
    }
    let unreadable = || reading.unreadable.clone().unwrap_or_else(|| "it could not be read".to_string());
    let found = reading.value.clone().ok_or_else(unreadable)?;
    let range = range(reading, &found, facts)?;
    let in_bytes = match setting {
        "vm.dirty" => Value::Bytes(facts.dirty_threshold),
        "vm.dirty_background" => Value::Bytes(facts.background_threshold),
        _ => found.clone(),
    };
    let found_at = range.place(&in_bytes).unwrap_or(1.0);
    let only_with = only_with(reading, all);
    Ok(Dimension { knob: reading.knob.clone(), range, found, found_at, only_with })
}

fn range(reading: &Reading, found: &Value, facts: &Facts) -> Result<Range, String> {
    let dirty = dirty_range(facts);
    let number = found.number();
    let most = |most: i64| reading.max.map_or(most, |max| max.min(most));
    let least = |least: i64| reading.min.map_or(least, |min| min.max(least));
    let setting = reading.knob.setting.as_str();
    match setting.strip_prefix("bdi/").unwrap_or(setting) {
        "vm.dirty" => limits(dirty.0, dirty.1),
        "vm.dirty_background" => limits(dirty.0 / 2, dirty.1 / 2),
        "max_ratio_fine" => {
            let share = |bytes: u64| bytes as f64 * 1e6 / facts.dirty_threshold.max(1) as f64;
            scale(share(dirty.0).ceil() as i64, 1_000_000, 1)
        }
        "scheduler" | "iosched" => words(&reading.choices),
        "max_sectors_kb" => scale(least(64), most(number.unwrap_or(1280).max(1280)), 4),
        "nr_requests" => scale(least(4), most(REQUESTS_MAX), 1),
        "read_ahead_kb" => scale(16, most(8192), 4),
        "wbt_lat_usec" => levels(&[0, 500, 2_000, 10_000, 75_000]),
        "vm.swappiness" => levels(&[0, 10, 60, 100]),
        "strict_limit" | "iostats" | "iosched/front_merges" | "iosched/low_latency" => levels(&[0, 1]),
        "nomerges" | "rq_affinity" => levels(&[0, 1, 2]),
        "vm.dirty_writeback_centisecs" => scale(50, 3_000, 1),
        "vm.dirty_expire_centisecs" => scale(100, 6_000, 1),
        _ if !reading.choices.is_empty() => words(&reading.choices),
        _ => around(number, least(1), most(i64::MAX)),
    }
}

/// Least and greatest dirty limit worth a trial, bytes.
fn dirty_range(facts: &Facts) -> (u64, u64) {
    let low = DIRTY_MIN.max(facts.write_bps * DRAIN_MIN_S);
    let high = (facts.dirty_threshold as f64).min(facts.write_bps * DRAIN_MAX_S);
    (low as u64, high as u64)
}

fn limits(min: u64, max: u64) -> Result<Range, String> {
    if min >= max {
        let (min, max) = (Bytes(min), Bytes(max));
        return Err(format!("on this device no limit between {min} and {max} is worth a trial"));
    }
    Ok(Range::Scale { min, max, step: 1, bytes: true })
}

fn scale(min: i64, max: i64, step: u64) -> Result<Range, String> {
    match (u64::try_from(min.max(1)), u64::try_from(max)) {
        (Ok(min), Ok(max)) if min < max => Ok(Range::Scale { min, max, step, bytes: false }),
        _ => Err(format!("it has no values between {min} and {max}")),
    }
}

fn levels(values: &[i64]) -> Result<Range, String> {
    Ok(Range::Levels(values.iter().map(|value| Value::Number(*value)).collect()))
}

fn words(choices: &[String]) -> Result<Range, String> {
    match choices {
        [] | [_] => Err("no values to choose from".to_string()),
        choices => Ok(Range::Levels(choices.iter().map(|word| Value::Word(word.clone())).collect())),
    }
}

/// Of a knob of which nothing more is known: an eighth to eight times of the baseline.
fn around(found: Option<i64>, min: i64, max: i64) -> Result<Range, String> {
    match found {
        Some(found) if found > 0 => scale((found / 8).max(min), found.saturating_mul(8).min(max), 1),
        Some(found) => Err(format!("no values to try follow from {found}")),
        None => Err("it holds no number".to_string()),
    }
}

/// Parameters of a scheduler exist with that scheduler only. Without one, requests are limited by the hardware's tags,
/// whose number only a machine found without one shows.
fn only_with(reading: &Reading, all: &[Reading]) -> Option<(KnobName, Vec<Value>)> {
    let KnobName { scope, setting } = &reading.knob;
    let scheduler = KnobName { scope: scope.clone(), setting: "scheduler".to_string() };
    let of_device = all.iter().find(|other| other.knob == scheduler)?;
    let none = Value::Word("none".to_string());
    let found = of_device.value.clone()?;
    if setting.starts_with("iosched/") {
        return Some((scheduler, vec![found]));
    }
    if setting != "nr_requests" || found == none {
        return None;
    }
    let others = of_device.choices.iter().map(|word| Value::Word(word.clone())).filter(|word| *word != none);
    Some((scheduler, others.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(knob: &str, value: &str, choices: &[&str], max: Option<i64>) -> Reading {
        Reading {
            knob: knob.parse().unwrap(),
            path: format!("/sys/{knob}"),
            value: Some(value.parse().unwrap()),
            unreadable: None,
            choices: choices.iter().map(ToString::to_string).collect(),
            min: None,
            max,
            writable: true,
            owners: Vec::new(),
        }
    }

    const FACTS: Facts =
        Facts { write_bps: 250e6, dirty_threshold: 3_900_000_000, background_threshold: 1_950_000_000 };

    #[test]
    fn ranges_follow_from_the_device() {
        let bytes = |min, max| Range::Scale { min, max, step: 1, bytes: true };
        let numbers = |min, max, step| Range::Scale { min, max, step, bytes: false };
        for (reading, expected) in [
            (reading("vm.dirty", "ratio=20", &[], None), bytes(8_388_608, 2_500_000_000)),
            (reading("vm.dirty_background", "ratio=10", &[], None), bytes(4_194_304, 1_250_000_000)),
            (reading("sda/max_sectors_kb", "1280", &[], Some(512)), numbers(64, 512, 4)),
            (reading("sda/nr_requests", "64", &[], Some(256)), numbers(4, 256, 1)),
            (reading("sda/bdi/max_ratio_fine", "1000000", &[], None), numbers(2151, 1_000_000, 1)),
            (reading("sda/iosched/fifo_batch", "16", &[], None), numbers(2, 128, 1)),
        ] {
            let space = space(std::slice::from_ref(&reading), &FACTS);
            assert_eq!(space.dimensions[0].range, expected, "{}", reading.knob);
        }
        // A fast device's floor is a share of its rate; the ceiling is never above the threshold in force.
        let fast = Facts { write_bps: 3e9, dirty_threshold: 4_000_000_000, ..FACTS };
        let dirty = space(&[reading("vm.dirty", "ratio=20", &[], None)], &fast);
        assert_eq!(dirty.dimensions[0].range, bytes(60_000_000, 4_000_000_000));
        assert_eq!(dirty.dimensions[0].found_at, 1.0);
    }

    #[test]
    fn what_may_not_be_searched_is_said() {
        let mut locked = reading("sda/nr_requests", "64", &[], None);
        locked.writable = false;
        let mut lost = reading("sda/wbt_lat_usec", "2000", &[], None);
        (lost.value, lost.unreadable) = (None, Some("Invalid argument".to_string()));
        let slow = Facts { write_bps: 1e6, dirty_threshold: 8_000_000, background_threshold: 4_000_000 };
        for (reading, facts, why) in [
            (reading("sda/write_cache", "write back", &[], None), FACTS, "trade durability"),
            (reading("vm.drop_caches", "0", &[], None), FACTS, "an action"),
            (locked, FACTS, "may not be written"),
            (lost, FACTS, "Invalid argument"),
            (reading("sda/scheduler", "none", &["none"], None), FACTS, "no values to choose"),
            (reading("vm.dirty", "ratio=20", &[], None), slow, "is worth a trial"),
            (reading("sda/iosched/x", "0", &[], None), FACTS, "no values to try"),
        ] {
            let space = space(&[reading], &facts);
            assert!(space.dimensions.is_empty() && space.left_out[0].contains(why), "{:?}", space.left_out);
        }
    }

    #[test]
    fn knobs_of_a_scheduler_come_and_go_with_it() {
        let choices = ["none", "mq-deadline", "kyber"];
        let both = |found: &str| {
            let readings = [
                reading("sda/scheduler", found, &choices, None),
                reading("sda/nr_requests", "64", &[], Some(256)),
                reading("sda/iosched/fifo_batch", "16", &[], None),
            ];
            space(&readings, &FACTS).dimensions.into_iter().map(|d| d.only_with.map(|(_, with)| with.len()))
        };
        assert!(both("mq-deadline").eq([None, Some(2), Some(1)]));
        assert!(both("none").eq([None, None, Some(1)]));
    }
}
