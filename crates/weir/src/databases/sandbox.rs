//! Throw-away servers of commands: what goes wrong with them, as errors with hints and exit codes.

use std::path::Path;

use weir_core::stop::Stop;
use weir_db::sandbox::{Sandbox, SandboxError, SandboxSpec, set_remover};

use crate::failure::{Lacking, Usage, stopped};

/// Starts a throw-away server, which goes away however this process ends.
pub fn start(spec: &SandboxSpec, stop: &Stop) -> anyhow::Result<Sandbox> {
    // This very program, even if its file has been replaced since.
    set_remover(Path::new("/proc/self/exe"));
    Sandbox::start(spec, &|| stop.requested().is_some()).map_err(failed)
}

/// An error of a throw-away server, with its exit code and hint.
pub fn failed(error: SandboxError) -> anyhow::Error {
    if matches!(error, SandboxError::Stopped)
        && let Some(stopped) = stopped()
    {
        return stopped;
    }
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
