//! The stage table in long form: one line per device, class, size and stage.

use std::fmt::Write as _;

use super::figures::{Kind, classes, sizes, stage_key};
use weir_blocktrace::Analysis;

/// The first line; `size_bytes_max` is `all`, or the largest length of the size class.
pub const HEADER: &str =
    "device,class,size_bytes_max,stage,count,min_ns,mean_ns,p50_ns,p90_ns,p99_ns,p99_9_ns,max_ns,share";

/// All stages of pieces.
pub fn stages(analysis: &Analysis) -> String {
    let mut out = format!("{HEADER}\n");
    for device in &analysis.devices {
        let number = device.device.to_string();
        for class in classes(analysis, device.device) {
            lines(&mut out, &number, class.name(), "all", &Kind::class(analysis, device, class));
            for size in sizes(analysis, device.device, class) {
                let kind = Kind::sized(analysis, device, class, size);
                lines(&mut out, &number, class.name(), &size.bytes_max().to_string(), &kind);
            }
        }
    }
    out
}

fn lines(out: &mut String, device: &str, class: &str, size: &str, kind: &Kind) {
    for (stage, f) in kind.stages() {
        let share = f.share.map_or(String::new(), |share| format!("{share:.6}"));
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "{device},{class},{size},{},{},{},{:.1},{},{},{},{},{},{share}",
            stage_key(stage),
            f.count,
            f.min_ns,
            f.mean_ns,
            f.p50_ns,
            f.p90_ns,
            f.p99_ns,
            f.p99_9_ns,
            f.max_ns,
        );
    }
}
