//! `weir compare`.

use weir_record::NotCompared;
use weir_report::{json, text};

use crate::cli::compare::{Args, Format};
use crate::failure::{Lacking, Outcome, Usage};
use crate::output::{print, print_exact};
use crate::store::Store;

/// Runs the command.
pub fn run(args: Args, _command: &[String]) -> anyhow::Result<Outcome> {
    let store = Store::open()?;
    let a = store.load(&store.resolve(&args.a)?)?;
    let b = store.load(&store.resolve(&args.b)?)?;
    let comparison = weir_record::compare(&a, &b, args.seed).map_err(refused)?;
    match args.format {
        Format::Text => print(&text::comparison(&comparison))?,
        Format::Json => print_exact(&json::comparison(&comparison)?)?,
    }
    Ok(Outcome::Done)
}

fn refused(why: NotCompared) -> anyhow::Error {
    let what = why.to_string();
    let hint = match why {
        NotCompared::Experiment { id } => {
            format!("`weir results show {id}`; for two settings or commands: `weir tune ab`")
        }
        NotCompared::Kinds { .. } => "compare runs of one kind".to_string(),
        NotCompared::Unread(_) => return Lacking { what, hint: None }.into(),
    };
    Usage { what, hint: Some(hint) }.into()
}
