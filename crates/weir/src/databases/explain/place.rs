//! The throw-away server, its copy in memory, and what can be changed of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use weir_core::stop::Stop;
use weir_db::connection::Connection;
use weir_db::sandbox::{Sandbox, SandboxError, SandboxSpec};
use weir_db::server::Server;
use weir_fs::Dir;
use weir_host::Host;
use weir_oltp::limits::Change;
use weir_oltp::{Dialect, OltpRecord, OltpSpec, Script};

use super::trials::Trials;
use crate::databases::own::{fill, server_of};
use crate::databases::sandbox::{self, mention_account};
use crate::databases::server::failed;
use crate::databases::variables;
use crate::progress::StepLine;

/// Room that the copy in memory leaves.
const MEMORY_LEFT: u64 = 512 << 20;
/// Folders within folders that a server's data have at most.
const LEVELS_MAX: u32 = 32;

/// What to start.
pub struct Wanted {
    /// The server.
    pub sandbox: SandboxSpec,
    /// Where its copy in memory goes, where one is wanted.
    pub memory_dir: Option<PathBuf>,
}

/// Servers of weir's own, with tables; they go away with it.
pub struct Place {
    disk: Sandbox,
    memory: Option<Sandbox>,
}

impl Place {
    /// Starts the server, fills its tables, and makes a copy in memory where one is wanted.
    pub fn start(wanted: &Wanted, spec: &OltpSpec, stop: &Stop, line: &mut StepLine) -> Result<Place> {
        let asked = &wanted.sandbox;
        line.begin(&format!("starting {} in {}", asked.flavour, asked.dir.display()));
        let mut disk = sandbox::start(asked, stop)?;
        line.clear();
        mention_account(&disk);
        line.begin("filling the tables");
        fill(&disk, spec, &|_| {}, stop)?;
        let memory = match &wanted.memory_dir {
            Some(dir) => copy(dir, &mut disk, stop, line)?,
            None => None,
        };
        Ok(Place { disk, memory })
    }

    /// How to reach it.
    pub fn server(&self) -> Server {
        server_of(&self.disk)
    }

    /// Its variables that matter to what is measured; none where it does not answer, which the run will say.
    pub fn variables(&self) -> BTreeMap<String, String> {
        Connection::open(&self.server())
            .map(|mut connection| variables::read(&mut connection))
            .unwrap_or_default()
    }

    /// Whether a change can be made here; says why not.
    pub fn offers(&self, change: Change, spec: &OltpSpec, line: &mut StepLine) -> bool {
        let why = match change {
            Change::HalfThreads if spec.threads < 2 => Some("there is one connection only"),
            Change::TwiceThreads if spec.script == Script::BulkInsert => {
                Some("there is a table for each connection, and no more")
            }
            Change::InMemory if self.memory.is_none() => Some("no copy in memory"),
            Change::HalfProcessors if Host::live().processors().is_ok_and(|n| n < 2) => {
                Some("there is one processor only")
            }
            _ => None,
        };
        if let Some(why) = why {
            line.say(&format!("note: {} is not tried: {why}", change.name()));
        }
        why.is_none()
    }

    /// A run with a change, which is taken back whatever becomes of the run.
    pub fn with(&mut self, change: Change, spec: &OltpSpec, trials: &Trials<'_>) -> Result<OltpRecord> {
        let server = self.server();
        match change {
            Change::InMemory => {
                let memory = self.memory.as_ref().context("no copy in memory")?;
                trials.plain(spec, &server_of(memory))
            }
            Change::TwiceThreads => {
                trials.plain(&OltpSpec { threads: spec.threads * 2, ..spec.clone() }, &server)
            }
            Change::HalfThreads => {
                trials.plain(&OltpSpec { threads: (spec.threads / 2).max(1), ..spec.clone() }, &server)
            }
            Change::HalfProcessors => {
                let process = self.disk.pid().context("the server has ended")?;
                let pinned = Host::live().halve_processors(process).context("keeping the server to half")?;
                let ran = trials.plain(spec, &server);
                drop(pinned);
                ran
            }
            Change::FlushOff => {
                let back = unflushed(&server)?;
                let ran = trials.plain(spec, &server);
                run(&server, &back)?;
                ran
            }
        }
    }
}

/// Has commits answered before they are on the device: what takes that back. With 2 instead of 0 MariaDB would go on
/// writing its log past the page cache for every commit (innodb_log_file_buffering is decided at its start); MySQL syncs
/// its binary log as well.
fn unflushed(server: &Server) -> Result<Vec<String>> {
    const MYSQL: [&str; 2] = ["innodb_flush_log_at_trx_commit", "sync_binlog"];
    let reload = "SELECT pg_reload_conf()".to_string();
    if server.dialect == Dialect::Postgres {
        run(server, &["ALTER SYSTEM SET synchronous_commit = off".to_string(), reload.clone()])?;
        return Ok(vec!["ALTER SYSTEM RESET synchronous_commit".to_string(), reload]);
    }
    let question = format!("SELECT @@GLOBAL.{}, @@GLOBAL.{}", MYSQL[0], MYSQL[1]);
    let found = Connection::open(server).and_then(|mut connection| connection.query(&question));
    let found = found.map_err(|error| failed(error, "asking when commits are answered", server))?;
    let set = |(name, value): (&str, &str)| format!("SET GLOBAL {name} = {value}");
    run(server, &MYSQL.map(|name| set((name, "0"))))?;
    let values = found.iter().flatten().flatten().map(String::as_str);
    Ok(MYSQL.into_iter().zip(values).map(set).collect())
}

fn run(server: &Server, statements: &[String]) -> Result<()> {
    let all = |connection: &mut Connection| {
        statements.iter().try_for_each(|statement| connection.run(statement).map(drop))
    };
    let done = Connection::open(server).and_then(|mut connection| all(&mut connection));
    done.map_err(|error| failed(error, "setting when commits are answered", server))
}

/// The same data in memory, served by a second server; `None`, and a word why, where they do not fit.
fn copy(dir: &Path, disk: &mut Sandbox, stop: &Stop, line: &mut StepLine) -> Result<Option<Sandbox>> {
    let stopped = || stop.requested().is_some();
    let bytes = match Dir::open(&disk.data_dir()).and_then(|data| data.bytes(LEVELS_MAX)) {
        Ok(bytes) => bytes,
        Err(error) => {
            line.say(&format!("note: the data are not copied into memory: {error}"));
            return Ok(None);
        }
    };
    let free = Host::live().free_space(dir).map_or(0, |space| space.free_bytes);
    if free < bytes.saturating_add(MEMORY_LEFT) {
        line.say(&format!("note: the data do not fit into {}: {bytes} bytes, {free} free", dir.display()));
        return Ok(None);
    }
    line.begin("copying the data into memory");
    let folder = dir.join(format!("weir-explain-{}", weir_fs::unguessable()?));
    let mut copied = || -> Result<_, SandboxError> {
        disk.stop()?;
        let mut copy = disk.clone_to(&folder, &stopped)?;
        disk.run(&stopped)?;
        copy.run(&stopped)?;
        Ok(Some(copy))
    };
    copied().map_err(sandbox::failed)
}
