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
    /// Modules and where they lie, when these were read.
    modules: String,
}

/// No function is so long: an address this far behind the last one known is in a module that came later.
const FUNCTION_BYTES_MAX: u64 = 1 << 20;

impl Symbols {
    /// Reads them all: some 10 MB of text, a quarter of it kept.
    ///
    /// # Errors
    /// What reading said; `PermissionDenied` where the kernel hides addresses (kernel.kptr_restrict, no CAP_SYSLOG).
    pub fn read() -> io::Result<Symbols> {
        // First: what comes in between is read again.
        let modules = modules();
        Ok(Symbols { modules, ..Symbols::parse(&fs::read_to_string("/proc/kallsyms")?)? })
    }

    /// Reads them again if modules have come or gone; where that fails, those known stay.
    pub fn renew(&mut self) {
        if modules() != self.modules
            && let Ok(fresh) = Symbols::read()
        {
            *self = fresh;
        }
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
            modules: String::new(),
        })
    }

    /// The function that holds an address, without what the compiler appended (`.isra.0`, `.cold`).
    pub fn name(&self, address: u64) -> &str {
        let after = self.addresses.partition_point(|start| *start <= address);
        let Some(i) = after.checked_sub(1) else { return "?" };
        if address - self.addresses[i] >= FUNCTION_BYTES_MAX {
            return "?";
        }
        let name = self.names[self.named_at[i] as usize..].split('\n').next().unwrap_or("?");
        plain(name)
    }
}

/// Names and addresses of modules; empty on a kernel without.
fn modules() -> String {
    modules_of(&weir_fs::read_lossily("/proc/modules").unwrap_or_default())
}

/// Of lines such as `xfs 2031616 1 - Live 0xffffffffc0a00000`, but for their uses, which change.
fn modules_of(text: &str) -> String {
    let each = text.lines().map(|line| {
        let mut words = line.split_ascii_whitespace();
        format!("{} {}\n", words.next().unwrap_or(""), words.nth(4).unwrap_or(""))
    });
    each.collect()
}

/// A function's name without what the compiler appended.
pub(super) fn plain(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_others_when_one_comes_or_moves_and_not_when_one_is_used() {
        let xfs = |uses, at| {
            format!("dm_mod 184320 {uses} dm_crypt, Live 0xc0100000\nxfs 2031616 {uses} - Live {at}\n")
        };
        let before = modules_of(&xfs(1, "0xc0a00000"));
        assert_eq!(before, modules_of(&xfs(7, "0xc0a00000")));
        assert_ne!(before, modules_of(&xfs(1, "0xc0b00000")));
        assert_ne!(before, modules_of("xfs 2031616 1 - Live 0xc0a00000\n"));
    }

    #[test]
    fn addresses_have_names() {
        let text =
            "0000000000001000 T first\n0000000000002000 t second.isra.0\t[xfs]\n0000000000001800 d data\n";
        let symbols = Symbols::parse(text).unwrap();
        for (address, name) in [(0xfff, "?"), (0x1000, "first"), (0x1fff, "first"), (0x2010, "second")] {
            assert_eq!(symbols.name(address), name, "{address:#x}");
        }
        assert_eq!(symbols.name(0x2000 + (1 << 20)), "?", "of something that came later");
        let hidden = Symbols::parse("0000000000000000 T first\n").err().map(|e| e.kind());
        assert_eq!(hidden, Some(io::ErrorKind::PermissionDenied));
    }
}
