//! DataFusion over the files of the archive. Everything that knows of it stands here.

mod pieces;
mod pool;
mod tables;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::path::PathBuf;

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use datafusion::prelude::{DataFrame, SQLOptions, SessionContext};
use datafusion::sql::parser::{DFParserBuilder, Statement};
use datafusion::sql::sqlparser::ast::{self, Query, SetExpr};
use datafusion::sql::sqlparser::dialect::DatabricksDialect;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use weir_cli::failure::{lacking, usage};
use weir_store::questions::Piecewise;

use crate::archive::Stored;
use crate::cells::{Answer, Failed, ROWS_MAX, SMALLER_HINT, TABLES_HINT, Unfit, append, too_much};
use crate::origin::Origin;
use tables::Tables;

/// With less memory, fewer threads work.
const BYTES_PER_THREAD: usize = 1 << 30;

/// How much of the machine a question may take.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Memory for rows, bytes. More than that goes to files.
    pub memory_bytes: usize,
    /// Where those are.
    pub spill: PathBuf,
}

/// Why there is no answer.
enum Broken {
    Engine(DataFusionError),
    Rows(Unfit),
}

impl From<DataFusionError> for Broken {
    fn from(error: DataFusionError) -> Broken {
        Broken::Engine(error)
    }
}

impl From<Unfit> for Broken {
    fn from(unfit: Unfit) -> Broken {
        Broken::Rows(unfit)
    }
}

/// A question.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The whole of it.
    pub sql: &'a str,
    /// Parts of it that may be asked piece by piece.
    pub piecewise: &'a [Piecewise],
}

/// Asks of some files.
///
/// # Errors
/// Those of the engine, in its words.
pub fn ask(origin: &Origin, files: &[Stored], asked: &Asked<'_>, limits: &Limits) -> Result<Answer, Failed> {
    open_many_files();
    // Each thread takes memory of its own for what it sorts and adds up.
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    let threads = threads.min(limits.memory_bytes / BYTES_PER_THREAD).max(1);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    let runtime = runtime.map_err(|error| Failed::Other(error.into()))?;
    let answer: Result<Answer, Broken> = runtime.block_on(async {
        let tables = Tables { origin, files, limits, threads };
        let pieces = tables.bytes().div_ceil(tables.bytes_of_views());
        let frame = if pieces > 1 && !asked.piecewise.is_empty() {
            pieces::ask(&tables, asked.sql, asked.piecewise, pieces).await?
        } else {
            question(&tables.context(tables.texts(tables.bytes()))?, asked.sql).await?
        };
        let columns = frame.schema().fields().iter().map(|field| field.name().clone()).collect();
        let mut answer = Answer { columns, ..Answer::default() };
        let mut rows = frame.limit(0, Some(ROWS_MAX + 1))?.execute_stream().await?;
        while let Some(batch) = poll_fn(|context| rows.as_mut().poll_next(context)).await {
            append(&batch?, &mut answer)?;
        }
        Ok(answer)
    });
    answer.map_err(|broken| match broken {
        Broken::Engine(error) => failed(&error),
        Broken::Rows(Unfit::Arrow(error)) => failed(&error.into()),
        Broken::Rows(Unfit::TooMuch) => Failed::Other(lacking(too_much(), SMALLER_HINT)),
    })
}

/// The engine opens the files of a table all at once; a shell allows a thousand, and more to who asks.
fn open_many_files() {
    let limit = getrlimit(Resource::Nofile);
    // Where that is refused, the engine says which file it could not open.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Its plan. What stands deep inside is seen by it: nothing but a question passes.
async fn question(context: &SessionContext, sql: &str) -> Result<DataFrame, DataFusionError> {
    let only = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    context.sql_with_options(sql, only).await
}

/// Questions only: nothing that makes tables, writes files or changes settings, on whichever engine.
///
/// # Errors
/// What is wrong with the SQL.
pub fn refuse_all_but_questions(sql: &str) -> anyhow::Result<()> {
    let statements = parsed(sql).map_err(|error| usage(error.strip_backtrace(), TABLES_HINT))?;
    match statements.iter().collect::<Vec<_>>()[..] {
        [Statement::Statement(one)] if matches!(&**one, ast::Statement::Query(query) if only_asks(query)) => {
            Ok(())
        }
        [_] => Err(usage("expected a question: SELECT …", TABLES_HINT)),
        _ => Err(usage(format!("expected one question, got {} statements", statements.len()), TABLES_HINT)),
    }
}

fn parsed(sql: &str) -> Result<VecDeque<Statement>, DataFusionError> {
    DFParserBuilder::new(sql).with_dialect(&DatabricksDialect).build()?.parse_statements()
}

/// `WITH … INSERT` and `SELECT … INTO` are queries to the parser.
fn only_asks(query: &Query) -> bool {
    fn asks(body: &SetExpr) -> bool {
        match body {
            SetExpr::Select(select) => select.into.is_none(),
            SetExpr::Query(query) => only_asks(query),
            SetExpr::SetOperation { left, right, .. } => asks(left) && asks(right),
            SetExpr::Values(_) => true,
            _ => false,
        }
    }
    query.with.iter().flat_map(|with| &with.cte_tables).all(|named| only_asks(&named.query))
        && asks(&query.body)
}

/// Whether what the engine writes found no room, whichever of its parts says so.
fn is_full(error: &DataFusionError) -> bool {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        let is_io = |error: &io::Error| error.kind() == io::ErrorKind::StorageFull;
        let said = match error.downcast_ref::<ArrowError>() {
            Some(ArrowError::IoError(_, error)) => is_io(error),
            _ => error.downcast_ref::<io::Error>().is_some_and(is_io),
        };
        if said {
            return true;
        }
        next = error.source();
    }
    false
}

fn failed(error: &DataFusionError) -> Failed {
    let text = error.strip_backtrace();
    if is_full(error) {
        let hint = "what does not fit into --memory is written beside the tables: free some space there, or give it more memory";
        return Failed::Other(lacking(text, hint));
    }
    match error.find_root() {
        DataFusionError::ParquetError(_)
        | DataFusionError::ArrowError(..)
        | DataFusionError::ObjectStore(_)
        | DataFusionError::External(_) => Failed::Files(lacking(text, "")),
        root => Failed::Other(match root {
            DataFusionError::ResourcesExhausted(_) => {
                lacking(text, "give it more with --memory, or ask for less time")
            }
            DataFusionError::SQL(..) | DataFusionError::Plan(_) | DataFusionError::SchemaError(..) => {
                usage(text, TABLES_HINT)
            }
            _ => lacking(text, ""),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_no_damaged_file() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let arrow = || DataFusionError::from(ArrowError::IoError("cannot write".to_string(), full()));
        for error in [DataFusionError::from(full()), arrow(), arrow().context("while it sorts")] {
            let Failed::Other(told) = failed(&error) else { panic!("{error}") };
            assert!(weir_cli::failure::hint_of(&told).is_some_and(|hint| hint.contains("free some space")));
        }
        let damaged = DataFusionError::from(ArrowError::ParseError("not a page".to_string()));
        assert!(matches!(failed(&damaged), Failed::Files(_)));
    }
}
