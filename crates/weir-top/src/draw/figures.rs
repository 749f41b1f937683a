//! Figures in few characters.

use weir_core::units::{grouped, significant};

/// Bars of a sparkline, from nothing to the most.
const SPARKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A duration: `142 µs`, `1.23 ms`.
pub fn duration(ns: f64) -> String {
    match ns {
        ns if ns < 999.5 => format!("{ns:.0} ns"),
        ns if ns < 999_500.0 => format!("{} µs", significant(ns / 1e3)),
        ns if ns < 999_500_000.0 => format!("{} ms", significant(ns / 1e6)),
        ns => format!("{} s", significant(ns / 1e9)),
    }
}

/// The same, where it may be unknown.
pub fn duration_of(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".to_string(), |ns| duration(ns as f64))
}

/// Something by the second; nothing where there was none.
pub fn rate(rate: f64) -> String {
    match rate {
        rate if rate < 0.005 => "-".to_string(),
        rate if rate < 999.5 => significant(rate),
        rate if rate < 99_999.5 => grouped(rate.round() as u64),
        rate => format!("{}k", grouped((rate / 1e3).round() as u64)),
    }
}

/// Bytes by the second, in MB/s.
pub fn megabytes(bytes_per_second: f64) -> String {
    let megabytes = bytes_per_second / 1e6;
    if megabytes < 0.005 { "-".to_string() } else { significant(megabytes) }
}

/// A share in percent.
pub fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Bytes of memory: `310 MiB`, `1.25 GiB`.
pub fn memory(bytes: u64) -> String {
    const MIB: f64 = (1 << 20) as f64;
    match bytes as f64 / MIB {
        mib if mib < 0.5 => "0 MiB".to_string(),
        mib if mib < 999.5 => format!("{mib:.0} MiB"),
        mib => format!("{} GiB", significant(mib / 1024.0)),
    }
}

/// Values as bars from 0 to the largest; one that is absent is a gap.
pub fn spark(values: &[Option<f64>]) -> String {
    let most = values.iter().flatten().fold(0.0, |most: f64, value| most.max(*value));
    let bar = |value: &Option<f64>| match value {
        Some(value) if most > 0.0 => SPARKS[((value / most * 7.0).round() as usize).min(7)],
        Some(_) => SPARKS[0],
        None => ' ',
    };
    values.iter().map(bar).collect()
}

/// A share as a bar of so many cells.
pub fn bar(share: f64, cells: usize) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = (share.clamp(0.0, 1.0) * cells as f64 * 8.0).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(EIGHTHS[eighths % 8]);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_and_have_units() {
        let durations = [(7.0, "7 ns"), (142_300.0, "142 µs"), (999_600.0, "1.00 ms"), (2e9, "2.00 s")];
        durations.into_iter().for_each(|(ns, text)| assert_eq!(duration(ns), text));
        for (value, text) in [(0.0, "-"), (0.5, "0.50"), (12_345.0, "12,345"), (1_234_567.0, "1,235k")] {
            assert_eq!(rate(value), text);
        }
        assert_eq!([memory(1 << 10), memory(310 << 20), memory(5 << 30)], ["0 MiB", "310 MiB", "5.00 GiB"]);
        assert_eq!(spark(&[Some(0.0), None, Some(7.0), Some(3.0)]), "▁ █▄");
        assert_eq!([bar(0.5, 4), bar(0.55, 4), bar(7.0, 2)], ["██", "██▎", "██"]);
    }
}
