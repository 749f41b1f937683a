//! The tables as the engine sees them, within the limits of a question.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::config::SpillCompression;
use datafusion::datasource::TableProvider;
use datafusion::datasource::empty::EmptyTable;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::error::DataFusionError;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use weir_archive::Table;
use weir_archive::tables::Kind;
use weir_store::tables::TABLES;

use super::Limits;
use super::pool::HalfFairPool;
use crate::archive::Stored;
use crate::origin::{Origin, escaped};

/// Texts are views where the files are at most this share of the memory. Views are up to twice as fast, but the engine charges each
/// slice of such a column with all its texts, and where there are many, its sorts end for lack of memory instead of spilling.
const VIEWED_SHARE: u64 = 8;

/// Files of the archive, and how much of the machine a question of them may take.
pub struct Tables<'a> {
    pub origin: &'a Origin,
    pub files: &'a [Stored],
    pub limits: &'a Limits,
    pub threads: usize,
}

impl Tables<'_> {
    /// Of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Of files whose texts may be views.
    pub fn bytes_of_views(&self) -> u64 {
        (self.limits.memory_bytes as u64 / VIEWED_SHARE).max(1)
    }

    /// How texts of files of so many bytes are held.
    pub fn texts(&self, bytes: u64) -> DataType {
        if bytes <= self.bytes_of_views() { DataType::Utf8View } else { DataType::Utf8 }
    }

    /// An engine that knows them by their names.
    pub fn context(&self, text: DataType) -> Result<SessionContext, DataFusionError> {
        let spill = DiskManagerMode::Directories(vec![self.limits.spill.clone()]);
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(HalfFairPool::new(self.limits.memory_bytes)))
            .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(spill))
            .build_arc()?;
        let mut config = SessionConfig::new().with_target_partitions(self.threads);
        // Rows are few and their names long known: reading every footer twice would be most of the work.
        config.options_mut().execution.collect_statistics = false;
        config.options_mut().execution.parquet.pushdown_filters = true;
        config.options_mut().execution.spill_compression = SpillCompression::Lz4Frame;
        // Each sort sets some aside, 10 MiB unless told otherwise.
        let set_aside = &mut config.options_mut().execution.sort_spill_reservation_bytes;
        *set_aside = (*set_aside).min(self.limits.memory_bytes / 64);
        let context = SessionContext::new_with_config_rt(config, runtime);
        let base = self.origin.url().map_err(DataFusionError::IoError)?;
        if let Some((url, store)) = self.origin.object_store() {
            context.register_object_store(&url, store);
        }
        for table in TABLES {
            let files = self.files.iter().filter(|file| file.place.kind == table.name);
            let urls = files.map(|file| format!("{base}/{}", escaped(file.below().as_bytes())));
            let schema = schema(table, &text);
            context.register_table(table.name, self.files(urls, schema)?)?;
        }
        Ok(context)
    }

    /// Files as one table.
    pub fn files(
        &self,
        urls: impl Iterator<Item = String>,
        schema: Schema,
    ) -> Result<Arc<dyn TableProvider>, DataFusionError> {
        let schema = Arc::new(schema);
        let paths = urls.map(ListingTableUrl::parse).collect::<Result<Vec<_>, _>>()?;
        if paths.is_empty() {
            return Ok(Arc::new(EmptyTable::new(schema)));
        }
        let options = ListingOptions::new(Arc::new(ParquetFormat::default()))
            .with_file_extension(".parquet")
            .with_collect_stat(false)
            .with_target_partitions(self.threads);
        let config =
            ListingTableConfig::new_with_multi_paths(paths).with_listing_options(options).with_schema(schema);
        Ok(Arc::new(ListingTable::try_new(config)?))
    }
}

fn schema(table: &Table, text: &DataType) -> Schema {
    let field = |spec: &weir_archive::tables::Spec| {
        let kind = match spec.kind {
            Kind::Integer => DataType::Int64,
            Kind::Text => text.clone(),
        };
        // A column that an older file lacks is null.
        Field::new(spec.name, kind, true)
    };
    Schema::new(table.columns.iter().map(field).collect::<Vec<_>>())
}
