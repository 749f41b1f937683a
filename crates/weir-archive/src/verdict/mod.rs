//! What was normal, what was not, when it began, whose doing it was, and what changed then. Rules over made-up or real series.
//!
//! *Normal* is the median over the intervals before the time that is asked about where there are enough of them, else over
//! all: a median is not moved by trouble that lasts less than half of the time. A *trouble* is a run of intervals in
//! which syncs of a user took far longer than they normally do, or were far fewer; or in which a device did.

mod cause;
mod normal;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use weir_core::units::{Nanos, significant};

use crate::series::{Series, Slot, User, UserSlot, quantile};
use crate::tables::Event;
pub use normal::{NormalDevice, NormalUser};
use normal::{Normals, is_stacked};

/// A sync's 99th percentile is far over normal from this multiple on, and this much.
const SLOW_TIMES: i64 = 4;
const SLOW_BY_NS: i64 = 2_000_000;
/// Syncs are far fewer below this share of their normal rate, where there are normally so many an interval.
const FEW_SHARE: f64 = 0.3;
const FEW_FROM: f64 = 20.0;
/// Slow syncs are trouble where they took so much of a thread's time more than they normally do.
const ADDED_SHARE: f64 = 0.05;
/// Of one who synced in fewer intervals it is not known what is normal.
const KNOWN_FROM: usize = 5;
/// Few commits say nothing for a shorter time.
const FEW_MS: i64 = 5_000;
/// Troubles that are told: those that lasted longest or took most time.
const TOLD_MOST: usize = 12;
/// Syncs stand still where so much of a thread's interval is spent in them and none returns.
const STUCK_SHARE: f64 = 0.5;
/// Syncs of up to so many times their normal length are as fast as usual.
const USUAL_TIMES: i64 = 2;
/// Slow syncs, stalls and snapshots that are listed, of each.
const LISTED_MOST: usize = 5;
/// An interval without trouble, or so much time, does not end one.
const GAP_MS: i64 = 5_000;
/// Events this long before trouble began may have to do with it.
const BEFORE_MS: i64 = 60_000;
/// A process that moves so much a second, and so many times what it does normally, is a change.
const LOAD_BYTES_PER_S: i64 = 1_000_000;
const LOAD_TIMES: i64 = 5;

/// What is to be said of a stretch of time.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Verdict {
    /// Its start, Unix time, ms.
    pub since_ms: i64,
    /// Its end.
    pub until_ms: i64,
    /// Intervals in it.
    pub intervals: usize,
    /// Intervals that normal was taken from.
    pub normal_from: usize,
    /// What is normal for syncs.
    pub users: Vec<NormalUser>,
    /// What is normal for devices.
    pub devices: Vec<NormalDevice>,
    /// What was not normal, in order of time.
    pub troubles: Vec<Trouble>,
    /// Lesser ones that are not told.
    pub untold: usize,
    /// The slowest syncs, the slowest first.
    pub slowest: Vec<Event>,
    /// Devices that stood still, the longest first.
    pub stalls: Vec<Event>,
    /// The last snapshots.
    pub snapshots: Vec<Event>,
    /// The unit, or name of processes, that was asked about, where no sync of it was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unseen: Option<String>,
    /// The device that was asked about, where no I/O of it was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unseen_device: Option<String>,
    /// Time of the stretch in which nothing was recorded, ms.
    pub unrecorded_ms: i64,
    /// Sentences: what was not seen.
    pub blind: Vec<String>,
}

/// What was not normal.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trouble {
    /// When it began, Unix time, ms, to an interval.
    pub begin_ms: i64,
    /// When it ended.
    pub end_ms: i64,
    /// Whose syncs; nobody's where only a device was not as usual.
    pub user: Option<User>,
    /// What was seen of them.
    pub syncs: Option<Seen>,
    /// Why.
    pub cause: Cause,
    /// What changed at its beginning.
    pub changes: Vec<Change>,
}

impl Trouble {
    /// What it is measured by: the time that slow syncs took, else how long it lasted.
    fn weight_ns(&self) -> i64 {
        let lasted_ns = (self.end_ms - self.begin_ms).saturating_mul(1_000_000);
        match (&self.cause, &self.syncs) {
            (Cause::FewerNotStorage { .. } | Cause::FewerBusy { .. }, _) | (_, None) => lasted_ns,
            (_, Some(seen)) => seen.wall_ns,
        }
    }
}

/// Syncs in trouble beside normal ones.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Seen {
    /// A second.
    pub per_s: f64,
    /// Normally: in the middle one of the intervals.
    pub normal_per_s: f64,
    /// On average over those.
    pub normal_mean_per_s: f64,
    /// Median, ns; `None` where none returned.
    pub p50_ns: Option<i64>,
    /// Normally.
    pub normal_p50_ns: i64,
    /// 99th percentile, ns.
    pub p99_ns: Option<i64>,
    /// Normally.
    pub normal_p99_ns: i64,
    /// The longest that returned, ns.
    pub max_ns: Option<i64>,
    /// Time inside syncs, ns, summed over threads.
    pub wall_ns: i64,
}

impl Seen {
    /// Whether each took about as long as normally.
    fn is_usual(&self) -> bool {
        let usual = |ns: Option<i64>, normal_ns: i64| ns.is_none_or(|ns| ns <= USUAL_TIMES * normal_ns);
        usual(self.p50_ns, self.normal_p50_ns) && usual(self.p99_ns, self.normal_p99_ns)
    }
}

/// Why.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Cause {
    /// The device served somebody else.
    Flood {
        /// Whom.
        culprit: User,
        /// How its I/O got there.
        way: String,
        /// Share of the syncs' time that was spent behind it.
        share: f64,
        /// Share behind everybody else's I/O together.
        all_others: f64,
        /// What the culprit's processes read, wrote or handed to the page cache, bytes a second on average.
        bytes_per_s: i64,
    },
    /// A device served less than it normally does, and each request took longer.
    SlowDevice {
        /// Which.
        device: String,
        /// Bytes a second while it was busy.
        bytes_per_s: i64,
        /// Normally.
        normal_bytes_per_s: i64,
        /// Mean time of a request, ns.
        request_ns: i64,
        /// Normally.
        normal_request_ns: i64,
        /// Share of the syncs' time spent in the device, where there were syncs.
        share: Option<f64>,
    },
    /// Each request took longer in the device, which moved no less.
    LateDevice {
        /// Share of the syncs' time spent in the device or in its queue.
        share: f64,
    },
    /// Syncs were made to wait before the device: by a limit of a cgroup, a full queue, or pauses of writers.
    Throttled {
        /// Share of the syncs' time.
        share: f64,
    },
    /// The time of syncs went elsewhere than to storage.
    NotStorage {
        /// Where most of it went: lock, processor, kernel.
        place: String,
        /// Share of the syncs' time.
        share: f64,
    },
    /// Commits were fewer and each sync was as fast as ever: who committed waited for something else, or had nothing to commit.
    FewerNotStorage {
        /// How busy the busiest device was, percent.
        busiest_percent: i64,
        /// Its normal.
        normal_percent: i64,
    },
    /// Commits were few and each sync was as fast as ever, while a device was far busier than normally: who committed may have
    /// waited for it elsewhere than in a sync, such as in a write that the kernel held.
    FewerBusy {
        /// Which device.
        device: String,
        /// How busy it was, percent.
        busy_percent: i64,
        /// Its normal.
        normal_percent: i64,
        /// Behind whose I/O others' syncs were most of all, ...
        culprit: Option<User>,
        /// ... and for which share of their time.
        share: f64,
    },
    /// Nothing that was recorded says why.
    Unclear,
}

/// Something that changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Change {
    /// A process began to move far more than it normally does.
    Load {
        /// Who.
        user: User,
        /// Bytes a second in the interval in which it began.
        bytes_per_s: i64,
        /// Normally.
        normal_bytes_per_s: i64,
    },
    /// A recorded event: a knob, a decision of the guard, a device that stood still, a clock that was set.
    Event(Event),
}

/// What is to be said of `[since_ms, until_ms)`, which has passed. The series may begin before it, so that normal is known.
pub fn judge(series: &Series, since_ms: i64, until_ms: i64) -> Verdict {
    let normals = Normals::of(series, since_ms);
    let inside: Vec<(i64, &Slot)> =
        series.slots.range(since_ms..until_ms).map(|(ts_ms, slot)| (*ts_ms, slot)).collect();
    let mut places: BTreeMap<&User, Vec<usize>> = BTreeMap::new();
    for (at, (_, slot)) in inside.iter().enumerate() {
        slot.users.keys().for_each(|user| places.entry(user).or_default().push(at));
    }
    let mut troubles = Vec::new();
    for (user, normal) in &normals.users {
        let places = places.remove(user).unwrap_or_default();
        troubles.extend(of_user(&inside, places, &normals, normal));
    }
    troubles.extend(of_devices(&inside, &normals, &troubles));
    troubles.sort_by_key(|trouble| std::cmp::Reverse(trouble.weight_ns()));
    let untold = troubles.len().saturating_sub(TOLD_MOST);
    troubles.truncate(TOLD_MOST);
    for trouble in &mut troubles {
        trouble.changes = changes(series, &inside, &normals, trouble.begin_ms);
    }
    troubles.sort_by_key(|trouble| (trouble.begin_ms, trouble.end_ms));
    let of_kind = |kind: &'static str| {
        let is_meant =
            move |event: &&Event| event.kind == kind && event.ts_ms >= since_ms && event.ts_ms < until_ms;
        series.events.iter().filter(is_meant).cloned().collect::<Vec<Event>>()
    };
    let longest = |mut events: Vec<Event>| {
        events.sort_by_key(|event| std::cmp::Reverse(event.took_ns));
        events.truncate(LISTED_MOST);
        events
    };
    let unrecorded_ms = unrecorded_ms(&inside, since_ms, until_ms);
    let has_device = |device: &String| inside.iter().any(|(_, slot)| slot.devices.contains_key(device));
    let unseen_device = series.device.clone().filter(|device| !has_device(device));
    let mut blind = blind(series, &inside, unrecorded_ms);
    blind.extend(unseen_device.iter().map(|device| format!("no I/O of {device} was recorded")));
    blind.extend(not_seen(series, since_ms, until_ms));
    let mut snapshots = of_kind("snapshot");
    snapshots.drain(..snapshots.len().saturating_sub(LISTED_MOST));
    Verdict {
        since_ms,
        until_ms,
        intervals: inside.len(),
        normal_from: normals.from,
        users: normals.users.into_values().collect(),
        devices: normals.devices.into_values().collect(),
        troubles,
        untold,
        slowest: longest(of_kind("slow_sync")),
        stalls: longest(of_kind("stall")),
        snapshots,
        unseen: series.unit.clone().filter(|_| has_no_syncs(&inside)),
        unseen_device,
        unrecorded_ms,
        blind,
    }
}

/// How an interval of a user's syncs was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Usual,
    Slow,
    Few,
}

fn state(slot: &Slot, user: &User, normal: &NormalUser) -> State {
    let none = UserSlot::default();
    let syncs = slot.users.get(user).unwrap_or(&none);
    let p99_ns = quantile(&syncs.latency, 0.99);
    let stuck = p99_ns.is_none() && syncs.wall_ns() as f64 > STUCK_SHARE * slot.span_ms as f64 * 1e6;
    let counts = is_much(added_ns(slot, user, normal), slot.span_ms);
    if normal.intervals < KNOWN_FROM {
        return State::Usual;
    }
    if counts && (p99_ns.is_some_and(|ns| is_over(ns, normal)) || stuck) {
        return State::Slow;
    }
    let normally = normal.per_s * slot.span_ms as f64 / 1e3;
    let is_few = normally >= FEW_FROM && (syncs.count() as f64) < FEW_SHARE * normally;
    if is_few { State::Few } else { State::Usual }
}

/// Whether so long is far over a normal 99th percentile.
fn is_over(ns: i64, normal: &NormalUser) -> bool {
    ns > SLOW_TIMES * normal.p99_ns && ns - normal.p99_ns > SLOW_BY_NS && 2 * ns > 3 * normal.p99_high_ns
}

/// Trouble lasts until its open syncs have returned. In the interval in which they do, others may be as fast as usual again, and as many.
fn outlast(inside: &[(i64, &Slot)], states: &mut [State], user: &User, normal: &NormalUser) {
    for (at, pair) in inside.windows(2).enumerate() {
        if states[at] != State::Slow {
            continue;
        }
        let open_ns = STUCK_SHARE * pair[0].1.span_ms as f64 * 1e6;
        let longest_ns = pair[1].1.users.get(user).and_then(|syncs| syncs.latency.keys().next_back());
        let was_open = longest_ns.is_some_and(|ns| *ns as f64 > open_ns && is_over(*ns, normal));
        if was_open {
            states[at + 1] = State::Slow;
        }
    }
}

/// Time that syncs took beyond what so many of them normally do.
fn added_ns(slot: &Slot, user: &User, normal: &NormalUser) -> f64 {
    let of = |syncs: &UserSlot| syncs.wall_ns() as f64 - normal.mean_ns() * syncs.count() as f64;
    slot.users.get(user).map_or(0.0, of)
}

/// Whether so much added time explains anything.
fn is_much(added_ns: f64, span_ms: i64) -> bool {
    added_ns > ADDED_SHARE * span_ms as f64 * 1e6
}

/// Runs of intervals in one state, as ranges of places. Short interruptions do not end one where `is_one` holds of all of it; time in
/// which nothing was recorded does, since nobody knows how it was then.
fn runs(
    slots: &[(i64, &Slot)],
    states: &[State],
    wanted: State,
    is_one: impl Fn(std::ops::Range<usize>) -> bool,
) -> Vec<std::ops::Range<usize>> {
    let mut runs: Vec<std::ops::Range<usize>> = Vec::new();
    for at in (0..states.len()).filter(|at| states[*at] == wanted) {
        let is_recorded = |pair: &[(i64, &Slot)]| {
            let (ts_ms, slot) = pair[0];
            pair[1].0 - (ts_ms + slot.span_ms) <= GAP_MS + slot.span_ms
        };
        let is_near = |end: usize| {
            (at - end <= 1 || slots[at].0 - slots[end].0 <= GAP_MS)
                && slots[end - 1..=at].windows(2).all(is_recorded)
        };
        match runs.last_mut() {
            Some(last) if is_near(last.end) && is_one(last.start..at + 1) => last.end = at + 1,
            _ => runs.push(at..at + 1),
        }
    }
    runs
}

/// `places` are those of `inside` in which the user has a row.
fn of_user(
    inside: &[(i64, &Slot)],
    places: Vec<usize>,
    normals: &Normals,
    normal: &NormalUser,
) -> Vec<Trouble> {
    let user = &normal.user;
    // Who does not normally sync is slow where there are syncs, and nowhere few.
    let places = if normal.per_s > 0.0 { (0..inside.len()).collect() } else { places };
    let mut states = vec![State::Usual; inside.len()];
    places.into_iter().for_each(|at| states[at] = state(inside[at].1, user, normal));
    if states.iter().all(|state| *state == State::Usual) {
        return Vec::new();
    }
    outlast(inside, &mut states, user, normal);
    // Syncs and milliseconds before each interval.
    let mut until = vec![(0, 0)];
    for (_, slot) in inside {
        let (n, ms) = until[until.len() - 1];
        until.push((n + slot.users.get(user).map_or(0, UserSlot::count), ms + slot.span_ms));
    }
    let mut troubles = Vec::new();
    for wanted in [State::Slow, State::Few] {
        // An interruption with many commits is no part of a time with few.
        let is_few = |run: std::ops::Range<usize>| {
            let [(begin_n, begin_ms), (end_n, end_ms)] = [until[run.start], until[run.end]];
            ((end_n - begin_n) * 1000) as f64 / ((end_ms - begin_ms).max(1) as f64) < FEW_SHARE * normal.per_s
        };
        let is_one = |run| wanted == State::Slow || is_few(run);
        for run in runs(inside, &states, wanted, is_one) {
            let slots = &inside[run];
            // One interval with few commits says nothing.
            let lasted_ms = slots.iter().map(|(_, slot)| slot.span_ms).sum::<i64>();
            if wanted == State::Few && (slots.len() < 2 || lasted_ms < FEW_MS) {
                continue;
            }
            // What is few where others are slow at the same time is part of the same trouble.
            let overlaps = |trouble: &Trouble| {
                let (begin_ms, end_ms) = ends(slots);
                wanted == State::Few && trouble.begin_ms <= end_ms && begin_ms <= trouble.end_ms
            };
            if troubles.iter().any(overlaps) {
                continue;
            }
            let (begin_ms, end_ms) = ends(slots);
            let syncs = seen(slots, user, normal);
            let added_ns = slots.iter().map(|(_, slot)| added_ns(slot, user, normal)).sum();
            // Slow ones that hardly take time are not why there are few.
            let cause = match wanted {
                State::Few if syncs.is_usual() || !is_much(added_ns, lasted_ms) => {
                    cause::of_few(slots, user, normals)
                }
                _ => cause::of_slow(slots, user, normals, normal),
            };
            let syncs = Some(syncs);
            let user = Some(user.clone());
            troubles.push(Trouble { begin_ms, end_ms, user, syncs, cause, changes: Vec::new() });
        }
    }
    troubles
}

/// Start of the first interval and end of the last.
fn ends(slots: &[(i64, &Slot)]) -> (i64, i64) {
    let begin_ms = slots.first().map_or(0, |(ts_ms, _)| *ts_ms);
    (begin_ms, slots.last().map_or(0, |(ts_ms, slot)| ts_ms + slot.span_ms))
}

fn seconds(slots: &[(i64, &Slot)]) -> f64 {
    (slots.iter().map(|(_, slot)| slot.span_ms).sum::<i64>() as f64 / 1e3).max(1e-3)
}

fn seen(slots: &[(i64, &Slot)], user: &User, normal: &NormalUser) -> Seen {
    let mut all = crate::series::Histogram::new();
    let mut wall_ns = 0;
    for syncs in slots.iter().filter_map(|(_, slot)| slot.users.get(user)) {
        syncs.latency.iter().for_each(|(low, n)| *all.entry(*low).or_default() += n);
        wall_ns += syncs.wall_ns();
    }
    Seen {
        per_s: all.values().sum::<i64>() as f64 / seconds(slots),
        normal_per_s: normal.per_s,
        normal_mean_per_s: normal.mean_per_s,
        p50_ns: quantile(&all, 0.5),
        normal_p50_ns: normal.p50_ns,
        p99_ns: quantile(&all, 0.99),
        normal_p99_ns: normal.p99_ns,
        max_ns: all.keys().next_back().copied(),
        wall_ns,
    }
}

/// Devices that were slow, where that is not why somebody's syncs suffered.
fn of_devices(inside: &[(i64, &Slot)], normals: &Normals, known: &[Trouble]) -> Vec<Trouble> {
    let mut troubles = Vec::new();
    for (device, normal) in &normals.devices {
        let is_slow = |(_, slot): &(i64, &Slot)| {
            slot.devices.get(device).is_some_and(|at| cause::is_slow_device(&[at], normal))
        };
        let states: Vec<State> =
            inside.iter().map(|slot| if is_slow(slot) { State::Slow } else { State::Usual }).collect();
        for run in runs(inside, &states, State::Slow, |_| true).into_iter().filter(|run| run.len() > 1) {
            let slots = &inside[run];
            let (begin_ms, end_ms) = ends(slots);
            // A stacked device and one below it are slow together.
            let is_same = |named: &str| named == device || is_stacked(named) || is_stacked(device);
            let is_known = known.iter().any(|trouble| {
                trouble.begin_ms <= end_ms
                    && begin_ms <= trouble.end_ms
                    && matches!(&trouble.cause, Cause::SlowDevice { device: named, .. } if is_same(named))
            });
            if !is_known {
                let cause = cause::slow_device(slots, device, normal, None);
                let (user, syncs, changes) = (None, None, Vec::new());
                troubles.push(Trouble { begin_ms, end_ms, user, syncs, cause, changes });
            }
        }
    }
    troubles
}

/// What changed about when trouble began.
fn changes(series: &Series, inside: &[(i64, &Slot)], normals: &Normals, begin_ms: i64) -> Vec<Change> {
    let Some((_, first)) = inside.iter().find(|(ts_ms, _)| *ts_ms == begin_ms) else { return Vec::new() };
    // A setting is read at the end of the interval in which it changed, and its event has that time.
    let near = begin_ms - BEFORE_MS..=begin_ms + first.span_ms;
    let of_note = |event: &&Event| {
        matches!(event.kind.as_str(), "knob" | "guard" | "clock" | "stall") && near.contains(&event.ts_ms)
    };
    let mut changes: Vec<Change> = series.events.iter().filter(of_note).cloned().map(Change::Event).collect();
    let mut loads: Vec<(&User, i64, i64)> = Vec::new();
    // The process may have begun at the end of the interval: the next one counts, too.
    let beginning = inside.iter().filter(|(ts_ms, _)| *ts_ms >= begin_ms).take(2);
    for (_, slot) in beginning {
        for (user, (read, written)) in &slot.processes {
            let bytes_per_s = (read + written) * 1000 / slot.span_ms.max(1);
            let normal_bytes_per_s = normals.loads.get(user).copied().unwrap_or(0);
            let is_new = bytes_per_s >= LOAD_BYTES_PER_S && bytes_per_s >= LOAD_TIMES * normal_bytes_per_s;
            if is_new && !loads.iter().any(|(known, ..)| *known == user) {
                loads.push((user, bytes_per_s, normal_bytes_per_s));
            }
        }
    }
    loads.sort_by_key(|(_, bytes_per_s, _)| std::cmp::Reverse(*bytes_per_s));
    loads.truncate(3);
    changes.extend(loads.into_iter().map(|(user, bytes_per_s, normal_bytes_per_s)| Change::Load {
        user: user.clone(),
        bytes_per_s,
        normal_bytes_per_s,
    }));
    changes
}

/// What the recorder itself said it lost or did not keep, and how many of it.
fn lost(series: &Series, inside: &[(i64, &Slot)]) -> BTreeMap<String, u64> {
    let is_inside = |event: &Event| {
        inside.iter().any(|(ts_ms, slot)| (*ts_ms..ts_ms + slot.span_ms).contains(&event.ts_ms))
    };
    let mut lost = BTreeMap::new();
    let is_loss = |event: &&Event| matches!(event.kind.as_str(), "lost" | "left_out") && is_inside(event);
    for event in series.events.iter().filter(is_loss) {
        let said: serde_json::Value = serde_json::from_str(&event.detail).unwrap_or_default();
        let what = said["what"].as_str().unwrap_or("times something").to_string();
        *lost.entry(what).or_default() += said["count"].as_u64().unwrap_or(1);
    }
    lost
}

fn has_no_syncs(inside: &[(i64, &Slot)]) -> bool {
    inside.iter().all(|(_, slot)| slot.users.is_empty())
}

/// What could not be seen in the time asked about.
fn blind(series: &Series, inside: &[(i64, &Slot)], unrecorded_ms: i64) -> Vec<String> {
    let mut blind = Vec::new();
    if inside.is_empty() {
        blind.push("nothing was recorded in that time".to_string());
        return blind;
    }
    match &series.unit {
        Some(unit) if series.has_others && has_no_syncs(inside) => {
            blind.push(format!("no syncs of {unit} were recorded"));
        }
        _ if has_no_syncs(inside) => {
            blind.push("no syncs were recorded: nothing synced, or the recorder did not see it".to_string());
        }
        _ => {}
    }
    let lost = lost(series, inside);
    if !lost.is_empty() {
        let lost: Vec<String> = lost.iter().map(|(what, count)| format!("{count} {what}")).collect();
        blind.push(format!("not recorded: {}", lost.join("; ")));
    }
    if series.left_out > 0 {
        blind.push(format!("{} events were left out: there are too many to hold", series.left_out));
    }
    if unrecorded_ms > 0 {
        blind.push(format!("nothing was recorded for {} of that time", length(unrecorded_ms)));
    }
    blind
}

/// A length of time, ms, in words: minutes of a month would say little.
pub fn length(ms: i64) -> String {
    const HOUR_MS: i64 = 3_600_000;
    match ms.max(0) {
        ms if ms < 2 * HOUR_MS => Nanos(ms.unsigned_abs().saturating_mul(1_000_000)).to_string(),
        ms if ms < 48 * HOUR_MS => format!("{} hours", significant(ms as f64 / HOUR_MS as f64)),
        ms => format!("{} days", significant(ms as f64 / (24 * HOUR_MS) as f64)),
    }
}

/// What the recorders of that time said that they do not see. They say it when they start, and again and again.
fn not_seen(series: &Series, since_ms: i64, until_ms: i64) -> Vec<String> {
    let says = |event: &&Event| matches!(event.kind.as_str(), "start" | "not_seen") && event.ts_ms < until_ms;
    let said: Vec<&Event> = series.events.iter().filter(says).collect();
    // Of those before, the last one still holds.
    let first = said.iter().rposition(|event| event.ts_ms < since_ms).unwrap_or(0);
    let (mut sentences, mut known) = (Vec::new(), BTreeSet::new());
    for event in &said[first..] {
        let detail: serde_json::Value = serde_json::from_str(&event.detail).unwrap_or_default();
        let of_event = detail["not_seen"].as_array().into_iter().flatten().filter_map(|it| it.as_str());
        sentences.extend(of_event.map(String::from).filter(|sentence| known.insert(sentence.clone())));
    }
    sentences
}

/// For how long nothing was recorded. Less than half an interval between two is no gap. At the edges of the stretch, an interval that began
/// before it, and one that has not ended, are none either.
fn unrecorded_ms(inside: &[(i64, &Slot)], since_ms: i64, until_ms: i64) -> i64 {
    let gap = |from_ms: i64, to_ms: i64, usual_ms: i64| {
        let gap_ms = to_ms.saturating_sub(from_ms);
        if gap_ms > usual_ms { gap_ms } else { 0 }
    };
    let (Some(first), Some(last)) = (inside.first(), inside.last()) else {
        return gap(since_ms, until_ms, 0);
    };
    let end_ms = |(ts_ms, slot): &(i64, &Slot)| ts_ms.saturating_add(slot.span_ms);
    let edge_ms = |slot: &Slot| slot.span_ms.saturating_add(slot.span_ms / 2);
    let edges = [gap(since_ms, first.0, edge_ms(first.1)), gap(end_ms(last), until_ms, edge_ms(last.1))];
    let between = inside.windows(2).map(|pair| {
        let usual_ms = pair[0].1.span_ms.max(pair[1].1.span_ms) / 2;
        gap(end_ms(&pair[0]), pair[1].0, usual_ms)
    });
    between.chain(edges).fold(0, i64::saturating_add)
}
