//! How fio writes numbers, sizes and times.

use crate::units::{Bytes, Nanos};
use crate::workload::spec::{BlockSize, Distribution};

/// The number in front and the suffix after it, in lower case.
fn split(text: &str) -> Option<(f64, String)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number = text[..end].parse::<f64>().ok()?;
    Some((number, text[end..].trim().to_ascii_lowercase()))
}

/// A size. With fio's default `kb_base=1024`, k, M, G … are powers of 1024 and Ki, Mi, Gi … are powers of 1000: the
/// reverse of the standard, kept for old job files.
pub fn bytes(text: &str) -> Option<Bytes> {
    let (number, suffix) = split(text)?;
    let suffix = suffix.strip_suffix('b').unwrap_or(&suffix);
    let (letter, base) = match suffix.strip_suffix('i') {
        Some(letter) => (letter, 1000f64),
        None => (suffix, 1024f64),
    };
    let power = match letter {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return None,
    };
    let value = number * base.powi(power);
    (value < 2f64.powi(63)).then_some(Bytes(value as u64))
}

/// A time; seconds without a unit.
pub fn time(text: &str) -> Option<Nanos> {
    let (number, suffix) = split(text)?;
    let seconds = match suffix.as_str() {
        "us" | "usec" => 1e-6,
        "ms" | "msec" => 1e-3,
        "" | "s" | "sec" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    let ns = (number * seconds * 1e9).round();
    (ns < 2f64.powi(63)).then_some(Nanos(ns as u64))
}

/// A whole number.
pub fn whole(text: &str) -> Option<u64> {
    let (number, suffix) = split(text)?;
    match suffix.as_str() {
        "" => text.trim().parse().ok(),
        _ => bytes(text).filter(|_| number.fract() == 0.0).map(|bytes| bytes.0),
    }
}

/// A switch.
pub fn flag(text: &str) -> Option<bool> {
    match text.trim() {
        "1" | "true" => Some(true),
        "0" | "false" => Some(false),
        _ => None,
    }
}

/// Parts separated by commas that fio applies to reads, writes and trims, where reads and writes have the same: a part
/// that is left out is as the one before, an empty one is fio's default. No job that is taken trims.
pub fn same_for_both(text: &str) -> Option<&str> {
    let mut parts = text.split(',').map(str::trim);
    let reads = parts.next()?;
    parts.next().is_none_or(|writes| writes == reads).then_some(reads)
}

/// `bssplit`: sizes with percentages; those without one share what is left.
pub fn block_split(text: &str) -> Option<BlockSize> {
    let mut sizes = Vec::new();
    for part in same_for_both(text)?.split(':') {
        let (size, percent) = part.split_once('/').unwrap_or((part, ""));
        let percent = if percent.is_empty() { None } else { Some(percent.trim().parse::<f64>().ok()?) };
        sizes.push((bytes(size)?, percent));
    }
    let given: f64 = sizes.iter().filter_map(|(_, percent)| *percent).sum();
    let open = sizes.iter().filter(|(_, percent)| percent.is_none()).count();
    let rest = (100.0 - given).max(0.0) / open.max(1) as f64;
    let weighted = sizes.into_iter().map(|(size, percent)| (size, percent.unwrap_or(rest)));
    // fio never draws a size of 0 %.
    Some(BlockSize::Split(weighted.filter(|&(_, percent)| percent > 0.0).collect()))
}

/// `random_distribution`.
pub fn distribution(text: &str) -> Option<Distribution> {
    let (name, parameter) = text.split_once(':').unwrap_or((text, ""));
    let parameter = parameter.trim();
    let number = || parameter.parse::<f64>().ok();
    match (name.trim(), parameter.is_empty()) {
        ("random", true) => Some(Distribution::Uniform),
        ("zipf", true) => Some(Distribution::Zipf(1.1)),
        ("zipf", false) => number().map(Distribution::Zipf),
        ("pareto", true) => Some(Distribution::Pareto(0.2)),
        ("pareto", false) => number().map(Distribution::Pareto),
        ("normal", true) => Some(Distribution::Gaussian(gaussian_share(0.0))),
        ("normal", false) => number().map(|deviation| Distribution::Gaussian(gaussian_share(deviation))),
        _ => None,
    }
}

/// fio's `normal:D` is the mean of 12 uniform numbers (standard deviation 1/12 of the range) plus a uniform one over
/// min(100/D, 1/2) of the range; this is the standard deviation of the sum, as a share of the range.
fn gaussian_share(deviation: f64) -> f64 {
    let width = if deviation > 0.0 { (100.0 / deviation).min(0.5) } else { 0.0 };
    (1.0f64 / 144.0 + width * width / 12.0).sqrt()
}
