//! Values that are weir's without being listed: those a guard may write between two ends, many times a second.

use serde::{Deserialize, Serialize};
use weir_knobs::Value;

/// A band of values. Of a limit in bytes the kernel takes whole pages and rounds up; what a value has beyond the last
/// page is free, and carries a mark by which weir's values are told from those of others inside the band.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Band {
    /// Least value, in the knob's unit.
    pub low: u64,
    /// Greatest.
    pub high: u64,
    /// A value of weir's leaves [`Band::mark`] when it is divided by this.
    pub modulus: u64,
    /// See [`Band::modulus`].
    pub mark: u64,
}

/// Pages of every machine are a multiple of this.
const PAGE: u64 = 4096;
/// Odd, so that no round number has it, in whatever unit.
const MARK: u64 = 2731;

/// As many bytes as the kernel takes for the same number of whole pages as `bytes` has, with the mark.
pub(super) fn marked(bytes: u64, page_bytes: u64) -> u64 {
    let pages = (bytes / page_bytes.max(1)).max(1);
    pages.saturating_mul(page_bytes) - (PAGE - MARK)
}

/// Of memory.high the kernel keeps whole pages only: the mark is in their number.
const PAGES: u64 = 64;
/// Odd, and no multiple of a power of ten.
const MARKED_PAGES: u64 = 43;

/// The least limit in whole pages that is no lower, with the mark.
pub(super) fn marked_pages(bytes: u64, page_bytes: u64) -> u64 {
    marked_number(bytes.div_ceil(page_bytes.max(1))).saturating_mul(page_bytes)
}

/// The least number with the mark that is no less.
fn marked_number(number: u64) -> u64 {
    number.saturating_add((MARKED_PAGES + PAGES - number % PAGES) % PAGES)
}

/// Processor time in microseconds: the least quota that the kernel takes, its least and greatest period here. In a shorter one than that least
/// a tick of the scheduler counts as several.
const QUOTA_LEAST: u64 = 1000;
const PERIODS: (u64, u64) = (10_000, 1_000_000);
/// A thousand processors; far more than that the kernel refuses.
const QUOTA_MOST: u64 = 1_000_000_000;

/// `QUOTA PERIOD` for so many microseconds a second, in the shortest period that has the least quota: whoever has used it up stands still
/// until the period ends. The quota is marked.
pub(super) fn marked_quota(us_per_second: u64) -> String {
    let (least, wanted) = (marked_number(QUOTA_LEAST), us_per_second.clamp(1, QUOTA_MOST));
    let period = (least * 1_000_000 / wanted).clamp(PERIODS.0, PERIODS.1);
    let quota = marked_number((wanted * period / 1_000_000).max(QUOTA_LEAST));
    format!("{quota} {period}")
}

impl Band {
    /// Quotas, marked.
    pub fn of_quotas() -> Band {
        Band { low: QUOTA_LEAST, high: i64::MAX as u64, modulus: PAGES, mark: MARKED_PAGES }
    }

    /// Limits in whole pages, marked.
    pub fn of_pages(low: u64, high: u64, page_bytes: u64) -> Band {
        Band { low, high, modulus: PAGES * page_bytes, mark: MARKED_PAGES * page_bytes }
    }

    /// Limits in bytes, marked.
    pub fn of_bytes(low: u64, high: u64) -> Band {
        Band { low, high, modulus: PAGE, mark: MARK }
    }

    /// Every number from one to the other.
    pub fn of_numbers(low: u64, high: u64) -> Band {
        Band { low, high, modulus: 1, mark: 0 }
    }

    /// Least and greatest value of a knob that was `old`.
    pub fn ends(&self, old: &Value) -> (Value, Value) {
        let value = |number: u64| match old {
            Value::Bytes(_) | Value::Ratio(_) => Value::Bytes(number),
            _ => Value::Number(i64::try_from(number).unwrap_or(i64::MAX)),
        };
        (value(self.low), value(self.high))
    }

    /// This value and no other; `None` for what is no number.
    pub fn only(value: &Value) -> Option<Band> {
        let number = u64::try_from(value.number()?).ok()?;
        Some(Band::of_numbers(number, number))
    }

    /// Whether a value is one of weir's. A limit in percent never is: weir writes bytes.
    pub fn has(&self, value: &Value) -> bool {
        let number = match value {
            Value::Bytes(number) => *number,
            Value::Number(number) => u64::try_from(*number).unwrap_or(u64::MAX),
            Value::Word(_) => match value.quota() {
                Some((quota, _)) => quota,
                None => return false,
            },
            Value::Ratio(_) => return false,
        };
        (self.low..=self.high).contains(&number) && number.checked_rem(self.modulus) == Some(self.mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_write_inside_the_band_is_not_weirs() {
        for page in [4096, 16384, 65536] {
            let band = Band::of_bytes(marked(2_000_000, page), 4_900_000_000);
            for bytes in [2_000_000_u64, 2_097_152, 5_000_000, 15_728_640, 4_000_000_001] {
                let value = marked(bytes, page);
                assert!(band.has(&Value::Bytes(value)), "{bytes} → {value}");
                // The kernel rounds up to pages.
                assert_eq!(value.div_ceil(page), bytes / page, "{bytes} → {value}");
                assert!(!band.has(&Value::Bytes(bytes)), "{bytes}");
            }
            assert!(!band.has(&Value::Bytes(marked(1_000_000, page))) && !band.has(&Value::Ratio(MARK)));
        }
        for page in [4096, 65536] {
            let band = Band::of_pages(0, 1 << 40, page);
            for bytes in [1_u64, 16 << 20, 30_000_000, 1 << 30] {
                let value = marked_pages(bytes, page);
                assert!(
                    value >= bytes && value - bytes <= 64 * page && value.is_multiple_of(page),
                    "{bytes} → {value}"
                );
                assert!(band.has(&Value::Bytes(value)) && !band.has(&Value::Bytes(16 << 20)));
            }
        }
        let band = Band::of_numbers(10, 999_999);
        let has = |number| band.has(&Value::Number(number));
        assert!(has(10) && has(999_999) && !has(9) && !has(1_000_000) && !has(-1));
        assert!(!band.has(&Value::Word("max".into())));
    }
}
