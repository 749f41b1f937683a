//! Quantities as people type and read them. Inside weir a quantity is an integer with its unit in its type or name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What the kernel counts sizes, offsets and I/O of block devices in, whatever their own block; O_DIRECT is aligned to as much at least.
pub const SECTOR_BYTES: u64 = 512;

/// A number of bytes. Parses `4096`, `16k`, `16KiB`, `2G`, `1.5G` (powers of 1024) and `15MB` (powers of 1000).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

/// A length of time in nanoseconds. Parses `10s`, `200ms`, `5m`, `1h`, `50us`, `100ns`; a bare number is seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nanos(pub u64);

/// Text that is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseUnitError {
    /// The text does not start with a number.
    #[error("`{0}` does not start with a number")]
    NoNumber(String),
    /// The text after the number is no unit of this quantity.
    #[error("`{text}`: `{unit}` is not one of {known}")]
    UnknownUnit {
        /// What was typed.
        text: String,
        /// The part that is not understood.
        unit: String,
        /// The units that are.
        known: &'static str,
    },
    /// The quantity does not fit 64 bits.
    #[error("`{0}` is too large")]
    TooLarge(String),
}

/// Splits `1.5G` into 1.5 and `G`.
fn split_number(text: &str) -> Result<(&str, &str), ParseUnitError> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    if text[..end].parse::<f64>().is_err() {
        return Err(ParseUnitError::NoNumber(text.to_string()));
    }
    Ok((&text[..end], text[end..].trim()))
}

/// `number * factor`, exact for whole numbers.
fn scale(text: &str, number: &str, factor: u64) -> Result<u64, ParseUnitError> {
    let too_large = || ParseUnitError::TooLarge(text.to_string());
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor).ok_or_else(too_large);
    }
    let value =
        number.parse::<f64>().map_err(|_| ParseUnitError::NoNumber(text.to_string()))? * factor as f64;
    if value < u64::MAX as f64 { Ok(value.round() as u64) } else { Err(too_large()) }
}

impl FromStr for Bytes {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, unit) = split_number(text)?;
        let power = |base: u64, exponent: u32| base.pow(exponent);
        let factor = match unit.to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "k" | "kib" => power(1024, 1),
            "m" | "mib" => power(1024, 2),
            "g" | "gib" => power(1024, 3),
            "t" | "tib" => power(1024, 4),
            "kb" => power(1000, 1),
            "mb" => power(1000, 2),
            "gb" => power(1000, 3),
            "tb" => power(1000, 4),
            _ => {
                return Err(ParseUnitError::UnknownUnit {
                    text: text.to_string(),
                    unit: unit.to_string(),
                    known: "k, M, G, T (powers of 1024), KiB…TiB, KB…TB (powers of 1000)",
                });
            }
        };
        scale(text, number, factor).map(Bytes)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
        let mut exponent = 0;
        while exponent + 1 < UNITS.len() && self.0 >= 1024u64.pow(exponent as u32 + 1) {
            exponent += 1;
        }
        let divisor = 1024u64.pow(exponent as u32);
        let text = if self.0.is_multiple_of(divisor) {
            format!("{} {}", self.0 / divisor, UNITS[exponent])
        } else {
            format!("{} {}", significant(self.0 as f64 / divisor as f64), UNITS[exponent])
        };
        f.pad(&text)
    }
}

impl FromStr for Nanos {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, unit) = split_number(text)?;
        let factor = match unit {
            "ns" => 1,
            "us" | "µs" => 1_000,
            "ms" => 1_000_000,
            "" | "s" => 1_000_000_000,
            "m" | "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "d" => 86_400_000_000_000,
            _ => {
                return Err(ParseUnitError::UnknownUnit {
                    text: text.to_string(),
                    unit: unit.to_string(),
                    known: "ns, us, ms, s, m, h, d",
                });
            }
        };
        scale(text, number, factor).map(Nanos)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 as f64;
        let text = match self.0 {
            0 => "0 s".to_string(),
            1..=999 => format!("{} ns", self.0),
            1_000..=999_499 => format!("{} µs", significant(ns / 1e3)),
            999_500..=999_499_999 => format!("{} ms", significant(ns / 1e6)),
            999_500_000..=119_999_999_999 => format!("{} s", significant(ns / 1e9)),
            _ => format!("{} min", significant(ns / 60e9)),
        };
        f.pad(&text)
    }
}

impl Nanos {
    /// Whole milliseconds, seconds… are built from these.
    pub const fn from_secs(seconds: u64) -> Self {
        Nanos(seconds * 1_000_000_000)
    }

    /// A length given in milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Nanos(millis * 1_000_000)
    }

    /// The length as floating-point seconds, for rates and display.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The length as floating-point milliseconds, for display.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

/// Three significant digits without an exponent: `1.23`, `12.3`, `123`, `12300` prints as `12300`.
pub fn significant(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude == 0.0 {
        "0".to_string()
    } else if magnitude < 9.995 {
        format!("{value:.2}")
    } else if magnitude < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

/// A count with thousands separated by a comma: `1,234,567`.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Operations per second for people: `0.98`, `33.7`, `758`, `12,345`.
pub fn per_second(rate: f64) -> String {
    if rate < 999.5 { significant(rate) } else { grouped(rate.round() as u64) }
}

/// Bytes per second in MB/s (10⁶, as devices and networks are sold).
pub fn megabytes_per_second(bytes_per_second: f64) -> String {
    format!("{} MB/s", significant(bytes_per_second / 1e6))
}

/// A limit in bytes, as people set limits: `7.9 MB`, `250 MB`, `1 GB`; of whole binary units those: `1 MiB`.
pub fn limit(bytes: Bytes) -> String {
    const UNITS: [(u64, &str); 4] =
        [(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "KB")];
    let Some((unit, name)) = UNITS.iter().find(|(unit, _)| bytes.0 >= *unit) else {
        return bytes.to_string();
    };
    let binary = bytes.0.is_multiple_of(1 << 10) && !bytes.0.is_multiple_of(unit / 10);
    if binary && bytes.0.is_multiple_of(1 << (10 * (bytes.0.ilog2() / 10))) {
        return bytes.to_string();
    }
    let number = significant(bytes.0 as f64 / *unit as f64);
    let number =
        if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { &number };
    format!("{number} {name}")
}

macro_rules! serde_as_number_or_text {
    ($unit:ident) => {
        impl Serialize for $unit {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_u64(self.0)
            }
        }
        impl<'de> Deserialize<'de> for $unit {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[derive(Deserialize)]
                #[serde(untagged)]
                enum NumberOrText {
                    Number(u64),
                    Text(String),
                }
                match NumberOrText::deserialize(deserializer)? {
                    NumberOrText::Number(n) => Ok($unit(n)),
                    NumberOrText::Text(text) => text.parse().map_err(serde::de::Error::custom),
                }
            }
        }
    };
}
serde_as_number_or_text!(Bytes);
serde_as_number_or_text!(Nanos);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_parse_and_print() {
        for (text, value, shown) in [
            ("4096", 4096, "4 KiB"),
            ("16k", 16 << 10, "16 KiB"),
            ("16KiB", 16 << 10, "16 KiB"),
            ("2G", 2 << 30, "2 GiB"),
            ("1.5G", 3 << 29, "1.50 GiB"),
            ("15MB", 15_000_000, "14.3 MiB"),
            ("0", 0, "0 B"),
        ] {
            let bytes: Bytes = text.parse().unwrap();
            assert_eq!((bytes.0, bytes.to_string().as_str()), (value, shown), "{text}");
        }
        for text in ["", "k", "12q", "-4k", "99999999999999T"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }

    #[test]
    fn nanos_parse_and_print() {
        for (text, value, shown) in [
            ("10", 10_000_000_000, "10.0 s"),
            ("200ms", 200_000_000, "200 ms"),
            ("1.5s", 1_500_000_000, "1.50 s"),
            ("5m", 300_000_000_000, "5.00 min"),
            ("50us", 50_000, "50.0 µs"),
            ("7ns", 7, "7 ns"),
            ("0", 0, "0 s"),
        ] {
            let nanos: Nanos = text.parse().unwrap();
            assert_eq!((nanos.0, nanos.to_string().as_str()), (value, shown), "{text}");
        }
        assert!("5 weeks".parse::<Nanos>().is_err());
    }

    #[test]
    fn rates_read_well() {
        assert_eq!(per_second(0.984), "0.98");
        assert_eq!(per_second(33.74), "33.7");
        assert_eq!(per_second(1_234_567.0), "1,234,567");
        assert_eq!(megabytes_per_second(251_400_000.0), "251 MB/s");
    }
}
