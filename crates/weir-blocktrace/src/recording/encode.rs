//! Bytes of a recording. Byte order is the machine's own.

use super::{
    BLOCK_HEAD_BYTES, BLOCK_MARK, BlockKind, Header, Kind, MAGIC, ORDER, PREAMBLE_BYTES, TIME_BITS, VERSION,
};
use crate::{Act, Event};
use weir_core::target::DeviceNumber;

/// Preamble and header.
///
/// # Errors
/// None of [`Header`]'s values: serde_json's signature.
pub fn preamble(header: &Header) -> Result<Vec<u8>, serde_json::Error> {
    let text = padded(serde_json::to_vec(header)?);
    let mut bytes = Vec::with_capacity(PREAMBLE_BYTES + text.len());
    bytes.extend_from_slice(&MAGIC);
    for number in [ORDER, VERSION, text.len() as u32, 0] {
        bytes.extend_from_slice(&number.to_ne_bytes());
    }
    bytes.extend_from_slice(&text);
    Ok(bytes)
}

/// A block that is text.
///
/// # Errors
/// serde_json's, for values that are no JSON.
pub fn text_block(kind: BlockKind, text: &impl serde::Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let text = padded(serde_json::to_vec(text)?);
    Ok([&block(kind, 0, text.len(), 0, 0)[..], &text].concat())
}

/// Text to a multiple of eight bytes, with spaces, as the words after it are aligned.
pub fn padded(mut text: Vec<u8>) -> Vec<u8> {
    text.resize(text.len().next_multiple_of(8), b' ');
    text
}

/// The head of a block: its payload's length, a time (ns since `base_ns`; see [`BlockKind`]), and what `cpu` dropped so
/// far.
pub fn block(
    kind: BlockKind,
    cpu: u32,
    payload_bytes: usize,
    time_ns: u64,
    dropped: u64,
) -> [u8; BLOCK_HEAD_BYTES] {
    let first = u64::from(BLOCK_MARK) | (kind as u64) << 32 | u64::from(cpu as u16) << 48;
    let mut head = [0; BLOCK_HEAD_BYTES];
    for (place, word) in head.chunks_exact_mut(8).zip([first, payload_bytes as u64, time_ns, dropped]) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    head
}

/// Appends one event, its flags as blktrace's categories. Acts that the format has no kind for are left out: false.
pub fn encode(event: &Event, base_ns: u64, words: &mut Vec<u64>) -> bool {
    let Some(kind) = kind_of(event) else { return false };
    let extra = match kind {
        Kind::Complete | Kind::BioComplete => event.error as u32,
        Kind::Insert | Kind::Requeue | Kind::RequestMerge | Kind::Issue => 0,
        _ => event.pid,
    };
    let count = matches!(kind, Kind::Unplug | Kind::UnplugTimer);
    words.extend([
        (kind as u64) << TIME_BITS | event.time_ns.saturating_sub(base_ns) & ((1 << TIME_BITS) - 1),
        event.identity,
        if count { event.detail } else { event.sector },
        device(event.device) << 32 | u64::from(event.bytes),
        u64::from(extra) << 32 | u64::from(event.flags.0),
    ]);
    match kind {
        Kind::Insert | Kind::Issue => words.push(event.other),
        Kind::Split => words.extend([event.other, event.detail]),
        Kind::Remap => words.extend([device(event.from), event.detail]),
        _ => {}
    }
    true
}

/// Appends a thread's name, seen at `time_ns` after `base_ns`; its cgroup is not known.
pub fn encode_process(pid: u32, name: &str, time_ns: u64, words: &mut Vec<u64>) {
    let mut bytes = [0; 16];
    for (place, byte) in bytes[..15].iter_mut().zip(name.bytes()) {
        *place = byte;
    }
    let [first, second] = [0, 8].map(|at| {
        let mut half = [0; 8];
        half.copy_from_slice(&bytes[at..at + 8]);
        u64::from_ne_bytes(half)
    });
    words.extend([(Kind::Process as u64) << TIME_BITS | time_ns, 0, first, second, u64::from(pid)]);
}

fn kind_of(event: &Event) -> Option<Kind> {
    Some(match event.act {
        Act::Queue => Kind::Queue,
        Act::BackMerge => Kind::BackMerge,
        Act::FrontMerge => Kind::FrontMerge,
        Act::GetRequest => Kind::GetRequest,
        Act::Insert => Kind::Insert,
        Act::Issue => Kind::Issue,
        Act::Requeue => Kind::Requeue,
        Act::Complete => Kind::Complete,
        Act::Split => Kind::Split,
        Act::Remap => Kind::Remap,
        Act::RequestMerge => Kind::RequestMerge,
        Act::Plug => Kind::Plug,
        Act::Unplug => Kind::Unplug,
        Act::UnplugTimer => Kind::UnplugTimer,
        _ => return None,
    })
}

/// `major << 20 | minor`, as the kernel has it (linux/kdev_t.h).
fn device(number: DeviceNumber) -> u64 {
    u64::from(number.major << 20 | number.minor & 0xf_ffff)
}
