//! What a server says of itself: variables, counters, waits. Only reads; a look at a busy server costs it well under a
//! millisecond, and what a [`Watch`] costs this side is in its result.

mod counters;
mod sessions;
mod variables;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use weir_oltp::limits::{OffCpu, Sessions};
use weir_oltp::vitals::{self, Gauges, Snapshot, Vitals};

use crate::connection::Connection;
use crate::error::DbError;
use crate::rows::Row;

pub use counters::snapshot;
pub use sessions::{ServerSession, Whose, add, sessions};
pub use variables::variables_that_matter;

/// How often sessions are looked at.
pub const LOOK: Duration = Duration::from_millis(100);
/// How often gauges that have a worst moment are looked at.
const GAUGE: Duration = Duration::from_secs(1);

/// Sentences about it: a server may word each refusal in another way.
const UNSEEN_MAX: usize = 50;

/// What could not be read, each once, with what would let it be read; and how many statements it took to ask.
#[derive(Debug, Clone, Default)]
pub struct Unseen {
    sentences: Vec<String>,
    asked: u64,
}

impl Unseen {
    /// The rows of a statement; `None` where the server refuses it, which is noted.
    fn ask(
        &mut self,
        connection: &mut Connection,
        sql: &str,
        what: &str,
        privilege: &str,
    ) -> Result<Option<Vec<Row>>, DbError> {
        self.asked += 1;
        match connection.query(sql) {
            Ok(rows) => Ok(Some(rows)),
            Err(error) if self.add(what, &error, privilege) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Notes that `what` was refused. A lost connection is no refusal.
    fn add(&mut self, what: &str, error: &DbError, privilege: &str) -> bool {
        let DbError::Server(refused) = error else { return false };
        let denied = matches!(refused.number, 1044 | 1142 | 1227) || refused.sqlstate == "42501";
        let help = if denied { format!("; `{privilege}` shows it") } else { String::new() };
        let sentence = format!("{what}: {refused}{help}");
        if !self.sentences.contains(&sentence) && self.sentences.len() < UNSEEN_MAX {
            self.sentences.push(sentence);
        }
        true
    }

    /// The sentences.
    pub fn sentences(&self) -> &[String] {
        &self.sentences
    }
}

/// A server being watched, by a connection of its own.
pub struct Watch {
    connection: Connection,
    variables: BTreeMap<String, String>,
    begun: Instant,
    first: Snapshot,
    /// Statements that this side had asked when the first counters were read.
    asked_before: u64,
    gauged: Instant,
    gauges: Gauges,
    sessions: Sessions,
    sessions_refused: bool,
    busy: Duration,
    unseen: Unseen,
}

impl Watch {
    /// Reads variables and the first counters.
    ///
    /// # Errors
    /// When the connection is lost. A note stands in the place of what the user may not see.
    pub fn begin(mut connection: Connection) -> Result<Watch, DbError> {
        let mut unseen = Unseen::default();
        let variables = variables_that_matter(&mut connection)?;
        let first = snapshot(&mut connection, &mut unseen)?;
        let now = Instant::now();
        let mut watch = Watch {
            connection,
            variables,
            begun: now,
            first: Snapshot::default(),
            asked_before: unseen.asked,
            gauged: now,
            gauges: Gauges::default(),
            sessions: Sessions::default(),
            sessions_refused: false,
            busy: Duration::ZERO,
            unseen,
        };
        watch.gauge(&first);
        watch.first = first;
        sessions::check_privilege(&mut watch.connection, &mut watch.unseen)?;
        Ok(watch)
    }

    /// The variables that matter.
    pub fn variables(&self) -> &BTreeMap<String, String> {
        &self.variables
    }

    /// Since when.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Looks at the sessions, and once a second at the gauges. To be called every [`LOOK`]. `find` as in [`sessions()`].
    ///
    /// # Errors
    /// When the connection is lost.
    pub fn look(&mut self, find: &mut dyn FnMut(u32) -> (u32, Option<OffCpu>)) -> Result<(), DbError> {
        let started = Instant::now();
        if !self.sessions_refused {
            self.sessions_refused =
                sessions::look(&mut self.connection, &mut self.sessions, &mut self.unseen, find)?;
        }
        if self.gauged.elapsed() >= GAUGE {
            self.gauged = Instant::now();
            let snapshot = snapshot(&mut self.connection, &mut self.unseen)?;
            self.gauge(&snapshot);
        }
        self.busy += started.elapsed();
        Ok(())
    }

    fn gauge(&mut self, snapshot: &Snapshot) {
        self.gauges.look(self.connection.dialect(), snapshot, &self.variables);
    }

    /// Reads the last counters.
    ///
    /// # Errors
    /// When the connection is lost.
    pub fn end(mut self) -> Result<Vitals, DbError> {
        let last = snapshot(&mut self.connection, &mut self.unseen)?;
        self.gauge(&last);
        Ok(Vitals {
            schema: vitals::SCHEMA.to_string(),
            dialect: self.connection.dialect(),
            version: self.connection.version().to_string(),
            variables: self.variables,
            elapsed_ns: u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX),
            first: self.first,
            last,
            checkpoint_age: self.gauges.checkpoint_age(),
            dirty: self.gauges.dirty(),
            sessions: self.sessions,
            cost_ns: u64::try_from(self.busy.as_nanos()).unwrap_or(u64::MAX),
            own_statements: self.unseen.asked - self.asked_before,
            unseen: self.unseen.sentences,
        })
    }
}
