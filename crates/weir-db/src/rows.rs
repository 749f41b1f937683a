//! What statements give back: counts, and rows as text.

/// A prepared statement of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StatementId(pub u32);

/// What a statement did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Done {
    /// Rows that came back.
    pub rows: u64,
    /// Rows changed.
    pub affected: u64,
    /// MySQL: the number of the first row inserted where the server counts them.
    pub last_insert_id: u64,
}

/// One row as text; `None` is NULL.
pub type Row = Vec<Option<String>>;

/// The longest row that is kept: MySQL's own `max_allowed_packet`.
pub(crate) const ROW_BYTES_MAX: usize = 64 << 20;
/// Memory of rows that are kept for a caller: what weir asks takes far less.
const KEPT_BYTES_MAX: usize = 256 << 20;

/// What an allocation takes at least, and besides (glibc, x86-64): many short texts are mostly that.
const ALLOCATION_BYTES: usize = 32;

/// Rows that are kept, counted by the memory they take: a NULL is a byte on the way, or none.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    rows: Vec<Row>,
    bytes: usize,
}

impl Kept {
    /// Why no more are kept.
    pub(crate) const FULL: &str = "it sends more than 256 MiB of rows where all are to be kept";

    /// Keeps a row; `false`: there are too many.
    pub(crate) fn push(&mut self, row: Row) -> bool {
        let cells = row.iter().flatten().map(|text| text.capacity() + ALLOCATION_BYTES).sum::<usize>();
        let row_bytes = row.capacity() * size_of::<Option<String>>() + size_of::<Row>() + ALLOCATION_BYTES;
        self.bytes += cells + row_bytes;
        self.rows.push(row);
        self.bytes <= KEPT_BYTES_MAX
    }

    /// Forgets those of the result before.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.bytes = 0;
    }

    /// How many.
    pub(crate) fn count(&self) -> u64 {
        self.rows.len() as u64
    }

    /// They.
    pub(crate) fn rows(self) -> Vec<Row> {
        self.rows
    }
}
