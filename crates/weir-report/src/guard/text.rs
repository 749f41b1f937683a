//! A guard's history as text: the sentences, the phases, and the last decisions.

use crate::bench::text::to_the_second;
use crate::guard::{self as words, DeviceStory, Story};
use crate::layout::{labelled, labelled_at, table};
use weir_control::{History, Noted};
use weir_core::result::Record;
use weir_core::units::Nanos;

/// Decisions and phases shown of each device: the last ones.
const LINES_MOST: usize = 20;

/// The report of a guard's history.
pub fn guard(record: &Record, history: &History, path: Option<&str>) -> String {
    let story = Story::of(history);
    let mut out = String::new();
    labelled_at(&mut out, "", 0, &format!("weir guard: {}", story.headline()));
    let watched = format!("watched {}", Nanos(story.length_ns()));
    let started = to_the_second(&record.started_at);
    labelled_at(&mut out, "", 0, &format!("Started {started}, {watched}, weir {}.", record.weir_version));
    out.push('\n');
    labelled(&mut out, "to hold", &words::target(&history.target));
    labelled(&mut out, "protect", &history.protect);
    if history.shadow {
        labelled(
            &mut out,
            "shadow",
            "the guard decided and touched nothing; its limits are what it would have set",
        );
    }
    if let Some(reason) = &record.ended_early {
        labelled(&mut out, "ended", &format!("early: {reason}"));
    }
    for device in &story.devices {
        out.push('\n');
        out.push_str(&of_device(device));
    }
    for noted in story.own_notes() {
        labelled(&mut out, "note", &format!("{}: {}", at(noted), words::reason(noted)));
    }
    if let Some(path) = path {
        out.push('\n');
        labelled(&mut out, "record", path);
    }
    out
}

fn of_device(device: &DeviceStory<'_>) -> String {
    let mut out = String::new();
    labelled(&mut out, &device.device.name, &device.sentences().join(" "));
    let from = words::sensor(device.device.sensor);
    let floor = words::size(device.device.floor_bytes);
    labelled(&mut out, "", &format!("Latencies from {from}; the limit never below {floor}."));
    if device.floods() > 0 {
        out.push('\n');
        let head = ["", "from", "length", "syncs/s", "kept", "p99", "longest", "over", "bulk", "device"];
        let skipped = device.phases.len().saturating_sub(LINES_MOST);
        let mut rows = vec![head.map(String::from).to_vec()];
        rows.extend(device.phases.iter().skip(skipped).map(|phase| device.row(phase, "-")));
        table(&mut out, &rows, 1);
        earlier(&mut out, skipped);
    }
    if !device.decisions.is_empty() {
        out.push('\n');
        let skipped = device.decisions.len().saturating_sub(LINES_MOST);
        for noted in device.decisions.iter().skip(skipped) {
            labelled_at(&mut out, &at(noted), 10, &decision(noted));
        }
        earlier(&mut out, skipped);
    }
    out
}

fn earlier(out: &mut String, skipped: usize) {
    if skipped > 0 {
        out.push_str(&format!("({skipped} earlier ones: `weir report` or --format json)\n"));
    }
}

fn at(noted: &Noted) -> String {
    format!("{:.1} s", noted.at_ms as f64 / 1000.0)
}

/// `cut to 12.0 MB (tail): p99 700 ms is over the target of 460 ms (n=312)`.
pub fn decision(noted: &Noted) -> String {
    let reason = words::reason(noted);
    let branch = noted.branch().map(words::branch);
    match (words::done(noted), branch) {
        (Some(done), Some(branch)) => format!("{done} ({branch}): {reason}"),
        (None, Some(branch)) => format!("{branch}: {reason}"),
        (_, None) => reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::synthetic;
    use crate::layout::COLUMNS;

    fn told(shadow: bool) -> String {
        let history = synthetic::history(shadow);
        guard(&synthetic::record(&history), &history, Some("/var/lib/weir/runs/x.json"))
    }

    #[test]
    fn the_summary_can_be_pasted() {
        let text = told(false);
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "too wide:\n{text}");
        assert!(text.starts_with("weir guard: Syncs kept 92 % of their rate under a flood\n"), "{text}");
        for wanted in [
            "to hold  p99 within 5.00 × idle, and 93 % of the undisturbed rate\n",
            "protect  mariadb.service\n",
            "        from  length  syncs/s  kept      p99  longest  over      bulk     device\n",
            "before   0 s    30 s    1,457  97 %  95.0 ms   110 ms   0 s    0 MB/s  24.0 MB/s\n",
            "flood   30 s    60 s    1,381  92 %  95.5 ms   900 ms   4 s  140 MB/s   190 MB/s\n",
            "60.5 s    cut to 12.0 MB (tail): p99 700 ms is over the target of 460 ms (n=312)\n",
            "75.0 s    infeasible: no limit holds the target: p99 700 ms of 460 ms, 20 % of the rate kept at",
            "8.00 MB; best found: 86 % of the rate\n",
            "note     90.5 s: no program in the kernel",
            "record   /var/lib/weir/runs/x.json\n",
        ] {
            assert!(text.contains(wanted), "no `{wanted}` in\n{text}");
        }
        assert!(!text.contains("shadow"), "{text}");
    }

    #[test]
    fn private_limits_are_told_where_there_were_any() {
        let mut history = synthetic::history(false);
        assert!(!guard(&synthetic::record(&history), &history, None).contains("own cgroups"));
        for (second, pace) in history.devices[0].seconds[40..70].iter_mut().zip(1..) {
            second.private_dirty_bytes = Some(8_000_000);
            second.private_pace = (pace > 10).then_some(pace * 1_000_000);
        }
        let text = guard(&synthetic::record(&history), &history, None).replace('\n', " ");
        let words: Vec<&str> = text.split_whitespace().collect();
        let wanted = "own cgroups were held for 30 s, 20 s of it to a pace of 11.0 MB/s to 30.0 MB/s.";
        assert!(words.join(" ").contains(wanted), "{text}");
    }

    #[test]
    fn a_shadow_is_told_as_one() {
        let text = told(true);
        assert!(text.contains("shadow   the guard decided and touched nothing"), "{text}");
        assert!(text.contains("31.9 s    would be cut to 20.0 MB (oldest-sync): "), "{text}");
    }
}
