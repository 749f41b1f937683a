//! A canary as a sensor.

use std::path::Path;

use weir_control::{Bulk, Sensor, SensorSource, Syncs};
use weir_io::IoError;
use weir_io::canary::Canary;

use super::Sight;

/// A canary, and when it last sang.
pub struct Bird {
    canary: Canary,
    failed: u64,
    sang_ns: Option<u64>,
}

impl Bird {
    /// In a folder of its own below this one.
    ///
    /// # Errors
    /// When nothing can be written there.
    pub fn start(folder: &Path) -> Result<Bird, IoError> {
        Ok(Bird { canary: Canary::start(folder)?, failed: 0, sang_ns: None })
    }

    /// What happened since the sample before. One that hangs is an answer, one that fails is none.
    pub fn sample(&mut self, now_ns: u64) -> Sight {
        let look = self.canary.look();
        let begun_ns = *self.sang_ns.get_or_insert(now_ns);
        if look.ended.count() > 0 || look.oldest_ns.is_some() {
            self.sang_ns = Some(now_ns);
        }
        let silent_ns = if self.sang_ns == Some(now_ns) { 0 } else { now_ns.saturating_sub(begun_ns) };
        let lost = look.failed - self.failed;
        self.failed = look.failed;
        let syncs = Syncs {
            ended: look.ended,
            under_way: u32::from(look.oldest_ns.is_some()),
            oldest_ns: look.oldest_ns.unwrap_or(0),
            ..Syncs::default()
        };
        let sensor = Sensor { source: SensorSource::Canary, silent_ns, lost };
        Sight { syncs, bulk: Bulk::default(), backlog_bytes: None, sensor }
    }
}
