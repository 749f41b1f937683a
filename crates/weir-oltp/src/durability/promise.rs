//! What a server's own settings promise of a commit.

use std::collections::BTreeMap;
use std::iter;

use crate::record::ServerRecord;

/// What becomes of a commit in a crash, by the server's variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Promise {
    /// It is kept.
    Kept,
    /// It may be lost: sentences that say by which setting.
    Broken(Vec<String>),
    /// The variables are not known.
    Unknown,
}

impl Promise {
    /// By the server's variables.
    pub fn of(variables: &BTreeMap<String, String>) -> Promise {
        match lost(variables) {
            _ if variables.is_empty() => Promise::Unknown,
            why if why.is_empty() => Promise::Kept,
            why => Promise::Broken(why),
        }
    }

    /// The worst that one of a run's servers promises; where they differ, with its place.
    pub fn of_all(server: &ServerRecord) -> Promise {
        let first = Promise::of(&server.variables);
        let (Some(place), false) = (server.places.first(), server.others.is_empty()) else { return first };
        let others = server.others.iter().map(|(place, variables)| (place, Promise::of(variables)));
        let (mut broken, mut is_known) = (Vec::new(), true);
        for (place, promise) in iter::once((place, first)).chain(others) {
            match promise {
                Promise::Kept => {}
                Promise::Broken(why) => broken.extend(why.into_iter().map(|why| format!("{place}: {why}"))),
                Promise::Unknown => is_known = false,
            }
        }
        match (broken.is_empty(), is_known) {
            (false, _) => Promise::Broken(broken),
            (true, false) => Promise::Unknown,
            (true, true) => Promise::Kept,
        }
    }
}

/// Settings that let a crash take commits away, each with what it does. Empty where all is durable or nothing is known.
pub fn lost(variables: &BTreeMap<String, String>) -> Vec<String> {
    let is = |name: &str, values: &[&str]| {
        variables.get(name).is_some_and(|value| values.contains(&value.to_ascii_lowercase().as_str()))
    };
    let mut why = Vec::new();
    let mut add = |applies: bool, text: &str| why.extend(applies.then(|| text.to_string()));
    add(
        is("innodb_flush_log_at_trx_commit", &["0"]),
        "innodb_flush_log_at_trx_commit = 0 loses up to a second of commits with the server",
    );
    add(
        is("innodb_flush_log_at_trx_commit", &["2"]),
        "innodb_flush_log_at_trx_commit = 2 loses up to a second of commits with the machine",
    );
    add(is_nosync(variables), "innodb_flush_method = nosync never syncs: a crash may destroy the database");
    add(
        is("log_bin", &["on", "1"]) && variables.get("sync_binlog").is_some_and(|n| n != "1"),
        "sync_binlog is not 1: the binary log may lack the last commits",
    );
    add(is("fsync", &["off"]), "fsync = off: a crash of the machine may destroy the database");
    add(
        is("synchronous_commit", &["off"]),
        "synchronous_commit = off loses up to three wal_writer_delay of commits",
    );
    why
}

/// Whether InnoDB syncs neither its log nor its data files. MariaDB takes nosync for fsync since 11.0 (MDEV-30136), which
/// brought innodb_log_file_write_through.
pub fn is_nosync(variables: &BTreeMap<String, String>) -> bool {
    variables.get("innodb_flush_method").is_some_and(|method| method.eq_ignore_ascii_case("nosync"))
        && !variables.contains_key("innodb_log_file_write_through")
}

/// Whether the log is written in a way that is durable by itself, so that the server counts no sync of it: O_DSYNC, O_SYNC,
/// MariaDB's innodb_log_file_write_through, or PostgreSQL's open_datasync and open_sync.
pub fn writes_durably(variables: &BTreeMap<String, String>) -> bool {
    let is = |name: &str, values: &[&str]| {
        variables.get(name).is_some_and(|value| values.contains(&value.to_ascii_lowercase().as_str()))
    };
    is("innodb_flush_method", &["o_dsync", "o_sync"])
        || is("innodb_log_file_write_through", &["on", "1"])
        || is("wal_sync_method", &["open_datasync", "open_sync"])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    #[test]
    fn settings_that_lose_commits_are_named() {
        for (pairs, expected) in [
            (
                &[("innodb_flush_log_at_trx_commit", "1"), ("log_bin", "OFF"), ("sync_binlog", "0")][..],
                vec![],
            ),
            (&[("innodb_flush_log_at_trx_commit", "2")], vec!["with the machine"]),
            (&[("log_bin", "ON"), ("sync_binlog", "1000")], vec!["sync_binlog"]),
            (&[("fsync", "off"), ("synchronous_commit", "off")], vec!["fsync", "wal_writer_delay"]),
            (&[("synchronous_commit", "local")], vec![]),
            (&[("innodb_flush_method", "nosync")], vec!["never syncs"]),
            (&[("innodb_flush_method", "nosync"), ("innodb_log_file_write_through", "OFF")], vec![]),
            (&[], vec![]),
        ] {
            let found = lost(&variables(pairs));
            assert_eq!(found.len(), expected.len(), "{found:?}");
            found.iter().zip(expected).for_each(|(text, word)| assert!(text.contains(word), "{text}"));
        }
        assert_eq!(Promise::of(&BTreeMap::new()), Promise::Unknown);
        assert_eq!(Promise::of(&variables(&[("fsync", "on")])), Promise::Kept);
    }

    #[test]
    fn some_logs_are_written_durably_without_a_sync() {
        for (pair, expected) in [
            (("innodb_flush_method", "O_DSYNC"), true),
            (("innodb_flush_method", "O_DIRECT"), false),
            (("innodb_log_file_write_through", "ON"), true),
            (("innodb_log_file_write_through", "OFF"), false),
            (("wal_sync_method", "open_datasync"), true),
            (("wal_sync_method", "fdatasync"), false),
        ] {
            assert_eq!(writes_durably(&variables(&[pair])), expected, "{pair:?}");
        }
    }
}
