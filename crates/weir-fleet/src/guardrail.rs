//! Whether a change did harm, by short probes of commits before and after it. Pure.

use serde::{Deserialize, Serialize};
use weir_core::units::Nanos;

use crate::figures::Commits;

/// Probes before a change and after it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Probes {
    /// Before.
    pub before: Vec<Commits>,
    /// After.
    pub after: Vec<Commits>,
}

/// Why a host's probes speak against the change; nothing where they do not.
///
/// The machine differs from probe to probe without any change. So the change is at fault only where *every* probe after it is worse by
/// more than `percent` than the *worst* probe before it. No commit at all is harm whatever `percent` is: by 100 and more there can be no
/// fewer.
pub fn harm(probes: &Probes, percent: f64) -> Option<String> {
    let (fewer, slower) = (1.0 - percent / 100.0, 1.0 + percent / 100.0);
    let rates = |all: &[Commits]| -> Vec<f64> { all.iter().map(|commits| commits.rate).collect() };
    let (before, after) = (rates(&probes.before), rates(&probes.after));
    let lowest = before.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = after.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let is_fewer = highest < lowest * fewer || (highest == 0.0 && lowest > 0.0);
    if !before.is_empty() && !after.is_empty() && is_fewer {
        return Some(format!("{highest:.0} commits/s after it, at least {lowest:.0} before"));
    }
    let is_worse = |(slowest, quickest): &(u64, u64)| *quickest as f64 > *slowest as f64 * slower;
    let (slowest, quickest) = tails(probes, |commits| commits.p95_ns).filter(is_worse)?;
    // A percentile beside a step of the distribution, as a throttle makes one, jumps by itself; a slower device moves both.
    let p99 = tails(probes, |commits| commits.p99_ns);
    p99.is_none_or(|p99| is_worse(&p99))
        .then(|| format!("p95 of commits {} after it, at most {} before", Nanos(quickest), Nanos(slowest)))
}

/// A percentile: the largest before, and the smallest after; nothing where a probe before had too few commits for it.
fn tails(probes: &Probes, of: fn(&Commits) -> Option<u64>) -> Option<(u64, u64)> {
    let before: Option<Vec<u64>> = probes.before.iter().map(of).collect();
    // One after the change that had too few does not speak for the change.
    Some((before?.into_iter().max()?, probes.after.iter().filter_map(of).min()?))
}

/// Steps of a rollout: how many hosts have the change after each.
///
/// # Errors
/// Where a word is not a number of hosts, a percentage or `all`, or a step is no larger than the one before.
pub fn steps(text: &str, hosts: usize) -> Result<Vec<usize>, String> {
    let mut steps: Vec<usize> = Vec::new();
    for word in text.split(',').map(str::trim) {
        let share = |percent: &str| {
            percent
                .parse()
                .ok()
                .filter(|percent| (0.0..=100.0).contains(percent))
                .map(|p: f64| (p / 100.0 * hosts as f64).ceil() as usize)
        };
        let count = match word.strip_suffix('%') {
            Some(percent) => share(percent),
            None if word == "all" => Some(hosts),
            None => word.parse().ok(),
        };
        let count = count
            .filter(|count| *count > 0)
            .ok_or_else(|| format!("expected steps such as 1,10%,all, got `{word}`"))?;
        let count = count.min(hosts);
        // With few hosts 10 % may be no more than the step before.
        if steps.last().is_none_or(|last| count > *last) {
            steps.push(count);
        }
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(rate: f64, p95_ms: u64) -> Commits {
        Commits { rate, p50_ns: None, p95_ns: Some(p95_ms * 1_000_000), p99_ns: None }
    }

    #[test]
    fn harm_is_what_every_probe_shows() {
        for (before, after, expected) in [
            ([(1000.0, 2), (900.0, 3)], [(950.0, 2), (1000.0, 2)], None),
            // One bad probe is the machine's.
            ([(1000.0, 2), (900.0, 3)], [(100.0, 50), (890.0, 3)], None),
            (
                [(1000.0, 2), (900.0, 3)],
                [(100.0, 2), (120.0, 2)],
                Some("120 commits/s after it, at least 900 before"),
            ),
            (
                [(1000.0, 2), (900.0, 3)],
                [(890.0, 9), (900.0, 8)],
                Some("p95 of commits 8.00 ms after it, at most 3.00 ms before"),
            ),
            // A machine that was bad before is not the change's fault.
            ([(1000.0, 2), (100.0, 30)], [(120.0, 30), (110.0, 30)], None),
        ] {
            let probes = Probes {
                before: before.map(|(r, p)| probe(r, p)).to_vec(),
                after: after.map(|(r, p)| probe(r, p)).to_vec(),
            };
            assert_eq!(harm(&probes, 20.0).as_deref(), expected, "{probes:?}");
        }
        assert_eq!(harm(&Probes::default(), 20.0), None);
        // It got worse from probe to probe, until there were no commits for a percentile.
        let worse = Probes {
            before: vec![probe(1000.0, 2), probe(1000.0, 2)],
            after: vec![probe(950.0, 9), probe(950.0, 9), Commits::default()],
        };
        assert_eq!(
            harm(&worse, 20.0).as_deref(),
            Some("p95 of commits 9.00 ms after it, at most 2.00 ms before")
        );
        // The throttle holds 5 % of commits for 26 ms, with the change and without it.
        let step = |p95_ms, p99_ms: u64| Commits { p99_ns: Some(p99_ms * 1_000_000), ..probe(197.0, p95_ms) };
        let at_a_step = |p99_ms| Probes { before: vec![step(3, 26); 2], after: vec![step(26, p99_ms); 6] };
        assert_eq!(harm(&at_a_step(27), 20.0), None);
        assert!(harm(&at_a_step(52), 20.0).is_some(), "the whole tail is slower");
        let few =
            Probes { before: vec![probe(62.0, 2)], after: vec![Commits { p95_ns: None, ..probe(58.0, 2) }] };
        assert_eq!(harm(&few, 20.0), None, "too few for a percentile, and as many as before");
        let of_rates = |before, after, percent| {
            let one = |rate| vec![Commits { rate, ..Commits::default() }];
            harm(&Probes { before: one(before), after: one(after) }, percent).is_some()
        };
        for (after, percent, expected) in [
            (830.0, 20.0, false),
            (801.0, 20.0, false),
            (799.0, 20.0, true),
            (999.0, 0.0, true),
            (1000.0, 0.0, false),
            (1.0, 99.0, true),
            (1.0, 100.0, false),
            (1.0, 2000.0, false),
            // No commit at all.
            (0.0, 20.0, true),
            (0.0, 100.0, true),
            (0.0, 2000.0, true),
        ] {
            assert_eq!(of_rates(1000.0, after, percent), expected, "{after} by {percent} %");
        }
        assert!(!of_rates(0.0, 0.0, 20.0), "as before");
    }

    #[test]
    fn steps_grow() {
        for (text, hosts, expected) in [
            ("1,10%,all", 40, &[1, 4, 40][..]),
            ("1,10%,all", 5, &[1, 5]),
            ("all", 3, &[3]),
            ("2,1,50%", 10, &[2, 5]),
            ("9", 3, &[3]),
        ] {
            assert_eq!(steps(text, hosts).unwrap(), expected, "{text}");
        }
        for bad in ["", "0", "x", "101%", "-1", "1,,2", "NaN%"] {
            assert!(steps(bad, 10).is_err(), "{bad}");
        }
    }
}
