//! Tables made and filled.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};

use weir_core::stop::Stop;
use weir_oltp::schema::{self, Mark, table_name};
use weir_oltp::{Dialect, OltpSpec, Script};

use super::catalog::{self, Table};
use super::fill::{Filling, Way};
use super::{Event, LoadOptions, Progress, crew, unless_stopped};
use crate::connection::Connection;
use crate::error::DbError;
use crate::runner::lock;
use crate::server::Server;

/// What came of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Tables made.
    pub made: u32,
    /// Tables that were there already, whole and of the right size.
    pub found: u32,
    /// Rows loaded.
    pub rows: u64,
    /// How, where there were any.
    pub way: Option<Way>,
}

/// Makes the tables of a workload and fills them, several at a time; where connections are more than tables, several fill
/// one. Tables of weir's that are there, whole and of the right size, are left as they are; unfinished ones are made anew;
/// others are refused before anything is done. Removes what this call has made when it fails or is asked to stop.
pub fn prepare(
    spec: &OltpSpec,
    server: &Server,
    options: &LoadOptions,
    progress: Progress<'_>,
    stop: &Stop,
) -> Result<Loaded, DbError> {
    let mut connection = Connection::open(server)?;
    let found = catalog::tables(&mut connection)?;
    let tables = to_make(spec, found, options)?;
    let loaded =
        Mutex::new(Loaded { found: schema::tables(spec) - tables.len() as u32, ..Loaded::default() });
    let parts = parts(spec, &tables, options.threads);
    let result = crew::each(server, options.threads, &parts, stop, &|connection, part| {
        Work { spec, options, progress, stop, loaded: &loaded }.part(connection, part)
    });
    if let Err(error) = result {
        drop_again(server, &mut connection, &tables);
        return Err(error);
    }
    Ok(*lock(&loaded))
}

/// Whether this call has made a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    No,
    /// The server was told to, and the answer does not say that nothing came of it.
    Perhaps,
    Yes,
}

impl Made {
    /// After an error: PostgreSQL undoes a statement that it refuses, and 1050 says that the table was there before.
    fn after(error: &DbError) -> Made {
        match error {
            DbError::Server(refused) if !error.is_lost() && matches!(refused.number, 0 | 1050) => Made::No,
            _ => Made::Perhaps,
        }
    }
}

/// A table that is being filled.
struct Making {
    index: u32,
    /// What an earlier call has left of it.
    unfinished: Option<Table>,
    /// The first connection makes it, and the others wait.
    made: Mutex<Made>,
    /// Rows sent, over all parts.
    sent: AtomicU64,
    /// Rows that the server has taken.
    taken: AtomicU64,
}

impl Making {
    fn new(index: u32, unfinished: Option<Table>) -> Making {
        let (made, sent, taken) = (Mutex::new(Made::No), AtomicU64::new(0), AtomicU64::new(0));
        Making { index, unfinished, made, sent, taken }
    }

    /// Whether what the catalog now shows was made for it by this call.
    fn has_made(&self, table: &Table) -> bool {
        let is_unfinished = table.mark == Some(Mark { rows: None });
        let made = *lock(&self.made);
        table.name == table_name(self.index) && (made == Made::Yes || made == Made::Perhaps && is_unfinished)
    }
}

/// Rows of a table that one connection sends.
struct Part<'a> {
    table: &'a Making,
    first: u64,
    last: u64,
}

/// Cuts tables into parts of equal size, as many as it takes to keep every connection busy. A part has enough rows to be
/// worth a connection.
fn parts<'a>(spec: &OltpSpec, tables: &'a [Making], threads: u32) -> Vec<Part<'a>> {
    const ROWS_MIN: u64 = 10_000;
    let rows = schema::rows(spec);
    let wanted = u64::from(threads).div_ceil(tables.len().max(1) as u64);
    let count = wanted.min(rows / ROWS_MIN).max(1);
    let cut = move |number: u64| rows * number / count;
    let parts = |table: &'a Making| {
        (0..count).map(move |number| Part { table, first: cut(number) + 1, last: cut(number + 1) })
    };
    tables.iter().flat_map(parts).collect()
}

/// Removes the tables that this call has made or begun, by a new connection if the old one has broken. The error before says more than
/// what may follow from it here; what could not be dropped is marked unfinished.
fn drop_again(server: &Server, connection: &mut Connection, tables: &[Making]) {
    let found = catalog::tables(connection).or_else(|_| {
        *connection = Connection::open(server)?;
        catalog::tables(connection)
    });
    for table in found.into_iter().flatten().filter(|table| tables.iter().any(|it| it.has_made(table))) {
        let _ = table.drop(connection);
    }
}

/// Which tables are to be made; `Err` where one is in the way.
fn to_make(spec: &OltpSpec, mut found: Vec<Table>, options: &LoadOptions) -> Result<Vec<Making>, DbError> {
    let mut wanted = Vec::new();
    for index in 0..schema::tables(spec) {
        let name = table_name(index);
        match found.iter().position(|table| table.name == name).map(|at| found.swap_remove(at)) {
            None => wanted.push(Making::new(index, None)),
            Some(table) if table.mark == Some(Mark { rows: None }) => {
                wanted.push(Making::new(index, Some(table)));
            }
            Some(table) => table.refuse_unless_usable(spec, options)?,
        }
    }
    Ok(wanted)
}

/// What is to be done, for every connection that does it.
struct Work<'a> {
    spec: &'a OltpSpec,
    options: &'a LoadOptions,
    progress: Progress<'a>,
    stop: &'a Stop,
    loaded: &'a Mutex<Loaded>,
}

impl Work<'_> {
    /// Fills a part of a table, and makes the table before its first and completes it after its last.
    fn part(&self, connection: &mut Connection, part: &Part<'_>) -> Result<(), DbError> {
        let (spec, table) = (self.spec, part.table);
        unless_stopped(self.stop)?;
        self.begin(connection, table)?;
        if spec.script == Script::BulkInsert {
            return self.completed(connection, table.index, None);
        }
        let done = |rows| {
            let done = table.sent.fetch_add(rows, Relaxed) + rows;
            (self.progress)(Event::Rows { table: table.index, done, of: spec.table_size });
        };
        let filling = Filling {
            spec,
            index: table.index,
            first: part.first,
            last: part.last,
            done: &done,
            stop: self.stop,
        };
        let way = filling.fill(connection, self.options.only)?;
        let rows = part.last + 1 - part.first;
        if table.taken.fetch_add(rows, AcqRel) + rows < spec.table_size {
            return Ok(());
        }
        self.index(connection, table.index)?;
        self.completed(connection, table.index, Some(way))
    }

    fn begin(&self, connection: &mut Connection, table: &Making) -> Result<(), DbError> {
        let mut made = lock(&table.made);
        if *made == Made::Yes {
            return Ok(());
        }
        (self.progress)(Event::Creating { table: table.index });
        if let Some(unfinished) = &table.unfinished {
            unfinished.drop(connection)?;
        }
        // Fails where something of that name is there: what the catalog did not show is not weir's to remove.
        let created = connection.run(&schema::create(self.spec, connection.dialect(), table.index));
        match &created {
            Ok(_) => *made = Made::Yes,
            // Another connection's attempt before this one may still be what made it.
            Err(error) if *made == Made::No => *made = Made::after(error),
            Err(_) => {}
        }
        created.map(drop)
    }

    /// What a table gets once its rows are in it.
    fn index(&self, connection: &mut Connection, index: u32) -> Result<(), DbError> {
        let (spec, dialect, name) = (self.spec, connection.dialect(), table_name(index));
        for statement in schema::create_indexes(spec, dialect, index) {
            (self.progress)(Event::Indexing { table: index });
            connection.run(&statement)?;
        }
        if let Some(statement) = schema::follow_ids(spec, dialect, index) {
            connection.run(&statement)?;
        }
        // Without it the first run would meet a planner that knows nothing, and, with PostgreSQL, the autovacuum.
        let settle = match dialect {
            Dialect::MySql => format!("ANALYZE TABLE {name}"),
            Dialect::Postgres => format!("VACUUM (ANALYZE) {name}"),
        };
        connection.run(&settle).map(drop)
    }

    /// Marks a table as whole, and counts it and how its rows came into it.
    fn completed(&self, connection: &mut Connection, index: u32, way: Option<Way>) -> Result<(), DbError> {
        let rows = schema::rows(self.spec);
        connection.run(&schema::complete(connection.dialect(), index, rows))?;
        (self.progress)(Event::Complete { table: index });
        let mut loaded = lock(self.loaded);
        loaded.made += 1;
        loaded.rows += rows;
        loaded.way = way;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ServerError;

    fn table(name: &str, rows: Option<u64>) -> Table {
        let mark = Some(Mark { rows });
        Table { name: name.into(), place: name.into(), mark, columns: "id,k,c,pad".into() }
    }

    #[test]
    fn what_is_there_stays_and_what_is_unfinished_is_made_anew() {
        let spec = OltpSpec { tables: 3, ..OltpSpec::default() };
        let found = [table("sbtest1", Some(10_000)), table("sbtest2", None), table("sbtest9", Some(5))];
        let wanted = to_make(&spec, found.into(), &LoadOptions::default()).unwrap();
        let wanted: Vec<_> = wanted.iter().map(|table| (table.index, table.unfinished.is_some())).collect();
        assert_eq!(wanted, [(1, true), (2, false)]);
        let other = vec![table("sbtest3", Some(5))];
        let error = to_make(&spec, other, &LoadOptions::default()).err().unwrap().to_string();
        assert!(error.contains("sbtest3") && error.contains("5 rows"), "{error}");
    }

    /// An error may come after the table: what bears this call's mark then is its own to remove, and nothing else is.
    #[test]
    fn what_a_failed_statement_may_have_made_is_removed() {
        let refused = |number: u16, sqlstate: &str| -> DbError {
            ServerError { number, sqlstate: sqlstate.into(), message: String::new() }.into()
        };
        let lost =
            DbError::Lost { place: "nowhere".into(), source: std::io::ErrorKind::ConnectionReset.into() };
        for (error, rows, is_removed) in [
            (&lost, None, true),
            (&lost, Some(10_000), false),
            (&refused(1026, "HY000"), None, true),
            (&refused(1050, "42S01"), None, false),
            (&refused(0, "42P07"), None, false),
            (&refused(0, "57P01"), None, true),
        ] {
            let making = Making::new(0, None);
            *lock(&making.made) = Made::after(error);
            assert_eq!(making.has_made(&table("sbtest1", rows)), is_removed, "{error} {rows:?}");
            assert!(!making.has_made(&table("sbtest2", None)), "{error}");
            assert!(!making.has_made(&Table { mark: None, ..table("sbtest1", None) }), "{error}");
        }
    }

    #[test]
    fn tables_are_cut_only_where_connections_would_be_idle() {
        let cuts = |tables: u32, rows: u64, threads: u32| {
            let spec = OltpSpec { tables, table_size: rows, ..OltpSpec::default() };
            let tables: Vec<Making> = (0..tables).map(|index| Making::new(index, None)).collect();
            let parts = parts(&spec, &tables, threads);
            parts.iter().map(|part| (part.table.index, part.first, part.last)).collect::<Vec<_>>()
        };
        assert_eq!(cuts(2, 100_001, 2), [(0, 1, 100_001), (1, 1, 100_001)]);
        let halves = [(0, 1, 50_000), (0, 50_001, 100_001), (1, 1, 50_000), (1, 50_001, 100_001)];
        assert_eq!(cuts(2, 100_001, 3), halves);
        assert_eq!(cuts(1, 25_000, 8), [(0, 1, 12_500), (0, 12_501, 25_000)]);
        assert_eq!(cuts(1, 5, 8), [(0, 1, 5)]);
    }
}
