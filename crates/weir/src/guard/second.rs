//! Looks at one device, added up to seconds and to sums since the start.

use weir_control::{Decision, Mood, Sample, Second, Totals, Writer};
use weir_core::stats::CoarseHistogram;

/// Bulk writers that are told of.
const WRITERS_MAX: usize = 5;
/// So long the bulk writers' share stands: on a machine of thousands of threads they are asked for once a second.
const SHARE_HOLDS_NS: u64 = 2_000_000_000;

/// The limit at the end of a second.
pub struct Limit {
    /// In bytes.
    pub bytes: u64,
    /// Whether these are what a cgroup may write in a tenth of a second.
    pub of_cgroup: bool,
    /// Whether a limit of the guard's would be in force if it held one.
    pub in_force: bool,
}

/// A second in the making.
#[derive(Default)]
pub struct Gather {
    ended: CoarseHistogram,
    oldest_ns: u64,
    written_bytes: u64,
    bulk_held_ns: u64,
    own_held_ns: u64,
    lost: u64,
    writers: Vec<Writer>,
    dirtied_bytes: u64,
    protected_bytes: u64,
    /// The bulk writers' share of what was dirtied in this second or, while nothing is known of it, before; and when.
    share: Option<(f64, u64)>,
}

impl Gather {
    /// Takes in a sample.
    pub fn sample(&mut self, sample: &Sample) {
        self.ended.merge(&sample.syncs.ended);
        self.oldest_ns = self.oldest_ns.max(sample.syncs.oldest_ns);
        self.own_held_ns += sample.syncs.held_back_ns;
        self.bulk_held_ns += sample.bulk.held_back_ns;
        self.lost += sample.sensor.lost;
        self.written_bytes += sample.flow.written_bytes;
        self.dirtied_bytes += sample.bulk.dirtied_bytes;
        self.protected_bytes += sample.bulk.protected_bytes;
        if sample.bulk.is_told() {
            let known = self.dirtied_bytes + self.protected_bytes;
            self.share = Some((self.dirtied_bytes as f64 / known as f64, sample.at_ns));
        }
        self.share = self.share.filter(|(_, at_ns)| sample.at_ns - at_ns <= SHARE_HOLDS_NS);
        for writer in &sample.bulk.writers {
            match self.writers.iter_mut().find(|known| known.pid == writer.pid) {
                Some(known) => known.bytes += writer.bytes,
                None => self.writers.push(writer.clone()),
            }
        }
    }

    /// The second that ends now, and who wrote in it.
    pub fn end(
        &mut self,
        at_ms: u64,
        sample: &Sample,
        limit: &Limit,
        decision: &Decision,
        totals: &mut Totals,
    ) -> (Second, Vec<Writer>) {
        let us = |ns: u64| ns / 1000;
        let quantile = |q| self.ended.quantile(q).map(us);
        let mut second = Second {
            at_ms,
            syncs: self.ended.count(),
            p50_us: quantile(0.5),
            p99_us: quantile(0.99),
            max_us: self.ended.max().filter(|_| self.ended.count() > 0).map(us),
            oldest_us: us(self.oldest_ns),
            target_us: decision.inputs.target_ns.map(us),
            kept: decision.inputs.kept.map(|kept| kept as f32),
            limit_bytes: limit.bytes,
            backlog_bytes: sample.backlog_bytes(),
            written_bytes: self.written_bytes,
            // Without a sensor of writers the law tells from the flow whether there are any.
            bulk_bytes: self.bulk_bytes().or((!decision.inputs.bulk_active).then_some(0)),
            bulk_held_ms: self.bulk_held_ns / 1_000_000,
            own_held_ms: self.own_held_ns / 1_000_000,
            holding: limit.in_force && decision.mood == Mood::Holding,
            // The control loop knows them.
            private_dirty_bytes: None,
            private_pace: None,
            of_cgroup: limit.of_cgroup,
        };
        second.kept = second.kept.filter(|_| second.has_syncs());
        self.add_to(totals, &second);
        self.writers.sort_unstable_by_key(|writer| std::cmp::Reverse(writer.bytes));
        self.writers.truncate(WRITERS_MAX);
        let writers = std::mem::take(&mut self.writers);
        *self = Gather { share: self.share, ..Gather::default() };
        (second, writers)
    }

    /// The bulk writers' part of what was written, by what they and the protected dirtied; `None` where nobody is known.
    fn bulk_bytes(&self) -> Option<u64> {
        self.share.map(|(of_bulk, _)| (self.written_bytes as f64 * of_bulk) as u64)
    }

    fn add_to(&self, totals: &mut Totals, second: &Second) {
        totals.syncs += second.syncs;
        totals.sync_ns += u64::try_from(self.ended.sum()).unwrap_or(u64::MAX);
        totals.seconds += u64::from(second.has_syncs());
        totals.seconds_over_target += u64::from(second.is_over_target());
        totals.written_bytes += second.written_bytes;
        totals.bulk_bytes += second.bulk_bytes.unwrap_or(0);
        totals.bulk_held_ms += second.bulk_held_ms;
        totals.own_held_ms += second.own_held_ms;
        totals.lost += self.lost;
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;

    fn limit(in_force: bool) -> Limit {
        Limit { bytes: 8_000_000, of_cgroup: false, in_force }
    }

    #[test]
    fn looks_become_a_second_and_sums() {
        let (mut gather, mut totals) = (Gather::default(), Totals::default());
        let mut sample = testing::sample(1_000_000_000);
        for ns in [1_000_000, 2_000_000, 90_000_000] {
            sample.syncs.ended.record(ns);
        }
        sample.syncs.oldest_ns = 7_000_000;
        sample.flow.written_bytes = 1000;
        let dd = Writer { pid: 7, comm: "dd".to_string(), bytes: 600, start_ns: 0 };
        sample.bulk.writers = vec![Writer { pid: 8, comm: "cp".to_string(), bytes: 700, start_ns: 0 }, dd];
        gather.sample(&sample);
        (sample.bulk.dirtied_bytes, sample.bulk.protected_bytes) = (600, 200);
        gather.sample(&sample);
        let mut decision = testing::decision(1_000_000_000);
        decision.inputs.target_ns = Some(50_000_000);
        let (second, writers) = gather.end(1000, &sample, &limit(true), &decision, &mut totals);
        assert_eq!((second.syncs, second.oldest_us, second.written_bytes), (6, 7000, 2000));
        assert_eq!((second.bulk_bytes, second.limit_bytes), (Some(1500), 8_000_000));
        assert_eq!(writers.iter().map(|w| (w.pid, w.bytes)).collect::<Vec<_>>(), [(8, 1400), (7, 1200)]);
        assert_eq!((totals.seconds, totals.seconds_over_target, totals.syncs), (1, 1, 6));
        // Nothing is left for the next, but who dirtied how much; what syncs kept before is none of it.
        decision.inputs.kept = Some(1.9);
        (sample.syncs, sample.bulk) = Default::default();
        gather.sample(&sample);
        let (second, _) = gather.end(2000, &sample, &limit(true), &decision, &mut totals);
        assert_eq!((second.syncs, second.p99_us, second.kept, second.bulk_bytes), (0, None, None, Some(750)));
        assert_eq!((totals.seconds, totals.seconds_over_target), (1, 1));
        // After a while nobody knows any more, but whether bulk writers are active.
        sample.at_ns += SHARE_HOLDS_NS + 1;
        for (bulk_active, bulk_bytes) in [(true, None), (false, Some(0))] {
            decision.inputs.bulk_active = bulk_active;
            gather.sample(&sample);
            let (second, _) = gather.end(3000, &sample, &limit(true), &decision, &mut totals);
            assert_eq!(second.bulk_bytes, bulk_bytes, "{bulk_active}");
        }
    }

    #[test]
    fn a_limit_that_is_not_in_force_does_not_hold() {
        let decision = Decision { mood: Mood::Holding, ..testing::decision(0) };
        for in_force in [true, false] {
            let (mut gather, mut totals) = (Gather::default(), Totals::default());
            let end = gather.end(1000, &testing::sample(0), &limit(in_force), &decision, &mut totals);
            assert_eq!(end.0.holding, in_force);
        }
    }

    #[test]
    fn a_writer_that_is_told_of_in_lumps_counts_for_all_it_dirtied() {
        let (mut gather, mut totals) = (Gather::default(), Totals::default());
        let decision = testing::decision(0);
        for look in 0..10 {
            let mut sample = testing::sample(look * 100_000_000);
            sample.flow.written_bytes = 1000;
            (sample.bulk.dirtied_bytes, sample.bulk.protected_bytes) =
                if look == 3 { (8000, 200) } else { (0, 200) };
            gather.sample(&sample);
        }
        let sample = testing::sample(1_000_000_000);
        let (second, _) = gather.end(1000, &sample, &limit(true), &decision, &mut totals);
        assert_eq!((second.written_bytes, second.bulk_bytes), (10_000, Some(8000)));
    }
}
