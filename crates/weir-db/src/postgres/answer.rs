//! Answers: everything between a request and ReadyForQuery, read by one loop. Rows that nobody wants are counted where
//! they lie and skipped by their length.

use crate::error::{DbError, ServerError};
use crate::rows::{Done, Kept, ROW_BYTES_MAX, Row};
use crate::wire::Wire;

use super::message::{self, Body, Complaint, HEADER, Header, Malformed, SHORT_MAX};

/// Where a session stands, as ReadyForQuery says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transaction {
    /// In none.
    Idle,
    /// In one.
    Open,
    /// In one that failed: only ROLLBACK is heard.
    Failed,
}

impl Transaction {
    fn read(body: &[u8]) -> Result<Transaction, Malformed> {
        match body {
            b"I" => Ok(Transaction::Idle),
            b"T" => Ok(Transaction::Open),
            b"E" => Ok(Transaction::Failed),
            _ => Err(Malformed("it is ready, and does not say whether in a transaction")),
        }
    }
}

/// Who takes parts of an answer.
pub(super) trait Sink {
    /// Types of the messages it takes; others are looked at for their kind only, and rows are counted.
    const TAKES: &'static [u8];

    /// Takes the body of such a message.
    fn take(&mut self, tag: u8, body: &[u8]) -> Result<(), Malformed>;
}

/// Takes nothing.
pub(super) struct Discard;

impl Sink for Discard {
    const TAKES: &'static [u8] = b"";

    fn take(&mut self, _: u8, _: &[u8]) -> Result<(), Malformed> {
        Ok(())
    }
}

/// Takes the rows of an answer's last result.
#[derive(Default)]
pub(super) struct Collect {
    /// They.
    pub rows: Kept,
}

impl Sink for Collect {
    const TAKES: &'static [u8] = b"TD";

    fn take(&mut self, tag: u8, body: &[u8]) -> Result<(), Malformed> {
        if tag == b'T' {
            self.rows.clear();
            return Ok(());
        }
        let mut body = Body(body);
        let count = body.count()?;
        let fields = (0..count).map(|_| {
            let field = body.field()?;
            Ok(field.map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
        });
        let row = fields.collect::<Result<Row, Malformed>>()?;
        if self.rows.push(row) { Ok(()) } else { Err(Malformed(Kept::FULL)) }
    }
}

/// What is known of a conversation besides its bytes.
#[derive(Debug)]
pub(super) struct Standing {
    /// As of the last ReadyForQuery.
    pub transaction: Transaction,
    /// Why the server is about to close the connection, where it said so in a notice: another process crashed.
    pub farewell: Option<ServerError>,
    /// Nothing more can be asked: the connection is closed, or request and answer would no longer fit.
    pub is_over: bool,
}

/// Reads until ReadyForQuery, or, for a sink that takes CopyInResponse, until the server waits for rows. The first error of the server is the answer's.
pub(super) fn read<S: Sink>(wire: &mut Wire, standing: &mut Standing, sink: &mut S) -> Result<Done, DbError> {
    let mut done = Done::default();
    let mut failure = None;
    let mut is_extended = false;
    loop {
        let mut bytes = wire.need(HEADER)?;
        if !S::TAKES.contains(&b'D') {
            let (skimmed, rows) = skim(bytes);
            done.rows += rows;
            if skimmed > 0 {
                wire.consume(skimmed);
                bytes = wire.need(HEADER)?;
            }
        }
        let header = Header::read(bytes).map_err(|odd| wire.odd(odd.to_string()))?;
        let Some(header) = header else { return Err(wire.odd("a message without a header")) };
        done.rows += u64::from(header.tag == b'D');
        if S::TAKES.contains(&header.tag) {
            let body = whole(wire, header)?;
            sink.take(header.tag, body).map_err(|odd| wire.odd(odd.to_string()))?;
            if header.tag == b'G' {
                wire.consume(HEADER + header.body);
                return Ok(done);
            }
        } else {
            match header.tag {
                b'C' => {
                    let affected = message::affected(whole(wire, header)?);
                    done.affected = done.affected.saturating_add(affected);
                }
                b'Z' => {
                    let transaction = Transaction::read(whole(wire, header)?);
                    standing.transaction = transaction.map_err(|odd| wire.odd(odd.to_string()))?;
                    wire.consume(HEADER + header.body);
                    return failure.map_or(Ok(done), |error: ServerError| Err(error.into()));
                }
                b'E' => {
                    let complaint = complaint(wire, header)?;
                    if complaint.is_fatal {
                        standing.is_over = true;
                        return Err(complaint.error.into());
                    }
                    failure.get_or_insert(complaint.error);
                }
                b'N' => hear(complaint(wire, header)?, standing),
                b'G' => {
                    refuse_rows(wire, is_extended)?;
                    wire.skip(HEADER + header.body)?;
                    continue;
                }
                // Rows and their description; what is done, closed or empty; COPY TO STDOUT; parameters and
                // notifications, which may come at any moment.
                b'D' | b'T' | b't' | b'n' | b'1' | b'2' | b'3' | b'I' | b's' | b'H' | b'd' | b'c' | b'S'
                | b'A' => {
                    is_extended |= header.tag == b'2';
                    wire.skip(HEADER + header.body)?;
                    continue;
                }
                other => return Err(wire.odd(format!("a message of type {:?}", char::from(other)))),
            }
        }
        wire.consume(HEADER + header.body);
    }
}

/// Bytes and number of the whole rows that `bytes` begin with.
#[inline]
fn skim(bytes: &[u8]) -> (usize, u64) {
    let (mut at, mut rows) = (0, 0);
    while let Ok(Some(Header { tag: b'D', body })) = Header::read(&bytes[at..])
        && bytes.len() - at >= HEADER + body
    {
        at += HEADER + body;
        rows += 1;
    }
    (at, rows)
}

/// The body of a message, waited for. It is still to be consumed.
pub(super) fn whole(wire: &mut Wire, header: Header) -> Result<&[u8], DbError> {
    let longest = if header.tag == b'D' { ROW_BYTES_MAX } else { SHORT_MAX };
    if header.body > longest {
        return Err(wire.odd(format!("a message {:?} of {} bytes", char::from(header.tag), header.body)));
    }
    let bytes = wire.need(HEADER + header.body)?;
    Ok(&bytes[HEADER..HEADER + header.body])
}

/// An error or a notice. It is still to be consumed.
pub(super) fn complaint(wire: &mut Wire, header: Header) -> Result<Complaint, DbError> {
    let complaint = Complaint::read(whole(wire, header)?);
    complaint.map_err(|odd| wire.odd(odd.to_string()))
}

/// Ends a COPY … FROM STDIN of the user's own: nobody has rows for it. In an extended query the server has by then
/// thrown the Sync away with which this query was to end.
#[cold]
fn refuse_rows(wire: &mut Wire, is_extended: bool) -> Result<(), DbError> {
    message::put(wire.output(), b'f', |out| {
        message::put_text(out, "weir sends rows only where it loads a table")
    });
    if is_extended {
        message::put(wire.output(), b'S', |_| ());
    }
    wire.flush_within()
}

/// A notice is forgotten, unless it says that the server is about to go.
pub(super) fn hear(notice: Complaint, standing: &mut Standing) {
    if notice.error.sqlstate.starts_with("57P") {
        standing.farewell = Some(notice.error);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn row(length: usize) -> Vec<u8> {
        let mut out = Vec::new();
        message::put(&mut out, b'D', |out| out.resize(out.len() + length, b'x'));
        out
    }

    #[test]
    fn whole_rows_are_skimmed_and_nothing_else() {
        let rows = [row(0), row(100), row(3)].concat();
        assert_eq!(skim(&rows), (rows.len(), 3));
        assert_eq!(skim(&rows[..rows.len() - 1]), (5 + 105, 2));
        assert_eq!(skim(&[&rows[..], b"C\0\0\0\x0dSELECT 3\0"].concat()), (rows.len(), 3));
        assert_eq!(skim(b"D\xff\xff\xff\xff"), (0, 0));
    }

    #[test]
    fn rows_are_kept_as_text_and_only_those_of_the_last_result() {
        let mut sink = Collect::default();
        sink.take(b'T', b"").unwrap();
        sink.take(b'D', b"\0\x01\0\0\0\x01a").unwrap();
        sink.take(b'T', b"").unwrap();
        sink.take(b'D', b"\0\x03\0\0\0\x02\xc3\xa9\xff\xff\xff\xff\0\0\0\0").unwrap();
        assert_eq!(sink.rows.count(), 1);
        for cut in [&b"\0"[..], b"\0\x01", b"\0\x01\0\0\0\x02a", b"\0\x01\xff\xff\xff\xfe", b"\xff\xff"] {
            assert!(sink.take(b'D', cut).is_err(), "{cut:?}");
        }
        assert_eq!(sink.rows.rows(), [vec![Some("é".to_string()), None, Some(String::new())]]);
    }

    /// A NULL takes four bytes on the way and 24 in memory.
    #[test]
    fn rows_count_by_the_memory_they_take() {
        let mut sink = Collect::default();
        let nulls = [&[0xff, 0xff][..], &[0xff; 4 * 0xffff]].concat();
        let kept = (0..1000).take_while(|_| sink.take(b'D', &nulls).is_ok()).count();
        assert!((100..=171).contains(&kept), "{kept}");
        let mut sink = Collect::default();
        assert!((0..12_000_000).any(|_| sink.take(b'D', b"\0\0").is_err()), "empty rows without end");
        // Each of its texts is an allocation.
        let mut sink = Collect::default();
        let short = [&[0xff, 0xff][..], &[0, 0, 0, 1, b'x'].repeat(0xffff)].concat();
        let kept = (0..1000).take_while(|_| sink.take(b'D', &short).is_ok()).count();
        assert!((50..=80).contains(&kept), "{kept}");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let (skimmed, _) = skim(&bytes);
            prop_assert!(skimmed <= bytes.len());
            let _ = Collect::default().take(b'D', &bytes);
        }
    }
}
