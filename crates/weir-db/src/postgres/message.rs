//! The bytes of messages, both ways: protocol 3.0, PostgreSQL documentation, chapter "Frontend/Backend Protocol".
//!
//! A message is a type byte, a length that counts itself and the body but not the type, and the body. Integers are
//! big-endian, strings end in a zero byte.

use crate::error::{MESSAGE_CHARS_MAX, SQLSTATE_CHARS, ServerError, plain};

/// Bytes before a body: type and length.
pub const HEADER: usize = 5;

/// Longest message that is read as a whole unless it carries rows; libpq takes a longer one for lost synchronisation
/// at 30,000 bytes, but errors and notices may quote a statement.
pub const SHORT_MAX: usize = 1 << 20;

/// Bytes that are no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);

/// Type and length of the body of a message of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The type.
    pub tag: u8,
    /// Bytes after the header.
    pub body: usize,
}

impl Header {
    /// Reads the header that `bytes` begin with; `None` where they are too few.
    #[inline]
    pub fn read(bytes: &[u8]) -> Result<Option<Header>, Malformed> {
        let Some(&[tag, a, b, c, d]) = bytes.first_chunk::<HEADER>() else { return Ok(None) };
        // A negative length becomes a huge one here, and is refused for being no i32.
        let length = u32::from_be_bytes([a, b, c, d]);
        if !(4..=i32::MAX as u32).contains(&length) {
            return Err(Malformed("a message of impossible length"));
        }
        Ok(Some(Header { tag, body: length as usize - 4 }))
    }
}

/// Reads the parts of a body from front to back.
#[derive(Debug, Clone, Copy)]
pub struct Body<'a>(pub &'a [u8]);

impl<'a> Body<'a> {
    /// The next `count` bytes.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) =
            self.0.split_at_checked(count).ok_or(Malformed("a message that ends too early"))?;
        self.0 = rest;
        Ok(bytes)
    }

    /// A byte.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.bytes(1)?[0])
    }

    /// A count of 16 bits.
    pub fn count(&mut self) -> Result<usize, Malformed> {
        let bytes = self.bytes(2)?;
        Ok(usize::from(u16::from_be_bytes([bytes[0], bytes[1]])))
    }

    /// 32 bits.
    pub fn i32(&mut self) -> Result<i32, Malformed> {
        let bytes = self.bytes(4)?;
        Ok(i32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// A string without its zero byte.
    pub fn text(&mut self) -> Result<&'a [u8], Malformed> {
        let end = self.0.iter().position(|&byte| byte == 0).ok_or(Malformed("a string without an end"))?;
        let text = self.bytes(end)?;
        self.bytes(1)?;
        Ok(text)
    }

    /// A field of a row: a length and bytes; `None` is NULL.
    pub fn field(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        match self.i32()? {
            -1 => Ok(None),
            length => {
                let length = usize::try_from(length).map_err(|_| Malformed("a field of negative length"))?;
                self.bytes(length).map(Some)
            }
        }
    }
}

/// An ErrorResponse or NoticeResponse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// What it says.
    pub error: ServerError,
    /// The server closes the connection after it.
    pub is_fatal: bool,
}

impl Complaint {
    /// Reads the body of an ErrorResponse or NoticeResponse. Detail and hint are joined to the message, because they
    /// name what is in the way: the other process of a deadlock, the limit to raise.
    pub fn read(body: &[u8]) -> Result<Complaint, Malformed> {
        let mut body = Body(body);
        let [mut severity, mut sqlstate, mut message, mut detail, mut hint] = [&b""[..]; 5];
        loop {
            let field = match body.u8()? {
                0 => break,
                b'V' => &mut severity,
                // In the server's language; from servers before 9.6, or in place of them, there is no V.
                b'S' if severity.is_empty() => &mut severity,
                b'C' => &mut sqlstate,
                b'M' => &mut message,
                b'D' => &mut detail,
                b'H' => &mut hint,
                _ => &mut &b""[..],
            };
            *field = body.text()?;
        }
        let words = |bytes: &[u8]| {
            let lines: Vec<String> =
                bytes.split(|&byte| byte == b'\n').map(|line| plain(line, MESSAGE_CHARS_MAX)).collect();
            plain(lines.join("; ").as_bytes(), MESSAGE_CHARS_MAX)
        };
        let mut text = words(message);
        for (label, part) in [("detail", detail), ("hint", hint)].into_iter().filter(|it| !it.1.is_empty()) {
            text.push_str(&format!("; {label}: {}", words(part)));
        }
        Ok(Complaint {
            error: ServerError { number: 0, sqlstate: plain(sqlstate, SQLSTATE_CHARS), message: text },
            is_fatal: matches!(severity, b"FATAL" | b"PANIC"),
        })
    }
}

/// The rows that a CommandComplete says were changed; 0 for a statement that changes none.
#[inline]
pub fn affected(tag: &[u8]) -> u64 {
    let changes = [&b"INSERT "[..], b"UPDATE ", b"DELETE ", b"MERGE ", b"COPY "];
    if !changes.iter().any(|verb| tag.starts_with(verb)) {
        return 0;
    }
    let digits = tag.iter().rev().skip_while(|&&byte| byte == 0).take_while(|byte| byte.is_ascii_digit());
    let (number, _) = digits.fold((0_u64, 1_u64), |(number, place), &digit| {
        (number.wrapping_add(u64::from(digit - b'0').wrapping_mul(place)), place.wrapping_mul(10))
    });
    number
}

/// Appends a message to `out`: its type, its length, and the body that `write` appends.
pub fn put(out: &mut Vec<u8>, tag: u8, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    put_untyped(out, write);
}

/// Appends a message without a type, as the first one of a connection is.
pub fn put_untyped(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Appends a string and its zero byte. A zero byte within would end it early, so what follows one is left out.
pub fn put_text(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    out.extend_from_slice(&bytes[..end]);
    out.push(0);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn headers_of_impossible_length_are_refused() {
        let read = |bytes: &[u8]| Header::read(bytes);
        assert_eq!(read(b"Z\0\0\0"), Ok(None));
        assert_eq!(read(b"Z\0\0\0\x05I"), Ok(Some(Header { tag: b'Z', body: 1 })));
        assert_eq!(read(b"D\0\0\0\x04"), Ok(Some(Header { tag: b'D', body: 0 })));
        assert_eq!(read(b"D\x7f\xff\xff\xff"), Ok(Some(Header { tag: b'D', body: 0x7fff_fffb })));
        for wrong in [b"Z\0\0\0\x03", b"Z\0\0\0\0", b"Z\xff\xff\xff\xff", b"Z\x80\0\0\0"] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_complaint_has_its_code_its_words_and_whether_the_connection_ends() {
        let body = b"SFEHLER\0VERROR\0C40P01\0Mdeadlock detected\0DProcess 1 waits.\nProcess 2 waits.\0\
            HSee server log.\0Fdeadlock.c\0L1\0\0";
        let complaint = Complaint::read(body).unwrap();
        assert!(!complaint.is_fatal);
        assert!(complaint.error.is_retryable());
        assert_eq!(
            complaint.error.to_string(),
            "deadlock detected; detail: Process 1 waits.; Process 2 waits.; hint: See server log. (40P01)"
        );
        let old = Complaint::read(b"SFATAL\0C57P01\0Mterminating\0\0").unwrap();
        assert!(old.is_fatal);
        assert!(crate::error::DbError::Server(old.error).is_lost());
    }

    #[test]
    fn complaints_are_short_and_plain() {
        let long = "\x1b]0;x\x07\n".repeat(50_000);
        let body = format!("SERROR\0C\x1b[2Jaaa\0M{long}\0D{long}\0H{long}\0\0");
        let text = Complaint::read(body.as_bytes()).unwrap().error.to_string();
        assert!(text.chars().count() < 6100 && !text.chars().any(char::is_control), "{}", text.len());
    }

    #[test]
    fn command_tags_count_changed_rows() {
        for (tag, expected) in [
            ("INSERT 0 15", 15),
            ("UPDATE 1", 1),
            ("DELETE 0", 0),
            ("COPY 10000000", 10_000_000),
            ("MERGE 7", 7),
            ("SELECT 100", 0),
            ("FETCH 3", 0),
            ("BEGIN", 0),
            ("UPDATE ", 0),
            ("INSERT 0 99999999999999999999999", 99_999_999_999_999_999_999_999_u128 as u64),
            ("", 0),
        ] {
            assert_eq!(affected(tag.as_bytes()), expected, "{tag}");
            assert_eq!(affected(format!("{tag}\0").as_bytes()), expected, "{tag} and its zero byte");
        }
    }

    #[test]
    fn a_message_counts_its_length_without_its_type() {
        let mut out = Vec::new();
        put(&mut out, b'Q', |out| put_text(out, "a\0b"));
        put_untyped(&mut out, |out| out.push(7));
        assert_eq!(out, b"Q\0\0\0\x06a\0\0\0\0\x05\x07");
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Header::read(&bytes);
            let _ = Complaint::read(&bytes);
            affected(&bytes);
            let mut body = Body(&bytes);
            while body.field().is_ok() {}
            while body.text().is_ok() {}
        }

        #[test]
        fn a_complaint_that_is_cut_short_is_refused(cut in 0_usize..31) {
            let whole = b"SFATAL\0C57P01\0Mterminating\0Dx\0\0";
            prop_assert!(Complaint::read(whole).is_ok());
            prop_assert!(Complaint::read(&whole[..cut]).is_err());
        }
    }
}
