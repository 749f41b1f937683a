//! Reading. A file may be torn, damaged or another's: every length is held against what is there.

use std::io::Read;
use std::ops::ControlFlow;

use flate2::read::GzDecoder;

use super::thrift::{In, Value};
use super::{FOOTER_MAX, MAGIC, PAGE_MAX, ROWS_MAX, hybrid, number};
use crate::Damaged;
use crate::batch::{Batch, Column};
use crate::tables::{Kind, Table};

/// Rows that a byte of a file may hold beside those of its first row group. An interval has a time of its own, so that files of
/// weir's hold less than a third of it even where nothing happens.
const ROWS_PER_BYTE: usize = 64;
/// Bytes of pages that are unpacked of a file beyond its own length: a page counts as often as it is read. A recorder's segment
/// has a tenth of it.
const UNPACKED_MAX: usize = 256 << 20;
/// Bytes that a page counts for beside its own: what it takes to begin one, so that very short ones are few, too.
const PAGE_BYTES: usize = 1 << 10;
/// Values of a footer. A row group of weir's has some 200.
const FOOTER_VALUES: usize = 1 << 18;
/// Values of a page's header. Those of parquet.thrift have 20 with all statistics.
const HEADER_VALUES: usize = 64;

/// Reads a table's rows, row group by row group, as long as they are wanted. A column that the file lacks is 0 or empty; one
/// that the table lacks is left out.
///
/// # Errors
/// Where the file is damaged, or not of this part of Parquet.
pub fn read(
    bytes: &[u8],
    table: &'static Table,
    mut each: impl FnMut(Batch) -> ControlFlow<()>,
) -> Result<(), Damaged> {
    let footer = footer(bytes)?;
    let mut left = ROWS_MAX.saturating_add(bytes.len().saturating_mul(ROWS_PER_BYTE));
    let mut unpacked = UNPACKED_MAX.saturating_add(bytes.len());
    for group in footer.list(4) {
        let rows = length(group.number(3), ROWS_MAX, "rows of a row group")?;
        left = left
            .checked_sub(rows.max(1))
            .ok_or_else(|| Damaged::new(bytes.len(), "more rows than so few bytes hold"))?;
        let mut columns = Vec::new();
        for spec in table.columns {
            let chunk = group.list(1).iter().find(|chunk| is_called(chunk, spec.name));
            columns.push(match chunk.and_then(|chunk| chunk.field(3)) {
                Some(meta) => column(bytes, meta, spec.kind, rows, &mut unpacked)?,
                None => Column::absent(spec.kind, rows),
            });
        }
        let Some(batch) = Batch::of_columns(table, columns) else {
            return Err(Damaged::new(bytes.len(), "columns of unequal lengths"));
        };
        if each(batch).is_break() {
            break;
        }
    }
    Ok(())
}

/// What the footer of a file says: rows, and the value of a key. The bytes may be the last ones of the file only, if they hold the footer.
///
/// # Errors
/// Where there is no whole footer.
pub fn about(end: &[u8], key: &str) -> Result<(i64, Option<String>), Damaged> {
    let footer = footer_at(end)?;
    let rows = footer.number(3).filter(|rows| *rows >= 0);
    let rows = rows.ok_or_else(|| Damaged::new(end.len(), "a footer without rows"))?;
    let text = |value: Option<&Value<'_>>| match value {
        Some(Value::Bytes(bytes)) => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    };
    let pair = footer.list(5).iter().find(|pair| text(pair.field(1)).as_deref() == Some(key));
    Ok((rows, pair.and_then(|pair| text(pair.field(2)))))
}

fn footer(bytes: &[u8]) -> Result<Value<'_>, Damaged> {
    if !bytes.starts_with(MAGIC) {
        return Err(Damaged::new(0, "expected a whole Parquet file (PAR1 at both ends)"));
    }
    footer_at(bytes)
}

fn footer_at(bytes: &[u8]) -> Result<Value<'_>, Damaged> {
    let end = bytes.len().checked_sub(8).filter(|_| bytes.ends_with(MAGIC));
    let Some(end) = end else {
        return Err(Damaged::new(bytes.len(), "expected a whole Parquet file (PAR1 at both ends)"));
    };
    let said = [bytes[end], bytes[end + 1], bytes[end + 2], bytes[end + 3]];
    let length = u32::from_le_bytes(said) as usize;
    if length > FOOTER_MAX {
        return Err(Damaged::new(end, format!("a footer of {length} bytes, {FOOTER_MAX} at most")));
    }
    let begin = end.checked_sub(length);
    let Some(begin) = begin else { return Err(Damaged::new(end, "a footer longer than the file")) };
    In::new(&bytes[..end], begin).structure(FOOTER_VALUES)
}

fn is_called(chunk: &Value<'_>, name: &str) -> bool {
    let path = chunk.field(3).map_or(&[][..], |meta| meta.list(3));
    matches!(path, [Value::Bytes(only)] if *only == name.as_bytes())
}

fn length(said: Option<i64>, most: usize, of: &str) -> Result<usize, Damaged> {
    let length = said.and_then(|said| usize::try_from(said).ok()).filter(|length| *length <= most);
    length.ok_or_else(|| Damaged::new(0, format!("{of}: expected 0 to {most}, got {said:?}")))
}

/// The different values of a column chunk.
enum Words {
    Integers(Vec<i64>),
    Texts(Vec<String>),
}

/// A column chunk; its pages are taken from what is left to be unpacked.
fn column(
    bytes: &[u8],
    meta: &Value<'_>,
    kind: Kind,
    rows: usize,
    left: &mut usize,
) -> Result<Column, Damaged> {
    let expected = if kind == Kind::Integer { number::INT64 } else { number::BYTE_ARRAY };
    if meta.number(1) != Some(expected) {
        return Err(Damaged::new(0, format!("expected type {expected}, got {:?}", meta.number(1))));
    }
    let codec = meta.number(4).unwrap_or(-1);
    let begin = [meta.number(11), meta.number(9)].into_iter().flatten().filter(|at| *at > 0).min();
    let mut from = In::new(bytes, length(begin, bytes.len(), "the place of a column")?);
    let (mut column, mut words) = (Column::new(kind), None);
    while column.len() < rows {
        let header_at = from.at();
        let head = from.structure(HEADER_VALUES)?;
        let packed_length = length(head.number(3), bytes.len(), "the length of a page")?;
        let plain_length = length(head.number(2), PAGE_MAX, "the length of a page")?;
        let at = from.at();
        // Columns may share pages: a header, too, is read as often as a column points at it.
        let read = PAGE_BYTES.saturating_add(at - header_at).saturating_add(packed_length.max(plain_length));
        *left = left
            .checked_sub(read)
            .ok_or_else(|| Damaged::new(at, "more than so few bytes hold, unpacked"))?;
        let page = unpacked(from.take(packed_length)?, plain_length, codec, at)?;
        let mut data = In::new(&page, 0);
        match (head.number(1), head.field(5), head.field(7)) {
            (Some(number::DICTIONARY_PAGE), _, Some(inner)) if words.is_none() => {
                let count = length(inner.number(1), rows, "words of a dictionary")?;
                words = Some(plain(&mut data, kind, count)?);
            }
            (Some(number::DATA_PAGE), Some(inner), _) => {
                let count = length(inner.number(1), rows - column.len(), "values of a page")?;
                if count == 0 {
                    return Err(Damaged::new(at, "a page without values"));
                }
                values(&mut column, &mut data, inner.number(2), words.as_ref(), count)?;
            }
            _ => return Err(Damaged::new(at, "a page of a kind that weir does not write")),
        }
    }
    // As it would be in a plain page.
    let texts = if let Column::Texts(texts) = &column { texts.bytes() } else { 0 };
    length(i64::try_from(texts).ok(), PAGE_MAX, "bytes of the names in a column")?;
    Ok(column)
}

fn unpacked(packed: &[u8], length: usize, codec: i64, at: usize) -> Result<Vec<u8>, Damaged> {
    let mut page = Vec::new();
    match codec {
        number::UNCOMPRESSED => page.extend(packed),
        number::GZIP => {
            let read = GzDecoder::new(packed).take(length as u64 + 1).read_to_end(&mut page);
            read.map_err(|error| Damaged::new(at, format!("a page cannot be unpacked: {error}")))?;
        }
        other => return Err(Damaged::new(at, format!("compression {other}, which weir does not read"))),
    }
    if page.len() == length {
        Ok(page)
    } else {
        Err(Damaged::new(at, "a page of another length than it says"))
    }
}

fn plain(from: &mut In<'_>, kind: Kind, count: usize) -> Result<Words, Damaged> {
    match kind {
        Kind::Integer => Ok(Words::Integers((0..count).map(|_| integer(from)).collect::<Result<_, _>>()?)),
        Kind::Text => Ok(Words::Texts((0..count).map(|_| text(from)).collect::<Result<_, _>>()?)),
    }
}

fn integer(from: &mut In<'_>) -> Result<i64, Damaged> {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(from.take(8)?);
    Ok(i64::from_le_bytes(bytes))
}

fn text(from: &mut In<'_>) -> Result<String, Damaged> {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(from.take(4)?);
    let word = from.take(u32::from_le_bytes(bytes) as usize)?;
    Ok(String::from_utf8_lossy(word).into_owned())
}

fn values(
    column: &mut Column,
    from: &mut In<'_>,
    encoding: Option<i64>,
    words: Option<&Words>,
    count: usize,
) -> Result<(), Damaged> {
    match encoding {
        Some(number::PLAIN) => match plain(from, column.kind(), count)? {
            Words::Integers(values) => values.into_iter().for_each(|value| column.push_integer(value)),
            Words::Texts(values) => values.iter().for_each(|value| column.push_text(value)),
        },
        Some(number::RLE_DICTIONARY | number::PLAIN_DICTIONARY) => {
            let width = u32::from(from.byte()?);
            let places = hybrid::read(from, count, width)?;
            let all_known = match (words, column) {
                (Some(Words::Texts(words)), Column::Texts(texts)) => texts.extend(words, &places),
                (Some(Words::Integers(words)), Column::Integers(values)) => {
                    let known = places.iter().map_while(|place| words.get(*place as usize));
                    values.extend(known);
                    places.iter().all(|place| (*place as usize) < words.len())
                }
                _ => false,
            };
            if !all_known {
                return from.damaged("a place beyond the dictionary");
            }
        }
        other => return from.damaged(&format!("encoding {other:?}, which weir does not read")),
    }
    Ok(())
}
