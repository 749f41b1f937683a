//! What `weir help TOPIC` prints and the manual pages hold: parts of the documents, and what clap knows of each command.

pub mod pages;
mod text;

use weir_cli::manual::markdown::{self, Block};

/// A part of the documents that can be read without them.
#[derive(Debug, Clone, Copy)]
pub struct Topic {
    /// What is typed after `weir help`.
    pub name: &'static str,
    /// What it is about, for the list of topics.
    pub about: &'static str,
    document: &'static str,
    /// The heading of the part; `None`: all of the document.
    part: Option<&'static str>,
}

const ARCHITECTURE: &str = include_str!("../../../../ARCHITECTURE.md");
const CLI: &str = include_str!("../../../../docs/reference/cli.md");
const PRIVILEGES: &str = include_str!("../../../../docs/how-to/without-root.md");
const SAFETY: &str = include_str!("../../../../docs/explanation/safety.md");
const VERDICTS: &str = include_str!("../../../../docs/reference/verdicts.md");

/// All topics, as they are listed.
pub const TOPICS: [Topic; 9] = [
    part("words", "what weir's terms mean", ARCHITECTURE, "Words"),
    Topic { name: "verdicts", about: "good, fair, poor: by which figures", document: VERDICTS, part: None },
    part("units", "sizes, times, and how runs are named", CLI, "Units and names"),
    part("output", "text, JSON, CSV", CLI, "Forms of output"),
    part("exit-codes", "what a script learns from the exit code", CLI, "Exit codes"),
    part("environment", "variables that weir reads", CLI, "Environment"),
    part("files", "where weir reads and keeps files", CLI, "Files"),
    Topic { name: "safety", about: "what weir writes, and never does", document: SAFETY, part: None },
    Topic { name: "privileges", about: "root, capabilities, containers", document: PRIVILEGES, part: None },
];

const fn part(name: &'static str, about: &'static str, document: &'static str, part: &'static str) -> Topic {
    Topic { name, about, document, part: Some(part) }
}

impl Topic {
    /// The topic of this name.
    pub fn named(name: &str) -> Option<&'static Topic> {
        TOPICS.iter().find(|topic| topic.name == name)
    }

    /// Its text for a terminal of so many columns.
    pub fn text(&self, columns: usize) -> String {
        text::text(&self.blocks(), columns)
    }

    /// Its own blocks, without the heading that names it.
    fn body(&self) -> Vec<Block> {
        let mut blocks = self.blocks();
        if matches!(blocks.first(), Some(Block::Heading { .. })) {
            blocks.remove(0);
        }
        blocks
    }

    fn blocks(&self) -> Vec<Block> {
        let all = markdown::blocks(self.document);
        let Some(part) = self.part else { return all };
        let mut level_of_part = 0;
        let mut blocks = Vec::new();
        for block in all {
            if let Block::Heading { level, text } = &block {
                if level_of_part == 0 && text == part {
                    level_of_part = *level;
                } else if level_of_part != 0 && *level <= level_of_part {
                    break;
                }
            }
            if level_of_part != 0 {
                blocks.push(block);
            }
        }
        blocks
    }
}

/// The topics, for the end of `weir --help`.
pub fn list() -> String {
    let line = |topic: &Topic| format!("  {:<11}  {}\n", topic.name, topic.about);
    format!("Topics, by `weir help TOPIC`:\n{}", TOPICS.iter().map(line).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_topic_has_a_text_that_fits_and_no_marks_of_markdown() {
        for topic in TOPICS {
            let text = topic.text(80);
            assert!(text.lines().count() > 3, "{}: {text}", topic.name);
            for mark in ["](", "**", "<!--", "```", "|--"] {
                assert!(!text.contains(mark), "{}: {mark} in\n{text}", topic.name);
            }
            let wide = text.lines().find(|line| line.chars().count() > 80 && line.contains("  "));
            assert_eq!(wide, None, "{}", topic.name);
        }
    }

    #[test]
    fn a_part_ends_where_the_next_begins() {
        let text = Topic::named("exit-codes").unwrap().text(80);
        assert!(text.starts_with("Exit codes\n"), "{text}");
        assert!(text.contains("128 + n") && !text.contains("WEIR_STORE"), "{text}");
        assert!(list().contains("\n  exit-codes   what a script"), "{}", list());
        assert!(Topic::named("doctor").is_none(), "commands have help of their own");
    }
}
