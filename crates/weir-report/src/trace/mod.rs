//! Recordings of the block layer, analysed, as text, JSON, CSV, btt's sections, and one row per I/O.

mod btt;
mod csv;
mod diff;
mod figures;
mod folded;
pub(crate) mod fsync;
pub(crate) mod html;
mod json;
mod json_time;
pub(crate) mod live;
pub mod perfetto;
pub(crate) mod phrases;
mod rows;
mod text;
pub(crate) mod utilization;

pub use btt::report as btt;
pub use csv::stages as csv;
pub use diff::{json as diff_json, text as diff};
pub use folded::folded;
pub use json::{analysis as json, read as read_json};
pub use rows::{RowFormat, RowUnit, Rows};
pub use text::report as text;
