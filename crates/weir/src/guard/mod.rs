//! The guard as a process: what it looks with, what it turns, what it says about itself.

mod cost;
mod course;
pub mod exec;
mod eyes;
mod group;
mod hand;
mod history;
pub mod install;
mod listen;
mod log;
mod metrics;
mod notify;
mod post;
mod private;
mod scrape;
mod scribe;
mod second;
mod sensor;
pub mod settings;
pub mod socket;
mod start;
mod subject;
mod tell;
#[cfg(test)]
mod testing;
mod throttle;
mod writers;

pub use log::sentence;
pub use start::begin;
