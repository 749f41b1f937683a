//! What this storage does, judged by what it did and not by what it claims: virtual disks lie about `rotational`
//! and models. Facts decide only where they are certain (a cgroup's limit, a network file system).

use crate::doctor::{Curve, Evidence, Finding, Measurement, Statement, Topic};
use crate::notes::{StepKind, SyncPath};
use crate::view::{View, fact, latency_of, percent, point_of, rate_of, throughput_of, time};
use weir_core::result::record::Class;
use weir_core::units::{grouped, megabytes_per_second, per_second};

/// How far a measured ceiling may lie from a limit that explains it: limits are kept over slices of time, so a short
/// step may begin with a burst.
const NEAR: std::ops::RangeInclusive<f64> = 0.80..=1.25;
/// Spread of a plateau, highest over lowest, that only a limit keeps so even.
const EVEN: f64 = 1.03;

/// Says what it behaves like, what limits it, and what a flush tells.
pub fn judge(view: &View) -> Option<Finding> {
    let (summary, first) = limited(view).or_else(|| like(view))?;
    let mut statements = vec![first];
    statements.extend(flush(view));
    Some(Finding { topic: Topic::Class, grade: None, summary, statements })
}

/// A limit set by somebody: certain where a cgroup's is seen, likely where the ceiling is too even.
fn limited(view: &View) -> Option<(String, Statement)> {
    by_cgroup(view).or_else(|| view.curves.iter().find_map(|curve| by_ceiling(view, curve)))
}

/// Limits of a cgroup, with the operations that they concern.
const LIMITS: [(&str, Class); 4] =
    [("wiops", Class::Write), ("riops", Class::Read), ("wbps", Class::Write), ("rbps", Class::Read)];

fn shown(key: &str, class: Class, limit: u64) -> String {
    let word = class.name();
    if key.ends_with("bps") {
        format!("{} of {word}s", megabytes_per_second(limit as f64))
    } else {
        format!("{} {word} IOPS", grouped(limit))
    }
}

/// The limits that cgroups set, for an examination without a curve to hold them against: `vdb to 1,500 write IOPS`.
pub fn cgroup_limits(view: &View) -> Option<String> {
    let throttles = view.target()?.throttles.iter();
    let limits = throttles.flat_map(|throttle| {
        LIMITS.iter().filter_map(|(key, class)| {
            let limit = *throttle.limits.get(*key)?;
            Some(format!("{} to {}", throttle.device, shown(key, *class, limit)))
        })
    });
    Some(limits.collect::<Vec<_>>().join(", ")).filter(|limits| !limits.is_empty())
}

fn by_cgroup(view: &View) -> Option<(String, Statement)> {
    view.target()?.throttles.iter().find_map(|throttle| {
        LIMITS.iter().find_map(|(key, class)| {
            let limit = *throttle.limits.get(*key)?;
            let counts_bytes = key.ends_with("bps");
            let is_near = |curve: &&Curve| {
                let each = if counts_bytes { curve.block.0 as f64 } else { 1.0 };
                NEAR.contains(&(curve.max_iops * each / limit as f64))
            };
            let curve = view.curves.iter().filter(|curve| curve.class == *class).find(is_near)?;
            let (word, shown) = (class.name(), shown(key, *class, limit));
            let text = format!(
                "A cgroup limits {} to {shown} and it did {} random-{word} IOPS of {}: this is the limit, \
                 not the device.",
                throttle.device,
                per_second(curve.max_iops),
                curve.block
            );
            let evidence =
                vec![fact(format!("cgroup {} {key}", throttle.cgroup), grouped(limit)), peak_of(curve)];
            Some((format!("a volume throttled to {shown}"), Statement::new(text, evidence)))
        })
    })
}

/// A plateau over a fourfold range of depths that is too even for a device, while processors were not the limit.
fn by_ceiling(view: &View, curve: &Curve) -> Option<(String, Statement)> {
    let plateau: Vec<_> = curve.points.iter().filter(|p| p.depth >= curve.knee_depth).collect();
    let (first, last) = (plateau.first()?, plateau.last()?);
    let lowest = plateau.iter().map(|p| p.iops.mean).fold(f64::INFINITY, f64::min);
    let busy = |id: &str| {
        let found = view.measurements.iter().find(|m| m.id == id);
        found.and_then(|m| m.cpu_busy).unwrap_or(0.0)
    };
    let even = plateau.len() >= 3 && last.depth >= first.depth * 4 && curve.max_iops <= lowest * EVEN;
    if !even || busy(&last.measurement) > 0.85 {
        return None;
    }
    let word = curve.class.name();
    let unsure = match view.target() {
        Some(target) if !target.throttles.is_empty() => "no cgroup's limit is near",
        _ => "no limit can be read here",
    };
    let text = format!(
        "Random {word}s stop at {} IOPS from {} to {} in flight, even to {}: more like a limit set on a volume \
         than a device (not certain: {unsure}).",
        per_second(curve.max_iops),
        first.depth,
        last.depth,
        percent(curve.max_iops / lowest - 1.0)
    );
    let summary = format!("a volume that seems limited to {} {word} IOPS", per_second(curve.max_iops));
    Some((summary, Statement::new(text, vec![point_of(first), point_of(last)])))
}

fn peak_of(curve: &Curve) -> Evidence {
    let best = curve.points.iter().max_by(|a, b| a.iops.mean.total_cmp(&b.iops.mean));
    best.map_or_else(|| fact(&curve.id, per_second(curve.max_iops)), point_of)
}

/// The figures that tell kinds of storage apart.
struct Signs<'a> {
    one: &'a Measurement,
    read_p50_ns: u64,
    read_max_iops: f64,
    commit: Option<&'a Measurement>,
    bulk: Option<&'a Measurement>,
}

fn signs<'a>(view: &View<'a>) -> Option<Signs<'a>> {
    let curve = view.curve("read")?;
    let one = view.find(|kind, m| kind == StepKind::ReadDepth && m.depth * m.threads == 1)?;
    Some(Signs {
        one,
        read_p50_ns: one.latency.p50_ns?,
        read_max_iops: curve.max_iops,
        commit: view.commits(SyncPath::Direct, one_commit_block(view), false).or(view.typical_commit()),
        bulk: view.find(|kind, _| kind == StepKind::SequentialRead),
    })
}

fn one_commit_block(view: &View) -> weir_core::units::Bytes {
    view.typical_commit().map_or_else(Default::default, |m| m.block)
}

/// The kind it behaves like, from the latency of a lone random read, the gain from depth, and bulk throughput.
fn like(view: &View) -> Option<(String, Statement)> {
    if let Some(statement) = by_file_system(view) {
        return Some(statement);
    }
    let signs = signs(view)?;
    let name = kind(&signs);
    let mut text = format!(
        "It behaves like {name}: a random read alone takes {} (median) and depth brings {} IOPS",
        time(signs.read_p50_ns),
        per_second(signs.read_max_iops)
    );
    let mut evidence = vec![latency_of(signs.one, "p50", signs.read_p50_ns), rate_of(signs.one)];
    if let Some(bulk) = signs.bulk {
        text.push_str(&format!(", bulk reads {}", megabytes_per_second(bulk.bytes_per_second)));
        evidence.push(throughput_of(bulk));
    }
    text.push('.');
    Some((format!("storage like {name}"), Statement::new(text, evidence)))
}

/// Half a turn plus a seek takes a hard disk 4–15 ms; flash reads take 50–150 µs, SATA adds to it and ends at
/// 600 MB/s and about 100,000 IOPS; a network adds 200 µs and more.
fn kind(signs: &Signs) -> &'static str {
    let commit_ns = signs.commit.and_then(|m| m.latency.p50_ns);
    let bulk = signs.bulk.map_or(0.0, |m| m.bytes_per_second);
    match signs.read_p50_ns {
        0..25_000 => "memory or a cache in memory (no flash answers so fast)",
        25_000..200_000 if signs.read_max_iops > 120_000.0 || bulk > 650e6 => "an NVMe SSD",
        25_000..350_000 if signs.read_max_iops > 10_000.0 => "a SATA SSD, or a virtual disk on one",
        2_000_000.. if signs.read_max_iops > 5_000.0 => {
            "storage that is slow alone and fast together (many disks, a network volume, or a busy machine)"
        }
        2_000_000.. if commit_ns.is_some_and(|ns| ns < 1_000_000) => "hard disks behind a write cache",
        2_000_000.. => "hard disks",
        _ => "a network or cloud volume",
    }
}

fn by_file_system(view: &View) -> Option<(String, Statement)> {
    let kind = view.file_system_kind();
    let (name, more) = match kind {
        "tmpfs" | "ramfs" => ("memory, not storage", ""),
        k if k.starts_with("nfs") || ["cifs", "smb3", "ceph", "glusterfs", "9p"].contains(&k) => {
            ("a network file system", ": its figures include the network")
        }
        _ => return None,
    };
    let mut evidence = vec![fact("mountinfo", kind)];
    evidence.extend(view.typical_commit().map(rate_of));
    let text = format!("This is {name} ({kind}){more}.");
    Some((format!("storage like {name}"), Statement::new(text, evidence)))
}

/// The cost of a flush tells whether a volatile cache is really emptied; it cannot tell a protected cache from one
/// that lies. Below 40 µs no flash can have programmed a page (100 µs and more), so something holds the data.
const IMPLAUSIBLE_FLUSH_NS: u64 = 40_000;

fn flush(view: &View) -> Option<Statement> {
    let m = view.commits(SyncPath::Direct, one_commit_block(view), false)?;
    let sync_ns = m.sync_p50_ns?;
    let cache = view.queue().and_then(|q| q.write_cache.as_deref());
    let evidence =
        |cache: &str| vec![latency_of(m, "fdatasync alone p50", sync_ns), fact("queue/write_cache", cache)];
    match cache {
        Some("write through") => Some(Statement::new(
            format!(
                "The kernel sends it no flushes (write through) and fdatasync takes {}: commits are as safe \
                 as the caches below.",
                time(sync_ns)
            ),
            evidence("write through"),
        )),
        Some(other) if sync_ns < IMPLAUSIBLE_FLUSH_NS => Some(Statement::new(
            format!(
                "A flush takes {}, faster than flash is written: a cache acknowledges it. If that cache does not \
                 outlive a power failure, neither do commits; software cannot tell, the vendor can.",
                time(sync_ns)
            ),
            evidence(other),
        )),
        _ => None,
    }
}
