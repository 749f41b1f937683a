//! From measurements to verdicts: small pure rules, one file a topic, whose sentences name their evidence.

pub mod doctor;

pub use doctor::DoctorReport;
