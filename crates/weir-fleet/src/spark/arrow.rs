//! Rows as a server sends them: streams in Arrow's format. What a message says of itself is held against what is there before
//! memory is taken for it.

use std::io::Cursor;

use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::root_as_message;

use crate::cells::{Answer, Unfit, append};

/// Before the length of a message, since format version 5.
const CONTINUES: [u8; 4] = [0xff; 4];

/// Adds the rows of a stream to an answer.
///
/// # Errors
/// Where it is no such stream, has other columns than those before it, or holds more than an answer does.
pub fn read(data: &[u8], answer: &mut Answer) -> Result<(), Unfit> {
    check(data)?;
    let batches = StreamReader::try_new(Cursor::new(data), None)?;
    let columns: Vec<String> = batches.schema().fields().iter().map(|field| field.name().clone()).collect();
    if !answer.rows.is_empty() && columns != answer.columns {
        return Err(ArrowError::IpcError("rows of several tables in one answer".to_string()).into());
    }
    answer.columns = columns;
    for batch in batches {
        append(&batch?, answer)?;
    }
    Ok(())
}

/// Whether each message lies within the bytes, with its body, which is not compressed: a small one would say of itself how much memory
/// it takes. Servers compress only where they are told to.
fn check(mut data: &[u8]) -> Result<(), ArrowError> {
    let beyond = || ArrowError::IpcError("a message that is longer than what was sent".to_string());
    while !data.is_empty() {
        data = data.strip_prefix(&CONTINUES).unwrap_or(data);
        let (length, rest) = data.split_first_chunk().ok_or_else(beyond)?;
        let length = usize::try_from(i32::from_le_bytes(*length)).map_err(|_| beyond())?;
        if length == 0 {
            return Ok(());
        }
        let (head, rest) = rest.split_at_checked(length).ok_or_else(beyond)?;
        let message = root_as_message(head).map_err(|error| ArrowError::IpcError(error.to_string()))?;
        let rows = message.header_as_record_batch();
        let rows = rows.or_else(|| message.header_as_dictionary_batch()?.data());
        if rows.is_some_and(|rows| rows.compression().is_some()) {
            return Err(ArrowError::IpcError("rows are compressed, which weir does not read".to_string()));
        }
        let body = usize::try_from(message.bodyLength()).map_err(|_| beyond())?;
        data = rest.split_at_checked(body).ok_or_else(beyond)?.1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int64Array};
    use datafusion::arrow::ipc::CompressionType;
    use datafusion::arrow::ipc::writer::{IpcWriteOptions, StreamWriter};
    use datafusion::arrow::record_batch::RecordBatch;

    use super::*;

    fn stream() -> Vec<u8> {
        written(&["a"], IpcWriteOptions::default())
    }

    fn written(columns: &[&str], options: IpcWriteOptions) -> Vec<u8> {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
        let batch = RecordBatch::try_from_iter(columns.iter().map(|name| (*name, column.clone()))).unwrap();
        let mut writer = StreamWriter::try_new_with_options(Vec::new(), &batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        writer.into_inner().unwrap()
    }

    #[test]
    fn a_stream_is_read_and_a_cut_one_refused() {
        let whole = stream();
        let mut answer = Answer::default();
        read(&whole, &mut answer).unwrap();
        assert_eq!((answer.columns.len(), answer.rows.len()), (1, 3));
        for cut in 1..whole.len() {
            let _ = read(&whole[..cut], &mut Answer::default());
        }
    }

    /// A row has a cell for each column: who prints it counts on that.
    #[test]
    fn streams_of_an_answer_have_the_same_columns() {
        let mut answer = Answer::default();
        read(&stream(), &mut answer).unwrap();
        for columns in [&["a", "b"][..], &["b"]] {
            let other = written(columns, IpcWriteOptions::default());
            let refused = read(&other, &mut answer).unwrap_err();
            assert!(format!("{refused:?}").contains("several tables"), "{refused:?}");
            assert_eq!((answer.columns.len(), answer.rows.len()), (1, 3));
        }
        read(&stream(), &mut answer).unwrap();
        assert_eq!(answer.rows.len(), 6);
    }

    #[test]
    fn compressed_rows_are_refused() {
        let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME));
        let refused = read(&written(&["a"], options.unwrap()), &mut Answer::default()).unwrap_err();
        assert!(format!("{refused:?}").contains("compressed"), "{refused:?}");
    }

    #[test]
    fn a_body_longer_than_what_was_sent_takes_no_memory() {
        let whole = stream();
        let mut lengths = 0;
        for at in 0..whole.len() - 8 {
            let number = i64::from_le_bytes(*whole[at..].first_chunk().unwrap());
            // The body is three numbers of eight bytes, filled up.
            if !(24..=64).contains(&number) {
                continue;
            }
            let mut forged = whole.clone();
            forged[at..at + 8].copy_from_slice(&(1_i64 << 50).to_le_bytes());
            lengths += usize::from(
                matches!(check(&forged), Err(error) if error.to_string().contains("longer than")),
            );
        }
        assert!(lengths > 0, "no length of a body was found");
    }
}
