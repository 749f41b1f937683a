//! Writing: row groups as they come, then the footer.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};
use std::ops::Range;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::read::about;
use super::thrift::Out;
use super::{GROUP_NAMES, GROUP_ROWS, MAGIC, PAGE_MAX, ROWS_MAX, hybrid, number};
use crate::batch::{Batch, Column};
use crate::tables::{Kind, Table};

/// Different numbers of a column chunk up to which a dictionary pays.
const WORDS_MAX: usize = 1 << 12;

/// The longest text that bounds a column chunk, bytes.
const BOUND_BYTES: usize = 64;

/// A file in the making.
pub struct Writer<W: Write> {
    to: W,
    at: i64,
    table: &'static Table,
    groups: Vec<Group>,
    keys: Vec<(String, String)>,
    packs: bool,
}

struct Group {
    rows: i64,
    chunks: Vec<Chunk>,
}

/// A column of a row group.
struct Chunk {
    kind: i64,
    name: &'static str,
    encoding: i64,
    values: i64,
    plain_bytes: i64,
    bytes: i64,
    dictionary_at: Option<i64>,
    data_at: i64,
    /// The least and the largest value, as their bytes.
    bounds: Option<(Vec<u8>, Vec<u8>)>,
}

impl<W: Write> Writer<W> {
    /// Begins a file; `keys` are kept in its footer.
    ///
    /// # Errors
    /// Those of writing.
    pub fn new(mut to: W, table: &'static Table, keys: Vec<(String, String)>) -> io::Result<Writer<W>> {
        to.write_all(MAGIC)?;
        Ok(Writer { to, at: MAGIC.len() as i64, table, groups: Vec::new(), keys, packs: true })
    }

    /// The same without compression: two to three times as long, for files that are read again and again.
    #[must_use]
    pub fn without_compression(mut self) -> Writer<W> {
        self.packs = false;
        self
    }

    /// Writes rows as one row group, as several where they or their names are more than a reader takes, and none where there are
    /// none.
    ///
    /// # Errors
    /// Those of writing; `InvalidInput` for rows of another table, and for a name that no reader takes.
    pub fn group(&mut self, batch: &Batch) -> io::Result<()> {
        if batch.table().name != self.table.name {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if batch.is_empty() {
            return Ok(());
        }
        if batch.rows() <= ROWS_MAX && batch.names_bytes() <= 2 * GROUP_NAMES {
            return self.one(batch);
        }
        parts(batch).into_iter().try_for_each(|rows| self.one(&part(batch, rows)))
    }

    fn one(&mut self, batch: &Batch) -> io::Result<()> {
        let mut chunks = Vec::new();
        for (column, spec) in batch.columns().iter().zip(self.table.columns) {
            chunks.push(self.chunk(column, spec.name)?);
        }
        self.groups.push(Group { rows: batch.rows() as i64, chunks });
        Ok(())
    }

    /// How many row groups were written.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Writes the footer, and returns what was written to.
    ///
    /// # Errors
    /// Those of writing; `InvalidData` for a footer that no reader of weir's takes.
    pub fn finish(mut self) -> io::Result<W> {
        let mut end = self.footer();
        let length = end.len() as u32;
        end.extend_from_slice(&length.to_le_bytes());
        end.extend_from_slice(MAGIC);
        about(&end, "").map_err(|damaged| io::Error::new(io::ErrorKind::InvalidData, damaged.to_string()))?;
        self.to.write_all(&end)?;
        self.to.flush()?;
        Ok(self.to)
    }

    fn chunk(&mut self, column: &Column, name: &'static str) -> io::Result<Chunk> {
        let begin = self.at;
        let (words, data, encoding) = encoded(column);
        let mut plain_bytes = 0;
        let dictionary_at = words.as_ref().map(|_| self.at);
        if let Some((count, words)) = words {
            let mut header = Out::default();
            header.int32(1, count as i64).int32(2, number::PLAIN);
            plain_bytes += self.page(number::DICTIONARY_PAGE, 7, &mut header, &words)?;
        }
        let data_at = self.at;
        let mut header = Out::default();
        header.int32(1, column.len() as i64).int32(2, encoding).int32(3, number::RLE).int32(4, number::RLE);
        plain_bytes += self.page(number::DATA_PAGE, 5, &mut header, &data)?;
        Ok(Chunk {
            kind: kind(column.kind()),
            name,
            encoding,
            values: column.len() as i64,
            plain_bytes,
            bytes: self.at - begin,
            dictionary_at,
            data_at,
            bounds: bounds(column),
        })
    }

    /// Writes a page; returns how long it would be without compression.
    fn page(&mut self, kind: i64, field: i16, header: &mut Out, data: &[u8]) -> io::Result<i64> {
        if data.len() > PAGE_MAX {
            let what = format!("a page of {} bytes, {PAGE_MAX} at most", data.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let packed = if self.packs {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::new(6));
            encoder.write_all(data)?;
            Cow::Owned(encoder.finish()?)
        } else {
            Cow::Borrowed(data)
        };
        let mut page = Out::default();
        page.int32(1, kind).int32(2, data.len() as i64).int32(3, packed.len() as i64);
        let head = page.structure(field, header).end();
        self.to.write_all(&head)?;
        self.to.write_all(&packed)?;
        self.at += (head.len() + packed.len()) as i64;
        Ok((head.len() + data.len()) as i64)
    }

    fn footer(&self) -> Vec<u8> {
        let mut root = Out::default();
        root.binary(4, b"schema").int32(5, self.table.columns.len() as i64);
        let column = |spec: &crate::tables::Spec| {
            let mut element = Out::default();
            element.int32(1, kind(spec.kind)).int32(3, 0).binary(4, spec.name.as_bytes());
            if spec.kind == Kind::Text {
                // UTF8, in the old way and in the new.
                element.int32(6, 0).structure(10, Out::default().structure(1, &mut Out::default()));
            }
            element
        };
        let elements: Vec<Out> = [root].into_iter().chain(self.table.columns.iter().map(column)).collect();
        let key = |(key, value): &(String, String)| {
            let mut pair = Out::default();
            pair.binary(1, key.as_bytes()).binary(2, value.as_bytes());
            pair
        };
        // Without it, readers do not trust the bounds.
        let order = |_| {
            let mut order = Out::default();
            order.structure(1, &mut Out::default());
            order
        };
        let codec = if self.packs { number::GZIP } else { number::UNCOMPRESSED };
        let mut footer = Out::default();
        footer
            .int32(1, 1)
            .structures(2, elements.into_iter())
            .int64(3, self.groups.iter().map(|group| group.rows).sum())
            .structures(4, self.groups.iter().map(|group| group.footer(codec)))
            .structures(5, self.keys.iter().map(key))
            .binary(6, concat!("weir version ", env!("CARGO_PKG_VERSION")).as_bytes())
            .structures(7, self.table.columns.iter().map(order));
        footer.end()
    }
}

impl Group {
    fn footer(&self, codec: i64) -> Out {
        let mut group = Out::default();
        group
            .structures(1, self.chunks.iter().map(|chunk| chunk.footer(codec)))
            .int64(2, self.chunks.iter().map(|chunk| chunk.plain_bytes).sum())
            .int64(3, self.rows);
        group
    }
}

impl Chunk {
    fn footer(&self, codec: i64) -> Out {
        let mut meta = Out::default();
        meta.int32(1, self.kind)
            .numbers(2, &[number::PLAIN, number::RLE, self.encoding])
            .names(3, &[self.name])
            .int32(4, codec)
            .int64(5, self.values)
            .int64(6, self.plain_bytes)
            .int64(7, self.bytes)
            .int64(9, self.data_at);
        if let Some(at) = self.dictionary_at {
            meta.int64(11, at);
        }
        if let Some((least, most)) = &self.bounds {
            let mut bounds = Out::default();
            bounds.int64(3, 0).binary(5, most).binary(6, least);
            meta.structure(12, &mut bounds);
        }
        let mut chunk = Out::default();
        chunk.int64(2, self.dictionary_at.unwrap_or(self.data_at)).structure(3, &mut meta);
        chunk
    }
}

/// By them, a reader leaves row groups out. Long texts have none.
fn bounds(column: &Column) -> Option<(Vec<u8>, Vec<u8>)> {
    match column {
        Column::Integers(values) => {
            let (least, most) = (values.iter().min()?, values.iter().max()?);
            Some((least.to_le_bytes().to_vec(), most.to_le_bytes().to_vec()))
        }
        Column::Texts(texts) => {
            let (least, most) = (texts.words().iter().min()?, texts.words().iter().max()?);
            let is_short = least.len().max(most.len()) <= BOUND_BYTES;
            is_short.then(|| (least.as_bytes().to_vec(), most.as_bytes().to_vec()))
        }
    }
}

/// The rows of each row group, where they are too many for one.
fn parts(batch: &Batch) -> Vec<Range<usize>> {
    let lengths = |row| batch.columns().iter().map(move |column| column.text(row).len());
    let (mut parts, mut begin, mut held) = (Vec::new(), 0, vec![0; batch.columns().len()]);
    for row in 0..batch.rows() {
        held.iter_mut().zip(lengths(row)).for_each(|(held, length)| *held += length);
        let is_too_much = row - begin >= GROUP_ROWS || held.iter().any(|held| *held > GROUP_NAMES);
        if is_too_much && row > begin {
            parts.push(begin..row);
            begin = row;
            held = lengths(row).collect();
        }
    }
    parts.push(begin..batch.rows());
    parts
}

/// Some rows of a batch.
fn part(batch: &Batch, rows: Range<usize>) -> Batch {
    let mut part = Batch::new(batch.table());
    for (to, from) in part.columns_mut().iter_mut().zip(batch.columns()) {
        rows.clone().for_each(|row| match from {
            Column::Integers(_) => to.push_integer(from.integer(row)),
            Column::Texts(_) => to.push_text(from.text(row)),
        });
    }
    part
}

fn kind(kind: Kind) -> i64 {
    match kind {
        Kind::Integer => number::INT64,
        Kind::Text => number::BYTE_ARRAY,
    }
}

/// Count and bytes of a dictionary, where there is one; the data; and how that is encoded.
type Encoded = (Option<(usize, Vec<u8>)>, Vec<u8>, i64);

fn encoded(column: &Column) -> Encoded {
    match column {
        Column::Texts(texts) => {
            let mut words = Vec::new();
            for word in texts.words() {
                words.extend((word.len() as u32).to_le_bytes());
                words.extend(word.as_bytes());
            }
            by_dictionary((texts.words().len(), words), texts.codes())
        }
        Column::Integers(values) => match dictionary(values) {
            Some((words, codes)) => {
                let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                by_dictionary((words.len(), bytes), &codes)
            }
            None => (None, values.iter().flat_map(|value| value.to_le_bytes()).collect(), number::PLAIN),
        },
    }
}

fn by_dictionary(words: (usize, Vec<u8>), codes: &[u32]) -> Encoded {
    let width = hybrid::width(words.0).max(1);
    let mut data = vec![width as u8];
    hybrid::write(&mut data, codes, width);
    (Some(words), data, number::RLE_DICTIONARY)
}

/// The different numbers and their places, unless there are too many.
fn dictionary(values: &[i64]) -> Option<(Vec<i64>, Vec<u32>)> {
    let (mut words, mut places, mut codes) = (Vec::new(), HashMap::new(), Vec::with_capacity(values.len()));
    for value in values {
        let code = *places.entry(*value).or_insert_with(|| {
            words.push(*value);
            words.len() as u32 - 1
        });
        if words.len() > WORDS_MAX {
            return None;
        }
        codes.push(code);
    }
    Some((words, codes))
}
