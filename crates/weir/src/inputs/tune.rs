//! What `weir tune` takes from files, from the environment and from the file system.

use crate::cli::tune::CommonArgs;
use crate::databases::DATABASE;
use crate::experiments::Asked;
use crate::inputs::{bench, db};
use crate::servers;
use crate::settings::tune::{self as settings, Base, Origin};

/// Reads what all experiments share. `wants_flood`: the knob means nothing without one.
pub fn common(args: &mut CommonArgs, base: Base, wants_flood: bool) -> anyhow::Result<Asked> {
    let mut asked = settings::common(args, base, wants_flood, origin(args)?)?;
    if let Ok(place) = asked.measured.place.canonicalize() {
        asked.move_to(place);
    }
    Ok(asked)
}

fn origin(args: &CommonArgs) -> anyhow::Result<Origin> {
    if args.command.is_some() {
        return Ok(Origin::Typed);
    }
    if let Some(line) = &args.db {
        let line = settings::db_line(line)?;
        let mut named = db::servers(&line.connect)?;
        named.login.default_database(DATABASE);
        let server = servers::name(&named.login.servers);
        return Ok(Origin::Database { line: Box::new(line), named, server });
    }
    match (&args.fileio, &args.job) {
        (None, Some(path)) => Ok(Origin::Job(bench::source(Some(path), None)?)),
        _ => Ok(Origin::Typed),
    }
}
