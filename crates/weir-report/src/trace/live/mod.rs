//! The live view: a screen that fits the terminal it is given, and plain lines where there is none.

pub(crate) mod table;

use std::collections::{BTreeMap, VecDeque};

use table::{duration, shown, stages, table};
use weir_blocktrace::{
    DeviceFrame, Flags, Frame, History, Kind, LimitUse, Piece, Point, SlowIo, Source, Stage,
};
use weir_core::units::{Bytes, Nanos, grouped, megabytes_per_second, per_second, significant};

/// Narrowest and lowest screen that is drawn; on a smaller terminal lines are cut.
const COLUMNS_MIN: usize = 20;
pub(crate) const SPARKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Lines that the foot may have on the lowest screen: a rule, the source, and that there is more.
const FOOT_LEAST: usize = 3;
/// Widest sparkline: a minute of seconds.
const SPARKS_MAX: usize = 60;

/// What stays the same while watching.
#[derive(Debug, Clone)]
pub struct About {
    /// Where the figures come from.
    pub source: Source,
    /// How: hooks and detail, in a few words; may be empty.
    pub how: String,
    /// Sentences: what this view cannot show, and why.
    pub remarks: Vec<String>,
    /// Time between refreshes.
    pub interval: Nanos,
    /// From when on a request is slow, if slow ones are shown.
    pub slow: Option<Nanos>,
}

/// Everything a screen shows.
pub struct Screen<'a> {
    /// What stays the same.
    pub about: &'a About,
    /// The last interval.
    pub frame: &'a Frame,
    /// The last minute.
    pub history: &'a History,
    /// The last slow requests, oldest first.
    pub slow: &'a VecDeque<SlowIo>,
    /// Losses since the start, by reason.
    pub lost: &'a BTreeMap<String, u64>,
}

/// The lines of a screen of this size: at most `rows` lines of at most `columns` characters. Devices come first, then
/// as many slow requests as fit; the foot, which says what the figures stand on, is always there.
pub fn screen(screen: &Screen<'_>, columns: usize, rows: usize) -> Vec<String> {
    let columns = columns.max(COLUMNS_MIN);
    let head = head(screen, columns);
    let foot = foot(screen, columns, (rows / 3).max(FOOT_LEAST));
    let room = rows.saturating_sub(head.len() + foot.len());
    let mut lines = head;
    let devices = devices(screen, columns, room);
    let room = room - devices.len().min(room);
    lines.extend(devices);
    lines.extend(slow(screen, columns, room));
    // The foot stands at the bottom.
    lines.resize(rows.saturating_sub(foot.len()), String::new());
    lines.extend(foot);
    lines.truncate(rows);
    lines.into_iter().map(|line| cut(&line, columns)).collect()
}

/// A line cut at the terminal's edge.
pub(crate) fn cut(line: &str, columns: usize) -> String {
    if line.chars().count() <= columns {
        return line.to_string();
    }
    line.chars().take(columns - 1).chain(['…']).collect()
}

/// `left` and `right` at the two edges, or `left` alone where both do not fit.
pub(crate) fn edges(left: &str, right: &str, columns: usize) -> String {
    let room = columns.saturating_sub(left.chars().count() + right.chars().count());
    if room < 2 { left.to_string() } else { format!("{left}{}{right}", " ".repeat(room)) }
}

fn head(screen: &Screen<'_>, columns: usize) -> Vec<String> {
    let left = format!("weir trace live, every {}", seconds(screen.about.interval.0));
    let right = format!("{} s so far; q ends", screen.frame.at_ns / 1_000_000_000);
    vec![edges(&left, &right, columns), dirty(screen.frame), String::new()]
}

const MIB: u64 = 1 << 20;

/// What buffered writers have left to write-back.
fn dirty(frame: &Frame) -> String {
    let memory = &frame.memory;
    // Whole MiB: what is less is nobody's flood. It is not nothing either, nor does the kernel's sum know.
    let least = memory.unknown_below_bytes.div_ceil(MIB).max(1) * MIB;
    let text = |bytes: u64| match bytes {
        few if few < least => format!("under {}", Bytes(least)),
        many => Bytes(many / MIB * MIB).to_string(),
    };
    format!("page cache: {} dirty, {} being written", text(memory.dirty_bytes), text(memory.writeback_bytes))
}

/// Seconds with as many decimals as they need.
fn seconds(ns: u64) -> String {
    format!("{} s", ns as f64 / 1e9)
}

/// Source, cost, losses, and what cannot be seen, in at most so many lines.
fn foot(screen: &Screen<'_>, columns: usize, most: usize) -> Vec<String> {
    let mut lines = vec!["─".repeat(columns)];
    let status = status(screen.about, screen.frame, screen.lost);
    for remark in std::iter::once(&status).chain(&screen.about.remarks) {
        lines.extend(crate::layout::wrap(remark, columns));
    }
    if lines.len() > most {
        lines.truncate(most - 1);
        lines.push("and more, which the summary at the end says".to_string());
    }
    lines
}

/// One line: what the figures come from, what getting them costs, and what got lost.
pub fn status(about: &About, frame: &Frame, lost: &BTreeMap<String, u64>) -> String {
    let how = if about.how.is_empty() { String::new() } else { format!(" ({})", about.how) };
    let percent = |share: f64| format!("{} %", significant(share * 100.0));
    let kernel = match frame.cost.kernel_cpu_share {
        Some(share) => format!(" and {} in the kernel", percent(share)),
        None => String::new(),
    };
    let lost = if lost.is_empty() {
        "nothing lost".to_string()
    } else {
        format!("lost or incomplete: {}", losses(lost))
    };
    format!(
        "source {}{how}; costs {} of a processor here{kernel}; {lost}",
        about.source.name(),
        percent(frame.cost.weir_cpu_share)
    )
}

/// What got lost, with the reasons.
fn losses(lost: &BTreeMap<String, u64>) -> String {
    lost.iter().map(|(reason, n)| format!("{} {reason}", grouped(*n))).collect::<Vec<_>>().join(", ")
}

/// The devices' blocks, as many as fit, the busiest first; those left out are counted.
fn devices(screen: &Screen<'_>, columns: usize, room: usize) -> Vec<String> {
    let mut order: Vec<&DeviceFrame> = screen.frame.devices.iter().collect();
    order.sort_by(|a, b| b.iops().total_cmp(&a.iops()).then(a.number.cmp(&b.number)));
    let mut lines = Vec::new();
    for (shown, device) in order.iter().enumerate() {
        let block = block(device, screen.history, columns);
        let more = order.len() - shown;
        // A line is kept for the count, unless this is the last device.
        let reserve = usize::from(more > 1);
        if lines.len() + block.len() + reserve > room && shown > 0 {
            lines.push(format!("and {more} more; a larger terminal or --device shows them"));
            break;
        }
        lines.extend(block);
    }
    if order.is_empty() {
        lines.push("no device has done any I/O yet".to_string());
    }
    lines
}

fn block(device: &DeviceFrame, history: &History, columns: usize) -> Vec<String> {
    let mut lines = vec![headline(device, columns)];
    if let Some(limits) = limits(device) {
        lines
            .extend(crate::layout::wrap(&limits, columns.saturating_sub(4)).iter().map(|l| format!("  {l}")));
    }
    lines.extend(classes(device, columns));
    lines.extend(sparklines(device, history, columns));
    lines.push(String::new());
    lines
}

/// The classes of a device, or why it has none: the kernel counts I/Os that nobody follows, too.
fn classes(device: &DeviceFrame, columns: usize) -> Vec<String> {
    if device.rows.is_empty() {
        let is_unfollowed = device.is_unfollowed();
        let why = if is_unfollowed { "its single I/Os are not followed here" } else { "nothing finished" };
        return vec![format!("  {why}")];
    }
    table(&device.rows, columns).into_iter().chain(stages(&device.rows, columns)).collect()
}

/// The limits on a device, and where what they throttle waits.
fn limits(device: &DeviceFrame) -> Option<String> {
    let each: Vec<String> = device.limits.iter().map(LimitUse::words).collect();
    (!each.is_empty())
        .then(|| format!("{}; what waits for a limit waits before Q, and no stage holds it", each.join("; ")))
}

fn headline(device: &DeviceFrame, columns: usize) -> String {
    let figures = figures(device);
    let long = edges(&device.name, &figures, columns.min(110));
    if long.len() > device.name.len() { long } else { format!("{} {figures}", device.name) }
}

/// The counters' figures in one line.
pub fn figures(device: &DeviceFrame) -> String {
    let load = &device.load;
    format!(
        "{} IOPS  {}  {:.0} %util  depth {} ({} now)",
        per_second(device.iops()),
        megabytes_per_second(device.bytes_per_second()),
        load.util_percent,
        significant(load.queue_mean),
        load.in_flight,
    )
}

/// IOPS and latency of the last minute, side by side where there is room.
fn sparklines(device: &DeviceFrame, history: &History, columns: usize) -> Vec<String> {
    let points: Vec<&Point> = history.of(device.number).collect();
    if points.len() < 2 {
        return Vec::new();
    }
    let iops: Vec<Option<f64>> = points.iter().map(|point| Some(point.iops)).collect();
    let latency: Vec<Option<f64>> = points.iter().map(|point| point.latency_ns).collect();
    let has_p99 = device.rows.iter().any(|row| row.total.is_some_and(|total| total.p99_ns.is_some()));
    let name = if has_p99 { "p99" } else { "mean" };
    let labels = 2 * 24;
    let wide = columns > labels + 2 * 20;
    let length =
        if wide { (columns - labels) / 2 } else { columns.saturating_sub(24).max(4) }.min(SPARKS_MAX);
    let iops = spark("IOPS", &iops, length, |most| format!("≤ {}", per_second(most)));
    let latency = spark(name, &latency, length, |most| format!("≤ {}", duration(most)));
    if wide { vec![format!("{iops}    {}", latency.trim_start())] } else { vec![iops, latency] }
}

/// The last `length` values as bars from 0 to the largest, which is named; a value that is absent is a gap.
fn spark(name: &str, values: &[Option<f64>], length: usize, most_text: impl Fn(f64) -> String) -> String {
    let shown = &values[values.len().saturating_sub(length)..];
    let most = shown.iter().flatten().fold(0.0, |most: f64, value| most.max(*value));
    let bar = |value: &Option<f64>| match value {
        Some(value) if most > 0.0 => SPARKS[((value / most * 7.0).round() as usize).min(7)],
        Some(_) => SPARKS[0],
        None => ' ',
    };
    format!("  {name:<4} {} {}", shown.iter().map(bar).collect::<String>(), most_text(most))
}

/// Slow requests, the latest that fit.
fn slow(screen: &Screen<'_>, columns: usize, room: usize) -> Vec<String> {
    let Some(limit) = screen.about.slow.filter(|_| room >= 2) else { return Vec::new() };
    let mut lines = vec![format!("{} ms and slower", limit.as_millis_f64())];
    if screen.slow.is_empty() {
        lines.push("  none yet".to_string());
    }
    let name = |number| screen.frame.devices.iter().find(|d| d.number == number).map(|d| d.name.as_str());
    let texts: Vec<Vec<String>> = screen
        .slow
        .iter()
        .map(|io| crate::layout::wrap(&slow_line(io, name(io.piece.device)), columns.saturating_sub(4)))
        .collect();
    let (mut first, mut taken) = (texts.len(), 0);
    while first > 0 && taken + texts[first - 1].len() < room {
        first -= 1;
        taken += texts[first].len();
    }
    for text in &texts[first..] {
        for (part, line) in text.iter().enumerate() {
            lines.push(format!("{}{line}", if part == 0 { "  " } else { "      " }));
        }
    }
    lines
}

/// A slow request in one line: what it was, all its stages, and who sent it.
pub fn slow_line(io: &SlowIo, device: Option<&str>) -> String {
    let piece = &io.piece;
    let device = device.map_or_else(|| piece.device.to_string(), str::to_string);
    let whole = [Stage::Q2C, Stage::G2C].into_iter().find_map(|stage| piece.times.stage(stage));
    let total = whole.map(|ns| format!(" {}", duration(ns as f64))).unwrap_or_default();
    let stages: Vec<String> = stages_of(piece)
        .into_iter()
        .map(|(stage, ns)| format!("{} {}", stage.name(), duration(ns as f64)))
        .collect();
    let sender = match (io.sender.as_str(), piece.pid) {
        ("", 0) => String::new(),
        ("", pid) => format!("; pid {pid}"),
        (name, pid) => format!("; {name} ({pid})"),
    };
    let failed = if piece.error != 0 { format!("; error {}", piece.error) } else { String::new() };
    format!(
        "{:.2} s {device} {} {} at {}{total}: {}{sender}{failed}",
        io.at_ns as f64 / 1e9,
        what(piece),
        Bytes(u64::from(piece.bytes)),
        piece.sector,
        stages.join(", "),
    )
}

/// The stages that a piece went through, in order; the totals left out.
fn stages_of(piece: &Piece) -> Vec<(Stage, u64)> {
    let parts = [Stage::Q2G, Stage::G2I, Stage::G2D, Stage::I2D, Stage::Q2M, Stage::M2D, Stage::D2C];
    let merged = piece.kind == Kind::Merged;
    // Between G and D a merged piece was part of another's request: its own stages are Q2M and M2D.
    let own = |stage: &Stage| matches!(stage, Stage::Q2M | Stage::M2D) == merged || *stage == Stage::D2C;
    parts.into_iter().filter(own).filter_map(|stage| Some((stage, piece.times.stage(stage)?))).collect()
}

/// The kind of I/O in words.
pub(crate) fn what(piece: &Piece) -> String {
    let has = |flag| piece.flags.has(flag);
    let verb = if has(Flags::PASSTHROUGH) {
        "command"
    } else if has(Flags::DISCARD) {
        "discard"
    } else if piece.bytes == 0 {
        "flush"
    } else if has(Flags::WRITE) {
        if has(Flags::SYNC) { "sync write" } else { "write" }
    } else {
        "read"
    };
    let extra = [(Flags::METADATA, " metadata"), (Flags::FUA, " FUA"), (Flags::AHEAD, " ahead")];
    let extra = extra.into_iter().filter(|(flag, _)| has(*flag)).map(|(_, word)| word);
    std::iter::once(verb).chain(extra).collect()
}

/// An interval as plain lines, one a device, for logs and pipes.
pub fn lines(frame: &Frame) -> String {
    let at = format!("{:.1} s", frame.at_ns as f64 / 1e9);
    let mut out = String::new();
    for device in &frame.devices {
        out.push_str(&format!("{at} {} {}", device.name, figures(device)));
        for row in shown(&device.rows) {
            out.push_str(&format!("; {}", table::words(row)));
        }
        out.push('\n');
    }
    if !frame.lost.is_empty() {
        out.push_str(&format!("{at} lost or incomplete: {}\n", losses(&frame.lost)));
    }
    out
}

/// The whole time as text: what stands on stdout when the view is over.
pub fn summary(about: &About, frame: &Frame, columns: usize) -> String {
    let columns = columns.clamp(COLUMNS_MIN, crate::layout::COLUMNS);
    let mut out = format!("Over {:.1} s\n", frame.length_ns as f64 / 1e9);
    for device in &frame.devices {
        out.push('\n');
        out.push_str(&format!("{}  {}\n", device.name, figures(device)));
        for text in limits(device).iter().flat_map(|text| crate::layout::wrap(text, columns - 2)) {
            out.push_str(&format!("  {text}\n"));
        }
        classes(device, columns).iter().for_each(|line| {
            out.push_str(line.trim_end());
            out.push('\n');
        });
    }
    if frame.devices.is_empty() {
        out.push_str("No device did any I/O.\n");
    }
    out.push('\n');
    for line in std::iter::once(&status(about, frame, &frame.lost)).chain(&about.remarks) {
        crate::layout::wrap(line, columns).iter().for_each(|line| {
            out.push_str(line);
            out.push('\n');
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_blocktrace::Cost;
    use weir_core::target::{DeviceLoad, DeviceNumber, MemoryLoad};

    /// A screen of these devices, by counters that nobody's I/Os stand behind.
    fn drawn(devices: &[(u32, f64)], remarks: &[String], rows: usize) -> String {
        let device = |(minor, iops): &(u32, f64)| DeviceFrame {
            number: DeviceNumber { major: 253, minor: *minor },
            name: format!("dm-{minor}"),
            load: DeviceLoad { reads_per_second: *iops, ..DeviceLoad::default() },
            limits: Vec::new(),
            rows: Vec::new(),
        };
        let frame = Frame {
            at_ns: 0,
            length_ns: 1,
            devices: devices.iter().map(device).collect(),
            memory: MemoryLoad::default(),
            lost: BTreeMap::new(),
            cost: Cost::default(),
        };
        let about = About {
            source: Source::Bpf,
            how: "requests from their G; 2 hooks".to_string(),
            remarks: remarks.to_vec(),
            interval: Nanos(1_000_000_000),
            slow: None,
        };
        let (history, slow, lost) = (History::new(2), VecDeque::new(), BTreeMap::new());
        let lines = screen(
            &Screen { about: &about, frame: &frame, history: &history, slow: &slow, lost: &lost },
            80,
            rows,
        );
        assert!(lines.len() == rows && lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
        lines.join("\n")
    }

    #[test]
    fn remarks_leave_the_screen_to_devices() {
        let remarks = ["not shown: ".to_string() + &["dm-0"; 400].join(", ")];
        for (rows, seen) in [(24, 4), (10, 1)] {
            let text = drawn(&[(0, 5.0), (1, 4.0), (2, 3.0), (3, 2.0)], &remarks, rows);
            let devices = text.lines().filter(|line| line.contains(" IOPS ")).count();
            assert_eq!(devices, seen, "{text}");
            assert!(text.contains("source bpf") && text.contains("and more, which the summary"), "{text}");
        }
        assert!(!drawn(&[(0, 5.0)], &[], 24).contains("and more"));
    }

    #[test]
    fn what_is_counted_and_not_followed_did_not_finish_nothing() {
        let text = drawn(&[(0, 5000.0), (1, 0.0)], &[], 24);
        assert_eq!(text.matches("its single I/Os are not followed here").count(), 1, "{text}");
        assert_eq!(text.matches("nothing finished").count(), 1, "{text}");
    }

    #[test]
    fn what_the_kernel_s_sums_do_not_know_is_not_told_as_nothing() {
        // (dirty, being written, unknown below): two processors tell from 1000 KiB on, sixty-four from 31 MiB on.
        for (dirty_bytes, writeback_bytes, unknown_below_bytes, says) in [
            (0, 0, 1_024_000, "under 1 MiB dirty, under 1 MiB being written"),
            (0, 0, 0, "under 1 MiB dirty, under 1 MiB being written"),
            (200 * MIB + 5, MIB - 1, 1_024_000, "200 MiB dirty, under 1 MiB being written"),
            (20 * MIB, 40 * MIB, 32_768_000, "under 32 MiB dirty, 40 MiB being written"),
        ] {
            let memory =
                MemoryLoad { dirty_bytes, writeback_bytes, unknown_below_bytes, ..MemoryLoad::default() };
            let frame = Frame {
                at_ns: 0,
                length_ns: 1,
                devices: Vec::new(),
                memory,
                lost: BTreeMap::new(),
                cost: Cost { weir_cpu_share: 0.0, kernel_cpu_share: None },
            };
            assert_eq!(dirty(&frame), format!("page cache: {says}"));
        }
    }
}
