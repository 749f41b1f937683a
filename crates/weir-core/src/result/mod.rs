//! What a run leaves behind: the raw **record**, and the **result** derived from it, again and again if need be.

pub mod record;

pub use record::Record;
