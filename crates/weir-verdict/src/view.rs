//! What rules look at, and the small sentences' parts they share.

use super::doctor::{Curve, CurvePoint, EffectSide, Estimate, Evidence, FloodStory, Measurement};
use super::notes::{DoctorNotes, StepKind, SyncPath};
use super::sustained::Sustained;
use weir_core::target::{Conditions, Queue, TargetFacts};
use weir_core::units::{Bytes, Nanos, grouped, megabytes_per_second, per_second, significant};

/// Everything a rule may use.
pub struct View<'a> {
    /// Facts of machine and target.
    pub conditions: &'a Conditions,
    /// The doctor's notes.
    pub notes: &'a DoctorNotes,
    /// All measurements, in the order of the notes' steps.
    pub measurements: &'a [Measurement],
    /// Depth curves.
    pub curves: &'a [Curve],
    /// The flood, where there was one.
    pub flood: Option<&'a FloodStory>,
    /// How long writes keep their rate, where that was examined.
    pub sustained: Option<&'a Sustained>,
}

impl<'a> View<'a> {
    /// The first measurement that has samples and whose step and shape fit.
    pub fn find(&self, fits: impl Fn(StepKind, &Measurement) -> bool) -> Option<&'a Measurement> {
        let steps = self.notes.steps.iter().zip(self.measurements);
        steps.filter(|(_, m)| m.latency.n > 0).find(|(s, m)| fits(s.kind, m)).map(|(_, m)| m)
    }

    /// Commits of one size, by one thread or by several.
    pub fn commits(&self, path: SyncPath, block: Bytes, several: bool) -> Option<&'a Measurement> {
        self.find(|kind, m| kind == StepKind::Commit(path) && m.block == block && (m.threads > 1) == several)
    }

    /// The commits that stand for a database: one thread, buffered, 16 KiB, else 4 KiB.
    pub fn typical_commit(&self) -> Option<&'a Measurement> {
        self.commits(SyncPath::Buffered, Bytes(16 << 10), false)
            .or_else(|| self.commits(SyncPath::Buffered, Bytes(4 << 10), false))
    }

    /// The first curve of a direction: `read` or `write`.
    pub fn curve(&self, word: &str) -> Option<&'a Curve> {
        self.curves.iter().find(|c| c.id.starts_with(word))
    }

    /// The target's facts.
    pub fn target(&self) -> Option<&'a TargetFacts> {
        self.conditions.target.as_ref()
    }

    /// The queue of the device that stands for the target.
    pub fn queue(&self) -> Option<&'a Queue> {
        self.target().and_then(TargetFacts::device_queue)
    }

    /// The kind of file system, or an empty text.
    pub fn file_system_kind(&self) -> &'a str {
        self.target().and_then(|t| t.file_system.as_ref()).map_or("", |fs| fs.kind.as_str())
    }
}

/// `1.23 ms`.
pub fn time(ns: u64) -> String {
    Nanos(ns).to_string()
}

/// The longest commit of a side: `14.2 s`, or `at least 14.2 s` where the flood was ended for it.
pub fn longest(side: &EffectSide) -> String {
    let bound = if side.cut_short { "at least " } else { "" };
    format!("{bound}{}", time(side.worst_ns))
}

/// `1.23 ms` of a fractional mean.
pub fn mean_time(ns: f64) -> String {
    time(ns.round().max(0.0) as u64)
}

/// `22×` or `1.8×`.
pub fn times(factor: f64) -> String {
    if factor < 9.95 { format!("{factor:.1}×") } else { format!("{}×", grouped(factor.round() as u64)) }
}

/// `93 %`, `4.4 %`, `0.01 %`.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    match value {
        v if v >= 9.95 => format!("{v:.0} %"),
        v if v >= 0.95 => format!("{v:.1} %"),
        v => format!("{v:.2} %"),
    }
}

/// `10 threads`, `1 thread`.
pub fn threads(n: u32) -> String {
    if n == 1 { "1 thread".to_string() } else { format!("{n} threads") }
}

pub use weir_core::units::limit;

/// `[720, 790]/s`, where there were enough intervals.
fn interval(rate: &Estimate) -> Option<String> {
    (rate.intervals >= 3).then(|| format!("[{}, {}]/s", per_second(rate.low), per_second(rate.high)))
}

/// `[190, 227] MB/s`: the operations of a step are of one size, so its bytes vary as its operations do.
fn bytes_interval(m: &Measurement) -> Option<String> {
    let bytes = m.bytes_per_second / m.iops.mean;
    let megabytes = |iops: f64| significant(iops * bytes / 1e6);
    let known = m.iops.intervals >= 3 && bytes.is_finite();
    known.then(|| format!("[{}, {}] MB/s", megabytes(m.iops.low), megabytes(m.iops.high)))
}

/// Evidence: a rate.
pub fn rate_of(m: &Measurement) -> Evidence {
    Evidence {
        source: m.id.clone(),
        figure: format!("{} IOPS", per_second(m.iops.mean)),
        n: m.latency.n,
        interval: interval(&m.iops),
    }
}

/// Evidence: a point of a curve.
pub fn point_of(p: &CurvePoint) -> Evidence {
    Evidence {
        source: p.measurement.clone(),
        figure: format!("{} IOPS at depth {}", per_second(p.iops.mean), p.depth),
        n: p.n,
        interval: interval(&p.iops),
    }
}

/// Evidence: bytes per second.
pub fn throughput_of(m: &Measurement) -> Evidence {
    Evidence {
        source: m.id.clone(),
        figure: megabytes_per_second(m.bytes_per_second),
        n: m.latency.n,
        interval: bytes_interval(m),
    }
}

/// Evidence: a latency under a name such as `p99`.
pub fn latency_of(m: &Measurement, name: &str, ns: u64) -> Evidence {
    Evidence { source: m.id.clone(), figure: format!("{name} {}", time(ns)), n: m.latency.n, interval: None }
}

/// Evidence: something read, not measured.
pub fn fact(source: impl AsRef<str>, value: impl Into<String>) -> Evidence {
    Evidence { source: format!("fact:{}", source.as_ref()), figure: value.into(), n: 0, interval: None }
}

/// The highest quantile that the samples support, and its name; the longest where there are too few for any.
pub fn tail(m: &Measurement) -> (&'static str, u64) {
    let l = &m.latency;
    match (l.p99_ns, l.p95_ns) {
        (Some(p99), _) => ("p99", p99),
        (None, Some(p95)) => ("p95", p95),
        _ => ("longest", l.max_ns.max(m.oldest_ns_max)),
    }
}

/// A path as one can paste it into a shell.
pub fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+,./:@%".contains(c);
    if !path.is_empty() && path.chars().all(plain) {
        path.to_string()
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_well() {
        assert_eq!([times(22.4), times(1.84), times(7530.0)], ["22×", "1.8×", "7,530×"]);
        assert_eq!([percent(0.927), percent(0.044), percent(0.0001)], ["93 %", "4.4 %", "0.01 %"]);
        let shown = [15_000_000, 7_900_000, 250_000_000, 1_000_000_000, 5_583_457_484, 1 << 20, 1 << 34, 800];
        assert_eq!(
            shown.map(|bytes| limit(Bytes(bytes))),
            ["15 MB", "7.9 MB", "250 MB", "1 GB", "5.58 GB", "1 MiB", "16 GiB", "800 B"]
        );
    }
}
