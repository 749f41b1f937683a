//! What a look brings, of every device under guard.

use weir_core::control::{Bulk, DeviceFlow, Sensor, SensorSource, Syncs};
use weir_core::target::DeviceNumber;

use weir_host::{self as host, Flow, Host, HostError};

use super::clock::Moment;
use super::subject::{self, Subject};

/// What was seen of a device since the look before.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Its number now: a device that was away may come back with another.
    pub number: DeviceNumber,
    /// Where latencies come from.
    pub sensor: Sensor,
    /// Syncs that are to be protected.
    pub syncs: Syncs,
    /// Everybody else.
    pub bulk: Bulk,
    /// What the device did.
    pub flow: DeviceFlow,
}

/// What looks.
pub trait Eyes {
    /// A look at every device, in the order in which they were named; `None` for one that is gone.
    fn look(&mut self, now: Moment) -> Vec<Option<Seen>>;

    /// What is lacking, and what is lost by it, in sentences.
    fn remarks(&self) -> Vec<String>;
}

/// This machine's devices.
pub struct Machine {
    host: Host,
    watched: Vec<Watched>,
    looks: u64,
}

/// A device, found again whenever it comes back.
struct Watched {
    subject: Subject,
    flow: Option<Flow>,
}

/// Looks between two searches for a device that is gone.
const SEARCH_EVERY: u64 = 10;

impl Machine {
    /// Watches these from now on.
    ///
    /// # Errors
    /// When the counters of one cannot be read.
    pub fn watch(host: &Host, subjects: &[Subject]) -> Result<Machine, HostError> {
        let watched = |subject: &Subject| {
            Ok(Watched { subject: subject.clone(), flow: Some(host.flow(subject.number)?) })
        };
        let watched = subjects.iter().map(watched).collect::<Result<_, HostError>>()?;
        Ok(Machine { host: host.clone(), watched, looks: 0 })
    }
}

impl Eyes for Machine {
    fn look(&mut self, _now: Moment) -> Vec<Option<Seen>> {
        self.looks += 1;
        let searches = self.looks.is_multiple_of(SEARCH_EVERY);
        let host = &self.host;
        self.watched.iter_mut().map(|watched| watched.look(host, searches)).collect()
    }

    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }
}

impl Watched {
    fn look(&mut self, host: &Host, searches: bool) -> Option<Seen> {
        if self.flow.is_none() && searches {
            // A path that lies elsewhere now is not what was to be guarded.
            let found = subject::find(host, &self.subject.asked).ok().flatten();
            if let Some(found) = found.filter(|found| found.name == self.subject.name) {
                self.flow = host.flow(found.number).ok();
                self.subject = found;
            }
        }
        let flow = match self.flow.as_mut()?.look() {
            Ok(host::Seen::Here(flow)) => flow,
            _ => {
                self.flow = None;
                return None;
            }
        };
        Some(Seen {
            number: self.subject.number,
            sensor: Sensor { source: SensorSource::Diskstats, silent_ns: 0, lost: 0 },
            syncs: Syncs::default(),
            bulk: Bulk::default(),
            flow,
        })
    }
}
