//! How much of what the kernel accounts a thread with it can have dirtied.
//!
//! The kernel accounts whole folios: a write of 16 KiB into a part of a file that lies in memory as one folio of 1 MiB
//! counts 64 times (measured on xfs: 1500 such commits a second, 24 MB/s, were accounted as 1.5 GB/s). What a thread
//! passed to `write` and related calls bounds that, but is told only when a call ends, which may be a copy's gigabyte later,
//! and not at all of pages written by `mmap` or io_uring. So the number of calls bounds it from below: each can have
//! been accounted with one folio too much at either end.

/// Threads that have written less are not told of.
pub(super) const TOLD_BYTES: u64 = 64 << 10;
/// The largest folio of a page cache with pages of 4 KiB.
const FOLIO: u64 = 2 << 20;
/// What a call can have been accounted with beyond what it wrote.
const BEYOND_A_CALL: u64 = 2 * FOLIO;

/// What the kernel tells of a thread, since it began or between two looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Account {
    /// Accounted as written to storage (`write_bytes` in `/proc/PID/io`).
    pub accounted: u64,
    /// Passed to calls that have ended, onto whatever (`wchar`).
    pub passed: u64,
    /// Such calls (`syscw`).
    pub calls: u64,
}

impl Account {
    /// What came since an earlier one.
    pub fn since(&self, before: &Account) -> Account {
        Account {
            accounted: self.accounted.saturating_sub(before.accounted),
            passed: self.passed.saturating_sub(before.passed),
            calls: self.calls.saturating_sub(before.calls),
        }
    }
}

/// What was accounted and not yet counted, because a call that is under way may tell of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Open(u64);

impl Open {
    /// Bytes that count as dirtied by what came.
    pub fn count(&mut self, news: &Account) -> u64 {
        let open = self.0.saturating_add(news.accounted);
        let sure = open.saturating_sub(BEYOND_A_CALL.saturating_mul(news.calls.saturating_add(1)));
        let counted = open.min(news.passed).max(sure);
        self.0 = (open - counted).min(BEYOND_A_CALL);
        counted
    }
}

/// Bytes that a process wrote by its `/proc/PID/io`, and 0 where it may only have read: a file's time of last access dirties
/// a page, too, on ext4 without a journal. `without_write`: its bytes need not have passed through `write`.
pub fn written(io: &str, without_write: bool) -> u64 {
    let figure = |key: &str| {
        let figure =
            io.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')?.trim().parse().ok());
        figure.unwrap_or(0)
    };
    let written = figure("write_bytes");
    let may_have_read = !without_write && figure("wchar") == 0 && written < TOLD_BYTES;
    if may_have_read { 0 } else { written }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_dirtied_by_reading_are_no_writes() {
        for (wchar, write_bytes, without_write, expected) in [
            (0, 0, false, 0),
            (0, 4096, false, 0),
            (0, 4096, true, 4096),
            (1, 4096, false, 4096),
            (0, 64 << 10, false, 64 << 10),
        ] {
            let io =
                format!("rchar: 9\nwchar: {wchar}\nwrite_bytes: {write_bytes}\ncancelled_write_bytes: 7\n");
            assert_eq!(written(&io, without_write), expected, "{io}");
        }
    }

    const MIB: u64 = 1 << 20;

    /// Sum over looks of (accounted, passed, calls).
    fn counted(looks: impl IntoIterator<Item = (u64, u64, u64)>) -> u64 {
        let mut open = Open::default();
        looks
            .into_iter()
            .map(|(accounted, passed, calls)| open.count(&Account { accounted, passed, calls }))
            .sum()
    }

    #[test]
    fn what_was_written_counts_however_it_is_told() {
        let commits = || std::iter::repeat_n((150 * MIB, 150 * 16 * 1024, 150), 100);
        let copy = (0..100).map(|look| (20 * MIB, if look == 99 { 2000 * MIB } else { 0 }, look / 99));
        let cases: [(&str, u64, std::ops::RangeInclusive<u64>); 6] = [
            ("each as it is", counted((0..100).map(|_| (25 * MIB, 25 * MIB, 25))), 2500 * MIB..=2500 * MIB),
            (
                "calls that end in other looks than they were accounted in",
                counted((0..100).map(|look| (25 * MIB, 24 * MIB + look % 3 * MIB, 25))),
                2470 * MIB..=2500 * MIB,
            ),
            ("small writes into large folios", counted(commits()), 234 * MIB..=240 * MIB),
            ("one call for all", counted(copy), 2000 * MIB..=2000 * MIB),
            ("pages that are mapped", counted((0..100).map(|_| (20 * MIB, 0, 0))), 1996 * MIB..=2000 * MIB),
            ("answers on a socket", counted((0..100).map(|_| (0, 90 * MIB, 5000))), 0..=0),
        ];
        for (name, counted, expected) in cases {
            assert!(expected.contains(&counted), "{name}: {} MiB", counted / MIB);
        }
        // A copy that has passed nothing yet is seen at each look.
        let mut open = Open::default();
        let news = Account { accounted: 20 * MIB, ..Account::default() };
        open.count(&news);
        assert_eq!(open.count(&news), 20 * MIB);
        // What over-accounting leaves is not counted as somebody's answers are sent.
        assert!(counted(commits().chain([(0, 900 * MIB, 9000)])) <= 240 * MIB);
    }
}
