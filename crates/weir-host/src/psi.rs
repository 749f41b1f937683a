//! Pressure stall information, Documentation/accounting/psi.rst.

use std::collections::BTreeMap;

use weir_core::target::Pressure;

use crate::error::BadLine;
use crate::tree::{Tree, noted};

/// Pressure by resource; empty where the kernel keeps none.
pub(crate) fn read(tree: &Tree, notes: &mut Vec<String>) -> BTreeMap<String, Pressure> {
    let mut all = BTreeMap::new();
    for resource in ["cpu", "io", "memory"] {
        if let Some(pressure) = noted(tree.parsed(&format!("/proc/pressure/{resource}"), parse), notes) {
            all.insert(resource.to_string(), pressure);
        }
    }
    all
}

/// `some avg10=0.20 avg60=0.62 avg300=0.81 total=13265805`, and the same for `full` (missing for cpu in old kernels).
pub(crate) fn parse(text: &str) -> Result<Pressure, BadLine> {
    let mut pressure = Pressure::default();
    for (index, line) in text.lines().enumerate() {
        let bad = |expected: &str| BadLine::new(index + 1, expected, line);
        let field = |key: &str| line.split(' ').find_map(|f| f.strip_prefix(key)?.strip_prefix('='));
        let avg10 = field("avg10").and_then(|v| v.parse().ok()).ok_or_else(|| bad("avg10=PERCENT"))?;
        let total = field("total").and_then(|v| v.parse().ok()).ok_or_else(|| bad("total=MICROSECONDS"))?;
        match line.split(' ').next() {
            Some("some") => (pressure.some_avg10_percent, pressure.some_total_us) = (avg10, total),
            Some("full") => (pressure.full_avg10_percent, pressure.full_total_us) = (avg10, total),
            _ => return Err(bad("`some` or `full`")),
        }
    }
    Ok(pressure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_parses_and_says_what_is_wrong() {
        let text = "some avg10=12.50 avg60=0.62 avg300=0.81 total=13265805\nfull avg10=1.00 avg60=0.00 avg300=0.00 total=7\n";
        let pressure = parse(text).unwrap();
        assert_eq!((pressure.some_avg10_percent, pressure.full_total_us), (12.5, 7));
        assert_eq!(parse("some avg10=0.00 avg60=0.00 avg300=0.00 total=9").unwrap().some_total_us, 9);
        for (bad, item) in [
            ("some avg60=0.1 total=1", "avg10"),
            ("full avg10=1 total=x", "total"),
            ("half avg10=1 total=1", "some"),
        ] {
            assert!(parse(bad).unwrap_err().item.contains(item), "{bad}");
        }
    }
}
