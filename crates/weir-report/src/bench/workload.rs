//! A job in one line of words.

use weir_core::units::{Bytes, Nanos, per_second};
use weir_core::workload::Job;
use weir_core::workload::spec::{
    Access, Arrival, BlockSize, Data, Distribution, OpenSync, Replay, SyncMode, Target,
};

/// What a job does, as a phrase: `random reads of 4 KiB, io_uring at depth 32, 1 thread, O_DIRECT, …`.
pub fn describe(job: &Job) -> String {
    if let Some(replay) = &job.replay {
        return describe_replay(job, replay);
    }
    let mut parts =
        vec![format!("{} {} of {}", access(&job.access), mix(job), block(&job.block)), engine(job)];
    parts.push(format!("{} thread{}", job.threads, if job.threads == 1 { "" } else { "s" }));
    parts.push(if job.direct { "O_DIRECT" } else { "buffered" }.to_string());
    parts.extend(durability(job));
    if let Some(rate) = job.rate {
        let arrival = match rate.arrival {
            Arrival::Constant => "constant",
            Arrival::Poisson => "Poisson",
        };
        parts.push(format!("open loop at {}/s ({arrival})", per_second(rate.iops)));
    }
    parts.extend(data(job));
    if job.verify {
        parts.push("verified".to_string());
    }
    if job.warmup.0 > 0 {
        parts.push(format!("after {} of warm-up", job.warmup));
    }
    parts.push(target(&job.target));
    parts.join(", ")
}

/// A recording that is played: what of it is in the report of the replay.
fn describe_replay(job: &Job, replay: &Replay) -> String {
    let speed = if replay.speed == 1.0 { String::new() } else { format!(" at {} x its speed", replay.speed) };
    let sizes = match (job.block.smallest(), job.block.largest()) {
        (a, b) if a == b => Bytes(a).to_string(),
        (a, b) => format!("{} to {}", Bytes(a), Bytes(b)),
    };
    let mut parts = vec![
        format!("{} of {}{speed}, {} of {sizes}", replay.device, replay.recording, mix_rounded(job)),
        engine(job),
        if job.direct { "O_DIRECT" } else { "buffered" }.to_string(),
    ];
    parts.extend(data(job));
    parts.push(target(&job.target));
    parts.join(", ")
}

fn mix_rounded(job: &Job) -> String {
    match (job.reads(), job.writes()) {
        (true, true) => format!("{:.0} % reads, {:.0} % writes", job.read_percent, 100.0 - job.read_percent),
        _ => mix(job),
    }
}

fn access(access: &Access) -> String {
    match access {
        Access::Sequential => "sequential".to_string(),
        Access::Random(Distribution::Uniform) => "random".to_string(),
        Access::Random(Distribution::Zipf(theta)) => format!("random (zipf {theta})"),
        Access::Random(Distribution::Pareto(h)) => format!("random (pareto {h})"),
        Access::Random(Distribution::Gaussian(deviation)) => format!("random (gaussian {deviation})"),
        Access::Random(Distribution::Hot { blocks, accesses }) => {
            format!("random ({:.0} % of accesses to {:.0} % of blocks)", accesses * 100.0, blocks * 100.0)
        }
    }
}

fn mix(job: &Job) -> String {
    match (job.reads(), job.writes()) {
        (true, true) => format!("{} % reads, {} % writes", job.read_percent, 100.0 - job.read_percent),
        (true, false) => "reads".to_string(),
        (false, _) => "writes".to_string(),
    }
}

fn block(block: &BlockSize) -> String {
    match block {
        BlockSize::Fixed(size) => size.to_string(),
        BlockSize::Split(sizes) => {
            let parts: Vec<String> =
                sizes.iter().map(|(size, weight)| format!("{size} x {weight}")).collect();
            parts.join(" / ")
        }
    }
}

fn engine(job: &Job) -> String {
    let polled = if job.iopoll { " with IOPOLL" } else { "" };
    if job.engine.is_async() || job.depth > 1 {
        format!("{} at depth {}{polled}", job.engine.name(), job.depth)
    } else {
        format!("{}{polled}", job.engine.name())
    }
}

fn durability(job: &Job) -> Vec<String> {
    if !job.writes() {
        return Vec::new();
    }
    let mut parts = Vec::new();
    match job.open_sync {
        OpenSync::None => {}
        OpenSync::Sync => parts.push("O_SYNC".to_string()),
        OpenSync::Dsync => parts.push("O_DSYNC".to_string()),
    }
    let mode = match job.sync.mode {
        SyncMode::Fsync => "fsync",
        SyncMode::Fdatasync => "fdatasync",
        SyncMode::RwfDsync => "RWF_DSYNC",
        SyncMode::SyncFileRange => "sync_file_range",
    };
    match job.sync.every {
        0 if parts.is_empty() && !job.sync.at_end => parts.push("never synced".to_string()),
        0 => {}
        1 => parts.push(format!("{mode} after every write")),
        n => parts.push(format!("{mode} after every {n} writes")),
    }
    parts
}

fn data(job: &Job) -> Option<String> {
    match job.data {
        _ if !job.writes() => None,
        Data::Random => None,
        Data::Zero => Some("zeros".to_string()),
        Data::Compressible(percent) => Some(format!("{percent} % compressible")),
    }
}

fn target(target: &Target) -> String {
    let of = |size: &Bytes| if size.0 == 0 { String::new() } else { format!("{size} of ") };
    match target {
        Target::Files { dir, count: 1, size, .. } => format!("1 file of {size} in {}", dir.display()),
        Target::Files { dir, count, size, .. } => format!("{count} files of {size} in {}", dir.display()),
        Target::File { path, size } | Target::Device { path, size } => {
            format!("{}{}", of(size), path.display())
        }
        Target::Null { size } => format!("no target, {size} pretended"),
    }
}

/// How long a job ran, against what was asked for.
pub fn length(job: &Job, elapsed_ns: u64) -> String {
    let asked = match (job.duration.0, job.operations) {
        (0, 0) => String::new(),
        (0, operations) => format!(" ({} operations asked for)", weir_core::units::grouped(operations)),
        (duration, _) if elapsed_ns + duration / 20 < duration => format!(" of {}", Nanos(duration)),
        _ => String::new(),
    };
    format!("{}{asked}", Nanos(elapsed_ns))
}
