//! The part of Parquet (parquet-format 2.x) that flat tables of required 64-bit integers and UTF-8 strings need: one data page
//! a column and row group, version 1, plain or by dictionary, compressed by gzip, whose checksum shows damage. Written so
//! that every reader of Parquet can read it; read so that files of others that keep to this part can be read, too.
//!
//! The crate parquet would bring some twenty crates for it, among them second versions of others, and a minute of a
//! processor to every build.

mod hybrid;
mod read;
pub(crate) mod thrift;
mod write;

pub use read::{about, read};
pub use write::Writer;

use crate::batch::Batch;

const MAGIC: &[u8; 4] = b"PAR1";
/// A writer of rows ends a row group once it has so many.
pub const GROUP_ROWS: usize = 1 << 16;
/// The most rows of a row group that is written or read: the interval that fills one stands in it whole.
const ROWS_MAX: usize = 2 * GROUP_ROWS;
/// A writer of rows ends a row group, too, once the names of a column have so many bytes, each counted once a row.
const GROUP_NAMES: usize = 8 << 20;
/// The longest page, unpacked, and names of a column in a row group, bytes, that are written or read.
const PAGE_MAX: usize = 64 << 20;
/// The longest footer that is read. Those of weir's have about a kilobyte for each row group.
pub const FOOTER_MAX: usize = 4 << 20;

/// Whether a writer of rows ends a row group with these.
pub fn fills_group(rows: &Batch) -> bool {
    rows.rows() >= GROUP_ROWS || rows.names_bytes() >= GROUP_NAMES
}

/// Numbers of parquet.thrift.
mod number {
    pub const INT64: i64 = 2;
    pub const BYTE_ARRAY: i64 = 6;
    pub const PLAIN: i64 = 0;
    pub const PLAIN_DICTIONARY: i64 = 2;
    pub const RLE: i64 = 3;
    pub const RLE_DICTIONARY: i64 = 8;
    pub const UNCOMPRESSED: i64 = 0;
    pub const GZIP: i64 = 2;
    pub const DATA_PAGE: i64 = 0;
    pub const DICTIONARY_PAGE: i64 = 2;
}

#[cfg(test)]
mod tests;
