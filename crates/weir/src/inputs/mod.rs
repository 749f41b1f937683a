//! The files, variables and paths that settings are made of: read here, and merged with what was typed by
//! [`crate::settings`], which reads nothing.

pub mod bench;
pub mod db;
pub mod guard;
pub mod recorder;
pub mod tune;
