//! Rules for documents and for text that a user sees: links resolve, and phrases that STYLE.md retires do not occur.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};

type Files = BTreeMap<String, String>;

/// Phrases that stay where they are: part of a path, phrase (empty: every phrase), reason.
const EXCEPTIONS: [(&str, &str, &str); 3] = [
    ("STYLE.md", "", "names what it retires"),
    ("CHANGELOG.md", "", "tells what was said at the time"),
    ("crates/weir-control/", "", "its control law is about to be written anew"),
];

/// Links of documents whose file or heading does not exist.
pub fn broken_links(files: &Files) -> Vec<String> {
    let documents = files.iter().filter(|(path, _)| path.ends_with(".md"));
    documents
        .flat_map(|(document, text)| {
            links(text).into_iter().filter_map(move |link| {
                broken(files, document, &link).map(|why| format!("{document}: link to {link}: {why}"))
            })
        })
        .collect()
}

fn broken(files: &Files, document: &str, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() { document.to_string() } else { joined(document, path) };
    if document.starts_with("docs/") && !target.starts_with("docs/") {
        return Some("the book holds docs/ only".to_string());
    }
    let Some(text) = files.get(&target) else {
        let folder = files.keys().any(|file| file.starts_with(&format!("{}/", target.trim_end_matches('/'))));
        return (!folder).then(|| format!("no such file: {target}"));
    };
    let known = anchor.is_empty() || anchors(text).contains(anchor);
    (!known).then(|| format!("no such heading in {target}: {anchor}"))
}

/// `link` of `document`, both relative to the repository.
fn joined(document: &str, link: &str) -> String {
    let folder = Path::new(document).parent().unwrap_or(Path::new(""));
    let mut parts = Vec::new();
    for part in folder.join(link).components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
            _ => {}
        }
    }
    parts.join("/")
}

/// Targets of `[…](…)` outside code.
fn links(text: &str) -> Vec<String> {
    let mut links = Vec::new();
    for line in prose(text) {
        let outside: String = line.split('`').step_by(2).collect::<Vec<_>>().join("``");
        for rest in outside.split("](").skip(1) {
            links.extend(rest.split_once(')').map(|(target, _)| target.to_string()));
        }
    }
    links
}

/// Lines outside fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// Names that mdBook and GitHub give to headings.
fn anchors(text: &str) -> BTreeSet<String> {
    prose(text)
        .filter(|line| line.starts_with('#'))
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            title
                .chars()
                .filter(|c| c.is_alphanumeric() || "-_ ".contains(*c))
                .map(|c| if c == ' ' { '-' } else { c })
                .collect()
        })
        .collect()
}

/// Documents of the book that its table of contents lacks.
pub fn outside_the_book(files: &Files) -> Vec<String> {
    let listed: BTreeSet<String> =
        links(&files["docs/SUMMARY.md"]).iter().map(|link| joined("docs/SUMMARY.md", link)).collect();
    let pages = files.keys().filter(|path| path.starts_with("docs/") && path.ends_with(".md"));
    pages
        .filter(|path| *path != "docs/SUMMARY.md" && !listed.contains(*path))
        .map(|path| format!("{path}: docs/SUMMARY.md does not list it"))
        .collect()
}

/// Retired phrases in text that a user sees.
pub fn retired_words(files: &Files) -> Vec<String> {
    let retired = retired(&files["STYLE.md"]);
    let mut complaints = Vec::new();
    for (path, text) in files {
        for (line, visible) in visible(path, text) {
            for phrase in retired.iter().filter(|phrase| has(&visible, phrase) && !excepted(path, phrase)) {
                complaints
                    .push(format!("{path}:{line}: STYLE.md retires {phrase:?}: {:.90}", visible.trim()));
            }
            if visible.contains("` is no ") && !excepted(path, "is no") {
                complaints.push(format!("{path}:{line}: say what was expected: {:.90}", visible.trim()));
            }
        }
    }
    complaints
}

fn excepted(path: &str, phrase: &str) -> bool {
    EXCEPTIONS.iter().any(|(part, word, _)| path.contains(part) && (word.is_empty() || *word == phrase))
}

/// The phrases in backquotes in the last column of the glossary.
fn retired(style: &str) -> Vec<String> {
    let rows = style.lines().skip_while(|line| !line.starts_with("| write |")).skip(2);
    let cells = rows.take_while(|line| line.starts_with('|')).filter_map(|line| line.rsplit('|').nth(1));
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_string)).collect()
}

/// Whether `text` has the words of `phrase` as whole words, in any case.
fn has(text: &str, phrase: &str) -> bool {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    words.match_indices(phrase).any(|(at, _)| {
        let inside = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        !inside(words[..at].chars().next_back()) && !inside(words[at + phrase.len()..].chars().next())
    })
}

/// What a user sees of a file, with line numbers: a document's paragraphs without names in backquotes, string literals of code, help of arguments.
fn visible(path: &str, text: &str) -> Vec<(usize, String)> {
    if path.ends_with(".md") && (path.starts_with("docs/") || !path.contains('/')) {
        let named = |line: &str| line.split('`').step_by(2).collect::<Vec<_>>().join("``");
        return paragraphs(text).into_iter().map(|(nth, line)| (nth, named(&line))).collect();
    }
    let tested = path.ends_with("tests.rs") || path.contains("/tests/") || path.contains("/examples/");
    if !path.ends_with(".rs") || !path.contains("/src/") || tested {
        return Vec::new();
    }
    let help = if path.contains("/src/cli/") { doc_comments(text) } else { Vec::new() };
    help.into_iter().chain(literals(text)).collect()
}

fn paragraphs(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    for (nth, line) in text.lines().enumerate() {
        match found.last_mut() {
            Some((_, paragraph)) if open && !line.trim().is_empty() => *paragraph += &format!(" {line}"),
            _ if !line.trim().is_empty() => found.push((nth + 1, line.to_string())),
            _ => {}
        }
        open = !line.trim().is_empty() && !line.starts_with('|');
    }
    found
}

fn doc_comments(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    for (nth, line) in text.lines().enumerate() {
        let Some(comment) = line.trim_start().strip_prefix("///") else { continue };
        match found.last_mut() {
            Some((first, whole)) if *first + whole.matches('\n').count() == nth => {
                *whole += &format!("\n{comment}")
            }
            _ => found.push((nth + 1, comment.to_string())),
        }
    }
    found
}

/// String literals outside comments and `#[cfg(test)] mod`, with the line they begin at.
fn literals(text: &str) -> Vec<(usize, String)> {
    let code = text
        .split_once("#[cfg(test)]\nmod ")
        .filter(|(_, rest)| rest.lines().next().is_some_and(|l| l.ends_with('{')));
    let code: Vec<char> = code.map_or(text, |(before, _)| before).chars().collect();
    let (mut found, mut at, mut line) = (Vec::new(), 0, 1);
    while at < code.len() {
        let start = (at, line);
        let next = |by: usize| code.get(at + by).copied();
        match code[at] {
            '/' if next(1) == Some('/') => at += code[at..].iter().take_while(|c| **c != '\n').count(),
            '\'' if next(1) == Some('\\') => at += 4,
            '\'' if next(2) == Some('\'') => at += 3,
            'r' if next(1) == Some('"') || (next(1) == Some('#') && next(2) == Some('"')) => {
                let hash = next(1) == Some('#');
                at += if hash { 3 } else { 2 };
                let end = |at: usize| code[at] == '"' && (!hash || code.get(at + 1) == Some(&'#'));
                while at < code.len() && !end(at) {
                    at += 1;
                }
                found.push((start.1, code[start.0..at.min(code.len())].iter().collect()));
                at += if hash { 2 } else { 1 };
            }
            '"' => {
                at += 1;
                while at < code.len() && code[at] != '"' {
                    at += if code[at] == '\\' { 2 } else { 1 };
                }
                found.push((start.1, unescaped(&code[start.0 + 1..at.min(code.len())])));
                at += 1;
            }
            _ => at += 1,
        }
        line += code[start.0..at.min(code.len())].iter().filter(|c| **c == '\n').count();
    }
    found
}

/// A literal's text as it is printed, as far as words go: breaks of lines are spaces.
fn unescaped(literal: &[char]) -> String {
    literal.iter().collect::<String>().replace("\\\n", "").replace("\\n", "\n").replace("\\\"", "\"")
}

#[test]
fn links_and_words_are_complained_about() {
    let style = "| write | for | instead of |\n|---|---|---|\n| a | b | `led back`, look, `mood` |\n";
    let page = "# A b\n[x](#a-b) [y](b.md) [z](#c) `[n](o)`\nIt was led\nback.\n";
    let code = "//! Led back.\nfn f() { g(\"he led \\\n    back\", '\"', \"a `{x}` is no y\", \"moody\") }\n";
    let files: Files = [
        ("STYLE.md", style),
        ("docs/SUMMARY.md", "[p](README.md)"),
        ("docs/a.md", page),
        ("docs/README.md", ""),
        ("crates/a/src/b.rs", code),
    ]
    .map(|(path, text)| (path.to_string(), text.to_string()))
    .into();
    assert_eq!(
        broken_links(&files),
        [
            "docs/a.md: link to b.md: no such file: docs/b.md",
            "docs/a.md: link to #c: no such heading in docs/a.md: c"
        ]
    );
    assert_eq!(outside_the_book(&files), ["docs/a.md: docs/SUMMARY.md does not list it"]);
    assert_eq!(
        retired_words(&files),
        [
            "crates/a/src/b.rs:2: STYLE.md retires \"led back\": he led     back",
            "crates/a/src/b.rs:3: say what was expected: a `{x}` is no y",
            "docs/a.md:1: STYLE.md retires \"led back\": # A b [x](#a-b) [y](b.md) [z](#c) `` It was led back.",
        ]
    );
}
