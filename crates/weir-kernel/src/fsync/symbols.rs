//! Names of the kernel's functions, from /proc/kallsyms.

use std::fs;
use std::io;

/// The kernel's functions by address.
pub(super) struct Symbols {
    /// Address, and where the name begins in `names`.
    starts: Vec<(u64, u32)>,
    names: String,
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
        let mut symbols = Symbols { starts: Vec::new(), names: String::new() };
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            let Ok(address) = u64::from_str_radix(address, 16) else { continue };
            if address == 0 || !matches!(kind, "t" | "T" | "w" | "W") {
                continue;
            }
            symbols.starts.push((address, symbols.names.len() as u32));
            symbols.names.push_str(name);
            symbols.names.push('\n');
        }
        if symbols.starts.is_empty() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        symbols.starts.sort_unstable();
        Ok(symbols)
    }

    /// The function that holds an address, without what the compiler appended (`.isra.0`, `.cold`).
    pub fn name(&self, address: u64) -> &str {
        let after = self.starts.partition_point(|(start, _)| *start <= address);
        let Some((_, at)) = after.checked_sub(1).and_then(|i| self.starts.get(i)) else { return "?" };
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
