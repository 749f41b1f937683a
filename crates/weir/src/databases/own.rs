//! A throw-away server as a workload's place: its database, and the tables in it.

use weir_core::stop::Stop;
use weir_db::load::{self, LoadOptions, Progress};
use weir_db::sandbox::Sandbox;
use weir_db::{Connection, Server, database};
use weir_oltp::OltpSpec;

use super::DATABASE;
use super::server::failed;

/// Tables that are filled at the same time.
const LOADERS_MAX: u32 = 4;

/// How to reach the workload's database in it.
pub fn server_of(sandbox: &Sandbox) -> Server {
    Server { database: DATABASE.to_string(), ..sandbox.server() }
}

/// Makes that database, and fills the tables of a workload.
pub fn fill(sandbox: &Sandbox, spec: &OltpSpec, progress: Progress<'_>, stop: &Stop) -> anyhow::Result<()> {
    let (lobby, server) = (sandbox.server(), server_of(sandbox));
    Connection::open(&lobby)
        .and_then(|mut connection| database::create(&mut connection, &server))
        .map_err(|error| failed(error, "making a database", &lobby))?;
    let options = LoadOptions { threads: spec.tables.min(LOADERS_MAX), ..LoadOptions::default() };
    load::prepare(spec, &server, &options, progress, stop)
        .map_err(|error| failed(error, "filling the tables", &server))?;
    Ok(())
}
