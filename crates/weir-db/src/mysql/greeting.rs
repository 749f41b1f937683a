//! The server's first words.

use super::cursor::Cursor;
use super::protocol::capability as can;
use crate::error::{NAME_CHARS_MAX, plain};

/// Bytes of a scramble that count; what follows is a NUL.
const SCRAMBLE_BYTES: usize = 20;

/// Protocol::HandshakeV10.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Greeting {
    pub version: String,
    pub connection_id: u32,
    pub capabilities: u32,
    /// MariaDB's own.
    pub extended: u32,
    /// What a password's proof is made with.
    pub scramble: Vec<u8>,
    /// The way to log in that the server expects.
    pub plugin: String,
}

impl Greeting {
    /// `None` where it is none of the version that all supported servers have, or cut short.
    pub(super) fn parse(payload: &[u8]) -> Option<Greeting> {
        let mut cursor = Cursor(payload.strip_prefix(&[10])?);
        let version = plain(cursor.nul_bytes()?, NAME_CHARS_MAX);
        let connection_id = cursor.u32()?;
        let mut scramble = cursor.take(8)?.to_vec();
        cursor.u8()?;
        let low = cursor.u16()?;
        let (_charset, _status) = (cursor.u8()?, cursor.u16()?);
        let capabilities = u32::from(low) | u32::from(cursor.u16()?) << 16;
        let scramble_bytes = usize::from(cursor.u8()?);
        cursor.take(6)?;
        let extended = cursor.u32()?;
        let extended = if capabilities & can::LONG_PASSWORD == 0 { extended } else { 0 };
        if capabilities & can::SECURE_CONNECTION != 0 {
            // At least 13, by the specification, whatever the length says.
            scramble.extend_from_slice(cursor.take(scramble_bytes.saturating_sub(8).max(13))?);
        }
        scramble.truncate(SCRAMBLE_BYTES);
        let plugin = if capabilities & can::PLUGIN_AUTH != 0 {
            // Some servers of the past forgot the NUL.
            let name = cursor.nul_bytes().unwrap_or(cursor.0);
            plain(name, NAME_CHARS_MAX)
        } else {
            "mysql_native_password".to_string()
        };
        Some(Greeting { version, connection_id, capabilities, extended, scramble, plugin })
    }
}
