//! `weir db doctor`: watches a server, and this machine if the server is on it, and says what limits it as it stands.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weir_core::stop::Stop;
use weir_core::target::{Load, TargetFacts};
use weir_db::database::is_local;
use weir_db::vitals::{LOOK, Watch};
use weir_db::{DbError, Server};
use weir_host::Host;
use weir_oltp::Dialect;
use weir_oltp::vitals::Vitals;
use weir_report::text::db_doctor;
use weir_verdict::db::{self, Examination};

use crate::cli::db::connect::ConnectArgs;
use crate::cli::db::doctor::{Args, Format};
use crate::databases::server;
use crate::databases::watch::place::{self, Home};
use crate::failure::{Outcome, Usage};
use crate::output;
use crate::progress::Progress;
use crate::signals::stop_on_signals;

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
    let mut login = crate::settings::db::servers(&connect)?.log_in()?;
    // No table is looked at: any database will do, and every PostgreSQL has this one.
    if server::first(&login)?.dialect == Dialect::Postgres {
        login.default_database("postgres");
    }
    let mut connection =
        server::try_open(&mut login).map_err(|error| server::not_connected(error, &login))?;
    let server = server::first(&login)?.clone();
    let home = place::find(&Host::live(), &server, &mut connection);
    let stop = stop_on_signals()?;
    let watch = Watch::begin(connection).map_err(|error| lost(error, &server))?;
    let premises = Premises::of(&server, home, &watch);
    let watched = observe(watch, &premises, duration, &stop).map_err(|error| lost(error, &server))?;
    let report = db::report(premises.examination(&server, watched, &stop));
    match args.format {
        Format::Text => output::print(&db_doctor(&report))?,
        Format::Json => output::print_exact(&(serde_json::to_string_pretty(&report)? + "\n"))?,
    }
    Ok(stop.requested().map_or(Outcome::Done, Outcome::Interrupted))
}

/// Where the data of a server on this machine lie.
struct Premises {
    host: Host,
    data_dir: Option<PathBuf>,
    target: Option<TargetFacts>,
    unseen: Vec<String>,
}

impl Premises {
    fn of(server: &Server, home: Home, watch: &Watch) -> Premises {
        let name = if server.dialect == Dialect::Postgres { "data_directory" } else { "datadir" };
        let (host, mut unseen) = (Host::live(), Vec::new());
        let reported = watch.variables().get(name).map(PathBuf::from);
        let target = match &home.data {
            _ if !is_local(&server.place) => {
                unseen
                    .push("the storage: the server is on another machine, or in another network".to_string());
                None
            }
            Some(dir) => target(&host, dir, &mut unseen),
            None => {
                unseen.push(match &reported {
                    Some(dir) => format!(
                        "the storage: {} is not here: the server runs in a container, which needs root",
                        dir.display()
                    ),
                    None => format!("the storage: the server does not show {name} to this user"),
                });
                None
            }
        };
        let data_dir = home.data.or(reported);
        Premises { host, data_dir, target, unseen }
    }

    fn examination(self, server: &Server, watched: (Vitals, Option<Load>), stop: &Stop) -> Examination {
        let (vitals, load) = watched;
        Examination {
            schema: db::SCHEMA.to_string(),
            place: server.place.to_string(),
            vitals,
            data_dir: self.data_dir.map(|dir| dir.display().to_string()),
            conditions: self.target.as_ref().map(|target| self.host.conditions(Some(target))),
            load,
            unseen: self.unseen,
            ended_early: stop.requested().map(|signal| format!("it was ended early, by signal {signal}")),
        }
    }
}

fn target(host: &Host, dir: &Path, unseen: &mut Vec<String>) -> Option<TargetFacts> {
    match host.target(dir) {
        Ok(target) => Some(target),
        Err(error) => {
            unseen.push(format!("the storage: {error}"));
            None
        }
    }
}

/// Watches until the time is over or the user has seen enough.
fn observe(
    mut watch: Watch,
    premises: &Premises,
    duration: Duration,
    stop: &Stop,
) -> Result<(Vitals, Option<Load>), DbError> {
    let before = premises.target.as_ref().map(|target| premises.host.sample(target));
    let mut progress = Progress::new();
    let mut due = Instant::now();
    while watch.elapsed() < duration && stop.requested().is_none() {
        watch.look()?;
        progress.show(&format!(
            "watching the server: {} of {} s",
            watch.elapsed().as_secs(),
            duration.as_secs()
        ));
        due += LOOK;
        std::thread::sleep(due.saturating_duration_since(Instant::now()).min(LOOK));
    }
    progress.clear();
    let sampled = premises.target.as_ref().zip(before);
    let load = sampled.map(|(target, before)| premises.host.sample(target).since(&before));
    Ok((watch.end()?, load))
}

/// The server went away while it was watched.
fn lost(error: DbError, server: &Server) -> anyhow::Error {
    server::failed(error, "watching the server", server)
}
