//! Questions: each a file of SQL in the dialect that DataFusion, DuckDB, Sail and Spark read alike. Integers are BIGINT, names are lower
//! case, no quantile is approximate, an order says where it puts equal values. Times and limits are filled in as numbers, never names.

/// What can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// Which devices and hosts are slower than their peers at equal load.
    Slow,
    /// Latency by stage, its spread, and the slowest.
    Latency,
    /// Which facts differ from those of most peers.
    Drift,
    /// What is faster or slower since a time.
    Change,
    /// Which devices are near the load at which their model slows down.
    Capacity,
    /// Whose tails grow.
    Tails,
    /// Percentiles by window of time beside those of peers, for the pages of others.
    Windows,
    /// The 99th percentile at each load beside that of peers, likewise.
    Loads,
    /// Which devices and hosts there are to compare, and with how many.
    Peers,
}

/// A named part of a question whose rows follow each from rows that have one value in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piecewise {
    /// The part's name.
    pub name: &'static str,
    /// The column, of the tables that it asks.
    pub by: &'static str,
}

/// What is filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameters {
    /// Rows from here on, s since 1970.
    pub from_s: i64,
    /// Rows before this.
    pub until_s: i64,
    /// Between them, for [`Question::Change`].
    pub at_s: i64,
    /// Devices of one kind that it takes to say what is usual.
    pub peers: u32,
}

const HOUR_S: i64 = 3_600;

/// Windows into which a time is divided, about.
const WINDOWS: i64 = 12;

/// The same for what is drawn over time.
const SLOTS: i64 = 24;

/// Whole hours, rounded up, since rows are of hours.
fn hours(span_s: i64) -> i64 {
    (span_s + HOUR_S - 1) / HOUR_S
}

impl Parameters {
    fn span_s(&self) -> i64 {
        (self.until_s - self.from_s).max(HOUR_S)
    }

    /// At least six hours, so that a window has requests enough.
    fn window_s(&self) -> i64 {
        hours(self.span_s() / WINDOWS).max(6) * HOUR_S
    }

    /// The length of a window of [`Question::Windows`], s; windows begin at its multiples.
    pub fn slot_s(&self) -> i64 {
        hours(self.span_s() / SLOTS).max(1) * HOUR_S
    }
}

impl Question {
    /// All of them.
    pub const ALL: [Question; 9] = [
        Question::Slow,
        Question::Latency,
        Question::Drift,
        Question::Change,
        Question::Capacity,
        Question::Tails,
        Question::Windows,
        Question::Loads,
        Question::Peers,
    ];

    /// Its name, which is its file's.
    pub fn name(self) -> &'static str {
        match self {
            Question::Slow => "slow",
            Question::Latency => "latency",
            Question::Drift => "drift",
            Question::Change => "change",
            Question::Capacity => "capacity",
            Question::Tails => "tails",
            Question::Windows => "windows",
            Question::Loads => "loads",
            Question::Peers => "peers",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Question::Slow => include_str!("slow.sql"),
            Question::Latency => include_str!("latency.sql"),
            Question::Drift => include_str!("drift.sql"),
            Question::Change => include_str!("change.sql"),
            Question::Capacity => include_str!("capacity.sql"),
            Question::Tails => include_str!("tails.sql"),
            Question::Windows => include_str!("windows.sql"),
            Question::Loads => include_str!("loads.sql"),
            Question::Peers => include_str!("peers.sql"),
        }
    }

    /// The named parts that an engine may ask piece by piece, each of what the one before has left.
    pub fn piecewise(self) -> &'static [Piecewise] {
        const fn part(name: &'static str, by: &'static str) -> Piecewise {
            Piecewise { name, by }
        }
        match self {
            Question::Slow => const { &[part("g", "host"), part("z", "win")] },
            Question::Windows => const { &[part("g", "host"), part("w", "win")] },
            Question::Loads => const { &[part("g", "host"), part("m", "load")] },
            Question::Latency => const { &[part("q", "host")] },
            Question::Change => const { &[part("x", "host")] },
            Question::Tails => const { &[part("t", "host")] },
            Question::Capacity => const { &[part("b", "host")] },
            Question::Drift | Question::Peers => &[],
        }
    }

    /// The text without comments: it may stand on a command line, where `--` begins an option.
    fn code(self) -> String {
        let parts = [("{owners}", include_str!("owners.sql")), ("{binned}", include_str!("binned.sql"))];
        let text =
            parts.into_iter().fold(self.text().to_string(), |text, (name, part)| text.replace(name, part));
        let lines = text.lines().filter(|line| !line.starts_with("--") && !line.is_empty());
        lines.flat_map(|line| [line, "\n"]).collect()
    }

    /// The SQL.
    pub fn sql(self, with: &Parameters) -> String {
        let span_s = with.span_s();
        let filled = [
            ("{t0}", with.from_s),
            ("{t1}", with.until_s),
            ("{at}", with.at_s),
            ("{peers}", i64::from(with.peers)),
            ("{window}", if self == Question::Windows { with.slot_s() } else { with.window_s() }),
            ("{third}", hours(span_s / 3) * HOUR_S),
        ];
        filled.into_iter().fold(self.code(), |sql, (name, value)| sql.replace(name, &value.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_filled_in() {
        let with = Parameters { from_s: 0, until_s: 86_400 * 3, at_s: 86_400, peers: 5 };
        for question in Question::ALL {
            let sql = question.sql(&with);
            assert!(!sql.contains(['{', '}']), "{}", question.name());
        }
        assert!(Question::Slow.sql(&with).contains("ts - ts % 21600"));
        let month = Parameters { until_s: 86_400 * 30, ..with };
        assert!(Question::Slow.sql(&month).contains("ts - ts % 216000"));
        assert_eq!((with.slot_s(), month.slot_s()), (3 * HOUR_S, 30 * HOUR_S));
    }

    /// What engines read differently (`docs/reference/fleet.md`).
    #[test]
    fn only_what_means_the_same_everywhere_is_said() {
        for question in Question::ALL {
            let code = question.code();
            let words: Vec<&str> = code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
            for word in
                ["QUALIFY", "DIV", "ANTI", "RECURSIVE", "UNNEST", "EXPLODE", "TIMESTAMP", "DATE_BIN", "LOG"]
            {
                assert!(
                    !words.iter().any(|other| other.eq_ignore_ascii_case(word)),
                    "{}: {word}",
                    question.name()
                );
            }
            // A slash between integers, a name in double quotes, a decimal number.
            assert!(!code.contains('"') && !code.contains("approx_"), "{}", question.name());
            let decimal = |pair: &[u8]| pair[0].is_ascii_digit() && pair[1] == b'.';
            assert!(!code.as_bytes().windows(2).any(decimal), "{}", question.name());
        }
    }
}
