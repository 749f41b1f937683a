//! Questions for a cluster: the same SQL over the same files, by Spark Connect, which Spark 4 and Sail speak.

mod address;
mod arrow;
mod client;
mod wire;

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use tokio::runtime::Runtime;
use weir_archive::Table;
use weir_archive::tables::Kind;
use weir_cli::failure::{lacking, usage};
use weir_cli::signals::stop_on_signals;
use weir_core::stop::Stop;
use weir_store::tables::TABLES;

use crate::archive::Stored;
use crate::cells::{Answer, Failed, ROWS_MAX, SMALLER_HINT, Unfit, too_much};
use crate::cli::SparkArgs;
use crate::origin::Origin;
use address::Address;
use client::{Client, Refusal};
use wire::{Command, DataSource, Limit, Plan, Read, Relation, Sql, View};

/// The longest token or certificate that is read.
const FILE_MAX: u64 = 1 << 20;
/// Each time the whole question again, which changes nothing there.
const ANEW: usize = 3;

/// Where a server is, and what proves who asks.
pub struct Access {
    address: Address,
    user: String,
    token: Option<String>,
    ca_pem: Option<String>,
}

/// A signal ended the question.
#[derive(Debug, thiserror::Error)]
#[error("stopped; the question has been ended on the server too")]
pub struct Stopped(pub u8);

/// A cluster, with a session of ours.
pub struct Spark {
    access: Access,
    /// Where the servers find the tables, without a slash at its end.
    store: String,
    runtime: Runtime,
    stop: Stop,
    client: Option<Client>,
    /// How many files the views of the session have, by table.
    views: HashMap<&'static str, usize>,
}

impl Spark {
    /// A cluster as it was typed. Nothing is connected yet.
    ///
    /// # Errors
    /// What is wrong with the address or the files.
    pub fn new(args: &SparkArgs, origin: &Origin) -> anyhow::Result<Option<Spark>> {
        let Some(text) = &args.spark else { return Ok(None) };
        let address = Address::parse(text)?;
        let token = args.spark_token.as_deref().map(token).transpose()?;
        if token.is_some() && !address.tls && !address.is_loopback() {
            return Err(usage(
                "--spark: the token would go over the network for everybody to read",
                "end the address with /;use_ssl=true",
            ));
        }
        let ca_pem = args.spark_ca.as_deref().map(|path| read(path).map(|(text, _)| text)).transpose()?;
        if ca_pem.is_some() && !address.tls {
            return Err(usage("--spark-ca: the address asks for no TLS", "end it with /;use_ssl=true"));
        }
        let user =
            address.user.clone().or_else(|| std::env::var("USER").ok()).unwrap_or_else(|| "weir".into());
        let store = args.spark_store.clone().map_or_else(|| origin.url(), Ok)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Some(Spark {
            access: Access { address, user, token, ca_pem },
            store: store.trim_end_matches('/').to_string(),
            runtime,
            stop: stop_on_signals().context("cannot handle signals")?,
            client: None,
            views: HashMap::new(),
        }))
    }

    /// Asks of some files. A server that forgot the session or the question is asked anew.
    ///
    /// # Errors
    /// Nobody there, a wrong token, a mistake in the SQL, damaged files.
    pub fn ask(&mut self, files: &[Stored], sql: &str) -> Result<Answer, Failed> {
        let mut anew = 0..ANEW;
        loop {
            match self.once(files, sql) {
                Err(Broken::Refused(Refusal::Forgotten(_))) if anew.next().is_some() => {
                    (self.client, self.views) = (None, HashMap::new());
                }
                asked => return asked.map_err(|broken| self.explained(broken)),
            }
        }
    }

    fn once(&mut self, files: &[Stored], sql: &str) -> Result<Answer, Broken> {
        let Spark { access, store, runtime, stop, client, views } = self;
        runtime.block_on(async {
            let work = async {
                let session = match client {
                    Some(session) => session,
                    None => client.insert(Client::connect(access).await?),
                };
                // Making a view lists its files: only those that are asked get one.
                let named = sql.to_ascii_lowercase();
                for table in TABLES.into_iter().filter(|table| named.contains(table.name)) {
                    let paths = paths(store, files, table);
                    if views.get(table.name) != Some(&paths.len()) {
                        let count = paths.len();
                        session.execute(view(table, paths), |_| ControlFlow::Continue(())).await?;
                        views.insert(table.name, count);
                    }
                }
                rows(session, sql).await
            };
            tokio::select! {
                answer = work => answer,
                signal = signalled(stop) => Err(Broken::Stopped(signal)),
            }
        })
    }

    fn explained(&mut self, broken: Broken) -> Failed {
        let name = self.access.address.name();
        let other = |error: anyhow::Error| Failed::Other(error);
        match broken {
            Broken::Stopped(signal) => {
                say!("stopping: the server ends the question; a second Ctrl-C does not wait for that");
                if let Some(session) = &mut self.client {
                    self.runtime.block_on(session.interrupt());
                }
                other(Stopped(signal).into())
            }
            Broken::Arrow(why) => {
                other(lacking(format!("Spark at {name} sent rows that cannot be read: {why}"), ""))
            }
            Broken::TooMany => other(lacking(too_much(), SMALLER_HINT)),
            Broken::Refused(Refusal::Unreachable(why)) => other(lacking(
                format!("Spark at {name} does not answer: {why}"),
                "start-connect-server.sh, of Spark 4, starts one; --spark takes its address; /;use_ssl=true behind it speaks TLS",
            )),
            Broken::Refused(Refusal::Forbidden(why)) => other(lacking(
                format!("Spark at {name} refuses: {why}"),
                "--spark-token names a file with the token",
            )),
            Broken::Refused(Refusal::Forgotten(why)) => other(lacking(
                format!("Spark at {name} forgets what it is asked: {why}"),
                "its log may say why",
            )),
            Broken::Refused(Refusal::Failed { message, class, state }) => {
                // Sail has no classes.
                if class.starts_with("FAILED_READ_FILE") || message.contains("Parquet") {
                    return Failed::Files(lacking(format!("Spark at {name}: {message}"), ""));
                }
                if class == "PATH_NOT_FOUND" {
                    let hint = "the servers need the tables too: --spark-store says where they find them";
                    return other(lacking(format!("Spark at {name}: {message}"), hint));
                }
                // SQLSTATE 42: a mistake in the SQL.
                let message = format!("Spark at {name}: {message}");
                other(if state.starts_with("42") {
                    usage(message, crate::cells::TABLES_HINT)
                } else {
                    lacking(message, "")
                })
            }
        }
    }
}

impl Drop for Spark {
    fn drop(&mut self) {
        if let Some(session) = &mut self.client {
            self.runtime.block_on(session.end());
        }
    }
}

/// Why there is no answer.
enum Broken {
    Refused(Refusal),
    Arrow(String),
    TooMany,
    Stopped(u8),
}

impl From<Refusal> for Broken {
    fn from(refusal: Refusal) -> Broken {
        Broken::Refused(refusal)
    }
}

async fn signalled(stop: &Stop) -> u8 {
    loop {
        if let Some(signal) = stop.requested() {
            return signal;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn rows(session: &mut Client, sql: &str) -> Result<Answer, Broken> {
    let query = Relation { sql: Some(Sql { query: sql.to_string() }), ..Relation::default() };
    let limit = Limit { input: Some(Box::new(query)), rows: ROWS_MAX as i32 + 1 };
    let root = Relation { limit: Some(Box::new(limit)), ..Relation::default() };
    let mut answer = Answer::default();
    let mut read = Ok(());
    let plan = Plan { root: Some(root), command: None };
    session
        .execute(plan, |data| {
            read = arrow::read(data, &mut answer);
            if read.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })
        .await?;
    match read {
        Ok(()) => Ok(answer),
        Err(Unfit::Arrow(why)) => Err(Broken::Arrow(why.to_string())),
        Err(Unfit::TooMuch) => Err(Broken::TooMany),
    }
}

/// Where the servers find the files of a table.
fn paths(store: &str, files: &[Stored], table: &Table) -> Vec<String> {
    let of_table = files.iter().filter(|file| file.place.kind == table.name);
    of_table.map(|file| format!("{store}/{}", escaped(&file.below()))).collect()
}

/// Characters that are a pattern to the servers, as a class of one.
fn escaped(below: &str) -> String {
    below.chars().map(|c| if "*?[]{}\\".contains(c) { format!("\\{c}") } else { c.to_string() }).collect()
}

/// A view with the columns of a table. Nothing is guessed from the folders' names.
fn view(table: &Table, paths: Vec<String>) -> Plan {
    let kind = |kind: Kind| match kind {
        Kind::Integer => "BIGINT",
        Kind::Text => "STRING",
    };
    let columns: Vec<(&str, &str)> = table.columns.iter().map(|spec| (spec.name, kind(spec.kind))).collect();
    let input = if paths.is_empty() {
        let nothing: Vec<String> =
            columns.iter().map(|(name, kind)| format!("CAST(NULL AS {kind}) AS {name}")).collect();
        let query = format!("SELECT {} WHERE 1 = 0", nothing.join(", "));
        Relation { sql: Some(Sql { query }), ..Relation::default() }
    } else {
        let schema: Vec<String> = columns.iter().map(|(name, kind)| format!("{name} {kind}")).collect();
        let options = HashMap::from([("recursiveFileLookup".to_string(), "true".to_string())]);
        let source = DataSource { format: "parquet".to_string(), schema: schema.join(", "), options, paths };
        Relation { read: Some(Read { source: Some(source) }), ..Relation::default() }
    };
    let view = View { input: Some(input), name: table.name.to_string(), is_global: false, replace: true };
    Plan { root: None, command: Some(Command { view: Some(view) }) }
}

/// A file that was named, and its mode.
fn read(path: &Path) -> anyhow::Result<(String, u32)> {
    let what = || format!("cannot read {}", path.display());
    let file = File::open(path).with_context(what)?;
    let mode = file.metadata().with_context(what)?.mode();
    let mut text = String::new();
    file.take(FILE_MAX).read_to_string(&mut text).with_context(what)?;
    Ok((text, mode))
}

fn token(path: &Path) -> anyhow::Result<String> {
    let (text, mode) = read(path)?;
    if mode & 0o077 != 0 {
        let path = path.display();
        return Err(usage(
            format!("--spark-token: group or others may read {path}"),
            &format!("chmod 600 {path}"),
        ));
    }
    let token = text.trim();
    if token.is_empty() {
        return Err(usage(format!("--spark-token: {} is empty", path.display()), ""));
    }
    Ok(token.to_string())
}

/// A random UUID (RFC 9562, version 4), from the kernel.
fn uuid() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap_or_default();
    text.trim().to_string()
}
