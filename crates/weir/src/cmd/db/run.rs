//! `weir db run`.

use crate::cli::db::workload::RunArgs;
use crate::failure::Outcome;
use crate::settings::db::workload::{DATABASE, spec, tables};

/// Runs the command.
pub fn run(args: RunArgs, _command: &[String]) -> anyhow::Result<Outcome> {
    let mut login = crate::settings::db::servers(&args.connect)?;
    login.default_database(DATABASE);
    let _spec = (spec(args.script, &args.workload), tables(&args.workload.tables, None, None));
    let mut connection = super::server::open(&mut login)?;
    if let (Err(error), Some(server)) = (connection.run("SELECT 1"), login.servers.first()) {
        return Err(super::server::failed(error, "asking the server", server));
    }
    super::not_yet()
}
