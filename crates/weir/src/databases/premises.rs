//! Before a workload touches a server: is it the right one, may it be written to, is there room?

use std::path::PathBuf;

use weir_core::printable;
use weir_core::units::Bytes;
use weir_db::credentials::Login;
use weir_db::database::{self, Holding, Missing, Need};
use weir_db::{Connection, DbError, Server};
use weir_host::Host;
use weir_oltp::{OltpSpec, size};

use super::server::Named;
use super::watch::place;
use super::{DATABASE, server, variables};
use crate::failure::{Lacking, Usage};

/// The servers of a workload and what is known of the first.
pub struct Premises {
    /// How to log in.
    pub login: Login,
    /// A connection to the first server; inside the database if that is there.
    pub connection: Connection,
    /// Whether the database is there.
    pub exists: bool,
    /// Where the data lie, if that is on this machine; through `/proc/PID/root` where the server has a root of its own.
    pub data_dir: Option<PathBuf>,
    /// Whether that folder is the server's beyond its word.
    is_its_own: bool,
    /// The server's first process, if that is on this machine.
    process: Option<u32>,
}

impl Premises {
    /// Connects to the first server.
    ///
    /// # Errors
    /// Those of logging in and of connecting.
    pub fn enter(named: Named) -> anyhow::Result<Premises> {
        let mut login = named.log_in()?;
        login.default_database(DATABASE);
        let (mut connection, exists) = match server::try_open(&mut login) {
            Ok(connection) => (connection, true),
            Err(error) if database::is_missing(&error) => (outside(server::first(&login)?, &login)?, false),
            Err(error) => return Err(server::not_connected(error, &login)),
        };
        let home = place::find(&Host::live(), server::first(&login)?, &mut connection);
        let place::Home { process, data: data_dir, is_its_own, .. } = home;
        Ok(Premises { login, connection, exists, data_dir, is_its_own, process })
    }

    /// The folder of the data where something may be written beside them. Not through another process's root: whoever
    /// rules there could lead the path anywhere.
    ///
    /// # Errors
    /// Where the server names one that is not shown to be its own.
    pub fn data_here(&self) -> Result<Option<PathBuf>, Lacking> {
        let data = self.data_dir.as_ref().filter(|dir| !dir.starts_with("/proc"));
        if let Some(data) = data.filter(|_| !self.is_its_own) {
            let data = printable::line(&data.to_string_lossy()).into_owned();
            let what = format!(
                "the server names {data} as the folder of its data, and nothing but its word says that it is: weir writes nothing there"
            );
            return Err(Lacking {
                what,
                hint: Some("give a folder on the device of the data with --dir".to_string()),
            });
        }
        Ok(data.cloned())
    }

    /// The first server.
    pub fn server(&self) -> anyhow::Result<&Server> {
        server::first(&self.login)
    }

    /// Refuses a database that is not there.
    pub fn refuse_missing(&self) -> anyhow::Result<()> {
        if self.exists {
            return Ok(());
        }
        let server = self.server()?;
        let what = format!("{} has no database `{}`", server.place, server.database);
        Err(Lacking { what, hint: Some("`weir db prepare` makes it".to_string()) }.into())
    }

    /// Refuses servers that take no writes.
    pub fn refuse_closed(&self) -> anyhow::Result<()> {
        self.login.servers.iter().try_for_each(|server| self.open(server).map(drop))
    }

    /// A connection to a server that takes writes, and whether the database is there.
    fn open(&self, server: &Server) -> anyhow::Result<(Connection, bool)> {
        let (mut connection, exists) = match Connection::open(server) {
            Ok(connection) => (connection, true),
            Err(error) if database::is_missing(&error) => (outside(server, &self.login)?, false),
            Err(error) => return Err(server::not_connected(error, &self.login)),
        };
        let closed = database::closed_to_writes(&mut connection).map_err(|e| asking(e, server))?;
        if let Some(why) = closed {
            let what = format!("{} is not written to: {why}", server.place);
            let hint = "name the primary; `weir db run` takes reading scripts here (read_only, point_select)"
                .to_string();
            return Err(Lacking { what, hint: Some(hint) }.into());
        }
        Ok((connection, exists))
    }

    /// Refuses servers that take no writes, and databases that hold something else than a workload's tables.
    pub fn refuse_foreign(&self) -> anyhow::Result<()> {
        for server in &self.login.servers {
            let (mut connection, exists) = self.open(server)?;
            if exists {
                refuse_others(&mut connection, server)?;
            }
        }
        Ok(())
    }

    /// Refuses a user who lacks privileges, and names each.
    pub fn refuse_unprivileged(&mut self, need: Need) -> anyhow::Result<()> {
        let server = self.server()?.clone();
        let missing =
            database::missing(&mut self.connection, &server, need).map_err(|e| asking(e, &server))?;
        if missing.is_empty() {
            return Ok(());
        }
        let of = |part: fn(&Missing) -> &String| missing.iter().map(part).cloned().collect::<Vec<_>>();
        let names = of(|m| &m.privilege).join(", ");
        let what = format!("`{}` lacks {names} on `{}`", server.user, server.database);
        let hint = format!("ask an administrator for: {}", of(|m| &m.grant).join("; "));
        Err(Lacking { what, hint: Some(hint) }.into())
    }

    /// Refuses a load that the data's file system has no space for. Says how large it becomes.
    pub fn refuse_full(&mut self, load: Option<&OltpSpec>) -> anyhow::Result<()> {
        let (tables, log) = load.map_or((0, 0), |spec| self.sizes(spec));
        let free =
            self.data_dir.as_ref().and_then(|dir| Host::live().free_space(dir).ok()).map(|s| s.free_bytes);
        let log_too =
            if log > 0 { format!(", and the server's log about {}", Bytes(log)) } else { String::new() };
        if tables > 0 {
            let free = free.map_or(String::new(), |free| format!("; {} are free", Bytes(free)));
            say!("weir: the tables take about {}{log_too}{free}", Bytes(tables));
        }
        let needed = size::needed_bytes(tables, log);
        match (free, &self.data_dir) {
            (Some(free), Some(dir)) if free < needed => {
                let what = format!(
                    "not enough free space in {}: {} are free, {} are needed",
                    dir.display(),
                    Bytes(free),
                    Bytes(needed)
                );
                let hint = "fewer --tables or a smaller --table-size; a server without free space may \
                     stop"
                    .to_string();
                Err(Lacking { what, hint: Some(hint) }.into())
            }
            _ => Ok(()),
        }
    }

    /// Bytes of a load's tables, and of what the server's log keeps of it on the same file system.
    fn sizes(&mut self, spec: &OltpSpec) -> (u64, u64) {
        let dialect = self.connection.dialect();
        let log = match place::logs_elsewhere(&Host::live(), self.process, &mut self.connection) {
            true => 0,
            false => size::log_bytes(spec, dialect, &variables::read(&mut self.connection)),
        };
        (size::tables_bytes(spec, dialect), log)
    }
}

/// Refuses a database with other tables than a workload's.
fn refuse_others(connection: &mut Connection, server: &Server) -> anyhow::Result<()> {
    let Holding::Others(names) = database::holding(connection).map_err(|e| asking(e, server))? else {
        return Ok(());
    };
    let what = format!("the database `{}` holds other tables: {}, …", server.database, names.join(", "));
    let hint = format!(
        "weir writes only into databases without other tables: name another one with --database; \
         `{DATABASE}` is its own"
    );
    Err(Usage { what, hint: Some(hint) }.into())
}

/// A connection without the database.
pub fn outside(server: &Server, login: &Login) -> anyhow::Result<Connection> {
    Connection::open(&database::lobby(server)).map_err(|error| server::not_connected(error, login))
}

fn asking(error: DbError, server: &Server) -> anyhow::Error {
    server::failed(error, "cannot examine the server", server)
}
