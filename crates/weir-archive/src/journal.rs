//! The open segment: frames appended one an interval, each whole or not there. A torn tail, as a kill or a failure of the power
//! leaves it, loses itself only.

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use crate::Damaged;
use crate::batch::{Batch, Column, Texts};
use crate::parquet::thrift::{In, unzigzag, varint, zigzag};
use crate::tables::{Kind, Spec, TABLES};

/// What a journal begins with.
pub const MAGIC: &[u8; 8] = b"WEIRJNL1";

/// The longest frame, unpacked.
const FRAME_MAX: usize = 64 << 20;

/// The most cells of a frame. A column that an older version lacks takes no byte of it, and 8 in memory: together no more than the
/// longest frame.
const CELLS_MAX: usize = FRAME_MAX / 8;

/// A frame: its length, then rows of all tables, compressed by gzip, whose checksum shows damage.
///
/// # Errors
/// Where it would be longer or have more rows than a reader takes, and for two batches of one table.
pub fn frame(batches: &[Batch]) -> Result<Vec<u8>, Damaged> {
    let (mut plain, mut seen) = (Vec::new(), Seen::default());
    for batch in batches.iter().filter(|batch| !batch.is_empty()) {
        let place = TABLES.iter().position(|table| table.name == batch.table().name).unwrap_or(0);
        seen.once(place, batch.rows(), plain.len())?;
        varint(&mut plain, place as u64);
        varint(&mut plain, batch.columns().len() as u64);
        varint(&mut plain, batch.rows() as u64);
        batch.columns().iter().for_each(|column| put(&mut plain, column));
    }
    if plain.len() > FRAME_MAX {
        return Err(Damaged::new(0, format!("a frame of {} bytes, {FRAME_MAX} at most", plain.len())));
    }
    let mut encoder = GzEncoder::new(vec![0; 4], Compression::fast());
    let packed = encoder.write_all(&plain).and_then(|()| encoder.finish());
    let mut packed = packed.map_err(|error| Damaged::new(0, error.to_string()))?;
    let length = (packed.len() - 4) as u32;
    packed[..4].copy_from_slice(&length.to_le_bytes());
    Ok(packed)
}

/// Which tables a frame has, and how many cells: a batch takes many times the bytes of a short one in a frame, so that both have a
/// bound.
#[derive(Default)]
struct Seen {
    tables: [bool; TABLES.len()],
    cells: usize,
}

impl Seen {
    fn once(&mut self, place: usize, rows: usize, at: usize) -> Result<(), Damaged> {
        match self.tables.get_mut(place) {
            Some(seen) if !*seen => *seen = true,
            _ => return Err(Damaged::new(at, "a table that a frame has twice")),
        }
        self.cells = self.cells.saturating_add(rows.saturating_mul(TABLES[place].columns.len()));
        match self.cells > CELLS_MAX {
            true => Err(Damaged::new(at, format!("a frame of more than {CELLS_MAX} cells"))),
            false => Ok(()),
        }
    }
}

fn put(to: &mut Vec<u8>, column: &Column) {
    match column {
        Column::Integers(values) => {
            let mut before = 0_i64;
            for value in values {
                varint(to, zigzag(value.wrapping_sub(before)));
                before = *value;
            }
        }
        Column::Texts(texts) => {
            varint(to, texts.words().len() as u64);
            for word in texts.words() {
                varint(to, word.len() as u64);
                to.extend(word.as_bytes());
            }
            texts.codes().iter().for_each(|code| varint(to, u64::from(*code)));
        }
    }
}

/// Why a journal is read no further.
#[derive(Debug, thiserror::Error)]
pub enum Cut {
    /// It is another file: its first bytes say so.
    #[error(transparent)]
    Foreign(Damaged),
    /// Its last frame is not whole, as a kill leaves it.
    #[error(transparent)]
    Torn(Damaged),
    /// Bytes were lost or changed, or a later version of weir wrote it.
    #[error(transparent)]
    Damaged(Damaged),
    /// It could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reads frame after frame of a journal.
pub struct Frames<R> {
    from: R,
    at: usize,
    begun: bool,
}

impl<R: Read> Frames<R> {
    /// Of a journal from its start.
    pub fn new(from: R) -> Frames<R> {
        Frames { from, at: 0, begun: false }
    }

    /// The next frame; `None` at the end.
    ///
    /// # Errors
    /// Why there is none though it is not the end: what came before holds.
    #[allow(clippy::should_implement_trait, reason = "after an error there is no next frame")]
    pub fn next(&mut self) -> Result<Option<Vec<Batch>>, Cut> {
        if !self.begun {
            self.begun = true;
            let mut magic = [0; 8];
            let held = self.fill(&mut magic)?;
            if held == 0 {
                return Ok(None);
            }
            if !MAGIC.starts_with(&magic[..held]) {
                return Err(Cut::Foreign(Damaged::new(0, "expected a journal of weir's recorder")));
            }
            if held < MAGIC.len() {
                return Err(self.torn());
            }
        }
        let mut length = [0; 4];
        match self.fill(&mut length)? {
            0 => return Ok(None),
            4 => {}
            _ => return Err(self.torn()),
        }
        let length = u32::from_le_bytes(length) as usize;
        if length > FRAME_MAX {
            return Err(self.damaged("a frame longer than any that weir writes"));
        }
        let mut packed = Vec::new();
        (&mut self.from).take(length as u64).read_to_end(&mut packed)?;
        let mut plain = Vec::new();
        let unpacked = GzDecoder::new(&packed[..]).take(FRAME_MAX as u64).read_to_end(&mut plain);
        if packed.len() < length {
            // A whole frame that is called longer than all that follows hides others.
            return Err(if unpacked.is_ok() { self.damaged("the length of a frame") } else { self.torn() });
        }
        unpacked.map_err(|error| self.damaged(&format!("a frame cannot be unpacked: {error}")))?;
        let batches = batches(&plain).map_err(|damaged| self.damaged(&damaged.what))?;
        self.at += length;
        Ok(Some(batches))
    }

    fn torn(&self) -> Cut {
        Cut::Torn(Damaged::new(self.at, "the last frame is torn"))
    }

    fn damaged(&self, what: &str) -> Cut {
        Cut::Damaged(Damaged::new(self.at, what))
    }

    /// How much of it could be filled.
    fn fill(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let mut held = 0;
        while held < to.len() {
            match self.from.read(&mut to[held..]) {
                Ok(0) => break,
                Ok(read) => held += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.at += held;
        Ok(held)
    }
}

fn batches(plain: &[u8]) -> Result<Vec<Batch>, Damaged> {
    let (mut from, mut batches, mut seen) = (In::new(plain, 0), Vec::new(), Seen::default());
    while from.at() < plain.len() {
        let place = usize::try_from(from.varint()?).unwrap_or(usize::MAX);
        let Some(table) = TABLES.get(place) else {
            return from.damaged("a table that this weir does not know");
        };
        let held = usize::try_from(from.varint()?).unwrap_or(usize::MAX);
        if held == 0 || held > table.columns.len() {
            return from.damaged("a table of other columns, of a later version of weir");
        }
        let rows = from.length()?;
        if rows == 0 {
            return from.damaged("a table without rows");
        }
        seen.once(place, rows, from.at())?;
        // New columns come last.
        let column = |(place, spec): (usize, &Spec)| match place < held {
            true => take(&mut from, spec.kind, rows),
            false => Ok(Column::absent(spec.kind, rows)),
        };
        let columns = table.columns.iter().enumerate().map(column).collect::<Result<_, _>>()?;
        match Batch::of_columns(table, columns) {
            Some(batch) => batches.push(batch),
            None => return from.damaged("columns of unequal lengths"),
        }
    }
    Ok(batches)
}

fn take(from: &mut In<'_>, kind: Kind, rows: usize) -> Result<Column, Damaged> {
    match kind {
        Kind::Integer => {
            let (mut column, mut before) = (Column::new(kind), 0_i64);
            for _ in 0..rows {
                before = before.wrapping_add(unzigzag(from.varint()?));
                column.push_integer(before);
            }
            Ok(column)
        }
        Kind::Text => {
            let count = from.length()?;
            if count > rows {
                return from.damaged("more names than rows");
            }
            let mut words = Vec::new();
            for _ in 0..count {
                let length = from.length()?;
                words.push(String::from_utf8_lossy(from.take(length)?).into_owned());
            }
            let code = |from: &mut In<'_>| Ok(u32::try_from(from.varint()?).unwrap_or(u32::MAX));
            let codes: Vec<u32> = (0..rows).map(|_| code(from)).collect::<Result<_, Damaged>>()?;
            let mut texts = Texts::default();
            if !texts.extend(&words, &codes) {
                return from.damaged("a name that is not there");
            }
            match texts.bytes() > FRAME_MAX {
                true => from.damaged("names longer than a frame"),
                false => Ok(Column::Texts(texts)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tables::{Counter, Event, Row};

    fn frames(bytes: impl Read) -> (Vec<Vec<Batch>>, Option<Cut>) {
        let (mut reader, mut found) = (Frames::new(bytes), Vec::new());
        loop {
            match reader.next() {
                Ok(Some(batches)) => found.push(batches),
                Ok(None) => return (found, None),
                Err(cut) => return (found, Some(cut)),
            }
        }
    }

    fn interval(n: i64) -> Vec<Batch> {
        let counters = [0, 1, n].map(|value| Counter {
            ts_ms: 1_764_000_000_000 + n * 10_000,
            span_ms: 10_000,
            device: "sda".into(),
            name: format!("name{value}"),
            value,
        });
        let event = Event { ts_ms: n, kind: "start".into(), detail: "{}".into(), ..Event::default() };
        vec![Counter::batch(&counters), Event::batch(&[event])]
    }

    proptest! {
        #[test]
        fn a_torn_tail_loses_itself_only(count in 1_i64..6, cut in any::<prop::sample::Index>()) {
            let whole: Vec<Vec<u8>> = (0..count).map(|n| frame(&interval(n)).unwrap()).collect();
            let bytes = [MAGIC.to_vec(), whole.concat()].concat();
            let (all, damage) = frames(&bytes[..]);
            prop_assert_eq!(&all, &(0..count).map(interval).collect::<Vec<_>>());
            prop_assert!(damage.is_none());
            let cut = cut.index(bytes.len());
            let (some, damage) = frames(&bytes[..cut]);
            prop_assert!(matches!(damage, None | Some(Cut::Torn(_))), "{:?}", damage);
            let mut end = MAGIC.len();
            let held = whole.iter().take_while(|frame| { end += frame.len(); end <= cut }).count();
            prop_assert_eq!(&some[..], &all[..held]);
        }

        #[test]
        fn damage_never_panics_and_nothing_before_it_is_lost(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let first = frame(&interval(1)).unwrap();
            let mut bytes = [MAGIC.to_vec(), first.clone(), frame(&interval(2)).unwrap()].concat();
            let at = MAGIC.len() + first.len() + at.index(bytes.len() - MAGIC.len() - first.len());
            bytes[at] = byte;
            prop_assert_eq!(&frames(&bytes[..]).0[0], &interval(1));
        }
    }

    /// A journal of one frame that says this.
    fn saying(plain: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(plain).unwrap();
        let packed = encoder.finish().unwrap();
        [&MAGIC[..], &(packed.len() as u32).to_le_bytes(), &packed].concat()
    }

    /// A table's rows in a frame, all alike: 0, and the empty name, which is the first of so many.
    fn rows_of(table: u8, rows: u8, words: u8) -> Vec<u8> {
        let columns = TABLES[usize::from(table)].columns;
        let column = |kind| match kind {
            Kind::Integer => vec![0; rows.into()],
            Kind::Text => [vec![words], vec![0; words.into()], vec![0; rows.into()]].concat(),
        };
        let columns_read = columns.iter().flat_map(|spec| column(spec.kind));
        [table, columns.len() as u8, rows].into_iter().chain(columns_read).collect()
    }

    #[test]
    fn a_frame_has_each_table_once_and_no_empty_ones() {
        let all: Vec<u8> = (0..TABLES.len() as u8).flat_map(|table| rows_of(table, 2, 1)).collect();
        let (read, damage) = frames(&saying(&all)[..]);
        assert_eq!((read[0].len(), damage.is_none()), (TABLES.len(), true));
        for (plain, why) in [
            (rows_of(0, 0, 0), "without rows"),
            (rows_of(0, 0, 0).repeat(1000), "without rows"),
            ([rows_of(5, 1, 1), rows_of(0, 1, 1), rows_of(5, 1, 1)].concat(), "twice"),
            (rows_of(5, 1, 200), "more names than rows"),
        ] {
            let (read, damage) = frames(&saying(&plain)[..]);
            let why_not = damage.map_or(String::new(), |cut| cut.to_string());
            assert!(read.is_empty() && why_not.contains(why), "{why}: {why_not}");
        }
        // The writer keeps to it.
        let [counters, _] = &interval(1)[..] else { panic!("two tables") };
        let twice = frame(&[counters.clone(), counters.clone()]).unwrap_err();
        assert!(twice.what.contains("twice"), "{twice}");
        let empty = [MAGIC.to_vec(), frame(&[Event::batch(&[])]).unwrap()].concat();
        assert_eq!(frames(&empty[..]).0, [vec![]]);
    }

    /// Columns that are not there take no byte: a kilobyte would fill the memory.
    #[test]
    fn a_frame_has_no_more_cells_than_its_reader_takes() {
        let place = TABLES.iter().position(|table| table.name == "behind").unwrap();
        let most = CELLS_MAX / TABLES[place].columns.len();
        let mut plain = vec![place as u8, 1];
        varint(&mut plain, most as u64 + 1);
        plain.resize(plain.len() + most + 1, 0);
        let (read, damage) = frames(&saying(&plain)[..]);
        assert!(read.is_empty() && damage.unwrap().to_string().contains("cells"));
        let mut seen = Seen::default();
        seen.once(place, most, 0).unwrap();
        assert!(seen.once(0, most, 0).is_err(), "of all tables together");
    }

    #[test]
    fn what_is_no_journal_is_said_to_be_none() {
        assert!(matches!(frames(&b""[..]), (read, None) if read.is_empty()));
        let foreign = frames(&b"PAR1PAR1"[..]).1;
        assert!(matches!(&foreign, Some(Cut::Foreign(why)) if why.what.contains("expected a journal")));
        assert!(matches!(frames(&b"WEIR"[..]).1, Some(Cut::Torn(_))));
        let long = [MAGIC.to_vec(), vec![255; 9]].concat();
        assert!(matches!(frames(&long[..]).1, Some(Cut::Damaged(_))));
    }

    crate::table! {
        /// As an older version had it.
        Before = "counters" { ts_ms: i64, span_ms: i64, device: String, }
    }

    crate::table! {
        /// As a later version may have it.
        Later = "counters" { ts_ms: i64, span_ms: i64, device: String, name: String, value: i64, more: String, }
    }

    #[test]
    fn columns_that_an_older_version_lacks_are_empty_and_those_of_a_later_one_are_no_torn_tail() {
        let before = Before { ts_ms: 5, span_ms: 7, device: "sda".into() };
        let bytes = [MAGIC.to_vec(), frame(&[Before::batch(&[before])]).unwrap()].concat();
        let expected = Counter { ts_ms: 5, span_ms: 7, device: "sda".into(), ..Counter::default() };
        assert_eq!(frames(&bytes[..]).0, [vec![Counter::batch(&[expected])]]);
        let later = frame(&[Later::batch(&[Later::default()])]).unwrap();
        let bytes = [MAGIC.to_vec(), frame(&interval(1)).unwrap(), later].concat();
        let (read, cut) = frames(&bytes[..]);
        assert_eq!(read, [interval(1)]);
        assert!(matches!(&cut, Some(Cut::Damaged(why)) if why.at > MAGIC.len()), "{cut:?}");
    }

    #[test]
    fn a_length_that_is_damaged_is_no_torn_tail() {
        let mut bytes = [MAGIC.to_vec(), frame(&interval(1)).unwrap(), frame(&interval(2)).unwrap()].concat();
        bytes[MAGIC.len() + 2] = 1;
        assert!(matches!(frames(&bytes[..]).1, Some(Cut::Damaged(_))));
    }

    #[test]
    fn a_reader_that_fails_is_no_damage() {
        struct Fails;
        impl Read for Fails {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::InvalidInput.into())
            }
        }
        let bytes = [MAGIC.to_vec(), frame(&interval(1)).unwrap()].concat();
        let (read, cut) = frames(bytes.chain(Fails));
        assert!(read == [interval(1)] && matches!(cut, Some(Cut::Io(_))), "{cut:?}");
    }
}
