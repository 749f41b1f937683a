//! Ending a statement from another connection.

use crate::error::DbError;
use crate::server::Canceller;

use super::{login, message};

/// What CancelRequest has in the place of a protocol version.
const CANCEL_REQUEST: i32 = 80_877_102;

/// Asks the server to end the statement that a connection is in. The server says nothing to it: whether there was one
/// shows in that connection's answer (57014). Returns when the server has heard it, so that no later statement is meant.
pub(crate) fn cancel(canceller: &Canceller) -> Result<(), DbError> {
    let mut wire = login::connect(&canceller.server)?;
    message::put_untyped(wire.output(), |out| {
        out.extend_from_slice(&CANCEL_REQUEST.to_be_bytes());
        out.extend_from_slice(&canceller.connection_id.to_be_bytes());
        out.extend_from_slice(&canceller.key);
    });
    wire.flush()?;
    match wire.need(1) {
        Err(DbError::Lost { .. }) => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Err(wire.odd("it answers a request to cancel")),
    }
}
