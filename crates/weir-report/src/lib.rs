//! From records, results and verdicts to strings: terminal text, HTML, JSON, fio's JSON, CSV. Nothing here writes
//! anywhere, and what is not a string is decided in weir-core.
#![forbid(unsafe_code)]

#[cfg(test)]
mod contradictions;
pub mod csv;
pub mod db_doctor_text;
pub mod doctor_text;
pub mod experiment;
pub mod fio_json;
mod fio_options;
pub mod guard;
pub mod html;
pub mod json;
mod knobs;
pub mod plot;
pub mod text;
pub mod trace;

#[cfg(test)]
mod tests;
