//! The report for people, at most 100 columns wide: where the time goes first, then what stands behind it.

use super::figures::{Figures, Kind, classes, rate, share, sizes};
use super::phrases::{
    account, activity, depth, faults, merges, plugs, recorded, seeks, where_on, where_time_goes,
};
use crate::layout::{labelled, table};
use weir_blocktrace::analysis::{Device, Direction, Parts, Sender, Traffic};
use weir_blocktrace::{Analysis, Class, Reason, Stage};
use weir_core::stats::Distribution;
use weir_core::stats::quantile::needed;
use weir_core::units::{Bytes, Nanos, grouped, per_second, significant};

/// Processes and cgroups listed.
const SENDERS_MAX: usize = 12;
/// Sizes listed for each class.
const SIZES_MAX: usize = 12;
/// The stage of time that no stage stands for.
const REST: &str = "rest";
/// In place of a quantile that too few I/Os stand behind.
const TOO_FEW: &str = "-";

/// The report.
pub fn report(analysis: &Analysis) -> String {
    let mut out = String::new();
    append_recording(&mut out, analysis);
    for device in &analysis.devices {
        out.push('\n');
        append_device(&mut out, analysis, device);
    }
    append_senders(&mut out, "process", &analysis.processes_by_name());
    append_senders(&mut out, "cgroup", &analysis.cgroups);
    let few = analysis.table.cells().map(|(_, cell)| cell.ios).sum::<u64>() < needed(0.999);
    if few && !analysis.devices.is_empty() {
        out.push('\n');
        let text = "a quantile stands where three or more I/Os are expected beyond it (300 for p99, 3,000 for p99.9); \
                    where there are fewer, the maximum is all that can be said";
        labelled(&mut out, TOO_FEW, text);
    }
    out
}

fn append_recording(out: &mut String, analysis: &Analysis) {
    let devices = match analysis.devices.len() {
        1 => "1 device".to_string(),
        n => format!("{n} devices"),
    };
    let unmatched = analysis.unmatched();
    let lone: u64 =
        [Reason::NoQ, Reason::NoD, Reason::NoC].iter().filter_map(|reason| unmatched.get(reason)).sum();
    let dropped = match (analysis.events_dropped(), lone) {
        (0, 0) => "no loss known".to_string(),
        (0, _) if analysis.counts_losses => "none lost by the recorder".to_string(),
        (0, _) => "some seem lost".to_string(),
        (n, _) => format!("{} lost by the recorder", grouped(n)),
    };
    let events = grouped(analysis.events);
    let recorded = recorded(analysis.extent, analysis.recorded_ns());
    let text = format!("{recorded}, {events} events of {devices}; {dropped}");
    labelled(out, "trace", &text);
    let n = grouped(lone);
    if analysis.events_dropped() == 0 && lone > 0 && analysis.counts_losses {
        let text = format!(
            "{n} events lack the other end of their I/O, and the recorder lost none: devices held I/Os for long, or the \
             kernel ran no program of the recorder where they ended"
        );
        labelled(out, "note", &text);
    } else if analysis.events_dropped() == 0 && lone > 0 {
        let text = format!(
            "{n} events lack the other end of their I/O: the recorder lost events, or devices held I/Os for long. How many \
             were lost the recording does not say (up to Linux 6.1 it leaves no gap in its numbers, and blktrace alone \
             prints them)"
        );
        labelled(out, "warning", &text);
    }
    if analysis.events_dropped() > 0 {
        let text = "events are missing: counts are too low, and I/Os whose events are missing are among the unmatched";
        labelled(out, "warning", text);
    }
    if analysis.events_of_further_devices > 0 {
        let n = grouped(analysis.events_of_further_devices);
        labelled(out, "warning", &format!("{n} events of further devices are in no figure"));
    }
}

fn append_device(out: &mut String, analysis: &Analysis, device: &Device) {
    let counts = [(device.pieces, "pieces"), (device.requests, "requests"), (device.bios, "top-level bios")];
    let counts = counts.map(|(n, what)| format!("{} {what}", grouped(n))).join(", ");
    let recorded = recorded(device.extent, device.recorded_ns());
    labelled(out, "device", &format!("{}: {counts} in {recorded}", device.label()));
    let all = Kind::whole(analysis, device);
    labelled(out, "where", &where_on(device, &all.parts));
    for class in [Class::Read, Class::Write] {
        let kind = Kind::class(analysis, device, class);
        if kind.cell.ios > 0 && differ(&kind.parts, &all.parts) {
            labelled(out, "", &format!("{}s: {}", class.name(), where_time_goes(&kind.parts)));
        }
    }
    append_stages(out, analysis, device);
    append_units(out, device);
    append_sizes(out, analysis, device);
    out.push('\n');
    let lines = [
        ("merges", merges(device)),
        ("faults", faults(device)),
        ("seeks", seeks(device)),
        ("depth", depth(device)),
        ("busy", activity(device)),
        ("plugs", plugs(device)),
        ("events", account(device)),
    ];
    for (label, text) in lines {
        labelled(out, label, &text);
    }
}

/// Whether it is worth saying where the time of one goes when that of the other is said.
fn differ(a: &Parts, b: &Parts) -> bool {
    let of = |parts: &Parts| parts.each().map(|(_, ns)| share(ns, parts.total_ns()));
    of(a).iter().zip(of(b)).any(|(a, b)| (a - b).abs() >= 0.05)
}

/// One table for all classes, so that their columns stand under each other.
fn append_stages(out: &mut String, analysis: &Analysis, device: &Device) {
    let header = ["class", "stage", "count", "share", "min", "mean", "p50", "p90", "p99", "p99.9", "max"];
    let mut rows = vec![header.map(String::from).to_vec()];
    let mut told: Vec<(Class, Kind)> = Vec::new();
    for class in classes(analysis, device.device) {
        let kind = Kind::class(analysis, device, class);
        // Classes overlap; one with the same I/Os as another says nothing new.
        if let Some((same, _)) = told.iter().rev().find(|(_, other)| other.cell == kind.cell) {
            rows.push([short_name(class), &format!("as {}", short_name(*same))].map(String::from).to_vec());
            continue;
        }
        for (n, stage) in kind.shown().enumerate() {
            let name = if n == 0 { short_name(class) } else { "" };
            rows.push(stage_row(name, stage.name(), &kind.stage(stage)));
        }
        // What no stage stands for, so that shares add up; a stacked device's own time is all of that.
        let elsewhere = share(kind.parts.elsewhere_ns, kind.parts.total_ns());
        if (0.0005..1.0).contains(&elsewhere) {
            rows.push(["", REST, "", &percent(elsewhere)].map(String::from).to_vec());
        }
        told.push((class, kind));
    }
    if rows.len() > 1 {
        out.push('\n');
        table(out, &rows, 2);
    }
    if rows.iter().any(|row| row[1] == REST) {
        let text = "time between events that were not recorded; a flush spends it waiting for a flush command, which \
                    may serve several";
        out.push('\n');
        labelled(out, REST, text);
    }
}

fn short_name(class: Class) -> &'static str {
    match class {
        Class::SyncWrite => "sync write",
        Class::Passthrough => "passthru",
        other => other.name(),
    }
}

fn stage_row(class: &str, stage: &str, f: &Figures) -> Vec<String> {
    let share = f.share.map_or(String::new(), percent);
    let mut row = vec![class.to_string(), stage.to_string(), grouped(f.count), share];
    row.extend([Nanos(f.min_ns), Nanos(f.mean_ns.round() as u64)].map(|ns| ns.to_string()));
    row.extend(quantiles(f));
    row.push(Nanos(f.max_ns).to_string());
    row
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn quantiles(f: &Figures) -> [String; 4] {
    let all = [(0.5, f.p50_ns), (0.9, f.p90_ns), (0.99, f.p99_ns), (0.999, f.p99_9_ns)];
    all.map(|(quantile, ns)| quantile_or_dash(f.count, quantile, ns))
}

fn quantile_or_dash(count: u64, quantile: f64, ns: u64) -> String {
    if count < needed(quantile) { TOO_FEW.to_string() } else { Nanos(ns).to_string() }
}

/// Latency per request and per top-level bio, named so.
fn append_units(out: &mut String, device: &Device) {
    let header = ["per", "stage", "", "count", "/s", "MB/s", "mean", "p50", "p99", "max"];
    let mut rows = vec![header.map(String::from).to_vec()];
    for direction in Direction::ALL {
        let (traffic, latency) =
            (&device.traffic[direction as usize], &device.request_latency[direction as usize]);
        if traffic.requests == 0 {
            continue;
        }
        let known = [("D2C", &latency.d2c), ("Q2C", &latency.q2c)].into_iter().filter(|(_, d)| !d.is_empty());
        for (stage, distribution) in known {
            rows.push(unit_row(
                "request",
                stage,
                direction,
                distribution,
                Some(traffic),
                device.recorded_ns(),
            ));
        }
    }
    for direction in Direction::ALL {
        let distribution = &device.bio_latency[direction as usize];
        if !distribution.is_empty() {
            rows.push(unit_row("bio", "Q2C", direction, distribution, None, device.recorded_ns()));
        }
    }
    if rows.len() > 1 {
        out.push('\n');
        table(out, &rows, 3);
    }
}

fn unit_row(
    unit: &str,
    stage: &str,
    direction: Direction,
    d: &Distribution,
    traffic: Option<&Traffic>,
    span_ns: u64,
) -> Vec<String> {
    let mut row = [unit, stage, direction.name()].map(String::from).to_vec();
    let mb_per_s = traffic.filter(|t| t.bytes > 0);
    let mb_per_s = mb_per_s.map_or(String::new(), |t| significant(rate(t.bytes, span_ns) / 1e6));
    row.extend([grouped(d.count()), per_second(rate(d.count(), span_ns)), mb_per_s]);
    row.push(Nanos(d.mean_ns().round() as u64).to_string());
    row.extend([0.5, 0.99].map(|q| quantile_or_dash(d.count(), q, d.quantile(q))));
    row.push(Nanos(d.max_ns()).to_string());
    row
}

fn append_sizes(out: &mut String, analysis: &Analysis, device: &Device) {
    let header = ["class", "up to", "pieces", "of data", "Q2C mean", "p50", "p99", "D2C mean", "p50", "p99"];
    let mut rows = vec![header.map(String::from).to_vec()];
    for class in [Class::Read, Class::Write, Class::Discard] {
        let sizes = sizes(analysis, device.device, class);
        let of_class = Kind::class(analysis, device, class).cell.bytes;
        for (n, size) in sizes.iter().take(SIZES_MAX).enumerate() {
            let kind = Kind::sized(analysis, device, class, *size);
            let name = if n == 0 { class.name() } else { "" };
            let of_data = percent(share(kind.cell.bytes, of_class));
            let size = Bytes(size.bytes_max()).to_string();
            let mut row = vec![name.to_string(), size, grouped(kind.cell.ios), of_data];
            for stage in [Stage::Q2C, Stage::D2C] {
                row.extend(latency_cells(kind.cell.stage(stage)));
            }
            rows.push(row);
        }
    }
    if rows.len() > 1 {
        out.push('\n');
        table(out, &rows, 1);
    }
}

/// Mean, p50 and p99.
fn latency_cells(d: &Distribution) -> [String; 3] {
    if d.is_empty() {
        return [TOO_FEW; 3].map(String::from);
    }
    let quantile = |q: f64| quantile_or_dash(d.count(), q, d.quantile(q));
    [Nanos(d.mean_ns().round() as u64).to_string(), quantile(0.5), quantile(0.99)]
}

fn append_senders(out: &mut String, what: &str, senders: &[Sender]) {
    if senders.is_empty() {
        return;
    }
    let header =
        [what, "threads", "pieces", "read MB", "written MB", "Q2C mean", "p50", "p99", "max", "in D2C"];
    let mut rows = vec![header.map(String::from).to_vec()];
    rows.extend(senders.iter().take(SENDERS_MAX).map(sender_row));
    if what != "process" {
        rows.iter_mut().for_each(|row| drop(row.remove(1)));
    }
    out.push('\n');
    table(out, &rows, 1);
    if senders.len() > SENDERS_MAX {
        let pieces: u64 = senders[SENDERS_MAX..].iter().map(|s| s.pieces).sum();
        let others = senders.len() - SENDERS_MAX;
        out.push_str(&format!("and {others} more with {} pieces\n", grouped(pieces)));
    }
}

fn sender_row(sender: &Sender) -> Vec<String> {
    let name = if sender.name.is_empty() { format!("no. {}", sender.id) } else { sender.name.clone() };
    let megabytes = |direction: Direction| significant(sender.traffic[direction as usize].bytes as f64 / 1e6);
    let members = if sender.members == 0 { TOO_FEW.to_string() } else { sender.members.to_string() };
    let mut row = vec![name, members, grouped(sender.pieces)];
    row.extend([Direction::Read, Direction::Write].map(megabytes));
    row.extend(latency_cells(&sender.q2c));
    let max =
        if sender.q2c.is_empty() { TOO_FEW.to_string() } else { Nanos(sender.q2c.max_ns()).to_string() };
    row.push(max);
    let in_device = sender.parts.share(Stage::D2C);
    row.push(in_device.map_or(TOO_FEW.to_string(), percent));
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::html::tests::analysis;
    use crate::trace::json;
    use weir_blocktrace::Extent;

    #[test]
    fn a_recorder_that_counts_no_loss_is_believed() {
        let mut analysis = analysis(30, 1);
        analysis.devices[0].account.unmatched = [(Reason::NoC, 7)].into();
        for (counts_losses, dropped, expected, not) in [
            (false, 0, "some seem lost", "lost none"),
            (true, 0, "the recorder lost none", "warning"),
            (true, 4, "4 lost by the recorder", "lost none"),
        ] {
            (analysis.counts_losses, analysis.dropped) = (counts_losses, dropped);
            let text = report(&analysis).replace("\n         ", " ");
            assert!(text.contains(expected) && !text.contains(not), "{text}");
            let html = crate::html::trace(&analysis, "a", &[]);
            assert_eq!(html.contains("often do not say so"), !counts_losses, "{expected}");
        }
    }

    /// 3,000 I/Os in the midst of a recording of a minute.
    #[test]
    fn rates_are_over_the_time_recorded() {
        let mut analysis = analysis(3000, 1);
        let (text, span_ns) = (report(&analysis), analysis.span_ns());
        assert!(span_ns < 3_000_000_000 && text.contains(" from first to last event, "), "{text}");
        analysis.extent = Extent { begun_ns: Some(0), ended_ns: Some(60_000_000_000) };
        analysis.devices[0].extent = analysis.extent;
        let text = report(&analysis);
        assert!(text.contains("60.0 s, ") && text.contains(" in 60.0 s\n"), "{text}");
        assert!(!text.contains("last event"), "{text}");
        let read = text.lines().find(|line| line.starts_with("request  D2C    read")).unwrap();
        assert!(read.contains("2,000  33.3"), "{read}");
        let json: serde_json::Value = serde_json::from_str(&json::analysis(&analysis).unwrap()).unwrap();
        let device = &json["devices"][0];
        assert_eq!(device["by_request"]["read"]["requests_per_s"], 2000.0 / 60.0);
        assert_eq!(device["classes"]["read"]["pieces_per_s"], 2000.0 / 60.0);
        assert_eq!(
            (&device["span_ns"], &device["recorded_ns"]),
            (&span_ns.into(), &60_000_000_000_u64.into())
        );
        assert_eq!((&device["recorded_from"], &device["recorded_to"]), (&"start".into(), &"end".into()));
        let html = crate::html::trace(&analysis, "a", &[]);
        assert!(html.contains("60.0 s recorded") && html.contains("I/Os in 60.0 s."));
    }
}
