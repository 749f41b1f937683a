//! Why syncs were slow or few.

use std::collections::BTreeMap;

use super::Cause;
use super::normal::{NormalDevice, NormalUser, Normals, median};
use super::seconds;
use crate::series::{DeviceSlot, Slot, User};

/// A device is slow where it moves at most so much of what it normally does while it is busy, ...
const DEVICE_SHARE: f64 = 0.5;
/// ... each request takes so many times as long, ...
const REQUEST_TIMES: i64 = 3;
/// ... and it was busy at all.
const BUSY_MS: i64 = 200;

/// Who is in the way of others' syncs for less of their time explains nothing.
const IN_THE_WAY: f64 = 0.3;
/// A device that is so busy, and twice as busy as normally, may have to do with commits that are few.
const BUSY_PERCENT: i64 = 50;
/// The way of what kernel threads wrote for others: it is nobody's flood, and the user's own writes may be among it.
const PASSED_ON: &str = "writes_passed_on";

/// Time of syncs beyond what is normal, by where it went.
#[derive(Debug, Default)]
struct Excess {
    others: f64,
    device: f64,
    throttled: f64,
    lock: f64,
    processor: f64,
    kernel: f64,
    /// On devices that nobody sees at work.
    unseen: f64,
}

impl Excess {
    fn whole(&self) -> f64 {
        (self.on_storage() + self.elsewhere() + self.unseen).max(1.0)
    }

    fn on_storage(&self) -> f64 {
        self.others + self.device + self.throttled
    }

    fn elsewhere(&self) -> f64 {
        self.lock + self.processor + self.kernel
    }

    fn of(slots: &[(i64, &Slot)], user: &User, normal: &NormalUser) -> Excess {
        let (mut waits, mut count) = (BTreeMap::<&(String, String), f64>::new(), 0);
        for syncs in slots.iter().filter_map(|(_, slot)| slot.users.get(user)) {
            syncs.waits.iter().for_each(|(key, ns)| *waits.entry(key).or_default() += *ns as f64);
            count += syncs.count();
        }
        let mut excess = Excess::default();
        for (key, ns) in waits {
            let usual = normal.parts.get(key).copied().unwrap_or(0.0) * count as f64;
            *excess.place(&key.0, &key.1) += (ns - usual).max(0.0);
        }
        excess
    }

    fn place(&mut self, part: &str, cause: &str) -> &mut f64 {
        match (part, cause) {
            (_, "unseen") => &mut self.unseen,
            (_, "others" | "own_others") => &mut self.others,
            (_, "device" | "device_flush") => &mut self.device,
            (_, "held" | "queue") | ("dirty_pause" | "request_queue", _) => &mut self.throttled,
            ("lock", _) => &mut self.lock,
            ("cpu" | "run_queue", _) => &mut self.processor,
            _ => &mut self.kernel,
        }
    }
}

/// Why syncs were slow.
pub(super) fn of_slow(slots: &[(i64, &Slot)], user: &User, normals: &Normals, normal: &NormalUser) -> Cause {
    let excess = Excess::of(slots, user, normal);
    let whole = excess.whole();
    if whole <= 1.0 {
        return Cause::Unclear;
    }
    let share = |ns: f64| ns / whole;
    if share(excess.on_storage()) < 0.5 {
        if share(excess.elsewhere()) < 0.5 {
            return Cause::Unclear;
        }
        let places = [("lock", excess.lock), ("processor", excess.processor), ("kernel", excess.kernel)];
        let most = places.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(("kernel", 0.0));
        return Cause::NotStorage { place: most.0.to_string(), share: share(most.1) };
    }
    // A device that is slow makes everybody's I/O last: looked at before whose it was.
    if let Some((device, usual)) = slowest(slots, user, normals) {
        return slow_device(slots, device, usual, Some(share(excess.on_storage())));
    }
    if excess.others >= excess.device.max(excess.throttled) {
        return flood(slots, user, share(excess.others)).unwrap_or(Cause::Unclear);
    }
    if excess.throttled > excess.device {
        return Cause::Throttled { share: share(excess.throttled) };
    }
    Cause::LateDevice { share: share(excess.device) }
}

/// The device that is slow, of those that a user's syncs may have waited for. What lies over a slow device is slow, too, and what lies under
/// it does less: the one that lost most is meant.
fn slowest<'a>(
    slots: &[(i64, &Slot)],
    user: &User,
    normals: &'a Normals,
) -> Option<(&'a String, &'a NormalDevice)> {
    let slow = normals.devices_of(user).filter_map(|(device, usual)| {
        let at: Vec<&DeviceSlot> = slots.iter().filter_map(|(_, slot)| slot.devices.get(device)).collect();
        let (bytes_per_s, _) = service(&at).filter(|_| is_slow_device(&at, usual))?;
        Some((bytes_per_s as f64 / usual.busy_bytes_per_s.max(1) as f64, device, usual))
    });
    slow.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, device, usual)| (device, usual))
}

fn flood(slots: &[(i64, &Slot)], user: &User, all_others: f64) -> Option<Cause> {
    let mut all_ns = 0;
    let mut culprits: BTreeMap<(User, String), i64> = BTreeMap::new();
    for syncs in slots.iter().filter_map(|(_, slot)| slot.users.get(user)) {
        all_ns += syncs.waits.values().sum::<i64>();
        for (who, (ns, _)) in &syncs.behind {
            *culprits.entry(who.clone()).or_default() += ns;
        }
    }
    let ((culprit, way), ns) = culprits.into_iter().max_by_key(|(_, ns)| *ns)?;
    if way == PASSED_ON {
        return None;
    }
    let moved = |slot: &Slot| slot.processes.get(&culprit).map_or(0, |(read, written)| read + written);
    let bytes: i64 = slots.iter().map(|(_, slot)| moved(slot)).sum();
    let bytes_per_s = (bytes as f64 / seconds(slots)) as i64;
    let share = (ns as f64 / all_ns.max(1) as f64).min(1.0);
    Some(Cause::Flood { culprit, way, share, all_others, bytes_per_s })
}

/// Bytes a second while busy, and mean time of a request.
fn service(at: &[&DeviceSlot]) -> Option<(i64, i64)> {
    let sum = |pick: &dyn Fn(&DeviceSlot) -> i64| at.iter().map(|slot| pick(slot)).sum::<i64>();
    let (busy_ms, requests) = (sum(&|slot| slot.counter("busy_ms")), sum(&DeviceSlot::requests));
    let waited_ms = sum(&|slot| slot.counter("read_ms") + slot.counter("write_ms"));
    (busy_ms >= BUSY_MS && requests > 0)
        .then(|| (sum(&DeviceSlot::bytes) * 1000 / busy_ms, waited_ms * 1_000_000 / requests))
}

/// Whether a device did much less than it normally does while it was busy, and took much longer for each request.
pub(super) fn is_slow_device(at: &[&DeviceSlot], normal: &NormalDevice) -> bool {
    let Some((bytes_per_s, request_ns)) = service(at) else { return false };
    (bytes_per_s as f64) < DEVICE_SHARE * normal.busy_bytes_per_s as f64
        && request_ns > REQUEST_TIMES * normal.request_ns.max(100_000)
}

pub(super) fn slow_device(
    slots: &[(i64, &Slot)],
    device: &str,
    normal: &NormalDevice,
    share: Option<f64>,
) -> Cause {
    let at: Vec<&DeviceSlot> = slots.iter().filter_map(|(_, slot)| slot.devices.get(device)).collect();
    let (bytes_per_s, request_ns) = service(&at).unwrap_or((0, 0));
    Cause::SlowDevice {
        device: device.to_string(),
        bytes_per_s,
        normal_bytes_per_s: normal.busy_bytes_per_s,
        request_ns,
        normal_request_ns: normal.request_ns,
        share,
    }
}

/// Why commits were few though each was fast: whether a device was busier than usual.
pub(super) fn of_few(slots: &[(i64, &Slot)], user: &User, normals: &Normals) -> Cause {
    if let Some((device, usual)) = slowest(slots, user, normals) {
        return slow_device(slots, device, usual, None);
    }
    let percent = |device: &str| {
        let busy = |(_, slot): &(i64, &Slot)| {
            let busy_ms = slot.devices.get(device)?.counter("busy_ms");
            Some((busy_ms * 100 / slot.span_ms.max(1)).min(100))
        };
        median(slots.iter().filter_map(busy).collect()).unwrap_or(0)
    };
    let all = normals.devices_of(user);
    let all = all.map(|(device, normal)| (percent(device), normal.busy_percent, device));
    let Some((busy_percent, normal_percent, device)) = all.max() else {
        return Cause::FewerNotStorage { busiest_percent: 0, normal_percent: 0 };
    };
    if busy_percent >= BUSY_PERCENT && busy_percent >= 2 * normal_percent {
        let (culprit, share) = most_in_the_way(slots, user);
        return Cause::FewerBusy { device: device.clone(), busy_percent, normal_percent, culprit, share };
    }
    Cause::FewerNotStorage { busiest_percent: busy_percent, normal_percent }
}

/// Behind whose I/O syncs of others than this user, and than that culprit, spent most of their time, and which share of it.
fn most_in_the_way(slots: &[(i64, &Slot)], user: &User) -> (Option<User>, f64) {
    let mut behind: BTreeMap<&User, i64> = BTreeMap::new();
    let syncs = || slots.iter().flat_map(|(_, slot)| &slot.users);
    for (waits, syncs) in syncs() {
        let others = syncs
            .behind
            .iter()
            .filter(|((culprit, way), _)| culprit != waits && culprit != user && way != PASSED_ON);
        others.for_each(|((culprit, _), (ns, _))| *behind.entry(culprit).or_default() += ns);
    }
    let Some((culprit, ns)) = behind.into_iter().max_by_key(|(_, ns)| *ns) else { return (None, 0.0) };
    let whole: i64 = syncs().filter(|(waits, _)| *waits != culprit).map(|(_, syncs)| syncs.wall_ns()).sum();
    let share = ns as f64 / whole.max(1) as f64;
    if share >= IN_THE_WAY { (Some(culprit.clone()), share.min(1.0)) } else { (None, 0.0) }
}
