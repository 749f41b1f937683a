//! What a saturating load did over time, in intervals, and robust figures of it.

use weir_core::result::record::{Class, JobRecord};

/// What finished in one interval.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Done {
    /// Start, since the load began.
    pub start_ns: u64,
    /// Length.
    pub len_ns: u64,
    /// Operations.
    pub operations: u64,
    /// Median latency.
    pub p50_ns: u64,
}

impl Done {
    /// Operations per second.
    pub fn rate(&self) -> f64 {
        self.operations as f64 * 1e9 / self.len_ns.max(1) as f64
    }

    /// Length in seconds.
    pub fn seconds(&self) -> f64 {
        self.len_ns as f64 / 1e9
    }
}

/// The course of a job that reads or writes and does not sync.
pub fn of_record(record: &JobRecord) -> Vec<Done> {
    let class = if record.job.writes() { Class::Write } else { Class::Read };
    record
        .intervals
        .iter()
        .filter(|interval| interval.len_ns > 0)
        .map(|interval| {
            let done = interval.classes.get(&class);
            Done {
                start_ns: interval.start_ns,
                len_ns: interval.len_ns,
                operations: done.map_or(0, |c| c.count),
                p50_ns: done.map_or(0, |c| c.p50_ns),
            }
        })
        .collect()
}

/// Operations beyond a rate, over a whole course: negative where there were fewer.
pub fn excess(course: &[Done], rate: f64) -> f64 {
    course.iter().map(|done| done.operations as f64 - rate * done.seconds()).sum()
}

/// Seconds of a course.
pub fn seconds(course: &[Done]) -> f64 {
    course.iter().map(Done::seconds).sum()
}

/// Operations of a course.
pub fn operations(course: &[Done]) -> u64 {
    course.iter().map(|done| done.operations).sum()
}

/// Rates of a course.
pub fn rates(course: &[Done]) -> Vec<f64> {
    course.iter().map(Done::rate).collect()
}

/// The value below which a share of the values lies; 0 of none.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    sorted.get((last as f64 * share).round() as usize).copied().unwrap_or(0.0)
}

/// The middle value.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// Rates over stretches of about a second, so that what the kernel does in slices of a tenth of a second does not count.
pub fn smooth(course: &[Done]) -> Vec<f64> {
    let len = course.first().map_or(1.0, Done::seconds).max(1e-3);
    let together = ((1.0 / len).round() as usize).max(1);
    course.chunks_exact(together).map(|part| operations(part) as f64 / seconds(part).max(1e-9)).collect()
}

/// Distance of the quartiles over the median; 0 of none.
pub fn spread(values: &[f64]) -> f64 {
    let middle = median(values);
    if middle <= 0.0 { f64::INFINITY } else { (quantile(values, 0.75) - quantile(values, 0.25)) / middle }
}
