//! Any events: the matcher accounts for every one of them, gives out no more lives than there were events, and holds no
//! more than its limit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_core::target::DeviceNumber;
use weir_blocktrace::{Act, Bio, Event, Flags, Limits, Matcher, Piece, Request, Sink};

const EVENT_BYTES: usize = 12;

#[derive(Default)]
struct Count {
    events: u64,
    pieces: u64,
    in_requests: u64,
    bios: u64,
}

impl Sink for Count {
    fn piece(&mut self, _: &Piece) {
        self.pieces += 1;
    }

    fn request(&mut self, request: &Request) {
        self.in_requests += u64::from(request.pieces);
    }

    fn bio(&mut self, _: &Bio) {
        self.bios += 1;
    }

    fn event(&mut self, _: &Event) {
        self.events += 1;
    }
}

/// Few values of everything, so that events meet; now and then an extreme one.
fn event(bytes: &[u8; EVENT_BYTES], time_ns: u64) -> Event {
    let wide = |low: u8, high: u8| if high == u8::MAX { u64::MAX - u64::from(low) } else { u64::from(low % 16) };
    let device = |byte: u8| DeviceNumber { major: 8, minor: u32::from(byte % 4) };
    Event {
        time_ns,
        sector: wide(bytes[1], bytes[2]),
        bytes: if bytes[3] == u8::MAX { u32::MAX } else { u32::from(bytes[3] % 8) * 512 },
        act: Act::ALL[usize::from(bytes[0]) % Act::ALL.len()],
        flags: Flags(u32::from(bytes[4]) | u32::from(bytes[5]) << 8),
        device: device(bytes[6]),
        pid: u32::from(bytes[6] >> 6),
        cpu: u32::from(bytes[6] >> 4 & 3),
        error: -i32::from(bytes[7] & 1),
        cgroup: 0,
        detail: wide(bytes[8], bytes[9]),
        from: device(bytes[6] >> 2),
        identity: u64::from(bytes[10] % 8),
        other: u64::from(bytes[11] % 8),
        sequence: u32::from(bytes[7]),
    }
}

fuzz_target!(|input: (u8, &[u8])| {
    let (flavour, bytes) = input;
    let limits = Limits { silent_ns: 1 << (flavour % 40), in_flight: 1 + usize::from(flavour / 4) };
    let (mut matcher, mut count) = (Matcher::new(limits), Count::default());
    let mut time_ns = 0_u64;
    let mut events = 0_u64;
    for chunk in bytes.as_chunks::<EVENT_BYTES>().0 {
        time_ns = time_ns.saturating_add(1 << (chunk[7] % 40));
        let mut event = event(chunk, time_ns);
        if flavour & 1 == 0 {
            (event.identity, event.other) = (0, 0);
        }
        matcher.event(&event, &mut count);
        events += 1;
        assert!(matcher.in_flight() <= limits.in_flight + 4, "{} in flight", matcher.in_flight());
    }
    let unmatched = matcher.finish(&mut count);
    let counted: u64 = unmatched.devices.values().map(|a| a.matched + a.unmatched.values().sum::<u64>()).sum();
    assert_eq!((counted, count.events), (events, events), "{unmatched:?}");
    // A split makes one piece more, and so may any G whose split was not seen.
    assert!(count.pieces <= 2 * events && count.in_requests <= 2 * events && count.bios <= events);
});
