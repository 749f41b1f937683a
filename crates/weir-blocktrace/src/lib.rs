//! What happened in the block layer, and how long each part of it took.
//!
//! Bytes of a recording become [`Event`]s, events become lives of I/Os ([`Piece`], [`Request`], [`Bio`]), and lives
//! become a [`StageTable`]. Live sources (weir-kernel) fill the same table, so that one set of reports and one
//! comparison serves recordings and running machines.
#![forbid(unsafe_code)]

pub mod analysis;
mod class;
mod collect;
pub mod decode;
pub mod diff;
mod event;
mod extent;
pub mod fsync;
mod grid;
mod intervals;
mod life;
mod matcher;
pub mod merge;
pub mod read;
pub mod recording;
pub mod replay;
mod sketch;
mod stage;
mod table;
mod view;

pub use analysis::Analysis;
pub use class::{Class, ClassSet};
pub use collect::{Both, Collector};
pub use event::{Act, Event, Flags, Item};
pub use extent::Extent;
pub use grid::{Fold, Grid};
pub use intervals::Intervals;
pub use life::{Bio, Kind, Piece, Request, Sink, Times};
pub use matcher::{Account, Limits, Matcher, Reason, Unmatched};
pub use sketch::Sketch;
pub use stage::{Moment, Stage};
pub use table::{Cell, Key, SizeClass, StageTable};
pub use view::{Cost, DeviceFrame, Frame, History, LimitUse, Point, Row, SlowIo, Source, Spread};
