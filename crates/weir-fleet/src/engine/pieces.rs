//! Tables that are larger than the memory, asked piece by piece. Most of a question's work, adding up histograms, needs the rows of one
//! host alone, and leaves few; sorted at once they would fill the disk. So the rows that each group of hosts leaves are kept in a file,
//! and the rest of the question is asked of those files: of them again piece by piece, where a question says so.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema};
use datafusion::common::ScalarValue;
use datafusion::common::config::TableParquetOptions;
use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::error::DataFusionError;
use datafusion::prelude::{DataFrame, SessionContext, col, lit};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;
use weir_store::questions::Piecewise;

use super::tables::Tables;
use super::{parsed, question};
use crate::origin::escaped;

/// How often it is said how far it is.
const EVERY: Duration = Duration::from_secs(10);

/// Tables that have rows of hosts; facts are few, and all are asked of their newest.
const OF_HOSTS: [&str; 4] = ["stages", "syncs", "waits", "counters"];

/// A question in two parts.
struct Divided {
    /// The SQL of the part that is asked piece by piece.
    first: String,
    /// The rest, to which that part is a table.
    rest: String,
}

/// Divides a question, where it has a part of that name.
fn divided(sql: &str, name: &str) -> Option<Divided> {
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
    Some(Divided { first, rest: query.to_string() })
}

/// What the pieces of a part have left.
struct Made {
    name: &'static str,
    schema: Schema,
    files: Vec<PathBuf>,
}

/// The plan of a question whose parts were asked in about so many pieces.
pub async fn ask(
    tables: &Tables<'_>,
    sql: &str,
    parts: &[Piecewise],
    pieces: u64,
) -> Result<DataFrame, DataFusionError> {
    let (mut made, mut rest) = (Vec::new(), sql.to_string());
    for part in parts {
        if let Some(divided) = divided(&rest, part.name) {
            made.push(asked(tables, &made, part, &divided.first, pieces).await?);
            rest = divided.rest;
        }
    }
    question(&context(tables, &made, DataType::Utf8)?, &rest).await
}

/// The tables, and those that were made. Their texts may be many times as long as their files.
fn context(tables: &Tables<'_>, made: &[Made], text: DataType) -> Result<SessionContext, DataFusionError> {
    let context = tables.context(text)?;
    for made in made {
        let urls = made.files.iter().map(|file| format!("file://{}", escaped(file.as_os_str().as_bytes())));
        context.register_table(made.name, tables.files(urls, with_plain_texts(&made.schema))?)?;
    }
    Ok(context)
}

/// Asks a part piece by piece, of the tables of hosts, or of what was made last.
async fn asked(
    tables: &Tables<'_>,
    made: &[Made],
    part: &Piecewise,
    sql: &str,
    pieces: u64,
) -> Result<Made, DataFusionError> {
    let sources = made.last().map_or(OF_HOSTS.to_vec(), |made| vec![made.name]);
    let bounds = bounds(&context(tables, made, DataType::Utf8View)?, sources[0], part.by, pieces).await?;
    let pieces = bounds.len() + 1;
    let text = if made.is_empty() { tables.texts(tables.bytes() / pieces as u64) } else { DataType::Utf8 };
    let context = context(tables, made, text)?;
    let mut whole = Vec::new();
    for name in sources {
        whole.push((name, context.table(name).await?));
    }
    let folder = tables.limits.spill.join(part.name);
    fs::create_dir(&folder)?;
    let mut options = TableParquetOptions::default();
    options.global.compression = Some("lz4_raw".to_string());
    let (mut made, mut said) =
        (Made { name: part.name, schema: Schema::empty(), files: Vec::new() }, Instant::now());
    for n in 0..pieces {
        let (from, to) = (n.checked_sub(1).map(|n| &bounds[n]), bounds.get(n));
        for (name, rows) in &whole {
            context.deregister_table(*name)?;
            context.register_table(*name, between(rows.clone(), part.by, from, to)?.into_view())?;
        }
        let rows = question(&context, sql).await?;
        made.schema = rows.schema().as_arrow().clone();
        let file = folder.join(format!("{n}.parquet"));
        let url = format!("file://{}", escaped(file.as_os_str().as_bytes()));
        let as_one = DataFrameWriteOptions::new().with_single_file_output(true);
        rows.write_parquet(&url, as_one, Some(options.clone())).await?;
        made.files.extend(Some(file).filter(|file| file.exists()));
        if said.elapsed() >= EVERY {
            said = Instant::now();
            say!("{} of {pieces} pieces are asked, by {}", n + 1, part.by);
        }
    }
    Ok(made)
}

/// The values with which pieces of a table begin, but for the first: each has about as many rows.
async fn bounds(
    context: &SessionContext,
    table: &str,
    by: &str,
    pieces: u64,
) -> Result<Vec<ScalarValue>, DataFusionError> {
    let sql = format!("SELECT {by}, COUNT(*) AS n FROM {table} GROUP BY {by} ORDER BY {by}");
    let mut values = Vec::new();
    for batch in question(context, &sql).await?.collect().await? {
        for (row, count) in batch.column(1).as_primitive::<Int64Type>().values().iter().enumerate() {
            values.push((ScalarValue::try_from_array(batch.column(0), row)?, *count as u64));
        }
    }
    let each = values.iter().map(|(_, rows)| rows).sum::<u64>().div_ceil(pieces);
    let (mut bounds, mut held) = (Vec::new(), 0);
    for (value, rows) in values {
        if held > 0 && held + rows > each {
            bounds.push(value);
            held = 0;
        }
        held += rows;
    }
    Ok(bounds)
}

fn between(
    mut rows: DataFrame,
    by: &str,
    from: Option<&ScalarValue>,
    to: Option<&ScalarValue>,
) -> Result<DataFrame, DataFusionError> {
    if let Some(from) = from {
        rows = rows.filter(col(by).gt_eq(lit(from.clone())))?;
    }
    if let Some(to) = to {
        rows = rows.filter(col(by).lt(lit(to.clone())))?;
    }
    Ok(rows)
}

/// The same columns, with texts that are no views.
fn with_plain_texts(schema: &Schema) -> Schema {
    let field = |field: &Arc<Field>| {
        let is_text = matches!(field.data_type(), DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8);
        let kind = if is_text { DataType::Utf8 } else { field.data_type().clone() };
        Field::new(field.name(), kind, true)
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
            let mut sql = question.sql(&with);
            for Piecewise { name, by } in question.piecewise() {
                let parts = divided(&sql, name).unwrap();
                assert!(parts.first.ends_with(&format!("SELECT * FROM {name}")), "{}", parts.first);
                assert!(parts.first.contains(&format!("{name} AS (")) && parts.first.contains(by));
                assert!(!parts.rest.contains(&format!("{name} AS (")), "{}", parts.rest);
                assert!(parts.rest.contains(&format!("FROM {name}")) && divided(&parts.rest, name).is_none());
                sql = parts.rest;
            }
        }
    }
}
