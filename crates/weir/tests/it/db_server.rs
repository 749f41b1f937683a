//! Throw-away servers for tests of `weir db`.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use weir_db::sandbox::{Flavour, Sandbox, SandboxError, SandboxSpec, set_remover};
use weir_db::{Connection, Server};

/// The servers that these tests run on.
pub const FLAVOURS: [Flavour; 2] = [Flavour::Mariadb, Flavour::Postgres];

/// A server that goes away with the test.
pub struct TestServer {
    /// The server.
    pub sandbox: Sandbox,
    _dir: TempDir,
}

/// Stopped servers of whose data the tests' servers get copies: making data takes seconds, a copy a tenth of one. Their
/// minders remove them when this process has ended.
static PREPARED: Mutex<Vec<Sandbox>> = Mutex::new(Vec::new());

/// A server, if its binaries are installed. If not, the test says what it lacks, past the capture of the test harness,
/// in the words that `make test` counts.
pub fn server_or_say(test: &str, flavour: Flavour) -> Option<TestServer> {
    let dir = tempfile::tempdir().unwrap();
    match started(flavour, &dir) {
        Ok(sandbox) => Some(TestServer { sandbox, _dir: dir }),
        Err(SandboxError::NotInstalled { .. }) => {
            let _ = writeln!(io::stderr(), "not run: {test} lacks {flavour}");
            None
        }
        Err(error) => panic!("{flavour}: {error}"),
    }
}

/// A server on a copy of the prepared data.
pub fn started(flavour: Flavour, dir: &TempDir) -> Result<Sandbox, SandboxError> {
    let mut sandbox = {
        let mut prepared = PREPARED.lock().unwrap_or_else(PoisonError::into_inner);
        if !prepared.iter().any(|sandbox| sandbox.spec().flavour == flavour) {
            let name = format!("weir-it-{flavour}-{}", std::process::id());
            set_remover(assert_cmd::cargo::cargo_bin!("weir"));
            let spec = SandboxSpec::new(flavour, std::env::temp_dir().join(name));
            prepared.push(Sandbox::create(&spec, &|| false)?);
        }
        let of_flavour = prepared.iter().find(|sandbox| sandbox.spec().flavour == flavour);
        of_flavour.expect("it was made above").clone_to(&dir.path().join("data"), &|| false)?
    };
    sandbox.run(&|| false)?;
    Ok(sandbox)
}

impl TestServer {
    /// The options that name it.
    pub fn options(&self) -> Vec<String> {
        let server = self.sandbox.server();
        let family = match server.dialect {
            weir_oltp::Dialect::MySql => "--mysql",
            weir_oltp::Dialect::Postgres => "--postgres",
        };
        let socket = self.sandbox.socket().display().to_string();
        [family, "--socket", &socket, "--user", &server.user].map(String::from).to_vec()
    }

    /// `weir db COMMAND` on it.
    pub fn line(&self, words: &[&str]) -> Vec<String> {
        let mut line = vec!["db".to_string(), words[0].to_string()];
        line.extend(self.options());
        line.extend(words[1..].iter().map(|word| word.to_string()));
        line
    }

    /// The server with one of its databases.
    pub fn with_database(&self, database: &str) -> Server {
        Server { database: database.to_string(), ..self.sandbox.server() }
    }

    /// Runs statements as the superuser.
    pub fn run(&self, database: &str, statements: &[&str]) {
        let mut connection = Connection::open(&self.with_database(database)).unwrap();
        for statement in statements {
            connection.run(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
    }

    /// The first column of a question's answer.
    pub fn ask(&self, database: &str, question: &str) -> Vec<String> {
        let mut connection = Connection::open(&self.with_database(database)).unwrap();
        let rows = connection.query(question).unwrap_or_else(|error| panic!("{question}: {error}"));
        rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect()
    }

    /// Names of the databases that are not the server's own.
    pub fn databases(&self) -> Vec<String> {
        let (database, question) = match self.sandbox.server().dialect {
            weir_oltp::Dialect::MySql => ("", "SHOW DATABASES"),
            weir_oltp::Dialect::Postgres => {
                ("postgres", "SELECT datname FROM pg_database WHERE NOT datistemplate")
            }
        };
        let own = ["information_schema", "mysql", "performance_schema", "sys", "test", "postgres"];
        self.ask(database, question).into_iter().filter(|name| !own.contains(&name.as_str())).collect()
    }

    /// Waits until a run in the database `weir` is well under way: some hundred statements or transactions.
    pub fn wait_for_transactions(&self) {
        let enough = |rows: &[String]| rows.iter().any(|n| n.parse::<f64>().is_ok_and(|n| n > 500.0));
        match self.sandbox.server().dialect {
            weir_oltp::Dialect::MySql => {
                let question = "SELECT variable_value FROM information_schema.global_status \
                                WHERE variable_name = 'COM_STMT_EXECUTE'";
                self.wait_until("", question, enough);
            }
            weir_oltp::Dialect::Postgres => {
                let question = "SELECT xact_commit FROM pg_stat_database WHERE datname = 'weir'";
                self.wait_until("postgres", question, enough);
            }
        }
    }

    /// Waits until a question has an answer: the moment at which a test strikes.
    pub fn wait_until(&self, database: &str, question: &str, is_there: impl Fn(&[String]) -> bool) {
        let patience = Instant::now() + Duration::from_secs(60);
        while !is_there(&self.ask(database, question)) {
            assert!(Instant::now() < patience, "{question} never got there");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// A folder in which commands of a test run.
pub fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Words as `Weir::run` takes them.
pub fn words(line: &[String]) -> Vec<&str> {
    line.iter().map(String::as_str).collect()
}
