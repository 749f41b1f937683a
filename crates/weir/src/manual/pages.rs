//! weir's manual pages: one a command, and weir(7), out of the topics.

use std::io;

use clap::Command;
use weir_cli::manual::{Page, built, commands, roff, title};

use super::{TOPICS, Topic};

/// The page of this command comes with the program that it starts.
const OF_ANOTHER: &str = "weir-fleet.1";

/// What weir(7) begins with.
const OVERVIEW: &str = "\
weir measures storage the way a database uses it, explains where the time of its commits goes, finds settings by experiment, \
and guards the latency of syncs while something else floods the device.";

/// Every page, from all that can be typed.
///
/// # Errors
/// None in practice: they are written into memory.
pub fn pages(root: Command) -> io::Result<Vec<Page>> {
    let mut pages = vec![overview(&built(root.clone()))];
    pages.extend(weir_cli::manual::pages(root)?);
    pages.retain(|page| page.name != OF_ANOTHER);
    Ok(pages)
}

/// weir(7): what weir is, its commands, and every topic.
fn overview(root: &Command) -> Page {
    let mut text = format!(
        "{}.SH NAME\nweir \\- measures, explains, tunes and guards the storage of a database \
         server\n.SH DESCRIPTION\n{OVERVIEW}\n.PP\n\\fBweir help\\fR \\fITOPIC\\fR prints single parts of this page.\n",
        title("weir", 7)
    );
    text.push_str(&commands(root));
    for topic in &TOPICS {
        text.push_str(&format!(".SH {}\n{}", heading(topic), roff::body(&topic.body())));
    }
    text.push_str(".SH SEE ALSO\n\\fBweir\\fR(1)\n");
    Page { name: "weir.7".into(), text }
}

/// By the names that man-pages(7) gives.
fn heading(topic: &Topic) -> String {
    match topic.name {
        "exit-codes" => "EXIT STATUS".to_string(),
        name => name.to_uppercase(),
    }
}
