//! Whether a commit is on the disk when the server says so, by the server's own variables.

use std::collections::BTreeMap;

use serde_json::Value;

/// The kind of a data directory's file system that is memory, as the conditions of a run have it.
pub fn memory_file_system(conditions: &Value) -> Option<&str> {
    let kind = conditions.pointer("/target/file_system/kind")?.as_str()?;
    ["tmpfs", "ramfs"].contains(&kind).then_some(kind)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_no_disk() {
        let on = |kind: &str| serde_json::json!({ "target": { "file_system": { "kind": kind } } });
        assert_eq!(memory_file_system(&on("tmpfs")), Some("tmpfs"));
        assert_eq!(memory_file_system(&on("xfs")), None);
        assert_eq!(memory_file_system(&Value::Null), None);
    }

    #[test]
    fn settings_that_lose_commits_are_named() {
        for (variables, expected) in [
            (
                &[("innodb_flush_log_at_trx_commit", "1"), ("log_bin", "OFF"), ("sync_binlog", "0")][..],
                vec![],
            ),
            (&[("innodb_flush_log_at_trx_commit", "2")], vec!["with the machine"]),
            (&[("log_bin", "ON"), ("sync_binlog", "1000")], vec!["sync_binlog"]),
            (&[("fsync", "off"), ("synchronous_commit", "off")], vec!["fsync", "wal_writer_delay"]),
            (&[("synchronous_commit", "local")], vec![]),
            (&[], vec![]),
        ] {
            let variables = variables.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
            let found = lost(&variables);
            assert_eq!(found.len(), expected.len(), "{found:?}");
            found.iter().zip(expected).for_each(|(text, word)| assert!(text.contains(word), "{text}"));
        }
    }
}
