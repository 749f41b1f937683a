//! One row per I/O, written as they end.

use std::fmt::{self, Write};

use crate::trace::{Bio, Event, Piece, Request, Sink};

/// How rows look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowFormat {
    /// A header, then comma-separated values; empty where there is none.
    Csv,
    /// One JSON object a line; what is absent is left out.
    JsonLines,
}

/// What a row stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowUnit {
    /// Requests as the driver saw them.
    Request,
    /// Pieces, the unit of stage statistics.
    Piece,
    /// Top-level bios as their senders know them.
    Bio,
}

/// Writes rows; a [`Sink`] beside or instead of the collector (see [`crate::trace::Both`]).
#[derive(Debug)]
pub struct Rows<W> {
    out: W,
    format: RowFormat,
    unit: RowUnit,
    failed: fmt::Result,
}

impl<W: Write> Rows<W> {
    /// Writes to `out`, the header first where there is one.
    pub fn new(out: W, format: RowFormat, unit: RowUnit) -> Rows<W> {
        Rows { out, format, unit, failed: Ok(()) }
    }

    /// The writer, or that it failed.
    pub fn finish(self) -> Result<W, fmt::Error> {
        self.failed.map(|()| self.out)
    }
}

impl<W: Write> Sink for Rows<W> {
    fn piece(&mut self, _piece: &Piece) {}
    fn request(&mut self, _request: &Request) {}
    fn bio(&mut self, _bio: &Bio) {}
    fn event(&mut self, _event: &Event) {}
}
