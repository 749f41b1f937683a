//! `weir db prepare`: the database, where it is not there, and its tables.

use weir_cli::signals::stop_on_signals;
use weir_core::units::{Nanos, grouped, per_second};
use weir_db::credentials::Login;
use weir_db::database::{self, Need};
use weir_db::load::{self, LoadOptions, Loaded, Way};
use weir_db::{Connection, DbError, Server};
use weir_oltp::{OltpSpec, validate};

use crate::cli::db::workload::PrepareArgs;
use crate::databases::progress::Loading;
use crate::databases::{Premises, outside, server};
use crate::failure::Outcome;
use crate::inputs::db::servers;
use crate::settings::bench::usage;
use crate::settings::db::workload::tables;

/// Runs the command.
pub fn run(args: PrepareArgs, _command: &[String]) -> anyhow::Result<Outcome> {
    let spec = tables(&args.tables, args.threads, args.seed);
    let spec = OltpSpec { script: args.script.unwrap_or(spec.script), ..spec };
    validate::spec(&spec).map_err(usage)?;
    let stop = stop_on_signals()?;
    let mut premises = Premises::enter(servers(&args.connect)?)?;
    premises.refuse_foreign()?;
    premises.refuse_unprivileged(if premises.exists { Need::Prepare } else { Need::CreateDatabase })?;
    let any_maker = args.tables.sysbench_tables;
    let options = LoadOptions { threads: spec.threads, any_maker, ..LoadOptions::default() };
    // Tables that are there have their space.
    if premises.login.servers.iter().any(|server| load::check(&spec, server, &options).is_err()) {
        premises.refuse_full(Some(&spec))?;
    }
    // Several servers are several databases: each gets the tables.
    for server in &premises.login.servers {
        let made = make_database(server, &premises.login)?;
        let loading = Loading::of(&spec, "filling");
        let loaded = load::prepare(&spec, server, &options, &|event| loading.event(event), &stop);
        let took = loading.end();
        match loaded {
            Ok(loaded) => say!("weir: {}", sentence(&spec, server, loaded, took)),
            Err(error) => {
                if made {
                    undo(server);
                }
                return ended(error, server, stop.requested());
            }
        }
    }
    Ok(Outcome::Done)
}

/// Makes the database where it is not there. Whether it did.
fn make_database(server: &Server, login: &Login) -> anyhow::Result<bool> {
    match Connection::open(server) {
        Ok(_) => return Ok(false),
        Err(error) if database::is_missing(&error) => {}
        Err(error) => return Err(server::not_connected(error, login)),
    }
    let doing = format!("making the database `{}`", server.database);
    database::create(&mut outside(server, login)?, server)
        .map_err(|error| server::failed(error, &doing, server))?;
    say!("weir: made the database `{}`", server.database);
    Ok(true)
}

/// Takes away a database that this call has made. What remains of it, `weir db cleanup` removes.
fn undo(server: &Server) {
    if let Err(error) = database::drop_made(server) {
        say!("warning: the database `{}` stays: {error}; `weir db cleanup` removes it", server.database);
    }
}

fn ended(error: DbError, server: &Server, signal: Option<u8>) -> anyhow::Result<Outcome> {
    match (error, signal) {
        (DbError::Stopped, Some(signal)) => {
            say!("weir: stopped; the tables of this call are removed");
            Ok(Outcome::Interrupted(signal))
        }
        (error @ DbError::Tables { .. }, _) => Err(server::not_started(error, server)),
        (error, _) => Err(server::failed(error, "filling the tables", server)),
    }
}

fn sentence(spec: &OltpSpec, server: &Server, loaded: Loaded, took: Nanos) -> String {
    let rows = grouped(loaded.rows);
    let found = match loaded.found {
        0 => String::new(),
        1 => "; 1 table was there already".to_string(),
        n => format!("; {n} tables were there already"),
    };
    if loaded.made == 0 {
        return format!("nothing to do{found} with {} rows each", grouped(spec.table_size));
    }
    let tables = if loaded.made == 1 { "1 table".to_string() } else { format!("{} tables", loaded.made) };
    if loaded.rows == 0 {
        return format!("made {tables} in `{}`, empty{found}", server.database);
    }
    let rate = per_second(loaded.rows as f64 / took.as_secs_f64().max(1e-9));
    let how = loaded.way.map_or("", Way::name);
    format!(
        "made {tables} in `{}` and loaded {rows} rows in {took} ({rate}/s, {how}){found}",
        server.database
    )
}
