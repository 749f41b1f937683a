//! What goes wrong with throw-away servers, as errors with hints and exit codes.

use weir_db::sandbox::{Sandbox, SandboxError};

use crate::failure::{Lacking, Usage};

/// An error of a throw-away server, with its exit code and hint.
pub fn failed(error: SandboxError) -> anyhow::Error {
    let (what, hint) = (error.to_string(), error.hint());
    if error.is_usage() { Usage { what, hint }.into() } else { Lacking { what, hint }.into() }
}

/// Says what holds a server less than it should be.
pub fn mention_account(sandbox: &Sandbox) {
    if let Some(uid) = sandbox.shared_account() {
        say!(
            "warning: namespaces are forbidden here: the server runs as account {uid} of this machine, beside its processes"
        );
    }
}
