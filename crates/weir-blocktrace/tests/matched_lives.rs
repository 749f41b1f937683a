//! Lives of I/Os as a kernel may lead them, in any interleaving, must come out of the matcher exactly as they went in:
//! with identities in whatever order the device ends them, without them first in, first out for each sector and direction.
#![allow(clippy::unwrap_used, reason = "test code throughout")]

use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;
use weir_blocktrace::{Act, Bio, Event, Flags, Kind, Limits, Matcher, Moment, Piece, Reason, Request, Sink};
use weir_core::target::DeviceNumber;

const NONE: DeviceNumber = DeviceNumber { major: 259, minor: 0 };
const SCHEDULED: DeviceNumber = DeviceNumber { major: 8, minor: 16 };
const MAPPED: DeviceNumber = DeviceNumber { major: 253, minor: 3 };
const COMMAND: Flags = Flags(Flags::READ.0 | Flags::FLUSH.0);
/// Every life on a range of its own has so many sectors for itself.
const RANGE: u64 = 1 << 20;

/// What a life does; chance chooses.
#[derive(Debug, Clone)]
struct Plan {
    what: u8,
    start_ns: u64,
    /// Of the few sectors that many share.
    shared: u64,
    sectors: u64,
    count: u64,
    flags: Flags,
    scheduled: bool,
    gaps_ns: Vec<u64>,
}

fn plan() -> impl Strategy<Value = Plan> {
    let flags = prop::sample::select(vec![
        Flags::READ,
        Flags::WRITE,
        Flags(Flags::WRITE.0 | Flags::SYNC.0),
        Flags(Flags::WRITE.0 | Flags::DISCARD.0),
        Flags(Flags::READ.0 | Flags::METADATA.0),
    ]);
    let gaps = prop::collection::vec(1_u64..3000, 8);
    (0_u8..10, 0_u64..100_000, 0_u64..3, 1_u64..64, 2_u64..6, flags, any::<bool>(), gaps).prop_map(
        |(what, start_ns, shared, sectors, count, flags, scheduled, gaps_ns)| Plan {
            what,
            start_ns,
            shared,
            sectors,
            count,
            flags,
            scheduled,
            gaps_ns,
        },
    )
}

/// A piece, as far as it is compared: device, sector, bytes, kind; Q, G, I, M, D, C; requeues.
type Seen = (DeviceNumber, u64, u32, u8, [Option<u64>; 6], u16);

#[derive(Default)]
struct Lives {
    pieces: Vec<Seen>,
    /// Device, sector, bytes; Q, C; pieces; remaps.
    bios: Vec<(DeviceNumber, u64, u32, u64, u64, u32, u32)>,
    requests: Vec<(DeviceNumber, u64, u32, u32, u16, u16)>,
}

impl Lives {
    fn sorted(mut self) -> Lives {
        self.pieces.sort_unstable();
        self.bios.sort_unstable();
        self.requests.sort_unstable();
        self
    }
}

impl Sink for Lives {
    fn piece(&mut self, piece: &Piece) {
        use Moment::{Complete, GetRequest, Insert, Issue, Merge, Queue};
        let times = [Queue, GetRequest, Insert, Merge, Issue, Complete].map(|moment| piece.times.get(moment));
        self.pieces.push((piece.device, piece.sector, piece.bytes, piece.kind as u8, times, piece.requeues));
    }

    fn request(&mut self, request: &Request) {
        let Request { device, sector, bytes, pieces, requeues, completions, .. } = *request;
        self.requests.push((device, sector, bytes, pieces, requeues, completions));
    }

    fn bio(&mut self, bio: &Bio) {
        let (queued_ns, done_ns) =
            (bio.times.get(Moment::Queue).unwrap(), bio.times.get(Moment::Complete).unwrap());
        self.bios.push((bio.device, bio.sector, bio.bytes, queued_ns, done_ns, bio.pieces, bio.remaps));
    }

    fn event(&mut self, _: &Event) {}
}

/// Writes lives down as events, and what must become of them.
struct Kernel {
    identified: bool,
    events: Vec<Event>,
    expected: Lives,
    /// Without identities: the last time of each act at a place, after which the next one there must be.
    last_ns: HashMap<(DeviceNumber, u32, u64, Act), u64>,
    identity: u64,
}

/// One I/O in flight.
struct Life {
    device: DeviceNumber,
    flags: Flags,
    pid: u32,
    now_ns: u64,
    gaps_ns: Vec<u64>,
    nth: usize,
}

impl Kernel {
    fn new(identified: bool) -> Kernel {
        Kernel {
            identified,
            events: Vec::new(),
            expected: Lives::default(),
            last_ns: HashMap::new(),
            identity: 0x1000,
        }
    }

    fn identity(&mut self) -> u64 {
        self.identity += 64;
        if self.identified { self.identity } else { 0 }
    }

    /// The next event of a life. Its time is after the life's last, and after the last of its kind there.
    fn event(&mut self, life: &mut Life, act: Act, at: (u64, u64), identity: u64, other: u64) -> u64 {
        let (sector, sectors) = at;
        life.nth += 1;
        life.now_ns += life.gaps_ns[life.nth % life.gaps_ns.len()];
        let class = life.flags.0 & (Flags::WRITE.0 | Flags::DISCARD.0 | Flags::FLUSH.0);
        let last_ns = self.last_ns.entry((life.device, class, sector, act)).or_default();
        if !self.identified && life.now_ns <= *last_ns {
            life.now_ns = *last_ns + 1;
        }
        *last_ns = life.now_ns;
        self.events.push(Event {
            time_ns: life.now_ns,
            sector,
            bytes: (sectors * 512) as u32,
            act,
            flags: life.flags,
            device: life.device,
            pid: life.pid,
            cpu: life.pid % 4,
            identity,
            other,
            ..Event::default()
        });
        life.now_ns
    }

    fn last(&mut self) -> &mut Event {
        self.events.last_mut().unwrap()
    }

    fn expect_piece(&mut self, life: &Life, at: (u64, u64), kind: Kind, times: [u64; 6], requeues: u16) {
        let times = times.map(|time_ns| (time_ns > 0).then_some(time_ns));
        self.expected.pieces.push((life.device, at.0, (at.1 * 512) as u32, kind as u8, times, requeues));
    }

    fn expect_request(&mut self, life: &Life, at: (u64, u64), pieces: u32, requeues: u16, completions: u16) {
        self.expected.requests.push((life.device, at.0, (at.1 * 512) as u32, pieces, requeues, completions));
    }

    fn expect_bio(&mut self, life: &Life, at: (u64, u64), ends: (u64, u64), pieces: u32, remaps: u32) {
        self.expected.bios.push((life.device, at.0, (at.1 * 512) as u32, ends.0, ends.1, pieces, remaps));
    }

    /// From I, where there is a scheduler, to D: both times.
    fn dispatch(&mut self, life: &mut Life, at: (u64, u64), request: u64, bio: u64) -> (u64, u64) {
        let scheduled = life.device == SCHEDULED;
        let inserted_ns = if scheduled { self.event(life, Act::Insert, at, request, bio) } else { 0 };
        (inserted_ns, self.event(life, Act::Issue, at, request, bio))
    }

    fn lead(&mut self, nth: usize, plan: &Plan) {
        let life = Life {
            device: if plan.scheduled { SCHEDULED } else { NONE },
            flags: plan.flags,
            pid: 1000 + nth as u32,
            now_ns: 1_000_000 + plan.start_ns,
            gaps_ns: plan.gaps_ns.clone(),
            nth: 0,
        };
        let own = (1 + nth as u64) * RANGE;
        let shared = (plan.shared * 64, plan.sectors);
        match plan.what {
            0..3 => self.simple(life, shared),
            3 => self.merged(life, own, plan),
            4 => self.split(life, own, plan),
            5 => self.requeued(life, (own, plan.sectors), plan.count),
            6 => self.in_portions(life, own, plan),
            7 => self.flush(life),
            8 => self.flush_sequence(life, (own, plan.sectors)),
            _ => self.mapped(life, (own, plan.sectors)),
        }
    }

    fn simple(&mut self, mut life: Life, at: (u64, u64)) {
        let (bio, request) = (self.identity(), self.identity());
        let queued = self.event(&mut life, Act::Queue, at, bio, 0);
        let got = self.event(&mut life, Act::GetRequest, at, bio, 0);
        let (inserted, issued) = self.dispatch(&mut life, at, request, bio);
        let done = self.event(&mut life, Act::Complete, at, request, bio);
        self.expect_piece(&life, at, Kind::Whole, [queued, got, inserted, 0, issued, done], 0);
        self.expect_request(&life, at, 1, 0, 1);
        self.expect_bio(&life, at, (queued, done), 1, 0);
    }

    /// One request grows at both ends; the second half of what grows behind is a request of its own first.
    fn merged(&mut self, mut life: Life, own: u64, plan: &Plan) {
        let (bio, request, sectors) = (self.identity(), self.identity(), plan.sectors);
        let middle = own + RANGE / 2;
        let mut joined = Vec::new();
        let queued = self.event(&mut life, Act::Queue, (middle, sectors), bio, 0);
        let got = self.event(&mut life, Act::GetRequest, (middle, sectors), bio, 0);
        let (mut start, mut end, mut first) = (middle, middle + sectors, bio);
        for nth in 0..plan.count {
            let front = nth % 3 == 2;
            let at = (if front { start - sectors } else { end }, sectors);
            let other = self.identity();
            let joined_queued = self.event(&mut life, Act::Queue, at, other, 0);
            let act = if front { Act::FrontMerge } else { Act::BackMerge };
            let merged = self.event(&mut life, act, at, other, 0);
            joined.push((at, joined_queued, 0, merged));
            (start, first) = if front { (at.0, other) } else { (start, first) };
            end = end.max(at.0 + sectors);
        }
        let (other, taken) = (self.identity(), self.identity());
        let at = (end, sectors);
        let joined_queued = self.event(&mut life, Act::Queue, at, other, 0);
        let joined_got = self.event(&mut life, Act::GetRequest, at, other, taken);
        self.event(&mut life, Act::BackMerge, at, taken, 0);
        joined.push((at, joined_queued, joined_got, 0));
        let whole = (start, end + sectors - start);
        let (inserted, issued) = self.dispatch(&mut life, whole, request, first);
        let done = self.event(&mut life, Act::Complete, whole, request, first);
        let at = (middle, sectors);
        self.expect_piece(&life, at, Kind::Whole, [queued, got, inserted, 0, issued, done], 0);
        self.expect_bio(&life, at, (queued, done), 1, 0);
        for (at, queued, got, merged) in &joined {
            self.expect_piece(&life, *at, Kind::Merged, [*queued, *got, inserted, *merged, issued, done], 0);
            self.expect_bio(&life, *at, (*queued, done), 1, 0);
        }
        self.expect_request(&life, whole, 1 + joined.len() as u32, 0, 1);
    }

    fn split(&mut self, mut life: Life, own: u64, plan: &Plan) {
        let (bio, sectors) = (self.identity(), plan.sectors);
        let whole = (own, sectors * plan.count);
        let queued = self.event(&mut life, Act::Queue, whole, bio, 0);
        let mut issued = Vec::new();
        for nth in 0..plan.count {
            let at = (own + nth * sectors, sectors);
            let mut piece = bio;
            if nth + 1 < plan.count {
                piece = self.identity();
                self.event(&mut life, Act::Split, at, piece, bio);
                self.last().detail = at.0 + sectors;
            }
            let request = self.identity();
            let got = self.event(&mut life, Act::GetRequest, at, piece, 0);
            let (inserted, issued_ns) = self.dispatch(&mut life, at, request, piece);
            issued.push((at, request, piece, [queued, got, inserted, 0, issued_ns]));
        }
        let mut done = 0;
        // The last one first: pieces end in any order.
        for (at, request, piece, [queued, got, inserted, merged, issued]) in issued.into_iter().rev() {
            done = self.event(&mut life, Act::Complete, at, request, piece);
            self.expect_piece(&life, at, Kind::Split, [queued, got, inserted, merged, issued, done], 0);
            self.expect_request(&life, at, 1, 0, 1);
        }
        self.expect_bio(&life, whole, (queued, done), plan.count as u32, 0);
    }

    fn requeued(&mut self, mut life: Life, at: (u64, u64), times: u64) {
        let (bio, request) = (self.identity(), self.identity());
        let queued = self.event(&mut life, Act::Queue, at, bio, 0);
        let got = self.event(&mut life, Act::GetRequest, at, bio, 0);
        let (inserted, mut issued) = self.dispatch(&mut life, at, request, bio);
        for nth in 0..times {
            self.event(&mut life, Act::Requeue, at, request, bio);
            if nth % 2 == 0 {
                self.event(&mut life, Act::Requeue, at, request, bio);
            }
            issued = self.event(&mut life, Act::Issue, at, request, bio);
        }
        let done = self.event(&mut life, Act::Complete, at, request, bio);
        self.expect_piece(&life, at, Kind::Whole, [queued, got, inserted, 0, issued, done], times as u16);
        self.expect_request(&life, at, 1, times as u16, 1);
        self.expect_bio(&life, at, (queued, done), 1, 0);
    }

    fn in_portions(&mut self, mut life: Life, own: u64, plan: &Plan) {
        let (bio, request) = (self.identity(), self.identity());
        let at = (own, plan.sectors * plan.count);
        let queued = self.event(&mut life, Act::Queue, at, bio, 0);
        let got = self.event(&mut life, Act::GetRequest, at, bio, 0);
        let (inserted, issued) = self.dispatch(&mut life, at, request, bio);
        let mut done = 0;
        for nth in 0..plan.count {
            let portion = (own + nth * plan.sectors, plan.sectors);
            done = self.event(&mut life, Act::Complete, portion, request, bio);
        }
        self.expect_piece(&life, at, Kind::Whole, [queued, got, inserted, 0, issued, done], 0);
        self.expect_request(&life, at, 1, 0, plan.count as u16);
        self.expect_bio(&life, at, (queued, done), 1, 0);
    }

    /// The command to the device.
    fn command(&mut self, life: &mut Life) {
        let request = self.identity();
        let flags = std::mem::replace(&mut life.flags, COMMAND);
        let issued = self.event(life, Act::Issue, (0, 0), request, 0);
        let done = self.event(life, Act::Complete, (0, 0), request, 0);
        self.expect_piece(life, (0, 0), Kind::Whole, [0, 0, 0, 0, issued, done], 0);
        self.expect_request(life, (0, 0), 1, 0, 1);
        life.flags = flags;
    }

    fn flush(&mut self, mut life: Life) {
        let (bio, request) = (self.identity(), self.identity());
        life.flags = Flags(Flags::WRITE.0 | Flags::SYNC.0 | Flags::FLUSH.0);
        let queued = self.event(&mut life, Act::Queue, (0, 0), bio, 0);
        let got = self.event(&mut life, Act::GetRequest, (0, 0), bio, request);
        self.command(&mut life);
        life.flags = Flags(Flags::WRITE.0 | Flags::SYNC.0);
        let done = self.event(&mut life, Act::Complete, (0, 0), request, 0);
        self.expect_piece(&life, (0, 0), Kind::Whole, [queued, got, 0, 0, 0, done], 0);
        self.expect_bio(&life, (0, 0), (queued, done), 1, 0);
    }

    /// A journal's commit on a device that cannot write through.
    fn flush_sequence(&mut self, mut life: Life, at: (u64, u64)) {
        let (bio, request) = (self.identity(), self.identity());
        let written = Flags(Flags::WRITE.0 | Flags::SYNC.0);
        life.flags = Flags(written.0 | Flags::FLUSH.0 | Flags::FUA.0);
        let queued = self.event(&mut life, Act::Queue, at, bio, 0);
        let got = self.event(&mut life, Act::GetRequest, at, bio, 0);
        self.command(&mut life);
        life.flags = written;
        let issued = self.event(&mut life, Act::Issue, at, request, bio);
        self.event(&mut life, Act::Complete, at, request, bio);
        self.command(&mut life);
        let done = self.event(&mut life, Act::Complete, (at.0, 0), request, bio);
        self.expect_piece(&life, at, Kind::Whole, [queued, got, 0, 0, issued, done], 0);
        self.expect_request(&life, at, 1, 0, 1);
        self.expect_bio(&life, at, (queued, done), 1, 0);
    }

    /// Loses events: every other one is accounted for, and no bio is found that was not sent.
    fn check_losses(mut self, mut is_lost: impl FnMut(&Event) -> bool) -> Lives {
        self.events.sort_by_key(|event| event.time_ns);
        let (lost, kept): (Vec<Event>, Vec<Event>) = self.events.iter().partition(|event| is_lost(event));
        let (mut matcher, mut found) = (Matcher::default(), Lives::default());
        kept.iter().for_each(|event| matcher.event(event, &mut found));
        let unmatched = matcher.finish(&mut found);
        for (device, account) in &unmatched.devices {
            let events = kept.iter().filter(|event| event.device == *device).count() as u64;
            let counted = account.matched + account.unmatched.values().sum::<u64>();
            assert_eq!((account.events, counted), (events, events), "{device}: {account:?}");
        }
        // A bio begins with its Q, or with the remap that brought it where its Q is lost.
        let begins = kept.iter().filter(|event| matches!(event.act, Act::Queue | Act::Remap));
        let mut begun: Vec<_> =
            begins.map(|event| (event.device, event.sector, event.bytes, event.time_ns)).collect();
        for &(device, sector, bytes, queued_ns, done_ns, ..) in &found.bios {
            let bio = begun.iter().position(|&bio| bio == (device, sector, bytes, queued_ns));
            begun.swap_remove(bio.expect("a bio begins with an event of its own"));
            let mut ends = kept.iter().filter(|event| event.act == Act::Complete);
            assert!(ends.any(|event| event.time_ns == done_ns), "no C at {done_ns} ns");
        }
        // Without its remap, what a mapped bio became below is one more.
        let remaps_lost = lost.iter().filter(|event| event.act == Act::Remap).count();
        assert!(found.bios.len() <= self.expected.bios.len() + remaps_lost);
        found
    }

    /// All lives come out, and nothing else.
    fn check(mut self) {
        self.events.sort_by_key(|event| event.time_ns);
        let (mut matcher, mut found) = (Matcher::default(), Lives::default());
        self.events.iter().for_each(|event| matcher.event(event, &mut found));
        let unmatched = matcher.finish(&mut found);
        let (found, expected) = (found.sorted(), self.expected.sorted());
        assert_eq!(found.pieces, expected.pieces);
        assert_eq!(found.bios, expected.bios);
        assert_eq!(found.requests, expected.requests);
        let events: u64 = unmatched.devices.values().map(|account| account.events).sum();
        assert_eq!(events, self.events.len() as u64);
        for (device, account) in &unmatched.devices {
            assert_eq!(account.events, account.matched, "{device}: {account:?}");
            assert!(!self.identified || account.ambiguous == 0, "{device}: {account:?}");
        }
    }

    /// A bio of a mapped device, served by the device below at another place.
    fn mapped(&mut self, mut life: Life, at: (u64, u64)) {
        let (above, bio, request) = (self.identity(), self.identity(), self.identity());
        let (device, below) = (life.device, (at.0 + RANGE / 2, at.1));
        life.device = MAPPED;
        let entered = self.event(&mut life, Act::Queue, at, above, 0);
        life.device = device;
        self.event(&mut life, Act::Remap, below, bio, 0);
        (self.last().from, self.last().detail) = (MAPPED, at.0);
        let queued = self.event(&mut life, Act::Queue, below, bio, 0);
        let got = self.event(&mut life, Act::GetRequest, below, bio, 0);
        let (inserted, issued) = self.dispatch(&mut life, below, request, bio);
        let done = self.event(&mut life, Act::Complete, below, request, bio);
        self.expect_piece(&life, below, Kind::Whole, [queued, got, inserted, 0, issued, done], 0);
        self.expect_request(&life, below, 1, 0, 1);
        life.device = MAPPED;
        let left = self.event(&mut life, Act::Complete, at, above, 0);
        self.expect_piece(&life, at, Kind::Whole, [entered, 0, 0, 0, 0, left], 0);
        self.expect_bio(&life, at, (entered, left), 1, 1);
    }
}

/// A bio that goes on below itself, as md's arrays and NVMe with several paths have it: it has one identity, and no end above.
#[test]
fn a_bio_that_goes_on_below_itself_is_one_and_whole() {
    let mut kernel = Kernel::new(true);
    for nth in 0..100 {
        let (at, below) = ((8 * nth, 8), (8 * nth + RANGE / 2, 8));
        let (bio, request) = (kernel.identity(), kernel.identity());
        let gaps_ns = vec![1000];
        let mut life =
            Life { device: MAPPED, flags: Flags::WRITE, pid: 1, now_ns: 1 + nth * 10, gaps_ns, nth: 0 };
        let entered = kernel.event(&mut life, Act::Queue, at, bio, 0);
        life.device = NONE;
        let led = kernel.event(&mut life, Act::Remap, below, bio, 0);
        (kernel.last().from, kernel.last().detail) = (MAPPED, at.0);
        let got = kernel.event(&mut life, Act::GetRequest, below, bio, 0);
        let (inserted, issued) = kernel.dispatch(&mut life, below, request, bio);
        let done = kernel.event(&mut life, Act::Complete, below, request, bio);
        kernel.expect_piece(&life, below, Kind::Whole, [led, got, inserted, 0, issued, done], 0);
        kernel.expect_request(&life, below, 1, 0, 1);
        life.device = MAPPED;
        kernel.expect_piece(&life, at, Kind::Whole, [entered, 0, 0, 0, 0, done], 0);
        kernel.expect_bio(&life, at, (entered, done), 1, 1);
    }
    kernel.check();
}

fn check(plans: &[Plan], identified: bool) {
    let mut kernel = Kernel::new(identified);
    plans.iter().enumerate().for_each(|(nth, plan)| kernel.lead(nth, plan));
    kernel.check();
}

/// A mapped bio's way, but for the remap that says that what came below was the same bio: nothing tells it from one that
/// was sent to the lower device then, so it is one more. Its Q and C are true.
#[test]
fn a_bio_whose_remap_is_lost_counts_on_both_devices() {
    let mut kernel = Kernel::new(false);
    let life = Life { device: NONE, flags: Flags::READ, pid: 1, now_ns: 1, gaps_ns: vec![1000], nth: 0 };
    kernel.mapped(life, (0, 8));
    let found = kernel.check_losses(|event| event.act == Act::Remap);
    let of = |device| found.bios.iter().filter(|bio| bio.0 == device).count();
    assert_eq!((of(MAPPED), of(NONE)), (1, 1));
}

/// A merge into a request that is with the driver already is damage; it must not be in two places from then on.
#[test]
fn a_merge_into_an_issued_request_is_counted_as_one_without_a_request() {
    let mut kernel = Kernel::new(true);
    let mut life =
        Life { device: NONE, flags: Flags::WRITE, pid: 1, now_ns: 1, gaps_ns: vec![2_000_000_000], nth: 0 };
    kernel.event(&mut life, Act::Queue, (0, 8), 64, 0);
    kernel.event(&mut life, Act::GetRequest, (0, 8), 64, 128);
    kernel.event(&mut life, Act::Issue, (0, 8), 128, 64);
    kernel.event(&mut life, Act::Queue, (8, 8), 192, 0);
    kernel.event(&mut life, Act::BackMerge, (8, 8), 192, 128);
    kernel.event(&mut life, Act::Complete, (0, 8), 128, 64);
    let (mut matcher, mut found) = (Matcher::default(), Lives::default());
    kernel.events.iter().for_each(|event| matcher.event(event, &mut found));
    let account = matcher.finish(&mut found).devices.remove(&NONE).unwrap();
    assert_eq!((account.events, account.matched, account.unmatched), (6, 4, [(Reason::NoRequest, 2)].into()));
    assert_eq!(found.pieces.len(), 1);
}

/// Requests alone were recorded: none has a Q, and none lost it. Beside an I/O with a Q they did.
#[test]
fn no_q_is_missing_where_none_was_recorded() {
    for has_queue in [false, true] {
        let (mut matcher, mut found) = (Matcher::default(), Lives::default());
        let mut event = |time_ns, act, bytes| {
            let (flags, device) = (Flags::WRITE, NONE);
            let event = Event { time_ns, act, bytes, flags, device, ..Event::default() };
            matcher.event(&event, &mut found);
        };
        let request = [Act::GetRequest, Act::Issue, Act::Complete];
        if has_queue {
            event(1, Act::Queue, 4096);
            request.iter().for_each(|act| event(1, *act, 4096));
        }
        for nth in 1..=4 {
            request.iter().for_each(|act| event(nth * 400_000_000, *act, 4096));
            // A flush, of which its command alone is issued.
            event(nth * 400_000_000, Act::Complete, 0);
        }
        let account = matcher.finish(&mut found).devices.remove(&NONE).unwrap();
        let expected = match has_queue {
            true => (4, BTreeMap::from([(Reason::BeforeStart, 8), (Reason::NoQ, 8)])),
            false => (16, BTreeMap::new()),
        };
        assert_eq!((account.matched, account.unmatched), expected, "{has_queue}");
    }
}

/// What is silent for too long is given up, and nothing else, however much is in flight and whatever came first.
#[test]
fn what_is_silent_for_too_long_goes() {
    const SILENT_NS: u64 = 1_000_000;
    let (mut matcher, mut found) =
        (Matcher::new(Limits { silent_ns: SILENT_NS, ..Limits::default() }), Lives::default());
    let mut event = |time_ns, act, sector| {
        let event =
            Event { time_ns, act, sector, bytes: 4096, flags: Flags::READ, device: NONE, ..Event::default() };
        matcher.event(&event, &mut found);
        matcher.in_flight()
    };
    let begin = |event: &mut dyn FnMut(u64, Act, u64) -> usize, time_ns, sector| {
        [Act::Queue, Act::GetRequest, Act::Issue].map(|act| event(time_ns, act, sector))[2]
    };
    // The oldest of all is given back and issued again all the time.
    for nth in 0..500 {
        begin(&mut event, nth, nth * 8);
    }
    let mut in_flight = 0;
    for nth in 0..500 {
        let time_ns = (nth + 1) * SILENT_NS / 100;
        event(time_ns, Act::Requeue, 0);
        event(time_ns, Act::Issue, 0);
        in_flight = begin(&mut event, time_ns, 1 << 20);
        event(time_ns, Act::Complete, 1 << 20);
    }
    // Two bios with a part and a request each.
    assert_eq!(in_flight, 4);
    assert_eq!(event(6 * SILENT_NS, Act::Complete, 0), 0);
    let account = matcher.finish(&mut found).devices.remove(&NONE).unwrap();
    assert_eq!(account.unmatched, [(Reason::NoC, 499 * 3)].into());
    assert_eq!(found.requests.len(), 501);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn lives_come_out_as_they_went_in(plans in prop::collection::vec(plan(), 1..80)) {
        check(&plans, false);
    }

    #[test]
    fn lives_with_identities_come_out_in_whatever_order_they_end(plans in prop::collection::vec(plan(), 1..80)) {
        check(&plans, true);
    }

    /// Events lost at random: nothing is invented, everything is accounted for.
    #[test]
    fn what_is_lost_is_counted(plans in prop::collection::vec(plan(), 1..60), lost in prop::collection::vec(prop::bool::weighted(0.2), 2000)) {
        let mut kernel = Kernel::new(false);
        plans.iter().enumerate().for_each(|(nth, plan)| kernel.lead(nth, plan));
        let mut lost = lost.into_iter().cycle();
        kernel.check_losses(|_| lost.next().unwrap());
    }
}

/// What a made-up recording may hold: bios that go from a device to itself.
struct MadeUp {
    matcher: Matcher,
    found: Lives,
    now_ns: u64,
    pid: u32,
}

const ABOVE: DeviceNumber = DeviceNumber { major: 7, minor: 0 };
const BELOW: DeviceNumber = DeviceNumber { major: 7, minor: 1 };

impl MadeUp {
    /// Where so many bios, one after another, have gone on from a device to the one below, and were done there.
    fn new(bios: u64) -> MadeUp {
        let mut made_up =
            MadeUp { matcher: Matcher::new(Limits::default()), found: Lives::default(), now_ns: 0, pid: 1 };
        for nth in 0..bios {
            made_up.event(Act::Queue, ABOVE, 100_000 + 100 * nth, 8, 0);
            made_up.done_below(200_000 + 100 * nth, 8, 100_000 + 100 * nth);
        }
        made_up
    }

    fn event(&mut self, act: Act, device: DeviceNumber, sector: u64, sectors: u32, detail: u64) {
        self.now_ns += 1;
        let (time_ns, bytes, from) = (self.now_ns, sectors * 512, ABOVE);
        let event = Event {
            time_ns,
            act,
            device,
            sector,
            bytes,
            from,
            detail,
            flags: Flags::READ,
            pid: self.pid,
            ..Event::default()
        };
        self.matcher.event(&event, &mut self.found);
    }

    fn done_below(&mut self, sector: u64, sectors: u32, from: u64) {
        self.event(Act::Remap, BELOW, sector, sectors, from);
        for act in [Act::Queue, Act::GetRequest, Act::Issue, Act::Complete] {
            self.event(act, BELOW, sector, sectors, 0);
        }
    }
}

#[test]
fn a_bio_below_very_many_others_ends() {
    let mut made_up = MadeUp::new(80);
    made_up.event(Act::Queue, ABOVE, 1 << 30, 8, 0);
    for nth in 0..200_000 {
        made_up.event(Act::Remap, ABOVE, (1 << 30) + 8 * (nth + 1), 8, (1 << 30) + 8 * nth);
        made_up.event(Act::Queue, ABOVE, (1 << 30) + 8 * (nth + 1), 8, 0);
    }
    made_up.done_below(3000, 8, (1 << 30) + 8 * 200_000);
    made_up.matcher.finish(&mut made_up.found);
}

/// What is taken over is walked: requests that grow without end would take each other over for hours.
#[test]
fn a_request_has_no_more_bios_than_the_kernel_counts() {
    const MOST: u32 = 65_535;
    let grow = |made_up: &mut MadeUp, first: u64, bios: u64| {
        made_up.event(Act::Queue, ABOVE, first, 1, 0);
        made_up.event(Act::GetRequest, ABOVE, first, 1, 0);
        for nth in 1..bios {
            made_up.event(Act::Queue, ABOVE, first + nth, 1, 0);
            made_up.event(Act::BackMerge, ABOVE, first + nth, 1, 0);
        }
    };
    let pieces_of = |made_up: &mut MadeUp, first: u64, sectors: u32| {
        made_up.event(Act::Issue, ABOVE, first, sectors, 0);
        made_up.event(Act::Complete, ABOVE, first, sectors, 0);
        made_up.found.requests.last().map(|request| request.3)
    };
    let mut by_bios = MadeUp::new(0);
    grow(&mut by_bios, 1 << 20, u64::from(MOST) + 100);
    assert_eq!(pieces_of(&mut by_bios, 1 << 20, MOST), Some(MOST));
    for (bios, expected) in [(30_000, 60_000), (40_000, 40_000)] {
        let mut by_requests = MadeUp::new(0);
        grow(&mut by_requests, (1 << 20) + bios, bios);
        grow(&mut by_requests, 1 << 20, bios);
        by_requests.event(Act::BackMerge, ABOVE, (1 << 20) + bios, bios as u32, 0);
        assert_eq!(pieces_of(&mut by_requests, 1 << 20, expected), Some(expected), "{bios}");
    }
}

/// A bio that is done below ends without an event of its own: not in the middle of an act that has found it.
#[test]
fn a_bio_that_serves_one_of_its_own_device_ends_once() {
    // With one more it is known that the device ends none itself.
    let mut made_up = MadeUp::new(62);
    made_up.event(Act::Queue, ABOVE, 484, 16, 0);
    made_up.event(Act::GetRequest, ABOVE, 484, 16, 0);
    made_up.event(Act::Queue, ABOVE, 100, 16, 0);
    made_up.event(Act::Remap, ABOVE, 100, 16, 100);
    made_up.event(Act::Queue, ABOVE, 100, 16, 0);
    made_up.done_below(100, 16, 100);
    // Another thread's: what it cuts off goes behind what was remapped.
    made_up.pid = 99;
    made_up.event(Act::Split, ABOVE, 100, 16, 108);
    made_up.pid = 1;
    for (act, sector, sectors) in [
        (Act::GetRequest, 100, 8),
        (Act::Queue, 700, 16),
        (Act::Queue, 500, 0),
        (Act::Issue, 100, 8),
        (Act::Complete, 100, 8),
        (Act::Queue, 600, 0),
        (Act::BackMerge, 500, 0),
        (Act::BackMerge, 500, 0),
        (Act::Issue, 484, 16),
        (Act::Complete, 484, 16),
    ] {
        made_up.event(act, ABOVE, sector, sectors, 0);
    }
    made_up.matcher.finish(&mut made_up.found);
    let is_front = |piece: &&Seen| (piece.0, piece.1, piece.2) == (ABOVE, 100, 4096);
    assert_eq!(made_up.found.pieces.iter().filter(is_front).count(), 1);
}

fn made_up() -> impl Strategy<Value = Event> {
    let act = prop::sample::select(vec![
        Act::Queue,
        Act::Queue,
        Act::GetRequest,
        Act::Insert,
        Act::Issue,
        Act::Complete,
        Act::BackMerge,
        Act::FrontMerge,
        Act::RequestMerge,
        Act::Split,
        Act::Remap,
        Act::Remap,
        Act::Requeue,
    ]);
    let device = || prop::sample::select(vec![ABOVE, BELOW]);
    let place = || prop::sample::select(vec![0_u64, 8, 16, 24]);
    let identity = || prop::sample::select(vec![0_u64, 0, 0, 1, 2]);
    let bytes = prop::sample::select(vec![0_u32, 4096, 8192]);
    (act, device(), device(), place(), place(), bytes, 1_u32..3, identity(), identity()).prop_map(
        |(act, device, from, sector, detail, bytes, pid, identity, other)| {
            let flags = Flags::READ;
            let time_ns = 0;
            Event {
                time_ns,
                act,
                device,
                from,
                sector,
                detail,
                bytes,
                flags,
                pid,
                identity,
                other,
                ..Event::default()
            }
        },
    )
}

proptest! {
    /// Events that no kernel writes: two devices that serve each other, and themselves.
    #[test]
    fn lives_that_are_made_up_end(before in 56_u64..64, tail in prop::collection::vec(made_up(), 0..200)) {
        let mut made_up = MadeUp::new(before);
        for event in tail {
            made_up.now_ns += 1;
            made_up.matcher.event(&Event { time_ns: made_up.now_ns, ..event }, &mut made_up.found);
        }
        made_up.matcher.finish(&mut made_up.found);
    }
}
