//! What the recorder's archive says of a stretch of time, as text and JSON.

pub(crate) mod json;
pub(crate) mod text;
