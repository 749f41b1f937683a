//! What the kernel lets this process do: `/proc/self/limits`, `/proc/self/status`, `kernel.io_uring_disabled`.

use weir_core::target::ProcessLimits;

use crate::error::BadLine;
use crate::tree::{Tree, noted};

pub(crate) fn read(tree: &Tree, notes: &mut Vec<String>) -> ProcessLimits {
    let limit = |name: &'static str| tree.parsed("/proc/self/limits", move |text| parse_limit(text, name));
    ProcessLimits {
        root: noted(tree.parsed("/proc/self/status", parse_effective_user), notes) == Some(0),
        io_uring_disabled: tree.optional("/proc/sys/kernel/io_uring_disabled", notes),
        memlock_bytes: noted(limit("Max locked memory"), notes).flatten(),
        open_files: noted(limit("Max open files"), notes).flatten(),
    }
}

/// The soft limit of that name; `None` is unlimited.
pub(crate) fn parse_limit(text: &str, name: &str) -> Result<Option<u64>, BadLine> {
    let found =
        text.lines().enumerate().find_map(|(index, line)| Some((index + 1, line.strip_prefix(name)?)));
    let (line, rest) = found.ok_or_else(|| BadLine::new(text.lines().count(), name, "end of file"))?;
    match rest.split_whitespace().next() {
        Some("unlimited") => Ok(None),
        Some(number) => {
            number.parse().map(Some).map_err(|_| BadLine::new(line, "a number or `unlimited`", number))
        }
        None => Err(BadLine::new(line, "a number or `unlimited`", "nothing")),
    }
}

/// The line `Uid:` holds four ids: real, effective, saved, file system.
fn parse_effective_user(text: &str) -> Result<u32, BadLine> {
    let found =
        text.lines().enumerate().find_map(|(index, line)| Some((index + 1, line.strip_prefix("Uid:")?)));
    let (line, ids) = found.ok_or_else(|| BadLine::new(text.lines().count(), "Uid:", "end of file"))?;
    let effective = ids.split_whitespace().nth(1).and_then(|id| id.parse().ok());
    effective.ok_or_else(|| BadLine::new(line, "four user ids", ids.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_parse() {
        let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
            Max open files            20000                30000                files     \n\
            Max locked memory         unlimited            unlimited            bytes     \n";
        assert_eq!(parse_limit(text, "Max open files"), Ok(Some(20000)));
        assert_eq!(parse_limit(text, "Max locked memory"), Ok(None));
        assert!(parse_limit(text, "Max stack size").is_err());
        assert_eq!(parse_limit("Max open files x y files", "Max open files").unwrap_err().line, 1);
        assert_eq!(parse_effective_user("Name:\tx\nUid:\t1000\t0\t1000\t1000\n"), Ok(0));
        assert_eq!(parse_effective_user("Name:\tx\nUid:\t1000\n").unwrap_err().line, 2);
    }
}
