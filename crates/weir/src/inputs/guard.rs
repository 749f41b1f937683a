//! The file of settings of `weir guard`.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::cli::guard::run::Args;
use crate::failure::Lacking;
use crate::guard::settings::GuardSettings;
use crate::settings::guard::guard;

/// Where settings are looked for without `--config`.
const DEFAULT_FILE: &str = "/etc/weir/guard.toml";

/// What was typed, laid over the file.
///
/// # Errors
/// When the file cannot be read, or with what was typed makes no settings.
pub fn settings(args: &Args) -> anyhow::Result<GuardSettings> {
    let path = args.config.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_FILE));
    let text = match &args.config {
        Some(named) => std::fs::read_to_string(named),
        // Found, not named: it says what root does at every boot.
        None => found(&path),
    };
    let text = match text {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound && args.config.is_none() => None,
        Err(error) => {
            let what = format!("cannot read the settings {}: {error}", path.display());
            return Err(Lacking { what, hint: None }.into());
        }
    };
    guard(args, text.as_deref().map(|text| (path.as_path(), text)))
}

/// The text of a file that only root or the caller can have written.
fn found(path: &Path) -> io::Result<String> {
    const LONGEST_BYTES: u64 = 1 << 20;
    let file = weir_fs::trusted_file(path)?;
    let mut text = String::new();
    file.take(LONGEST_BYTES).read_to_string(&mut text)?;
    Ok(text)
}
