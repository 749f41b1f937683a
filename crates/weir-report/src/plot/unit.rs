//! Units of axes: how their values are written beside ticks and in tables.

use weir_core::units::{Nanos, grouped, significant};

/// What the numbers of an axis mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds, written as ns, µs, ms or s at every tick.
    Latency,
    /// Seconds since a start.
    Seconds,
    /// Operations per second.
    Iops,
    /// Bytes per second, written in MB/s (10⁶).
    BytesPerSecond,
    /// Bytes, written in KB, MB or GB (10³…).
    Bytes,
    /// Bytes over many powers of ten, written in B, KB, MB or GB at every tick.
    Distance,
    /// 0 to 100.
    Percent,
    /// A number of the things named.
    Count(&'static str),
    /// A share of all operations in 0..1, written as a percentile.
    Quantile,
}

/// Up to `decimals` digits after the point, without trailing zeros.
fn trimmed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

/// A number for a tick: up to four digits as they are, larger ones in k and M.
fn compact(value: f64, largest: f64) -> String {
    if largest < 10_000.0 {
        if value >= 1000.0 { grouped(value.round() as u64) } else { trimmed(value, 4) }
    } else if value >= 1e6 {
        format!("{}M", trimmed(value / 1e6, 2))
    } else if value >= 1e3 {
        format!("{}k", trimmed(value / 1e3, 2))
    } else {
        trimmed(value, 3)
    }
}

/// Divisor and name of the decimal byte unit that suits a largest value.
fn byte_unit(largest: f64) -> (f64, &'static str) {
    match largest {
        v if v >= 1e10 => (1e9, "GB"),
        v if v >= 1e6 => (1e6, "MB"),
        v if v >= 1e3 => (1e3, "KB"),
        _ => (1.0, "B"),
    }
}

/// Divisor and name of the unit of time of one value in ns.
fn time_unit(ns: f64) -> (f64, &'static str) {
    match ns.abs() {
        v if v >= 1e9 => (1e9, "s"),
        v if v >= 1e6 => (1e6, "ms"),
        v if v >= 1e3 => (1e3, "µs"),
        _ => (1.0, "ns"),
    }
}

impl Unit {
    /// The unit as it stands in an axis's caption, for an axis that reaches up to `largest`; empty where every
    /// tick carries its own.
    pub fn caption(self, largest: f64) -> String {
        match self {
            Unit::Latency | Unit::Distance | Unit::Percent | Unit::Quantile => String::new(),
            Unit::Seconds => "s".to_string(),
            Unit::Iops => "operations/s".to_string(),
            Unit::BytesPerSecond => format!("{}/s", byte_unit(largest.max(1e6)).1),
            Unit::Bytes => byte_unit(largest).1.to_string(),
            Unit::Count(things) => things.to_string(),
        }
    }

    /// A tick's text on an axis that reaches up to `largest`.
    pub fn tick(self, value: f64, largest: f64) -> String {
        match self {
            Unit::Latency if value == 0.0 => "0 s".to_string(),
            Unit::Latency => {
                let (divisor, unit) = time_unit(value * 1.000_001);
                format!("{} {unit}", trimmed(value / divisor, 2))
            }
            Unit::Distance => {
                let (divisor, unit) = byte_unit(value * 1.000_001);
                format!("{} {unit}", compact(value / divisor, 0.0))
            }
            Unit::Seconds => trimmed(value, if largest < 0.1 { 5 } else { 2 }),
            Unit::Iops | Unit::Count(_) => compact(value, largest),
            Unit::BytesPerSecond => compact(value / byte_unit(largest.max(1e6)).0, 0.0),
            Unit::Bytes => compact(value / byte_unit(largest).0, 0.0),
            Unit::Percent => format!("{} %", trimmed(value, 2)),
            Unit::Quantile => format!("{} %", trimmed(value * 100.0, 9)),
        }
    }

    /// A value with its unit, for tables and labels.
    pub fn value(self, value: f64) -> String {
        if !value.is_finite() {
            return "–".to_string();
        }
        match self {
            Unit::Latency => Nanos(value.max(0.0).round() as u64).to_string(),
            Unit::Seconds => format!("{} s", self.tick(value, value)),
            Unit::Iops => rate(value),
            Unit::BytesPerSecond => {
                let (divisor, unit) = byte_unit(value.max(1e6));
                format!("{} {unit}/s", significant(value / divisor))
            }
            Unit::Bytes | Unit::Distance => {
                let (divisor, unit) = byte_unit(value);
                format!("{} {unit}", significant(value / divisor))
            }
            Unit::Percent => format!("{} %", significant(value)),
            Unit::Count(things) => format!("{} {things}", rate(value)).trim_end().to_string(),
            Unit::Quantile => format!("{} %", trimmed(value * 100.0, 4)),
        }
    }
}

/// A rate or count: whole numbers without a fraction, large ones grouped.
fn rate(value: f64) -> String {
    if value >= 999.5 {
        grouped(value.round() as u64)
    } else if value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        significant(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_the_field_writes_them() {
        for (unit, value, largest, tick, full) in [
            (Unit::Latency, 1_500.0, 1e9, "1.5 µs", "1.50 µs"),
            (Unit::Latency, 2e9, 1e10, "2 s", "2.00 s"),
            (Unit::Latency, 1e6, 1e9, "1 ms", "1.00 ms"),
            (Unit::Seconds, 30.0, 60.0, "30", "30 s"),
            (Unit::Seconds, 0.0015, 0.0027, "0.0015", "0.0015 s"),
            (Unit::Iops, 5_000.0, 8_000.0, "5,000", "5,000"),
            (Unit::Iops, 50_000.0, 80_000.0, "50k", "50,000"),
            (Unit::Iops, 0.1, 80_000.0, "0.1", "0.10"),
            (Unit::BytesPerSecond, 2.5e8, 5e8, "250", "250 MB/s"),
            (Unit::Bytes, 15e6, 1e8, "15", "15.0 MB"),
            (Unit::Distance, 1e6, 1e12, "1 MB", "1.00 MB"),
            (Unit::Quantile, 0.999, 1.0, "99.9 %", "99.9 %"),
        ] {
            assert_eq!((unit.tick(value, largest).as_str(), unit.value(value).as_str()), (tick, full));
        }
        assert_eq!(Unit::Iops.value(f64::NAN), "–");
    }
}
