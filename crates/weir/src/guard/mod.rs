//! The guard as a process: its sensors, its actuators, what it says about itself.

mod acting;
mod block_device;
mod control_loop;
mod cost;
mod device;
pub mod exec;
mod exempt;
mod governing;
mod group;
mod history;
pub mod install;
mod listen;
mod log;
mod metrics;
mod private;
mod recorder;
mod reporter;
mod sampler;
mod second;
mod sensor;
pub mod settings;
pub mod socket;
mod start;
#[cfg(test)]
pub mod testing;
mod throttle;
mod writers;

pub use acting::acting;
pub use log::sentence;
pub use start::begin;
