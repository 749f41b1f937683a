//! Bulk writers who write past the page cache: whether there are any, which cgroup of them can be throttled, and what
//! comes of a throttle. No limit of dirty pages holds them.

use std::collections::{HashMap, VecDeque};

use super::{Bulk, Life, Writer};

/// The kernel tells late and in lumps which process writes, so it is judged over so long.
const WINDOW_NS: u64 = 3_000_000_000;
/// Looks that fall short of the window by this much fill it all the same.
const SHORT_NS: u64 = 200_000_000;
/// Less than this, in bytes a second, is no flood ([`super::Parameters::slack_bytes`]).
pub(crate) const LEAST_PER_SECOND: f64 = (4 << 20) as f64;
/// At least this share of what bulk writers wrote is past the page cache, or it is not worth another limit.
const MOSTLY: f64 = 0.5;
/// A bulk writer with a smaller share is not worth holding.
pub(crate) const COUNTS: f64 = 0.05;

/// One look, as far as this needs it. Counts are of the time since the look before.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Traffic {
    /// Since the look before.
    pub elapsed_ns: u64,
    /// Written to the device, by all.
    pub written_bytes: u64,
    /// Its largest bulk writers, and what each wrote.
    pub writers: Vec<Sender>,
    /// What all bulk writers wrote, and those of whom it is not known where.
    pub bulk_bytes: u64,
}

/// A bulk writer, as far as it is told how it writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sender {
    /// It, and what it wrote, into the page cache or past it.
    pub writer: Writer,
    /// It has a file open to be written past the page cache.
    pub is_direct: bool,
}

/// The last seconds of one device.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    looks: VecDeque<Traffic>,
}

impl Watch {
    /// Takes in a look and forgets what is too old.
    pub fn push(&mut self, traffic: Traffic) {
        self.looks.push_back(traffic);
        let mut held = self.elapsed_ns();
        while let Some(first) = self.looks.front().filter(|look| held >= WINDOW_NS + look.elapsed_ns) {
            held -= first.elapsed_ns;
            self.looks.pop_front();
        }
    }

    fn elapsed_ns(&self) -> u64 {
        self.looks.iter().map(|look| look.elapsed_ns).sum()
    }

    /// Bulk writers whose share counts, most first.
    pub fn writers(&self) -> Vec<Writer> {
        let mut writers = self.all_writers();
        let all: u64 = writers.iter().map(|writer| writer.bytes).sum();
        writers.retain(|writer| writer.bytes as f64 >= COUNTS * all as f64);
        writers
    }

    /// Every bulk writer, most first. Another account may have as many as it likes: a flood of many small ones is one all the
    /// same.
    pub fn all_writers(&self) -> Vec<Writer> {
        let mut by_life: HashMap<Life, Writer> = HashMap::new();
        for Sender { writer, .. } in self.looks.iter().flat_map(|look| &look.writers) {
            let none = || Writer { bytes: 0, ..writer.clone() };
            by_life.entry(writer.life()).or_insert_with(none).bytes += writer.bytes;
        }
        let mut writers: Vec<Writer> = by_life.into_values().collect();
        writers.sort_by_key(|writer| (std::cmp::Reverse(writer.bytes), writer.pid));
        writers
    }

    /// What bulk writers wrote, those included who are not named.
    pub fn bulk_bytes(&self) -> u64 {
        let named = |look: &Traffic| look.writers.iter().map(|sender| sender.writer.bytes).sum::<u64>();
        self.looks.iter().map(|look| look.bulk_bytes.max(named(look))).sum()
    }

    /// Whether others than these bulk writers flood the device, into the page cache or past it, and write more than these.
    pub fn is_flooded_by_others(&self, is_one: impl Fn(Life) -> bool) -> bool {
        let (ours, others): (Vec<Writer>, Vec<Writer>) =
            self.all_writers().into_iter().partition(|writer| is_one(writer.life()));
        let sum = |writers: &[Writer]| writers.iter().map(|writer| writer.bytes).sum::<u64>() as f64;
        let least = LEAST_PER_SECOND * self.elapsed_ns() as f64 / 1e9;
        sum(&others) > least.max(sum(&ours))
    }

    /// Whether bulk writers flood the device, and most of what they write is of those who go past the page cache.
    pub fn is_past_the_page_cache(&self) -> bool {
        let elapsed_ns = self.elapsed_ns();
        let senders = || self.looks.iter().flat_map(|look| &look.writers);
        let sum = |senders: &mut dyn Iterator<Item = &Sender>| {
            senders.map(|sender| sender.writer.bytes).sum::<u64>() as f64
        };
        let bulk = sum(&mut senders());
        let direct = sum(&mut senders().filter(|sender| sender.is_direct));
        let written = self.looks.iter().map(|look| look.written_bytes).sum::<u64>() as f64;
        elapsed_ns + SHORT_NS >= WINDOW_NS
            && bulk > LEAST_PER_SECOND * elapsed_ns as f64 / 1e9
            && direct >= MOSTLY * bulk
            // They may have files open on several devices.
            && written >= MOSTLY * bulk
    }
}

/// Where a bulk writer's I/O counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lodging {
    /// The cgroup's path.
    pub path: String,
    /// It is the root, which holds everybody who is in no other.
    pub is_root: bool,
    /// Somebody in it who must not be throttled, by name.
    pub shared_with: Option<String>,
}

/// Whether one cgroup holds all bulk writers and nobody else who counts; `None` is one without a limit.
///
/// # Errors
/// Why not, as a part of a sentence.
pub fn alone(found: &[(Writer, Option<Lodging>)]) -> Result<(), String> {
    let Some((Writer { comm: who, .. }, lodging)) = found.first() else {
        return Err("who wrote has ended".to_string());
    };
    let Some(lodging) = lodging else {
        return Err(format!("the kernel offers no limit for the cgroup of {who}"));
    };
    let is_elsewhere =
        |other: &Option<Lodging>| other.as_ref().is_none_or(|other| other.path != lodging.path);
    if let Some((other, _)) = found.iter().find(|(_, other)| is_elsewhere(other)) {
        return Err(format!("{who} and {} are not in one cgroup", other.comm));
    }
    if lodging.is_root {
        return Err(format!("{who} is in the root cgroup: it cannot be throttled alone"));
    }
    lodging.shared_with.as_ref().map_or(Ok(()), |other| {
        Err(format!("{who} shares its cgroup {} with {other}: it cannot be throttled alone", lodging.path))
    })
}

/// A process that writes at this share of what a throttle lets through feels it: requests come in lumps.
const FELT: f64 = 0.8;
/// The effect of a throttle is judged over so long.
const EFFECT_NS: u64 = 5_000_000_000;
/// A process that writes so many times what a throttle lets through is not held by it.
const ESCAPED: f64 = 2.0;

#[derive(Debug, Clone, Copy)]
struct Let {
    elapsed_ns: u64,
    bytes: u64,
    through: f64,
}

/// What a throttled cgroup does.
#[derive(Debug, Clone, Default)]
pub struct Throttled {
    /// Written and, by the throttle, not yet let through: a write is counted when it is sent, and then it waits.
    owed_bytes: f64,
    looks: VecDeque<Let>,
    /// Since it wrote last.
    idle_ns: u64,
}

impl Throttled {
    /// Takes in a look: how long, what the group sent, and the limit meanwhile in bytes for a tenth of a second; `None`
    /// where none was in force.
    pub fn push(&mut self, elapsed_ns: u64, bytes: u64, limit_bytes: Option<u64>) {
        self.idle_ns = if bytes > 0 { 0 } else { self.idle_ns + elapsed_ns };
        let Some(limit_bytes) = limit_bytes else {
            (self.owed_bytes, self.looks) = (0.0, VecDeque::new());
            return;
        };
        let per_second = limit_bytes as f64 * 10.0;
        let through = per_second * elapsed_ns as f64 / 1e9;
        // A second's worth, or what was sent at once.
        let most = per_second.max(bytes as f64).max(self.owed_bytes);
        self.owed_bytes = ((self.owed_bytes + bytes as f64).min(most) - FELT * through).max(0.0);
        self.looks.push_back(Let { elapsed_ns, bytes, through });
        let mut held: u64 = self.looks.iter().map(|look| look.elapsed_ns).sum();
        while let Some(first) = self.looks.front().filter(|look| held >= EFFECT_NS + look.elapsed_ns) {
            held -= first.elapsed_ns;
            self.looks.pop_front();
        }
    }

    /// Whether the group waits for the throttle.
    pub fn is_held(&self) -> bool {
        self.owed_bytes > 0.0
    }

    /// Since when it has written nothing, in nanoseconds.
    pub fn idle_ns(&self) -> u64 {
        self.idle_ns
    }

    /// Whether it writes on as if there were no throttle.
    pub fn escapes(&self) -> bool {
        let elapsed_ns: u64 = self.looks.iter().map(|look| look.elapsed_ns).sum();
        let bytes: u64 = self.looks.iter().map(|look| look.bytes).sum();
        // Requests that are sent at once wait as a whole.
        let lump = self.looks.iter().map(|look| look.bytes).max().unwrap_or(0);
        let through: f64 = self.looks.iter().map(|look| look.through).sum();
        elapsed_ns + SHORT_NS >= EFFECT_NS && (bytes - lump) as f64 > ESCAPED * through
    }

    /// Adds to what was seen of bulk writers what the kernel does not say: it tells who waits for dirty pages, not who
    /// waits for a throttle.
    pub fn tell(&self, bulk: &mut Bulk, elapsed_ns: u64) {
        if self.is_held() {
            bulk.held_back += 1;
            bulk.held_back_ns += elapsed_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;
    const LOOK_NS: u64 = 100_000_000;

    fn writer(pid: u32, comm: &str, bytes: u64) -> Writer {
        Writer { pid, comm: comm.to_string(), bytes, start_ns: 0 }
    }

    fn sender(writer: Writer, is_direct: bool) -> Sender {
        Sender { writer, is_direct }
    }

    #[test]
    fn a_flood_of_direct_writers_is_past_the_page_cache() {
        // (looks, what dd writes directly, what cp writes and what the device took a look in MB)
        for (name, looks, direct, buffered, written, expected) in [
            ("direct", 30, 20, 0, 23, true),
            ("direct, only just begun", 20, 20, 0, 20, false),
            ("a copy", 30, 0, 20, 20, false),
            ("mostly direct", 30, 20, 19, 40, true),
            ("mostly a copy", 30, 20, 21, 40, false),
            ("direct, to another device", 30, 20, 0, 1, false),
            ("a few", 30, 0, 0, 5, false),
        ] {
            let mut watch = Watch::default();
            for _ in 0..looks {
                let writers = vec![
                    sender(writer(7, "dd", direct * MB), true),
                    sender(writer(8, "cp", buffered * MB), false),
                ];
                watch.push(Traffic {
                    elapsed_ns: LOOK_NS,
                    written_bytes: written * MB,
                    writers,
                    bulk_bytes: 0,
                });
            }
            assert_eq!(watch.is_past_the_page_cache(), expected, "{name}");
        }
    }

    #[test]
    fn writers_that_count_are_named_and_old_ones_forgotten() {
        let mut watch = Watch::default();
        let look = |writers: &[Writer]| {
            let writers = writers.iter().map(|writer| sender(writer.clone(), true)).collect();
            Traffic { elapsed_ns: LOOK_NS, written_bytes: MB, writers, bulk_bytes: 0 }
        };
        watch.push(look(&[writer(1, "cp", 900 * MB)]));
        for _ in 0..31 {
            watch.push(look(&[
                writer(2, "journald", MB),
                writer(3, "dd", 20 * MB),
                writer(4, "tar", 30 * MB),
            ]));
        }
        let names: Vec<String> = watch.writers().into_iter().map(|writer| writer.comm).collect();
        assert_eq!(names, ["tar", "dd"]);
        for (ours, by_others) in [(3, true), (4, false), (2, true)] {
            assert_eq!(watch.is_flooded_by_others(|life| life.pid == ours), by_others, "beside {ours}");
        }
        (0..30).for_each(|_| watch.push(look(&[writer(3, "dd", 100_000)])));
        assert!(!watch.is_flooded_by_others(|_| false), "so little is no flood");
    }

    /// Each of them writes too little to count alone.
    #[test]
    fn a_flood_of_many_small_writers_is_one() {
        let mut watch = Watch::default();
        for look in 0..30 {
            let writers = (0..100).map(|pid| sender(writer(1 + pid + 100 * (look % 2), "dd", MB), false));
            watch.push(Traffic {
                elapsed_ns: LOOK_NS,
                written_bytes: 100 * MB,
                writers: writers.collect(),
                bulk_bytes: 0,
            });
        }
        assert!(watch.is_flooded_by_others(|_| false));
        assert_eq!((watch.writers().len(), watch.all_writers().len()), (0, 200));
    }

    #[test]
    fn one_cgroup_of_all_bulk_writers_alone_is_throttled() {
        let lodging = |path: &str, shared_with: Option<&str>| {
            Some(Lodging {
                path: path.to_string(),
                is_root: path == "/",
                shared_with: shared_with.map(str::to_string),
            })
        };
        let (dd, cp) = (writer(7, "dd", 1), writer(8, "cp", 1));
        for (found, expected) in [
            (vec![(dd.clone(), lodging("/b", None)), (cp.clone(), lodging("/b", None))], Ok(())),
            (
                vec![(dd.clone(), lodging("/b", Some("mariadbd")))],
                Err("dd shares its cgroup /b with mariadbd: it cannot be throttled alone"),
            ),
            (
                vec![(dd.clone(), lodging("/", None))],
                Err("dd is in the root cgroup: it cannot be throttled alone"),
            ),
            (
                vec![(dd.clone(), lodging("/b", None)), (cp.clone(), lodging("/c", None))],
                Err("dd and cp are not in one cgroup"),
            ),
            (vec![(dd.clone(), None)], Err("the kernel offers no limit for the cgroup of dd")),
            (vec![], Err("who wrote has ended")),
        ] {
            assert_eq!(alone(&found), expected.map_err(str::to_string), "{found:?}");
        }
    }

    /// What it is after so many looks with these bytes each, or in a lump every so many looks, at 1 MB in a tenth of a
    /// second.
    fn after(looks: u64, bytes: u64, every: u64) -> Throttled {
        let mut throttled = Throttled::default();
        for look in 0..looks {
            let bytes = if look % every == 0 { bytes * every } else { 0 };
            throttled.push(LOOK_NS, bytes, Some(MB));
        }
        throttled
    }

    #[test]
    fn who_writes_what_a_throttle_lets_through_is_held_by_it() {
        for (name, throttled, held, escapes) in [
            ("all that it may", after(100, MB, 1), true, false),
            ("nearly", after(100, MB * 9 / 10, 1), true, false),
            ("a lump that takes four seconds", after(99, MB, 40), true, false),
            ("half of it", after(100, MB / 2, 1), false, false),
            ("three times as much", after(100, 3 * MB, 1), true, true),
            ("the same, but not for long", after(30, 3 * MB, 1), true, false),
            ("nothing", after(100, 0, 1), false, false),
        ] {
            assert_eq!((throttled.is_held(), throttled.escapes()), (held, escapes), "{name}");
        }
        let mut throttled = after(50, 9 * MB, 1);
        throttled.push(LOOK_NS, 9 * MB, None);
        assert!(!throttled.is_held() && !throttled.escapes(), "there is nothing that could hold it");
        (0..20).for_each(|_| throttled.push(LOOK_NS, 0, Some(MB)));
        assert_eq!(throttled.idle_ns(), 20 * LOOK_NS);
    }

    #[test]
    fn a_held_group_shows_as_bulk_writers_that_are_held_back() {
        let mut bulk = Bulk::default();
        after(100, MB, 1).tell(&mut bulk, LOOK_NS);
        assert_eq!((bulk.held_back, bulk.held_back_ns), (1, LOOK_NS));
        let mut bulk = Bulk::default();
        after(100, 0, 1).tell(&mut bulk, LOOK_NS);
        assert_eq!(bulk, Bulk::default());
    }
}
