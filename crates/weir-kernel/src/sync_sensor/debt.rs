//! Which process is a bulk writer.
//!
//! The rule: every sync pays for 4 MiB of what its process wrote. A process that owes more than 64 MiB is a bulk writer,
//! until the debt is below 32 MiB again. A copy that syncs once at its end owes nearly all it wrote, and the sync it ends with is
//! its own affair; a database that checkpoints at 200 MB/s owes nothing as long as it commits fifty times a second. A
//! debt grows to 1 GiB and no further, so that a process that loaded a dump is protected again after 248 syncs.
//!
//! A process that has written nothing at all and syncs (`sync FILE` after a copy) waits for what others wrote: that sync
//! does not count either. Reading dirties a page now and then, too (a file's time of last access on ext4 without a
//! journal), so a process that has passed nothing to `write` has written from 64 KiB on, or when it syncs memory (`msync`, io_uring). The programs in the kernel apply the same rule to a process that they meet for the first time.

/// Written bytes that a sync pays for.
const PAID_BY_A_SYNC: u64 = 4 << 20;
/// Who owes more is a bulk writer. The programs know it as `bulk_bytes`.
pub(super) const BULK_ABOVE: u64 = 64 << 20;
/// Who was one is none below this.
const BULK_UNTIL: u64 = 32 << 20;
/// No debt is higher.
const DEBT_MAX: u64 = 1 << 30;

/// What a process is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Class {
    /// Its syncs are protected.
    #[default]
    Protected,
    /// A bulk writer: its syncs are its own affair.
    Bulk,
}

/// What one process owes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Debt {
    debt_bytes: u64,
    class: Class,
}

impl Debt {
    /// After so many more bytes were written and syncs made; what the process is from now on.
    pub fn settle(&mut self, written_bytes: u64, syncs: u64) -> Class {
        let owed = self.debt_bytes.saturating_add(written_bytes).min(DEBT_MAX);
        self.debt_bytes = owed.saturating_sub(syncs.saturating_mul(PAID_BY_A_SYNC));
        self.class = match self.class {
            Class::Protected if self.debt_bytes > BULK_ABOVE => Class::Bulk,
            Class::Bulk if self.debt_bytes < BULK_UNTIL => Class::Protected,
            class => class,
        };
        self.class
    }

    /// What the process is.
    pub fn class(&self) -> Class {
        self.class
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;

    /// Looks, and bytes and syncs in each.
    type Phase = (u64, u64, u64);

    /// The class after each of `looks` looks, ten a second, with the same bytes and syncs in each.
    fn after(debt: &mut Debt, looks: u64, bytes: u64, syncs: u64) -> Class {
        (0..looks).for_each(|_| {
            debt.settle(bytes, syncs);
        });
        debt.class()
    }

    #[test]
    fn databases_are_protected_and_copies_are_not() {
        let cases: [(&str, &[Phase], Class); 8] = [
            ("commits of 16 KiB", &[(100, 150 * 16_384, 150)], Class::Protected),
            ("a checkpoint at 200 MB/s, 50 commits a second", &[(600, 20 * MB, 5)], Class::Protected),
            ("a backup", &[(20, 25 * MB, 0)], Class::Bulk),
            ("a backup that syncs at its end", &[(20, 25 * MB, 0), (1, 0, 1)], Class::Bulk),
            ("a copy of 300 files of 20 MB, each synced", &[(300, 20 * MB, 1)], Class::Bulk),
            ("a log file, never synced", &[(100, 4096, 0)], Class::Protected),
            ("a dump loaded, then commits", &[(600, 25 * MB, 0), (3, MB, 150)], Class::Protected),
            ("a database that stops to sync", &[(100, 2 * MB, 150), (100, 25 * MB, 0)], Class::Bulk),
        ];
        for (name, phases, expected) in cases {
            let mut debt = Debt::default();
            phases.iter().for_each(|&(looks, bytes, syncs)| {
                after(&mut debt, looks, bytes, syncs);
            });
            assert_eq!(debt.class(), expected, "{name}");
        }
    }

    #[test]
    fn the_class_does_not_flap_at_the_bound() {
        let mut debt = Debt::default();
        assert_eq!(debt.settle(BULK_ABOVE, 0), Class::Protected);
        assert_eq!(debt.settle(1, 0), Class::Bulk);
        assert_eq!(debt.settle(0, 8), Class::Bulk, "32 MiB and a byte");
        assert_eq!(debt.settle(0, 1), Class::Protected);
        assert_eq!(debt.settle(u64::MAX, 0), Class::Bulk);
        assert_eq!(debt.settle(0, DEBT_MAX / PAID_BY_A_SYNC), Class::Protected, "no debt is for ever");
    }
}
