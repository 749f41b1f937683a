//! From a recording's bytes to items in order of time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use super::header::{End, FlagBits, Header};
use super::{
    BLOCK_HEAD_BYTES, BLOCK_MARK, BlockKind, Kind, MAGIC, ORDER, PREAMBLE_BYTES, TEXT_BYTES_MAX, TIME_BITS,
    VERSION,
};
use crate::{Act, Event, Flags, Item};
use weir_core::target::DeviceNumber;

/// What is kept at most for sorting, words: a recorder ends its rounds long before. (Tests reach it, too.)
const PENDING_WORDS_MAX: usize = if cfg!(test) { 128 << 10 } else { 8 << 20 };
/// Threads whose cgroup is remembered; Linux knows no more.
const THREADS_MAX: usize = 1 << 22;
/// A recording of more CPUs than Linux has is none.
const CPUS_MAX: usize = 8192;

/// Where the items go.
pub trait Out {
    /// An event; they come in order of time, except a G known only from its D: that comes just before the D.
    fn event(&mut self, event: Event);
    /// Anything else.
    fn item(&mut self, item: Item);
}

impl Out for Vec<Item> {
    fn event(&mut self, event: Event) {
        self.push(Item::Event(event));
    }
    fn item(&mut self, item: Item) {
        self.push(item);
    }
}

/// Why a recording cannot be read on, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset}: {reason}")]
pub struct Fault {
    /// Offset in the recording, bytes.
    pub offset: u64,
    /// What is wrong there.
    pub reason: String,
}

/// Reads a recording as its bytes come, in any portions.
#[derive(Debug)]
pub struct Reader {
    state: State,
    swapped: bool,
    header: Header,
    offset: u64,
    /// The beginning of a text whose rest has not come yet.
    text: Vec<u8>,
    /// Records that wait for the end of their round, by CPU.
    pending: BTreeMap<u16, Run>,
    /// When the first of each CPU's is, and which CPU's: of every one that may have a whole one.
    heads: BinaryHeap<Reverse<(u64, u16)>>,
    pending_words: usize,
    dropped: HashMap<u16, u64>,
    cgroups: HashMap<u32, u64>,
    end: Option<End>,
    note: Option<String>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Preamble,
    Header { left: usize },
    Head,
    Events { cpu: u16, left: u64 },
    Text { end: bool, left: usize },
}

/// Words of one CPU, and how many of them were given out.
#[derive(Debug, Default)]
struct Run {
    words: Vec<u64>,
    next: usize,
    /// Where words stand in the recording: of each stretch its first word's place here, and that word's offset.
    stretches: Vec<(usize, u64)>,
    /// Its first record is among the heads. Of one that is not all there, that has to wait for more words.
    is_head: bool,
}

impl Run {
    fn time(&self) -> Option<u64> {
        self.words.get(self.next).map(|word| word & TIME_MASK)
    }

    fn extend(&mut self, words: impl Iterator<Item = u64>, offset: u64) {
        let place = self.words.len();
        if self.stretches.is_empty() || self.offset_of(place) != offset {
            self.stretches.push((place, offset));
        }
        self.words.extend(words);
    }

    /// Where in the recording the word at a place is, or would be if the last stretch went on.
    fn offset_of(&self, place: usize) -> u64 {
        let stretch = self.stretches.iter().rfind(|(start, _)| *start <= place);
        stretch.map_or(0, |(start, offset)| offset + (place - start) as u64 * 8)
    }

    /// Forgets what was given out, and its memory, once that is most of it: each word moves once, however little goes out
    /// at a time.
    fn tidy(&mut self) {
        if self.next * 2 < self.words.len() {
            return;
        }
        let from = std::mem::take(&mut self.next);
        self.words = self.words[from..].to_vec();
        let gone = self.stretches.iter().skip(1).take_while(|(start, _)| *start <= from).count();
        let left = self.stretches[gone..].iter().map(|&(start, offset)| match start.checked_sub(from) {
            Some(place) => (place, offset),
            None => (0, offset + (from - start) as u64 * 8),
        });
        self.stretches = left.collect();
    }
}

const TIME_MASK: u64 = (1 << TIME_BITS) - 1;

impl Default for Reader {
    fn default() -> Self {
        Reader {
            state: State::Preamble,
            swapped: false,
            header: Header::default(),
            offset: 0,
            text: Vec::new(),
            pending: BTreeMap::new(),
            heads: BinaryHeap::new(),
            pending_words: 0,
            dropped: HashMap::new(),
            cgroups: HashMap::new(),
            end: None,
            note: None,
        }
    }
}

impl Reader {
    /// The byte order of the recording that begins so, if one does.
    pub fn big_endian(head: &[u8]) -> Option<bool> {
        let order = head.strip_prefix(&MAGIC)?.first_chunk::<4>()?;
        Some(u32::from_be_bytes(*order) == ORDER)
    }

    /// The header, once it was read.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How the recording ended; absent until then, and in recordings that were cut off.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// What is to be said of the recording once it was read to its end: that it was cut off.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Takes what it can of `bytes`; returns how many bytes it took. The caller hands in the rest again, with more.
    ///
    /// # Errors
    /// What is not as a recording is, and where.
    pub fn decode(&mut self, bytes: &[u8], out: &mut impl Out) -> Result<usize, Fault> {
        let mut taken = 0;
        loop {
            let before = taken;
            taken += self.step(&bytes[taken..], out)?;
            self.offset += (taken - before) as u64;
            if taken == before {
                return Ok(taken);
            }
        }
    }

    /// Gives out what still waits. `rest` is what [`Reader::decode`] left. A recording without its last block was cut
    /// off: [`Reader::note`] says so.
    ///
    /// # Errors
    /// There was not even a header, or what still waited is damaged.
    pub fn finish(&mut self, rest: &[u8], out: &mut impl Out) -> Result<(), Fault> {
        if matches!(self.state, State::Preamble | State::Header { .. }) {
            return Err(self.fault("the recording ends within its header"));
        }
        self.give_out(u64::MAX, out)?;
        if let Some(run) = self.pending.values().find(|run| self.end.is_some() && run.time().is_some()) {
            let offset = run.offset_of(run.next);
            return Err(Fault { offset, reason: "this record is not all there".to_string() });
        }
        if self.end.is_none() {
            let at = self.offset + rest.len() as u64;
            self.note = Some(format!(
                "truncated at byte {at}: its recorder was killed or the machine stopped; weir reads the part \
                 before it"
            ));
        }
        Ok(())
    }

    fn step(&mut self, bytes: &[u8], out: &mut impl Out) -> Result<usize, Fault> {
        match self.state {
            State::Preamble if bytes.len() >= PREAMBLE_BYTES => self.preamble(bytes),
            State::Header { left } => {
                let (taken, whole) = self.gather(bytes, left);
                self.state = State::Header { left: left - taken };
                if let Some(text) = whole {
                    self.header = serde_json::from_slice(&text)
                        .map_err(|error| self.fault(format!("the header cannot be read: {error}")))?;
                    let Header { base_ns, wall_ns, begun_ns, .. } = self.header;
                    out.item(Item::WallClock { time_ns: base_ns, wall_ns });
                    out.item(Item::Begun { time_ns: base_ns.saturating_add(begun_ns), device: None });
                    self.state = State::Head;
                }
                Ok(taken)
            }
            State::Head if bytes.len() >= BLOCK_HEAD_BYTES => self.head(bytes, out),
            State::Events { cpu, left } => self.records(bytes, cpu, left, out),
            State::Text { end, left } => {
                let (taken, whole) = self.gather(bytes, left);
                self.state = State::Text { end, left: left - taken };
                if let Some(text) = whole {
                    self.text(&text, end, out)?;
                }
                Ok(taken)
            }
            _ => Ok(0),
        }
    }

    /// Takes what is there of a text of which so many bytes are missing; gives the text once it is whole.
    fn gather(&mut self, bytes: &[u8], left: usize) -> (usize, Option<Vec<u8>>) {
        let taken = left.min(bytes.len());
        self.text.extend_from_slice(&bytes[..taken]);
        (taken, (taken == left).then(|| std::mem::take(&mut self.text)))
    }

    fn preamble(&mut self, bytes: &[u8]) -> Result<usize, Fault> {
        if !bytes.starts_with(&MAGIC) {
            return Err(self.fault("not a recording of weir"));
        }
        let number = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        self.swapped = match number(8) {
            ORDER => false,
            order if order.swap_bytes() == ORDER => true,
            order => return Err(self.fault(format!("the mark of byte order is {order:#x}"))),
        };
        let number = |at| if self.swapped { number(at).swap_bytes() } else { number(at) };
        let (version, length) = (number(12), number(16));
        if version != VERSION {
            return Err(self.fault(format!("version {version} of the format; this weir reads {VERSION}")));
        }
        if u64::from(length) > TEXT_BYTES_MAX {
            return Err(self.fault(format!("a header of {length} bytes")));
        }
        self.state = State::Header { left: length as usize };
        Ok(PREAMBLE_BYTES)
    }

    fn head(&mut self, bytes: &[u8], out: &mut impl Out) -> Result<usize, Fault> {
        let [first, payload_bytes, time_ns, dropped] = [0, 1, 2, 3].map(|nth| self.word(bytes, nth));
        if first as u32 != BLOCK_MARK {
            return Err(self.fault("no block begins here"));
        }
        let cpu = (first >> 48) as u16;
        match (first >> 32) as u16 {
            kind if kind == BlockKind::Events as u16 => {
                self.count_drops(cpu, dropped, out)?;
                if payload_bytes % 8 != 0 {
                    return Err(
                        self.fault(format!("events of {payload_bytes} bytes, which is not whole words"))
                    );
                }
                self.state = State::Events { cpu, left: payload_bytes };
            }
            kind if kind == BlockKind::Round as u16 => self.give_out(time_ns, out)?,
            kind if kind == BlockKind::End as u16 || kind == BlockKind::Note as u16 => {
                if payload_bytes > TEXT_BYTES_MAX {
                    return Err(self.fault(format!("a text of {payload_bytes} bytes")));
                }
                let end = kind == BlockKind::End as u16;
                match payload_bytes as usize {
                    // Nothing comes that could complete it.
                    0 => self.text(&[], end, out)?,
                    left => self.state = State::Text { end, left },
                }
            }
            kind => return Err(self.fault(format!("a block of unknown kind {kind}"))),
        }
        Ok(BLOCK_HEAD_BYTES)
    }

    fn count_drops(&mut self, cpu: u16, dropped: u64, out: &mut impl Out) -> Result<(), Fault> {
        if self.dropped.len() >= CPUS_MAX && !self.dropped.contains_key(&cpu) {
            return Err(self.fault(format!("events of more than {CPUS_MAX} CPUs")));
        }
        let before = self.dropped.entry(cpu).or_default();
        let more = dropped.saturating_sub(*before);
        *before = dropped;
        if more > 0 {
            out.item(Item::Dropped { events: more });
        }
        Ok(())
    }

    fn records(&mut self, bytes: &[u8], cpu: u16, left: u64, out: &mut impl Out) -> Result<usize, Fault> {
        if left == 0 {
            // The state changes without a byte taken; the caller's loop wants to see progress.
            self.state = State::Head;
            return if bytes.len() >= BLOCK_HEAD_BYTES { self.head(bytes, out) } else { Ok(0) };
        }
        let words = (bytes.len() / 8).min((left / 8) as usize);
        let run = self.pending.entry(cpu).or_default();
        let swapped = self.swapped;
        run.extend(bytes[..words * 8].chunks_exact(8).map(|chunk| word(chunk, swapped)), self.offset);
        if !run.is_head {
            let head = run.time().map(|time_ns| Reverse((time_ns, cpu)));
            run.is_head = head.is_some();
            self.heads.extend(head);
        }
        self.pending_words += words;
        self.state = State::Events { cpu, left: left - words as u64 * 8 };
        if self.pending_words > PENDING_WORDS_MAX {
            self.give_out(u64::MAX, out)?;
        }
        Ok(words * 8)
    }

    fn text(&mut self, bytes: &[u8], end: bool, out: &mut impl Out) -> Result<(), Fault> {
        self.state = State::Head;
        if !end {
            out.item(Item::Message {
                time_ns: self.header.base_ns,
                device: DeviceNumber::default(),
                pid: 0,
                text: String::from_utf8_lossy(bytes).trim_end().to_string(),
            });
            return Ok(());
        }
        let end: End = serde_json::from_slice(bytes)
            .map_err(|error| self.fault(format!("the last block is damaged: {error}")))?;
        for (cpu, &dropped) in end.dropped_by_cpu.iter().enumerate().take(CPUS_MAX) {
            self.count_drops(cpu as u16, dropped, out)?;
        }
        // Of none, too: then it lost none.
        out.item(Item::Dropped { events: end.missed });
        if let Some(ended_ns) = end.ended_ns {
            out.item(Item::Ended { time_ns: self.header.base_ns.saturating_add(ended_ns) });
        }
        self.end = Some(end);
        Ok(())
    }

    /// Gives out, in order of time, every waiting event before `until_ns`. Behind what is no record nothing of its CPU
    /// means anything; what others have goes out all the same.
    fn give_out(&mut self, until_ns: u64, out: &mut impl Out) -> Result<(), Fault> {
        let mut records = Records {
            base_ns: self.header.base_ns,
            flag_bits: self.header.flag_bits,
            swapped: self.swapped,
            cgroups: &mut self.cgroups,
        };
        let mut broken_at = None;
        while let Some(&Reverse((time_ns, cpu))) = self.heads.peek()
            && time_ns < until_ns
        {
            self.heads.pop();
            let Some(run) = self.pending.get_mut(&cpu) else { continue };
            let others_ns = self.heads.peek().map_or(u64::MAX, |head| head.0.0);
            let first = run.next;
            let head = loop {
                match records.record(&run.words[run.next..], u32::from(cpu), out) {
                    Ok(0) => break None,
                    Ok(words) => run.next += words,
                    Err(NoRecord) => {
                        broken_at.get_or_insert_with(|| run.offset_of(run.next));
                        run.next = run.words.len();
                    }
                }
                let next_ns = run.time();
                if next_ns.is_none_or(|time_ns| time_ns >= until_ns || time_ns > others_ns) {
                    break next_ns;
                }
            };
            run.is_head = head.is_some();
            self.heads.extend(head.map(|time_ns| Reverse((time_ns, cpu))));
            self.pending_words -= run.next - first;
            run.tidy();
        }
        let fault = |offset| Err(Fault { offset, reason: "no record begins here".to_string() });
        broken_at.map_or(Ok(()), fault)
    }

    fn word(&self, bytes: &[u8], nth: usize) -> u64 {
        word(&bytes[nth * 8..nth * 8 + 8], self.swapped)
    }

    fn fault(&self, reason: impl Into<String>) -> Fault {
        Fault { offset: self.offset, reason: reason.into() }
    }
}

#[inline]
fn word(chunk: &[u8], swapped: bool) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(chunk);
    let word = u64::from_ne_bytes(bytes);
    if swapped { word.swap_bytes() } else { word }
}

/// Words that are of no kind of record.
struct NoRecord;

/// Makes items of records.
struct Records<'a> {
    base_ns: u64,
    flag_bits: Option<FlagBits>,
    swapped: bool,
    cgroups: &'a mut HashMap<u32, u64>,
}

impl Records<'_> {
    /// Gives out the record at the beginning of `words`; returns its length, 0 if it is not all there.
    #[inline]
    fn record(&mut self, words: &[u64], cpu: u32, out: &mut impl Out) -> Result<usize, NoRecord> {
        let kind = words.first().and_then(|&word| Kind::of(word)).ok_or(NoRecord)?;
        let length = kind.words();
        let Some(words) = words.get(..length) else { return Ok(0) };
        if kind == Kind::Process {
            self.process(words, out)
        } else {
            self.event(kind, words, cpu, out)
        }
        Ok(length)
    }

    fn process(&mut self, words: &[u64], out: &mut impl Out) {
        let pid = words[4] as u32;
        if self.cgroups.len() >= THREADS_MAX {
            self.cgroups.clear();
        }
        self.cgroups.insert(pid, words[1]);
        // The kernel wrote bytes; in the other byte order the words were turned round, and must be turned back.
        let as_written = |word: u64| if self.swapped { word.swap_bytes() } else { word }.to_ne_bytes();
        let mut name = [as_written(words[2]), as_written(words[3])].concat();
        name.truncate(name.iter().position(|&byte| byte == 0).unwrap_or(name.len()));
        let (process, name) = ((words[4] >> 32) as u32, String::from_utf8_lossy(&name).into_owned());
        out.item(Item::Process { pid, process, name });
    }

    fn event(&mut self, kind: Kind, words: &[u64], cpu: u32, out: &mut impl Out) {
        let (flags, extra) = (words[4] as u32, (words[4] >> 32) as u32);
        let mut event = Event {
            time_ns: self.base_ns.saturating_add(words[0] & TIME_MASK),
            sector: words[2],
            bytes: words[3] as u32,
            act: act_of(kind),
            flags: self.flag_bits.map_or(Flags(flags), |bits| bits.categories(flags)),
            device: device(words[3] >> 32),
            cpu,
            identity: words[1],
            ..Event::default()
        };
        match kind {
            Kind::Insert | Kind::Requeue | Kind::RequestMerge => {}
            Kind::Complete | Kind::BioComplete => event.error = errno(extra as i32),
            Kind::Issue => {
                event.other = words[5];
                if !matches!(extra, 0 | u32::MAX) {
                    let time_ns = event.time_ns.saturating_sub(u64::from(extra));
                    let (identity, other) = (event.other, event.identity);
                    out.event(Event { act: Act::GetRequest, time_ns, identity, other, ..event });
                }
            }
            _ => {
                event.pid = extra;
                event.cgroup = self.cgroups.get(&extra).copied().unwrap_or(0);
            }
        }
        match kind {
            Kind::Insert => event.other = words[5],
            Kind::Split => (event.other, event.detail) = (words[5], words[6]),
            Kind::Remap => (event.from, event.detail) = (device(words[5]), words[6]),
            Kind::Plug => event.sector = 0,
            Kind::Unplug | Kind::UnplugTimer => (event.sector, event.detail) = (0, words[2]),
            _ => {}
        }
        out.event(event);
    }
}

fn act_of(kind: Kind) -> Act {
    match kind {
        Kind::Queue => Act::Queue,
        Kind::BackMerge => Act::BackMerge,
        Kind::FrontMerge => Act::FrontMerge,
        Kind::GetRequest => Act::GetRequest,
        Kind::Insert => Act::Insert,
        Kind::Issue => Act::Issue,
        Kind::Requeue => Act::Requeue,
        Kind::Complete | Kind::BioComplete => Act::Complete,
        Kind::Split => Act::Split,
        Kind::Remap => Act::Remap,
        Kind::RequestMerge => Act::RequestMerge,
        Kind::Plug => Act::Plug,
        Kind::Unplug => Act::Unplug,
        Kind::UnplugTimer => Act::UnplugTimer,
        Kind::Process => Act::Unknown,
    }
}

/// `major << 20 | minor` (linux/kdev_t.h).
fn device(word: u64) -> DeviceNumber {
    DeviceNumber { major: (word as u32) >> 20, minor: word as u32 & 0xf_ffff }
}

/// A negative errno of what the kernel's tracepoint said: before 5.16 that very errno, since then a `blk_status_t`
/// (block/blk-core.c, `blk_errors`; the numbers above these changed their meaning in 6.8).
fn errno(status: i32) -> i32 {
    const ERRNO_OF_STATUS: [i32; 14] = [0, -95, -110, -28, -67, -121, -52, -61, -84, -12, EIO, -78, -11, -16];
    const EIO: i32 = -5;
    if status <= 0 { status } else { ERRNO_OF_STATUS.get(status as usize).copied().unwrap_or(EIO) }
}

#[cfg(test)]
mod tests {
    use super::super::block;
    use super::*;

    struct Nowhere;

    impl Out for Nowhere {
        fn event(&mut self, _event: Event) {}
        fn item(&mut self, _item: Item) {}
    }

    /// CPU after CPU has as much as is kept for all of them, of some all but the last event is due.
    #[test]
    fn what_was_given_out_is_held_no_more() {
        let mut reader = Reader { state: State::Head, ..Reader::default() };
        for cpu in 0..24 {
            let records = PENDING_WORDS_MAX / 5 + cpu % 2;
            let time_ns = |nth: usize| if nth + 1 == records { TIME_MASK - 1 } else { nth as u64 };
            let words =
                (0..records).flat_map(|nth| [(Kind::Queue as u64) << TIME_BITS | time_ns(nth), 0, 0, 0, 0]);
            let mut bytes = block(BlockKind::Events, cpu as u32, records * 40, 0, 0).to_vec();
            words.for_each(|word| bytes.extend(word.to_ne_bytes()));
            bytes.extend(block(BlockKind::Round, 0, 0, TIME_MASK - 2, 0));
            assert_eq!(reader.decode(&bytes, &mut Nowhere), Ok(bytes.len()));
            let held: usize = reader.pending.values().map(|run| run.words.capacity()).sum();
            assert!(held < PENDING_WORDS_MAX / 8, "CPU {cpu}: {held} words");
        }
    }
}
