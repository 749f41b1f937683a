//! From measurements to verdicts: small pure rules, one file a topic, whose sentences name their evidence.

pub mod curve;
pub mod doctor;
pub mod measurement;
pub mod notes;

pub use doctor::DoctorReport;
pub use notes::DoctorNotes;
