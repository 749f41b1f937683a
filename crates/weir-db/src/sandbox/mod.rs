//! Throw-away servers: found, initialised, started on a Unix socket, stopped, removed, however weir ends.
//!
//! A [`Sandbox`] owns its server. Dropping it ends the server and removes its data; a minder does the same when weir is
//! killed, and what even the minder could not do, [`list`] shows and [`clean`] does later.

mod account;
mod binaries;
mod configure;
mod error;
mod layout;
mod minder;
mod process;
mod registry;
mod shared_memory;
mod spec;

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use weir_core::oltp::Dialect;

use self::account::Account;
use self::configure::Places;
use self::layout::{Identity, Layout};
use self::minder::Minder;
use self::registry::RunFolder;
use crate::connection::Connection;
use crate::server::{Place, Secret, Server, Tls};

pub use self::binaries::Binaries;
pub use self::error::SandboxError;
pub use self::process::ProcessId;
pub use self::registry::{Listed, Marker, clean, list};
pub use self::spec::{Flavour, SandboxSpec, Variables};

/// Longest time for a data directory to be made, and for a server to answer after its start. A start may have to
/// recover what a crash left.
const START_LIMIT: Duration = Duration::from_secs(300);
/// Longest time for an orderly stop: dirty pages have to be written.
const STOP_LIMIT: Duration = Duration::from_secs(120);
/// A server whose data are thrown away has so long to let go of its shared memory.
const DROP_LIMIT: Duration = Duration::from_secs(30);

/// A server of weir's own, running or stopped.
#[derive(Debug)]
pub struct Sandbox {
    spec: SandboxSpec,
    binaries: Binaries,
    account: Account,
    layout: Layout,
    run: RunFolder,
    marker: Marker,
    child: Option<Child>,
    minder: Option<Minder>,
    _lock: File,
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

    /// Takes the folder: from here on everything is led back, whatever happens.
    fn claim(spec: &SandboxSpec) -> Result<Sandbox, SandboxError> {
        let binaries = Binaries::find(spec.flavour, spec.binary.as_deref())?;
        let mut spec = spec.clone();
        let made_dir = make_dir(&spec.dir)?;
        // From the making of the folder to the minder's start only this process can remove it.
        let claimed = Claim { dir: spec.dir.clone(), made_dir };
        spec.dir = fs::canonicalize(&spec.dir).map_err(SandboxError::io("find", &claimed.dir))?;
        let layout = Layout::of(&spec.dir);
        look_inside(&layout, spec.flavour)?;
        let lock = registry::lock(&layout.lock()).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => SandboxError::InUse(spec.dir.clone()),
            _ => SandboxError::io("lock", &layout.lock())(error),
        })?;
        let data = layout.data();
        let account = Account::choose(spec.flavour, &data)?;
        let run = RunFolder::create()?;
        let account = account.reaching(&[&data, &run.path().join("socket")]);
        let marker = Marker {
            flavour: spec.flavour,
            dir: spec.dir.clone(),
            made_dir,
            keep: spec.keep,
            server: None,
            owner: ProcessId::of(std::process::id()),
        };
        let minder = Minder::start(&spec.dir, &layout::NAMES, run.path(), spec.keep)
            .map_err(SandboxError::io("start a minder for", &spec.dir))?;
        claimed.done();
        let sandbox = Sandbox {
            binaries,
            account,
            layout,
            run,
            marker,
            child: None,
            minder: Some(minder),
            spec,
            _lock: lock,
        };
        sandbox.run.mark(&sandbox.marker)?;
        sandbox.account.give(sandbox.run.path())?;
        Ok(sandbox)
    }

    /// Makes the data directory, unless it is there.
    fn initialise(&mut self, stopped: &dyn Fn() -> bool) -> Result<(), SandboxError> {
        if self.layout.identity().is_some_and(|identity| identity.initialised) {
            return Ok(());
        }
        self.identify(false)?;
        let data = self.layout.data();
        let _ = fs::remove_dir_all(&data);
        self.make_folders()?;
        // MariaDB's script splits its paths at spaces: it sees them through a link without.
        let link = self.run.path().join("d");
        symlink(self.layout.dir(), &link).map_err(SandboxError::io("create", &link))?;
        let seen = Layout::of(&link);
        self.configure(&seen)?;
        let mut command = self.command(&self.binaries.initialiser.clone());
        let defaults = format!("--defaults-file={}", seen.configuration().display());
        let datadir = format!("--datadir={}", seen.data().display());
        match self.spec.flavour {
            Flavour::Mysql => command.args([defaults.as_str(), "--initialize-insecure"]),
            Flavour::Mariadb => {
                let login = "--auth-root-authentication-method=normal";
                command.args([defaults.as_str(), login, "--skip-test-db", datadir.as_str()])
            }
            Flavour::Postgres => {
                command.arg("-D").arg(&data);
                // Its data reach the disk with the first checkpoint.
                command.args([
                    "-U",
                    self.spec.flavour.superuser(),
                    "-A",
                    "trust",
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
            // initdb takes a second, and one that is killed leaves shared memory behind.
            if stopped() && self.spec.flavour != Flavour::Postgres {
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
        self.identify(true)?;
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
        while shared_memory::is_in_use(&self.layout.data()) && Instant::now() < until && !stopped() {
            std::thread::sleep(process::POLL);
        }
        self.configure(&self.layout)?;
        let mut command = self.command(&self.binaries.server.clone());
        let configuration = self.layout.configuration();
        match self.spec.flavour.dialect() {
            Dialect::MySql => command.arg(format!("--defaults-file={}", configuration.display())),
            Dialect::Postgres => {
                command.arg("-D").arg(self.layout.data());
                command.arg("-c").arg(format!("config_file={}", configuration.display()))
            }
        };
        self.spawn(&mut command)?;
        self.marker.server = self.child.as_ref().and_then(|child| ProcessId::of(child.id()));
        self.run.mark(&self.marker)?;
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
                return Ok(());
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
        match self.spec.flavour.dialect() {
            // After a crash its pid file says what the server before it was: only a login tells.
            Dialect::Postgres => self.socket().exists() && Connection::open(&self.server()).is_ok(),
            Dialect::MySql => {
                let Ok(mut stream) = UnixStream::connect(self.socket()) else { return false };
                let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
                // Length, sequence number, then the protocol's version, 10; 255 is an error.
                let mut head = [0; 5];
                stream.read_exact(&mut head).is_ok() && head[4] == 10
            }
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
        let spec = SandboxSpec { dir: dir.to_path_buf(), ..self.spec.clone() };
        let copy = Sandbox::claim(&spec)?;
        copy.identify(false)?;
        copy.make_folders()?;
        layout::copy_tree(&self.layout.data(), &copy.layout.data(), stopped)?;
        copy.identify(true)?;
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
        self.run.path().join(self.spec.socket_name())
    }

    /// Its data directory.
    pub fn data_dir(&self) -> PathBuf {
        self.layout.data()
    }

    /// Its log.
    pub fn log(&self) -> PathBuf {
        self.layout.log()
    }

    /// Its process; `None` when it is stopped.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// What it was asked to be, with an absolute folder.
    pub fn spec(&self) -> &SandboxSpec {
        &self.spec
    }

    /// What it calls itself.
    pub fn version(&self) -> &str {
        &self.binaries.version
    }

    /// How it ended, if it has by itself.
    ///
    /// # Errors
    /// When the process cannot be looked at.
    pub fn ended(&mut self) -> Result<Option<std::process::ExitStatus>, SandboxError> {
        let dir = self.spec.dir.clone();
        self.child
            .as_mut()
            .map_or(Ok(None), Child::try_wait)
            .map_err(SandboxError::io("wait for the server in", &dir))
    }

    /// A command line of the server's own client.
    pub fn client(&self) -> String {
        let user = self.spec.flavour.superuser();
        match self.spec.flavour {
            Flavour::Postgres => {
                let (folder, port) = (self.run.path().display(), self.spec.port());
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
                ("PGHOST", self.run.path().display().to_string()),
                ("PGPORT", self.spec.port().to_string()),
                ("PGUSER", self.spec.flavour.superuser().to_string()),
                ("PGDATABASE", "postgres".to_string()),
            ],
        }
    }

    fn make_folders(&self) -> Result<(), SandboxError> {
        for folder in [self.layout.data(), self.layout.temporary()] {
            match DirBuilder::new().mode(0o700).create(&folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(SandboxError::io("create", &folder)(error));
                }
                _ => self.account.give(&folder)?,
            }
        }
        Ok(())
    }

    fn identify(&self, initialised: bool) -> Result<(), SandboxError> {
        self.layout.write_identity(&Identity {
            schema: layout::SCHEMA.to_string(),
            flavour: self.spec.flavour,
            version: self.binaries.version.clone(),
            initialised,
        })
    }

    /// Writes the configuration file, with the paths of `seen`.
    fn configure(&self, seen: &Layout) -> Result<(), SandboxError> {
        let (data, temporary, socket) = (seen.data(), seen.temporary(), self.socket());
        let text =
            configure::text(&self.spec, Places { data: &data, temporary: &temporary, socket: &socket })?;
        let path = self.layout.configuration();
        fs::write(&path, text).map_err(SandboxError::io("write", &path))?;
        self.account.give(&path)
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.layout.dir());
        self.account.take_on(&mut command);
        command
    }

    fn spawn(&mut self, command: &mut Command) -> Result<(), SandboxError> {
        let log = self.layout.log();
        let program = PathBuf::from(command.get_program());
        let child = process::spawn(command, &log).map_err(SandboxError::io("start", &program))?;
        let minded = self.minder.as_mut().map_or(Ok(()), |minder| minder.mind(Some(child.id())));
        self.child = Some(child);
        minded.map_err(SandboxError::io("have somebody end", &program))
    }

    /// The child has ended and was waited for: its number may soon be somebody else's.
    fn forget_child(&mut self) -> Result<(), SandboxError> {
        self.child = None;
        let minded = self.minder.as_mut().map_or(Ok(()), |minder| minder.mind(None));
        minded.map_err(SandboxError::io("reach the minder of", &self.spec.dir))
    }

    fn end(&mut self, signal: Signal, patience: Duration) -> Result<(), SandboxError> {
        let Some(child) = &mut self.child else { return Ok(()) };
        process::end(child, signal, patience)
            .map_err(SandboxError::io("end the server in", &self.spec.dir))?;
        self.marker.server = None;
        self.forget_child()
    }

    fn failed(&self, what: String) -> SandboxError {
        let log = self.layout.log();
        SandboxError::Server { what, lines: process::log_tail(&log), log }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let whole = self.layout.identity().is_some_and(|identity| identity.initialised);
        let keep = self.spec.keep && whole;
        if keep {
            let _ = self.stop();
        } else {
            // PostgreSQL's immediate shutdown gives its shared memory back.
            let postgres = self.spec.flavour.dialect() == Dialect::Postgres;
            let _ = self.end(if postgres { Signal::QUIT } else { Signal::KILL }, DROP_LIMIT);
            shared_memory::release(&self.layout.data());
            layout::remove(&self.spec.dir, self.marker.made_dir);
        }
        self.run.remove();
        self.minder = None;
    }
}

/// A folder that was made; dropped before [`Claim::done`], it goes away again.
struct Claim {
    dir: PathBuf,
    made_dir: bool,
}

impl Claim {
    fn done(mut self) {
        self.made_dir = false;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.made_dir {
            layout::remove(&self.dir, true);
        }
    }
}

/// Makes a sandbox's folder; `false` where it is there already.
fn make_dir(dir: &Path) -> Result<bool, SandboxError> {
    match DirBuilder::new().mode(0o755).create(dir) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(SandboxError::io("create", dir)(error)),
    }
}

/// Refuses a folder that holds something else than what this sandbox may take up.
fn look_inside(layout: &Layout, wanted: Flavour) -> Result<(), SandboxError> {
    let dir = layout.dir();
    if let Some(identity) = layout.identity() {
        let left = list().into_iter().find(|listed| listed.marker.dir == dir);
        return match left {
            Some(left) if left.abandoned => Err(SandboxError::Abandoned(dir.to_path_buf())),
            Some(_) => Err(SandboxError::InUse(dir.to_path_buf())),
            None if identity.flavour != wanted => {
                Err(SandboxError::OtherFlavour { dir: dir.to_path_buf(), found: identity.flavour, wanted })
            }
            None => Ok(()),
        };
    }
    let mut entries = fs::read_dir(dir).map_err(SandboxError::io("read", dir))?;
    // A lock alone is a sandbox that is being made, or one that never was.
    let foreign = entries.any(|entry| entry.is_ok_and(|entry| entry.file_name() != "lock"));
    if foreign { Err(SandboxError::NotEmpty(dir.to_path_buf())) } else { Ok(()) }
}
