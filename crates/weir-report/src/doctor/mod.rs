//! The doctors' verdicts: of a device as text and page, of a database server as text.

pub mod database;
pub mod html;
pub mod junit;
mod map;
pub mod text;
