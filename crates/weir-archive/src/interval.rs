//! From what an interval's sensors counted to rows.

use std::collections::BTreeMap;

use serde::Serialize;
use weir_blocktrace::fsync::{Ledger, SlowSync};
use weir_blocktrace::{Class, Stage as StageKind, StageTable};
use weir_core::stats::{Distribution, buckets};
use weir_core::target::{DeviceNumber, groups_in_slices};

use crate::tables::{Behind, Event, Process, Stage, Sync, Wait};

/// log2 of the buckets per power of two: none is wider than an eighth of its value.
const PRECISION_BITS: u32 = 3;
/// Processes that an interval distinguishes; the rest is one. Labels must not grow without bound.
pub const NAMED_MAX: usize = 24;
/// How many of these places the processes of one outer unit have where there are not enough: an account has processes as it likes.
pub const NAMED_OF_UNIT_MAX: usize = 8;
/// The longest name of a unit or a cgroup, bytes.
pub const NAME_MAX: usize = 256;
/// Stands for all others.
pub const OTHERS: &str = "(others)";

/// When an interval was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Its start, Unix time, ms.
    pub ts_ms: i64,
    /// Its length, ms.
    pub span_ms: i64,
}

/// Whose something is. Processes that are called alike and lie in one cgroup are one.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Whose {
    /// The process's name.
    pub comm: String,
    /// Its systemd unit; empty where it has none.
    pub unit: String,
    /// Its cgroup's path.
    pub cgroup: String,
}

impl Whose {
    /// Of a process of this name in a cgroup.
    pub fn of(comm: &str, cgroup: &str) -> Whose {
        Whose { comm: comm.to_string(), unit: cut(unit_of(cgroup)), cgroup: cut(cgroup.to_string()) }
    }

    /// All others, or those of a unit.
    fn others(unit: &str) -> Whose {
        Whose { comm: OTHERS.to_string(), unit: unit.to_string(), ..Whose::default() }
    }
}

/// The part of a unit's name that is systemd's; `None` where there is no unit.
pub fn outer_unit(unit: &str) -> Option<&str> {
    unit.split('/').next().filter(|outer| !outer.is_empty())
}

/// The systemd unit, or container's scope, that a cgroup's path belongs to. Who runs in it may call a group there as a service of the
/// system is called; so a unit there comes behind the outer name: `user@1000.service/mariadb.service`.
pub fn unit_of(cgroup: &str) -> String {
    let is_unit = |part: &str| part.ends_with(".service") || part.ends_with(".scope");
    let mut groups = groups_in_slices(cgroup);
    let Some(outer) = groups.next() else { return String::new() };
    match groups.filter(|group| is_unit(group)).last() {
        Some(inner) => format!("{outer}/{inner}"),
        None if is_unit(outer) => outer.to_string(),
        None => String::new(),
    }
}

/// A name as rows have it. Any account can make groups that lie as deep as paths are long; a sum keeps their names different.
fn cut(name: String) -> String {
    if name.len() <= NAME_MAX {
        return name;
    }
    let mut sum = flate2::Crc::new();
    sum.update(name.as_bytes());
    let sum = format!("~{:08x}", sum.sum());
    let end = (0..=NAME_MAX - sum.len()).rev().find(|at| name.is_char_boundary(*at));
    format!("{}{sum}", &name[..end.unwrap_or(0)])
}

/// The word that stands for a value in rows: as in JSON.
fn word(value: impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| Some(value.as_str()?.to_string())).unwrap_or_default()
}

/// Buckets of the archive, lowest value and count; they add up to what the distribution counted.
pub fn merged(distribution: &Distribution) -> BTreeMap<i64, i64> {
    let mut merged = BTreeMap::new();
    for (low_ns, _, count) in distribution.buckets() {
        let (low_ns, _) = buckets::bounds::<PRECISION_BITS>(buckets::bucket_of::<PRECISION_BITS>(low_ns));
        *merged.entry(integer(low_ns)).or_default() += integer(count);
    }
    merged
}

fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Rows of a live session's table; devices without a name are left out.
pub fn stages(
    span: Span,
    table: &StageTable,
    name_of: impl Fn(DeviceNumber) -> Option<String>,
) -> Vec<Stage> {
    let mut rows = Vec::new();
    for number in table.devices() {
        let Some(device) = name_of(number) else { continue };
        // All but the class that is the sum of others.
        for class in Class::ALL.into_iter().filter(|class| *class != Class::All) {
            let cell = table.of_class(number, class);
            for kind in STAGES {
                rows.extend(merged(cell.stage(kind)).into_iter().map(|(bucket_low_ns, count)| Stage {
                    ts_ms: span.ts_ms,
                    span_ms: span.span_ms,
                    device: device.clone(),
                    class: class.name().to_string(),
                    stage: stage_name(kind).to_string(),
                    bucket_low_ns,
                    count,
                }));
            }
        }
    }
    rows
}

/// How long all requests of a device, class and stage took together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageSum {
    /// The kernel's name of the device.
    pub device: String,
    /// As in [`Stage`].
    pub class: &'static str,
    /// As in [`Stage`].
    pub stage: &'static str,
    /// Sum of the durations, ns.
    pub ns: u64,
}

/// Sums of what [`stages`] counts.
pub fn stage_sums(table: &StageTable, name_of: impl Fn(DeviceNumber) -> Option<String>) -> Vec<StageSum> {
    let mut sums = Vec::new();
    for number in table.devices() {
        let Some(device) = name_of(number) else { continue };
        for class in Class::ALL.into_iter().filter(|class| *class != Class::All) {
            let cell = table.of_class(number, class);
            sums.extend(STAGES.into_iter().filter(|kind| !cell.stage(*kind).is_empty()).map(|kind| {
                StageSum {
                    device: device.clone(),
                    class: class.name(),
                    stage: stage_name(kind),
                    ns: u64::try_from(cell.stage(kind).sum_ns()).unwrap_or(u64::MAX),
                }
            }));
        }
    }
    sums
}

const STAGES: [StageKind; 3] = [StageKind::G2DAll, StageKind::D2C, StageKind::G2C];

fn stage_name(stage: StageKind) -> &'static str {
    match stage {
        StageKind::D2C => "d2c",
        StageKind::G2C => "g2c",
        _ => "g2d",
    }
}

/// What syncs did in an interval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Syncs {
    /// How long they took.
    pub syncs: Vec<Sync>,
    /// What for.
    pub waits: Vec<Wait>,
    /// Behind whose I/O.
    pub behind: Vec<Behind>,
}

/// Sums of one [`Whose`].
#[derive(Default)]
struct Sums {
    latency: BTreeMap<i64, i64>,
    waits: BTreeMap<(String, String), i64>,
    behind: BTreeMap<(String, String, String), (i64, i64, i64)>,
    wall_ns: i64,
}

/// Rows of the ledgers of an interval. `whose` is asked of each process.
pub fn syncs(span: Span, ledgers: &[Ledger], whose: impl Fn(Option<u32>, &str) -> Whose) -> Syncs {
    let mut sums: BTreeMap<Whose, Sums> = BTreeMap::new();
    for ledger in ledgers {
        let of = whose(ledger.process.pid, &ledger.process.comm);
        sums.entry(of).or_default().add(ledger, &whose);
    }
    let mut rows = Syncs::default();
    for (of, sums) in bounded(sums, |sums| sums.wall_ns, Sums::merge) {
        let Span { ts_ms, span_ms } = span;
        rows.syncs.extend(sums.latency.into_iter().map(|(bucket_low_ns, count)| Sync {
            ts_ms,
            span_ms,
            comm: of.comm.clone(),
            unit: of.unit.clone(),
            cgroup: of.cgroup.clone(),
            bucket_low_ns,
            count,
        }));
        rows.waits.extend(sums.waits.into_iter().map(|((part, cause), ns)| Wait {
            ts_ms,
            span_ms,
            comm: of.comm.clone(),
            unit: of.unit.clone(),
            cgroup: of.cgroup.clone(),
            part,
            cause,
            ns,
        }));
        rows.behind.extend(sums.behind.into_iter().map(
            |((culprit, culprit_unit, way), (ns, bytes, ios))| {
                let (comm, unit) = (of.comm.clone(), of.unit.clone());
                Behind { ts_ms, span_ms, comm, unit, culprit, culprit_unit, way, ns, bytes, ios }
            },
        ));
    }
    rows
}

impl Sums {
    fn add(&mut self, ledger: &Ledger, whose: &impl Fn(Option<u32>, &str) -> Whose) {
        for (low_ns, count) in merged(&ledger.latency) {
            *self.latency.entry(low_ns).or_default() += count;
        }
        self.wall_ns += integer(ledger.wall_ns);
        for ((part, cause), ns) in times(ledger) {
            *self.waits.entry((part, cause)).or_default() += ns;
        }
        for culprit in &ledger.culprits {
            let of = whose(culprit.process.pid, &culprit.process.comm);
            let ns = (culprit.share * ledger.wall_ns as f64).round() as i64;
            let sum = self.behind.entry((of.comm, of.unit, word(culprit.way))).or_default();
            *sum = (sum.0 + ns, sum.1 + integer(culprit.bytes), sum.2 + integer(culprit.ios));
        }
    }

    fn merge(&mut self, other: Sums) {
        other.latency.into_iter().for_each(|(low, n)| *self.latency.entry(low).or_default() += n);
        other.waits.into_iter().for_each(|(key, ns)| *self.waits.entry(key).or_default() += ns);
        for (key, (ns, bytes, ios)) in other.behind {
            let sum = self.behind.entry(key).or_default();
            *sum = (sum.0 + ns, sum.1 + bytes, sum.2 + ios);
        }
        self.wall_ns += other.wall_ns;
    }
}

/// A ledger's time by part and cause in whole nanoseconds, which add up to all of it.
fn times(ledger: &Ledger) -> Vec<((String, String), i64)> {
    let mut shares = Vec::new();
    for row in &ledger.phases {
        let part = word(row.phase);
        match row.causes.is_empty() {
            true => shares.push(((part, String::new()), row.share)),
            false => {
                shares.extend(row.causes.iter().map(|(cause, share)| ((part.clone(), word(cause)), *share)))
            }
        }
    }
    let whole: f64 = shares.iter().map(|(_, share)| share).sum();
    let (mut before, mut so_far) = (0_i64, 0.0);
    let scaled = |(key, share): ((String, String), f64)| {
        so_far += share / whole;
        let until = ((so_far * ledger.wall_ns as f64).round() as i64).min(integer(ledger.wall_ns));
        let ns = until - std::mem::replace(&mut before, until);
        (key, ns)
    };
    if whole > 0.0 { shares.into_iter().map(scaled).filter(|(_, ns)| *ns > 0).collect() } else { Vec::new() }
}

/// Those with the most time or bytes, and the rest as one. Where they are too many, a unit's smallest are one before that.
fn bounded<T: Default>(
    sums: BTreeMap<Whose, T>,
    weight: impl Fn(&T) -> i64,
    merge: impl Fn(&mut T, T),
) -> Vec<(Whose, T)> {
    let by_weight = |sums: &mut Vec<(Whose, T)>| sums.sort_by_key(|(_, of)| std::cmp::Reverse(weight(of)));
    let mut sums: Vec<(Whose, T)> = sums.into_iter().collect();
    by_weight(&mut sums);
    if sums.len() <= NAMED_MAX {
        return sums;
    }
    let mut held: BTreeMap<String, usize> = BTreeMap::new();
    let (mut bounded, mut of_units) = (Vec::new(), BTreeMap::<String, T>::new());
    for (whose, of) in sums {
        let Some(unit) = outer_unit(&whose.unit).map(str::to_string) else {
            bounded.push((whose, of));
            continue;
        };
        let held = held.entry(unit.clone()).or_default();
        *held += 1;
        if *held > NAMED_OF_UNIT_MAX {
            merge(of_units.entry(unit).or_default(), of);
        } else {
            bounded.push((whose, of));
        }
    }
    bounded.extend(of_units.into_iter().map(|(unit, of)| (Whose::others(&unit), of)));
    by_weight(&mut bounded);
    if bounded.len() > NAMED_MAX {
        let mut rest = T::default();
        bounded.drain(NAMED_MAX - 1..).for_each(|(_, of)| merge(&mut rest, of));
        bounded.push((Whose::others(""), rest));
    }
    bounded
}

/// Rows of what processes read and wrote, those that moved most first and the rest as one.
pub fn processes(span: Span, moved: impl IntoIterator<Item = (Whose, u64, u64)>) -> Vec<Process> {
    let mut sums: BTreeMap<Whose, (u64, u64)> = BTreeMap::new();
    for (whose, read, written) in moved {
        let sum = sums.entry(whose).or_default();
        *sum = (sum.0.saturating_add(read), sum.1.saturating_add(written));
    }
    let weight = |(read, written): &(u64, u64)| integer(read.saturating_add(*written));
    sums.retain(|_, sum| weight(sum) > 0);
    let add = |sum: &mut (u64, u64), more: (u64, u64)| {
        *sum = (sum.0.saturating_add(more.0), sum.1.saturating_add(more.1));
    };
    let sums = bounded(sums, weight, add);
    let row = |(of, (read, written)): (Whose, (u64, u64))| Process {
        ts_ms: span.ts_ms,
        span_ms: span.span_ms,
        comm: of.comm,
        unit: of.unit,
        cgroup: of.cgroup,
        read_bytes: integer(read),
        written_bytes: integer(written),
    };
    sums.into_iter().map(row).collect()
}

/// A slow sync as an event, with its anatomy in short.
pub fn slow_sync(ts_ms: i64, slow: &SlowSync, device: String, whose: Whose) -> Event {
    #[derive(Serialize)]
    struct Detail<'a> {
        call: &'a weir_blocktrace::fsync::Call,
        tid: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        thread: Option<&'a str>,
        cgroup: &'a str,
        phases: &'a [weir_blocktrace::fsync::Row],
        culprits: &'a [weir_blocktrace::fsync::Culprit],
    }
    let culprits = &slow.culprits[..slow.culprits.len().min(3)];
    let detail = Detail {
        call: &slow.call,
        tid: slow.tid,
        thread: slow.thread.as_deref(),
        cgroup: &whose.cgroup,
        phases: &slow.phases,
        culprits,
    };
    Event {
        ts_ms,
        kind: "slow_sync".to_string(),
        device,
        pid: slow.process.pid.map_or(0, i64::from),
        took_ns: integer(slow.took_ns),
        detail: serde_json::to_string(&detail).unwrap_or_default(),
        comm: whose.comm,
        unit: whose.unit,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir_blocktrace::fsync::{Cause, Culprit, Phase, Process as Who, Row, Way};

    use super::*;

    const SPAN: Span = Span { ts_ms: 5, span_ms: 10 };

    fn ledger(pid: u32, values: &[u64], shares: [f64; 3]) -> Ledger {
        let mut latency = Distribution::default();
        values.iter().for_each(|value| latency.record(*value));
        let [own, journal, cpu] = shares;
        Ledger {
            process: Who::new(Some(pid), &format!("p{pid}")),
            latency,
            wall_ns: values.iter().sum(),
            phases: vec![
                Row { phase: Phase::OwnData, share: own, causes: vec![(Cause::Others, own)] },
                Row { phase: Phase::Journal, share: journal, causes: vec![(Cause::Device, journal)] },
                Row { phase: Phase::Cpu, share: cpu, causes: vec![] },
            ],
            culprits: vec![Culprit {
                process: Who::new(Some(99), "dd"),
                processes: 1,
                way: Way::Writeback,
                share: own,
                bytes: 4096,
                ios: 1,
            }],
        }
    }

    fn whose(_: Option<u32>, comm: &str) -> Whose {
        Whose { comm: comm.to_string(), ..Whose::default() }
    }

    proptest! {
        #[test]
        fn counts_and_times_add_up_exactly(
            values in prop::collection::vec(1_u64..1 << 40, 1..60),
            parts in (1_u32..100, 0_u32..100, 0_u32..100),
            processes in 1_u32..40,
        ) {
            let sum = f64::from(parts.0 + parts.1 + parts.2);
            let shares = [parts.0, parts.1, parts.2].map(|part| f64::from(part) / sum);
            let ledgers: Vec<Ledger> = (0..processes).map(|pid| ledger(pid, &values, shares)).collect();
            let rows = syncs(SPAN, &ledgers, whose);
            let counted: i64 = rows.syncs.iter().map(|row| row.count).sum();
            prop_assert_eq!(counted, i64::from(processes) * values.len() as i64);
            let waited: i64 = rows.waits.iter().map(|row| row.ns).sum();
            prop_assert_eq!(waited, i64::from(processes) * values.iter().sum::<u64>() as i64);
            let names: std::collections::BTreeSet<&str> = rows.waits.iter().map(|row| row.comm.as_str()).collect();
            prop_assert!(names.len() <= NAMED_MAX);
        }
    }

    #[test]
    fn every_value_lies_at_or_above_its_bucket_and_within_an_eighth() {
        let mut distribution = Distribution::default();
        distribution.record(1_000_000);
        let merged = merged(&distribution);
        let (low, count) = merged.iter().next().unwrap();
        assert_eq!(*count, 1);
        assert!(*low <= 1_000_000 && *low as f64 * 1.125 >= 1_000_000.0, "{low}");
    }

    #[test]
    fn a_culprit_is_named_with_what_was_spent_behind_it() {
        let rows = syncs(SPAN, &[ledger(1, &[800, 200], [0.5, 0.25, 0.25])], whose);
        assert_eq!(rows.behind.len(), 1);
        assert_eq!((rows.behind[0].culprit.as_str(), rows.behind[0].ns), ("dd", 500));
        let parts: Vec<(&str, &str, i64)> =
            rows.waits.iter().map(|row| (row.part.as_str(), row.cause.as_str(), row.ns)).collect();
        assert_eq!(parts, [("cpu", "", 250), ("journal", "device", 250), ("own_data", "others", 500)]);
    }

    #[test]
    fn labels_do_not_explode() {
        let many = (0..1000_u64).map(|n| (whose(None, &format!("p{n}")), n, 1));
        let rows = processes(SPAN, many);
        assert_eq!(rows.len(), NAMED_MAX);
        assert_eq!(rows.last().unwrap().comm, OTHERS);
        assert_eq!(rows.iter().map(|row| row.written_bytes).sum::<i64>(), 1000);
    }

    /// An account with many busy processes takes no more than its places.
    #[test]
    fn a_unit_of_many_processes_leaves_places_to_others() {
        let of = |comm: String, unit: &str| Whose { comm, unit: unit.to_string(), ..Whose::default() };
        let many = (0..1000_u64)
            .map(|n| (of(format!("p{n}"), &format!("user@1000.service/{}.scope", n % 7)), n, 1 << 30))
            .chain([(of("mysqld".to_string(), "db.service"), 5, 5)]);
        let rows = processes(SPAN, many);
        assert_eq!(rows.len(), NAMED_OF_UNIT_MAX + 2);
        let names: Vec<(&str, &str)> =
            rows.iter().map(|row| (row.comm.as_str(), row.unit.as_str())).collect();
        assert_eq!(names.first(), Some(&(OTHERS, "user@1000.service")));
        assert_eq!(names.last(), Some(&("mysqld", "db.service")));
        assert_eq!(rows.iter().map(|row| row.written_bytes).sum::<i64>(), (1000 << 30) + 5);
        // Where there are places for all, all have one.
        let few = (0..NAMED_MAX as u64).map(|n| (of(format!("p{n}"), "a.service"), n, 1));
        assert!(processes(SPAN, few).iter().all(|row| row.comm != OTHERS));
    }

    #[test]
    fn long_names_of_groups_are_cut_and_stay_different() {
        let deep = |last: &str| {
            format!("/user.slice{}/{last}.service", "/\u{e9}aaaaaaaaaaaaaaa.service".repeat(200))
        };
        let [one, other] = ["one", "other"].map(|last| Whose::of("dd", &deep(last)));
        assert!((200..=NAME_MAX).contains(&one.cgroup.len()), "{} bytes", one.cgroup.len());
        assert!(one.unit.len() <= NAME_MAX, "{} bytes", one.unit.len());
        assert!(one != other && one == Whose::of("dd", &deep("one")));
        let usual = Whose::of("dd", "/system.slice/db.service/worker");
        assert_eq!(
            (usual.unit.as_str(), usual.cgroup.as_str()),
            ("db.service", "/system.slice/db.service/worker")
        );
    }

    #[test]
    fn the_unit_is_systemds_with_what_it_is_called_inside() {
        for (path, unit) in [
            ("/system.slice/mariadb.service", "mariadb.service"),
            (
                "/system.slice/system-postgresql.slice/postgresql@15-main.service",
                "postgresql@15-main.service",
            ),
            ("/user.slice/user-0.slice/user@0.service/app.slice/a.scope", "user@0.service/a.scope"),
            // Any account can call a group so.
            (
                "/user.slice/user-1000.slice/user@1000.service/app.slice/mariadb.service",
                "user@1000.service/mariadb.service",
            ),
            (
                "/user.slice/user-1000.slice/user@1000.service/mariadb.service/x.slice/y",
                "user@1000.service/mariadb.service",
            ),
            ("/machine.slice/libpod-1.scope/system.slice/mariadb.service", "libpod-1.scope/mariadb.service"),
            ("/docker/0af1/system.slice/mariadb.service", "docker/mariadb.service"),
            ("/docker/0af1", ""),
            ("/kubepods.slice/kubepods-pod1.slice/cri-containerd-0af1.scope", "cri-containerd-0af1.scope"),
            // Seen from within a namespace of cgroups.
            ("/../../../system.slice/mariadb.service", "mariadb.service"),
            ("/system.slice/db.service/worker", "db.service"),
            ("/init", ""),
            ("/user.slice", ""),
            ("", ""),
        ] {
            assert_eq!(unit_of(path), unit, "{path}");
        }
    }
}
