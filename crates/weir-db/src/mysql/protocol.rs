//! Numbers of the protocol (MySQL's source documentation, "Client/Server Protocol"; MariaDB's knowledge base, the same).

/// What client and server can do; both sides name theirs and the common ones hold.
pub(super) mod capability {
    /// MySQL: long passwords. MariaDB leaves it out to say that the extended capabilities follow.
    pub const LONG_PASSWORD: u32 = 1;
    pub const LONG_FLAG: u32 = 1 << 2;
    pub const CONNECT_WITH_DB: u32 = 1 << 3;
    pub const LOCAL_FILES: u32 = 1 << 7;
    pub const PROTOCOL_41: u32 = 1 << 9;
    pub const SSL: u32 = 1 << 11;
    pub const TRANSACTIONS: u32 = 1 << 13;
    pub const SECURE_CONNECTION: u32 = 1 << 15;
    pub const MULTI_STATEMENTS: u32 = 1 << 16;
    pub const MULTI_RESULTS: u32 = 1 << 17;
    pub const PS_MULTI_RESULTS: u32 = 1 << 18;
    pub const PLUGIN_AUTH: u32 = 1 << 19;
    pub const CONNECT_ATTRS: u32 = 1 << 20;
    pub const PLUGIN_AUTH_LENENC: u32 = 1 << 21;
    pub const DEPRECATE_EOF: u32 = 1 << 24;

    /// MariaDB's extended ones: a prepared statement is executed with many rows of values at once.
    pub const MARIADB_BULK_OPERATIONS: u32 = 1 << 2;
    /// Columns are described again only where they changed since the last time.
    pub const MARIADB_CACHE_METADATA: u32 = 1 << 4;
}

/// The first byte of what a client asks.
pub(super) mod command {
    pub const QUIT: u8 = 0x01;
    pub const QUERY: u8 = 0x03;
    pub const PING: u8 = 0x0e;
    pub const STMT_PREPARE: u8 = 0x16;
    pub const STMT_EXECUTE: u8 = 0x17;
    pub const STMT_CLOSE: u8 = 0x19;
    /// MariaDB's.
    pub const STMT_BULK_EXECUTE: u8 = 0xfa;
}

/// Types of columns and parameters.
pub(super) mod kind {
    pub const TINY: u8 = 1;
    pub const SHORT: u8 = 2;
    pub const LONG: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const DOUBLE: u8 = 5;
    pub const NULL: u8 = 6;
    pub const TIMESTAMP: u8 = 7;
    pub const LONGLONG: u8 = 8;
    pub const INT24: u8 = 9;
    pub const DATE: u8 = 10;
    pub const TIME: u8 = 11;
    pub const DATETIME: u8 = 12;
    pub const YEAR: u8 = 13;
    pub const NEWDATE: u8 = 14;
    pub const VAR_STRING: u8 = 253;
}

/// First bytes of what a server answers.
pub(super) const OK: u8 = 0x00;
pub(super) const MORE_AUTH: u8 = 0x01;
pub(super) const INFILE: u8 = 0xfb;
pub(super) const EOF: u8 = 0xfe;
pub(super) const ERR: u8 = 0xff;

/// In the status of an answer: another result follows.
pub(super) const STATUS_MORE_RESULTS: u16 = 0x0008;
/// In the flags of a column.
pub(super) const FLAG_UNSIGNED: u16 = 0x20;
/// A packet of this size is continued by the next one.
pub(super) const PACKET_BYTES_MAX: usize = 0xff_ffff;
/// The longest value and row of either server (`max_allowed_packet`), and so the longest payload that is sent.
pub(super) const PAYLOAD_BYTES_MAX: usize = (1 << 30) + (64 << 10);
/// The longest answer that is no row.
pub(super) const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Columns of a table, and of a result.
pub(super) const COLUMNS_MAX: u64 = 4096;
/// utf8mb4_general_ci, which every supported server has.
pub(super) const UTF8MB4: u8 = 45;
