//! `weir report`: a stored run as one HTML page.

use std::path::{Path, PathBuf};

use weir_core::result;
use weir_report::record::report;

use crate::cli::report::Args;
use crate::failure::Outcome;
use crate::output::print_exact;
use crate::page;
use crate::store::Store;

/// Runs the command.
pub fn run(args: Args, _command: &[String]) -> anyhow::Result<Outcome> {
    let store = Store::open()?;
    let record = store.load(&store.resolve(&args.run)?)?;
    let page = report(&record, None)?.html();
    match args.output {
        Some(path) if path.as_os_str() == "-" => print_exact(&page)?,
        Some(path) => save(&path, &page)?,
        None => save(&default_path(&record.head), &page)?,
    }
    Ok(Outcome::Done)
}

fn default_path(record: &result::Record) -> PathBuf {
    // A record can come from anywhere: its names must not lead out of the current folder.
    let plain = |text: &str| text.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "_");
    PathBuf::from(format!("weir-{}-{}.html", plain(&record.kind), plain(&record.id)))
}

fn save(path: &Path, text: &str) -> anyhow::Result<()> {
    page::write(path, text, page::OF_FIGURES)?;
    say!("wrote {}", path.display());
    Ok(())
}
