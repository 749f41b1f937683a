//! Looks through a script's text for names of sysbench's that weir does not have, before anything is run.

/// What stands under `sysbench`; a `*` stands for anything, for one more level at the most.
const KNOWN: [(&str, &[&str]); 14] = [
    ("tid", &[]),
    ("opt", &["*"]),
    ("version", &[]),
    ("version_string", &[]),
    ("hooks", &["*"]),
    ("report_csv", &[]),
    ("report_json", &[]),
    ("report_default", &[]),
    ("error", &["NONE", "RESTART_EVENT"]),
    ("histogram", &["new"]),
    (
        "rand",
        &[
            "default",
            "uniform",
            "gaussian",
            "special",
            "pareto",
            "unique",
            "string",
            "uniform_double",
            "uniform_uint64",
        ],
    ),
    ("sql", &["driver", "type", "error"]),
    (
        "db",
        &[
            "connect",
            "disconnect",
            "query",
            "bulk_insert_init",
            "bulk_insert_next",
            "bulk_insert_done",
            "prepare",
            "bind_param",
            "execute",
            "close",
            "store_results",
            "free_results",
            "DB_ERROR_NONE",
            "DB_ERROR_RESTART_TRANSACTION",
            "DB_ERROR_FAILED",
        ],
    ),
    (
        "cmdline",
        &[
            "argv",
            "command",
            "script_path",
            "options",
            "commands",
            "command_defined",
            "command_parallel",
            "call_command",
            "print_test_options",
            "PARALLEL_COMMAND",
            "ARG_NULL",
            "ARG_BOOL",
            "ARG_INT",
            "ARG_SIZE",
            "ARG_DOUBLE",
            "ARG_STRING",
            "ARG_LIST",
            "ARG_FILE",
            "ARG_MAX",
        ],
    ),
];

/// sysbench's C functions that `ffi.C` offers.
const SYMBOLS: [&str; 11] = [
    "sb_more_events",
    "sb_event_start",
    "sb_event_stop",
    "sb_rand_default",
    "sb_rand_uniform",
    "sb_rand_gaussian",
    "sb_rand_special",
    "sb_rand_pareto",
    "sb_rand_unique",
    "sb_rand_uniform_double",
    "sb_rand_uniform_uint64",
];

/// The names that a script uses and nobody offers, each with its line: `(7, "sysbench.foo")`. What the script itself
/// sets is its own.
pub fn unknown_names(text: &str) -> Vec<(usize, String)> {
    let code = blank_out(text);
    let mut unknown: Vec<(usize, String)> = Vec::new();
    let mut own: Vec<String> = Vec::new();
    for (at, path, sets) in paths(&code) {
        let name = path.join(".");
        if sets {
            own.push(name);
        } else if !is_known(&path) {
            unknown.push((code[..at].matches('\n').count() + 1, name));
        }
    }
    let is_own = |name: &str| own.iter().any(|set| name == set || name.starts_with(&format!("{set}.")));
    unknown.retain(|(_, name)| !is_own(name));
    let mut seen: Vec<String> = Vec::new();
    unknown.retain(|(_, name)| {
        let first = !seen.contains(name);
        seen.push(name.clone());
        first
    });
    unknown
}

fn is_known(path: &[&str]) -> bool {
    if let ["ffi", "C", symbol, ..] = path {
        let of_sysbench = symbol.starts_with("sb_") || symbol.starts_with("db_");
        return !of_sysbench || SYMBOLS.contains(symbol);
    }
    let ["sysbench", first, rest @ ..] = path else { return true };
    let Some((_, second)) = KNOWN.iter().find(|(name, _)| name == first) else { return false };
    match rest.first() {
        None => true,
        Some(_) if second.is_empty() => true,
        Some(name) => second.contains(&"*") || second.contains(name),
    }
}

/// Every path that begins with `sysbench` or `ffi.C`: where it stands, its parts, and whether it is set there.
fn paths(code: &str) -> Vec<(usize, Vec<&str>, bool)> {
    let mut found = Vec::new();
    for root in ["sysbench", "ffi"] {
        for (at, _) in code.match_indices(root) {
            let before = code[..at].chars().next_back();
            let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '.' || c == ':';
            if before.is_some_and(is_part) {
                continue;
            }
            let (path, rest) = path_from(&code[at..]);
            if path.len() < 2 || path[0] != root || (root == "ffi" && path[1] != "C") {
                continue;
            }
            let rest = rest.trim_start();
            let assigned = rest.starts_with('=') && !rest.starts_with("==");
            let defined = code[..at].trim_end().ends_with("function");
            found.push((at, path, assigned || defined));
        }
    }
    found.sort_by_key(|(at, ..)| *at);
    found
}

/// The parts of a dotted path, and what follows it.
fn path_from(code: &str) -> (Vec<&str>, &str) {
    let (mut path, mut rest) = (Vec::new(), code);
    loop {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        if end == 0 {
            return (path, rest);
        }
        path.push(&rest[..end]);
        rest = &rest[end..];
        let after = rest.trim_start();
        let concatenates = after.starts_with("..");
        match after.strip_prefix('.').filter(|_| !concatenates) {
            Some(next) => rest = next.trim_start(),
            None => return (path, rest),
        }
    }
}

/// The text with comments and strings turned to blanks; lines stay where they are.
fn blank_out(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let comment = bytes[at..].starts_with(b"--");
        let content = if comment { at + 2 } else { at };
        let end = match long_bracket(&text[content..]) {
            Some(length) => content + length,
            None if comment => at + text[at..].find('\n').unwrap_or(text.len() - at),
            None if bytes[at] == b'"' || bytes[at] == b'\'' => short_string(bytes, at),
            None => {
                at += 1;
                while !text.is_char_boundary(at) {
                    at += 1;
                }
                continue;
            }
        };
        for byte in &mut code[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
    String::from_utf8_lossy(&code).into_owned()
}

/// Length of `[[…]]` or `[=[…]=]` at the start of a text.
fn long_bracket(text: &str) -> Option<usize> {
    let rest = text.strip_prefix('[')?;
    let level = rest.bytes().take_while(|b| *b == b'=').count();
    rest[level..].strip_prefix('[')?;
    let close = format!("]{}]", "=".repeat(level));
    Some(text.find(&close).map_or(text.len(), |end| end + close.len()))
}

/// Where the string that starts here ends.
fn short_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != bytes[start] && bytes[at] != b'\n' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_are_found_with_their_lines() {
        let cases: [(&str, &[(usize, &str)]); 10] = [
            ("sysbench.rand.uniform(1, 2)\n", &[]),
            ("a()\nsysbench.rand.zipfian(1, 2)\n", &[(2, "sysbench.rand.zipfian")]),
            ("x = sysbench . foo ()\n", &[(1, "sysbench.foo")]),
            ("sysbench.my = 1\nprint(sysbench.my, sysbench.my.deep)\n", &[]),
            (
                "function sysbench.hooks.report_intermediate(s) end\nfunction sysbench.x(s) end sysbench.x()\n",
                &[],
            ),
            (
                "-- sysbench.foo\n--[[ sysbench.bar\n]] s = 'sysbench.baz' .. \"sysbench.q\\\"\" .. [[sysbench.r]]\n",
                &[],
            ),
            ("mysysbench.foo()\nt.sysbench.foo()\n", &[]),
            ("ffi.C.sb_more_events(1)\nffi.C.printf('x')\nffi.C.db_query(1)\n", &[(3, "ffi.C.db_query")]),
            (
                "if sysbench.opt.anything == 1 then end sysbench.tid == 2 sysbench.nope == 3",
                &[(1, "sysbench.nope")],
            ),
            ("print('é' .. sysbench.oops .. sysbench.tid..sysbench.opt.a)", &[(1, "sysbench.oops")]),
        ];
        for (text, expected) in cases {
            let expected: Vec<(usize, String)> =
                expected.iter().map(|(line, name)| (*line, name.to_string())).collect();
            assert_eq!(unknown_names(text), expected, "{text}");
        }
    }

    #[test]
    fn odd_texts_do_not_upset_it() {
        for text in ["", "'", "\"\\", "--[==[", "[[", "sysbench", "sysbench.", "ffi.C", "é--é"] {
            assert_eq!(unknown_names(text), [], "{text}");
        }
    }
}
