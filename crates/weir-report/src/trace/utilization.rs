//! What a device's %util is worth, as text.

use super::live::table::duration;
use crate::layout::{labelled_at, table};
use weir_blocktrace::{Row, Spread};
use weir_core::units::{Bytes, megabytes_per_second, per_second, significant};
use weir_verdict::saturation::Utilization;

/// Where the text of the answer begins.
const EDGE: usize = 2;

/// The figures, then what follows from them.
pub fn utilization(u: &Utilization) -> String {
    let mut out = format!("{}, watched for {:.1} s\n\n", u.device, u.elapsed_ns as f64 / 1e9);
    table(&mut out, &rows(u), 2);
    out.push('\n');
    for statement in &u.statements {
        labelled_at(&mut out, "-", EDGE, statement);
    }
    out
}

fn rows(u: &Utilization) -> Vec<Vec<String>> {
    let load = &u.load;
    let row = |name: &str, value: String| vec![format!("  {name}"), value];
    let mut rows = vec![
        row("%util", format!("{:.0} %  of the time with at least one request in flight", load.util_percent)),
        row("IOPS", iops(u)),
        row("throughput", throughput(u)),
        row("mean depth", format!("{}  (rate × mean wait)", significant(load.queue_mean))),
    ];
    rows.extend(u.await_ms.map(|ms| row("await", waits(u, ms))));
    for (name, text) in u.stages.as_ref().map(stages).unwrap_or_default() {
        rows.push(row(name, text));
    }
    rows
}

fn iops(u: &Utilization) -> String {
    let load = &u.load;
    let kinds = [
        ("read", load.reads_per_second),
        ("write", load.writes_per_second),
        ("discard", load.discards_per_second),
        ("flush commands", load.flushes_per_second),
    ];
    let seen: Vec<String> = kinds
        .into_iter()
        .filter(|(_, rate)| *rate > 0.0)
        .map(|(name, rate)| format!("{name} {}", per_second(rate)))
        .collect();
    let all = per_second(u.iops);
    if seen.is_empty() { all } else { format!("{all}  ({})", seen.join(", ")) }
}

fn throughput(u: &Utilization) -> String {
    let load = &u.load;
    let bytes = load.read_bytes_per_second + load.write_bytes_per_second;
    let moving = load.reads_per_second + load.writes_per_second;
    let each = if moving > 0.0 {
        format!("  ({} a request)", Bytes((bytes / moving).round() as u64))
    } else {
        String::new()
    };
    format!("{}{each}", megabytes_per_second(bytes))
}

fn waits(u: &Utilization, ms: f64) -> String {
    let load = &u.load;
    let both = load.reads_per_second > 0.0 && load.writes_per_second > 0.0;
    let kinds = format!(
        "  (read {}, write {})",
        duration(load.read_wait_ms * 1e6),
        duration(load.write_wait_ms * 1e6)
    );
    format!("{}{}", duration(ms * 1e6), if both { kinds } else { String::new() })
}

/// What the I/O waited for, where stages could be seen.
fn stages(row: &Row) -> Vec<(&'static str, String)> {
    let spread = |s: Spread| {
        let quantile = |name: &str, ns: Option<u64>| ns.map(|ns| format!(", {name} {}", duration(ns as f64)));
        let quantiles = [quantile("p50", s.p50_ns), quantile("p99", s.p99_ns)];
        format!("mean {}{}", duration(s.mean_ns), quantiles.into_iter().flatten().collect::<String>())
    };
    let share = row.queue_share.map(|share| format!("  ({:.0} % of the time)", share * 100.0));
    let queue = row.queue.map(|queue| ("in queue", spread(queue) + &share.unwrap_or_default()));
    let device = row.device.map(|device| ("in device", spread(device)));
    queue.into_iter().chain(device).collect()
}
