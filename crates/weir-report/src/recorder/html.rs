//! The page of a stretch of the recorder's time: what was not as usual and why, and the course of syncs, devices and processes.

use std::collections::BTreeMap;

use super::text;
use crate::page::{
    Page, Table, Tile, data_table, facts_table, figure, headline, lede, note, page, paragraph, section, tiles,
};
use crate::plot::{Axis, Figure, Join, LOOKS, Panel, Region, Scale, Series, Tint, Unit};
use maud::{Markup, html};
use weir_archive::series::{Histogram, Series as Course, Slot, User, quantile};
use weir_archive::verdict::{Trouble, Verdict, length};
use weir_core::units::Nanos;

/// More points than this a line has no room for.
const COLUMNS_MOST: usize = 600;
/// More troubles than this have no room to be distinguished.
const REGIONS_MOST: usize = 40;

/// Where a page's figures come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Source {
    /// The machine.
    pub host: String,
    /// The archive's folder.
    pub archive: String,
    /// Version of weir that wrote the page.
    pub weir_version: String,
}

/// A verdict and the course behind it as one HTML document. `time` says a Unix time, ms, in words; `unread` are sentences on files
/// that could not be read.
pub fn verdict(
    verdict: &Verdict,
    course: &Course,
    source: &Source,
    unread: &[String],
    time: &dyn Fn(i64) -> String,
) -> String {
    let stretch = format!("{} to {}", time(verdict.since_ms), time(verdict.until_ms));
    let not_seen: Vec<&String> = verdict.blind.iter().chain(unread).collect();
    let body = html! {
        (headline(text::headline(verdict)))
        (lede(format!("{}, {stretch}. Normal is the median of {} intervals.", source.host, verdict.normal_from)))
        (tiles(&head_tiles(verdict)))
        @for (at, trouble) in verdict.troubles.iter().enumerate() { (of_trouble(at, trouble, time)) }
        @if verdict.untold > 0 { (paragraph(format!("{} lesser ones are not told.", verdict.untold))) }
        (over_time(verdict, course, time))
        (section("normal", "What is normal", normal(verdict)))
        (slowest(verdict, time))
        (more_events(verdict, time))
        @for sentence in not_seen { (note("Not seen", sentence, false)) }
    };
    page(&Page {
        title: format!("weir recorder: {}", text::headline(verdict)),
        kind: "recorder".to_string(),
        date: stretch,
        foot: format!("weir {} · {} · {}", source.weir_version, source.host, source.archive),
        body,
    })
}

fn head_tiles(verdict: &Verdict) -> Vec<Tile> {
    let tile = |name: &str, value: String, detail: String| Tile { name: name.to_string(), value, detail };
    let mut out = Vec::new();
    let slowest =
        verdict.users.iter().filter(|user| user.per_s > 0.0).max_by(|a, b| a.per_s.total_cmp(&b.per_s));
    if let Some(user) = slowest {
        let detail = format!("{}, {}", user.user, text::rate(user.per_s));
        out.push(tile("normal p99 of syncs", text::time_of(user.p99_ns), detail));
    }
    if let Some(event) = verdict.slowest.first() {
        out.push(tile(
            "slowest sync",
            text::time_of(event.took_ns),
            format!("{}[{}]", event.comm, event.pid),
        ));
    }
    let troubled_ms: i64 = regions(verdict).iter().map(|(from, to)| to - from).sum();
    let of = format!("of {}", length(verdict.until_ms - verdict.since_ms));
    out.push(tile("not as usual", length(troubled_ms), of));
    out
}

fn of_trouble(at: usize, trouble: &Trouble, time: &dyn Fn(i64) -> String) -> Markup {
    let length = length(trouble.end_ms - trouble.begin_ms);
    let heading = format!(
        "{}, {length}: {}",
        time(trouble.begin_ms),
        text::cause(&trouble.cause, trouble.user.as_ref())
    );
    let row = |name: &str, value: String| (name.to_string(), value, String::new());
    let mut rows = Vec::new();
    if let (Some(user), Some(seen)) = (&trouble.user, &trouble.syncs) {
        rows.push(row("syncs", format!("{user}: {}", text::of_syncs(seen))));
    }
    rows.push(row("evidence", text::evidence(&trouble.cause)));
    rows.extend(text::changes(&trouble.changes, time).into_iter().map(|change| row("changed", change)));
    section(&format!("trouble-{at}"), &heading, facts_table(&rows))
}

/// When something was not as usual: stretches in order that do not overlap, Unix time, ms.
fn regions(verdict: &Verdict) -> Vec<(i64, i64)> {
    let mut all: Vec<(i64, i64)> =
        verdict.troubles.iter().map(|trouble| (trouble.begin_ms, trouble.end_ms)).collect();
    all.sort_unstable();
    all.into_iter().fold(Vec::new(), |mut merged: Vec<(i64, i64)>, (from, to)| {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
        merged
    })
}

/// Neighbouring intervals that are drawn as one.
struct Column<'a> {
    from_s: f64,
    span_s: f64,
    slots: &'a [(i64, &'a Slot)],
}

impl Column<'_> {
    fn sum(&self, of: impl Fn(&Slot) -> i64) -> f64 {
        self.slots.iter().map(|(_, slot)| of(slot)).sum::<i64>() as f64
    }

    fn rate(&self, of: impl Fn(&Slot) -> i64) -> f64 {
        self.sum(of) / self.span_s
    }

    /// The 99th percentile of a user's syncs; nothing where none returned.
    fn p99_ns(&self, user: &User) -> f64 {
        let mut all = Histogram::new();
        for syncs in self.slots.iter().filter_map(|(_, slot)| slot.users.get(user)) {
            syncs.latency.iter().for_each(|(low, n)| *all.entry(*low).or_default() += n);
        }
        quantile(&all, 0.99).filter(|ns| *ns > 0).map_or(f64::NAN, |ns| ns as f64)
    }
}

fn columns<'a>(slots: &'a [(i64, &'a Slot)], since_ms: i64) -> Vec<Column<'a>> {
    let each = slots.len().div_ceil(COLUMNS_MOST).max(1);
    let of = |slots: &'a [(i64, &'a Slot)]| {
        let from_ms = slots.first().map_or(since_ms, |(ts_ms, _)| *ts_ms);
        let span_ms: i64 = slots.iter().map(|(_, slot)| slot.span_ms).sum();
        Column { from_s: (from_ms - since_ms) as f64 / 1e3, span_s: (span_ms as f64 / 1e3).max(1e-3), slots }
    };
    slots.chunks(each).map(of).collect()
}

/// A line over the columns, broken where nothing was recorded.
fn line(name: String, look: usize, columns: &[Column<'_>], value: impl Fn(&Column<'_>) -> f64) -> Series {
    let mut points: Vec<(f64, f64)> = Vec::with_capacity(columns.len());
    let mut until: Option<f64> = None;
    for column in columns {
        if let Some(before) = until.filter(|before| column.from_s - before > 1.5 * column.span_s) {
            points.push((before, f64::NAN));
        }
        until = Some(column.from_s + column.span_s);
        points.push((column.from_s, value(column)));
    }
    points.extend(until.zip(points.last().map(|point| point.1)));
    Series { join: Join::Step, ..Series::line(name, look, points) }
}

/// The keys with the most, most first.
fn most<K: Ord + Clone>(sums: BTreeMap<K, i64>) -> Vec<K> {
    let mut sums: Vec<(K, i64)> = sums.into_iter().filter(|(_, sum)| *sum > 0).collect();
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
    sums.into_iter().take(LOOKS - 1).map(|(key, _)| key).collect()
}

fn over_time(verdict: &Verdict, course: &Course, time: &dyn Fn(i64) -> String) -> Markup {
    let slots: Vec<(i64, &Slot)> =
        course.slots.range(verdict.since_ms..verdict.until_ms).map(|(ts_ms, slot)| (*ts_ms, slot)).collect();
    let columns = columns(&slots, verdict.since_ms);
    if columns.len() < 2 {
        return Markup::default();
    }
    let (mut users, mut devices, mut movers) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for (_, slot) in &slots {
        slot.users.iter().for_each(|(user, of)| *users.entry(user.clone()).or_default() += of.wall_ns());
        for (device, of) in &slot.devices {
            *devices.entry(device.clone()).or_default() += of.counter("busy_ms");
        }
        for (user, (read, written)) in &slot.processes {
            *movers.entry(user.clone()).or_default() += read + written;
        }
    }
    let (users, devices, movers) = (most(users), most(devices), most(movers));
    let mut panels = syncs(&columns, &users);
    panels.extend(of_devices(&columns, &devices));
    panels.extend(of_processes(&columns, &movers));
    let seconds = |ms: i64| (ms - verdict.since_ms) as f64 / 1e3;
    let troubled = regions(verdict);
    let shaded = troubled.iter().filter(|_| troubled.len() <= REGIONS_MOST).map(|(from, to)| Region {
        from: seconds(*from).max(0.0),
        to: seconds(*to),
        label: "not as usual".to_string(),
        tint: Tint::Disturbed,
        optional: true,
        parts: Vec::new(),
    });
    let drawn = Figure {
        id: "over-time".to_string(),
        title: "Syncs, devices and processes".to_string(),
        finding: format!("Each point stands for {}; what was not as usual is shaded.", each(&columns)),
        x: Axis {
            include: vec![0.0],
            ..Axis::x(format!("time since {}", time(verdict.since_ms)), Unit::Seconds, Scale::Linear)
        },
        panels,
        regions: shaded.collect(),
    };
    section("course", "What happened when", figure(&drawn, &numbers(&columns, &users)))
}

/// The length of a column.
fn each(columns: &[Column<'_>]) -> String {
    Nanos((columns.first().map_or(0.0, |column| column.span_s).round() * 1e9) as u64).to_string()
}

/// A panel's title, with the name of its only line, which stands nowhere else.
fn titled(what: &str, names: &[String]) -> String {
    match names {
        [one] => format!("{what}: {one}"),
        _ => what.to_string(),
    }
}

fn syncs(columns: &[Column<'_>], users: &[User]) -> Vec<Panel> {
    if users.is_empty() {
        return Vec::new();
    }
    let of = |value: &dyn Fn(&Column<'_>, &User) -> f64| -> Vec<Series> {
        let series = users.iter().enumerate();
        series.map(|(at, user)| line(user.comm.clone(), at, columns, |column| value(column, user))).collect()
    };
    let names: Vec<String> = users.iter().map(ToString::to_string).collect();
    let count = |slot: &Slot, user: &User| slot.users.get(user).map_or(0, |syncs| syncs.count());
    vec![
        Panel::of(
            Axis::y(titled("99th percentile of syncs", &names), Unit::Latency, Scale::Log),
            of(&|column, user| column.p99_ns(user)),
            0.9,
        ),
        Panel::of(
            Axis::y(titled("syncs", &names), Unit::Iops, Scale::Linear),
            of(&|column, user| column.rate(|slot| count(slot, user))),
            0.5,
        ),
    ]
}

fn of_devices(columns: &[Column<'_>], devices: &[String]) -> Option<Panel> {
    let busy = |column: &Column<'_>, device: &String| {
        let ms = column.sum(|slot| slot.devices.get(device).map_or(0, |of| of.counter("busy_ms")));
        (ms / column.span_s / 10.0).min(100.0)
    };
    let series = devices.iter().enumerate();
    let series: Vec<Series> =
        series.map(|(at, device)| line(device.clone(), at, columns, |column| busy(column, device))).collect();
    let axis =
        Axis { include: vec![0.0, 100.0], ..Axis::y(titled("busy", devices), Unit::Percent, Scale::Linear) };
    (!series.is_empty()).then(|| Panel::of(axis, series, 0.5))
}

fn of_processes(columns: &[Column<'_>], movers: &[User]) -> Option<Panel> {
    let moved =
        |slot: &Slot, user: &User| slot.processes.get(user).map_or(0, |(read, written)| read + written);
    let series = movers.iter().enumerate();
    let series: Vec<Series> = series
        .map(|(at, user)| {
            line(user.comm.clone(), at, columns, |column| column.rate(|slot| moved(slot, user)))
        })
        .collect();
    let names: Vec<String> = movers.iter().map(ToString::to_string).collect();
    let axis = Axis::y(titled("bytes read and written", &names), Unit::BytesPerSecond, Scale::Linear);
    (!series.is_empty()).then(|| Panel::of(axis, series, 0.6))
}

/// The figures of syncs beneath the plot.
fn numbers(columns: &[Column<'_>], users: &[User]) -> Table {
    let mut head = vec!["from".to_string()];
    for user in users {
        head.extend(["/s", " p99"].map(|what| format!("{}{what}", user.comm)));
    }
    let row = |column: &Column<'_>| {
        let mut row = vec![Unit::Seconds.value(column.from_s)];
        for user in users {
            let count = |slot: &Slot| slot.users.get(user).map_or(0, |syncs| syncs.count());
            row.push(Unit::Iops.value(column.rate(count)));
            let p99_ns = column.p99_ns(user);
            row.push(if p99_ns.is_finite() { Unit::Latency.value(p99_ns) } else { "–".to_string() });
        }
        row
    };
    Table { head, rows: columns.iter().map(row).collect(), ..Table::default() }
}

fn normal(verdict: &Verdict) -> Markup {
    let heads = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<String>>();
    let users = text::shown_users(verdict).map(|user| {
        vec![
            user.user.to_string(),
            text::user_rate(user),
            text::time_of(user.p50_ns),
            text::time_of(user.p99_ns),
        ]
    });
    let devices = verdict.devices.iter().filter(|device| device.per_s > 0.0).map(|device| {
        vec![
            device.device.clone(),
            text::rate(device.per_s),
            text::time_of(device.request_ns),
            format!("{} %", device.busy_percent),
            text::rate_words(device.busy_bytes_per_s),
        ]
    });
    let users =
        Table { head: heads(&["syncs of", "rate", "p50", "p99"]), rows: users.collect(), ..Table::default() };
    let head = heads(&["device", "requests", "mean", "busy", "while busy"]);
    let devices = Table { head, rows: devices.collect(), ..Table::default() };
    html! {
        @if users.rows.is_empty() && devices.rows.is_empty() { (paragraph("Nothing was recorded that it could be learned from.")) }
        @if !users.rows.is_empty() { (data_table(&users)) }
        @if !devices.rows.is_empty() { (data_table(&devices)) }
    }
}

fn slowest(verdict: &Verdict, time: &dyn Fn(i64) -> String) -> Markup {
    if verdict.slowest.is_empty() {
        return Markup::default();
    }
    let head = ["began", "took", "process", "device", "waited for"].map(String::from).to_vec();
    let rows = verdict.slowest.iter().map(|event| text::slow(event, time)).collect();
    section("slowest", "The slowest syncs", data_table(&Table { head, rows, says: true, ..Table::default() }))
}

/// Devices that stood still, and snapshots.
fn more_events(verdict: &Verdict, time: &dyn Fn(i64) -> String) -> Markup {
    let events = verdict.stalls.iter().chain(&verdict.snapshots);
    let rows: Vec<Vec<String>> =
        events.map(|event| vec![time(event.ts_ms), event.kind.clone(), text::of_event(event)]).collect();
    if rows.is_empty() {
        return Markup::default();
    }
    let head = ["when", "kind", "what"].map(String::from).to_vec();
    section(
        "events",
        "Devices that stood still, and snapshots",
        data_table(&Table { head, rows, says: true, ..Table::default() }),
    )
}

#[cfg(test)]
pub mod tests {
    //! Pages of made-up series.

    use weir_archive::series::{DeviceSlot, UserSlot};
    use weir_archive::tables::Event;
    use weir_archive::verdict::judge;

    use super::*;

    const MINUTE_MS: i64 = 60_000;

    /// Three hours of commits, the last of them with a flood of three minutes.
    fn course() -> Course {
        let (db, dd) = (User::of("mariadbd", "mariadb.service"), User::of("dd", "backup.service"));
        let mut course = Course::default();
        for at in 0..180 {
            let flood = (150..153).contains(&at);
            let mut slot = Slot { span_ms: MINUTE_MS, ..Slot::default() };
            let (low_ns, count) =
                if flood { (300_000_000, 100) } else { (1_000_000 + at % 5 * 100_000, 6000) };
            let mut syncs = UserSlot::default();
            syncs.latency.insert(low_ns, count);
            let cause = if flood { "others" } else { "device" };
            syncs.waits.insert(("journal".into(), cause.into()), low_ns * count);
            syncs
                .behind
                .insert((dd.clone(), "writeback".into()), (if flood { low_ns * count } else { 0 }, 1));
            slot.users.insert(db.clone(), syncs);
            slot.processes.insert(db.clone(), (0, 50_000_000));
            if flood {
                slot.processes.insert(dd.clone(), (0, 6_000_000_000));
            }
            let counters = [
                ("busy_ms", if flood { 60_000 } else { 6000 }),
                ("writes", 6000),
                ("write_bytes", 60_000_000),
                ("write_ms", 3000),
            ];
            let counters = counters.map(|(name, value)| (name.to_string(), value)).into();
            slot.devices.insert("nvme0n1".to_string(), DeviceSlot { counters, ..DeviceSlot::default() });
            course.slots.insert(at * MINUTE_MS, slot);
        }
        let event = |at: i64, kind: &str, detail: &str| Event {
            ts_ms: at * MINUTE_MS,
            kind: kind.into(),
            device: "nvme0n1".into(),
            comm: "mariadbd".into(),
            pid: 812,
            took_ns: 1_300_000_000,
            detail: detail.into(),
            ..Event::default()
        };
        course.events = vec![
            event(149, "knob", r#"{"knob":"vm.dirty_bytes","before":"0","after":"4000000000"}"#),
            event(
                151,
                "slow_sync",
                r#"{"phases":[{"phase":"journal","share":0.9}],"culprits":[{"process":{"comm":"dd"},"share":0.8}]}"#,
            ),
            event(151, "stall", "{}"),
            event(151, "snapshot", r#"{"file":"snapshots/20261125T031000Z-000.json","trigger":"stall"}"#),
        ];
        course
    }

    fn page_of(course: &Course) -> String {
        let found = judge(course, 120 * MINUTE_MS, 180 * MINUTE_MS);
        let source =
            Source { host: "db1".into(), archive: "/var/lib/weir/recorder".into(), weir_version: "0".into() };
        let time = |ms: i64| format!("{:02}:{:02}:00", ms / MINUTE_MS / 60, ms / MINUTE_MS % 60);
        verdict(&found, course, &source, &["a.parquet: torn".to_string()], &time)
    }

    /// With a flood in it.
    pub fn troubled() -> String {
        page_of(&course())
    }

    /// Of an archive without anything.
    pub fn empty() -> String {
        page_of(&Course::default())
    }

    #[test]
    fn the_page_says_what_the_text_says_and_draws_its_course() {
        let page = troubled();
        for word in [
            "a flood",
            "dd (backup.service)",
            "vm.dirty_bytes went from 0 to 4000000000",
            "completed nothing for 1.30 s",
            "snapshots/2026",
            "not as usual",
            "<svg",
            "a.parquet: torn",
        ] {
            assert!(page.contains(word), "{word}");
        }
        assert!(empty().contains("Nothing was recorded then."));
    }

    #[test]
    fn troubles_that_overlap_are_shaded_once() {
        let found = judge(&course(), 120 * MINUTE_MS, 180 * MINUTE_MS);
        assert_eq!(regions(&found), [(150 * MINUTE_MS, 153 * MINUTE_MS)]);
        let twice = Verdict { troubles: [found.troubles.clone(), found.troubles.clone()].concat(), ..found };
        assert_eq!(regions(&twice).len(), 1);
    }
}
