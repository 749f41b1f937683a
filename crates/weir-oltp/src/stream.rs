//! The transactions of one connection, statement by statement, without allocating.

use super::keys::Keys;
use super::rows::{C_BYTES, PAD_BYTES, fill_groups, write_number};
use super::schema::{table_name, tables};
use super::statement_order::{self, Part};
use super::{Kind, OltpSpec, Script, Value, sql};
use weir_core::workload::rng::Rng;

/// Purposes of random streams, see [`Rng::new`]: the number of the connection is added to it.
const CONNECTION_PURPOSE: u64 = 0x636f_6e6e << 32;
/// An INSERT of many rows is ended at this length, as sysbench's are.
const BULK_BYTES: usize = 512 << 10;

/// One statement with its values.
#[derive(Debug)]
pub struct Step<'a> {
    /// What it does.
    pub kind: Kind,
    /// Against which table, from 0.
    pub table: u32,
    /// Its whole text, where that is never the same twice; else that of [`sql::template`], with the values in their
    /// places.
    pub text: Option<&'a str>,
    /// Rows in the text of an INSERT of many; else 1.
    pub rows: u64,
    few: [Value<'a>; 4],
    values: Count<'a>,
}

/// Where a step's values are.
#[derive(Debug, Clone, Copy)]
enum Count<'a> {
    Few(usize),
    Many(&'a [Value<'static>]),
}

impl Step<'_> {
    /// The values, in the order of their places.
    #[inline]
    pub fn values(&self) -> &[Value<'_>] {
        match self.values {
            Count::Few(count) => &self.few[..count],
            Count::Many(values) => values,
        }
    }
}

/// One connection among those of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seat {
    /// Its number, from 0.
    pub index: u32,
    /// How many there are.
    pub of: u32,
}

/// Makes the statements of a connection's transactions. The same seed, options and seat make the same statements.
pub struct Stream {
    script: Script,
    parts: Vec<Part>,
    at: usize,
    table: u32,
    tables: u32,
    range_last: i64,
    delta: i64,
    seat: Seat,
    keys: Keys,
    /// `k` of `select_random_points` and `select_random_ranges`: each connection has a part of its own.
    slice: Keys,
    rng: Rng,
    id: i64,
    /// Where this client numbers new rows: the last one's number, and whether it does.
    last_id: i64,
    many: Vec<Value<'static>>,
    c: [u8; C_BYTES],
    pad: [u8; PAD_BYTES],
    bulk: String,
    numbers_rows: bool,
    table_size: u64,
}

impl Stream {
    /// The transactions of a connection. `highest_id` is the largest number in use in any of the tables before the
    /// run; only scripts that number new rows themselves look at it.
    pub fn new(spec: &OltpSpec, seat: Seat, highest_id: u64) -> Stream {
        let slice = (spec.table_size / u64::from(seat.of.max(1))).max(1);
        let many = match spec.script {
            Script::SelectRandomPoints => spec.random_points,
            Script::SelectRandomRanges => spec.number_of_ranges * 2,
            _ => 0,
        };
        Stream {
            script: spec.script,
            parts: statement_order::of(spec),
            at: 0,
            table: 0,
            tables: tables(spec).max(1),
            range_last: i64::from(spec.range_size) - 1,
            delta: i64::from(spec.delta),
            seat,
            keys: Keys::new(spec.keys, spec.table_size),
            slice: Keys::within(spec.keys, (slice * u64::from(seat.index)).max(1), slice),
            rng: Rng::new(spec.seed, CONNECTION_PURPOSE | u64::from(seat.index)),
            id: 0,
            last_id: highest_id as i64
                + if spec.script == Script::Insert {
                    i64::from(seat.index) + 1 - i64::from(seat.of)
                } else {
                    0
                },
            many: vec![Value::Int(0); many as usize],
            c: [b'0'; C_BYTES],
            pad: [b'0'; PAD_BYTES],
            bulk: String::new(),
            numbers_rows: spec.script == Script::Insert && !sql::numbered_by_server(spec),
            table_size: spec.table_size,
        }
    }

    /// The next statement of the transaction; `None` after its last one, and the next call begins another.
    pub fn next_step(&mut self) -> Option<Step<'_>> {
        let Some(part) = self.parts.get(self.at).copied() else {
            self.at = 0;
            return None;
        };
        self.at += 1;
        if part.draws_table {
            self.table = self.draw_table();
        }
        Some(self.step(part.kind))
    }

    /// Leaves out the rest of the transaction: what comes next is the first statement of another.
    pub fn restart(&mut self) {
        self.at = 0;
    }

    fn draw_table(&mut self) -> u32 {
        match self.script {
            // Both ask the first table only, as sysbench's do.
            Script::SelectRandomPoints | Script::SelectRandomRanges => 0,
            // A table, and a row below, of its own: commits wait for the disk and never for each other's locks.
            Script::Commit | Script::BulkInsert => self.seat.index % self.tables,
            _ => self.rng.below(u64::from(self.tables)) as u32,
        }
    }

    fn step(&mut self, kind: Kind) -> Step<'_> {
        match kind {
            Kind::RandomPoints | Kind::RandomRanges => return self.many(kind),
            Kind::BulkInsert => return self.bulk(),
            _ => {}
        }
        let (few, count) = match kind {
            Kind::PointSelect | Kind::IndexUpdate => self.one_row(),
            Kind::Delete => {
                let drawn = self.one_row();
                if let Value::Int(id) = drawn.0[0] {
                    self.id = id;
                }
                drawn
            }
            Kind::SimpleRange | Kind::SumRange | Kind::OrderRange | Kind::DistinctRange => {
                let first = self.keys.draw(&mut self.rng);
                (ints([first, first + self.range_last]), 2)
            }
            Kind::NonIndexUpdate => return self.update(),
            Kind::Insert => return self.insert(),
            _ => (ints([0, 0]), 0),
        };
        Step { kind, table: self.table, text: None, rows: 1, few, values: Count::Few(count) }
    }

    fn one_row(&mut self) -> ([Value<'static>; 4], usize) {
        (ints([self.keys.draw(&mut self.rng), 0]), 1)
    }

    fn update(&mut self) -> Step<'_> {
        let id = if self.script == Script::Commit { self.own_row() } else { self.keys.draw(&mut self.rng) };
        fill_groups(&mut self.rng, &mut self.c);
        let few = [Value::Text(text(&self.c)), Value::Int(id), Value::Null, Value::Null];
        Step {
            kind: Kind::NonIndexUpdate,
            table: self.table,
            text: None,
            rows: 1,
            few,
            values: Count::Few(2),
        }
    }

    /// The row of this connection alone: rows of one table's connections lie as far apart as the table allows, so
    /// that they seldom share a page.
    fn own_row(&self) -> i64 {
        let mates = u64::from(self.seat.of.div_ceil(self.tables)).max(1);
        let place = u64::from(self.seat.index / self.tables);
        (place * (self.table_size / mates).max(1) % self.table_size) as i64 + 1
    }

    fn insert(&mut self) -> Step<'_> {
        let k = Value::Int(self.keys.draw(&mut self.rng));
        if self.numbers_rows {
            self.last_id += i64::from(self.seat.of);
            self.id = self.last_id;
        }
        fill_groups(&mut self.rng, &mut self.c);
        fill_groups(&mut self.rng, &mut self.pad);
        let (c, pad) = (Value::Text(text(&self.c)), Value::Text(text(&self.pad)));
        let (few, count) = if self.script == Script::Insert && !self.numbers_rows {
            ([k, c, pad, Value::Null], 3)
        } else {
            ([Value::Int(self.id), k, c, pad], 4)
        };
        Step { kind: Kind::Insert, table: self.table, text: None, rows: 1, few, values: Count::Few(count) }
    }

    fn many(&mut self, kind: Kind) -> Step<'_> {
        if kind == Kind::RandomPoints {
            for value in &mut self.many {
                *value = Value::Int(self.slice.draw(&mut self.rng));
            }
        } else {
            for range in self.many.chunks_exact_mut(2) {
                let first = self.slice.draw(&mut self.rng);
                range.copy_from_slice(&[Value::Int(first), Value::Int(first + self.delta)]);
            }
        }
        let values = Count::Many(&self.many);
        Step { kind, table: self.table, text: None, rows: 1, few: ints([0, 0]), values }
    }

    /// As many new rows as sysbench puts into one packet.
    fn bulk(&mut self) -> Step<'_> {
        let mut bytes = std::mem::take(&mut self.bulk).into_bytes();
        bytes.clear();
        bytes.extend_from_slice(b"INSERT INTO ");
        bytes.extend_from_slice(table_name(self.table).as_bytes());
        bytes.extend_from_slice(b" VALUES");
        let mut rows = 0;
        while bytes.len() < BULK_BYTES {
            self.last_id += 1;
            bytes.extend_from_slice(if rows == 0 { b"(" } else { b",(" });
            write_number(&mut bytes, self.last_id as u64);
            bytes.push(b',');
            write_number(&mut bytes, self.last_id as u64);
            bytes.push(b')');
            rows += 1;
        }
        // Digits and punctuation are UTF-8.
        self.bulk = String::from_utf8(bytes).unwrap_or_default();
        Step {
            kind: Kind::BulkInsert,
            table: self.table,
            text: Some(&self.bulk),
            rows,
            few: ints([0, 0]),
            values: Count::Few(0),
        }
    }
}

fn ints(values: [i64; 2]) -> [Value<'static>; 4] {
    [Value::Int(values[0]), Value::Int(values[1]), Value::Null, Value::Null]
}

/// Digits and dashes are ASCII.
fn text(digits: &[u8]) -> &str {
    std::str::from_utf8(digits).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dialect;

    /// A transaction as the text of its statements.
    fn transaction(stream: &mut Stream, spec: &OltpSpec) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(step) = stream.next_step() {
            let mut text = String::new();
            match step.text {
                Some(whole) => text.push_str(whole),
                None => {
                    let template = sql::template(spec, Dialect::MySql, step.kind, step.table).unwrap();
                    assert_eq!(template.matches('?').count(), step.values().len(), "{template}");
                    sql::with_values(Dialect::MySql, &template, step.values(), &mut text);
                }
            }
            all.push(text);
        }
        all
    }

    fn id_of(statement: &str) -> u64 {
        let after = statement.rsplit_once("id=").or_else(|| statement.rsplit_once("VALUES (")).unwrap().1;
        after.split(',').next().unwrap().parse().unwrap()
    }

    #[test]
    fn a_transaction_is_sysbenchs() {
        let spec = OltpSpec { tables: 3, table_size: 500, ..OltpSpec::default() };
        let mut stream = Stream::new(&spec, Seat { index: 0, of: 4 }, 0);
        for _ in 0..50 {
            let all = transaction(&mut stream, &spec);
            assert_eq!(all.len(), 20, "{all:#?}");
            assert_eq!((all[0].as_str(), all[19].as_str()), ("BEGIN", "COMMIT"));
            let table = |text: &str| {
                text.split_once("sbtest").unwrap().1.split([' ', '(']).next().unwrap().to_string()
            };
            assert!(all[1..11].iter().all(|text| table(text) == table(&all[1])), "{all:#?}");
            assert_eq!((table(&all[17]), id_of(&all[17])), (table(&all[18]), id_of(&all[18])));
            for range in &all[11..15] {
                let words: Vec<&str> = range.split(' ').collect();
                let between = words.iter().position(|word| *word == "BETWEEN").unwrap();
                let bound = |at: usize| words[between + at].parse::<u64>().unwrap();
                assert_eq!(bound(3) - bound(1), 99, "{range}");
                assert!((1..=500).contains(&bound(1)), "{range}");
            }
        }
    }

    #[test]
    fn seeds_and_seats_decide_and_nothing_else() {
        let spec = OltpSpec { tables: 2, ..OltpSpec::default() };
        let first =
            |spec: &OltpSpec, index| transaction(&mut Stream::new(spec, Seat { index, of: 2 }, 0), spec);
        assert_eq!(first(&spec, 0), first(&spec, 0));
        assert_ne!(first(&spec, 0), first(&spec, 1));
        assert_ne!(first(&spec, 0), first(&OltpSpec { seed: 1, ..spec.clone() }, 0));
    }

    #[test]
    fn new_rows_that_clients_number_are_never_numbered_twice() {
        let spec = OltpSpec { script: Script::Insert, auto_inc: false, ..OltpSpec::default() };
        let mut ids: Vec<u64> = (0..3)
            .flat_map(|index| {
                let mut stream = Stream::new(&spec, Seat { index, of: 3 }, 10_000);
                (0..5).map(|_| id_of(&transaction(&mut stream, &spec)[0])).collect::<Vec<_>>()
            })
            .collect();
        ids.sort_unstable();
        assert_eq!(ids, (10_001..=10_015).collect::<Vec<_>>());
    }

    #[test]
    fn commits_of_different_connections_touch_different_rows() {
        for (tables, table_size, of) in [(1, 100, 100), (4, 10_000, 16), (3, 5, 13)] {
            let spec = OltpSpec { script: Script::Commit, tables, table_size, ..OltpSpec::default() };
            let mut rows: Vec<(u32, u64)> = (0..of)
                .map(|index| {
                    let all = transaction(&mut Stream::new(&spec, Seat { index, of }, 0), &spec);
                    assert_eq!(all.len(), 3, "{all:?}");
                    (index % tables, id_of(&all[1]))
                })
                .collect();
            rows.sort_unstable();
            rows.dedup();
            assert_eq!(rows.len(), of as usize, "{tables} tables, {of} connections: {rows:?}");
            assert!(rows.iter().all(|(_, id)| (1..=table_size).contains(id)), "{rows:?}");
        }
    }

    #[test]
    fn bulk_inserts_go_on_where_the_last_one_ended() {
        let spec = OltpSpec { script: Script::BulkInsert, threads: 2, ..OltpSpec::default() };
        let mut stream = Stream::new(&spec, Seat { index: 1, of: 2 }, 7);
        let rows = stream.next_step().map(|step| step.rows).unwrap();
        assert!(stream.next_step().is_none());
        let step = stream.next_step().unwrap();
        let text = step.text.unwrap();
        assert!(
            text.starts_with(&format!("INSERT INTO sbtest2 VALUES({0},{0}),(", 7 + rows + 1)),
            "{text:.60}"
        );
        assert_eq!(step.rows as usize, text.matches('(').count());
        assert!((BULK_BYTES..BULK_BYTES + 64).contains(&text.len()), "{}", text.len());
    }

    #[test]
    fn each_connection_has_its_part_of_the_points() {
        let spec = OltpSpec { script: Script::SelectRandomPoints, table_size: 1000, ..OltpSpec::default() };
        for index in 0..4 {
            let mut stream = Stream::new(&spec, Seat { index, of: 4 }, 0);
            let low = i64::from(index) * 250;
            for _ in 0..20 {
                let step = stream.next_step().unwrap();
                assert_eq!((step.table, step.values().len()), (0, 10));
                for value in step.values() {
                    assert!(matches!(value, Value::Int(k) if (low..=low + 250).contains(k)), "{value:?}");
                }
                assert!(stream.next_step().is_none());
            }
        }
    }
}
