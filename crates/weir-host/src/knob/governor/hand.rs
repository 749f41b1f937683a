//! What a limit in bytes is in the terms of an actuator's knobs.

use weir_control::{Limits, UNLIMITED_BYTES};
use weir_knobs::{KnobName, Value};

use super::super::band::{Band, marked, marked_pages, marked_quota};
use super::super::dirty;
use super::super::entry::Written;
use super::super::place::Place;
use super::{Actuator, BdiOf, PrivateLimits};
use crate::error::HostError;
use crate::host::Host;

/// All of a bdi's share, in parts per million.
const WHOLE_PPM: u64 = 1_000_000;
/// A cgroup's limit is of a second, what it stands for here of a tenth of one.
const TENTHS: u64 = 10;

/// The knobs of an actuator. Where they lie is found once: they are read many times a second.
#[derive(Debug, Clone)]
pub(super) struct Hand {
    actuator: Actuator,
    page_bytes: u64,
    /// In the order of writing on the way down; up it is the reverse.
    pub knobs: Vec<KnobName>,
    /// Of each knob.
    pub places: Vec<Place>,
    /// Of a bdi: where the kernel says its share in bytes.
    share: Option<Place>,
    /// Of a bdi: the share in parts per million that it is promised. The kernel refuses a smaller one (`bdi_set_max_ratio`).
    promised_ppm: u64,
}

impl Hand {
    pub fn of(host: &Host, actuator: &Actuator) -> Result<Hand, HostError> {
        let knobs = match actuator {
            // Write-back starts before anybody has to wait for it.
            Actuator::Dirty => [dirty::BACKGROUND, dirty::LIMIT].map(KnobName::machine).to_vec(),
            // Without strict_limit a share does not bound anything.
            Actuator::Bdi(bdi) => ["strict_limit", "max_ratio_fine"].map(|file| bdi.file(file)).to_vec(),
            Actuator::Cgroup(knob) => vec![knob.clone()],
            Actuator::Private { high, pace, quota } => {
                std::iter::once(high).chain(pace).chain(quota).cloned().collect()
            }
        };
        let places = knobs.iter().map(|knob| Place::of(&host.tree, knob)).collect::<Result<_, _>>()?;
        let share = match actuator {
            Actuator::Dirty | Actuator::Cgroup(_) | Actuator::Private { .. } => None,
            Actuator::Bdi(bdi) => Some(Place::of(&host.tree, &bdi.file("max_bytes"))?),
        };
        let promised_ppm = match actuator {
            Actuator::Bdi(bdi) => promised_ppm(host, bdi),
            Actuator::Dirty | Actuator::Cgroup(_) | Actuator::Private { .. } => 0,
        };
        let (actuator, page_bytes) = (actuator.clone(), host.page_bytes());
        Ok(Hand { actuator, page_bytes, knobs, places, share, promised_ppm })
    }

    /// The values in force.
    pub fn read(&self, host: &Host) -> Result<Vec<Value>, HostError> {
        self.places.iter().map(|place| place.read(&host.tree)).collect()
    }

    /// The least limit that the kernel takes and that keeps it going: of dirty pages it wants more than two, of a device's share what
    /// that is promised.
    pub fn least_bytes(&self, host: &Host) -> Result<u64, HostError> {
        let promised = match self.promised_ppm {
            0 => 0,
            ppm => (u128::from(dirty::threshold_bytes(host)?) * u128::from(ppm)).div_ceil(WHOLE_PPM.into()),
        };
        Ok(u64::try_from(promised).unwrap_or(u64::MAX).max(4 * self.page_bytes))
    }

    /// Whether it holds dirty pages: lowered below what is dirty it stalls their writers.
    pub fn is_of_dirty_pages(&self) -> bool {
        !matches!(self.actuator, Actuator::Cgroup(_) | Actuator::Private { .. })
    }

    /// What there was, in bytes: now, and at most.
    pub fn saved_bytes(&self, host: &Host, saved: &[Value]) -> Result<u64, HostError> {
        let threshold = || dirty::threshold_bytes(host);
        Ok(match (&self.actuator, saved) {
            (Actuator::Bdi(_), [Value::Number(1), Value::Number(ppm)]) => share(threshold()?, *ppm),
            (Actuator::Cgroup(_), [found]) => of_a_tenth(found),
            (Actuator::Private { .. }, [high, ..]) => bytes_of(high),
            _ => threshold()?,
        })
    }

    /// The limits in force by these values, of which `saved` is the baseline.
    /// `threshold_bytes` is the machine's dirty limit, asked for where no limit is the device's own.
    pub fn limits(
        &self,
        host: &Host,
        now: &[Value],
        saved: &Limits,
        threshold_bytes: impl FnOnce() -> Result<u64, HostError>,
    ) -> Result<Limits, HostError> {
        let limits = match (&self.share, now) {
            (None, [high, ..]) if matches!(self.actuator, Actuator::Private { .. }) => {
                Limits { now_bytes: bytes_of(high), ..*saved }
            }
            (None, [_, Value::Bytes(bytes)]) => Limits { now_bytes: *bytes, ..*saved },
            (None, [limit]) => Limits { now_bytes: of_a_tenth(limit), ..*saved },
            (Some(share), [Value::Number(1), _]) => {
                let bytes = share.read(&host.tree)?.number().unwrap_or(0);
                Limits { now_bytes: u64::try_from(bytes).unwrap_or(0), ..*saved }
            }
            _ => Limits { now_bytes: threshold_bytes()?, ..*saved },
        };
        Ok(Limits { now_bytes: limits.now_bytes.min(saved.saved_bytes), ..limits })
    }

    /// Which values are the guard's, for each knob.
    pub fn bands(&self, host: &Host, saved: &[Value], limits: &Limits) -> Result<Vec<Band>, HostError> {
        let most = limits.saved_bytes;
        Ok(match &self.actuator {
            Actuator::Dirty => {
                // A share of memory may sink below the floor, and takes that with it.
                let floor = match saved {
                    [_, Value::Ratio(_)] => limits.floor_bytes.min(self.least_bytes(host)?),
                    _ => limits.floor_bytes,
                };
                [floor / 2, floor].map(|floor| Band::of_bytes(marked(floor, self.page_bytes), most)).to_vec()
            }
            Actuator::Bdi(_) => {
                let found = saved.last().and_then(Value::number).and_then(|ppm| u64::try_from(ppm).ok());
                // The whole share is what was found, as a rule: it does not tell whose it is.
                let high = found.unwrap_or(WHOLE_PPM).min(WHOLE_PPM - 1);
                // A share stands for more bytes when memory becomes free: the floor then is a smaller one.
                let low = (self.ppm(host, limits.floor_bytes)? / 4).max(1).max(self.promised_ppm);
                vec![Band::of_numbers(1, 1), Band::of_numbers(low.min(high), high)]
            }
            Actuator::Cgroup(_) => vec![Band::of_bytes(self.of_a_second(limits.floor_bytes), most * TENTHS)],
            Actuator::Private { pace, quota, .. } => {
                let paces = pace.iter().map(|_| Band::of_bytes(1, saved.get(1).map_or(u64::MAX, bytes_of)));
                let quotas = quota.iter().map(|_| Band::of_quotas());
                std::iter::once(Band::of_pages(1, most, self.page_bytes)).chain(paces).chain(quotas).collect()
            }
        })
    }

    /// The values for a limit, on the way to `goal`.
    pub fn values(
        &self,
        host: &Host,
        bytes: u64,
        goal: u64,
        bands: &[Band],
    ) -> Result<Vec<Value>, HostError> {
        Ok(match (&self.actuator, bands) {
            (Actuator::Bdi(_), [_, band]) => {
                let ppm = self.ppm(host, bytes)?.clamp(band.low, band.high);
                vec![Value::Number(1), Value::Number(i64::try_from(ppm).unwrap_or(i64::MAX))]
            }
            (Actuator::Cgroup(_), _) => {
                vec![Value::Number(i64::try_from(self.of_a_second(bytes)).unwrap_or(i64::MAX))]
            }
            (Actuator::Private { .. }, _) => vec![number(marked_pages(bytes, self.page_bytes))],
            _ => [goal / 2, bytes].map(|bytes| Value::Bytes(marked(bytes, self.page_bytes))).to_vec(),
        })
    }

    /// A bdi that is to have all has the share that was found, strictly counted. With a little less than all the kernel leaves out
    /// what a device completes beyond it (lib/flex_proportions.c), and the part of a cgroup that writes to no other one sinks to nothing.
    pub fn leave_share(&self, values: &mut [Value], changes: &[Written]) {
        if let (Actuator::Bdi(_), [_, share], [_, found]) = (&self.actuator, values, changes) {
            *share = found.old.clone();
        }
    }

    /// The values of a private actuator for these limits; none is above the baseline.
    pub fn private_values(&self, found: &[Value], limits: &PrivateLimits) -> Vec<Value> {
        let Actuator::Private { pace, quota, .. } = &self.actuator else { return found.to_vec() };
        let least = |found: &Value, limit: Option<u64>| match limit {
            Some(limit) if limit < bytes_of(found) => number(limit),
            _ => found.clone(),
        };
        let of_processors = |found: &Value| match (limits.quota, found) {
            (Some(quota), Value::Word(word)) if word.starts_with("max ") => Value::Word(marked_quota(quota)),
            _ => found.clone(),
        };
        let mut found = found.iter();
        let high = limits.high.map(|bytes| marked_pages(bytes, self.page_bytes));
        let paced = limits.pace.map(|bytes| marked(bytes, self.page_bytes));
        let high = found.next().map(|found| least(found, high));
        let pace = pace.as_ref().and_then(|_| found.next()).map(|found| least(found, paced));
        let quota = quota.as_ref().and_then(|_| found.next()).map(of_processors);
        high.into_iter().chain(pace).chain(quota).collect()
    }

    /// Marked, though the kernel takes every number of bytes: so others' values are told from the guard's.
    fn of_a_second(&self, bytes: u64) -> u64 {
        marked(bytes.saturating_mul(TENTHS), self.page_bytes)
    }

    fn ppm(&self, host: &Host, bytes: u64) -> Result<u64, HostError> {
        let threshold = u128::from(dirty::threshold_bytes(host)?.max(1));
        Ok(u64::try_from(u128::from(bytes) * u128::from(WHOLE_PPM) / threshold).unwrap_or(u64::MAX))
    }
}

/// Where it cannot be read nothing is promised: the kernel has the file as long as it has that of the share.
fn promised_ppm(host: &Host, bdi: &BdiOf) -> u64 {
    let promised =
        Place::of(&host.tree, &bdi.file("min_ratio_fine")).and_then(|place| place.read(&host.tree));
    let ppm = promised.ok().and_then(|value| value.number());
    ppm.and_then(|ppm| u64::try_from(ppm).ok()).unwrap_or(0)
}

fn number(bytes: u64) -> Value {
    Value::Number(i64::try_from(bytes).unwrap_or(i64::MAX))
}

/// A cgroup's limit in bytes; the word for none is more than there is.
fn bytes_of(limit: &Value) -> u64 {
    limit.number().and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(i64::MAX as u64)
}

/// What a cgroup's limit, or the word for none, lets through in a tenth of a second.
fn of_a_tenth(limit: &Value) -> u64 {
    let bytes = limit.number().and_then(|bytes| u64::try_from(bytes).ok());
    bytes.map_or(UNLIMITED_BYTES, |bytes| bytes / TENTHS).min(UNLIMITED_BYTES)
}

fn share(bytes: u64, ppm: i64) -> u64 {
    let share = u128::from(bytes) * u128::from(ppm.unsigned_abs()) / u128::from(WHOLE_PPM);
    u64::try_from(share).unwrap_or(u64::MAX)
}
