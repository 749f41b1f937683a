//! What goes wrong with throw-away servers, as errors with hints and exit codes.

use weir_db::sandbox::SandboxError;

use crate::failure::{Lacking, Usage};

/// An error of a throw-away server, with its exit code and hint.
pub fn failed(error: SandboxError) -> anyhow::Error {
    let (what, hint) = (error.to_string(), error.hint());
    if error.is_usage() { Usage { what, hint }.into() } else { Lacking { what, hint }.into() }
}
