//! Sums of pieces: of one sync, and of all syncs of a process.

use std::collections::BTreeMap;

use super::cause::{Cause, Owner, Piece};
use super::phase::{Phase, SiteId};

/// Nanoseconds by phase and cause.
pub(super) type Matrix = [[f64; Cause::COUNT]; Phase::COUNT];

/// What a culprit did while somebody waited.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Blame {
    pub wait_ns: f64,
    pub bytes: u64,
    pub ios: u64,
}

/// Culprits of whom a tally keeps account; beyond twice as many the lesser half is forgotten. Another account has any number of
/// processes that write.
const OWNERS_MOST: usize = 64;

/// Sums of pieces.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tally {
    /// Of waits whose place is known.
    pub known: Matrix,
    /// Of short waits, whose places are known of a sample only.
    pub short: [f64; Cause::COUNT],
    /// That sample, each wait weighted by one over its chance to be in it.
    pub sample: Matrix,
    blame: BTreeMap<Owner, Blame>,
    pub sites: BTreeMap<SiteId, SiteSum>,
}

/// Waits in one place.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct SiteSum {
    pub known_ns: f64,
    pub sample_ns: f64,
    pub waits: f64,
}

impl Default for Tally {
    fn default() -> Self {
        let zero = [[0.0; Cause::COUNT]; Phase::COUNT];
        Tally {
            known: zero,
            short: [0.0; Cause::COUNT],
            sample: zero,
            blame: BTreeMap::new(),
            sites: BTreeMap::new(),
        }
    }
}

/// What is known of the place of a wait.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Place {
    /// Its stack was certain to be taken.
    Known(Phase),
    /// It was short, and its stack was taken: it stands for `weight` of its kind.
    Sampled(Phase, f64),
    /// It was short, and its stack was not taken.
    Unsampled,
}

impl Place {
    /// How many waits it stands for.
    pub fn weight(self) -> f64 {
        match self {
            Place::Sampled(_, weight) => weight,
            Place::Known(_) | Place::Unsampled => 1.0,
        }
    }
}

impl Tally {
    /// Adds a piece of a wait.
    pub fn add(&mut self, place: Place, piece: Piece) {
        let (cause, ns) = (piece.cause as usize, piece.length_ns as f64);
        match place {
            Place::Known(phase) => self.known[phase as usize][cause] += ns,
            Place::Sampled(phase, weight) => {
                self.short[cause] += ns;
                self.sample[phase as usize][cause] += ns * weight;
            }
            Place::Unsampled => self.short[cause] += ns,
        }
        if let Some(owner) = piece.owner {
            self.blame(owner).wait_ns += ns;
        }
    }

    /// What a culprit did.
    pub fn blame(&mut self, owner: Owner) -> &mut Blame {
        if self.blame.len() >= 2 * OWNERS_MOST && !self.blame.contains_key(&owner) {
            let weight = |blame: &Blame| (blame.wait_ns, blame.bytes);
            let mut weights: Vec<(f64, u64)> = self.blame.values().map(weight).collect();
            weights.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
            let least = weights[OWNERS_MOST];
            self.blame.retain(|_, blame| weight(blame) > least);
        }
        self.blame.entry(owner).or_default()
    }

    /// All culprits.
    pub fn blamed(&self) -> impl Iterator<Item = (Owner, Blame)> + '_ {
        self.blame.iter().map(|(owner, blame)| (*owner, *blame))
    }

    /// Adds time that is no wait.
    pub fn add_plain(&mut self, phase: Phase, length_ns: u64) {
        self.known[phase as usize][Cause::Kernel as usize] += length_ns as f64;
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Tally) {
        self.merge_times(other, 1.0);
    }

    /// Adds `times` as much as `other` holds: the syncs it is of stand for others like them.
    pub fn merge_times(&mut self, other: &Tally, times: f64) {
        add_all(&mut self.known, &other.known, times);
        add_all(&mut self.sample, &other.sample, times);
        self.short.iter_mut().zip(&other.short).for_each(|(mine, theirs)| *mine += theirs * times);
        let counted = |n: u64| (n as f64 * times).round() as u64;
        for (owner, blame) in &other.blame {
            let mine = self.blame(*owner);
            mine.wait_ns += blame.wait_ns * times;
            mine.bytes += counted(blame.bytes);
            mine.ios += counted(blame.ios);
        }
        for (site, sum) in &other.sites {
            let mine = self.sites.entry(*site).or_default();
            mine.known_ns += sum.known_ns * times;
            mine.sample_ns += sum.sample_ns * times;
            mine.waits += sum.waits * times;
        }
    }

    /// All time, with short waits given to phases as their sample says: cause by cause where the sample holds the
    /// cause, else as the sample is as a whole, else to [`Phase::Unknown`].
    pub fn matrix(&self) -> Matrix {
        let mut matrix = self.known;
        let whole: Vec<f64> = self.sample.iter().map(|row| row.iter().sum()).collect();
        for (cause, &ns) in self.short.iter().enumerate() {
            let of_cause: Vec<f64> = self.sample.iter().map(|row| row[cause]).collect();
            let weights = if of_cause.iter().sum::<f64>() > 0.0 { &of_cause } else { &whole };
            let sum: f64 = weights.iter().sum();
            if sum > 0.0 {
                weights.iter().zip(&mut matrix).for_each(|(weight, row)| row[cause] += ns * weight / sum);
            } else {
                matrix[Phase::Unknown as usize][cause] += ns;
            }
        }
        matrix
    }

    /// Time in a place, short waits included as their sample says.
    pub fn site_ns(&self, sum: &SiteSum) -> f64 {
        let sampled: f64 = self.sample.iter().flatten().sum();
        let short: f64 = self.short.iter().sum();
        sum.known_ns + if sampled > 0.0 { sum.sample_ns * short / sampled } else { 0.0 }
    }
}

fn add_all(to: &mut Matrix, from: &Matrix, times: f64) {
    to.iter_mut().flatten().zip(from.iter().flatten()).for_each(|(mine, theirs)| *mine += theirs * times);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many processes as an account likes, each of which writes once, beside one that writes all the time.
    #[test]
    fn very_many_culprits_take_little_memory_and_hide_nobody() {
        let mut tally = Tally::default();
        for pid in 0..10_000 {
            for (owner, wait_ns) in [(7, 1.0), (100 + pid, f64::from(pid % 10))] {
                let blame = tally.blame(Owner::Process(owner));
                blame.wait_ns += wait_ns;
                blame.ios += 1;
            }
            assert!(tally.blamed().count() <= 2 * OWNERS_MOST);
        }
        let mut sum = Tally::default();
        sum.merge(&tally);
        let heaviest = sum.blamed().max_by(|a, b| a.1.wait_ns.total_cmp(&b.1.wait_ns)).unwrap();
        assert_eq!(heaviest, (Owner::Process(7), Blame { wait_ns: 10_000.0, bytes: 0, ios: 10_000 }));
    }
}
