//! Decisions in the words of a DBA: what was done, and why.

use crate::plot::Unit;
use weir_control::{
    Action, Branch, Decision, DeviceState, Effect, LatencyTarget, Mood, Noted, SensorSource, Standing,
    Target, UNLIMITED_BYTES,
};
use weir_core::units::{Nanos, grouped, megabytes_per_second, significant};
use weir_verdict::view::percent;

/// What became of the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It went down.
    Cut,
    /// It went up.
    Raised,
    /// The baseline limit is back.
    Released,
    /// It stayed.
    None,
}

impl Change {
    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Change::Cut => "cut",
            Change::Raised => "raised",
            Change::Released => "released",
            Change::None => "note",
        }
    }
}

/// What was done to the limit: `cut to 12.0 MB`; in shadow, what would have been.
pub fn done(noted: &Noted) -> Option<String> {
    let to = limit(moved(noted)?, is_of_cgroup(noted));
    let name = change(noted).name();
    let would = if matches!(noted.effect, Effect::Shadow { .. }) { "would be " } else { "" };
    Some(format!("{would}{name} to {to}"))
}

/// Which way the limit went, or would have gone.
pub fn change(noted: &Noted) -> Change {
    let Some(bytes) = moved(noted) else { return Change::None };
    match &noted.decision {
        Some(decision) if decision.action == Action::Release => Change::Released,
        Some(decision) if bytes > decision.inputs.limit_bytes => Change::Raised,
        _ => Change::Cut,
    }
}

/// The limit after it, where one was written or would have been, in bytes.
pub fn moved(noted: &Noted) -> Option<u64> {
    match noted.effect {
        Effect::Written { bytes } | Effect::Shadow { bytes } => Some(bytes),
        _ => None,
    }
}

/// Whether the limit is a cgroup's.
pub fn is_of_cgroup(noted: &Noted) -> bool {
    noted.decision.as_ref().is_some_and(|decision| decision.inputs.of_cgroup)
}

/// A limit: decimal, as it is usually given.
pub fn size(bytes: u64) -> String {
    if bytes < 1_000_000_000 {
        return Unit::Bytes.value(bytes as f64);
    }
    format!("{} GB", significant(bytes as f64 / 1e9))
}

/// A limit: of dirty pages their size, of a cgroup its rate.
pub fn limit(bytes: u64, of_cgroup: bool) -> String {
    match of_cgroup {
        false => size(bytes),
        true if bytes >= UNLIMITED_BYTES => "no limit".to_string(),
        true => megabytes_per_second(rate_of_tenth(bytes)),
    }
}

/// Bytes a second of a cgroup that may write so many in a tenth of one.
pub fn rate_of_tenth(bytes: u64) -> f64 {
    10.0 * bytes as f64
}

/// A device's limit, and what it was: `8.00 MB of 4.79 GB`.
pub fn limit_of(device: &DeviceState) -> String {
    let said = |bytes| limit(bytes, device.decision.inputs.of_cgroup);
    format!("{} of {}", said(device.second.limit_bytes), said(device.saved_bytes))
}

/// What bulk writers' own cgroups may have together, while they are held: `20.0 MB dirty and 30.0 MB/s`.
pub fn private_limit_of(device: &DeviceState) -> Option<String> {
    let dirty = device.second.private_dirty_bytes.map(|bytes| format!("{} dirty", size(bytes)));
    let pace = device.second.private_pace.map(|pace| megabytes_per_second(pace as f64));
    let limits: Vec<String> = dirty.into_iter().chain(pace).collect();
    (!limits.is_empty()).then(|| limits.join(" and "))
}

/// What is to be held: `p99 within 5.0 × idle, 93 % of the rate`.
pub fn target(target: &Target) -> String {
    let p99 = match target.p99 {
        LatencyTarget::Absolute(time) => format!("p99 within {time}"),
        LatencyTarget::TimesIdle(times) => format!("p99 within {} × idle", significant(times)),
    };
    format!("{p99}, and {} of the undisturbed rate", percent(target.keep))
}

/// How the guard stands to a device, in words.
pub fn standing(device: &DeviceState) -> String {
    match (&device.standing, device.decision.mood) {
        (Standing::Guarding, Mood::Released) if device.private_cgroups > 0 => {
            "holding the cgroups of bulk writers".to_string()
        }
        (Standing::Shadow, Mood::Released) if device.private_cgroups > 0 => {
            "shadow: would hold the cgroups of bulk writers".to_string()
        }
        (Standing::Guarding, Mood::Holding) => "holding".to_string(),
        (Standing::Guarding, Mood::Released) => "released: the baseline limit is in force".to_string(),
        (Standing::Shadow, Mood::Holding) => "shadow: would hold".to_string(),
        (Standing::Shadow, Mood::Released) => "shadow: would leave the baseline limit".to_string(),
        (Standing::StoodDown { why }, _) => format!("yielded: {why}"),
        (Standing::Gone, _) => "gone: guarded again when it is back".to_string(),
    }
}

/// Why something was done or happened, with the figures that it stood on.
pub fn reason(noted: &Noted) -> String {
    match (&noted.effect, &noted.decision) {
        (Effect::Refused { why }, _) => format!("the kernel refused: {why}"),
        (Effect::StoodDown { why }, _) => format!("yielded: {why}"),
        (Effect::Gone, _) => "the device is gone".to_string(),
        (Effect::Back, _) => "the device is back".to_string(),
        (Effect::Slept { ms }, _) => format!("the machine slept for {}", Nanos(ms.saturating_mul(1_000_000))),
        (Effect::Remark { what }, _) => what.clone(),
        (_, Some(decision)) => because(decision),
        (_, None) => String::new(),
    }
}

/// The share of a rate that was kept: more than all of it nobody can keep. Syncs that come more often than before are another
/// load, of which a share says nothing.
pub fn share_kept(kept: f64) -> String {
    percent(kept.min(1.0))
}

fn because(decision: &Decision) -> String {
    let inputs = &decision.inputs;
    let time = |ns: Option<u64>| ns.map_or("not known".to_string(), |ns| Nanos(ns).to_string());
    let kept = inputs.kept.map(|kept| format!("{} of the rate kept", share_kept(kept)));
    let of_target = inputs.target_ns.map_or(String::new(), |target| format!(" of {}", Nanos(target)));
    let p99 = inputs.p99_ns.map(|ns| format!("p99 {}{of_target}", Nanos(ns)));
    let is_over = inputs.p99_ns > inputs.target_ns && inputs.target_ns.is_some();
    // A tail that no limit was found to hold, that the device has undisturbed, or that too few syncs show.
    let beyond = p99.as_ref().map(|p99| format!("{p99} does not count against the limit"));
    match decision.branch {
        Branch::Steady if is_over => {
            format!("syncs keep their rate{}", after(": ", kept.into_iter().chain(beyond)))
        }
        Branch::Steady => "syncs keep their latency".to_string(),
        Branch::Draining => {
            format!(
                "the last cut has not taken effect yet: {} dirty or in flight",
                size(inputs.backlog_bytes)
            )
        }
        Branch::Idle => "bulk writers are idle".to_string(),
        Branch::Arm => "a bulk writer came".to_string(),
        Branch::OldestSync => format!(
            "a sync has been under way for {} (target {})",
            Nanos(inputs.oldest_ns),
            time(inputs.target_ns)
        ),
        Branch::Tail => format!(
            "p99 {} is over the target of {} (n={})",
            time(inputs.p99_ns),
            time(inputs.target_ns),
            grouped(inputs.syncs)
        ),
        Branch::Share => format!("only {}", kept.unwrap_or("a part of the rate kept".to_string())),
        Branch::RateDrop => {
            format!("the device accepts only {}", megabytes_per_second(inputs.delivered_bytes_per_second))
        }
        Branch::Raise if is_over => {
            format!("there is room{}", after(": ", kept.into_iter().chain(beyond)))
        }
        Branch::Raise => {
            format!("there is room{}", after(": ", p99.into_iter().chain(kept)))
        }
        Branch::Search => {
            let known = after(": ", p99.into_iter().chain(kept));
            format!("syncs lose, and no lower limit is known to be worth more: a higher one is tried{known}")
        }
        Branch::OwnWrites => {
            format!("the protected wait for their own pages, {} of their time", percent(inputs.own_share))
        }
        Branch::Unneeded => {
            "no sync came lately: bulk writers get what keeps the device busy, in the end everything"
                .to_string()
        }
        Branch::Checkpoint => "the bulk writer is the protected database itself".to_string(),
        Branch::Infeasible => {
            // No better than what was just said: an average of the same rung, or noise.
            let is_better = |best: &f64| {
                inputs.kept.is_none_or(|now| *best > now && share_kept(*best) != share_kept(now))
            };
            let best = inputs.achievable_kept.filter(is_better);
            let best_p99 = best.and(inputs.achievable_p99_ns).map(|ns| format!("p99 {}", Nanos(ns)));
            let best_kept = best.map(|kept| format!("{} of the rate", share_kept(kept)));
            format!(
                "no limit holds the target{} at {}{}",
                after(": ", p99.into_iter().chain(kept)),
                limit(inputs.limit_bytes, inputs.of_cgroup),
                after("; best found: ", best_p99.into_iter().chain(best_kept))
            )
        }
        Branch::Slack => format!(
            "{} whatever the limit is, and each sync as fast as ever: the load comes less often by itself",
            kept.unwrap_or("a part of the rate kept".to_string())
        ),
        Branch::Silent => "the sensor is silent".to_string(),
        Branch::Probe => "a moment at the floor, to learn what syncs do undisturbed".to_string(),
        Branch::Tip => format!(
            "{} at a limit that held: a moment at the floor, to make syncs fast again",
            kept.map_or("syncs became slow".to_string(), |kept| format!("only {kept}"))
        ),
    }
}

/// What is known, behind these words; nothing of nothing.
fn after(words: &str, known: impl Iterator<Item = String>) -> String {
    let known: Vec<String> = known.collect();
    if known.is_empty() { String::new() } else { format!("{words}{}", known.join(", ")) }
}

/// Where latencies come from, in words.
pub fn sensor(source: SensorSource) -> &'static str {
    match source {
        SensorSource::Syscalls => "the protected processes' system calls, by eBPF",
        SensorSource::Canary => "a canary: a small write and sync of weir's own",
        SensorSource::Diskstats => "the device's counters alone",
    }
}

/// A branch by its name, as it stands in logs, metrics and JSON.
pub fn branch(branch: Branch) -> String {
    let name = serde_json::to_value(branch).ok();
    name.and_then(|name| name.as_str().map(str::to_string)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use weir_control::{Inputs, Mood};

    use super::*;

    #[test]
    fn the_best_that_was_found_is_better_than_the_present() {
        for (kept, best, expected) in [
            (Some(0.64), Some(0.86), "64 % of the rate kept at 8.26 MB; best found: 86 % of the rate"),
            (Some(0.88), Some(0.78), "88 % of the rate kept at 8.26 MB"),
            (Some(0.881), Some(0.884), "88 % of the rate kept at 8.26 MB"),
            (Some(0.88), None, "88 % of the rate kept at 8.26 MB"),
        ] {
            let inputs = Inputs { kept, achievable_kept: best, limit_bytes: 8_260_000, ..Inputs::default() };
            let (action, branch, mood) = (Action::Keep, Branch::Infeasible, Mood::Holding);
            let said = because(&Decision { at_ns: 0, action, branch, inputs, mood });
            assert_eq!(said, format!("no limit holds the target: {expected}"));
        }
    }

    #[test]
    fn the_limit_of_a_cgroup_is_a_rate() {
        for (bytes, of_cgroup, expected) in [
            (4_000_000, false, "4.00 MB"),
            (UNLIMITED_BYTES, false, "4.29 GB"),
            (4_000_000, true, "40.0 MB/s"),
            (UNLIMITED_BYTES, true, "no limit"),
        ] {
            assert_eq!(limit(bytes, of_cgroup), expected, "{bytes} bytes");
        }
    }

    #[test]
    fn room_is_no_contradiction_to_a_tail_that_no_limit_holds() {
        let says = |branch, p99_ms: u64| {
            let inputs = Inputs {
                p99_ns: Some(p99_ms * 1_000_000),
                target_ns: Some(2_000_000),
                kept: Some(0.95),
                ..Inputs::default()
            };
            because(&Decision { at_ns: 0, action: Action::Keep, branch, inputs, mood: Mood::Holding })
        };
        assert_eq!(says(Branch::Raise, 1), "there is room: p99 1.00 ms of 2.00 ms, 95 % of the rate kept");
        let beyond = "95 % of the rate kept, p99 8.00 ms of 2.00 ms does not count against the limit";
        let search = "syncs lose, and no lower limit is known to be worth more: a higher one is tried";
        assert_eq!(
            says(Branch::Search, 1),
            format!("{search}: p99 1.00 ms of 2.00 ms, 95 % of the rate kept")
        );
        assert_eq!(says(Branch::Raise, 8), format!("there is room: {beyond}"));
        assert_eq!(says(Branch::Steady, 8), format!("syncs keep their rate: {beyond}"));
        assert_eq!(says(Branch::Steady, 1), "syncs keep their latency");
    }
}
