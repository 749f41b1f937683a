//! What the options of `weir db` mean.

pub mod connect;
pub mod workload;

pub use connect::typed;
