//! A job in fio's own words: the `job options` that fio's JSON repeats, all of them as text.

use serde_json::{Map, Value};

use weir_core::units::Nanos;
use weir_core::workload::Job;
use weir_core::workload::spec::{Access, Arrival, BlockSize, Distribution, OpenSync, SyncMode, Target};

/// The options with which fio would do about the same.
pub fn of(job: &Job) -> Value {
    let mut options = Options(Map::new());
    options.set("name", &job.name);
    options.set("rw", direction(job));
    options.set("ioengine", job.engine.name());
    options.set("iodepth", job.depth);
    options.set("numjobs", job.threads);
    options.set("direct", u8::from(job.direct));
    options.set("randseed", job.seed);
    if job.reads() && job.writes() {
        options.set("rwmixread", job.read_percent);
    }
    block(&mut options, &job.block);
    target(&mut options, &job.target);
    distribution(&mut options, &job.access);
    durability(&mut options, job);
    limits(&mut options, job);
    options.0.into()
}

struct Options(Map<String, Value>);

impl Options {
    fn set(&mut self, key: &str, value: impl ToString) {
        self.0.insert(key.to_string(), value.to_string().into());
    }
}

fn direction(job: &Job) -> &'static str {
    let random = matches!(job.access, Access::Random(_));
    match (random, job.reads(), job.writes()) {
        (true, true, true) => "randrw",
        (true, true, false) => "randread",
        (true, false, _) => "randwrite",
        (false, true, true) => "rw",
        (false, true, false) => "read",
        (false, false, _) => "write",
    }
}

fn block(options: &mut Options, block: &BlockSize) {
    match block {
        BlockSize::Fixed(size) => options.set("bs", size.0),
        BlockSize::Split(sizes) => {
            let parts: Vec<String> =
                sizes.iter().map(|(size, weight)| format!("{}/{weight}", size.0)).collect();
            options.set("bssplit", parts.join(":"));
        }
    }
}

fn target(options: &mut Options, target: &Target) {
    match target {
        Target::Files { dir, count, size, .. } => {
            options.set("directory", dir.display());
            options.set("nrfiles", count);
            options.set("filesize", size.0);
        }
        Target::File { path, size } | Target::Device { path, size } => {
            options.set("filename", path.display());
            if size.0 > 0 {
                options.set("size", size.0);
            }
        }
        Target::Null { size } => options.set("size", size.0),
    }
}

fn distribution(options: &mut Options, access: &Access) {
    let text = match access {
        Access::Sequential | Access::Random(Distribution::Uniform) => return,
        Access::Random(Distribution::Zipf(theta)) => format!("zipf:{theta}"),
        Access::Random(Distribution::Pareto(h)) => format!("pareto:{h}"),
        // fio takes the deviation in percent.
        Access::Random(Distribution::Gaussian(deviation)) => format!("normal:{}", deviation * 100.0),
        Access::Random(Distribution::Hot { blocks, accesses }) => {
            let (a, b) = (accesses * 100.0, blocks * 100.0);
            format!("zoned:{a:.0}/{b:.0}:{:.0}/{:.0}", 100.0 - a, 100.0 - b)
        }
    };
    options.set("random_distribution", text);
}

fn durability(options: &mut Options, job: &Job) {
    if !job.writes() {
        return;
    }
    match job.open_sync {
        OpenSync::None => {}
        OpenSync::Sync => options.set("sync", "sync"),
        OpenSync::Dsync => options.set("sync", "dsync"),
    }
    match (job.sync.every, job.sync.mode) {
        (0, _) => {}
        (n, SyncMode::Fsync) => options.set("fsync", n),
        (n, SyncMode::Fdatasync) => options.set("fdatasync", n),
        (_, SyncMode::RwfDsync) => options.set("sync", "dsync"),
        (n, SyncMode::SyncFileRange) => {
            options.set("sync_file_range", format!("wait_before,write,wait_after:{n}"))
        }
    }
    if job.sync.at_end {
        options.set("end_fsync", 1);
    }
}

fn limits(options: &mut Options, job: &Job) {
    let seconds = |time: Nanos| time.as_secs_f64();
    if job.duration.0 > 0 {
        options.set("runtime", seconds(job.duration));
        options.set("time_based", 1);
    }
    if job.warmup.0 > 0 {
        options.set("ramp_time", seconds(job.warmup));
    }
    if job.operations > 0 {
        options.set("number_ios", job.operations);
    }
    if let Some(rate) = job.rate {
        options.set("rate_iops", rate.iops);
        options.set("rate_process", if rate.arrival == Arrival::Poisson { "poisson" } else { "linear" });
    }
}
