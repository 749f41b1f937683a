//! `weir db cleanup`: the tables go, and the database if weir made it.

use weir_cli::signals::stop_on_signals;
use weir_db::Server;
use weir_db::database::{self, Need, Removal};
use weir_db::load::{self, LoadOptions};

use crate::cli::db::workload::CleanupArgs;
use crate::databases::{Premises, server};
use crate::failure::Outcome;
use crate::inputs::db::servers;

/// Runs the command.
pub fn run(args: CleanupArgs, _command: &[String]) -> anyhow::Result<Outcome> {
    let stop = stop_on_signals()?;
    let mut premises = Premises::enter(servers(&args.connect)?)?;
    if !premises.exists {
        let server = premises.server()?;
        say!("weir: {} has no database `{}`: nothing to remove", server.place, server.database);
        return Ok(Outcome::Done);
    }
    premises.refuse_closed()?;
    premises.refuse_unprivileged(Need::Cleanup)?;
    let servers = premises.login.servers.clone();
    // Its connection would keep PostgreSQL from removing the database.
    drop(premises);
    let options = LoadOptions { any_maker: args.sysbench_tables, ..LoadOptions::default() };
    for server in &servers {
        let (removed, left) = load::cleanup(server, &options, &|_| {}, &stop)
            .map_err(|error| server::failed(error, "removing tables", server))?;
        say!("weir: removed {} table{} from `{}`", removed.len(), plural(removed.len()), server.database);
        if !left.is_empty() {
            say!("weir: left alone, since weir did not make them: {}", left.join(", "));
        }
        drop_database(server)?;
    }
    Ok(Outcome::Done)
}

fn plural(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}

fn drop_database(server: &Server) -> anyhow::Result<()> {
    let removal = database::drop_made(server)
        .map_err(|error| server::failed(error, "removing the database", server))?;
    let name = &server.database;
    match removal {
        Removal::Removed => say!("weir: removed the database `{name}`, which weir had made"),
        Removal::Shared => say!(
            "weir: left the database `{name}`, which weir had made: it holds objects that weir did not put there, or was \
             made by weir before 0.2"
        ),
        Removal::NotMade => {}
    }
    Ok(())
}
