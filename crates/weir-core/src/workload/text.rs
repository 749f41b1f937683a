//! How the parts of a job are written by people: the same words in flags, job files and reports.

use std::fmt;
use std::str::FromStr;

use crate::units::{Bytes, Nanos};
use crate::workload::spec::{Access, Arrival, BlockSize, Data, Distribution, EngineKind, OpenSync, SyncMode};
use crate::workload::validate::SpecError;

/// Parses one of a fixed set of words; `_` and `-` are the same.
macro_rules! words {
    ($type:ident, $what:literal, $($value:ident = $word:literal $(| $alias:literal)*),+) => {
        impl $type {
            /// The words for it, in the order of its documentation.
            pub const WORDS: &'static [&'static str] = &[$($word),+];
        }

        impl FromStr for $type {
            type Err = SpecError;
            fn from_str(text: &str) -> Result<Self, SpecError> {
                let dashed = |word: &str| word.to_ascii_lowercase().replace('_', "-");
                let typed = dashed(text.trim());
                $(if [$word $(, $alias)*].iter().any(|word| dashed(word) == typed) {
                    return Ok($type::$value);
                })+
                Err(unknown($what, text, Self::WORDS))
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self { $($type::$value => $word),+ })
            }
        }
    };
}

words!(
    EngineKind,
    "engine",
    Psync = "psync" | "sync" | "pread",
    Libaio = "libaio" | "aio",
    IoUring = "io_uring" | "iouring" | "uring",
    Mmap = "mmap",
    Null = "null"
);
words!(OpenSync, "open-sync flag", None = "none", Sync = "sync" | "o-sync", Dsync = "dsync" | "o-dsync");
words!(
    SyncMode,
    "sync mode",
    Fsync = "fsync",
    Fdatasync = "fdatasync",
    RwfDsync = "rwf-dsync",
    SyncFileRange = "sync-file-range"
);
words!(Arrival, "arrival", Constant = "constant", Poisson = "poisson");

/// Says that a word is none of those known, and which is nearest.
pub fn unknown(what: &str, text: &str, known: &[&str]) -> SpecError {
    let near = nearest(text, known).map(|word| format!("did you mean `{word}`? ")).unwrap_or_default();
    SpecError::new(format!("expected a known {what}, got `{text}`"))
        .hint(format!("{near}known: {}", known.join(", ")))
}

/// The known word that is nearest to what was typed, unless none is near.
pub fn nearest<'a>(text: &str, known: &[&'a str]) -> Option<&'a str> {
    let text = text.to_ascii_lowercase().replace('_', "-");
    // Longer texts are nobody's slip, and the distance takes quadratic time.
    if text.len() > 64 {
        return None;
    }
    let (distance, word) =
        known.iter().map(|&word| (edit_distance(&text, &word.replace('_', "-")), word)).min()?;
    (distance <= 2.max(word.len() / 3)).then_some(word)
}

/// Levenshtein's distance.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// A number between separators, with a sentence that names the whole where it is none.
fn number(text: &str, whole: &str) -> Result<f64, SpecError> {
    let value = text.trim().parse::<f64>().ok().filter(|value| value.is_finite());
    value.ok_or_else(|| SpecError::new(format!("`{whole}`: `{text}` is not a number")))
}

impl Distribution {
    /// The forms it is written in.
    pub const FORMS: &'static [&'static str] =
        &["uniform", "zipf:THETA", "pareto:H", "gaussian:DEVIATION", "hot:BLOCKS:ACCESSES"];
}

impl FromStr for Distribution {
    type Err = SpecError;

    /// `uniform`, `zipf:1.2`, `pareto:0.2`, `gaussian:0.1`, `hot:0.1:0.9`; parameters may be left out.
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let lower = text.trim().to_ascii_lowercase();
        let mut parts = lower.split(':');
        let name = parts.next().unwrap_or_default();
        let numbers = parts.map(|part| number(part, text)).collect::<Result<Vec<f64>, SpecError>>()?;
        match (name, numbers.as_slice()) {
            ("uniform" | "random", []) => Ok(Distribution::Uniform),
            ("zipf" | "zipfian", []) => Ok(Distribution::Zipf(1.1)),
            ("zipf" | "zipfian", [theta]) => Ok(Distribution::Zipf(*theta)),
            ("pareto", []) => Ok(Distribution::Pareto(0.2)),
            ("pareto", [h]) => Ok(Distribution::Pareto(*h)),
            ("gaussian" | "gauss" | "normal", []) => Ok(Distribution::Gaussian(0.1)),
            ("gaussian" | "gauss" | "normal", [deviation]) => Ok(Distribution::Gaussian(*deviation)),
            ("hot", []) => Ok(Distribution::Hot { blocks: 0.1, accesses: 0.9 }),
            ("hot", [blocks, accesses]) => Ok(Distribution::Hot { blocks: *blocks, accesses: *accesses }),
            _ => Err(unknown("distribution", text, Self::FORMS)),
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distribution::Uniform => f.write_str("uniform"),
            Distribution::Zipf(theta) => write!(f, "zipf:{theta}"),
            Distribution::Pareto(h) => write!(f, "pareto:{h}"),
            Distribution::Gaussian(deviation) => write!(f, "gaussian:{deviation}"),
            Distribution::Hot { blocks, accesses } => write!(f, "hot:{blocks}:{accesses}"),
        }
    }
}

impl Access {
    /// The words for it; a distribution alone means random access.
    pub const WORDS: &'static [&'static str] = &["sequential", "random"];
}

impl FromStr for Access {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        match text.trim().to_ascii_lowercase().as_str() {
            "sequential" | "seq" => Ok(Access::Sequential),
            "random" | "rand" => Ok(Access::Random(Distribution::Uniform)),
            _ => Err(unknown("order of access", text, Self::WORDS)),
        }
    }
}

/// Order and direction in one word, as fio has it: `read`, `write`, `rw`, `randread`, `randwrite`, `randrw`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Direction {
    /// Sequential, or random without a word on the distribution.
    pub access: Access,
    /// Share of reads in percent: 100, 0, or 50 for both.
    pub read_percent: f64,
}

impl Direction {
    /// The words for it.
    pub const WORDS: &'static [&'static str] = &["read", "write", "rw", "randread", "randwrite", "randrw"];
}

impl FromStr for Direction {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let lower = text.trim().to_ascii_lowercase();
        let (access, rest) = match lower.strip_prefix("rand") {
            Some(rest) => (Access::Random(Distribution::Uniform), rest),
            None => (Access::Sequential, lower.as_str()),
        };
        let read_percent = match rest {
            "read" => 100.0,
            "write" => 0.0,
            "rw" | "readwrite" => 50.0,
            _ => return Err(unknown("mode of reading and writing", text, Self::WORDS)),
        };
        Ok(Direction { access, read_percent })
    }
}

impl FromStr for BlockSize {
    type Err = SpecError;

    /// `16k`, or a split with weights: `4k:60,16k:40`. A size without a weight weighs 1.
    fn from_str(text: &str) -> Result<Self, SpecError> {
        if !text.contains([':', ',']) {
            return Ok(BlockSize::Fixed(block_bytes(text)?));
        }
        let one = |part: &str| {
            let (size, weight) = part.split_once(':').unwrap_or((part, "1"));
            Ok((block_bytes(size)?, number(weight, text)?))
        };
        Ok(BlockSize::Split(text.split(',').map(one).collect::<Result<_, SpecError>>()?))
    }
}

fn block_bytes(text: &str) -> Result<Bytes, SpecError> {
    text.parse().map_err(|error| {
        SpecError::new(format!("block size {error}")).hint("for example 16k or 4k:60,64k:40")
    })
}

impl fmt::Display for BlockSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlockSize::Fixed(size) => f.write_str(&exact_bytes(*size)),
            BlockSize::Split(sizes) => {
                let parts: Vec<String> =
                    sizes.iter().map(|(size, weight)| format!("{}:{weight}", exact_bytes(*size))).collect();
                f.write_str(&parts.join(","))
            }
        }
    }
}

impl FromStr for Data {
    type Err = SpecError;

    /// `random`, `zero`, `compressible:75`.
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let lower = text.trim().to_ascii_lowercase();
        match lower.split_once(':') {
            None if lower == "random" => Ok(Data::Random),
            None if lower == "zero" || lower == "zeros" => Ok(Data::Zero),
            Some(("compressible", percent)) => {
                Ok(Data::Compressible(number(percent.trim_end_matches(['%', ' ']), text)?))
            }
            _ => Err(unknown("data pattern", text, &["random", "zero", "compressible:PERCENT"])),
        }
    }
}

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Data::Random => f.write_str("random"),
            Data::Zero => f.write_str("zero"),
            Data::Compressible(percent) => write!(f, "compressible:{percent}"),
        }
    }
}

/// A size as it would be typed, without rounding: `16k`, `3G`, `4095`.
pub fn exact_bytes(bytes: Bytes) -> String {
    let units = [(1u64 << 40, "T"), (1 << 30, "G"), (1 << 20, "M"), (1 << 10, "k")];
    exact(bytes.0, &units, "")
}

/// A length of time as it would be typed, without rounding: `10s`, `50us`.
pub fn exact_nanos(nanos: Nanos) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    if nanos.0 == 0 { "0s".to_string() } else { exact(nanos.0, &units, "ns") }
}

fn exact(value: u64, units: &[(u64, &str)], smallest: &str) -> String {
    match units.iter().find(|(factor, _)| value > 0 && value.is_multiple_of(*factor)) {
        Some((factor, unit)) => format!("{}{unit}", value / factor),
        None => format!("{value}{smallest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is printed parses to the same value.
    fn round_trips<T: FromStr<Err = SpecError> + fmt::Display + PartialEq + fmt::Debug>(texts: &[&str]) {
        for text in texts {
            let value: T = text.parse().unwrap();
            assert_eq!(value.to_string().parse::<T>().unwrap(), value, "{text}");
        }
    }

    #[test]
    fn words_round_trip() {
        round_trips::<EngineKind>(&["psync", "sync", "libaio", "io_uring", "IO-uring", "mmap", "null"]);
        round_trips::<OpenSync>(&["none", "sync", "O_DSYNC"]);
        round_trips::<SyncMode>(&["fsync", "fdatasync", "rwf_dsync", "sync_file_range"]);
        round_trips::<Arrival>(&["constant", "poisson"]);
        round_trips::<Distribution>(&[
            "uniform",
            "zipf:1.2",
            "zipf",
            "pareto:0.2",
            "normal:0.05",
            "hot:0.1:0.9",
        ]);
        round_trips::<BlockSize>(&["16k", "4095", "4k:60,16k:30.5,64k:9.5", "4k,8k"]);
        round_trips::<Data>(&["random", "zero", "compressible:75", "compressible:33.3%"]);
    }

    #[test]
    fn mistakes_are_named_with_what_was_meant() {
        let hint_of = |error: SpecError| format!("{error}; {}", error.hint.clone().unwrap_or_default());
        for (error, expected) in [
            ("io_urin".parse::<EngineKind>().map(drop), "did you mean `io_uring`?"),
            ("fdatasnyc".parse::<SyncMode>().map(drop), "did you mean `fdatasync`?"),
            ("zipf:x".parse::<Distribution>().map(drop), "`x` is not a number"),
            ("zipf:inf".parse::<Distribution>().map(drop), "`inf` is not a number"),
            ("hot:0.1".parse::<Distribution>().map(drop), "known: uniform, zipf:THETA"),
            ("16q".parse::<BlockSize>().map(drop), "`q` is not one of"),
            ("4k:60,:3".parse::<BlockSize>().map(drop), "does not start with a number"),
            ("randraed".parse::<Direction>().map(drop), "did you mean `randread`?"),
            ("compressible".parse::<Data>().map(drop), "known: random, zero"),
        ] {
            let text = hint_of(error.unwrap_err());
            assert!(text.contains(expected), "{text}");
        }
    }
}
