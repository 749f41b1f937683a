//! The last samples, recorded ones from before them, and which of them is shown.

use std::collections::VecDeque;

use weir_core::target::DeviceNumber;

use crate::sample::{PROCESSES_MAX, SLOW_MAX, Sample, Wish};

/// Recorded samples that are held at a time: some 20 KiB each.
const RECORDED_MAX: usize = 1_000;

/// One point of a sparkline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// I/Os per second.
    pub iops: f64,
    /// 99th percentile of the time from queue to completion, or the mean where there is none, ns; absent without I/O.
    pub latency_ns: Option<f64>,
}

/// Which sample is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// Always the last.
    Live,
    /// One that was watched, by its number.
    Watched(u64),
    /// A recorded one, by its place among those that are held.
    Recorded(usize),
}

/// The last samples, numbered from the first one on; bounded. Before them a stretch of recorded ones, bounded too: it is fetched
/// when somebody steps there.
#[derive(Debug, Clone)]
pub struct History {
    samples: VecDeque<Sample>,
    most: usize,
    /// Number of the first one that is kept.
    first: u64,
    recorded: VecDeque<Sample>,
    /// Whether the first watched sample comes next after the last recorded one.
    joins: bool,
    shown: Shown,
}

impl History {
    /// Keeps so many samples.
    pub fn new(most: usize) -> History {
        History {
            samples: VecDeque::new(),
            most: most.max(1),
            first: 0,
            recorded: VecDeque::new(),
            joins: false,
            shown: Shown::Live,
        }
    }

    /// Takes in a sample.
    pub fn push(&mut self, mut sample: Sample) {
        bound(&mut sample);
        self.samples.push_back(sample);
        if self.samples.len() > self.most {
            self.samples.pop_front();
            self.first += 1;
            self.joins = false;
            self.forget_recorded();
        }
    }

    /// The sample that is shown.
    pub fn shown(&self) -> Option<&Sample> {
        match self.shown {
            Shown::Recorded(place) => self.recorded.get(place),
            _ => self.samples.get(self.place()?),
        }
    }

    /// Whether the last sample is shown, whichever that is.
    pub fn is_live(&self) -> bool {
        self.shown == Shown::Live
    }

    /// How many samples after the shown one there are.
    pub fn behind(&self) -> usize {
        match self.shown {
            Shown::Recorded(place) => self.samples.len() + self.recorded.len().saturating_sub(place + 1),
            _ => self.place().map_or(0, |place| self.samples.len() - 1 - place),
        }
    }

    /// The first sample that was watched and is kept.
    pub fn first(&self) -> Option<&Sample> {
        self.samples.front()
    }

    /// The last sample that was watched.
    pub fn last(&self) -> Option<&Sample> {
        self.samples.back()
    }

    /// How many samples are kept.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether there is none yet.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Shows a sample so many steps later, or earlier, than now; it stays shown while others come. Returns the steps that lie
    /// beyond the samples that are held, 0 where there are none.
    pub fn step(&mut self, by: i64) -> i64 {
        // Recorded and watched ones in a row, as far as they join.
        let is_recorded = matches!(self.shown, Shown::Recorded(_));
        let recorded = if self.joins || is_recorded { self.recorded.len() } else { 0 };
        let watched = if self.joins || !is_recorded { self.samples.len() } else { 0 };
        let at = match self.shown {
            Shown::Recorded(place) => place,
            _ => recorded + self.place().unwrap_or(0),
        };
        let Some(last) = (recorded + watched).checked_sub(1) else { return by.min(0) };
        let wanted = (at as i64).saturating_add(by);
        let to = wanted.clamp(0, last as i64);
        let place = to as usize;
        self.shown = match place.checked_sub(recorded) {
            None => Shown::Recorded(place),
            Some(place) => Shown::Watched(self.first + place as u64),
        };
        self.forget_recorded();
        // After the last watched one there is nothing yet.
        let is_end = wanted > to && place >= recorded;
        if is_end { 0 } else { wanted - to }
    }

    /// What has to be fetched for somebody who steps on from here.
    pub fn wish(&self, is_back: bool) -> Option<Wish> {
        let first = self.recorded.front().filter(|_| self.joins || matches!(self.shown, Shown::Recorded(_)));
        match is_back {
            true => first.or(self.samples.front()).map(|sample| Wish::Before(sample.begin_ms())),
            false => self.recorded.back().map(|sample| Wish::After(sample.at_ms)),
        }
    }

    /// Takes in recorded samples from before those that are held, oldest first.
    pub fn put_before(&mut self, found: Vec<Sample>) {
        if self.recorded.is_empty() {
            self.joins = true;
        }
        let count = found.len();
        for mut sample in found.into_iter().rev() {
            bound(&mut sample);
            self.recorded.push_front(sample);
        }
        if let Shown::Recorded(place) = &mut self.shown {
            *place += count;
        }
        if self.recorded.len() > RECORDED_MAX {
            self.recorded.truncate(RECORDED_MAX);
            self.joins = false;
        }
    }

    /// Takes in recorded samples that follow those that are held; where there are none, watched ones follow.
    pub fn put_after(&mut self, found: Vec<Sample>) {
        // What was watched is not shown twice.
        let watched_ms = self.samples.front().map_or(i64::MAX, Sample::begin_ms);
        let mut reaches = found.is_empty();
        for mut sample in found {
            reaches |= sample.at_ms >= watched_ms;
            if sample.begin_ms() < watched_ms {
                bound(&mut sample);
                self.recorded.push_back(sample);
            }
        }
        self.joins |= reaches && !self.samples.is_empty();
        let over = self.recorded.len().saturating_sub(RECORDED_MAX);
        self.recorded.drain(..over);
        if let Shown::Recorded(place) = &mut self.shown {
            *place = place.saturating_sub(over);
        }
    }

    /// Shows the first of other recorded samples, or the last of them; stays where there are none.
    pub fn show_recorded(&mut self, found: Vec<Sample>, is_last: bool) {
        let Some(last) = found.len().checked_sub(1) else { return };
        self.recorded.clear();
        self.joins = false;
        self.shown = Shown::Recorded(if is_last { last } else { 0 });
        self.put_after(found);
        self.forget_recorded();
    }

    /// Shows the last sample from now on.
    pub fn go_live(&mut self) {
        self.shown = Shown::Live;
        self.forget_recorded();
    }

    /// Recorded samples far from what is shown are fetched anew when somebody steps there again.
    fn forget_recorded(&mut self) {
        match self.shown {
            Shown::Recorded(place) if place >= self.recorded.len() => self.shown = Shown::Live,
            Shown::Recorded(_) => {}
            _ if self.joins => {}
            _ => self.recorded.clear(),
        }
    }

    /// The samples up to the shown one, the last of them first.
    pub fn back(&self) -> impl Iterator<Item = &Sample> {
        let (recorded, watched) = match self.shown {
            Shown::Recorded(place) => (place + 1, 0),
            _ => {
                (if self.joins { self.recorded.len() } else { 0 }, self.place().map_or(0, |place| place + 1))
            }
        };
        let recorded = self.recorded.iter().take(recorded).rev();
        self.samples.iter().take(watched).rev().chain(recorded)
    }

    /// The last points of a device up to the shown sample, oldest first.
    pub fn points(&self, device: DeviceNumber, most: usize) -> Vec<Option<Point>> {
        let point = |sample: &Sample| {
            let device = sample.frame.devices.iter().find(|frame| frame.number == device)?;
            Some(Point { iops: device.iops(), latency_ns: device.tail_ns() })
        };
        let mut points: Vec<_> = self.back().take(most).map(point).collect();
        points.reverse();
        points
    }

    /// The place of the watched sample that is shown, or would be. One that is no longer kept gives way to the oldest one.
    fn place(&self) -> Option<usize> {
        let last = self.samples.len().checked_sub(1)?;
        Some(match self.shown {
            Shown::Watched(number) => number.saturating_sub(self.first).min(last as u64) as usize,
            _ => last,
        })
    }
}

/// Keeps of a sample what matters to somebody who looks for the slow: those that wait, then those that move most.
fn bound(sample: &mut Sample) {
    let weight = |p: &crate::Process| (p.syncs.as_ref().map_or(0, |syncs| syncs.wall_ns), p.moved());
    sample.processes.sort_by(|a, b| weight(b).partial_cmp(&weight(a)).unwrap_or(std::cmp::Ordering::Equal));
    sample.processes.truncate(PROCESSES_MAX);
    sample.slow.sort_by_key(|slow| std::cmp::Reverse(slow.took_ns));
    sample.slow.truncate(SLOW_MAX);
}
