//! What weir's daemons, guard and recorder, have in common: sockets, metrics, words to the service manager, and files that an
//! install writes.

mod board;
pub mod install;
pub mod manifest;
mod metrics_at;
pub mod notify;
pub mod openmetrics;
pub mod scrape;
pub mod socket;

pub use board::Board;
pub use metrics_at::MetricsAt;
