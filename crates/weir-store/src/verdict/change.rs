//! Whether things are better or worse since a time: by the number of devices that got better and worse (the sign test of Arbuthnot,
//! 1710), which one device that went wild does not decide.

use serde::{Deserialize, Serialize};

/// What of, and how it changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// read, write; sync for whole syncs.
    pub what: String,
    /// Devices that can be compared; hosts for syncs.
    pub devices: i64,
    /// Those whose 99th percentile fell by more than a fifth: more than a bucket is wide.
    pub better: i64,
    /// Those whose rose by more than a quarter.
    pub worse: i64,
    /// The median of after over before.
    pub ratio: f64,
    /// The worst of that.
    pub worst_ratio: f64,
    /// Whose that is.
    pub worst_host: String,
    /// Whose that is.
    pub worst_device: String,
}

/// The limit below which chance is not believed.
const P_MAX: f64 = 0.05;

/// `better`, `worse`, or `no change that could not be chance`.
pub fn change(row: &Change) -> &'static str {
    let (better, worse) = (row.better.max(0) as u64, row.worse.max(0) as u64);
    if two_sided(better.min(worse), better + worse) > P_MAX {
        "no change that could not be chance"
    } else if better > worse {
        "better"
    } else {
        "worse"
    }
}

/// The probability that of so many fair coins at most so many, or at least all but so many, fall on one side.
fn two_sided(fewer: u64, of: u64) -> f64 {
    if of == 0 {
        return 1.0;
    }
    // In logarithms: 2^-of is zero beyond a thousand devices.
    let mut log_term = -(of as f64) * std::f64::consts::LN_2;
    let mut sum = log_term.exp();
    for k in 0..fewer {
        log_term += ((of - k) as f64 / (k + 1) as f64).ln();
        sum += log_term.exp();
    }
    (2.0 * sum).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sign_test_is_that_of_tables() {
        for (fewer, of, expected) in
            [(0, 5, 0.0625), (0, 6, 0.03125), (1, 8, 0.0703), (5, 10, 1.0), (0, 0, 1.0)]
        {
            assert!((two_sided(fewer, of) - expected).abs() < 1e-4, "{fewer} of {of}");
        }
        assert!(two_sided(4_000, 10_000) < 1e-6);
    }

    #[test]
    fn many_decide_and_few_do_not() {
        let row = |better, worse| Change {
            what: "sync".into(),
            devices: 20,
            better,
            worse,
            ratio: 1.0,
            worst_ratio: 9.0,
            worst_host: "db1".into(),
            worst_device: String::new(),
        };
        assert_eq!(change(&row(12, 1)), "better");
        assert_eq!(change(&row(1, 12)), "worse");
        assert_eq!(change(&row(0, 1)), "no change that could not be chance");
    }
}
