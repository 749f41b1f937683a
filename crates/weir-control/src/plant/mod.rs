//! The plant: page cache, write-back, throttled writers, block queue and device, simulated event by event.
//!
//! It is what the law is developed and tested on, so it models what decides whether syncs keep their rate under a
//! flood, as the kernel does it and as devices were measured: writers that are free below a threshold, paced above it
//! and stopped at the limit for whole timer ticks; write-back in chunks that wait in one queue with everybody's syncs;
//! and a queue that gives out its budgets of bytes and requests slice by slice. Time and randomness are arguments: the
//! same specification, seed and calls give the same samples.

mod bulk;
mod cache;
mod device;
mod engine;
mod event;
mod history;
mod queue;
mod run;
pub mod scenario;
pub mod score;
mod spec;
mod syncs;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod validation;

pub use engine::{Plant, Totals};
pub use event::{Event, Script, Timed};
pub use history::{History, Move, Second};
pub use run::{Law, simulate};
pub use spec::{BulkSpec, CacheSpec, Credits, DeviceSpec, Drift, FloodKind, PlantSpec, SyncSpec};
