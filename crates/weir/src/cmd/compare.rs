//! `weir compare`.

use weir_core::result;
use weir_oltp::is_oltp;
use weir_report::{json, text};

use crate::cli::compare::{Args, Format};
use crate::failure::{Lacking, Outcome, Usage};
use crate::output::{is_experiment, print, print_exact};
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
    let comparison = match (is_oltp(&a), is_oltp(&b)) {
        (true, true) => weir_oltp::compare(&a, &b, args.seed).map_err(|what| Lacking { what, hint: None })?,
        (false, false) => result::compare(&a, &b, args.seed),
        _ => {
            let what = format!("{} is a {} run and {} a {} run", a.id, a.kind, b.id, b.kind);
            return Err(Usage { what, hint: Some("compare runs of one kind".to_string()) }.into());
        }
    };
    match args.format {
        Format::Text => print(&text::comparison(&comparison))?,
        Format::Json => print_exact(&json::comparison(&comparison)?)?,
    }
    Ok(Outcome::Done)
}
