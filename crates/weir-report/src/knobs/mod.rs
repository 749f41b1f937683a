//! Knobs, transactions of them, and what is kept for the next boot.

pub mod json;
pub mod text;
