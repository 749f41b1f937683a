//! Names of files: what they hold and of when, in UTC, so that a listing is in order of time. Which of them go.

use std::fmt;

use crate::tables::{Table, named};

const JOURNAL: &str = "open";
const ASIDE: &str = "aside";

/// A file of the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Name {
    /// `open-20261125T031000Z.journal`.
    Journal {
        /// When it begins, Unix time, s.
        begin_s: i64,
    },
    /// `aside-20261125T031000Z.journal`: one that no recorder could close.
    Aside {
        /// When it begins, Unix time, s.
        begin_s: i64,
    },
    /// `stages-20261125T031000Z-20261125T041000Z.parquet`.
    Table {
        /// Whose rows.
        table: &'static Table,
        /// When it begins, Unix time, s.
        begin_s: i64,
        /// When it ends.
        end_s: i64,
    },
}

impl Name {
    /// What a name says; `None` of a file that is not the recorder's.
    pub fn parse(name: &str) -> Option<Name> {
        if let Some(stem) = name.strip_suffix(".journal") {
            let (kind, begin) = stem.split_once('-')?;
            let begin_s = time(begin)?;
            return match kind {
                JOURNAL => Some(Name::Journal { begin_s }),
                ASIDE => Some(Name::Aside { begin_s }),
                _ => None,
            };
        }
        let mut parts = name.strip_suffix(".parquet")?.split('-');
        let (table, begin, end) = (parts.next()?, parts.next()?, parts.next()?);
        let name = Name::Table { table: named(table)?, begin_s: time(begin)?, end_s: time(end)? };
        parts.next().is_none().then_some(name)
    }

    /// When it begins, Unix time, s.
    pub fn begin_s(&self) -> i64 {
        match self {
            Name::Journal { begin_s } | Name::Aside { begin_s } | Name::Table { begin_s, .. } => *begin_s,
        }
    }

    /// When it ends; an open one has not, and one that was set aside does not say.
    pub fn end_s(&self) -> Option<i64> {
        match self {
            Name::Journal { .. } => None,
            Name::Aside { begin_s } => Some(*begin_s),
            Name::Table { end_s, .. } => Some(*end_s),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Journal { begin_s } => write!(f, "{JOURNAL}-{}.journal", stamp(*begin_s)),
            Name::Aside { begin_s } => write!(f, "{ASIDE}-{}.journal", stamp(*begin_s)),
            Name::Table { table, begin_s, end_s } => {
                write!(f, "{}-{}-{}.parquet", table.name, stamp(*begin_s), stamp(*end_s))
            }
        }
    }
}

/// Files to remove, oldest first: those that ended before `oldest_s`, and as many as are too much for `most_bytes`. All files
/// of a segment go together; the journal stays.
pub fn too_many(files: &[(Name, u64)], oldest_s: i64, most_bytes: u64) -> Vec<Name> {
    let mut tables: Vec<(&Name, u64)> =
        files.iter().filter(|(name, _)| name.end_s().is_some()).map(|(name, bytes)| (name, *bytes)).collect();
    tables.sort_by_key(|(name, _)| (name.begin_s(), name.end_s()));
    let mut held: u64 = files.iter().map(|(_, bytes)| bytes).sum();
    let mut gone: Vec<Name> = Vec::new();
    for (name, bytes) in tables {
        let with_its_segment = gone.last().is_some_and(|last| last.begin_s() == name.begin_s());
        let is_old = name.end_s().is_some_and(|end_s| end_s < oldest_s);
        // One that ends in the future, by a clock that was wrong, is not old; those after it may be.
        if is_old || held > most_bytes || with_its_segment {
            held = held.saturating_sub(bytes);
            gone.push(name.clone());
        }
    }
    gone
}

/// Days since 1970 of a date of the proleptic Gregorian calendar (H. Hinnant, chrono-compatible low-level date algorithms).
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The inverse.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days - era * 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, of_year - (153 * shifted + 2) / 5 + 1)
}

/// `20261125T031000Z`.
pub fn stamp(unix_s: i64) -> String {
    let ((year, month, day), of_day) = (date(unix_s.div_euclid(86_400)), unix_s.rem_euclid(86_400));
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// The inverse; `None` of what is no time.
pub fn time(stamp: &str) -> Option<i64> {
    let bytes = stamp.as_bytes();
    if bytes.len() != 16 || bytes[8] != b'T' || bytes[15] != b'Z' {
        return None;
    }
    let number = |from: usize, to: usize| {
        let digits = stamp.get(from..to).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        digits?.parse::<i64>().ok()
    };
    let days = days(number(0, 4)?, number(4, 6)?, number(6, 8)?);
    let unix_s = days * 86_400 + number(9, 11)? * 3600 + number(11, 13)? * 60 + number(13, 15)?;
    // What is no date, such as a 30th of February, has another stamp.
    (super::segment::stamp(unix_s) == stamp).then_some(unix_s)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tables::{Row, Stage, Sync};

    proptest! {
        #[test]
        fn names_come_back(begin_s in 0_i64..250_000_000_000, length_s in 0_i64..100_000) {
            let end_s = begin_s + length_s;
            let table = Name::Table { table: Stage::TABLE, begin_s, end_s };
            for name in [Name::Journal { begin_s }, Name::Aside { begin_s }, table] {
                prop_assert_eq!(Name::parse(&name.to_string()), Some(name));
            }
        }
    }

    #[test]
    fn names_say_the_time_and_others_are_refused() {
        let name = Name::Table { table: Sync::TABLE, begin_s: 1_795_576_200, end_s: 1_795_579_800 };
        assert_eq!(name.to_string(), "syncs-20261125T031000Z-20261125T041000Z.parquet");
        for other in [
            "syncs.parquet",
            "syncs-20261125T031000Z.parquet",
            "other-20261125T031000Z-20261125T041000Z.parquet",
            "syncs-20260230T031000Z-20261125T041000Z.parquet",
            "syncs-20261125T031000Z-20261125T041000Z-1.parquet",
            "open-20261125T03100.journal",
            ".open-20261125T031000Z.journal",
            "open-+0261125T031000Z.journal",
            "",
        ] {
            assert_eq!(Name::parse(other), None, "{other}");
        }
    }

    #[test]
    fn the_oldest_go_whole_segments_and_never_the_journal() {
        let file = |table, begin_s| Name::Table { table, begin_s, end_s: begin_s + 10 };
        let [a1, a2] = [Stage::TABLE, Sync::TABLE].map(|table| file(table, 100));
        let [b1, b2] = [Stage::TABLE, Sync::TABLE].map(|table| file(table, 110));
        let files = [
            (Name::Journal { begin_s: 50 }, 1000),
            (b1.clone(), 10),
            (a1.clone(), 10),
            (b2.clone(), 10),
            (a2.clone(), 10),
        ];
        assert_eq!(too_many(&files, 0, 1040), []);
        assert_eq!(too_many(&files, 111, 1040), [a1.clone(), a2.clone()]);
        // One byte too much takes the whole segment.
        assert_eq!(too_many(&files, 0, 1039), [a1.clone(), a2.clone()]);
        assert_eq!(too_many(&files, 0, 0), [a1.clone(), a2.clone(), b1.clone(), b2.clone()]);
        // The clock was years ahead as one was closed.
        let ahead = Name::Table { table: Stage::TABLE, begin_s: 90, end_s: i64::MAX };
        let files = [&files[..], &[(ahead.clone(), 10)]].concat();
        assert_eq!(too_many(&files, 111, u64::MAX), [a1, a2]);
        assert_eq!(too_many(&files, 0, 1040), [ahead]);
    }
}
