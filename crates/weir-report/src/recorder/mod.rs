//! What the recorder's archive says of a stretch of time, as text, JSON and a page.

pub(crate) mod html;
pub(crate) mod json;
pub(crate) mod text;
