//! What happened in the block layer, and how long each part of it took.
//!
//! Bytes of a recording become [`Event`]s, events become lives of I/Os ([`Piece`], [`Request`], [`Bio`]), and lives
//! become a [`StageTable`]. Live sources (weir-trace) fill the same table, so that one set of reports and one
//! comparison serves recordings and running machines.

mod class;
pub mod decode;
mod event;
mod life;
mod matcher;
pub mod merge;
mod stage;
mod table;

pub use class::{Class, ClassSet};
pub use event::{Act, Event, Flags, Item};
pub use life::{Bio, Kind, Piece, Request, Sink, Times};
pub use matcher::{Account, Limits, Matcher, Reason, Unmatched};
pub use stage::{Moment, Stage};
pub use table::{Cell, Key, SizeClass, StageTable};
