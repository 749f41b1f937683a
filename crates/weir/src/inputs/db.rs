//! The servers of a command: their log-in is completed from the files and variables of the servers' own clients.

use weir_db::credentials::{Around, CredentialsError, resolve};

use crate::cli::db::connect::ConnectArgs;
use crate::databases::Named;
use crate::failure::Usage;
use crate::settings::db::typed;

/// Servers and log-in as typed, completed from files and environment. Says on stderr what the user should know. The
/// database stays empty where nobody named one.
///
/// # Errors
/// [`Usage`] where no server can be made of it.
pub fn servers(args: &ConnectArgs) -> anyhow::Result<Named> {
    let typed = typed(args).map_err(usage)?;
    let login = resolve(&typed, &Around::live()).map_err(usage)?;
    for note in &login.notes {
        say!("note: {note}");
    }
    Ok(Named { login, ask_password: args.ask_password })
}

fn usage(error: CredentialsError) -> anyhow::Error {
    Usage { what: error.what, hint: error.hint }.into()
}
