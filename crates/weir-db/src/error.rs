//! What can go wrong between weir and a server.

use std::io;

/// A server's words, fit for a terminal: nothing that steers it, and no more than somebody would read.
pub(crate) fn plain(words: &[u8], chars_max: usize) -> String {
    // A character has four bytes at most.
    let words = &words[..words.len().min(chars_max * 4)];
    let words = String::from_utf8_lossy(words);
    words.chars().take(chars_max).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// More of an error's words is noise.
pub(crate) const MESSAGE_CHARS_MAX: usize = 2000;
/// The longest name of a version or a way to log in that is one.
pub(crate) const NAME_CHARS_MAX: usize = 80;
/// A SQLSTATE's.
pub(crate) const SQLSTATE_CHARS: usize = 5;

/// An answer of the server that is an error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({})", self.code())]
pub struct ServerError {
    /// MySQL's number; 0 for PostgreSQL.
    pub number: u16,
    /// Five characters, `40001`.
    pub sqlstate: String,
    /// The server's words.
    pub message: String,
}

impl ServerError {
    /// The code users look up: MySQL's number, PostgreSQL's SQLSTATE.
    pub fn code(&self) -> String {
        if self.number != 0 { self.number.to_string() } else { self.sqlstate.clone() }
    }

    /// A deadlock, a lock time-out, a serialisation failure or (PostgreSQL) a duplicate key: the transaction may run
    /// again. The lists are sysbench's: MySQL 1213, 1020, 1205; PostgreSQL 40P01, 23505, 40001; and 55P03, which is
    /// what 1205 is where `lock_timeout` is set.
    pub fn is_retryable(&self) -> bool {
        matches!(self.number, 1213 | 1020 | 1205)
            || (self.number == 0 && matches!(self.sqlstate.as_str(), "40P01" | "23505" | "40001" | "55P03"))
    }
}

/// Why something with a server failed.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// The server said no.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The connection could not be made.
    #[error("cannot connect to {place}: {source}")]
    Connect {
        /// Where to.
        place: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The connection broke.
    #[error("the connection to {place} was lost: {source}")]
    Lost {
        /// Where to.
        place: String,
        /// The system's answer.
        source: io::Error,
    },
    /// No answer in the time allowed.
    #[error("no answer from {place} within {}", weir_core::units::Nanos(*.after_ns))]
    Timeout {
        /// Where to.
        place: String,
        /// The time allowed.
        after_ns: u64,
    },
    /// Encryption could not be set up.
    #[error("no encrypted connection to {place}: {why}")]
    Tls {
        /// Where to.
        place: String,
        /// Why.
        why: String,
    },
    /// The server asks for a way to log in that weir lacks, or that would show the password.
    #[error("cannot log in to {place}: {why}")]
    Login {
        /// Where to.
        place: String,
        /// Why.
        why: String,
    },
    /// Bytes that do not fit the protocol.
    #[error("unexpected answer of {place}: {why}")]
    Protocol {
        /// Where from.
        place: String,
        /// What was odd.
        why: String,
    },
    /// The tables are not those that the workload needs.
    #[error("{what}")]
    Tables {
        /// What is wrong with which.
        what: String,
        /// What to do.
        hint: String,
    },
    /// Not all of the connections asked for could be made.
    #[error("weir could open only {connected} of {total} connections: {source}{}", limit_words(*.allowed))]
    Connections {
        /// How many stood by then.
        connected: u32,
        /// How many were asked for.
        total: u32,
        /// How many the server allows, where it says.
        allowed: Option<u64>,
        /// Why the next one could not.
        source: Box<DbError>,
    },
    /// The server or weir does not offer this.
    #[error("{0}")]
    Unsupported(String),
    /// Somebody asked to stop.
    #[error("stopped")]
    Stopped,
}

fn limit_words(allowed: Option<u64>) -> String {
    allowed.map_or_else(String::new, |n| format!("; the server allows {n} (max_connections)"))
}

impl DbError {
    /// Tables that are not those needed, and what to do.
    pub fn tables(what: impl Into<String>, hint: impl Into<String>) -> DbError {
        DbError::Tables { what: what.into(), hint: hint.into() }
    }

    /// What is at the bottom of it.
    pub fn root(&self) -> &DbError {
        match self {
            DbError::Connections { source, .. } => source.root(),
            _ => self,
        }
    }

    /// The server takes no more connections.
    pub fn is_full(&self) -> bool {
        match self.root() {
            DbError::Server(error) => {
                matches!(error.number, 1040 | 1203) || (error.number == 0 && error.sqlstate == "53300")
            }
            _ => false,
        }
    }

    /// The server prepares other statements, and not this one; as text it takes it. MySQL's do so with BEGIN.
    pub fn is_unpreparable(&self) -> bool {
        matches!(self, DbError::Server(error) if error.number == 1295)
    }

    /// The transaction may run again.
    pub fn is_retryable(&self) -> bool {
        matches!(self, DbError::Server(error) if error.is_retryable())
    }

    /// The connection is gone, and a new one may do.
    pub fn is_lost(&self) -> bool {
        match self {
            // The server's own words before it closes: shutdown, kill, and the time-outs of
            // idle sessions and of transactions.
            DbError::Server(error) => {
                matches!(error.number, 1053 | 1077 | 1927 | 2006 | 2013 | 3169 | 4031)
                    || (error.number == 0
                        && (error.sqlstate.starts_with("57P")
                            || matches!(error.sqlstate.as_str(), "25P03" | "25P04")))
            }
            DbError::Lost { .. } | DbError::Timeout { .. } => true,
            _ => false,
        }
    }
}
