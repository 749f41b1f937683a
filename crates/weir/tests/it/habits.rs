//! The page that leads from other tools to weir: each of its command lines is one that weir takes.

use std::fs;
use std::path::Path;

use crate::weir::Weir;

/// The command lines of the second column.
fn command_lines() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/how-to/from-other-tools.md");
    let text = fs::read_to_string(page).unwrap();
    let rows = text.lines().filter(|line| line.starts_with('|')).skip(2);
    // A bar within a command is written `\|`.
    let cells = rows.map(|row| row.replace("\\|", "").split('|').nth(2).unwrap().trim().to_string());
    cells.map(|cell| cell.trim_matches('`').to_string()).collect()
}

/// `--help` behind all options: the parser has taken what stands before it, or complains about that first.
#[test]
fn each_command_line_of_the_page_is_taken() {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    let lines = command_lines();
    assert!(lines.len() > 25, "{} command lines only", lines.len());
    for line in lines {
        let typed = line.strip_prefix("weir ").unwrap_or_else(|| panic!("not of weir: {line}"));
        let words: Vec<&str> = typed.split(" -- ").next().unwrap().split_whitespace().collect();
        let asked = if ["fileio", "sysbench"].contains(&words[0]) {
            // sysbench's own parser knows no such order: `run` names the command, `help` prints the script's options.
            let without = words.iter().filter(|word| **word != "run").copied().collect::<Vec<_>>();
            [&without[..], &["help"]].concat()
        } else {
            [&words[..], &["--help"]].concat()
        };
        let ended = weir.run(folder.path(), &asked);
        assert_eq!(ended.code, 0, "{line}: {ended:?}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{line} left something");
    }
}
