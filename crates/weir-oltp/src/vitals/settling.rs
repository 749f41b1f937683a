//! When a server's flushing has come to its own pace: what somebody before has left dirty is written, and a log that fills
//! soon is full.

use std::collections::BTreeMap;

use super::{Snapshot, dirty};

/// So many looks in a row make a window.
const WINDOW: usize = 5;
/// Shares of the pool or the log that lie this near to each other are alike. At a look a second, what moves slower than this
/// would take more than a minute from one end to the other: nobody waits for it.
const ALIKE: f64 = 0.05;

/// Looks at a server under a load that stays as it is, a second apart.
#[derive(Debug, Clone, Default)]
pub struct Settling {
    /// Dirty share of the pool; age of the checkpoint as a share of what the log holds.
    gauges: [Vec<f64>; 2],
    looks: usize,
}

impl Settling {
    /// Adds a look; whether the server has settled. One that shows neither of the two counts as settled after as many looks
    /// as any needs.
    pub fn look(&mut self, snapshot: &Snapshot, variables: &BTreeMap<String, String>) -> bool {
        let now = [dirty(snapshot), snapshot.checkpoint_age(variables)];
        for (gauge, value) in self.gauges.iter_mut().zip(now) {
            gauge.extend(value);
        }
        self.looks += 1;
        self.looks >= 2 * WINDOW && self.gauges.iter().all(|gauge| level(gauge))
    }
}

/// Whether the mean of the last window lies where the window before it went up and down.
fn level(gauge: &[f64]) -> bool {
    let Some(start) = gauge.len().checked_sub(2 * WINDOW) else { return true };
    let (before, last) = gauge[start..].split_at(WINDOW);
    let mean = last.iter().sum::<f64>() / WINDOW as f64;
    let least = before.iter().copied().fold(f64::INFINITY, f64::min);
    let most = before.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (least - ALIKE..=most + ALIKE).contains(&mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After how many looks a server has settled whose dirty share and checkpoint age go so with time.
    fn settled(dirty: impl Fn(f64) -> f64, age: impl Fn(f64) -> f64) -> Option<usize> {
        let mut settling = Settling::default();
        (0..60).find(|second| {
            let t = *second as f64;
            let values = [
                ("Innodb_buffer_pool_pages_total", 1000.0),
                ("Innodb_buffer_pool_pages_dirty", 1000.0 * dirty(t)),
                ("Innodb_checkpoint_age", 8e7 * age(t)),
                ("Innodb_checkpoint_max_age", 8e7),
            ];
            let snapshot = Snapshot(values.map(|(name, value)| (name.to_string(), value)).into());
            settling.look(&snapshot, &BTreeMap::new())
        })
    }

    #[test]
    fn what_is_drained_or_fills_soon_is_waited_for() {
        let at_once = Some(2 * WINDOW - 1);
        assert_eq!(settled(|_| 0.3, |_| 0.9), at_once);
        // A backlog that takes 14 s to write, and a log that fills in 25.
        assert!(settled(|t| (0.6 - 0.043 * t).max(0.02), |_| 0.1) > Some(13));
        assert!(settled(|_| 0.1, |t| (0.04 * t).min(0.98)) > Some(24));
        // A log that takes ten minutes; a sawtooth of eight seconds.
        assert_eq!(settled(|_| 0.1, |t| t / 600.0), at_once);
        assert!(settled(|_| 0.1, |t| 0.6 + 0.05 * (t % 8.0)).is_some());
        // Falls all the time.
        assert_eq!(settled(|t| 1.0 - 0.017 * t, |_| 0.5), None);
    }

    #[test]
    fn a_server_that_shows_nothing_is_not_waited_for_without_end() {
        let mut settling = Settling::default();
        let looks = (0..60).position(|_| settling.look(&Snapshot::default(), &BTreeMap::new()));
        assert_eq!(looks, Some(2 * WINDOW - 1));
    }
}
