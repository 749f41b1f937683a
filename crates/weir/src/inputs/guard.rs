//! The file of settings of `weir guard`.

use std::io::{self, Read};
use std::path::Path;

use crate::cli::guard::run::Args;
use crate::failure::Lacking;
use crate::guard::settings::GuardSettings;
use crate::settings::guard::guard;

/// Where settings are looked for without `--config`.
const DEFAULT_FILE: &str = "/etc/weir/guard.toml";

/// What was typed, laid over the file that is named, or that of this machine.
///
/// # Errors
/// When the file cannot be read, or with what was typed makes no settings.
pub fn settings(args: &Args) -> anyhow::Result<GuardSettings> {
    if args.config.is_some() {
        return named(args);
    }
    let path = Path::new(DEFAULT_FILE);
    // Found, not named: it says what root does at every boot.
    match found(path) {
        Ok(text) => guard(args, Some((path, &text))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => guard(args, None),
        Err(error) => Err(unreadable(path, &error).into()),
    }
}

/// What was typed, laid over a file that is named.
///
/// # Errors
/// As above.
pub fn named(args: &Args) -> anyhow::Result<GuardSettings> {
    let Some(path) = &args.config else { return guard(args, None) };
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
    guard(args, Some((path, &text)))
}

fn unreadable(path: &Path, error: &io::Error) -> Lacking {
    Lacking { what: format!("cannot read the settings {}: {error}", path.display()), hint: None }
}

/// The text of a file that only root or the caller can have written.
fn found(path: &Path) -> io::Result<String> {
    const LONGEST_BYTES: u64 = 1 << 20;
    let file = weir_fs::trusted_file(path)?;
    let mut text = String::new();
    file.take(LONGEST_BYTES).read_to_string(&mut text)?;
    Ok(text)
}
