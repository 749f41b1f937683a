//! The guard as a process: what it looks with, what it turns, what it says about itself.

pub mod socket;
