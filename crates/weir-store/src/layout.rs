//! Where files lie: `kind=TABLE/date=DATE/host=HOST/NAME.parquet`, as tools for tables read partitions. Every column stands in
//! the files, too: a reader that guesses types of folders' names is told to leave them alone.

use weir_archive::Table;
use weir_archive::segment;

use crate::tables::TABLES;

/// Stands for the host of files that hold many; no host has this name, since none begins with a point.
pub const MANY: &str = ".many";

/// Rows of a file after which the next of its week begins.
pub const PART_ROWS: usize = 4 << 20;

const DAY_S: i64 = 86_400;

/// A file's place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Name of the table.
    pub kind: String,
    /// The day on which it begins, s since 1970.
    pub day_s: i64,
    /// The host; [`MANY`] for many, and then the rest of the week lies there, too.
    pub host: String,
}

impl Place {
    /// Of rows of a time.
    pub fn of(table: &Table, at_s: i64, host: &str) -> Place {
        Place { kind: table.name.to_string(), day_s: at_s - at_s.rem_euclid(DAY_S), host: host.to_string() }
    }

    /// The folder.
    pub fn folder(&self) -> String {
        format!("kind={}/date={}/host={}", self.kind, date(self.day_s), self.host)
    }

    /// What the names of three folders say.
    pub fn parse(kind: &str, day: &str, host: &str) -> Option<Place> {
        let kind = kind.strip_prefix("kind=").filter(|kind| table(kind).is_some())?;
        Some(Place {
            kind: kind.to_string(),
            day_s: day_s(day.strip_prefix("date=")?)?,
            host: host.strip_prefix("host=").filter(|host| !host.is_empty())?.to_string(),
        })
    }

    /// When everything in it has ended, s since 1970.
    pub fn end_s(&self) -> i64 {
        self.day_s + if self.host == MANY { 7 * DAY_S } else { DAY_S }
    }
}

/// A table by its name.
pub fn table(name: &str) -> Option<&'static Table> {
    TABLES.into_iter().find(|table| table.name == name)
}

/// The Monday on which a day's week begins. 1 January 1970 was a Thursday.
pub fn monday_s(day_s: i64) -> i64 {
    let day = day_s.div_euclid(DAY_S);
    (day - (day + 3).rem_euclid(7)) * DAY_S
}

/// `2026-11-25`.
pub fn date(at_s: i64) -> String {
    let stamp = segment::stamp(at_s);
    format!("{}-{}-{}", &stamp[..4], &stamp[4..6], &stamp[6..8])
}

/// `2026-11-25 14:00`, UTC.
pub fn minute(at_s: i64) -> String {
    format!("{} {:02}:{:02}", date(at_s), at_s.rem_euclid(DAY_S) / 3_600, at_s.rem_euclid(3_600) / 60)
}

/// The inverse of [`date`]; `None` of what is no date.
pub fn day_s(date: &str) -> Option<i64> {
    let digits: String = date.split('-').collect();
    let at = segment::time(&format!("{digits}T000000Z"))?;
    (self::date(at) == date).then_some(at)
}

#[cfg(test)]
mod tests {
    use weir_archive::Row;

    use super::*;
    use crate::tables::Stage;

    #[test]
    fn folders_say_what_lies_in_them() {
        let place = Place::of(Stage::TABLE, 1_795_576_200, "db1");
        assert_eq!(place.folder(), "kind=stages/date=2026-11-25/host=db1");
        let parts: Vec<String> = place.folder().split('/').map(String::from).collect();
        assert_eq!(Place::parse(&parts[0], &parts[1], &parts[2]), Some(place.clone()));
        assert_eq!(
            (date(monday_s(place.day_s)).as_str(), monday_s(monday_s(place.day_s))),
            ("2026-11-23", monday_s(place.day_s))
        );
        for (kind, day, host) in [
            ("kind=doctor", "date=2026-11-25", "host=db1"),
            ("kind=stages", "date=2026-02-30", "host=db1"),
            ("kind=stages", "date=20261125", "host=db1"),
            ("kind=stages", "date=2026-11-25", "host="),
            ("stages", "2026-11-25", "db1"),
        ] {
            assert_eq!(Place::parse(kind, day, host), None, "{kind} {day} {host}");
        }
        let week = Place { host: MANY.into(), ..place.clone() };
        assert_eq!(week.end_s() - place.end_s(), 6 * DAY_S);
    }
}
