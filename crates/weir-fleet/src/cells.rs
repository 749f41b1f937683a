//! What engines answer, as columns and rows of JSON's values.

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type, UInt64Type};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::array_value_to_string;
use serde_json::{Map, Value};

/// The most rows of an answer: they lie in memory, beside the engine's own.
pub const ROWS_MAX: usize = 1_000_000;
/// The most values: each takes room, whatever it holds.
const CELLS_MAX: usize = 1 << 25;

/// The most bytes of the texts in it.
const TEXT_MAX: usize = 1 << 30;

/// For an answer that is larger.
pub const SMALLER_HINT: &str = "add a LIMIT, or `weir fleet export` the table";

/// What such an answer is.
pub fn too_much() -> String {
    format!("more than {ROWS_MAX} rows, {CELLS_MAX} values, or {} MiB of text", TEXT_MAX >> 20)
}

/// For a mistake in the SQL.
pub const TABLES_HINT: &str =
    "tables are stages, syncs, waits, counters and facts; docs/reference/fleet.md has their columns";

/// The answer to a question: names of columns, and rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// Names.
    pub columns: Vec<String>,
    /// Cells, in their order.
    pub rows: Vec<Vec<Value>>,
    /// Bytes of the texts in them.
    pub text_bytes: usize,
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

/// Why an engine has no answer.
#[derive(Debug)]
pub enum Failed {
    /// It could not read a file: one may be damaged.
    Files(anyhow::Error),
    /// Anything else.
    Other(anyhow::Error),
}

impl From<Failed> for anyhow::Error {
    fn from(failed: Failed) -> anyhow::Error {
        match failed {
            Failed::Files(error) | Failed::Other(error) => error,
        }
    }
}

/// Why rows cannot be taken.
#[derive(Debug)]
pub enum Unfit {
    /// More of them, or of their texts, than an answer has.
    TooMuch,
    /// A type that has no text.
    Arrow(ArrowError),
}

impl From<ArrowError> for Unfit {
    fn from(error: ArrowError) -> Unfit {
        Unfit::Arrow(error)
    }
}

/// Adds the rows of a batch, as values of JSON, to those of an answer.
///
/// # Errors
/// See [`Unfit`].
pub fn append(batch: &RecordBatch, answer: &mut Answer) -> Result<(), Unfit> {
    let rows = &mut answer.rows;
    let from = rows.len();
    // Who sends a batch may say any number of rows.
    let cells = (from + batch.num_rows().min(ROWS_MAX)) * batch.num_columns();
    if batch.num_rows() > ROWS_MAX - from || cells > CELLS_MAX {
        return Err(Unfit::TooMuch);
    }
    rows.extend((0..batch.num_rows()).map(|_| Vec::with_capacity(batch.num_columns())));
    for column in batch.columns() {
        // Engines differ in the width of numbers, and in how they hold text.
        let column = match column.data_type() {
            DataType::UInt64 => column.clone(),
            DataType::Decimal128(_, 0) => cast(column, &DataType::Int64)?,
            kind if kind.is_integer() => cast(column, &DataType::Int64)?,
            kind if kind.is_floating() || kind.is_decimal() => cast(column, &DataType::Float64)?,
            DataType::LargeUtf8 | DataType::Utf8View => cast(column, &DataType::Utf8)?,
            _ => column.clone(),
        };
        for (row, cells) in rows[from..].iter_mut().enumerate() {
            let value = cell(&column, row)?;
            answer.text_bytes += value.as_str().map_or(0, str::len);
            if answer.text_bytes > TEXT_MAX {
                return Err(Unfit::TooMuch);
            }
            cells.push(value);
        }
    }
    Ok(())
}

fn cell(column: &dyn Array, row: usize) -> Result<Value, ArrowError> {
    if column.is_null(row) {
        return Ok(Value::Null);
    }
    Ok(match column.data_type() {
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).into(),
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).into(),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).into(),
        DataType::Utf8 => column.as_string::<i32>().value(row).into(),
        DataType::Boolean => column.as_boolean().value(row).into(),
        _ => array_value_to_string(column, row)?.into(),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{
        ArrayRef, BooleanArray, Decimal128Array, Float32Array, Int32Array, NullArray, StringArray,
        StringViewArray, UInt64Array,
    };
    use datafusion::arrow::datatypes::Schema;
    use datafusion::arrow::record_batch::RecordBatchOptions;
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_of_any_width_are_numbers() {
        let columns: [(&str, ArrayRef); 6] = [
            ("a", Arc::new(Int32Array::from(vec![Some(-1), None]))),
            ("b", Arc::new(UInt64Array::from(vec![u64::MAX, 0]))),
            ("c", Arc::new(Float32Array::from(vec![0.5, 2.0]))),
            ("d", Arc::new(Decimal128Array::from(vec![12, 7]).with_precision_and_scale(20, 0).unwrap())),
            ("e", Arc::new(StringViewArray::from(vec!["x", "a string that is too long to stand in a view"]))),
            ("f", Arc::new(BooleanArray::from(vec![true, false]))),
        ];
        let mut answer = Answer::default();
        append(&RecordBatch::try_from_iter(columns).unwrap(), &mut answer).unwrap();
        assert_eq!(
            json!(answer.rows),
            json!([
                [-1, u64::MAX, 0.5, 12, "x", true],
                [null, 0, 2.0, 7, "a string that is too long to stand in a view", false],
            ])
        );
    }

    #[test]
    fn more_than_an_answer_has_is_not_taken() {
        let options = RecordBatchOptions::new().with_row_count(Some(1 << 40));
        let endless =
            RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options).unwrap();
        let mut answer = Answer::default();
        assert!(matches!(append(&endless, &mut answer), Err(Unfit::TooMuch)));
        let nothing: ArrayRef = Arc::new(NullArray::new(ROWS_MAX));
        let wide = RecordBatch::try_from_iter((0..34).map(|n| (n.to_string(), nothing.clone()))).unwrap();
        assert!(matches!(append(&wide, &mut answer), Err(Unfit::TooMuch)));
        let long: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(TEXT_MAX / 64); 2]));
        let long = RecordBatch::try_from_iter([("a", long)]).unwrap();
        answer.text_bytes = TEXT_MAX - TEXT_MAX / 64;
        assert!(matches!(append(&long, &mut answer), Err(Unfit::TooMuch)));
    }
}
