//! Names of the kernel's functions, from /proc/kallsyms.

use std::fs;
use std::io;

/// The kernel's functions by address.
pub(super) struct Symbols {
    /// Where they begin, in order.
    addresses: Box<[u64]>,
    /// Where the name of each begins in `names`.
    named_at: Box<[u32]>,
    names: Box<str>,
}

impl Symbols {
    /// Reads them all: some 10 MB of text, a quarter of it kept.
    ///
    /// # Errors
    /// What reading said; `PermissionDenied` where the kernel hides addresses (kernel.kptr_restrict, no CAP_SYSLOG).
    pub fn read() -> io::Result<Symbols> {
        Symbols::parse(&fs::read_to_string("/proc/kallsyms")?)
    }

    fn parse(text: &str) -> io::Result<Symbols> {
        let (mut starts, mut names) = (Vec::new(), String::new());
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            let Ok(address) = u64::from_str_radix(address, 16) else { continue };
            if address == 0 || !matches!(kind, "t" | "T" | "w" | "W") {
                continue;
            }
            starts.push((address, names.len() as u32));
            names.push_str(name);
            names.push('\n');
        }
        if starts.is_empty() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        starts.sort_unstable();
        // Boxes have no room to spare; a recorder keeps them for months.
        Ok(Symbols {
            addresses: starts.iter().map(|(address, _)| *address).collect(),
            named_at: starts.iter().map(|(_, at)| *at).collect(),
            names: names.into_boxed_str(),
        })
    }

    /// The function that holds an address, without what the compiler appended (`.isra.0`, `.cold`).
    pub fn name(&self, address: u64) -> &str {
        let after = self.addresses.partition_point(|start| *start <= address);
        let Some(at) = after.checked_sub(1).and_then(|i| self.named_at.get(i)) else { return "?" };
        let name = self.names[*at as usize..].split('\n').next().unwrap_or("?");
        plain(name)
    }
}

/// A function's name without what the compiler appended.
pub(super) fn plain(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_names() {
        let text =
            "0000000000001000 T first\n0000000000002000 t second.isra.0\t[xfs]\n0000000000001800 d data\n";
        let symbols = Symbols::parse(text).unwrap();
        for (address, name) in [(0xfff, "?"), (0x1000, "first"), (0x1fff, "first"), (0x2010, "second")] {
            assert_eq!(symbols.name(address), name, "{address:#x}");
        }
        let hidden = Symbols::parse("0000000000000000 T first\n").err().map(|e| e.kind());
        assert_eq!(hidden, Some(io::ErrorKind::PermissionDenied));
    }
}
