//! The file of a page.

use std::path::Path;

use weir_cli::page::{self, Form};
use weir_report::html;

/// Permission bits of a page of figures, ...
pub const OF_FIGURES: u32 = 0o644;
/// ... and of one that names processes, units or files of all accounts, as recordings and the recorder's archive do.
pub const OF_PROCESSES: u32 = 0o600;

/// Writes a page with these permission bits beside its place and renames it there, so that nobody ever sees half a page. Replaces a page that
/// weir made before, and nothing else.
pub fn write(path: &Path, page: &str, mode: u32) -> anyhow::Result<()> {
    write_form(path, page, html::OPENING, mode)
}

/// The same of another form, whose files begin with `opening`.
pub fn write_form(path: &Path, page: &str, opening: &'static str, mode: u32) -> anyhow::Result<()> {
    page::write(path, page, form(opening), mode)
}

/// Refuses a path where `write` could not put a page: something else is there, or its folder is missing.
pub fn check(path: &Path) -> anyhow::Result<()> {
    check_form(path, html::OPENING)
}

/// The same of another form.
pub fn check_form(path: &Path, opening: &'static str) -> anyhow::Result<()> {
    page::check(path, form(opening))
}

fn form(opening: &'static str) -> Form {
    Form { name: if opening == html::OPENING { "page" } else { "file" }, opening }
}
