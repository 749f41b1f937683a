//! Everything about one device.

use super::batch::Batched;
use super::cells::Cells;
use super::depth::DepthMeter;
use super::plugs::PlugMeter;
use super::seeks::SeekMeter;
use crate::analysis::{Device, Direction, RequestLatency, SLICES_MAX, Slice};
use crate::class::ClassSet;
use crate::event::{Act, Event, Flags};
use crate::extent::Extent;
use crate::grid::Fold;
use crate::life::{Bio, Piece, Request};
use crate::sketch::Sketch;
use crate::stage::{Moment, Stage};
use crate::table::StageTable;
use weir_core::stats::Distribution;
use weir_core::target::DeviceNumber;

/// Requests given back and not issued again that are remembered.
const REQUEUED_MAX: usize = 256;

/// The largest errno there is (MAX_ERRNO of linux/err.h): a recording that names larger ones is damaged or hostile.
const ERRNO_MAX: i32 = 4095;

/// More than there are kinds of events.
const ACTS: usize = 32;
/// Collects what happens on one device.
#[derive(Debug)]
pub struct DeviceCollector {
    out: Device,
    seen_any: bool,
    counts: [u64; ACTS],
    cells: Cells,
    slice: usize,
    slice_start_ns: u64,
    slice_end_ns: u64,
    last_queue_ns: Option<u64>,
    request_d2c: [Batched<Distribution>; Direction::COUNT],
    request_q2c: [Batched<Distribution>; Direction::COUNT],
    bio_q2c: [Batched<Distribution>; Direction::COUNT],
    /// Whether a split here makes no piece more; see [`DeviceCollector::stands_on_others`].
    has_parts_below: bool,
    depth_queue: DepthMeter,
    depth_issue: DepthMeter,
    seeks_queue: SeekMeter,
    seeks_issue: SeekMeter,
    plugs: PlugMeter,
    requeued: Vec<(u64, bool)>,
}

impl DeviceCollector {
    /// `begun_ns` is when its recording began, where that is known.
    pub fn new(device: DeviceNumber, begun_ns: Option<u64>) -> DeviceCollector {
        let extent = Extent { begun_ns, ended_ns: None };
        DeviceCollector {
            out: Device { device, extent, ..Device::default() },
            seen_any: false,
            counts: [0; ACTS],
            cells: Cells::new(),
            slice: 0,
            slice_start_ns: 0,
            slice_end_ns: 0,
            last_queue_ns: None,
            request_d2c: Default::default(),
            request_q2c: Default::default(),
            bio_q2c: Default::default(),
            has_parts_below: false,
            depth_queue: DepthMeter::default(),
            depth_issue: DepthMeter::default(),
            seeks_queue: SeekMeter::default(),
            seeks_issue: SeekMeter::default(),
            plugs: PlugMeter::default(),
            requeued: Vec::new(),
        }
    }

    #[inline]
    pub fn number(&self) -> DeviceNumber {
        self.out.device
    }

    /// Counts an event. The matcher calls it where it knows the act, so that of this nothing is asked again.
    #[inline(always)]
    pub fn event(&mut self, event: &Event) {
        self.note_time(event.time_ns);
        self.counts[event.act as usize % ACTS] += 1;
        match event.act {
            Act::Queue => {
                self.out.events.queued_flushes += u64::from(event.bytes == 0);
                self.out.issued_seen_by_queued_sum += self.depth_issue.now();
                if let Some(last_ns) = self.last_queue_ns.replace(event.time_ns) {
                    self.out.queue_gaps.record(event.time_ns.saturating_sub(last_ns));
                }
                self.enter_queue(event.time_ns);
                self.seeks_queue.next(event.sector, event.bytes);
            }
            Act::Issue => {
                self.out.events.issued_flushes += u64::from(event.bytes == 0);
                self.issue(event);
            }
            Act::Split if !self.has_parts_below => self.enter_queue(event.time_ns),
            Act::Requeue => self.requeue(event),
            Act::Plug => self.plugs.plug(event.pid, event.time_ns),
            Act::Unplug => self.plugs.unplug(event.pid, event.time_ns, event.detail, false),
            Act::UnplugTimer => self.plugs.unplug(event.pid, event.time_ns, event.detail, true),
            _ => {}
        }
    }

    /// What a device without requests splits comes back whole: the parts are pieces of the devices below.
    pub fn stands_on_others(&mut self, time_ns: u64) {
        self.count_events();
        if self.has_parts_below || self.out.events.allocated + self.out.events.issued > 0 {
            return;
        }
        self.has_parts_below = true;
        self.turn_to(time_ns);
        self.depth_queue.pass(time_ns);
        (0..self.out.events.splits).for_each(|_| self.depth_queue.leave(time_ns));
    }

    fn count_events(&mut self) {
        let of = |act: Act| self.counts[act as usize % ACTS];
        let events = &mut self.out.events;
        events.queued += of(Act::Queue);
        events.issued += of(Act::Issue);
        events.completed += of(Act::Complete);
        events.allocated += of(Act::GetRequest);
        events.inserted += of(Act::Insert);
        events.back_merges += of(Act::BackMerge);
        events.front_merges += of(Act::FrontMerge);
        events.request_merges += of(Act::RequestMerge);
        events.remaps += of(Act::Remap);
        events.splits += of(Act::Split);
        events.requeues += of(Act::Requeue);
        let others = [Act::SleepRequest, Act::Bounce, Act::Abort, Act::DriverData, Act::Unknown];
        events.others += others.into_iter().map(of).sum::<u64>();
        self.counts = [0; ACTS];
    }

    /// Counts a piece that knows the moments `known`; returns what it is.
    #[inline]
    pub fn piece(&mut self, piece: &Piece, known: u8) -> ClassSet {
        let end_ns = piece.times.get(Moment::Complete).unwrap_or(self.out.end_ns);
        self.note_time(end_ns);
        let classes = ClassSet::of(piece.flags, piece.bytes);
        self.out.pieces += 1;
        self.cells.piece(piece, classes, known, end_ns);
        let direction = Direction::of(classes) as usize;
        if let Some(slice) = self.out.timeline.slices.get_mut(self.slice) {
            slice.pieces[direction] += 1;
            slice.bytes[direction] += u64::from(piece.bytes);
            if let Some(ns) = piece.times.stage(Stage::Q2C) {
                slice.q2c_sum_ns[direction] = slice.q2c_sum_ns[direction].saturating_add(ns);
                slice.q2c[direction].record(ns);
            }
        }
        if piece.error != 0 {
            let errno = piece.error.saturating_neg().saturating_abs().min(ERRNO_MAX);
            *self.out.errors.entry(errno).or_default() += 1;
        }
        if piece.times.get(Moment::Queue).is_some() {
            self.depth_queue.pass(end_ns);
            self.depth_queue.leave(end_ns);
        }
        classes
    }

    /// Counts a request.
    #[inline]
    pub fn request(&mut self, request: &Request) {
        let end_ns = request.times.get(Moment::Complete).unwrap_or(self.out.end_ns);
        self.note_time(end_ns);
        let direction = Direction::of(ClassSet::of(request.flags, request.bytes)) as usize;
        self.out.requests += 1;
        self.out.requests_requeued += u64::from(request.requeues > 0);
        self.out.requests_completed_in_parts += u64::from(request.completions > 1);
        let traffic = &mut self.out.traffic[direction];
        traffic.requests += 1;
        traffic.bytes += u64::from(request.bytes);
        if let Some(ns) = request.times.stage(Stage::D2C) {
            self.request_d2c[direction].record(ns);
        }
        if let Some(ns) = request.times.stage(Stage::Q2C) {
            self.request_q2c[direction].record(ns);
        }
        if direction <= Direction::Write as usize {
            let sectors = u64::from(request.bytes.div_ceil(512));
            let (least, most) = self.out.request_sectors.unwrap_or((sectors, sectors));
            self.out.request_sectors = Some((least.min(sectors), most.max(sectors)));
        }
        if request.times.get(Moment::Issue).is_some() {
            self.depth_issue.pass(end_ns);
            self.depth_issue.leave(end_ns);
        }
    }

    /// A piece that entered the queue never ends. When it left is not known: at the latest event it is no more there.
    pub fn piece_lost(&mut self) {
        let end_ns = self.out.end_ns;
        self.turn_to(end_ns);
        self.depth_queue.pass(end_ns);
        self.depth_queue.leave(end_ns);
    }

    /// The same of a request at the driver.
    pub fn request_lost(&mut self) {
        let end_ns = self.out.end_ns;
        self.turn_to(end_ns);
        self.depth_issue.pass(end_ns);
        self.depth_issue.leave(end_ns);
    }

    /// Counts a top-level bio.
    #[inline]
    pub fn bio(&mut self, bio: &Bio) {
        self.out.bios += 1;
        let direction = Direction::of(ClassSet::of(bio.flags, bio.bytes)) as usize;
        if let Some(ns) = bio.times.stage(Stage::Q2C) {
            self.bio_q2c[direction].record(ns);
        }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, mut other: DeviceCollector) {
        if !other.seen_any {
            return;
        }
        self.count_events();
        other.count_events();
        other.keep_area(other.slice);
        let theirs = std::mem::take(&mut other.out);
        self.note_time(theirs.start_ns);
        self.keep_area(self.slice);
        self.out.start_ns = self.out.start_ns.min(theirs.start_ns);
        self.out.extent.begun_ns = self.out.extent.begun_ns.or(theirs.extent.begun_ns);
        self.out.end_ns = self.out.end_ns.max(theirs.end_ns);
        self.cells.merge(other.cells);
        merge_each(&mut self.request_d2c, other.request_d2c);
        merge_each(&mut self.request_q2c, other.request_q2c);
        merge_each(&mut self.bio_q2c, other.bio_q2c);
        self.depth_queue.merge(other.depth_queue);
        self.depth_issue.merge(other.depth_issue);
        self.seeks_queue.merge(other.seeks_queue);
        self.seeks_issue.merge(other.seeks_issue);
        self.plugs.merge(&other.plugs);
        self.slice_end_ns = 0;
        self.out.merge(theirs);
    }

    /// The figures; stage distributions go into `table`. `ended_ns` is when recording ended, where that is known.
    pub fn finish(mut self, ended_ns: Option<u64>, table: &mut StageTable) -> Device {
        self.count_events();
        self.out.extent.ended_ns = ended_ns;
        if self.slice_end_ns > 0 {
            self.note_time(self.out.end_ns);
            self.pass_depths(self.out.end_ns);
            self.keep_area(self.slice);
        }
        if self.seen_any {
            self.pass_depths(self.out.recorded().1);
        }
        let mut device = self.out;
        self.cells.finish(device.device, table, &mut device);
        let d2c = self.request_d2c.map(Batched::finish).into_iter();
        let both = d2c.zip(self.request_q2c.map(Batched::finish));
        for (latency, (d2c, q2c)) in device.request_latency.iter_mut().zip(both) {
            *latency = RequestLatency { d2c, q2c };
        }
        device.bio_latency = self.bio_q2c.map(Batched::finish);
        device.depth_queue = self.depth_queue.finish();
        device.depth_issue = self.depth_issue.finish();
        device.seeks_queue = self.seeks_queue.finish();
        device.seeks_issue = self.seeks_issue.finish();
        device.plugs = self.plugs.finish();
        device
    }

    #[inline]
    fn note_time(&mut self, time_ns: u64) {
        self.turn_to(time_ns);
        self.out.end_ns = self.out.end_ns.max(time_ns);
    }

    /// Makes the slice of a time the present one: depths only pass to times in it.
    #[inline]
    fn turn_to(&mut self, time_ns: u64) {
        if time_ns >= self.slice_end_ns || time_ns < self.slice_start_ns {
            self.next_slice(time_ns);
        }
    }

    #[cold]
    fn next_slice(&mut self, time_ns: u64) {
        if !self.seen_any {
            self.seen_any = true;
            self.out.start_ns = time_ns;
            // From the begin of the recording to the first event there was nothing.
            self.pass_depths(self.out.extent.around(time_ns, time_ns).0);
        }
        self.out.start_ns = self.out.start_ns.min(time_ns);
        self.slice = self.out.timeline.index(time_ns, SLICES_MAX);
        let left_ns = std::mem::replace(&mut self.slice_end_ns, self.out.timeline.end_ns(self.slice));
        self.slice_start_ns = self.slice_end_ns.saturating_sub(self.out.timeline.width_ns);
        if left_ns > 0 {
            self.leave_slices(left_ns);
        }
        self.pass_depths(time_ns);
    }

    /// Puts depth × time into the slice that ended at `left_ns`, and into those between it and the present one.
    fn leave_slices(&mut self, left_ns: u64) {
        let timeline = &self.out.timeline;
        // It may be part of a wider one by now.
        let left = ((left_ns - 1 - timeline.start_ns) / timeline.width_ns) as usize;
        for slice in left..self.slice {
            self.pass_depths(self.out.timeline.end_ns(slice));
            self.keep_area(slice);
        }
        if left > self.slice {
            self.keep_area(left);
        }
    }

    fn pass_depths(&mut self, time_ns: u64) {
        self.depth_queue.pass(time_ns);
        self.depth_issue.pass(time_ns);
    }

    /// Puts the depth × time that has passed into a slice.
    fn keep_area(&mut self, slice: usize) {
        let areas_ns = [self.depth_queue.take_area_ns(), self.depth_issue.take_area_ns()];
        if let Some(slice) = self.out.timeline.slices.get_mut(slice) {
            slice.depth_queue_area_ns = slice.depth_queue_area_ns.saturating_add(areas_ns[0]);
            slice.depth_issue_area_ns = slice.depth_issue_area_ns.saturating_add(areas_ns[1]);
        }
    }

    #[inline]
    fn enter_queue(&mut self, time_ns: u64) {
        self.depth_queue.pass(time_ns);
        self.depth_queue.enter(time_ns);
    }

    #[inline]
    fn issue(&mut self, event: &Event) {
        self.seeks_issue.next(event.sector, event.bytes);
        if !self.requeued.is_empty() {
            let key = requeue_key(event);
            self.requeued.retain(|k| *k != key);
        }
        self.depth_issue.pass(event.time_ns);
        self.depth_issue.enter(event.time_ns);
    }

    /// One request can leave several of these before it is issued again; only the first takes it from the driver.
    fn requeue(&mut self, event: &Event) {
        let key = requeue_key(event);
        if self.requeued.contains(&key) || self.requeued.len() == REQUEUED_MAX {
            return;
        }
        self.requeued.push(key);
        self.depth_issue.pass(event.time_ns);
        self.depth_issue.leave(event.time_ns);
    }
}

fn merge_each(mine: &mut [Batched<Distribution>], theirs: [Batched<Distribution>; Direction::COUNT]) {
    mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| mine.merge(theirs));
}

fn requeue_key(event: &Event) -> (u64, bool) {
    (event.sector, event.flags.has(Flags::WRITE))
}

impl Fold for Slice {
    fn fold(&mut self, other: &Slice) {
        for i in 0..Direction::COUNT {
            self.pieces[i] += other.pieces[i];
            self.bytes[i] += other.bytes[i];
            self.q2c_sum_ns[i] = self.q2c_sum_ns[i].saturating_add(other.q2c_sum_ns[i]);
            Sketch::merge(&mut self.q2c[i], &other.q2c[i]);
        }
        self.depth_queue_area_ns = self.depth_queue_area_ns.saturating_add(other.depth_queue_area_ns);
        self.depth_issue_area_ns = self.depth_issue_area_ns.saturating_add(other.depth_issue_area_ns);
    }
}
