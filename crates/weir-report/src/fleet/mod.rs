//! What the tables of a fleet answer, as pages.

pub mod html;
