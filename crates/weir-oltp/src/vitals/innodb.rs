//! SHOW ENGINE INNODB STATUS: a text for people, of which some lines have figures that no counter has in older servers.

use std::collections::BTreeMap;

/// What a line begins with, and the name its number gets.
const LINES: [(&str, &str); 6] = [
    ("Log sequence number", "innodb.log_sequence_number"),
    ("Log flushed up to", "innodb.log_flushed_up_to"),
    ("Last checkpoint at", "innodb.last_checkpoint_at"),
    ("History list length", "innodb.history_list_length"),
    ("Pending flushes (fsync) log:", "innodb.pending_log_flushes"),
    ("Modified db pages", "innodb.modified_pages"),
];

/// The figures in the text. Of a line that occurs again, as in the sections of each buffer pool instance, the first
/// counts, which is the sum.
pub fn innodb_status(text: &str) -> BTreeMap<String, f64> {
    let mut values = BTreeMap::new();
    for line in text.lines().map(str::trim_start) {
        for (start, name) in LINES {
            let Some(rest) = line.strip_prefix(start) else { continue };
            let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
            if let Ok(value) = digits.parse::<f64>() {
                values.entry(name.to_string()).or_insert(value);
            }
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_old_and_new_servers_are_found() {
        let text = "---\nLOG\n---\nLog sequence number          28472384\nLog buffer assigned up to    28472384\n\
            Log flushed up to            28472380\nLast checkpoint at           28400000\n0 pending log flushes\n\
            History list length 42\nPending flushes (fsync) log: 3; buffer pool: 0\nModified db pages  17\n\
            Modified db pages  5\nLog sequence number x\n";
        let expected = [
            ("innodb.history_list_length", 42.0),
            ("innodb.last_checkpoint_at", 28_400_000.0),
            ("innodb.log_flushed_up_to", 28_472_380.0),
            ("innodb.log_sequence_number", 28_472_384.0),
            ("innodb.modified_pages", 17.0),
            ("innodb.pending_log_flushes", 3.0),
        ];
        assert_eq!(innodb_status(text), expected.map(|(name, value)| (name.to_string(), value)).into());
        assert!(innodb_status("").is_empty());
    }
}
