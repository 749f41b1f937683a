//! The last samples, and which of them is shown.

use std::collections::VecDeque;

use weir_core::target::DeviceNumber;

use crate::sample::{PROCESSES_MAX, SLOW_MAX, Sample};

/// One point of a sparkline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// I/Os per second.
    pub iops: f64,
    /// 99th percentile of the time from queue to completion, or the mean where there is none, ns; absent without I/O.
    pub latency_ns: Option<f64>,
}

/// The last samples, numbered from the first one on; bounded.
#[derive(Debug, Clone)]
pub struct History {
    samples: VecDeque<Sample>,
    most: usize,
    /// Number of the first one that is kept.
    first: u64,
    /// Which is shown; `None` is always the last.
    shown: Option<u64>,
}

impl History {
    /// Keeps so many samples.
    pub fn new(most: usize) -> History {
        History { samples: VecDeque::new(), most: most.max(1), first: 0, shown: None }
    }

    /// Takes in a sample.
    pub fn push(&mut self, mut sample: Sample) {
        // What matters to somebody who looks for the slow: those that wait, then those that move most.
        let weight = |p: &crate::Process| (p.syncs.as_ref().map_or(0, |syncs| syncs.wall_ns), p.moved());
        sample
            .processes
            .sort_by(|a, b| weight(b).partial_cmp(&weight(a)).unwrap_or(std::cmp::Ordering::Equal));
        sample.processes.truncate(PROCESSES_MAX);
        sample.slow.sort_by_key(|slow| std::cmp::Reverse(slow.took_ns));
        sample.slow.truncate(SLOW_MAX);
        self.samples.push_back(sample);
        if self.samples.len() > self.most {
            self.samples.pop_front();
            self.first += 1;
        }
    }

    /// The sample that is shown.
    pub fn shown(&self) -> Option<&Sample> {
        self.samples.get(self.place()?)
    }

    /// Whether the last sample is shown, whichever that is.
    pub fn is_live(&self) -> bool {
        self.shown.is_none()
    }

    /// How many samples after the shown one there are.
    pub fn behind(&self) -> usize {
        self.place().map_or(0, |place| self.samples.len() - 1 - place)
    }

    /// How many samples are kept.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether there is none yet.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Shows a sample so many steps later, or earlier, than now; it stays shown while others come.
    pub fn step(&mut self, by: i64) {
        let Some(place) = self.place() else { return };
        let last = self.samples.len() as i64 - 1;
        let to = (place as i64).saturating_add(by).clamp(0, last);
        self.shown = Some(self.first + to as u64);
    }

    /// Shows the last sample from now on.
    pub fn go_live(&mut self) {
        self.shown = None;
    }

    /// The samples up to the shown one, the last of them first.
    pub fn back(&self) -> impl Iterator<Item = &Sample> {
        let count = self.place().map_or(0, |place| place + 1);
        self.samples.iter().take(count).rev()
    }

    /// The last points of a device up to the shown sample, oldest first.
    pub fn points(&self, device: DeviceNumber, most: usize) -> Vec<Option<Point>> {
        let point = |sample: &Sample| {
            let device = sample.frame.devices.iter().find(|frame| frame.number == device)?;
            let row = device.row(weir_blocktrace::Class::All).or(device.rows.first());
            let total = row.and_then(|row| row.total);
            let latency_ns = total.map(|total| total.p99_ns.map_or(total.mean_ns, |p99_ns| p99_ns as f64));
            Some(Point { iops: device.iops(), latency_ns })
        };
        let mut points: Vec<_> = self.back().take(most).map(point).collect();
        points.reverse();
        points
    }

    /// A sample that is no longer kept gives way to the oldest one.
    fn place(&self) -> Option<usize> {
        let last = self.samples.len().checked_sub(1)?;
        Some(self.shown.map_or(last, |number| number.saturating_sub(self.first).min(last as u64) as usize))
    }
}
