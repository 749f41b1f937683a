//! Sums over phases, and the sentences that a reader takes home.

use super::phases::{Phase, Stretch, phases};
use super::words::{Change, change, is_of_cgroup, limit, moved, size};
use weir_control::{DeviceHistory, History, Noted, Second};
use weir_core::units::{Nanos, megabytes_per_second, per_second};
use weir_verdict::view::percent;

/// A history with what follows from it.
#[derive(Debug)]
pub struct Story<'a> {
    /// The history.
    pub history: &'a History,
    /// Its devices, in the same order.
    pub devices: Vec<DeviceStory<'a>>,
}

/// One device's part.
#[derive(Debug)]
pub struct DeviceStory<'a> {
    /// What was measured.
    pub device: &'a DeviceHistory,
    /// Its decisions, in the order of time.
    pub decisions: Vec<&'a Noted>,
    /// Floods and the quiet between them.
    pub phases: Vec<Phase>,
    shadow: bool,
}

/// What happened in some seconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sums {
    /// Seconds.
    pub seconds: usize,
    /// Of these, seconds with a sync that ended or was under way.
    pub with_syncs: usize,
    /// Of these, seconds whose target was known.
    pub judged: usize,
    /// Of these, seconds over it.
    pub over: usize,
    /// Syncs that ended.
    pub syncs: u64,
    /// Median of the seconds' 99th percentiles, ns.
    pub p99_ns: Option<u64>,
    /// The longest sync that ended or was under way, ns.
    pub worst_ns: Option<u64>,
    /// Mean of the share kept, over the seconds where it is known.
    pub kept: Option<f64>,
    /// Written to the device, bytes.
    pub written_bytes: u64,
    /// Of these, by bulk writers, where it is known.
    pub bulk_bytes: Option<u64>,
    /// Least and most of the limit of dirty pages, bytes.
    pub limits: Option<(u64, u64)>,
    /// Least and most of a cgroup's limit, bytes of a tenth of a second, over the seconds that had one.
    pub cgroup_limits: Option<(u64, u64)>,
}

impl Sums {
    /// Of these seconds.
    pub fn of<'s>(seconds: impl Iterator<Item = &'s Second>) -> Sums {
        let mut sums = Sums::default();
        let (mut tails, mut kept) = (Vec::new(), Vec::new());
        for second in seconds {
            sums.seconds += 1;
            sums.with_syncs += usize::from(second.has_syncs());
            sums.judged += usize::from(second.has_syncs() && second.target_us.is_some());
            sums.over += usize::from(second.is_over_target());
            sums.syncs += second.syncs;
            tails.extend(second.p99_us.map(|us| us * 1000));
            let worst = second.max_us.unwrap_or(0).max(second.oldest_us) * 1000;
            sums.worst_ns = sums.worst_ns.max((worst > 0).then_some(worst));
            // A second with more syncs than before keeps all: it must not make up for another that lost them.
            kept.extend(second.kept.map(|kept| f64::from(kept).min(1.0)));
            sums.written_bytes += second.written_bytes;
            sums.bulk_bytes = match (sums.bulk_bytes, second.bulk_bytes) {
                (None, bulk) => bulk,
                (Some(sum), bulk) => Some(sum + bulk.unwrap_or(0)),
            };
            let limits = if second.of_cgroup { &mut sums.cgroup_limits } else { &mut sums.limits };
            let (least, most) = limits.unwrap_or((u64::MAX, 0));
            *limits = Some((least.min(second.limit_bytes), most.max(second.limit_bytes)));
        }
        tails.sort_unstable();
        sums.p99_ns = tails.get(tails.len() / 2).copied();
        sums.kept = (!kept.is_empty()).then(|| kept.iter().sum::<f64>() / kept.len() as f64);
        sums
    }

    /// Syncs a second.
    pub fn sync_rate(&self) -> f64 {
        self.syncs as f64 / self.seconds.max(1) as f64
    }

    /// Written to the device, bytes per second.
    pub fn device_rate(&self) -> f64 {
        self.written_bytes as f64 / self.seconds.max(1) as f64
    }

    /// Bytes per second by bulk writers, where it is known.
    pub fn bulk_rate(&self) -> Option<f64> {
        self.bulk_bytes.map(|bytes| bytes as f64 / self.seconds.max(1) as f64)
    }
}

impl<'a> Story<'a> {
    /// Of a history.
    pub fn of(history: &'a History) -> Story<'a> {
        let devices = history.devices.iter().map(|device| DeviceStory {
            device,
            decisions: history.decisions.iter().filter(|noted| noted.device == device.name).collect(),
            phases: phases(&device.seconds, history.shadow),
            shadow: history.shadow,
        });
        Story { history, devices: devices.collect() }
    }

    /// What happened to the guard itself.
    pub fn own_notes(&self) -> impl Iterator<Item = &'a Noted> {
        self.history.decisions.iter().filter(|noted| noted.device.is_empty())
    }

    /// How long was watched, ns.
    pub fn length_ns(&self) -> u64 {
        let ends = self.devices.iter().filter_map(|device| device.device.seconds.last());
        ends.map(|second| second.at_ms.saturating_mul(1_000_000)).max().unwrap_or(0)
    }

    /// The one sentence.
    pub fn headline(&self) -> String {
        let floods: usize = self.devices.iter().map(DeviceStory::floods).sum();
        let watched = Nanos(self.length_ns());
        if floods == 0 {
            let seen = self.devices.iter().all(DeviceStory::saw_bulk);
            let end = if seen { "" } else { ", as far as could be seen" };
            return format!("No flood came in {watched}{end}");
        }
        let under = if floods == 1 { "a flood".to_string() } else { format!("{floods} floods") };
        let sums = self.devices.iter().filter(|device| device.floods() > 0).map(DeviceStory::flooded);
        let least = sums.filter_map(|sums| sums.kept).min_by(f64::total_cmp);
        let who = if self.history.shadow { "In shadow: unguarded syncs" } else { "Syncs" };
        match least {
            Some(kept) => format!("{who} kept {} of their rate under {under}", percent(kept)),
            None => format!("{who} went through {under} in {watched}"),
        }
    }
}

impl DeviceStory<'_> {
    /// How many floods there were.
    pub fn floods(&self) -> usize {
        self.phases.iter().filter(|phase| phase.stretch == Stretch::Flood).count()
    }

    /// Whether the sensor told who writes in bulk.
    fn saw_bulk(&self) -> bool {
        let seconds = &self.device.seconds;
        seconds.is_empty() || seconds.iter().any(|second| second.bulk_bytes.is_some())
    }

    /// The seconds of a phase.
    pub fn seconds(&self, phase: &Phase) -> &[Second] {
        &self.device.seconds[phase.range.0..phase.range.1]
    }

    /// The sums of a phase.
    pub fn sums(&self, phase: &Phase) -> Sums {
        Sums::of(self.seconds(phase).iter())
    }

    /// A phase as a row: its name, from when, how long, syncs per second, share kept, 99th percentile, longest, seconds
    /// over the target, bulk, device. What is not known is `absent`.
    pub fn row(&self, phase: &Phase, absent: &str) -> Vec<String> {
        let sums = self.sums(phase);
        let or_absent = |text: Option<String>| text.unwrap_or(absent.to_string());
        let time = |ns: Option<u64>| or_absent(ns.map(|ns| Nanos(ns).to_string()));
        let start = self.seconds(phase).first().map_or(0, |second| second.at_ms.saturating_sub(1000));
        vec![
            phase.name.clone(),
            format!("{} s", start / 1000),
            format!("{} s", sums.seconds),
            per_second(sums.sync_rate()),
            or_absent(sums.kept.map(percent)),
            time(sums.p99_ns),
            time(sums.worst_ns),
            format!("{} s", sums.over),
            or_absent(sums.bulk_rate().map(megabytes_per_second)),
            megabytes_per_second(sums.device_rate()),
        ]
    }

    /// The sums of all floods.
    pub fn flooded(&self) -> Sums {
        let floods = self.phases.iter().filter(|phase| phase.stretch == Stretch::Flood);
        Sums::of(floods.flat_map(|phase| self.seconds(phase)))
    }

    /// The most that the device wrote in a second, bytes.
    pub fn best_second(&self) -> u64 {
        self.device.seconds.iter().map(|second| second.written_bytes).max().unwrap_or(0)
    }

    /// What happened, in sentences.
    pub fn sentences(&self) -> Vec<String> {
        let flooded = self.flooded();
        if flooded.seconds == 0 {
            let all = Sums::of(self.device.seconds.iter());
            let came = if self.saw_bulk() {
                "No flood came."
            } else {
                "Who writes in bulk was not seen, so a flood is known only by what the guard did."
            };
            return vec![came.to_string(), over(&all, "All the time"), self.limit()];
        }
        let mut out = Vec::new();
        let mut kept = flooded.kept.map_or(String::new(), |kept| {
            format!("Under the flood syncs kept {} of their rate. ", percent(kept))
        });
        kept.push_str(&over(&flooded, "The 99th percentile"));
        out.push(kept);
        out.push(self.bulk(&flooded));
        out.push(self.limit());
        out.extend(self.private());
        out
    }

    /// What bulk writers got, and what the device can.
    fn bulk(&self, flooded: &Sums) -> String {
        let device = megabytes_per_second(flooded.device_rate());
        let got = match flooded.bulk_rate() {
            Some(bulk) => {
                format!("Bulk writers wrote {}; the device wrote {device}", megabytes_per_second(bulk))
            }
            None => format!("The device wrote {device} under the flood"),
        };
        let best = megabytes_per_second(self.best_second() as f64);
        let held: u64 = self.device.seconds.iter().map(|second| second.bulk_held_ms).sum();
        let held = match held {
            0 => String::new(),
            ms => format!(
                ", and bulk writers were throttled for {} in all",
                Nanos(ms.saturating_mul(1_000_000))
            ),
        };
        format!("{got} on average and {best} in its best second{held}.")
    }

    /// Private limits of bulk writers' cgroups in one sentence, where there were any.
    fn private(&self) -> Option<String> {
        let is_held = |second: &&Second| second.private_dirty_bytes.or(second.private_pace).is_some();
        let held = || self.device.seconds.iter().filter(is_held);
        let seconds = held().count();
        let paces = held().filter_map(|second| second.private_pace);
        let (least, most) =
            paces.clone().fold((u64::MAX, 0), |(least, most), pace| (least.min(pace), most.max(pace)));
        let were = if self.shadow { "would have been" } else { "were" };
        let paced = match paces.count() {
            0 => "none of it by a pace".to_string(),
            n => format!(
                "{n} s of it to a pace of {} to {}",
                megabytes_per_second(least as f64),
                megabytes_per_second(most as f64)
            ),
        };
        (seconds > 0).then(|| format!("Bulk writers' own cgroups {were} held for {seconds} s, {paced}."))
    }

    /// The paths of the limits: that of dirty pages, and those of cgroups where any was throttled.
    fn limit(&self) -> String {
        let (actuator, saved) = (&self.device.actuator, size(self.device.saved_bytes));
        let dirty = self.path(actuator, &format!(" (baseline {saved})"), false);
        let dirty = dirty.unwrap_or_else(|| format!("{actuator} stayed at the baseline: {saved}."));
        let cgroup = self.path("The limit of the throttled cgroup", "", true);
        std::iter::once(dirty).chain(cgroup).collect::<Vec<_>>().join(" ")
    }

    /// A limit's path in one sentence, where it moved.
    fn path(&self, whose: &str, baseline: &str, of_cgroup: bool) -> Option<String> {
        let decisions = || self.decisions.iter().filter(|noted| is_of_cgroup(noted) == of_cgroup);
        let count = |wanted: Change| decisions().filter(|noted| change(noted) == wanted).count();
        let held = decisions().filter(|noted| change(noted) != Change::Released);
        let moves: Vec<u64> = held.filter_map(|noted| moved(noted)).collect();
        let (least, most) = (*moves.iter().min()?, *moves.iter().max()?);
        let went = if self.shadow { "would have gone" } else { "went" };
        Some(format!(
            "{whose} {went} between {} and {}{baseline}: cut {}, raised {}, released {}.",
            limit(least, of_cgroup),
            limit(most, of_cgroup),
            times(count(Change::Cut)),
            times(count(Change::Raised)),
            times(count(Change::Released)),
        ))
    }
}

/// How many seconds were over the target.
fn over(sums: &Sums, what: &str) -> String {
    if sums.with_syncs > 0 && sums.judged == 0 {
        return "No target of the 99th percentile was known yet.".to_string();
    }
    match (sums.judged, sums.over) {
        (0, _) => "There was no sync.".to_string(),
        (n, 0) if what.starts_with("All") => {
            format!("{what} syncs stayed within the target, in {n} s with syncs and a known target.")
        }
        (n, 0) => format!("{what} stayed within the target in each of {n} s with syncs and a known target."),
        (n, over) => format!("{over} of {n} s with syncs were over the target."),
    }
}

fn times(n: usize) -> String {
    match n {
        0 => "never".to_string(),
        1 => "once".to_string(),
        2 => "twice".to_string(),
        n => format!("{n} times"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_keeps_more_than_all() {
        let second = |kept| Second { syncs: 10, kept: Some(kept), ..Second::default() };
        for (shares, expected) in
            [(&[6.0, 12.0][..], 1.0), (&[0.2, 11.8], 0.6), (&[0.5, 0.7], 0.6), (&[1.0], 1.0)]
        {
            let seconds: Vec<Second> = shares.iter().map(|share| second(*share)).collect();
            let kept = Sums::of(seconds.iter()).kept.unwrap();
            assert!((kept - expected).abs() < 1e-6, "{shares:?}: {kept}");
        }
    }
}
