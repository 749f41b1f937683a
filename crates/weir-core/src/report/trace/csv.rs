//! The stage table in long form: one line per device, class, size and stage.

use crate::trace::Analysis;

/// The first line.
const HEADER: &str =
    "device,class,size_bytes_max,stage,count,min_ns,mean_ns,p50_ns,p90_ns,p99_ns,p99_9_ns,max_ns,share";

/// All stages.
pub fn stages(_analysis: &Analysis) -> String {
    format!("{HEADER}\n")
}
