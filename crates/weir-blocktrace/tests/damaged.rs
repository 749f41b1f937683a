//! Recordings that somebody damaged, or made up: reading them ends, never in a panic, and holds no more than there are bytes
//! for. Sums that would go over what a number holds are panics here, where tests are compiled with checks of them.
#![allow(clippy::disallowed_methods, reason = "this test reads fixtures; the library reads nothing")]
#![allow(
    clippy::unwrap_used,
    reason = "test code throughout; clippy knows that only of functions under #[test]"
)]

use std::io::Read;
use std::path::Path;
use std::sync::LazyLock;

use proptest::prelude::*;
use weir_blocktrace::decode::{Batch, Decoder, Fault, HEAD_BYTES, RECORD_BYTES_MAX};
use weir_blocktrace::merge::{Sorted, Source};
use weir_blocktrace::read::{self, Taker};
use weir_blocktrace::recording::{
    BlktraceWriter, BlockKind, End, FlagBits, Header, block, encode, encode_process, preamble, text_block,
};
use weir_blocktrace::{Act, Analysis, Collector, Event, Flags};
use weir_core::target::DeviceNumber;

/// A file in memory is read in such portions.
const PORTION: usize = 2 * RECORD_BYTES_MAX;

/// One.
struct InMemory {
    decoder: Decoder,
    bytes: Vec<u8>,
    read: usize,
    fault: Option<Fault>,
    events: usize,
}

impl InMemory {
    fn open(bytes: Vec<u8>) -> Option<InMemory> {
        let decoder = Decoder::new("made up", &bytes[..bytes.len().min(HEAD_BYTES)]).ok()?;
        Some(InMemory { decoder, bytes, read: 0, fault: None, events: 0 })
    }
}

impl Source for InMemory {
    fn refill(&mut self, batch: &mut Batch) -> bool {
        let before = batch.events().len();
        // The longest record fits into a portion.
        let end = (self.read + PORTION).min(self.bytes.len());
        let (portion, is_last) = (&self.bytes[self.read..end], end == self.bytes.len());
        let decoded = if is_last {
            self.decoder.finish(portion, batch).map(|()| 0)
        } else {
            self.decoder.decode(portion, batch)
        };
        self.events += batch.events().len() - before;
        match decoded {
            Ok(used) => self.read += used,
            Err(fault) => self.fault = Some(fault),
        }
        self.fault.is_none() && !is_last
    }
}

/// Reads a recording whole, as `weir trace` does.
fn analysed(bytes: Vec<u8>) -> Option<Analysis> {
    let length = bytes.len();
    let mut collector = Collector::new();
    let mut source = Sorted::new(InMemory::open(bytes)?);
    let read = read::read(vec![&mut source], Taker::Statistics(&mut collector), &mut || true);
    let analysis = collector.finish(read.unmatched);
    let source = source.into_inner();
    assert!(source.events <= length / 16, "{} events of {length} bytes", source.events);
    if let Some(fault) = source.fault {
        assert!(fault.offset <= length as u64 && !fault.reason.is_empty(), "{fault}");
    }
    assert!(analysis.devices.len() <= 256);
    Some(analysis)
}

/// blktrace's records of a real machine.
static REAL: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/traces/splits");
    let file = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let file = file.filter(|path| path.to_string_lossy().contains(".blktrace.")).min().unwrap();
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(file).unwrap())
        .take(48 << 10)
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
});

/// Numbers that break sums, and such as real recordings have.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0_u64..64,
        2 => any::<u64>(),
        1 => (0_u32..64).prop_map(|shift| u64::MAX >> shift),
        1 => (0_u64..4).prop_map(|less| u64::MAX - less),
    ]
}

/// What weir's own format has a kind for; the rest only blktrace writes.
fn recorded() -> Vec<Act> {
    let is_recorded = |act: &Act| encode(&Event { act: *act, ..Event::default() }, 0, &mut Vec::new());
    let acts: Vec<Act> = Act::ALL.into_iter().filter(is_recorded).collect();
    assert!(acts.len() > 10);
    acts
}

prop_compose! {
    fn event()(
        numbers in prop::collection::vec(number(), 9),
        act in prop::sample::select(recorded()),
        device in 0_u32..3,
    ) -> Event {
        let [time_ns, sector, bytes, flags, pid, error, detail, identity, other] = numbers[..] else { unreachable!() };
        Event {
            time_ns, sector, detail, identity, other,
            bytes: bytes as u32,
            act,
            flags: Flags(flags as u32),
            device: DeviceNumber { major: 8, minor: device },
            from: DeviceNumber { major: 8, minor: 2 - device },
            pid: pid as u32,
            error: error as i32,
            ..Event::default()
        }
    }
}

/// These events as weir writes them, in blocks whose heads and end say what they like.
fn as_weirs(events: &[Event], claims: &[u64], header: &Header) -> Vec<u8> {
    let mut bytes = preamble(header).unwrap();
    let mut claims = claims.iter().copied().cycle();
    let mut claim = || claims.next().unwrap_or(0);
    for (cpu, some) in events.chunks(7).enumerate() {
        let mut words = Vec::new();
        encode_process(claim() as u32, "name", claim() >> 8, &mut words);
        some.iter().for_each(|event| assert!(encode(event, 0, &mut words)));
        bytes.extend(block(BlockKind::Events, cpu as u32 % 5, words.len() * 8, 0, claim()));
        words.iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
        bytes.extend(block(BlockKind::Round, 0, 0, claim(), 0));
    }
    let end = End { dropped_by_cpu: vec![claim(), claim(), u64::MAX], missed: claim(), ..End::default() };
    bytes.extend(text_block(BlockKind::End, &end).unwrap());
    bytes
}

fn as_blktraces(events: &[Event]) -> Vec<u8> {
    let (mut writer, mut bytes) = (BlktraceWriter::default(), Vec::new());
    events.iter().for_each(|event| assert!(writer.event(event, &mut bytes)));
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn made_up_figures_are_read(
        events in prop::collection::vec(event(), 1..60),
        claims in prop::collection::vec(number(), 1..9),
        (base_ns, wall_ns, has_bits) in (number(), number(), any::<bool>()),
    ) {
        let flag_bits = has_bits.then_some(FlagBits::NEWEST);
        let header = Header { base_ns, wall_ns, flag_bits, ..Header::default() };
        prop_assert!(analysed(as_weirs(&events, &claims, &header)).is_some());
        analysed(as_blktraces(&events));
    }

    #[test]
    fn damaged_bytes_are_read(
        damages in prop::collection::vec((any::<prop::sample::Index>(), number(), 0_usize..=8), 1..12),
        cut in any::<prop::sample::Index>(),
        of_weir in any::<bool>(),
        events in prop::collection::vec(event(), 20),
    ) {
        let mut bytes = if of_weir { as_weirs(&events, &[1], &Header::default()) } else { REAL.clone() };
        for (at, number, length) in damages {
            let at = at.index(bytes.len());
            let end = (at + length).min(bytes.len());
            bytes[at..end].copy_from_slice(&number.to_ne_bytes()[..end - at]);
        }
        bytes.truncate(cut.index(bytes.len()).max(bytes.len() / 2));
        analysed(bytes);
    }
}
