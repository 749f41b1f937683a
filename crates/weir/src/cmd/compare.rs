//! `weir compare`.

use weir_core::report::{json, text};
use weir_core::result;

use crate::cli::compare::{Args, Format};
use crate::failure::Outcome;
use crate::output::print;
use crate::store::Store;

/// Runs the command.
pub fn run(args: Args, _command: &[String]) -> anyhow::Result<Outcome> {
    let store = Store::open()?;
    let a = store.load(&store.resolve(&args.a)?)?;
    let b = store.load(&store.resolve(&args.b)?)?;
    let comparison = result::compare(&a, &b, args.seed);
    print(&match args.format {
        Format::Text => text::comparison(&comparison),
        Format::Json => json::comparison(&comparison)?,
    })?;
    Ok(Outcome::Done)
}
