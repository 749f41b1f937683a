//! Throw-away servers: found, initialised, started on a Unix socket, stopped, removed, however weir ends.
//!
//! A [`Sandbox`] owns its server. Dropping it ends the server and removes its data; a minder does the same when weir is
//! killed, and what even the minder could not do, [`list`] shows and [`clean`] does later. All of them go by what the folder
//! says of itself ([`Identity`]).

mod account;
mod binaries;
mod configure;
mod error;
mod filter;
mod identity;
mod jail;
mod layout;
mod left;
mod minder;
mod process;
mod quarters;
mod registry;
mod shared_memory;
mod spawn;
mod spec;
mod tree;

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use weir_oltp::Dialect;

use self::configure::Places;
use self::identity::SCHEMA;
use self::jail::Folder;
use self::layout::{Layout, Paths};
use self::minder::{Minded, Minder};
use self::quarters::Quarters;
use self::registry::{Marker, RunFolder};
use self::shared_memory::Segment;
use self::spawn::{Program, Running};
use crate::connection::Connection;
use crate::server::{Place, Secret, Server, Tls};
use crate::wire::connect_unix;

pub use self::binaries::Binaries;
pub use self::error::SandboxError;
pub use self::identity::Identity;
pub use self::left::{Fate, clean, clean_folder};
pub use self::minder::{ARGUMENT, remover_main, set_remover};
pub use self::process::ProcessId;
pub use self::registry::{Listed, list};
pub use self::spec::{Flavour, SandboxSpec, Variables};

/// Longest time for a data directory to be made, and for a server to answer after its start. A start may have to
/// recover what a crash left.
const START_LIMIT: Duration = Duration::from_secs(300);
/// Longest time for an orderly stop: dirty pages have to be written.
const STOP_LIMIT: Duration = Duration::from_secs(120);
/// A server whose data are thrown away has so long to let go of its shared memory.
const DROP_LIMIT: Duration = Duration::from_secs(30);
/// Longest time for a server to take a connection, and then to greet, before it is asked again.
const GREETING_LIMIT: Duration = Duration::from_secs(10);

/// A server of weir's own, running or stopped.
#[derive(Debug)]
pub struct Sandbox {
    spec: SandboxSpec,
    binaries: Binaries,
    quarters: Quarters,
    layout: Layout,
    run: RunFolder,
    identity: Identity,
    child: Option<Running>,
    /// What a server left that was killed.
    segments: Vec<Segment>,
    /// What was there before the child: a segment of an earlier process may name its number as its maker.
    others: Vec<Segment>,
    minder: Option<Minder>,
    lock: File,
}

impl Sandbox {
    /// Makes a data directory, or takes up one that was kept, and starts a server on it. Returns when it answers.
    /// `stopped` is asked again and again whether to give up.
    ///
    /// # Errors
    /// When no such server is installed, the folder is in use or holds something else, or the server does not start:
    /// with the end of its log. Nothing is left behind then.
    pub fn start(spec: &SandboxSpec, stopped: &dyn Fn() -> bool) -> Result<Sandbox, SandboxError> {
        let mut sandbox = Sandbox::create(spec, stopped)?;
        sandbox.run(stopped)?;
        Ok(sandbox)
    }

    /// The same without starting the server.
    ///
    /// # Errors
    /// As [`Sandbox::start`].
    pub fn create(spec: &SandboxSpec, stopped: &dyn Fn() -> bool) -> Result<Sandbox, SandboxError> {
        let mut sandbox = Sandbox::claim(spec)?;
        sandbox.initialise(stopped)?;
        Ok(sandbox)
    }

    /// Takes the folder: from here on everything is restored, whatever happens.
    fn claim(spec: &SandboxSpec) -> Result<Sandbox, SandboxError> {
        let quarters = Quarters::find(spec.flavour, spec.root.as_deref())?;
        let binaries = Binaries::find_in(&quarters, spec.flavour, spec.binary.as_deref())?;
        let layout = Layout::make_or_open(&spec.dir, spec.above_id)?;
        // Until the minder's start only this process can remove what it made.
        let (lock, kept) = admit(&layout, spec, &quarters).inspect_err(|_| layout.unmake())?;
        let run = RunFolder::create(quarters.account).inspect_err(|_| {
            if kept.is_none() {
                let _ = layout.forget(layout.is_made(), None);
            }
        })?;
        let identity = kept.unwrap_or_else(|| Identity {
            schema: SCHEMA.to_string(),
            flavour: spec.flavour,
            version: binaries.version.clone(),
            initialised: false,
            keep: spec.keep,
            made_dir: layout.is_made(),
            above_id: spec.above_id.filter(|_| layout.is_made()),
            accounts: vec![quarters.account.ids().0],
            server: None,
        });
        let mut sandbox = Sandbox {
            spec: SandboxSpec { dir: layout.path().to_path_buf(), ..spec.clone() },
            binaries,
            quarters,
            layout,
            run,
            identity,
            child: None,
            segments: Vec::new(),
            others: Vec::new(),
            minder: None,
            lock,
        };
        sandbox.write_down()?;
        sandbox.minder = Some(sandbox.minded()?);
        Ok(sandbox)
    }

    fn minded(&self) -> Result<Minder, SandboxError> {
        let minded = Minded {
            dir: self.layout.dir().as_fd(),
            run: self.run.path(),
            locks: [&self.lock, self.run.lock()],
            keep: self.identity.keep,
            apart: self.quarters.is_apart,
        };
        Minder::start(minded).map_err(SandboxError::io("start a minder for", self.layout.path()))
    }

    /// Has the folder say what is known of the sandbox, and has a copy of that beside the socket.
    fn write_down(&self) -> Result<(), SandboxError> {
        self.layout.write_identity(&self.identity)?;
        let dir = self.layout.path();
        let folder = self.layout.id().map_err(SandboxError::io("read", dir))?;
        self.run.mark(&Marker { dir: dir.to_path_buf(), folder, identity: self.identity.clone() })
    }

    /// Hands over data that were kept. All of them are looked at before the first is given away, and whose they are to be is written
    /// down before: the next sandbox takes up what a kill leaves to two accounts.
    fn take_up(&mut self) -> Result<(), SandboxError> {
        let account = self.quarters.account;
        if !account.is_other() {
            return Ok(());
        }
        let owners = self.layout.owners(&self.identity)?;
        self.layout.hand_over(&owners, None)?;
        self.identity.accounts = [owners, vec![account.ids().0]].concat();
        self.write_down()?;
        self.layout.hand_over(&self.identity.accounts, Some(account))?;
        self.identity.accounts = vec![account.ids().0];
        self.write_down()
    }

    /// Makes the data directory, unless it is there.
    fn initialise(&mut self, stopped: &dyn Fn() -> bool) -> Result<(), SandboxError> {
        if self.identity.initialised {
            return self.take_up();
        }
        let data = self.layout.paths().data();
        self.layout.make_folders(self.quarters.account)?;
        // MariaDB's script splits its paths at spaces: it sees them through a link without.
        let link = self.run.path().join("d");
        symlink(self.layout.path(), &link).map_err(SandboxError::io("create", &link))?;
        let seen = Paths::below(&link);
        self.configure(&seen)?;
        self.run.open()?;
        let mut command = self.command(&self.binaries.initialiser)?;
        let defaults = format!("--defaults-file={}", self.run.configuration().display());
        let datadir = format!("--datadir={}", seen.data().display());
        match self.spec.flavour {
            Flavour::Mysql => command.args([defaults.as_str(), "--initialize-insecure"]),
            Flavour::Mariadb => {
                let login = "--auth-root-authentication-method=normal";
                // By force: even where a tree knows no name of this machine.
                command.args([defaults.as_str(), login, "--skip-test-db", "--force", datadir.as_str()])
            }
            Flavour::Postgres => {
                command.arg("-D").arg(&data);
                // Its data reach the disk with the first checkpoint.
                command.args([
                    "-U",
                    self.spec.flavour.superuser(),
                    "--auth-local=trust",
                    "--auth-host=scram-sha-256",
                    "-E",
                    "UTF8",
                    "--no-locale",
                    "-N",
                ])
            }
        };
        let what = format!("{} could not make a data directory", self.spec.flavour);
        self.spawn(&mut command)?;
        let until = Instant::now() + START_LIMIT;
        let status = loop {
            if let Some(status) = self.ended()? {
                break status;
            }
            // initdb takes a second, and one that is killed may leave shared memory behind.
            if stopped() && (self.quarters.is_apart || self.spec.flavour != Flavour::Postgres) {
                return Err(SandboxError::Stopped);
            }
            if Instant::now() > until {
                return Err(self.failed(format!("{what} within {} s", START_LIMIT.as_secs())));
            }
            std::thread::sleep(process::POLL);
        };
        self.forget_child()?;
        let _ = fs::remove_file(&link);
        if !status.success() {
            return Err(self.failed(what));
        }
        self.identity.initialised = true;
        self.write_down()?;
        if stopped() { Err(SandboxError::Stopped) } else { Ok(()) }
    }

    /// Starts the stopped server and waits until it answers.
    ///
    /// # Errors
    /// When it does not, with the end of its log.
    pub fn run(&mut self, stopped: &dyn Fn() -> bool) -> Result<(), SandboxError> {
        if self.child.is_some() {
            return Err(SandboxError::Runs(self.spec.dir.clone()));
        }
        let until = Instant::now() + DROP_LIMIT;
        while shared_memory::are_in_use(&self.segments) && Instant::now() < until && !stopped() {
            std::thread::sleep(process::POLL);
        }
        let paths = self.layout.paths();
        self.configure(&paths)?;
        self.run.open()?;
        let mut command = self.command(&self.binaries.server)?;
        let configuration = self.run.configuration();
        match self.spec.flavour.dialect() {
            Dialect::MySql => command.arg(format!("--defaults-file={}", configuration.display())),
            Dialect::Postgres => {
                command.arg("-D").arg(paths.data());
                command.arg("-c").arg(format!("config_file={}", configuration.display()))
            }
        };
        self.spawn(&mut command)?;
        self.identity.server = self.child.as_ref().and_then(|child| ProcessId::of(child.id()));
        self.write_down()?;
        self.await_answer(stopped)
    }

    fn await_answer(&mut self, stopped: &dyn Fn() -> bool) -> Result<(), SandboxError> {
        let until = Instant::now() + START_LIMIT;
        loop {
            if let Some(status) = self.ended()? {
                self.forget_child()?;
                return Err(self.failed(format!("{} did not start ({status})", self.spec.flavour)));
            }
            if self.answers() {
                return self.run.seal(&self.spec.socket_name());
            }
            if stopped() {
                return Err(SandboxError::Stopped);
            }
            if Instant::now() > until {
                let seconds = START_LIMIT.as_secs();
                return Err(self.failed(format!("{} did not answer within {seconds} s", self.spec.flavour)));
            }
            std::thread::sleep(process::POLL);
        }
    }

    /// Whether the server takes logins: MySQL listens only then and greets.
    fn answers(&self) -> bool {
        // Held, so that the server cannot lead the log-in elsewhere by what it puts in its place.
        let Ok(held) = self.run.socket(&self.spec.socket_name()) else { return false };
        let socket = PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()));
        match self.spec.flavour.dialect() {
            // After a crash its pid file says what the server before it was: only a login tells.
            Dialect::Postgres => {
                Connection::open(&Server { place: Place::Unix(socket), ..self.server() }).is_ok()
            }
            Dialect::MySql => greets(&socket, GREETING_LIMIT),
        }
    }

    /// Stops the server in order: what it had in memory is on the disk afterwards. Nothing happens to a stopped one.
    ///
    /// # Errors
    /// When the process cannot be waited for.
    pub fn stop(&mut self) -> Result<(), SandboxError> {
        let orderly = match self.spec.flavour.dialect() {
            Dialect::MySql => Signal::TERM,
            // Fast shutdown: clients are sent away.
            Dialect::Postgres => Signal::INT,
        };
        self.end(orderly, STOP_LIMIT)
    }

    /// Kills the server as a crash would; [`Sandbox::run`] recovers it.
    ///
    /// # Errors
    /// When the process cannot be waited for.
    pub fn kill(&mut self) -> Result<(), SandboxError> {
        self.end(Signal::KILL, DROP_LIMIT)
    }

    /// Stops the server and starts it with these variables set, those set before included.
    ///
    /// # Errors
    /// As [`Sandbox::run`].
    pub fn restart(&mut self, variables: &Variables, stopped: &dyn Fn() -> bool) -> Result<(), SandboxError> {
        self.stop()?;
        self.spec.variables.extend(variables.clone());
        self.run(stopped)
    }

    /// A second server, stopped, on a copy of this one's data in another folder.
    ///
    /// # Errors
    /// When this one runs, or the folder cannot be had or written.
    pub fn clone_to(&self, dir: &Path, stopped: &dyn Fn() -> bool) -> Result<Sandbox, SandboxError> {
        if self.child.is_some() {
            return Err(SandboxError::Runs(self.spec.dir.clone()));
        }
        let spec =
            SandboxSpec { dir: dir.to_path_buf(), above_id: None, take_up: false, ..self.spec.clone() };
        let mut copy = Sandbox::claim(&spec)?;
        copy.layout.make_folders(copy.quarters.account)?;
        copy.layout.copy_data(&self.layout, copy.quarters.account, stopped)?;
        copy.identity.initialised = true;
        copy.write_down()?;
        Ok(copy)
    }

    /// How to log in as its superuser; no database chosen, but PostgreSQL's `postgres`.
    pub fn server(&self) -> Server {
        let dialect = self.spec.flavour.dialect();
        Server {
            dialect,
            place: Place::Unix(self.socket()),
            user: self.spec.flavour.superuser().to_string(),
            password: Secret::default(),
            database: if dialect == Dialect::Postgres { "postgres".to_string() } else { String::new() },
            tls: Tls::default(),
            connect_timeout: Duration::from_secs(10),
            answer_timeout: None,
        }
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.run.sockets().join(self.spec.socket_name())
    }

    /// Its data directory.
    pub fn data_dir(&self) -> PathBuf {
        self.layout.paths().data()
    }

    /// Its log.
    pub fn log(&self) -> PathBuf {
        self.layout.paths().log()
    }

    /// Its process; `None` when it is stopped.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Running::id)
    }

    /// What it was asked to be, with an absolute folder.
    pub fn spec(&self) -> &SandboxSpec {
        &self.spec
    }

    /// The account of this machine that it runs as, where root's server has none of its own because namespaces are forbidden.
    pub fn shared_account(&self) -> Option<u32> {
        let Quarters { account, is_apart, .. } = &self.quarters;
        (!is_apart && account.is_other()).then(|| account.ids().0)
    }

    /// Whether its data stay when it goes.
    pub fn keeps(&self) -> bool {
        self.identity.keep
    }

    /// What it calls itself.
    pub fn version(&self) -> &str {
        &self.binaries.version
    }

    /// How it ended, if it has by itself.
    ///
    /// # Errors
    /// When the process cannot be looked at.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, SandboxError> {
        let dir = self.spec.dir.clone();
        self.child
            .as_mut()
            .map_or(Ok(None), Running::try_wait)
            .map_err(SandboxError::io("wait for the server in", &dir))
    }

    /// A command line of the server's own client.
    pub fn client(&self) -> String {
        let user = self.spec.flavour.superuser();
        match self.spec.flavour {
            Flavour::Postgres => {
                let (folder, port) = (self.run.sockets(), self.spec.port());
                let folder = folder.display();
                format!("psql -h {folder} -p {port} -U {user} postgres")
            }
            Flavour::Mariadb => {
                format!("mariadb --no-defaults --socket={} -u {user}", self.socket().display())
            }
            Flavour::Mysql => format!("mysql --no-defaults --socket={} -u {user}", self.socket().display()),
        }
    }

    /// Variables of the environment by which clients find it.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        match self.spec.flavour.dialect() {
            Dialect::MySql => vec![("MYSQL_UNIX_PORT", self.socket().display().to_string())],
            Dialect::Postgres => vec![
                ("PGHOST", self.run.sockets().display().to_string()),
                ("PGPORT", self.spec.port().to_string()),
                ("PGUSER", self.spec.flavour.superuser().to_string()),
                ("PGDATABASE", "postgres".to_string()),
            ],
        }
    }

    /// Writes the configuration file, with the paths of `seen`.
    fn configure(&self, seen: &Paths) -> Result<(), SandboxError> {
        let (data, temporary, socket) = (seen.data(), seen.temporary(), self.socket());
        let first = self.run.statements();
        let places = Places { data: &data, temporary: &temporary, socket: &socket, first: &first };
        let text = configure::text(&self.spec, places, self.quarters.is_apart)?;
        self.run.configure(&text, configure::FIRST)
    }

    fn command(&self, program: &Path) -> Result<Program, SandboxError> {
        let own = self.layout.folders()?;
        let mut folders: Vec<Folder<'_>> =
            own.iter().map(|(path, dir)| Folder { path, fd: dir.as_fd() }).collect();
        folders.push(Folder { path: self.run.path(), fd: self.run.dir().as_fd() });
        self.quarters.command(program, &folders)
    }

    fn spawn(&mut self, program: &mut Program) -> Result<(), SandboxError> {
        let path = program.path().to_path_buf();
        if !self.quarters.is_apart {
            self.others = shared_memory::all();
        }
        let mind = |child: &Running| self.minder.as_ref().map_or(Ok(()), |minder| minder.mind(Some(child)));
        let mut start = || {
            let output = self.layout.open_log()?;
            program.spawn((&output, &output), mind)
        };
        self.child = Some(start().map_err(SandboxError::io("start", &path))?);
        Ok(())
    }

    /// The child has ended and was waited for: its number may soon be somebody else's.
    fn forget_child(&mut self) -> Result<(), SandboxError> {
        self.child = None;
        let minded = self.minder.as_ref().map_or(Ok(()), |minder| minder.mind(None));
        minded.map_err(SandboxError::io("reach the minder of", &self.spec.dir))
    }

    fn end(&mut self, signal: Signal, patience: Duration) -> Result<(), SandboxError> {
        let Some(child) = &mut self.child else { return Ok(()) };
        if !self.quarters.is_apart {
            self.segments.extend(shared_memory::made_by(child.id(), &self.others));
        }
        child.end(signal, patience).map_err(SandboxError::io("end the server in", &self.spec.dir))?;
        self.identity.server = None;
        self.forget_child()
    }

    fn failed(&self, what: String) -> SandboxError {
        let lines = process::log_tail(self.layout.read_log());
        SandboxError::Server { what, lines, log: self.layout.paths().log() }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        if self.identity.is_kept() {
            let _ = self.stop();
        } else {
            // PostgreSQL's immediate shutdown gives its shared memory back where the kernel does not.
            let polite = !self.quarters.is_apart && self.spec.flavour.dialect() == Dialect::Postgres;
            let _ = self.end(if polite { Signal::QUIT } else { Signal::KILL }, DROP_LIMIT);
            shared_memory::remove(&self.segments);
        }
        match self.layout.finish(&self.identity) {
            Ok(_) => self.run.remove(),
            Err(problem) => {
                // Not eprintln: it panics when nobody reads, and this may run while a panic unwinds.
                let line = format!("weir: {problem}; `weir db sandbox clean` tries it again\n");
                let _ = io::Write::write_all(&mut io::stderr(), line.as_bytes());
            }
        }
        self.minder = None;
    }
}

/// Whether a MySQL server greets at a socket. One that accepts nobody must not keep weir waiting.
fn greets(socket: &Path, limit: Duration) -> bool {
    let Ok(connected) = connect_unix(socket, limit) else { return false };
    let mut stream = UnixStream::from(connected);
    let _ = stream.set_read_timeout(Some(limit));
    // Length, sequence number, then the protocol's version, 10; 255 is an error.
    let mut head = [0; 5];
    stream.read_exact(&mut head).is_ok() && head[4] == 10
}

/// Takes a folder that this sandbox may have; with its lock, what it says of data that were kept.
fn admit(
    layout: &Layout,
    spec: &SandboxSpec,
    quarters: &Quarters,
) -> Result<(File, Option<Identity>), SandboxError> {
    // An account that nothing belongs to gains nothing where a path of its own leads elsewhere.
    if !quarters.is_apart || !quarters.account.is_other() {
        layout.check_above()?;
    }
    let (lock, identity) = layout.take()?;
    let dir = || layout.path().to_path_buf();
    if let Some(identity) = &identity {
        let found = identity.flavour;
        if !identity.is_kept() || identity.running().is_some() {
            return Err(SandboxError::Abandoned(dir()));
        }
        if !spec.take_up {
            return Err(SandboxError::Kept { dir: dir(), flavour: found });
        }
        if found != spec.flavour {
            return Err(SandboxError::OtherFlavour { dir: dir(), found, wanted: spec.flavour });
        }
        registry::forget(layout.path(), layout.id().map_err(SandboxError::io("read", layout.path()))?);
    }
    Ok((lock, identity))
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};

    use super::*;

    #[test]
    fn a_server_that_accepts_nobody_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sock");
        let server =
            socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        bind(&server, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        listen(&server, 0).unwrap();
        // The backlog takes one, and whoever comes next would wait.
        let _first = UnixStream::connect(&path).unwrap();
        assert!(!greets(&path, Duration::from_millis(50)));
    }
}
