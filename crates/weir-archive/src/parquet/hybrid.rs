//! The hybrid of runs and packed bits in which places in a dictionary are written (Encodings.md, RLE/Bit-Packing Hybrid).

use super::thrift::{In, varint};
use crate::Damaged;

/// From so many on, values that are alike are a run.
const RUN: usize = 8;

/// Bits that the largest of so many places needs.
pub fn width(words: usize) -> u32 {
    usize::BITS - words.saturating_sub(1).leading_zeros()
}

/// Writes places of a width.
pub fn write(to: &mut Vec<u8>, places: &[u32], width: u32) {
    let run = |from: usize| places[from..].iter().take_while(|place| **place == places[from]).count();
    let mut at = 0;
    while at < places.len() {
        let alike = run(at);
        if alike >= RUN {
            varint(to, (alike as u64) << 1);
            to.extend(&places[at].to_le_bytes()[..width.div_ceil(8) as usize]);
            at += alike;
            continue;
        }
        let mut end = at;
        while end < places.len() && (end == at || run(end) < RUN) {
            end = (end + RUN).min(places.len());
        }
        varint(to, ((end - at).div_ceil(RUN) as u64) << 1 | 1);
        places[at..end].chunks(RUN).for_each(|group| pack(to, group, width));
        at = end;
    }
}

/// Eight places, those that are missing as zeros.
fn pack(to: &mut Vec<u8>, group: &[u32], width: u32) {
    let mut bits = 0_u128;
    let (mut held, mut left) = (0, width as usize);
    for at in 0..RUN {
        bits |= u128::from(group.get(at).copied().unwrap_or(0)) << held;
        held += width;
        while held >= 8 && left > 0 {
            to.push(bits as u8);
            (bits, held, left) = (bits >> 8, held - 8, left - 1);
        }
    }
}

/// Reads so many places.
pub fn read(from: &mut In<'_>, count: usize, width: u32) -> Result<Vec<u32>, Damaged> {
    if width > 32 {
        return from.damaged("places of more than 32 bits");
    }
    let mut places = Vec::new();
    while places.len() < count {
        let header = from.varint()?;
        let length = usize::try_from(header >> 1).unwrap_or(usize::MAX);
        let left = count - places.len();
        if length == 0 {
            return from.damaged("a run of nothing");
        }
        if header & 1 == 0 {
            let mut bytes = [0; 4];
            let held = width.div_ceil(8) as usize;
            bytes[..held].copy_from_slice(from.take(held)?);
            places.extend(std::iter::repeat_n(u32::from_le_bytes(bytes), length.min(left)));
            continue;
        }
        for _ in 0..length.min(left.div_ceil(RUN)) {
            let group = from.take(width as usize)?;
            let place = |at: u32| {
                let bit =
                    |nth: u32| u32::from(group[((at + nth) / 8) as usize] >> ((at + nth) % 8) & 1) << nth;
                (0..width).map(bit).fold(0, |place, bit| place | bit)
            };
            let wanted = RUN.min(count - places.len()) as u32;
            places.extend((0..wanted).map(|nth| place(nth * width)));
        }
    }
    Ok(places)
}
