//! The doctors' verdicts: of a device as text and page, of a database server as text.

pub mod database;
pub mod html;
pub mod junit;
pub mod text;
