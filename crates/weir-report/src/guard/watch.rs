//! A running guard on a screen that fits the terminal, and as plain lines where there is none.

use std::collections::{BTreeMap, VecDeque};

use super::text::decision;
use crate::guard as words;
use crate::layout::wrap;
use crate::trace::live::{SPARKS, cut, edges};
use weir_control::{DeviceState, Noted, Second, State, state::Count};
use weir_core::units::{Bytes, Nanos, grouped, megabytes_per_second, per_second, significant};

/// Narrowest screen that is drawn; on a smaller terminal lines are cut.
const COLUMNS_MIN: usize = 40;
/// Widest course: a minute of seconds.
const COURSE_MOST: usize = 60;
/// Room for a row's name and figures, left of its course.
const FIGURES: usize = 36;
/// Seconds kept of each device.
const KEPT: usize = 2 * COURSE_MOST;

/// The last seconds of each device, by name.
#[derive(Debug, Clone, Default)]
pub struct Courses(BTreeMap<String, VecDeque<Second>>);

impl Courses {
    /// Takes a state's seconds in.
    pub fn push(&mut self, state: &State) {
        for device in &state.devices {
            let course = self.0.entry(device.name.clone()).or_default();
            if course.back().is_none_or(|last| last.at_ms < device.second.at_ms) {
                course.push_back(device.second);
            }
            if course.len() > KEPT {
                course.pop_front();
            }
        }
    }

    fn of(&self, name: &str) -> impl DoubleEndedIterator<Item = &Second> + ExactSizeIterator {
        self.0.get(name).map(VecDeque::iter).unwrap_or_default()
    }
}

/// The lines of a screen of this size: at most `rows` lines of at most `columns` characters. Devices first, then as many
/// decisions as fit, newest first; the foot, which says what the guard costs and lacks, is always there.
pub fn screen(state: &State, courses: &Courses, columns: usize, rows: usize) -> Vec<String> {
    let columns = columns.max(COLUMNS_MIN);
    let foot = foot(state, columns);
    let mut lines = head(state, columns);
    let room = rows.saturating_sub(foot.len());
    for device in &state.devices {
        lines.extend(block(device, courses, columns));
    }
    lines.truncate(room);
    lines.extend(decisions(state, columns, room.saturating_sub(lines.len())));
    lines.resize(room, String::new());
    lines.extend(foot);
    lines.truncate(rows);
    lines.into_iter().map(|line| cut(&line, columns)).collect()
}

fn head(state: &State, columns: usize) -> Vec<String> {
    let what = if state.shadow { "in shadow, touches nothing" } else { "guards" };
    let left = format!("weir guard, process {}, {what}", state.pid);
    let right = format!("for {}; q ends", Nanos(state.at_ms.saturating_mul(1_000_000)));
    let task = format!("to hold: {}; protects {}", words::target(&state.target), state.protect);
    let mut lines = vec![edges(&left, &right, columns)];
    lines.extend(wrap(&task, columns));
    lines.push(String::new());
    lines
}

fn block(device: &DeviceState, courses: &Courses, columns: usize) -> Vec<String> {
    let second = &device.second;
    let standing = words::standing(device);
    let mut lines = vec![format!("{}  {standing}", device.name)];
    let length = columns.saturating_sub(FIGURES + 14).clamp(4, COURSE_MOST);
    let mut row = |name: &str, figures: String, course: (String, String)| {
        let text = format!("  {name:<8} {figures}");
        lines.push(format!("{text:<FIGURES$}{} {}", course.0, course.1).trim_end().to_string());
    };
    let drawn = |value: fn(&Second) -> Option<f64>, text: fn(f64) -> String| {
        course(courses.of(&device.name).map(value), length, text)
    };
    let time = |us: Option<u64>| us.map_or("-".to_string(), |us| Nanos(us * 1000).to_string());
    let tail = match (second.p99_us, second.target_us) {
        (None, None) => "not known yet".to_string(),
        (now, None) => format!("{}, no target yet", time(now)),
        (now, target) => format!("{} of {}", time(now), time(target)),
    };
    row(
        "p99",
        tail,
        drawn(|s| s.tail_us().map(|us| us as f64), |us| Nanos((us * 1000.0) as u64).to_string()),
    );
    let kept = second.kept.map_or(String::new(), |kept| format!(", {} kept", words::share_kept(kept.into())));
    row("syncs", format!("{}/s{kept}", grouped(second.syncs)), drawn(|s| Some(s.syncs as f64), per_second));
    row("limit", words::limit_of(device), (limits(device, courses, length), "log scale".to_string()));
    let bulk = second
        .bulk_bytes
        .map_or(String::new(), |bytes| format!(", bulk {}", megabytes_per_second(bytes as f64)));
    row(
        "written",
        format!("{}{bulk}", megabytes_per_second(second.written_bytes as f64)),
        drawn(|s| Some(s.written_bytes as f64), megabytes_per_second),
    );
    let turned = format!("{}, by {}", device.actuator, source(device));
    let private = private(device).map(|text| ("cgroups", text));
    let rows = [("bulk", writers(device)), ("now", decided(device)), ("so far", totals(device))];
    for (name, text) in std::iter::once(("turns", turned)).chain(private).chain(rows) {
        for (i, line) in wrap(&text, columns.saturating_sub(11)).into_iter().enumerate() {
            lines.push(format!("  {:<8} {line}", if i == 0 { name } else { "" }));
        }
    }
    lines.push(String::new());
    lines
}

/// What bulk writers' own cgroups may have, and by which files.
fn private(device: &DeviceState) -> Option<String> {
    let limits = words::private_limit_of(device)?;
    Some(match &device.private_actuator {
        Some(actuator) => format!("{limits}, by {actuator}"),
        None => limits,
    })
}

fn source(device: &DeviceState) -> &'static str {
    match device.sensor.source {
        weir_control::SensorSource::Syscalls => "system calls",
        weir_control::SensorSource::Canary => "a canary",
        weir_control::SensorSource::Diskstats => "counters",
    }
}

/// The last values as bars from 0 to the largest, and the largest if there is any; a value that is absent is a gap.
fn course(
    values: impl DoubleEndedIterator<Item = Option<f64>> + ExactSizeIterator,
    length: usize,
    text: fn(f64) -> String,
) -> (String, String) {
    let skipped = values.len().saturating_sub(length);
    let values: Vec<Option<f64>> = values.skip(skipped).collect();
    let most = values.iter().flatten().fold(0.0, |most: f64, value| most.max(*value));
    let bars = values.iter().map(|value| value.map_or(' ', |value| bar(value / most.max(1e-9)))).collect();
    (bars, if most > 0.0 { format!("≤ {}", text(most)) } else { String::new() })
}

/// The limit's path between floor and baseline, by its logarithm.
fn limits(device: &DeviceState, courses: &Courses, length: usize) -> String {
    let (floor, saved) = (device.floor_bytes.max(1) as f64, device.saved_bytes as f64);
    let range = (saved / floor).max(2.0).ln();
    let seconds = courses.of(&device.name);
    let skipped = seconds.len().saturating_sub(length);
    let of_cgroup = device.second.of_cgroup;
    let drawn = |s: &Second| {
        let share = (s.limit_bytes.max(1) as f64 / floor).ln() / range;
        // Limits of cgroups and of dirty pages have different units.
        if s.of_cgroup == of_cgroup { bar(share) } else { ' ' }
    };
    seconds.skip(skipped).map(drawn).collect()
}

fn bar(share: f64) -> char {
    SPARKS[((share.clamp(0.0, 1.0) * 7.0).round() as usize).min(7)]
}

/// Who is bulk, and how long they were throttled.
fn writers(device: &DeviceState) -> String {
    if device.writers.is_empty() && device.second.bulk_held_ms == 0 {
        return "nobody".to_string();
    }
    let each = device.writers.iter().take(4).map(|writer| {
        format!("{} ({}) {}", writer.comm, writer.pid, megabytes_per_second(writer.bytes as f64))
    });
    let mut said: Vec<String> = each.collect();
    if device.second.bulk_held_ms > 0 {
        said.push(format!("throttled {}", Nanos(device.second.bulk_held_ms.saturating_mul(1_000_000))));
    }
    said.join(", ")
}

/// The newest decision with its reason.
fn decided(device: &DeviceState) -> String {
    let decision = device.decision.clone();
    let noted = Noted {
        at_ms: 0,
        device: device.name.clone(),
        decision: Some(decision),
        effect: weir_control::Effect::None,
    };
    super::text::decision(&noted)
}

fn totals(device: &DeviceState) -> String {
    let totals = &device.totals;
    let mut said = vec![format!(
        "{} of {} s with syncs over the target",
        grouped(totals.seconds_over_target),
        grouped(totals.seconds)
    )];
    said.extend(counted("cut", &totals.cuts));
    said.extend(counted("raised", &totals.raises));
    for (what, n) in
        [("refused", totals.refused), ("yielded", totals.stood_down), ("syncs lost", totals.lost)]
    {
        if n > 0 {
            said.push(format!("{what} {}", grouped(n)));
        }
    }
    said.join("; ")
}

/// `cut 12: tail 8, oldest-sync 4`.
fn counted(what: &str, counts: &[Count]) -> Option<String> {
    let sum: u64 = counts.iter().map(|count| count.times).sum();
    let each = counts.iter().map(|count| format!("{} {}", words::branch(count.branch), grouped(count.times)));
    (sum > 0).then(|| format!("{what} {}: {}", grouped(sum), each.collect::<Vec<_>>().join(", ")))
}

/// The last decisions that fit, newest first.
fn decisions(state: &State, columns: usize, room: usize) -> Vec<String> {
    if room < 2 {
        return Vec::new();
    }
    let mut lines = vec!["last decisions".to_string()];
    for noted in state.decisions.iter().rev() {
        let ago = state.at_ms.saturating_sub(noted.at_ms) / 1000;
        let text = format!("{} {}", noted.device, decision(noted));
        let wrapped = wrap(&text, columns.saturating_sub(16));
        if lines.len() + wrapped.len() > room {
            break;
        }
        for (i, line) in wrapped.into_iter().enumerate() {
            let when = if i == 0 { format!("{ago} s ago") } else { String::new() };
            lines.push(format!("  {when:>12}  {line}"));
        }
    }
    if lines.len() == 1 {
        lines.push("  none yet".to_string());
    }
    lines
}

fn foot(state: &State, columns: usize) -> Vec<String> {
    let cost = format!(
        "costs {} % of a processor and {} of memory",
        significant(state.cost.cpu_share * 100.0),
        Bytes(state.cost.rss_bytes)
    );
    let mut lines = vec!["─".repeat(columns)];
    for text in std::iter::once(&cost).chain(&state.remarks) {
        lines.extend(wrap(text, columns));
    }
    lines
}

/// A second as plain lines, one a device, and the decisions made since `since_ms`, for logs and pipes.
pub fn lines(state: &State, since_ms: u64) -> String {
    let at = format!("{:.1} s", state.at_ms as f64 / 1000.0);
    let mut out = String::new();
    for noted in state.decisions.iter().filter(|noted| noted.at_ms > since_ms) {
        let when = format!("{:.1} s", noted.at_ms as f64 / 1000.0);
        out.push_str(&format!("{when} {} {}\n", noted.device, decision(noted)));
    }
    for device in &state.devices {
        let second = &device.second;
        let time = |us: Option<u64>| us.map_or("-".to_string(), |us| Nanos(us * 1000).to_string());
        let kept =
            second.kept.map_or(String::new(), |kept| format!(", {} kept", words::share_kept(kept.into())));
        let cgroups =
            words::private_limit_of(device).map_or(String::new(), |limits| format!(", cgroups {limits}"));
        out.push_str(&format!(
            "{at} {} p99 {} of {}; {} syncs/s{kept}; limit {}{cgroups}; written {}; bulk {}; {}\n",
            device.name,
            time(second.p99_us),
            time(second.target_us),
            grouped(second.syncs),
            words::limit(second.limit_bytes, device.decision.inputs.of_cgroup),
            megabytes_per_second(second.written_bytes as f64),
            writers(device),
            words::standing(device),
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::synthetic;
    use weir_control::{Cost, Sensor, Standing, Totals, Writer, state};

    /// The guard of the made-up history after so many seconds.
    fn state(after: usize) -> State {
        let history = synthetic::history(false);
        let device = &history.devices[0];
        let second = device.seconds[after];
        let past = |noted: &&Noted| noted.at_ms <= second.at_ms && noted.decision.is_some();
        let decisions: Vec<Noted> = history.decisions.iter().filter(past).cloned().collect();
        let decision = decisions.last().and_then(|noted| noted.decision.clone()).unwrap();
        let mut totals = Totals { seconds: 60, seconds_over_target: 3, ..Totals::default() };
        totals.count(weir_control::Branch::Tail, false);
        State {
            schema: state::SCHEMA.to_string(),
            weir_version: "0.1.0".to_string(),
            pid: 4711,
            since: "2026-11-21T18:00:00Z".to_string(),
            at: "2026-11-21T18:01:00Z".to_string(),
            at_ms: second.at_ms,
            shadow: false,
            target: history.target,
            protect: history.protect.clone(),
            devices: vec![DeviceState {
                private_cgroups: 0,
                private_actuator: None,
                name: device.name.clone(),
                number: device.number,
                standing: Standing::Guarding,
                sensor: Sensor { source: device.sensor, silent_ns: 0, lost: 0 },
                actuator: device.actuator.clone(),
                saved_bytes: device.saved_bytes,
                floor_bytes: device.floor_bytes,
                second,
                decision,
                writers: vec![Writer { pid: 99, comm: "dd".to_string(), bytes: 140_000_000, start_ns: 0 }],
                totals,
            }],
            decisions,
            cost: Cost { cpu_share: 0.002, rss_bytes: 12 << 20, ..Cost::default() },
            remarks: vec!["the kernel has no per-device limit: it turns the machine's".to_string()],
        }
    }

    fn drawn(columns: usize, rows: usize) -> Vec<String> {
        let mut courses = Courses::default();
        (30..65).for_each(|after| courses.push(&state(after)));
        screen(&state(65), &courses, columns, rows)
    }

    #[test]
    fn the_screen_says_what_is_held_by_what_and_why() {
        let text = drawn(100, 30).join("\n");
        for wanted in [
            "weir guard, process 4711, guards",
            "to hold: p99 within 5.00 × idle, and 93 % of the undisturbed rate; protects mariadb.service",
            "loop0  holding\n",
            "  turns    vm.dirty_bytes, by system calls",
            "of 460 ms",
            ", 97 % kept",
            "limit    8.00 MB of 4.79 GB",
            "written  190 MB/s, bulk 140 MB/s",
            "bulk     dd (99) 140 MB/s, throttled 800 ms",
            "now      share: only 20 % of the rate kept",
            "so far   3 of 60 s with syncs over the target; cut 1: tail 1",
            "4 s ago  loop0 cut to 8.00 MB (share)",
            "costs 0.20 % of a processor and 12 MiB of memory",
            "no per-device limit",
        ] {
            assert!(text.contains(wanted), "no `{wanted}` in\n{text}");
        }
        // Two stalls in 35 seconds: bars are high there and low elsewhere.
        let p99 = text.lines().find(|line| line.starts_with("  p99")).unwrap();
        assert_eq!((p99.matches('█').count(), p99.matches('▂').count()), (4, 31), "{p99}");
    }

    /// Each limit has its own figures.
    #[test]
    fn limits_of_cgroups_stand_beside_the_other_one() {
        let mut state = state(65);
        let device = &mut state.devices[0];
        (device.private_cgroups, device.decision.mood) = (1, weir_control::Mood::Released);
        device.private_actuator = Some("cgroup:/backup/memory.high".to_string());
        (device.second.private_dirty_bytes, device.second.private_pace) =
            (Some(20_000_000), Some(30_000_000));
        let text = screen(&state, &Courses::default(), 100, 30).join("\n");
        for wanted in [
            "loop0  holding the cgroups of bulk writers\n",
            "turns    vm.dirty_bytes, by system calls",
            "cgroups  20.0 MB dirty and 30.0 MB/s, by cgroup:/backup/memory.high",
            "limit    8.00 MB of 4.79 GB",
        ] {
            assert!(text.contains(wanted), "no `{wanted}` in\n{text}");
        }
        let line = lines(&state, u64::MAX);
        assert!(line.contains("limit 8.00 MB, cgroups 20.0 MB dirty and 30.0 MB/s; written"), "{line}");
    }

    #[test]
    fn it_fits_every_terminal() {
        for (columns, rows) in [(40, 5), (60, 12), (80, 24), (100, 30), (200, 60)] {
            let lines = drawn(columns, rows);
            assert_eq!(lines.len(), rows, "{columns}×{rows}");
            assert!(lines.iter().all(|line| line.chars().count() <= columns), "{columns}×{rows}: {lines:#?}");
            assert!(lines.iter().any(|line| line.starts_with("costs ")), "{columns}×{rows}: {lines:#?}");
        }
    }

    #[test]
    fn lines_say_each_decision_once() {
        let text = lines(&state(61), state(60).at_ms);
        assert_eq!(text.matches("cut to").count(), 1, "{text}");
        assert!(
            text.starts_with("61.9 s loop0 cut to 8.00 MB (share): only 20 % of the rate kept\n"),
            "{text}"
        );
        assert!(text.contains("62.0 s loop0 p99 700 ms of 460 ms; "), "{text}");
        assert!(!lines(&state(63), state(62).at_ms).contains("cut to"));
    }
}
