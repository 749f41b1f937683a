//! `weir recorder snap`.

use std::time::Duration;

use weir_core::units::{Bytes, Nanos};

use crate::cli::recorder::SnapArgs;
use crate::failure::{Outcome, Usage};
use crate::inputs::recorder::dir;
use crate::output::{print, print_exact};
use crate::recorder::control;

/// Runs the command.
pub fn run(args: &SnapArgs) -> anyhow::Result<Outcome> {
    let most = Nanos(control::LAST_MAX_MS * 1_000_000);
    if args.last < Nanos(1_000_000) || args.last > most {
        let what = format!("--last {}: expected 1ms to {most}", args.last);
        return Err(Usage { what, hint: None }.into());
    }
    let answer = control::ask(&dir(args.dir.clone())?, Duration::from_nanos(args.last.0))?;
    if args.json {
        print_exact(&(serde_json::to_string_pretty(&answer)? + "\n"))?;
        return Ok(Outcome::Done);
    }
    let path = answer.file.unwrap_or_default();
    print(&format!("{}\n", path.display()))?;
    say!("weir: {} of the last {}", Bytes(answer.bytes), args.last);
    Ok(Outcome::Done)
}
