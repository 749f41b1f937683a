//! `weir db warmup`: tables and indexes into the server's memory.

use weir_cli::signals::stop_on_signals;
use weir_core::units::grouped;
use weir_db::DbError;
use weir_db::database::Need;
use weir_db::load::{self, LoadOptions};
use weir_oltp::validate;

use crate::cli::db::workload::WarmupArgs;
use crate::databases::progress::Loading;
use crate::databases::{Premises, server};
use crate::failure::Outcome;
use crate::inputs::db::servers;
use crate::settings::bench::usage;
use crate::settings::db::workload::tables;

/// Runs the command.
pub fn run(args: WarmupArgs, _command: &[String]) -> anyhow::Result<Outcome> {
    let spec = tables(&args.tables, args.threads, None);
    validate::spec(&spec).map_err(usage)?;
    let stop = stop_on_signals()?;
    let mut premises = Premises::enter(servers(&args.connect)?)?;
    premises.refuse_missing()?;
    premises.refuse_unprivileged(Need::Read)?;
    let options = LoadOptions { threads: spec.threads, any_maker: true, ..LoadOptions::default() };
    for server in &premises.login.servers {
        let loading = Loading::of(&spec, "reading");
        let warmed = load::warmup(&spec, server, &options, &|event| loading.event(event), &stop);
        let took = loading.end();
        match warmed {
            Ok(warmed) => {
                say!("weir: read {} rows of {} tables in {took}", grouped(warmed.rows), warmed.tables)
            }
            Err(error @ DbError::Tables { .. }) => return Err(server::not_started(error, server)),
            Err(error) => return Err(server::failed(error, "reading the tables", server)),
        }
    }
    Ok(Outcome::Done)
}
