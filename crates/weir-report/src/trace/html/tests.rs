//! Pages of made-up but plausible recordings.

use super::*;
use weir_blocktrace::analysis::Sender;
use weir_blocktrace::{
    Account, Act, Collector, Event, Flags, Item, Kind, Moment, Piece, Reason, Request, Sink, Times, Unmatched,
};
use weir_core::target::DeviceNumber;

const MS: u64 = 1_000_000;

/// A deterministic scatter in 0..1.
fn noise(i: u64) -> f64 {
    let mixed = (i ^ (i >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 11) as f64 / (1u64 << 53) as f64
}

fn device(minor: u32) -> DeviceNumber {
    DeviceNumber { major: 8, minor }
}

fn event(time_ns: u64, act: Act, piece: &Piece) -> Event {
    Event {
        time_ns,
        sector: piece.sector,
        bytes: piece.bytes,
        act,
        flags: piece.flags,
        device: piece.device,
        pid: piece.pid,
        from: device(0),
        ..Event::default()
    }
}

/// The n-th I/O: reads of a database, every third a journal's write, with a stall of the device in the middle.
fn piece(n: u64, all: u64, minor: u32) -> Piece {
    let (r, s) = (noise(n * 3 + 1), noise(n * 7 + 2));
    let write = n.is_multiple_of(3);
    let queue_ns = 5_000 * MS + n * MS / 2 + (r * 200_000.0) as u64;
    let stalled = n > all / 2 && n < all / 2 + all / 20;
    let device_ns = (if stalled { 40e6 } else { 80e3 } * (0.5 - (1.0 - s).max(1e-9).ln())) as u64;
    let waits_ns = if write { 400_000 + device_ns / 4 } else { 3_000 };
    let mut times = Times::default();
    times.set(Moment::Queue, queue_ns);
    times.set(Moment::GetRequest, queue_ns + 1_500);
    times.set(Moment::Insert, queue_ns + 2_600);
    times.set(Moment::Issue, queue_ns + 2_600 + waits_ns);
    times.set(Moment::Complete, queue_ns + 2_600 + waits_ns + device_ns);
    let bytes = if write { 4096 << (n % 5) } else { 16384 };
    Piece {
        device: device(minor),
        flags: if write { Flags(Flags::WRITE.0 | Flags::SYNC.0) } else { Flags::READ },
        sector: if write { (1 << 20) | (n * 8) } else { (r * 2e9) as u64 },
        bytes,
        request_bytes: bytes,
        pid: if write { 99 } else { 100 + (n % 4) as u32 },
        cgroup: 0,
        kind: Kind::Whole,
        times,
        error: if n == 77 { -5 } else { 0 },
        requeues: 0,
        data_done_ns: None,
    }
}

/// All that the I/Os here have.
const WHOLE: [Moment; 5] =
    [Moment::Queue, Moment::GetRequest, Moment::Insert, Moment::Issue, Moment::Complete];

/// `n` I/Os on each of `devices` devices.
pub fn analysis(n: u64, devices: u32) -> Analysis {
    recorded(n, devices, &WHOLE)
}

/// The same where a recording has these moments alone.
fn recorded(n: u64, devices: u32, seen: &[Moment]) -> Analysis {
    let mut lives: Vec<(u64, Option<Event>, Piece)> = Vec::new();
    for whole in (0..devices).flat_map(|minor| (0..n).map(move |i| piece(i + u64::from(minor), n, minor))) {
        let at = |moment| whole.times.get(moment).unwrap();
        let mut times = Times::default();
        seen.iter().for_each(|moment| times.set(*moment, at(*moment)));
        let piece = Piece { times, ..whole };
        let moments =
            [(Moment::Queue, Act::Queue), (Moment::GetRequest, Act::GetRequest), (Moment::Issue, Act::Issue)];
        let moments = moments.into_iter().filter(|(moment, _)| seen.contains(moment));
        lives.extend(moments.map(|(m, act)| (at(m), Some(event(at(m), act, &piece)), piece)));
        lives.push((at(Moment::Complete), None, piece));
    }
    lives.sort_by_key(|(time_ns, ..)| *time_ns);
    let mut collector = Collector::new();
    for (pid, name) in [(99, "jbd2/sda-8"), (100, "<b>mysqld</b>"), (101, "mysqld"), (102, "mysqld")] {
        collector.item(&Item::Process { pid, process: 0, name: name.to_string() });
    }
    for (time_ns, raw, piece) in lives {
        if let Some(event) = raw {
            collector.event(&event);
            continue;
        }
        collector.event(&event(time_ns, Act::Complete, &piece));
        collector.piece(&piece);
        let Piece { device, flags, sector, bytes, pid, times, error, .. } = piece;
        if !seen.contains(&Moment::Issue) {
            continue;
        }
        collector.request(&Request {
            device,
            flags,
            sector,
            bytes,
            pid,
            cgroup: 0,
            pieces: 1,
            times,
            error,
            requeues: 0,
            completions: 1,
        });
    }
    collector.name_device(device(0), "sda");
    let account = |minor| {
        let unmatched = [(Reason::BeforeStart, 7), (Reason::NoC, 2)].into();
        (device(minor), Account { events: n * 4 + 9, matched: n * 4, ambiguous: 3, unmatched, dropped: 0 })
    };
    collector.finish(Unmatched { devices: (0..devices).map(account).collect(), dropped: 0 })
}

#[test]
fn a_page_tells_where_the_time_went_and_holds_nothing_foreign() {
    let html =
        trace(&analysis(3000, 2), "sda & \"co\"", &["sda.blktrace.1: at byte 96: cut off".to_string()]);
    for expected in [
        "of the time was spent in driver and device (D2C)",
        "sda (8:0)",
        "8:1",
        "sync write Q2C",
        "Incomplete",
        "at byte 96",
        "&lt;b&gt;mysqld&lt;/b&gt;",
        "7 of I/Os begun before the recording",
        "errno 5: 1",
        "svg class=\"wide\"",
    ] {
        assert!(html.contains(expected), "no {expected}");
    }
    for forbidden in ["<script", "http:", "https:", "<b>mysqld", "NaN", "inf", "url("] {
        assert!(
            !html.contains(forbidden),
            "{forbidden}: {:?}",
            html.find(forbidden).map(|at| &html[at - 80..at + 80])
        );
    }
}

/// Requests alone (`weir trace record --events requests`), D and C alone, and Q and C alone as on device-mapper.
#[test]
fn a_page_states_no_figure_of_what_was_not_recorded() {
    let queue = ["From queue to", "queue to completion, median", "Queued: ", "As queued, "];
    let issue = ["At the device: ", "As issued, ", "in flight at the device"];
    for (seen, expected, known, unknown) in [
        (&WHOLE[1..], "From request to completion, half of them took", &issue[..], &queue[..]),
        (&WHOLE[3..], "From driver to completion, half of them took", &issue[..], &queue[..]),
        (
            &[Moment::Queue, Moment::Complete][..],
            "From queue to completion, half of them took",
            &queue[..],
            &issue[..],
        ),
    ] {
        let html = trace(&recorded(3000, 2, seen), "some", &[]);
        for expected in known.iter().chain(&[expected]) {
            assert!(html.contains(expected), "{seen:?}: no {expected}");
        }
        let zeros = ["longest took 0 s", "longest 0 s", "<td>0 %</td>", "had nothing in flight", "NaN"];
        for forbidden in unknown.iter().chain(&zeros) {
            assert!(!html.contains(forbidden), "{seen:?}: {forbidden}");
        }
        let has_queue = seen.contains(&Moment::Queue);
        assert_eq!(html.contains("Every I/O"), has_queue, "{seen:?}");
        assert_eq!(html.contains("d8-0-share"), has_queue, "{seen:?}");
    }
}

#[test]
fn devices_that_are_left_out_are_said() {
    let analysis = Analysis { events_of_further_devices: 1234, ..analysis(6, 1) };
    assert!(trace(&analysis, "many", &[]).contains("1,234 events of further devices are in no figure"));
}

/// As with `--class flush --process`: the class of all I/Os has none of them, and their commands are others'.
#[test]
fn flushes_alone_are_ios_too() {
    let mut collector = Collector::new();
    for nth in 0..500 {
        let flush = Flags(Flags::WRITE.0 | Flags::FLUSH.0);
        let flush = Piece { flags: flush, sector: 0, bytes: 0, ..piece(nth, 500, 0) };
        let acts = [Act::Queue, Act::GetRequest, Act::Complete];
        for (moment, act) in [Moment::Queue, Moment::GetRequest, Moment::Complete].into_iter().zip(acts) {
            collector.event(&event(flush.times.get(moment).unwrap(), act, &flush));
        }
        collector.piece(&flush);
    }
    let analysis = collector.finish(Unmatched::default());
    let html = trace(&analysis, "flushes", &[]);
    for expected in ["500 I/Os in ", "From queue to completion, half of them took", " of the time was spent "]
    {
        assert!(html.contains(expected), "no {expected}");
    }
    let text = crate::trace::text(&analysis);
    assert!(text.contains(" of the latency ") && !text.contains("no I/O with both its Q"), "{text}");
}

#[test]
fn what_nobody_in_particular_sent_has_no_thread_and_no_longest_time() {
    let html = trace(&recorded(3000, 1, &WHOLE[1..]), "requests", &[]);
    let (_, senders) = html.split_once("Who sent it").unwrap();
    assert!(senders.contains("(Q not seen)</th>"), "{senders}");
    for forbidden in ["(Q not seen), thread", "(Q not seen) sent", "<td>0 s</td>"] {
        assert!(!senders.contains(forbidden), "{forbidden}");
    }
    // Beside senders that are known, with most of the data.
    let mut analysis = analysis(3000, 1);
    let unsent = analysis.threads[0].clone();
    analysis.threads.push(Sender { id: 0, name: "(Q not seen)".to_string(), members: 0, ..unsent });
    analysis.threads.last_mut().unwrap().traffic[0].bytes = 1 << 50;
    let html = trace(&analysis, "some", &[]);
    assert!(html.contains(" of the data. Buffered writes") && !html.contains("(Q not seen) sent"));
}

#[test]
fn pages_of_little_or_nothing_say_so() {
    let none = trace(&Analysis::default(), "empty", &[]);
    assert!(none.contains("No I/O came to its end") && !none.contains("NaN"));
    for n in [1, 2, 6] {
        let html = trace(&analysis(n, 1), "few", &[]);
        assert!(html.contains("Where the time went") && !html.contains("NaN"), "{n}");
    }
}
