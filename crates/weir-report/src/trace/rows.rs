//! One row per I/O, written as they end.
//!
//! Times are nanoseconds of the recording's clock, stages nanoseconds, sectors 512 bytes; `kind` is blktrace's RWBS.
//! CSV leaves a field empty where there is none, JSON Lines leaves it out.

use std::collections::HashMap;
use std::fmt::{self, Write};
use std::ops::ControlFlow;

use crate::layout::csv_field;
use weir_blocktrace::{Bio, Event, Flags, Item, Kind, Moment, Piece, Request, Sink, Stage, Times};
use weir_core::target::DeviceNumber;

/// How rows look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowFormat {
    /// A header, then comma-separated values.
    Csv,
    /// One JSON object a line.
    JsonLines,
}

/// What a row stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowUnit {
    /// Requests as the driver saw them; Q, G, I are the first piece's.
    Request,
    /// I/Os, the unit of stage statistics: `pieces` in JSON.
    Io,
    /// Top-level bios as their senders know them: Q and C only.
    Bio,
}

/// Writes rows; a [`Sink`] beside or instead of the collector (see [`weir_blocktrace::Both`]).
#[derive(Debug)]
pub struct Rows<W> {
    out: W,
    format: RowFormat,
    unit: RowUnit,
    names: HashMap<u32, String>,
    line: String,
    first: bool,
    failed: fmt::Result,
}

/// Thread names remembered.
const NAMES_MAX: usize = 1 << 16;

const MOMENTS: [(Moment, &str); 6] = [
    (Moment::Queue, "q_ns"),
    (Moment::GetRequest, "g_ns"),
    (Moment::Insert, "i_ns"),
    (Moment::Merge, "m_ns"),
    (Moment::Issue, "d_ns"),
    (Moment::Complete, "c_ns"),
];

const FIXED: [&str; 13] = [
    "device",
    "sector",
    "bytes",
    "kind",
    "pid",
    "process",
    "cgroup",
    "origin",
    "pieces",
    "remaps",
    "requeues",
    "completions",
    "error",
];

/// What pieces, requests and bios have in common, and what only some have.
struct Row {
    device: DeviceNumber,
    sector: u64,
    bytes: u32,
    flags: Flags,
    pid: u32,
    cgroup: u64,
    origin: Option<&'static str>,
    pieces: Option<u32>,
    remaps: Option<u32>,
    requeues: Option<u16>,
    completions: Option<u16>,
    error: i32,
    times: Times,
}

impl<W: Write> Rows<W> {
    /// Writes to `out`, the header first where there is one.
    pub fn new(out: W, format: RowFormat, unit: RowUnit) -> Rows<W> {
        let (names, line) = (HashMap::new(), String::new());
        let mut rows = Rows { out, format, unit, names, line, first: true, failed: Ok(()) };
        if format == RowFormat::Csv {
            let moments = MOMENTS.iter().map(|(_, name)| *name);
            let columns: Vec<&str> = FIXED.into_iter().chain(moments).chain(STAGE_COLUMNS).collect();
            rows.failed = writeln!(rows.out, "{}", columns.join(","));
        }
        rows
    }

    /// The writer, to be emptied between rows.
    pub fn writer(&mut self) -> &mut W {
        &mut self.out
    }

    /// The writer. After it failed, nothing was written to it.
    pub fn finish(self) -> W {
        self.out
    }

    fn row(&mut self, row: &Row) {
        self.line.clear();
        self.first = true;
        let name = self.names.get(&row.pid).cloned();
        let name = name.as_deref();
        if self.format == RowFormat::JsonLines {
            self.line.push('{');
        }
        self.text("device", Some(&row.device.to_string()));
        self.number("sector", Some(row.sector));
        self.number("bytes", Some(row.bytes));
        self.text("kind", Some(&rwbs(row.flags, row.bytes)));
        self.number("pid", Some(row.pid));
        self.text("process", name);
        self.number("cgroup", (row.cgroup != 0).then_some(row.cgroup));
        self.text("origin", row.origin);
        self.number("pieces", row.pieces);
        self.number("remaps", row.remaps);
        self.number("requeues", row.requeues);
        self.number("completions", row.completions);
        self.number("error", Some(row.error));
        for (moment, name) in MOMENTS {
            self.number(name, row.times.get(moment));
        }
        for (stage, name) in Stage::ALL.into_iter().zip(STAGE_COLUMNS) {
            self.number(name, row.times.stage(stage));
        }
        self.line.push_str(if self.format == RowFormat::JsonLines { "}\n" } else { "\n" });
        if self.failed.is_ok() {
            self.failed = self.out.write_str(&self.line);
        }
    }

    fn number(&mut self, name: &str, value: Option<impl fmt::Display>) {
        self.value(name, value.is_some());
        if let Some(value) = value {
            // Writing to a String cannot fail.
            let _ = write!(self.line, "{value}");
        }
    }

    fn text(&mut self, name: &str, value: Option<&str>) {
        self.value(name, value.is_some());
        match (value, self.format) {
            (Some(value), RowFormat::Csv) => self.line.push_str(&csv_field(value)),
            (Some(value), RowFormat::JsonLines) => {
                self.line.push_str(&serde_json::Value::from(value).to_string());
            }
            (None, _) => {}
        }
    }

    /// What stands before a value.
    fn value(&mut self, name: &str, present: bool) {
        match self.format {
            RowFormat::Csv if !self.first => self.line.push(','),
            RowFormat::Csv => {}
            RowFormat::JsonLines if present => {
                let comma = if self.first { "" } else { "," };
                let _ = write!(self.line, "{comma}\"{name}\":");
            }
            RowFormat::JsonLines => return,
        }
        self.first = false;
    }
}

const STAGE_COLUMNS: [&str; Stage::COUNT] = [
    "q2g_ns",
    "g2i_ns",
    "g2d_ns",
    "i2d_ns",
    "q2m_ns",
    "m2d_ns",
    "d2c_ns",
    "q2c_ns",
    "q2d_ns",
    "g2d_all_ns",
    "g2c_ns",
];

/// blkparse's letters: what is done, then how.
fn rwbs(flags: Flags, bytes: u32) -> String {
    let mut letters = String::new();
    if flags.has(Flags::FLUSH) {
        letters.push('F');
    }
    letters.push(match () {
        () if flags.has(Flags::DISCARD) => 'D',
        () if flags.has(Flags::WRITE) => 'W',
        () if bytes > 0 => 'R',
        () => 'N',
    });
    let how = [(Flags::FUA, 'F'), (Flags::AHEAD, 'A'), (Flags::SYNC, 'S'), (Flags::METADATA, 'M')];
    letters.extend(how.iter().filter(|(flag, _)| flags.has(*flag)).map(|(_, letter)| letter));
    letters
}

impl<W: Write> Sink for Rows<W> {
    fn piece(&mut self, piece: &Piece) {
        if self.unit != RowUnit::Io {
            return;
        }
        let origin = match piece.kind {
            Kind::Whole => "whole",
            Kind::Split => "split",
            Kind::Merged => "merged",
        };
        self.row(&Row {
            device: piece.device,
            sector: piece.sector,
            bytes: piece.bytes,
            flags: piece.flags,
            pid: piece.pid,
            cgroup: piece.cgroup,
            origin: Some(origin),
            pieces: None,
            remaps: None,
            requeues: Some(piece.requeues),
            completions: None,
            error: piece.error,
            times: piece.times,
        });
    }

    fn request(&mut self, request: &Request) {
        if self.unit != RowUnit::Request {
            return;
        }
        self.row(&Row {
            device: request.device,
            sector: request.sector,
            bytes: request.bytes,
            flags: request.flags,
            pid: request.pid,
            cgroup: request.cgroup,
            origin: None,
            pieces: Some(request.pieces),
            remaps: None,
            requeues: Some(request.requeues),
            completions: Some(request.completions),
            error: request.error,
            times: request.times,
        });
    }

    fn bio(&mut self, bio: &Bio) {
        if self.unit != RowUnit::Bio {
            return;
        }
        self.row(&Row {
            device: bio.device,
            sector: bio.sector,
            bytes: bio.bytes,
            flags: bio.flags,
            pid: bio.pid,
            cgroup: bio.cgroup,
            origin: None,
            pieces: Some(bio.pieces),
            remaps: Some(bio.remaps),
            requeues: None,
            completions: None,
            error: bio.error,
            times: bio.times,
        });
    }

    fn event(&mut self, _event: &Event) {}

    /// Takes the names of threads.
    fn item(&mut self, item: &Item) {
        if let Item::Process { pid, name, .. } = item
            && (self.names.len() < NAMES_MAX || self.names.contains_key(pid))
        {
            self.names.insert(*pid, name.clone());
        }
    }

    fn goes_on(&self) -> ControlFlow<()> {
        if self.failed.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
