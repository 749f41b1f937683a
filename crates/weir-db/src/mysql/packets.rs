//! Packets: three bytes of length, one of sequence, the payload. Payloads of 16 MB and more take several packets.

use crate::error::DbError;
use crate::wire::Wire;

use super::protocol::{ANSWER_BYTES_MAX, EOF, PACKET_BYTES_MAX};
use crate::rows::ROW_BYTES_MAX;

pub(super) const HEADER_BYTES: usize = 4;

/// The wire, cut into packets.
pub(super) struct Packets {
    pub(super) wire: Wire,
    /// What the next packet carries, either way.
    sequence: u8,
    /// Bytes of the payload that was read last: they lie in the wire's buffer until the next read.
    shown: usize,
    /// A payload of several packets, put together.
    long: Vec<u8>,
    /// An answer has been asked for and is not read to its end.
    awaiting: bool,
}

impl Packets {
    pub(super) fn new(wire: Wire) -> Packets {
        Packets { wire, sequence: 0, shown: 0, long: Vec::new(), awaiting: true }
    }

    /// Starts a command. Fails where the answer before was not read to its end: nobody knows then what comes next.
    #[inline]
    pub(super) fn command(&mut self, build: impl FnOnce(&mut Vec<u8>)) -> Result<(), DbError> {
        if self.awaiting {
            return Err(self.given_up());
        }
        self.sequence = 0;
        self.push(build);
        Ok(())
    }

    /// Appends a packet to the output.
    #[inline]
    pub(super) fn push(&mut self, build: impl FnOnce(&mut Vec<u8>)) {
        let output = self.wire.output();
        let at = output.len();
        output.extend_from_slice(&[0; HEADER_BYTES]);
        build(output);
        let payload = output.len() - at - HEADER_BYTES;
        if payload >= PACKET_BYTES_MAX {
            return self.split(at);
        }
        let [a, b, c, ..] = payload.to_le_bytes();
        output[at..at + HEADER_BYTES].copy_from_slice(&[a, b, c, self.sequence]);
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// Cuts the payload behind the header at `at` into packets; a full last one is followed by an empty one.
    fn split(&mut self, at: usize) {
        let output = self.wire.output();
        let payload = output.split_off(at + HEADER_BYTES);
        output.truncate(at);
        output.reserve(payload.len() + (payload.len() / PACKET_BYTES_MAX + 1) * HEADER_BYTES);
        let mut rest = payload.as_slice();
        loop {
            let (part, more) = rest.split_at(rest.len().min(PACKET_BYTES_MAX));
            let [a, b, c, ..] = part.len().to_le_bytes();
            let sequence = self.sequence;
            self.sequence = sequence.wrapping_add(1);
            let output = self.wire.output();
            output.extend_from_slice(&[a, b, c, sequence]);
            output.extend_from_slice(part);
            rest = more;
            if part.len() < PACKET_BYTES_MAX {
                return;
            }
        }
    }

    /// Sends what is in the output; an answer follows.
    #[inline]
    pub(super) fn send(&mut self) -> Result<(), DbError> {
        self.awaiting = true;
        self.wire.flush()
    }

    /// Sends an empty packet in the middle of an answer.
    pub(super) fn send_nothing(&mut self) -> Result<(), DbError> {
        self.forget_shown();
        self.push(|_| ());
        self.wire.flush_within()
    }

    /// Answers what the server asked: the numbers go on.
    pub(super) fn reply(&mut self, build: impl FnOnce(&mut Vec<u8>)) -> Result<(), DbError> {
        self.forget_shown();
        self.push(build);
        self.send()
    }

    /// The answer is read to its end, and the connection is free for the next command.
    #[inline]
    pub(super) fn finished(&mut self) {
        self.awaiting = false;
        if self.long.capacity() > 0 {
            self.long = Vec::new();
        }
    }

    /// Whether a command may follow.
    pub(super) fn is_free(&self) -> bool {
        !self.awaiting
    }

    /// The next payload, which is no row; it stays until the next read. Its length is looked at before it has come.
    #[inline]
    pub(super) fn read(&mut self) -> Result<&[u8], DbError> {
        self.forget_shown();
        let length = self.header()?;
        if length > ANSWER_BYTES_MAX {
            return Err(self.wire.odd("an answer longer than any except a row"));
        }
        self.shown = HEADER_BYTES + length;
        Ok(&self.wire.need(HEADER_BYTES + length)?[HEADER_BYTES..HEADER_BYTES + length])
    }

    /// The next row, or what ends the rows; it stays until the next read.
    pub(super) fn read_row(&mut self) -> Result<&[u8], DbError> {
        self.forget_shown();
        let length = self.header()?;
        if length == PACKET_BYTES_MAX {
            return self.read_long();
        }
        self.shown = HEADER_BYTES + length;
        Ok(&self.wire.need(HEADER_BYTES + length)?[HEADER_BYTES..HEADER_BYTES + length])
    }

    /// The payload that was read last.
    #[inline]
    pub(super) fn shown(&self) -> &[u8] {
        if self.shown == 0 { &self.long } else { &self.wire.buffered()[HEADER_BYTES..self.shown] }
    }

    #[inline]
    fn forget_shown(&mut self) {
        self.wire.consume(std::mem::take(&mut self.shown));
    }

    /// The next packet's length; its header stays where it is. Checks its number.
    #[inline]
    fn header(&mut self) -> Result<usize, DbError> {
        let &[a, b, c, sequence, ..] = self.wire.need(HEADER_BYTES)? else { return Ok(0) };
        if sequence != self.sequence {
            return Err(self.out_of_order(sequence));
        }
        self.sequence = sequence.wrapping_add(1);
        Ok(u32::from_le_bytes([a, b, c, 0]) as usize)
    }

    #[cold]
    fn read_long(&mut self) -> Result<&[u8], DbError> {
        self.long.clear();
        let mut length = PACKET_BYTES_MAX;
        loop {
            if self.long.len() + length > ROW_BYTES_MAX {
                return Err(self.wire.odd("a row longer than 64 MiB"));
            }
            let part = &self.wire.need(HEADER_BYTES + length)?[HEADER_BYTES..HEADER_BYTES + length];
            self.long.extend_from_slice(part);
            self.wire.consume(HEADER_BYTES + length);
            if length < PACKET_BYTES_MAX {
                return Ok(&self.long);
            }
            length = self.header()?;
        }
    }

    /// Passes over `payloads` payloads of one packet each.
    pub(super) fn skip(&mut self, payloads: u64) -> Result<(), DbError> {
        for _ in 0..payloads {
            self.read()?;
        }
        Ok(())
    }

    /// Passes over rows, looking at nothing but the first byte of each: up to the payload that ends them, which the
    /// next [`Packets::read`] returns. A row is counted where its last packet ends.
    #[inline]
    pub(super) fn skip_rows(&mut self, ends_rows: impl Fn(u8, usize) -> bool) -> Result<u64, DbError> {
        self.forget_shown();
        let (mut rows, mut continued) = (0, false);
        loop {
            let bytes = self.wire.need(HEADER_BYTES + 1)?;
            let (mut at, mut sequence) = (0, self.sequence);
            let mut cut_short = 0;
            while let Some(&[a, b, c, number, first]) = bytes[at..].first_chunk::<{ HEADER_BYTES + 1 }>() {
                let length = u32::from_le_bytes([a, b, c, 0]) as usize;
                if number != sequence {
                    return Err(self.out_of_order(number));
                }
                if !continued && ends_rows(first, length) {
                    self.wire.consume(at);
                    self.sequence = sequence;
                    return Ok(rows);
                }
                sequence = sequence.wrapping_add(1);
                continued = length == PACKET_BYTES_MAX;
                rows += u64::from(!continued);
                at += HEADER_BYTES + length;
                if at > bytes.len() {
                    cut_short = at - bytes.len();
                    at = bytes.len();
                    break;
                }
            }
            self.sequence = sequence;
            self.wire.consume(at);
            self.wire.skip(cut_short)?;
        }
    }

    #[cold]
    fn out_of_order(&self, sequence: u8) -> DbError {
        self.wire.odd(format!("packet {sequence} came where {} was due", self.sequence))
    }

    #[cold]
    fn given_up(&self) -> DbError {
        let source = std::io::Error::other("an earlier answer was not read to its end");
        DbError::Lost { place: self.wire.place().to_string(), source }
    }
}

/// Whether a payload that starts with `first` ends the rows: an error, or EOF in either of its forms. A text row may
/// start with 0xfe too, but only where its first value has 16 MB and more.
#[inline]
pub(super) fn ends_rows(first: u8, length: usize) -> bool {
    first >= EOF && length < PACKET_BYTES_MAX
}
