//! An experiment: text, page and JSON, and the words that they share.

pub mod html;
pub mod json;
pub mod race;
pub mod stages;
#[cfg(test)]
pub mod synthetic;
pub mod text;
pub mod words;
