//! Tables that are larger than the memory, asked of some hosts after others. Most of a question's work, adding up histograms, needs the
//! rows of one host alone, and leaves few. Sorted at once they would fill the disk; so the rows that each group of hosts leaves are
//! kept in a file, and the rest of the question is asked of those files.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema};
use datafusion::common::config::TableParquetOptions;
use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::error::DataFusionError;
use datafusion::prelude::{DataFrame, SessionContext, col, lit};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;

use super::tables::Tables;
use super::{parsed, question};
use crate::origin::escaped;

/// How often it is said how far it is.
const EVERY: Duration = Duration::from_secs(10);

/// Tables whose rows are of hosts that are asked; facts are few, and their newest rows are asked of all.
const DIVIDED: [&str; 4] = ["stages", "syncs", "waits", "counters"];

/// A question in two parts.
pub struct Divided {
    /// The part that is asked of some hosts after others.
    name: String,
    /// Its SQL.
    first: String,
    /// The rest, to which the part is a table.
    rest: String,
}

/// Divides a question, where it has a part of that name.
pub fn divided(sql: &str, name: &str) -> Option<Divided> {
    let Statement::Statement(statement) = parsed(sql).ok()?.pop_front()? else { return None };
    let ast::Statement::Query(mut query) = *statement else { return None };
    let parts = &mut query.with.as_mut()?.cte_tables;
    let at = parts.iter().position(|part| part.alias.name.value == name)?;
    let first: Vec<String> = parts[..=at].iter().map(ToString::to_string).collect();
    let first = format!("WITH {} SELECT * FROM {name}", first.join(", "));
    parts.remove(at);
    if parts.is_empty() {
        query.with = None;
    }
    Some(Divided { name: name.to_string(), first, rest: query.to_string() })
}

/// The plan of a question whose first part has been asked, of about so many groups of hosts.
pub async fn ask(tables: &Tables<'_>, divided: &Divided, groups: u64) -> Result<DataFrame, DataFusionError> {
    let folder = tables.limits.spill.join(&divided.name);
    fs::create_dir(&folder)?;
    let (schema, count) = first(tables, divided, groups, &folder).await?;
    let files: Vec<_> =
        (0..count).map(|n| folder.join(format!("{n}.parquet"))).filter(|file| file.exists()).collect();
    let bytes = files.iter().map(|file| Ok(file.metadata()?.len())).sum::<io::Result<u64>>()?;
    let text = tables.texts(bytes);
    let context = tables.context(text.clone())?;
    let urls = files.iter().map(|file| format!("file://{}", escaped(file.as_os_str().as_bytes())));
    context.register_table(divided.name.as_str(), tables.files(urls, held_as(&schema, &text))?)?;
    question(&context, &divided.rest).await
}

/// Asks the first part of each group of hosts; the schema of its rows, and how many files it may have left.
async fn first(
    tables: &Tables<'_>,
    divided: &Divided,
    groups: u64,
    folder: &Path,
) -> Result<(Schema, usize), DataFusionError> {
    let bounds = bounds(&tables.context(DataType::Utf8View)?, groups).await?;
    let groups = bounds.len() + 1;
    let context = tables.context(tables.texts(tables.bytes() / groups as u64))?;
    let mut whole = Vec::new();
    for name in DIVIDED {
        whole.push((name, context.table(name).await?));
    }
    let mut options = TableParquetOptions::default();
    options.global.compression = Some("lz4_raw".to_string());
    let (mut schema, mut said) = (Schema::empty(), Instant::now());
    for n in 0..groups {
        let (from, to) = (n.checked_sub(1).map(|n| &bounds[n]), bounds.get(n));
        for (name, rows) in &whole {
            context.deregister_table(*name)?;
            context.register_table(*name, between(rows.clone(), from, to)?.into_view())?;
        }
        let rows = question(&context, &divided.first).await?;
        schema = rows.schema().as_arrow().clone();
        let file = format!("file://{}/{n}.parquet", escaped(folder.as_os_str().as_bytes()));
        let as_one = DataFrameWriteOptions::new().with_single_file_output(true);
        rows.write_parquet(&file, as_one, Some(options.clone())).await?;
        if said.elapsed() >= EVERY {
            said = Instant::now();
            say!("{} of {groups} groups of hosts are asked", n + 1);
        }
    }
    Ok((schema, groups))
}

/// The hosts with which groups begin, but for the first: each has about as many rows.
async fn bounds(context: &SessionContext, groups: u64) -> Result<Vec<String>, DataFusionError> {
    let sql = "SELECT host, COUNT(*) AS n FROM stages GROUP BY host ORDER BY host";
    let mut hosts = Vec::new();
    for batch in question(context, sql).await?.collect().await? {
        let names = cast(batch.column(0), &DataType::Utf8)?;
        let (names, counts) = (names.as_string::<i32>(), batch.column(1).as_primitive::<Int64Type>());
        hosts.extend(names.iter().flatten().map(String::from).zip(counts.values().iter().map(|n| *n as u64)));
    }
    let each = hosts.iter().map(|(_, rows)| rows).sum::<u64>().div_ceil(groups);
    let (mut bounds, mut held) = (Vec::new(), 0);
    for (host, rows) in hosts {
        if held > 0 && held + rows > each {
            bounds.push(host);
            held = 0;
        }
        held += rows;
    }
    Ok(bounds)
}

fn between(
    mut rows: DataFrame,
    from: Option<&String>,
    to: Option<&String>,
) -> Result<DataFrame, DataFusionError> {
    if let Some(from) = from {
        rows = rows.filter(col("host").gt_eq(lit(from.as_str())))?;
    }
    if let Some(to) = to {
        rows = rows.filter(col("host").lt(lit(to.as_str())))?;
    }
    Ok(rows)
}

/// The same columns, with texts held in another way.
fn held_as(schema: &Schema, text: &DataType) -> Schema {
    let field = |field: &Arc<Field>| {
        let is_text = matches!(field.data_type(), DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8);
        let kind = if is_text { text } else { field.data_type() };
        Field::new(field.name(), kind.clone(), true)
    };
    Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use weir_store::questions::{Parameters, Question};

    use super::*;

    #[test]
    fn questions_are_divided_where_they_say_so() {
        let with = Parameters { from_s: 0, until_s: 86_400 * 3, at_s: 86_400, peers: 5 };
        for question in Question::ALL {
            let Some(name) = question.by_host() else { continue };
            let part = divided(&question.sql(&with), name).unwrap();
            assert!(part.first.ends_with(&format!("SELECT * FROM {name}")), "{}", part.first);
            assert!(part.first.contains("FROM stages") && part.first.contains(&format!("{name} AS (")));
            assert!(
                !part.rest.contains(&format!("{name} AS (")) && part.rest.contains(&format!("FROM {name}"))
            );
            assert!(divided(&part.rest, name).is_none());
        }
    }
}
