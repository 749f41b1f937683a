//! What is normal.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::series::{Series, Slot, User, UserSlot, quantile};

/// Intervals before the time asked about from which on normal is taken from them alone.
const ENOUGH: usize = 10;

/// What is normal for a user's syncs.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct NormalUser {
    /// Whose.
    pub user: User,
    /// Intervals in which syncs of it returned.
    pub intervals: usize,
    /// Syncs a second in the middle one of all intervals: 0 where it has syncs in fewer than half of them.
    pub per_s: f64,
    /// Syncs a second on average.
    pub mean_per_s: f64,
    /// Median of the intervals' medians, ns.
    pub p50_ns: i64,
    /// Median of the intervals' 99th percentiles, ns.
    pub p99_ns: i64,
    /// As far above the median, as a ratio, as a tenth of the intervals lies below it, ns: what noise alone does. Trouble, which
    /// lies above, does not move it.
    pub p99_high_ns: i64,
    /// Mean time of a sync by part and cause, ns.
    #[serde(skip)]
    pub parts: BTreeMap<(String, String), f64>,
}

/// What is normal for a device.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct NormalDevice {
    /// Its name.
    pub device: String,
    /// Bytes that it moves a second while it is busy.
    pub busy_bytes_per_s: i64,
    /// Mean time of a request, ns.
    pub request_ns: i64,
    /// Requests a second.
    pub per_s: f64,
    /// Share of the time that it is busy, percent.
    pub busy_percent: i64,
}

/// What is normal.
pub(super) struct Normals {
    /// Intervals that it was taken from.
    pub from: usize,
    pub users: BTreeMap<User, NormalUser>,
    pub devices: BTreeMap<String, NormalDevice>,
    /// Bytes a second that processes read and write.
    pub loads: BTreeMap<User, i64>,
    /// Devices that slow syncs of users went to, where that is known.
    on: BTreeMap<User, BTreeSet<String>>,
}

impl Normals {
    pub fn of(series: &Series, since_ms: i64) -> Normals {
        let before: Vec<&Slot> = series.slots.range(..since_ms).map(|(_, slot)| slot).collect();
        let slots = if before.len() >= ENOUGH { before } else { series.slots.values().collect() };
        // In one pass: whoever syncs under other names in each interval must not make each name cost all intervals.
        let mut present: BTreeMap<&User, Vec<(i64, &UserSlot)>> =
            series.users().into_iter().map(|user| (user, Vec::new())).collect();
        for slot in &slots {
            for (user, syncs) in &slot.users {
                present.entry(user).or_default().push((slot.span_ms, syncs));
            }
        }
        let whole = Whole {
            intervals: slots.len(),
            seconds: slots.iter().map(|slot| slot.span_ms).sum::<i64>() as f64 / 1e3,
        };
        let users = present.iter().map(|(user, of)| ((*user).clone(), of_user(user, of, whole)));
        let devices =
            series.devices().into_iter().map(|device| (device.to_string(), of_device(&slots, device)));
        let mut loads: BTreeMap<User, Vec<i64>> = BTreeMap::new();
        for slot in &slots {
            for (user, (read, written)) in &slot.processes {
                loads.entry(user.clone()).or_default().push((read + written) * 1000 / slot.span_ms.max(1));
            }
        }
        // Where a process moved nothing in an interval, it has no row there.
        let padded = |(user, rates): (User, Vec<i64>)| (user, padded_median(rates, slots.len()));
        Normals {
            from: slots.len(),
            users: users.collect(),
            devices: devices.collect(),
            loads: loads.into_iter().map(padded).collect(),
            on: synced_on(series),
        }
    }

    /// The devices that a user's syncs may have waited for: those that they are known to go to, or all. What lies below a
    /// stacked one is not recorded.
    pub fn devices_of(&self, user: &User) -> impl Iterator<Item = (&String, &NormalDevice)> {
        let on = self.on.get(user).filter(|on| !on.iter().any(|device| is_stacked(device)));
        self.devices.iter().filter(move |(device, _)| on.is_none_or(|on| on.contains(*device)))
    }
}

/// Whether a device stands on others, by its name.
pub fn is_stacked(device: &str) -> bool {
    device.starts_with("dm-") || device.starts_with("md")
}

fn synced_on(series: &Series) -> BTreeMap<User, BTreeSet<String>> {
    let mut on: BTreeMap<User, BTreeSet<String>> = BTreeMap::new();
    for event in series.events.iter().filter(|event| event.kind == "slow_sync" && !event.device.is_empty()) {
        on.entry(User::of(&event.comm, &event.unit)).or_default().insert(event.device.clone());
    }
    on
}

impl NormalUser {
    /// Mean time of a sync, ns.
    pub fn mean_ns(&self) -> f64 {
        self.parts.values().sum()
    }
}

/// All intervals that normal is taken from.
#[derive(Clone, Copy)]
struct Whole {
    intervals: usize,
    seconds: f64,
}

/// Of the intervals in which a user has a row, and of all.
fn of_user(user: &User, present: &[(i64, &UserSlot)], whole: Whole) -> NormalUser {
    let rates = present.iter().map(|(span_ms, syncs)| syncs.count() * 1_000_000 / (*span_ms).max(1));
    let at = |q: f64| -> Vec<i64> {
        present.iter().filter_map(|(_, syncs)| quantile(&syncs.latency, q)).collect()
    };
    let p99_ns = median(at(0.99)).unwrap_or(0);
    // Only intervals that are not slow themselves.
    let mut parts: BTreeMap<(String, String), f64> = BTreeMap::new();
    let mut count = 0;
    for (_, syncs) in present {
        if quantile(&syncs.latency, 0.99).is_some_and(|p99| p99 <= 2 * p99_ns.max(1)) {
            count += syncs.count();
            syncs.waits.iter().for_each(|(key, ns)| *parts.entry(key.clone()).or_default() += *ns as f64);
        }
    }
    parts.values_mut().for_each(|ns| *ns /= f64::from(u32::try_from(count.max(1)).unwrap_or(u32::MAX)));
    NormalUser {
        user: user.clone(),
        intervals: present.iter().filter(|(_, syncs)| syncs.count() > 0).count(),
        // Who syncs now and then does not normally sync.
        per_s: padded_median(rates.collect(), whole.intervals) as f64 / 1e3,
        mean_per_s: present.iter().map(|(_, syncs)| syncs.count()).sum::<i64>() as f64
            / whole.seconds.max(1e-3),
        p50_ns: median(at(0.5)).unwrap_or(0),
        p99_ns,
        p99_high_ns: high(p99_ns, ranked(at(0.99), 0.1).unwrap_or(0)),
        parts,
    }
}

fn of_device(slots: &[&Slot], device: &str) -> NormalDevice {
    let present: Vec<_> =
        slots.iter().filter_map(|slot| Some((slot.span_ms, slot.devices.get(device)?))).collect();
    let some = |pick: &dyn Fn(i64, &crate::series::DeviceSlot) -> Option<i64>| {
        median(present.iter().filter_map(|(span_ms, at)| pick((*span_ms).max(1), at)).collect()).unwrap_or(0)
    };
    NormalDevice {
        device: device.to_string(),
        busy_bytes_per_s: some(&|_, at| {
            let busy_ms = at.counter("busy_ms");
            (busy_ms > 0).then(|| at.bytes() * 1000 / busy_ms)
        }),
        request_ns: some(&|_, at| at.mean_ns()),
        per_s: some(&|span_ms, at| Some(at.requests() * 1_000_000 / span_ms)) as f64 / 1e3,
        busy_percent: some(&|span_ms, at| Some((at.counter("busy_ms") * 100 / span_ms).min(100))),
    }
}

fn high(median_ns: i64, low_ns: i64) -> i64 {
    (median_ns as f64 * median_ns as f64 / low_ns.max(1) as f64) as i64
}

/// The middle one; the lower of two.
pub(super) fn median(values: Vec<i64>) -> Option<i64> {
    ranked(values, 0.5)
}

/// The same of so many values, of which all that are not there are 0.
fn padded_median(mut values: Vec<i64>, count: usize) -> i64 {
    if values.len() <= count / 2 {
        return 0;
    }
    values.resize(count.max(values.len()), 0);
    median(values).unwrap_or(0)
}

fn ranked(mut values: Vec<i64>, q: f64) -> Option<i64> {
    values.sort_unstable();
    let last = values.len().checked_sub(1)?;
    values.get((last as f64 * q) as usize).copied()
}
