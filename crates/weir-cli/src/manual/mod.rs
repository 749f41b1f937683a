//! Manual pages of commands, out of what clap parses by, and the parts of Markdown and man(7) that pages are made of.

pub mod markdown;
pub mod roff;

use std::io;

use clap::Command;
use clap_mangen::Man;

use self::markdown::Block;

/// A page, and the file it is in: `weir-db-run.1`.
#[derive(Debug, Clone)]
pub struct Page {
    /// The file's name.
    pub name: String,
    /// All of it.
    pub text: String,
}

/// What stands at the foot of each page.
const SOURCE: &str = concat!("weir ", env!("CARGO_PKG_VERSION"));
const MANUAL: &str = "weir's manual";

/// A page for each command of a program, from all that can be typed.
///
/// # Errors
/// None in practice: clap_mangen writes into memory.
pub fn pages(root: Command) -> io::Result<Vec<Page>> {
    let mut pages = Vec::new();
    add(&built(root), None, &mut pages)?;
    Ok(pages)
}

/// A program's commands with their names, as the pages need them.
pub fn built(root: Command) -> Command {
    let mut root = root.disable_help_subcommand(true).after_help(None::<&str>);
    root.build();
    root
}

fn add(command: &Command, above: Option<&str>, pages: &mut Vec<Page>) -> io::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_string();
    pages.push(Page { name: format!("{name}.1"), text: page(command, &name, above)? });
    below(command).try_for_each(|inner| add(inner, Some(&name), pages))
}

fn below(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help")
}

/// What a page begins with. It has no date: the version says how old it is.
pub fn title(name: &str, section: u8) -> String {
    format!(".TH \"{}\" {section} \"\" \"{SOURCE}\" \"{MANUAL}\"\n", name.replace('-', "\\-"))
}

fn page(command: &Command, name: &str, above: Option<&str>) -> io::Result<String> {
    let man = Man::new(command.clone());
    let mut out = Vec::new();
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(&mut out)?;
    }
    let mut text = title(name, 1) + &String::from_utf8_lossy(&out);
    if below(command).next().is_some() {
        text.push_str(&commands(command));
    }
    let after = command.get_after_long_help().or(command.get_after_help());
    text.push_str(&after.map_or(String::new(), |after| notes(&after.to_string())));
    text.push_str(&see_also(above, command));
    Ok(text)
}

/// The commands below one, with the names of their pages.
pub fn commands(command: &Command) -> String {
    let entry = |inner: &Command| {
        let name = inner.get_display_name().unwrap_or_else(|| inner.get_name());
        let about = inner.get_about().map(ToString::to_string).unwrap_or_default();
        format!(".TP\n\\fB{}\\fR(1)\n{}\n", name.replace('-', "\\-"), roff::words(&about))
    };
    format!(".SH COMMANDS\n{}", below(command).map(entry).collect::<String>())
}

/// What clap prints behind the options: sentences, then examples, line by line.
fn notes(after: &str) -> String {
    let (notes, examples) = match after.split_once("Examples:\n") {
        Some((notes, examples)) => (notes, Some(examples)),
        None => (after, None),
    };
    let mut out = String::new();
    if !notes.trim().is_empty() {
        out.push_str(&format!(".SH NOTES\n{}", roff::body(&note_blocks(notes.trim()))));
    }
    if let Some(examples) = examples {
        let lines: Vec<&str> =
            examples.trim_end().lines().map(|line| line.strip_prefix("  ").unwrap_or(line)).collect();
        out.push_str(&format!(".SH EXAMPLES\n{}", roff::code(&lines)));
    }
    out
}

/// Paragraphs; one with an indented line is a table that was laid by hand.
fn note_blocks(notes: &str) -> Vec<Block> {
    let block = |paragraph: &str| {
        if paragraph.lines().any(|line| line.starts_with(' ')) {
            Block::Code(paragraph.lines().map(String::from).collect())
        } else {
            Block::Paragraph(paragraph.lines().collect::<Vec<_>>().join(" "))
        }
    };
    notes.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()).map(block).collect()
}

fn see_also(above: Option<&str>, command: &Command) -> String {
    let name = |inner: &Command| inner.get_display_name().map(String::from);
    let mut others: Vec<String> =
        above.map(String::from).into_iter().chain(below(command).filter_map(name)).collect();
    others.sort();
    let page = |name: &String| format!("\\fB{}\\fR(1),\n", name.replace('-', "\\-"));
    format!(".SH SEE ALSO\n{}\\fBweir\\fR(7)\n", others.iter().map(page).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_stay_lines() {
        let text = notes("One.\nTwo.\n\n  a  1\n  b  2\n\nExamples:\n  weir -x\n  .y\n");
        let expected =
            ".SH NOTES\nOne. Two.\n.PP\n.nf\n  a  1\n  b  2\n.fi\n.SH EXAMPLES\n.nf\nweir \\-x\n\\&.y\n.fi\n";
        assert_eq!(text, expected);
    }
}
