//! Jobs as a job file: what was asked for, with every default written out.

use std::fmt::Write;

use crate::units::Bytes;
use crate::workload::spec::{Access, Job, Target};
use crate::workload::text::{exact_bytes, exact_nanos};

/// A file that [`super::parse`] turns into the same jobs.
pub fn print(jobs: &[Job]) -> String {
    jobs.iter().map(one).collect::<Vec<String>>().join("\n")
}

fn one(job: &Job) -> String {
    let mut out = "[[job]]\n".to_string();
    let mut line = |key: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{key} = {value}");
    };
    line("name", quoted(&job.name));
    target(&job.target, &mut line);
    line("offset", quoted(&exact_bytes(job.offset)));
    match job.access {
        Access::Sequential => line("access", quoted("sequential")),
        Access::Random(distribution) => {
            line("access", quoted("random"));
            line("distribution", quoted(&distribution.to_string()));
        }
    }
    line("read-percent", job.read_percent.to_string());
    line("block", quoted(&job.block.to_string()));
    line("engine", quoted(&job.engine.to_string()));
    line("depth", job.depth.to_string());
    line("threads", job.threads.to_string());
    line("direct", job.direct.to_string());
    line("invalidate", job.invalidate.to_string());
    line("iopoll", job.iopoll.to_string());
    line("open-sync", quoted(&job.open_sync.to_string()));
    let sync = job.sync;
    line("sync", format!("{{ every = {}, mode = \"{}\", at-end = {} }}", sync.every, sync.mode, sync.at_end));
    if let Some(rate) = job.rate {
        line("rate", format!("{{ iops = {}, arrival = \"{}\" }}", rate.iops, rate.arrival));
    }
    line("late-after", quoted(&exact_nanos(job.late_after)));
    line("duration", quoted(&exact_nanos(job.duration)));
    line("operations", job.operations.to_string());
    line("warmup", quoted(&exact_nanos(job.warmup)));
    line("ramp", quoted(&exact_nanos(job.ramp)));
    line("seed", job.seed.to_string());
    line("data", quoted(&job.data.to_string()));
    line("verify", job.verify.to_string());
    line("after-previous", job.after_previous.to_string());
    out
}

fn target(target: &Target, line: &mut impl FnMut(&str, String)) {
    let mut existing = |key: &str, path: &std::path::Path, size: &Bytes| {
        line(key, quoted(&path.to_string_lossy()));
        line("size", quoted(&exact_bytes(*size)));
    };
    match target {
        Target::File { path, size } => existing("file", path, size),
        Target::Device { path, size } => existing("device", path, size),
        Target::Null { size } => line("size", quoted(&exact_bytes(*size))),
        Target::Files { dir, prefix, count, size, keep } => {
            line("dir", quoted(&dir.to_string_lossy()));
            line("prefix", quoted(prefix));
            line("files", count.to_string());
            line("size", quoted(&exact_bytes(*size)));
            line("keep", keep.to_string());
        }
    }
}

/// A TOML string.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_string()).to_string()
}
