//! DataFusion over the files of the archive. Everything that knows of it stands here.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::array::{Array, Float64Array, Int64Array, UInt64Array};
use datafusion::arrow::array::{LargeStringArray, StringArray, StringViewArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::datasource::empty::EmptyTable;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::error::DataFusionError;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SQLOptions, SessionConfig, SessionContext};
use serde_json::{Map, Value};
use weir_archive::Table;
use weir_archive::tables::Kind;
use weir_store::tables::TABLES;

use crate::archive::{Archive, Stored};

/// The answer to a question: names of columns, and rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// Names.
    pub columns: Vec<String>,
    /// Cells, in their order.
    pub rows: Vec<Vec<Value>>,
}

impl Answer {
    /// Its rows as objects.
    pub fn objects(&self) -> Vec<Value> {
        let object = |row: &Vec<Value>| {
            Value::Object(
                self.columns.iter().cloned().zip(row.iter().cloned()).collect::<Map<String, Value>>(),
            )
        };
        self.rows.iter().map(object).collect()
    }
}

/// The most rows of an answer: they lie in memory, beside the engine's own.
const ROWS_MAX: usize = 1_000_000;

/// How much of the machine a question may take.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Memory for rows, bytes. More than that goes to files.
    pub memory_bytes: usize,
    /// Where those are.
    pub spill: PathBuf,
}

/// Asks of some files.
///
/// # Errors
/// Those of the engine, in its words.
pub fn ask(
    archive: &Archive,
    files: &[Stored],
    sql: &str,
    limits: &Limits,
) -> Result<Answer, DataFusionError> {
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).build();
    let runtime = runtime.map_err(DataFusionError::IoError)?;
    runtime.block_on(async {
        let context = context(archive, files, limits, threads)?;
        // Questions only: nothing that makes tables, writes files or changes settings.
        let only = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
        let frame = context.sql_with_options(sql, only).await?;
        let columns = frame.schema().fields().iter().map(|field| field.name().clone()).collect();
        let mut rows = Vec::new();
        for batch in frame.limit(0, Some(ROWS_MAX + 1))?.collect().await? {
            append(&batch, &mut rows)?;
        }
        if rows.len() > ROWS_MAX {
            let what = format!("more than {ROWS_MAX} rows: add a LIMIT, or `weir fleet export` the table");
            return Err(DataFusionError::Execution(what));
        }
        Ok(Answer { columns, rows })
    })
}

fn context(
    archive: &Archive,
    files: &[Stored],
    limits: &Limits,
    threads: usize,
) -> Result<SessionContext, DataFusionError> {
    let disk =
        DiskManagerBuilder::default().with_mode(DiskManagerMode::Directories(vec![limits.spill.clone()]));
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(FairSpillPool::new(limits.memory_bytes)))
        .with_disk_manager_builder(disk)
        .build_arc()?;
    let mut config = SessionConfig::new().with_target_partitions(threads);
    // Rows are few and their names long known: reading every footer twice would be most of the work.
    config.options_mut().execution.collect_statistics = false;
    config.options_mut().execution.parquet.pushdown_filters = true;
    let context = SessionContext::new_with_config_rt(config, runtime);
    for table in TABLES {
        let paths = files.iter().filter(|file| file.place.kind == table.name);
        let paths = paths.map(|file| url(archive.root(), &file.below())).collect::<Result<Vec<_>, _>>()?;
        let schema = Arc::new(schema(table));
        if paths.is_empty() {
            context.register_table(table.name, Arc::new(EmptyTable::new(schema)))?;
            continue;
        }
        let options = ListingOptions::new(Arc::new(ParquetFormat::default()))
            .with_file_extension(".parquet")
            .with_collect_stat(false)
            .with_target_partitions(threads);
        let config =
            ListingTableConfig::new_with_multi_paths(paths).with_listing_options(options).with_schema(schema);
        context.register_table(table.name, Arc::new(ListingTable::try_new(config)?))?;
    }
    Ok(context)
}

fn schema(table: &Table) -> Schema {
    let field = |spec: &weir_archive::tables::Spec| {
        let kind = match spec.kind {
            Kind::Integer => DataType::Int64,
            Kind::Text => DataType::Utf8View,
        };
        // A column that an older file lacks is null.
        Field::new(spec.name, kind, true)
    };
    Schema::new(table.columns.iter().map(field).collect::<Vec<_>>())
}

/// A path as a URL, so that nothing in it is a pattern.
fn url(root: &Path, below: &str) -> Result<ListingTableUrl, DataFusionError> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::path::absolute(root.join(below)).map_err(DataFusionError::IoError)?;
    let mut text = "file://".to_string();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'=' | b'~' => text.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => text.push(char::from(*byte)),
            byte => text.push_str(&format!("%{byte:02X}")),
        }
    }
    ListingTableUrl::parse(text)
}

/// Rows of a batch, as values of JSON.
fn append(batch: &RecordBatch, rows: &mut Vec<Vec<Value>>) -> Result<(), DataFusionError> {
    let from = rows.len();
    rows.extend((0..batch.num_rows()).map(|_| Vec::with_capacity(batch.num_columns())));
    for column in batch.columns() {
        for (row, cells) in rows[from..].iter_mut().enumerate() {
            cells.push(cell(column, row)?);
        }
    }
    Ok(())
}

fn cell(column: &dyn Array, row: usize) -> Result<Value, DataFusionError> {
    let any = column.as_any();
    Ok(if column.is_null(row) {
        Value::Null
    } else if let Some(values) = any.downcast_ref::<Int64Array>() {
        values.value(row).into()
    } else if let Some(values) = any.downcast_ref::<UInt64Array>() {
        values.value(row).into()
    } else if let Some(values) = any.downcast_ref::<Float64Array>() {
        values.value(row).into()
    } else if let Some(values) = any.downcast_ref::<StringViewArray>() {
        values.value(row).into()
    } else if let Some(values) = any.downcast_ref::<StringArray>() {
        values.value(row).into()
    } else if let Some(values) = any.downcast_ref::<LargeStringArray>() {
        values.value(row).into()
    } else {
        array_value_to_string(column, row)?.into()
    })
}
