//! Whether cgroups that are held still write in bulk. A service may go on with a few bytes for days after it copied its data, and
//! limits that nobody needs would stay as long.

use super::Group;
use super::constants::SECOND_NS;
use super::looks::Looks;
use crate::bypass::{COUNTS, LEAST_PER_SECOND};

/// Writes come in lumps: they are summed over so long.
const WINDOW_NS: u64 = 3 * SECOND_NS;
/// Who writes at this share of what a pace lets through is paced by it.
const OF_PACE: f64 = 0.5;
/// More to write than what a file system keeps.
const BACKLOG_BYTES: u64 = 1 << 20;

/// What one cgroup wrote in the last seconds.
#[derive(Debug, Clone, Default)]
pub struct Work {
    looks: Looks,
    backlog_bytes: u64,
}

impl Work {
    /// Takes in a look.
    pub fn push(&mut self, elapsed_ns: u64, group: &Group) {
        self.backlog_bytes = group.memory.backlog();
        self.looks.push(elapsed_ns, group.bytes() + group.before_bytes, WINDOW_NS);
    }
}

/// Which of the cgroups of a device write in bulk at their last look; `pace` is what io.max lets all of them write, in bytes a second. Together they
/// write what would be a flood, or at least half of their pace; of that one counts from the share on from which it would be held.
pub fn are_at_work(works: &[&Work], pace: Option<u64>) -> Vec<bool> {
    let rates: Vec<f64> = works.iter().map(|work| work.looks.per_second()).collect();
    let all: f64 = rates.iter().sum();
    let least = pace.map_or(LEAST_PER_SECOND, |pace| LEAST_PER_SECOND.min(OF_PACE * pace as f64));
    let counts = |work: &Work, rate: f64| work.looks.last() > 0 && all >= least && rate >= COUNTS * all;
    let is_at_work = |(work, rate): (&&Work, &f64)| work.backlog_bytes > BACKLOG_BYTES || counts(work, *rate);
    works.iter().zip(&rates).map(is_at_work).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private::Memory;

    #[test]
    fn a_trickle_is_no_bulk_work_and_a_pace_that_is_used_is() {
        const MB: u64 = 1_000_000;
        // (bytes of each in a tenth of a second, dirty, pace, whether each is at work)
        for (bytes, file_dirty, pace, expected) in [
            (&[20 * MB][..], 0, None, &[true][..]),
            (&[10_000], 0, None, &[false]),
            (&[10_000], 2 * MB, None, &[true]),
            (&[0], 0, Some(0), &[false]),
            // The least pace there is, used: held hard, and not let go of for that.
            (&[60_000], 0, Some(MB), &[true]),
            (&[10_000], 0, Some(MB), &[false]),
            (&[10_000], 0, Some(20 * MB), &[false]),
            // Many that share a slow device, and one beside a flood.
            (&[60_000; 8], 0, None, &[true; 8]),
            (&[20 * MB, 2 * MB, 10_000], 0, None, &[true, true, false]),
        ] {
            let work = |bytes: &u64| {
                let memory = Memory { file_dirty, ..Memory::default() };
                let mut work = Work::default();
                (0..40).for_each(|_| {
                    work.push(SECOND_NS / 10, &Group { memory, sent_bytes: *bytes, ..Group::default() });
                });
                work
            };
            let works: Vec<Work> = bytes.iter().map(work).collect();
            let found = are_at_work(&works.iter().collect::<Vec<_>>(), pace);
            assert_eq!(found, expected, "{bytes:?} {file_dirty} {pace:?}");
        }
    }

    #[test]
    fn lumps_are_summed_and_forgotten() {
        let mut work = Work::default();
        let push = |work: &mut Work, bytes: u64| {
            work.push(SECOND_NS / 10, &Group { written_bytes: Some(bytes), ..Group::default() });
            are_at_work(&[&*work], None)[0]
        };
        assert!(push(&mut work, 20 << 20));
        assert!(!push(&mut work, 0), "it has stopped");
        let after = (0..40).filter(|_| push(&mut work, 1)).count();
        assert!((25..30).contains(&after), "{after} of 30 looks");
    }
}
