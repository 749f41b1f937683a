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

/// Bytes that the log of MySQL 8.0.30 and later may hold before sessions that write have to wait for a checkpoint, by its
/// capacity on disk, the size of a page, and `innodb_thread_concurrency` (`log_free_check_capacity`: log0files_capacity.cc,
/// `log_concurrency_margin` of log0chkp.cc, constants of log0constants.h). With 8 MiB it is 74 % of them, with 100 MiB 84 %.
pub(super) fn log_held(capacity: f64, page: f64, concurrency: f64) -> f64 {
    const FILES: f64 = 32.0;
    const FILE_HEADER: f64 = 2048.0;
    const SAFETY_MARGIN: f64 = 2.0 * 65_536.0;
    // Two files are never full; of the last a tenth is left when the next is made.
    let unused = (FILES - 1.0) * FILE_HEADER + SAFETY_MARGIN + 0.1 * capacity / FILES;
    let hard = capacity * (FILES - 2.0) / FILES - unused;
    // A twentieth is the log writer's own.
    let soft = 0.95 * hard;
    let reserved = 4.0 * page * (concurrency + 10.0) + 4096.0 + 0.05 * soft;
    (soft - reserved.min(0.55 * soft)).max(0.0)
}

/// The same of MySQL 5.7, by the size and number of its files: the age of a checkpoint for which writing statements wait
/// (`max_checkpoint_age` of `log_calc_max_ages`, log0log.cc and log0log.h). MariaDB of before 10.5 computes the same.
pub(super) fn log_held_in_files(size: f64, files: f64, page: f64, concurrency: f64) -> f64 {
    const FILE_HEADER: f64 = 2048.0;
    let capacity = 0.9 * (size - FILE_HEADER) * files;
    // For each thread that may be within a statement, and to be safe.
    let reserved = 4.0 * page * (concurrency + 10.0) + 8.0 * page;
    (0.9 * (capacity - reserved)).max(0.0)
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
