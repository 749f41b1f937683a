//! `weir compare`.

use weir_core::report::{json, text};
use weir_core::result;

use crate::cli::compare::{Args, Format};
use crate::failure::{Outcome, Usage};
use crate::output::{is_experiment, print};
use crate::store::Store;

/// Runs the command.
pub fn run(args: Args, _command: &[String]) -> anyhow::Result<Outcome> {
    let store = Store::open()?;
    let a = store.load(&store.resolve(&args.a)?)?;
    let b = store.load(&store.resolve(&args.b)?)?;
    if let Some(experiment) = [&a, &b].into_iter().find(|record| is_experiment(record)) {
        let what = format!("{} is an experiment, which compares its own arms", experiment.id);
        let hint =
            format!("`weir results show {}`; for two settings or commands: `weir tune ab`", experiment.id);
        return Err(Usage { what, hint: Some(hint) }.into());
    }
    let comparison = result::compare(&a, &b, args.seed);
    print(&match args.format {
        Format::Text => text::comparison(&comparison),
        Format::Json => json::comparison(&comparison)?,
    })?;
    Ok(Outcome::Done)
}
