//! What outlives a restart.

use serde::{Deserialize, Serialize};

use super::{Entry, Guard, Place};

/// The version of [`Learned`]; another one is not read.
const VERSION: u32 = 1;
/// What is older than this, in seconds, is forgotten: devices and loads change.
const OLD_SECONDS: u64 = 30 * 24 * 3600;

/// What a guard has learned of a device. Times within are of no meaning to another run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Learned {
    /// Of this form.
    pub version: u32,
    /// What the device delivers at most, in bytes a second.
    pub rate: f64,
    /// What syncs do undisturbed.
    pub reference: Vec<Entry>,
    /// What was found of limits of dirty pages.
    pub dirty: Vec<Place>,
    /// What was found of limits of cgroups.
    pub cgroup: Vec<Place>,
}

impl Guard {
    /// What it knows, to be kept.
    pub fn learned(&self) -> Learned {
        let (dirty, cgroup) = match self.of_cgroup {
            true => (&self.other, &self.ladder),
            false => (&self.ladder, &self.other),
        };
        Learned {
            version: VERSION,
            rate: self.rate.best(),
            reference: self.reference.entries.clone(),
            dirty: dirty.places.clone(),
            cgroup: cgroup.places.clone(),
        }
    }

    /// Begins with what was known so many seconds ago. It is a beginning, no truth: rungs count as guesses, and what syncs do undisturbed
    /// counts little beside what is seen from now on.
    pub fn recall(&mut self, learned: &Learned, age_seconds: u64) {
        if learned.version != VERSION || age_seconds > OLD_SECONDS || !is_sound(learned) {
            return;
        }
        self.rate.is(learned.rate);
        self.reference.entries = learned.reference.clone();
        for entry in &mut self.reference.entries {
            entry.weight_ns = entry.weight_ns.min(1e9);
        }
        let guesses = |places: &[Place]| {
            let mut places = places.to_vec();
            for found in places.iter_mut().flat_map(|place| place.rungs.values_mut()) {
                (found.weight_ns, found.fails, found.at_ns) = (0, 0, 0);
                (found.again_ns, found.tipped_ns) = (0, None);
            }
            places
        };
        (self.ladder.places, self.other.places) = (guesses(&learned.dirty), guesses(&learned.cgroup));
        if self.of_cgroup {
            std::mem::swap(&mut self.ladder, &mut self.other);
        }
    }
}

/// Whether every figure is one that could have been measured.
fn is_sound(learned: &Learned) -> bool {
    let is = |figure: f64| figure.is_finite() && (0.0..1e15).contains(&figure);
    let entry = |entry: &Entry| {
        [entry.threads, entry.mean_ns, entry.per_second, entry.weight_ns, entry.p99_ns, entry.oldest_ns]
            .into_iter()
            .all(is)
            && entry.pool.len() < 10_000
            && entry.pool.windows(2).all(|two| two[0].0 < two[1].0)
            && entry.pool.iter().all(|bucket| bucket.1 < 1 << 40)
    };
    let place = |place: &Place| {
        let rungs = &place.rungs;
        is(place.threads)
            && is(place.rate)
            && rungs.keys().all(|rung| (-64..=64).contains(rung))
            && rungs.values().all(|found| is(found.kept) && is(found.tail) && is(found.delivered))
    };
    is(learned.rate)
        && learned.reference.len() <= 64
        && learned.reference.iter().all(entry)
        && learned.dirty.len() + learned.cgroup.len() <= 128
        && learned.dirty.iter().chain(&learned.cgroup).all(place)
}
