//! The clocks of the daemons: one that stands still while the machine sleeps, one that does not, and the time of day.

use jiff::Zoned;
use rustix::time::{ClockId, clock_gettime};

/// One moment on the clocks that are never set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Stands still in suspend, is never set.
    pub awake_ns: u64,
    /// Goes on in suspend, is never set.
    pub boot_ns: u64,
}

impl Moment {
    /// Now.
    pub fn now() -> Moment {
        Moment { awake_ns: read(ClockId::Monotonic), boot_ns: read(ClockId::Boottime) }
    }

    /// How long the machine slept between an earlier moment and this one.
    pub fn slept_since(self, earlier: Moment) -> u64 {
        let awake_ns = self.awake_ns.saturating_sub(earlier.awake_ns);
        self.boot_ns.saturating_sub(earlier.boot_ns).saturating_sub(awake_ns)
    }
}

/// The time of day now, with offset.
pub fn rfc3339() -> String {
    Zoned::now().strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_is_what_one_clock_has_more_than_the_other() {
        let at = |awake_ns, boot_ns| Moment { awake_ns, boot_ns };
        assert_eq!(at(150, 1150).slept_since(at(100, 100)), 1000);
        assert_eq!(at(150, 150).slept_since(at(100, 100)), 0);
        // The clocks are read one after the other.
        assert_eq!(at(151, 150).slept_since(at(100, 100)), 0);
        let now = Moment::now();
        assert!(now.awake_ns > 0 && now.boot_ns > 0);
    }
}
