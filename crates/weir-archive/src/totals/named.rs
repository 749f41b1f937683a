//! Sums by key, of which a bounded number is named and the rest is one. Those are named that had most lately.

use std::collections::BTreeMap;

/// What had most lately has half of its weight after so much time, ms.
const HALF_MS: f64 = 600_000.0;
/// A newcomer takes a place from one that has less than a share of its weight: else two of about the same size would take turns.
const TAKES_FROM: f64 = 0.5;
/// Keys that are weighed.
const WEIGHED_MAX: usize = 1024;
/// Keys that have lost their place and whose sums are kept, so that they go on where they were when they have one again. Others begin
/// at 0 again, as after a restart.
const KEPT_MAX: usize = 256;

/// What can be added up.
pub trait Sums: Default + Clone {
    /// Adds more.
    fn add(&mut self, more: &Self);
}

/// The group of a key that has a share of the places, if any.
type GroupOf<K> = for<'a> fn(&'a K) -> Option<&'a str>;

/// Sums of those that are named, and of the rest.
#[derive(Debug)]
pub struct Named<K, V> {
    most: usize,
    /// Places that a group keeps when others want them.
    most_of_group: usize,
    group_of: GroupOf<K>,
    named: BTreeMap<K, V>,
    others: V,
    kept: BTreeMap<K, (u64, V)>,
    weights: BTreeMap<K, f64>,
    intervals: u64,
}

impl<K: Ord + Clone, V: Sums> Named<K, V> {
    /// None yet; at most so many are named.
    pub fn new(most: usize) -> Named<K, V> {
        Named::in_groups(most, most, |_| None)
    }

    /// The same; where there are not enough places for all, at most so many of a group are named.
    pub fn in_groups(most: usize, most_of_group: usize, group_of: GroupOf<K>) -> Named<K, V> {
        Named {
            most,
            most_of_group,
            group_of,
            named: BTreeMap::new(),
            others: V::default(),
            kept: BTreeMap::new(),
            weights: BTreeMap::new(),
            intervals: 0,
        }
    }

    /// What is shown of it, without what only the next intervals need.
    pub fn shown(&self) -> Named<K, V> {
        let none = Named::in_groups(self.most, self.most_of_group, self.group_of);
        Named { named: self.named.clone(), others: self.others.clone(), ..none }
    }

    /// Those that are named.
    pub fn named(&self) -> &BTreeMap<K, V> {
        &self.named
    }

    /// What all others had while they had no place. It takes nothing over from one that loses its place, and gives nothing back to
    /// one that gets one, so that it never falls and never leaps.
    pub fn others(&self) -> &V {
        &self.others
    }

    /// Adds an interval: sums and weights by key; of no key is what the interval itself did not distinguish.
    pub fn take(&mut self, span_ms: i64, fresh: BTreeMap<Option<K>, (V, f64)>) {
        self.intervals += 1;
        let fades = 0.5_f64.powf(span_ms.max(0) as f64 / HALF_MS);
        self.weights.values_mut().for_each(|weight| *weight *= fades);
        for (key, (_, weight)) in &fresh {
            if let Some(key) = key {
                *self.weights.entry(key.clone()).or_default() += weight;
            }
        }
        let mut newcomers: Vec<&K> =
            fresh.keys().flatten().filter(|key| !self.named.contains_key(*key)).collect();
        newcomers.sort_by(|a, b| self.weight(b).total_cmp(&self.weight(a)));
        for key in newcomers {
            self.place(key);
        }
        for (key, (sums, _)) in &fresh {
            match key.as_ref().and_then(|key| self.named.get_mut(key)) {
                Some(known) => known.add(sums),
                None => self.others.add(sums),
            }
        }
        self.thin_out();
    }

    fn weight(&self, key: &K) -> f64 {
        self.weights.get(key).copied().unwrap_or(0.0)
    }

    /// The one with the least weight of those that are named.
    fn least(&self, is_wanted: impl Fn(&K) -> bool) -> Option<K> {
        let wanted = self.named.keys().filter(|key| is_wanted(key));
        wanted.min_by(|a, b| self.weight(a).total_cmp(&self.weight(b))).cloned()
    }

    /// How many of a key's group are named; none of a key without one.
    fn held(&self, key: &K) -> usize {
        let group_of = self.group_of;
        let Some(group) = group_of(key) else { return 0 };
        self.named.keys().filter(|named| group_of(named) == Some(group)).count()
    }

    /// Gives a newcomer a place, if there is one, a group has more than its share, or it has far more than another.
    fn place(&mut self, key: &K) {
        if self.named.len() >= self.most {
            let has_its_share = self.held(key) >= self.most_of_group;
            let beyond = self.least(|named| !has_its_share && self.held(named) > self.most_of_group);
            let is_given = beyond.is_some();
            let is_rival = |named: &K| !has_its_share || (self.group_of)(named) == (self.group_of)(key);
            let Some(least) = beyond.or_else(|| self.least(is_rival)) else { return };
            if !is_given && self.weight(&least) >= TAKES_FROM * self.weight(key) {
                return;
            }
            if let Some(sums) = self.named.remove(&least) {
                self.kept.insert(least, (self.intervals, sums));
            }
        }
        let sums = self.kept.remove(key).map(|(_, sums)| sums).unwrap_or_default();
        self.named.insert(key.clone(), sums);
    }

    /// What has least, and what lost its place longest ago, is forgotten.
    fn thin_out(&mut self) {
        if self.weights.len() > WEIGHED_MAX {
            let mut weights: Vec<f64> = self.weights.values().copied().collect();
            weights.sort_by(|a, b| b.total_cmp(a));
            let least = weights[WEIGHED_MAX / 2];
            let named = &self.named;
            self.weights.retain(|key, weight| *weight > least || named.contains_key(key));
        }
        while self.kept.len() > KEPT_MAX {
            let oldest = self.kept.iter().min_by_key(|(_, (since, _))| *since).map(|(key, _)| key.clone());
            oldest.and_then(|key| self.kept.remove(&key));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, Clone, PartialEq)]
    struct Count(u64);

    impl Sums for Count {
        fn add(&mut self, more: &Count) {
            self.0 += more.0;
        }
    }

    #[test]
    fn a_group_keeps_no_more_than_its_share_from_others() {
        let mut sums: Named<(&str, u32), Count> = Named::in_groups(4, 2, |(group, _)| Some(group));
        let of = |keys: &[(&'static str, u32)], weight| {
            keys.iter().map(|key| (Some(*key), (Count(1), weight))).collect::<BTreeMap<_, _>>()
        };
        let names =
            |sums: &Named<(&'static str, u32), Count>| sums.named().keys().copied().collect::<Vec<_>>();
        sums.take(0, of(&[("a", 1), ("a", 2), ("a", 3), ("a", 4)], 1e9));
        assert_eq!(names(&sums).len(), 4, "nobody else wants the places");
        sums.take(0, of(&[("db", 1)], 1.0));
        sums.take(0, of(&[("kv", 1)], 1.0));
        assert_eq!(names(&sums), [("a", 3), ("a", 4), ("db", 1), ("kv", 1)]);
        // It gets them back for none of its own, however much it has.
        sums.take(0, of(&[("a", 5), ("a", 6), ("a", 7), ("a", 8)], 1e12));
        assert_eq!(names(&sums).iter().filter(|(group, _)| *group == "a").count(), 2);
        assert!(names(&sums).contains(&("db", 1)) && names(&sums).contains(&("kv", 1)));
    }

    #[test]
    fn what_is_kept_is_bounded_however_many_lose_their_place() {
        let mut sums = Named::new(8);
        for interval in 0..400_u64 {
            // Each has four times what those before had, as weights fade: all eight lose their place at once.
            let weight = 4_f64.powi(interval as i32);
            let fresh = (0..8).map(|at| (Some(8 * interval + at), (Count(1), weight))).collect();
            sums.take(10_000, fresh);
        }
        assert_eq!(sums.named().len(), 8);
        assert!(sums.named().keys().all(|key| *key >= 8 * 399), "{:?}", sums.named());
        assert_eq!(sums.kept.len(), KEPT_MAX);
        assert!(sums.kept.keys().all(|key| *key >= 8 * 399 - KEPT_MAX as u64), "the latest are kept");
        assert!(sums.weights.len() <= WEIGHED_MAX);
    }
}
