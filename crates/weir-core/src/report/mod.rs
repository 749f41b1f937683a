//! From records and verdicts to strings: terminal text, HTML, JSON, CSV. Nothing here writes anywhere.

pub mod html;
pub mod plot;
