//! Everything under /sys, /proc and cgroups, read under a root path; knobs and their journal.
//!
//! [`Host::live`] reads this machine, [`Host::at`] a captured tree of another one. Parsers are pure functions
//! from text; readers name the path, line and item of what they could not read.

mod bdi;
mod block;
mod cgroup;
mod conditions;
mod counts;
mod cpu;
mod databases;
mod devices;
mod diskstats;
pub mod error;
mod flow;
mod host;
mod housed;
mod identity;
mod io_cgroup;
pub mod knob;
mod limits;
mod mounts;
mod nvme;
mod own;
mod pinned;
mod private_cgroup;
mod processes;
mod psi;
mod sample;
mod servers;
pub mod signature;
mod space;
mod stack;
mod target;
mod tasks;
mod ticks;
mod tree;
mod view;
mod vm;
mod work;
mod write_back;

#[cfg(test)]
mod robustness;

pub use counts::{Counted, Counts};
pub use error::HostError;
pub use flow::{Flow, Seen};
pub use host::Host;
pub use housed::Numbers;
pub use io_cgroup::IoCgroup;
pub use own::{
    give_memory_back, keep_little_memory, own_cpu_ns, own_memory_bytes, own_processors, process_cpu_ns,
    thread_cpu_ns,
};
pub use pinned::Pinned;
pub use private_cgroup::{CgroupSight, CgroupWrites};
pub use processes::{Moved, ProcessSample};
pub use sample::Sample;
pub use space::{DirectAlignment, Space};
pub use tasks::TaskClock;
pub use ticks::Ticks;
pub use work::Spent;
pub use write_back::{OwnBdi, WriteBack};
