//! Which machine this is, for those who compare many.

use crate::host::Host;
use crate::knob::fnv1a;

impl Host {
    /// The kernel's release.
    pub fn kernel(&self) -> Option<String> {
        self.tree.line("/proc/sys/kernel/osrelease")
    }

    /// A mark of the machine in 16 hex digits, the same after every boot; not its id itself, which machine-id(5) keeps
    /// from others: half of the id's bits are lost.
    pub fn machine_mark(&self) -> Option<String> {
        let id = self.tree.line("/etc/machine-id").filter(|id| id.len() >= 32)?;
        Some(format!("{:016x}", fnv1a(id.as_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_the_machines_and_not_its_id() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("etc")).unwrap();
        let marked = |id: &str| {
            std::fs::write(root.path().join("etc/machine-id"), id).unwrap();
            Host::at(root.path()).machine_mark()
        };
        let mark = marked("0123456789abcdef0123456789abcdef\n").unwrap();
        assert_eq!(mark, marked("0123456789abcdef0123456789abcdef").unwrap());
        assert!(mark.len() == 16 && !"0123456789abcdef0123456789abcdef".contains(&mark));
        assert_ne!(Some(mark), marked("0123456789abcdef0123456789abcdee"));
        assert_eq!(marked("uninitialized"), None);
        assert_eq!(Host::at(root.path()).kernel(), None);
    }
}
