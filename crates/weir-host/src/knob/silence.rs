//! How long a guard has given no sign of life, as its guardian sees it.

use std::time::Duration;

/// Silence while the guardian itself was awake. When both stand still (the machine sleeps, its hypervisor pauses it,
/// a whole cgroup is frozen) no clock may make a hang of it, so a wait that took much longer than it was to take counts
/// as no longer than that.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Silence(Duration);

impl Silence {
    /// How often to look, where so much silence is a hang.
    pub fn look(most_ns: u64) -> Duration {
        Duration::from_nanos(most_ns / 8).max(Duration::from_millis(1))
    }

    /// Nothing was heard in a wait that took `elapsed` and was to take `planned`.
    pub fn goes_on(&mut self, elapsed: Duration, planned: Duration) {
        self.0 += elapsed.min(planned * 2);
    }

    /// A sign of life.
    pub fn end(&mut self) {
        self.0 = Duration::ZERO;
    }

    /// Whether it is a hang.
    pub fn is_beyond(self, most_ns: u64) -> bool {
        self.0 >= Duration::from_nanos(most_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST_NS: u64 = 30_000_000_000;

    /// Waits of a second without a sign of life, each of which took so many milliseconds, until it is a hang.
    fn looks_until_hang(took_ms: impl Fn(u32) -> u64) -> u32 {
        let mut silence = Silence::default();
        (1..)
            .find(|nth| {
                silence.goes_on(Duration::from_millis(took_ms(*nth)), Duration::from_secs(1));
                silence.is_beyond(MOST_NS)
            })
            .unwrap_or(0)
    }

    #[test]
    fn only_silence_that_was_listened_to_counts() {
        assert_eq!(looks_until_hang(|_| 1000), 30);
        // Suspend for a day, a clock that leaps for the length of an age: one wait more or less.
        for leap_ms in [86_400_000, u64::MAX / 2] {
            assert_eq!(looks_until_hang(|nth| if nth == 5 { leap_ms } else { 1000 }), 29);
        }
        // A machine so busy that every wait takes three times as long.
        assert_eq!(looks_until_hang(|_| 3000), 15);
    }

    #[test]
    fn a_sign_of_life_ends_it() {
        let mut silence = Silence::default();
        for _ in 0..100 {
            silence.goes_on(Duration::from_secs(20), Duration::from_secs(20));
            assert!(!silence.is_beyond(MOST_NS));
            silence.end();
        }
        assert!(Silence::look(MOST_NS) < Duration::from_nanos(MOST_NS / 4));
    }
}
