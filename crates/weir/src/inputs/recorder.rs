//! The archive of `weir recorder`, which the environment may name.

use std::path::PathBuf;

use crate::cli::recorder::RunArgs;
use crate::failure::Lacking;
use crate::recorder::{RecorderSettings, default_dir};
use crate::settings::recorder::recorder;

/// What `weir recorder run` is to do.
///
/// # Errors
/// Where no folder is meant, or a time makes no sense.
pub fn settings(args: &RunArgs) -> anyhow::Result<RecorderSettings> {
    recorder(args, dir(args.dir.clone())?)
}

/// The archive that is meant.
///
/// # Errors
/// Where there is neither a name nor a home.
pub fn dir(named: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let what = "cannot tell where the archive lies: HOME is not set".to_string();
    let hint = Some("name its folder with --dir".to_string());
    named.or_else(default_dir).ok_or_else(|| Lacking { what, hint }.into())
}
