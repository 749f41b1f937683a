//! What `weir knobs journal` says on a host. A change is in force where it stands there, and kept where it stays there. Pure.

/// Until when a change holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Its guardian restores the old values, unless it is confirmed.
    Waits,
    /// A rollback, or the next boot.
    Stays,
    /// Something restores the old values at this moment, or a running weir will.
    Leaves,
}

/// A change in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The process that made it, which distinguishes it from others.
    pub process: String,
    /// Until when it holds.
    pub standing: Standing,
}

/// The changes in force, the newest first. Those of an earlier boot mean nothing, and those of a guard are its own.
pub fn entries(printed: &str) -> Vec<Entry> {
    // A title may be broken into lines.
    let text = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    text.split(" by process ").skip(1).filter_map(entry).collect()
}

/// `42 (ended); goes back in 4 min unless confirmed`, and more.
fn entry(text: &str) -> Option<Entry> {
    let (process, rest) = text.split_once(' ')?;
    let (_, until) = rest.split_once("; ")?;
    let standing = match until {
        _ if until.starts_with("of an earlier boot") => return None,
        _ if until.starts_with("stays until") => Standing::Stays,
        _ if until.starts_with("goes back in") => Standing::Waits,
        _ => Standing::Leaves,
    };
    Some(Entry { process: process.to_string(), standing })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_stands_in_the_journal_until_it_is_restored() {
        for (printed, expected) in [
            ("weir has nothing in force, and keeps nothing for the next boot\n", &[][..]),
            ("at the next boot, by /etc/sysctl.d/x: vm.dirty_bytes=15MB\n", &[]),
            ("3 s ago, by process 42 (ended); of an earlier boot, and void\n", &[]),
            (
                "held by weir guard since 2026-11-25 12:00:00 (3 s), process 7 (running); until that ends\n  vm.dirty_bytes  30 MB → 15 MB\n",
                &[],
            ),
            (
                "3 s ago, by process 42 (ended); goes back in 4 min 57 s unless confirmed\n  vm.dirty_bytes  30 MB → 15 MB\n",
                &[("42", Standing::Waits)],
            ),
            (
                "999 h 59 min ago, by process 4194304 (running); stays until `weir knobs rollback` or the next\nboot\n  x  1 → 2\n3 s ago, by process 42 (ended); nobody answers for it any more: the next weir takes it back\n",
                &[("4194304", Standing::Stays), ("42", Standing::Leaves)],
            ),
            (
                "999 h 59 min ago, by process 4194304\n(running); goes back\nin 2 h unless confirmed\n",
                &[("4194304", Standing::Waits)],
            ),
        ] {
            let found = entries(printed);
            let found: Vec<(&str, Standing)> =
                found.iter().map(|entry| (entry.process.as_str(), entry.standing)).collect();
            assert_eq!(found, expected, "{printed}");
        }
    }
}
