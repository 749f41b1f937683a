//! Pieces that wait to be counted, apart by the moments they have: what is alike is counted without questions.

use crate::analysis::Parts;
use crate::life::Times;
use crate::stage::{Moment, Stage};
use weir_core::stats::Durations;

/// Pieces that are counted at once at most.
const BATCH_MAX: usize = 256;
/// Every set of moments.
const SETS: usize = 64;
const NONE: u8 = u8::MAX;

/// Pieces of one kind, or of one sender.
#[derive(Debug)]
pub struct Waiting {
    place: [u8; SETS],
    lists: Vec<List>,
}

/// Those with the same moments.
#[derive(Debug)]
pub struct List {
    known: u8,
    times: Vec<Times>,
}

impl Default for Waiting {
    fn default() -> Self {
        Waiting { place: [NONE; SETS], lists: Vec::new() }
    }
}

impl Waiting {
    /// Adds a piece that knows the moments `known` ([`Times::known`]). Gives back those alike once there are `batch`,
    /// for the caller to count and clear.
    #[inline]
    pub fn push(&mut self, times: &Times, known: u8, batch: usize) -> Option<&mut List> {
        let at = &mut self.place[known as usize % SETS];
        if *at == NONE {
            *at = self.lists.len() as u8;
            self.lists.push(List::new(known));
        }
        let list = &mut self.lists[*at as usize];
        (list.push(times) >= batch.min(BATCH_MAX)).then_some(list)
    }

    /// All that wait.
    pub fn lists(&mut self) -> impl Iterator<Item = &mut List> {
        self.lists.iter_mut().filter(|list| !list.is_empty())
    }
}

impl List {
    /// None that know the moments `known` ([`Times::known`]).
    pub fn new(known: u8) -> List {
        List { known, times: Vec::new() }
    }

    /// Adds a piece; how many there are now. They are to be counted before they are more than [`BATCH_MAX`].
    #[inline]
    pub fn push(&mut self, times: &Times) -> usize {
        self.times.push(*times);
        self.times.len()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Whether they know a moment.
    pub fn knows(&self, moment: Moment) -> bool {
        self.known & (1 << moment as u8) != 0
    }

    /// Gives each stage they have to `take` and adds their parts to `parts`; then none waits any more. Where nothing
    /// was inserted, G2D* is G2D and not given again.
    pub fn count(&mut self, parts: &mut Parts, mut take: impl FnMut(Stage, &Durations<'_>)) {
        let mut values_ns = [0; BATCH_MAX];
        let mut sums_ns = [0; Stage::COUNT];
        let mut in_order = true;
        for stage in Stage::ALL {
            let (from, to) = stage.ends();
            let other = if self.knows(Moment::Insert) { Stage::G2D } else { Stage::G2DAll };
            if !self.knows(from) || !self.knows(to) || stage == other {
                continue;
            }
            let (durations, all) = durations(&mut values_ns, &self.times, from, to);
            in_order &= all;
            sums_ns[stage as usize] = durations.sum_ns as u64;
            take(stage, &durations);
        }
        if !in_order || !self.add_sums(&sums_ns, parts) {
            self.times.iter().for_each(|times| parts.add(times));
        }
        self.times.clear();
    }

    /// Adds to `parts` what the stages of pieces in order say of them, if they say it all.
    fn add_sums(&self, sums_ns: &[u64; Stage::COUNT], parts: &mut Parts) -> bool {
        let knows = |moment| self.knows(moment);
        if ![Moment::Queue, Moment::Issue, Moment::Complete].into_iter().all(knows) {
            return false;
        }
        let of = |stage: Stage| sums_ns[stage as usize];
        match (knows(Moment::GetRequest), knows(Moment::Insert), knows(Moment::Merge)) {
            (true, false, _) => {
                parts.q2g_ns += of(Stage::Q2G);
                parts.g2d_ns += of(Stage::G2D);
            }
            (true, true, _) => {
                parts.q2g_ns += of(Stage::Q2G);
                parts.g2i_ns += of(Stage::G2I);
                parts.i2d_ns += of(Stage::I2D);
            }
            (false, _, true) => {
                parts.q2m_ns += of(Stage::Q2M);
                parts.m2d_ns += of(Stage::M2D);
            }
            (false, _, false) => return false,
        }
        parts.d2c_ns += of(Stage::D2C);
        parts.pieces += self.times.len() as u64;
        true
    }
}

/// The durations between two moments that all of `times` know, and whether none was left out and their sum fits 64
/// bits: those whose end is before their start do not count.
fn durations<'a>(
    values_ns: &'a mut [u64; BATCH_MAX],
    times: &[Times],
    from: Moment,
    to: Moment,
) -> (Durations<'a>, bool) {
    let (mut all_bits, mut sum_ns, mut min_ns, mut max_ns, mut backwards) = (0, 0_u64, u64::MAX, 0, false);
    for (value_ns, times) in values_ns.iter_mut().zip(times) {
        let (from_ns, to_ns) = (times.raw(from), times.raw(to));
        let ns = to_ns.wrapping_sub(from_ns);
        *value_ns = ns;
        backwards |= to_ns < from_ns;
        all_bits |= ns;
        sum_ns = sum_ns.wrapping_add(ns);
        min_ns = min_ns.min(ns);
        max_ns = max_ns.max(ns);
    }
    // So many of so few bits cannot overflow.
    if !backwards && all_bits >> (u64::BITS - BATCH_MAX.ilog2() - 1) == 0 {
        let values_ns = &values_ns[..times.len().min(BATCH_MAX)];
        return (Durations { values_ns, sum_ns: u128::from(sum_ns), min_ns, max_ns }, true);
    }
    let mut count = 0;
    for times in times.iter().take(BATCH_MAX) {
        if let Some(ns) = times.raw(to).checked_sub(times.raw(from)) {
            values_ns[count] = ns;
            count += 1;
        }
    }
    (Durations::from(&values_ns[..count]), false)
}
