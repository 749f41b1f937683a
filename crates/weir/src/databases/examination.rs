//! An examination of a server as it stands: its own counters, and the storage of this machine if its data lie here.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weir_core::stop::Stop;
use weir_core::target::{Load, TargetFacts};
use weir_db::connection::Connection;
use weir_db::credentials::Login;
use weir_db::database::is_local;
use weir_db::vitals::{LOOK, Watch};
use weir_db::{DbError, Server};
use weir_host::{Host, Numbers};
use weir_oltp::Dialect;
use weir_oltp::vitals::Vitals;
use weir_verdict::db::{self, Examination, LogPlace};

use super::server;
use super::watch::place::{self, Home};
use super::watch::sessions;
use crate::progress::Progress;

/// Watches a server for so long, or until the user has seen enough.
///
/// # Errors
/// When it cannot be reached, or goes away meanwhile.
pub fn examine(mut login: Login, duration: Duration, stop: &Stop) -> anyhow::Result<Examination> {
    // No table is read: any database will do, and every PostgreSQL has this one.
    if server::first(&login)?.dialect == Dialect::Postgres {
        login.default_database("postgres");
    }
    let mut connection =
        server::try_open(&mut login).map_err(|error| server::not_connected(error, &login))?;
    let server = server::first(&login)?.clone();
    let home = place::find(&Host::live(), &server, &mut connection);
    let log = log_place(&home, &mut connection);
    let watch = Watch::begin(connection).map_err(|error| lost(error, &server))?;
    let mut place = DataPlace::of(&server, home, &watch);
    let watched = observe(watch, &mut place, duration, stop).map_err(|error| lost(error, &server))?;
    Ok(Examination { log, ..place.examination(&server, watched, stop) })
}

/// The place of the log, where it is not with the data.
fn log_place(home: &Home, connection: &mut Connection) -> Option<LogPlace> {
    let host = Host::live();
    let dir = place::log_elsewhere(&host, home, connection)?;
    let free_bytes = host.free_space(&dir).ok()?.free_bytes;
    Some(LogPlace { dir: dir.display().to_string(), free_bytes })
}

/// Where the data of a server on this machine lie, and its threads.
struct DataPlace {
    host: Host,
    numbers: Option<Numbers>,
    data_dir: Option<PathBuf>,
    target: Option<TargetFacts>,
    unseen: Vec<String>,
}

impl DataPlace {
    fn of(server: &Server, home: Home, watch: &Watch) -> DataPlace {
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
        let numbers = home.process.map(|process| Numbers::of(&host, process));
        let data_dir = home.data.or(reported);
        DataPlace { host, numbers, data_dir, target, unseen }
    }

    fn examination(self, server: &Server, watched: (Vitals, Option<Load>), stop: &Stop) -> Examination {
        let (vitals, load) = watched;
        Examination {
            schema: db::SCHEMA.to_string(),
            place: server.place.to_string(),
            vitals,
            data_dir: self.data_dir.map(|dir| dir.display().to_string()),
            log: None,
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
    place: &mut DataPlace,
    duration: Duration,
    stop: &Stop,
) -> Result<(Vitals, Option<Load>), DbError> {
    let before = place.target.as_ref().map(|target| place.host.sample(target));
    let mut progress = Progress::new();
    let mut due = Instant::now();
    while watch.elapsed() < duration && stop.requested().is_none() {
        let (host, numbers) = (&place.host, &mut place.numbers);
        numbers.iter_mut().for_each(Numbers::begin);
        watch.look(&mut |own| sessions::thread(host, numbers.as_mut(), own))?;
        progress.show(&format!(
            "watching the server: {} of {} s",
            watch.elapsed().as_secs(),
            duration.as_secs()
        ));
        due += LOOK;
        std::thread::sleep(due.saturating_duration_since(Instant::now()).min(LOOK));
    }
    progress.clear();
    let sampled = place.target.as_ref().zip(before);
    let load = sampled.map(|(target, before)| place.host.sample(target).since(&before));
    Ok((watch.end()?, load))
}

/// The server went away while it was watched.
fn lost(error: DbError, server: &Server) -> anyhow::Error {
    server::failed(error, "watching the server", server)
}
