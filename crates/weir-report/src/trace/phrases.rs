//! Figures as sentences.

use super::figures::share;
use weir_blocktrace::analysis::{Depth, Device, Direction, Parts, Seeks};
use weir_blocktrace::{Extent, Moment, Reason, Stage};
use weir_core::units::{Bytes, Nanos, grouped, significant};

/// Shares below this are left out of the sentence.
const SHARE_MIN: f64 = 0.005;
/// Of depths that nothing tells.
const UNSEEN: &str = "not known: neither Q nor D was seen";

/// How long was recorded, and from and to what, where the recording does not say when it began or ended.
pub fn recorded(extent: Extent, recorded_ns: u64) -> String {
    let between = match (extent.begun_ns, extent.ended_ns) {
        (Some(_), Some(_)) => "",
        (Some(_), None) => " from its start to the last event",
        (None, Some(_)) => " from the first event to its end",
        (None, None) => " from first to last event",
    };
    format!("{}{between}", Nanos(recorded_ns))
}

/// Where the latency of a device goes.
pub fn where_on(device: &Device, parts: &Parts) -> String {
    if device.events.queued > 0 && device.events.allocated + device.events.issued == 0 {
        return "a device without requests of its own (device-mapper, md): its Q2C is all that happens below"
            .to_string();
    }
    where_time_goes(parts)
}

/// Where the latency of a kind of I/O goes, the largest part first.
pub fn where_time_goes(parts: &Parts) -> String {
    let total_ns = parts.total_ns();
    if parts.pieces == 0 || total_ns == 0 {
        return "no I/O with both its Q and its C was seen, so shares cannot be computed".to_string();
    }
    let mut each: Vec<_> =
        parts.each().into_iter().filter(|(_, ns)| share(*ns, total_ns) >= SHARE_MIN).collect();
    each.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let mut phrases = each.iter().enumerate().map(|(n, (stage, ns))| {
        let of_what = if n == 0 { " of the latency" } else { "" };
        format!("{:.0} %{of_what} {}", share(*ns, total_ns) * 100.0, place(*stage))
    });
    let first = phrases.next().unwrap_or_default();
    std::iter::once(first).chain(phrases).collect::<Vec<_>>().join(", ")
}

fn place(stage: Option<Stage>) -> &'static str {
    match stage {
        Some(Stage::Q2G) => "passes before there is a request (Q2G)",
        Some(Stage::G2I) => "passes before insertion (G2I)",
        Some(Stage::G2D) => {
            "passes from request to driver without insertion (G2D: no scheduler, or a flush goes first)"
        }
        Some(Stage::I2D) => "waits in the scheduler (I2D)",
        Some(Stage::Q2M) => "passes before a merge (Q2M)",
        Some(Stage::M2D) => "waits after a merge (M2D)",
        Some(Stage::D2C) => "is in driver and device (D2C)",
        _ => "is between events that were not recorded, such as in devices below",
    }
}

/// Merges and splits.
pub fn merges(device: &Device) -> String {
    let events = &device.events;
    let mut text = format!(
        "{} back, {} front, {} of requests; {} splits",
        grouped(events.back_merges),
        grouped(events.front_merges),
        grouped(events.request_merges),
        grouped(events.splits)
    );
    if device.requests > 0 {
        text += &format!("; {:.2} pieces a request", share(device.pieces, device.requests));
    }
    if let Some((least, most)) = device.request_sectors {
        let moved = [Direction::Read, Direction::Write].map(|d| device.traffic[d as usize]);
        let bytes: u64 = moved.iter().map(|t| t.bytes).sum();
        let requests: u64 = moved.iter().map(|t| t.requests).sum();
        text += &format!(
            "; requests of {} to {}, mean {}",
            Bytes(least * 512),
            Bytes(most * 512),
            Bytes((bytes as f64 / requests.max(1) as f64) as u64)
        );
    }
    text
}

/// Errors, requeues, partial completions.
pub fn faults(device: &Device) -> String {
    let errors: u64 = device.errors.values().sum();
    let mut text = format!("{} errors", grouped(errors));
    if errors > 0 {
        let each: Vec<String> =
            device.errors.iter().map(|(errno, n)| format!("{n} × errno {errno}")).collect();
        text += &format!(" ({})", each.join(", "));
    }
    text + &format!(
        ", {} requests given back by the driver, {} completed in parts",
        grouped(device.requests_requeued),
        grouped(device.requests_completed_in_parts)
    )
}

/// Distances at Q and at D.
pub fn seeks(device: &Device) -> String {
    let at = |name: &str, seeks: &Seeks| {
        let sequential = share(seeks.sequential, seeks.count) * 100.0;
        let (median, mean) = (seeks.median_sectors(), seeks.mean_sectors());
        let distance = |sectors: f64| Bytes((sectors * 512.0) as u64);
        let (median, mean) = (distance(median as f64), distance(mean));
        format!("at {name} {sequential:.0} % sequential, median distance {median}, mean {mean}")
    };
    let both = [("Q", &device.seeks_queue), ("D", &device.seeks_issue)];
    let told: Vec<String> = both.iter().filter(|(_, s)| s.count > 0).map(|(name, s)| at(name, s)).collect();
    if told.is_empty() { "too few I/Os to tell".to_string() } else { told.join("; ") }
}

/// How many in flight.
pub fn depth(device: &Device) -> String {
    let at = |name: &str, depth: &Depth| {
        let (mean, p90) = (significant(depth.mean()), depth.quantile(0.9));
        let most = if p90 == 0 { "none".to_string() } else { format!("{p90} or less") };
        format!("{name} mean {mean}, {most} for 90 % of the time, at most {}", depth.max)
    };
    let queue = at("from Q (pieces)", &device.depth_queue);
    let issue = at("from D (requests)", &device.depth_issue);
    match (device.depth_queue.arrivals, device.depth_issue.arrivals) {
        (0, 0) => UNSEEN.to_string(),
        (_, 0) => queue,
        (0, _) => issue,
        _ => format!("{queue}; {issue}"),
    }
}

/// The depth that tells when a device had work, and from which moment on: of the driver where requests were seen, else of
/// the queue.
pub fn at_work(device: &Device) -> Option<(&Depth, Moment)> {
    let both = [(&device.depth_issue, Moment::Issue), (&device.depth_queue, Moment::Queue)];
    both.into_iter().find(|(depth, _)| depth.arrivals > 0)
}

/// Active and idle periods.
pub fn activity(device: &Device) -> String {
    let Some((depth, from)) = at_work(device) else { return UNSEEN.to_string() };
    let what = if from == Moment::Issue { "driver and device" } else { "the device" };
    let (active_ns, idle_ns) = (depth.active_ns(), depth.idle_ns());
    format!(
        "{what} had work {:.1} % of the time, in {} periods, the longest {}; the longest idle time was {}",
        share(active_ns, active_ns + idle_ns) * 100.0,
        grouped(depth.active_periods),
        Nanos(depth.active_ns_max),
        Nanos(depth.idle_ns_max)
    )
}

/// Plugs.
pub fn plugs(device: &Device) -> String {
    let p = &device.plugs;
    if p.plugs + p.unplugs + p.unplugs_by_schedule == 0 {
        return "none seen".to_string();
    }
    let mut text = format!("{} set", grouped(p.plugs));
    let kinds = [
        (p.unplugs, p.requests, "by their task"),
        (p.unplugs_by_schedule, p.requests_by_schedule, "by a task going to sleep"),
    ];
    for (n, requests, how) in kinds.into_iter().filter(|(n, ..)| *n > 0) {
        text += &format!(", {} let go {how} ({:.1} requests each)", grouped(n), share(requests, n));
    }
    text + &format!("; set {:.1} % of the time", share(p.plugged_ns, device.recorded_ns()) * 100.0)
}

/// What became of the events.
pub fn account(device: &Device) -> String {
    let account = &device.account;
    let unmatched: u64 = account.unmatched.values().sum();
    let mut text = format!("{} of {} matched", grouped(account.matched), grouped(account.events));
    if unmatched > 0 {
        let each: Vec<String> =
            account.unmatched.iter().map(|(reason, n)| format!("{} {}", grouped(*n), why(*reason))).collect();
        text += &format!("; {} not: {}", grouped(unmatched), each.join(", "));
    }
    if account.ambiguous > 0 {
        let n = grouped(account.ambiguous);
        text += &format!("; {n} of the matched fitted several I/Os at one sector and went to the oldest");
    }
    if account.dropped > 0 {
        text += &format!("; {} are missing", grouped(account.dropped));
    }
    text
}

fn why(reason: Reason) -> &'static str {
    match reason {
        Reason::BeforeStart => "of I/Os begun before the recording",
        Reason::NoQ => "without a Q",
        Reason::NoD => "without a D",
        Reason::NoC => "without a C",
        Reason::AfterEnd => "of I/Os not done when the recording ended",
        Reason::NoRequest => "about a request not seen",
        Reason::UnknownAct => "of an unknown kind",
        Reason::TooManyDevices => "of more devices than are followed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_say_what_they_are_over() {
        let second = Some(1_000_000_000);
        for (begun_ns, ended_ns, expected) in [
            (second, second, "1.00 s"),
            (second, None, "1.00 s from its start to the last event"),
            (None, second, "1.00 s from the first event to its end"),
            (None, None, "1.00 s from first to last event"),
        ] {
            assert_eq!(recorded(Extent { begun_ns, ended_ns }, 1_000_000_000), expected);
        }
    }
}
