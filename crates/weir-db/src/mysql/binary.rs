//! Rows of prepared statements as text, the way the server would have written them.

use std::fmt::Write;

use crate::rows::Row;

use super::answer::Column;
use super::cursor::Cursor;
use super::protocol::kind;

/// A zero, a bit for each NULL (from the third bit on), the values.
pub(super) fn binary_row(payload: &[u8], columns: &[Column]) -> Option<Row> {
    let mut cursor = Cursor(payload.strip_prefix(&[0])?);
    let nulls = cursor.take((columns.len() + 2).div_ceil(8))?;
    let row = columns.iter().enumerate().map(|(at, column)| {
        let bit = at + 2;
        if nulls[bit / 8] & 1 << (bit % 8) != 0 { Some(None) } else { value(&mut cursor, column).map(Some) }
    });
    row.collect()
}

fn value(cursor: &mut Cursor<'_>, column: &Column) -> Option<String> {
    let unsigned = column.unsigned;
    Some(match column.kind {
        kind::NULL => String::new(),
        kind::TINY if unsigned => cursor.u8()?.to_string(),
        kind::TINY => (cursor.u8()? as i8).to_string(),
        kind::YEAR => format!("{:04}", cursor.u16()?),
        kind::SHORT if unsigned => cursor.u16()?.to_string(),
        kind::SHORT => (cursor.u16()? as i16).to_string(),
        kind::LONG | kind::INT24 if unsigned => cursor.u32()?.to_string(),
        kind::LONG | kind::INT24 => (cursor.u32()? as i32).to_string(),
        kind::LONGLONG if unsigned => cursor.u64()?.to_string(),
        kind::LONGLONG => (cursor.u64()? as i64).to_string(),
        kind::FLOAT => {
            let number = f32::from_bits(cursor.u32()?);
            if is_plain(f64::from(number)) { number.to_string() } else { format!("{number:e}") }
        }
        kind::DOUBLE => {
            let number = f64::from_bits(cursor.u64()?);
            if is_plain(number) { number.to_string() } else { format!("{number:e}") }
        }
        kind::DATE | kind::NEWDATE => date(cursor)?,
        kind::DATETIME | kind::TIMESTAMP => date_time(cursor, column.decimals)?,
        kind::TIME => time(cursor, column.decimals)?,
        _ => String::from_utf8_lossy(cursor.lenenc_bytes()?).into_owned(),
    })
}

/// Whether the servers write a number without an exponent.
fn is_plain(number: f64) -> bool {
    number == 0.0 || (1e-15..1e15).contains(&number.abs())
}

/// As many bytes as are not zero: none, or all down to the day, the second or the microsecond.
fn date(cursor: &mut Cursor<'_>) -> Option<String> {
    let mut part = Cursor(cursor.lenenc_bytes()?);
    day(&mut part)
}

fn day(part: &mut Cursor<'_>) -> Option<String> {
    if part.0.is_empty() {
        return Some("0000-00-00".to_string());
    }
    Some(format!("{:04}-{:02}-{:02}", part.u16()?, part.u8()?, part.u8()?))
}

fn date_time(cursor: &mut Cursor<'_>, decimals: u8) -> Option<String> {
    let mut part = Cursor(cursor.lenenc_bytes()?);
    let mut text = day(&mut part)?;
    let (hour, minute, second) = clock(&mut part)?;
    let _ = write!(text, " {hour:02}:{minute:02}:{second:02}");
    push_fraction(&mut text, &mut part, decimals)?;
    Some(text)
}

fn time(cursor: &mut Cursor<'_>, decimals: u8) -> Option<String> {
    let mut part = Cursor(cursor.lenenc_bytes()?);
    let (negative, days) = if part.0.is_empty() { (0, 0) } else { (part.u8()?, part.u32()?) };
    let (hour, minute, second) = clock(&mut part)?;
    let hours = u64::from(days) * 24 + u64::from(hour);
    let mut text = format!("{}{hours:02}:{minute:02}:{second:02}", if negative != 0 { "-" } else { "" });
    push_fraction(&mut text, &mut part, decimals)?;
    Some(text)
}

fn clock(part: &mut Cursor<'_>) -> Option<(u8, u8, u8)> {
    if part.0.is_empty() { Some((0, 0, 0)) } else { Some((part.u8()?, part.u8()?, part.u8()?)) }
}

fn push_fraction(text: &mut String, part: &mut Cursor<'_>, decimals: u8) -> Option<()> {
    let micros = if part.0.is_empty() { 0 } else { part.u32()? };
    let digits = match decimals {
        0..=6 => usize::from(decimals),
        // The server does not say how many there are.
        _ if micros == 0 => 0,
        _ => 6,
    };
    if digits > 0 {
        let _ = write!(text, ".{}", &format!("{micros:06}")[..digits]);
    }
    Some(())
}
