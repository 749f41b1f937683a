//! `weir db doctor`: watches a server, and this machine if the server is on it, and says what limits it as it stands.

use std::time::Duration;

use weir_cli::signals::stop_on_signals;
use weir_report::text::db_doctor;
use weir_verdict::db;

use crate::cli::db::connect::ConnectArgs;
use crate::cli::db::doctor::{Args, Format};
use crate::databases::examination;
use crate::failure::{Outcome, Usage};
use crate::output;

/// The shortest watch that gives rates.
const SHORTEST: Duration = Duration::from_secs(1);

/// Runs the command.
pub fn run(args: Args, _command: &[String]) -> anyhow::Result<Outcome> {
    let duration = Duration::from_nanos(args.duration.0);
    if duration < SHORTEST {
        let what = format!("a server cannot be examined in {}", args.duration);
        return Err(Usage {
            what,
            hint: Some("--duration takes a second or more; a minute tells more".to_string()),
        }
        .into());
    }
    let connect = ConnectArgs { server: args.named.or(args.connect.server), ..args.connect };
    let login = crate::inputs::db::servers(&connect)?.log_in()?;
    let stop = stop_on_signals()?;
    let report = db::report(examination::examine(login, duration, &stop)?);
    match args.format {
        Format::Text => output::print(&db_doctor(&report))?,
        Format::Json => output::print_exact(&(serde_json::to_string_pretty(&report)? + "\n"))?,
    }
    Ok(stop.requested().map_or(Outcome::Done, Outcome::Interrupted))
}
