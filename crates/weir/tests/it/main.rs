//! What a user does, and what goes wrong, against the built binary.

mod lab;
mod results;
mod sysbench;
mod weir;
