//! From the settings of one section to a job.

use std::path::PathBuf;

use crate::units::{Bytes, Nanos};
use crate::workload::draft::{Draft, Place};
use crate::workload::fio::values::{self, flag, same_for_both, whole};
use crate::workload::fio::{Imported, Section};
use crate::workload::spec::{Access, Arrival, BlockSize, Data, EngineKind, Job, OpenSync, SyncMode};
use crate::workload::text::Direction;

/// Keys that are taken; their values may still not be.
const TAKEN: &[&str] = &[
    "name",
    "description",
    "filename",
    "directory",
    "rw",
    "readwrite",
    "rwmixread",
    "rwmixwrite",
    "bs",
    "blocksize",
    "bssplit",
    "size",
    "io_size",
    "offset",
    "nrfiles",
    "filesize",
    "ioengine",
    "iodepth",
    "numjobs",
    "direct",
    "buffered",
    "invalidate",
    "fsync",
    "fdatasync",
    "sync",
    "end_fsync",
    "fsync_on_close",
    "runtime",
    "timeout",
    "time_based",
    "ramp_time",
    "loops",
    "number_ios",
    "rate_iops",
    "rate_process",
    "random_distribution",
    "stonewall",
    "wait_for_previous",
    "buffer_compress_percentage",
    "zero_buffers",
    "randseed",
    "hipri",
];
/// Keys that weir needs no word for: it always does so, or they change nothing here.
const WITHOUT_EFFECT: &[&str] = &[
    "thread",
    "group_reporting",
    "randrepeat",
    "allrandrepeat",
    "norandommap",
    "softrandommap",
    "random_generator",
    "iodepth_batch",
    "iodepth_batch_submit",
    "iodepth_batch_complete",
    "iodepth_batch_complete_min",
    "iodepth_batch_complete_max",
    "iodepth_low",
    "registerfiles",
    "fixedbufs",
    "refill_buffers",
    "scramble_buffers",
    "gtod_reduce",
    "clocksource",
    "disable_lat",
    "disable_clat",
    "disable_slat",
    "lat_percentiles",
    "clat_percentiles",
    "percentile_list",
    "fallocate",
    "unlink",
    "create_on_open",
    "new_group",
];
/// Engines of fio that are a read or write call per operation.
const SYNC_ENGINES: &[&str] = &["sync", "psync", "vsync", "pvsync", "pvsync2"];

/// Takes what can be taken of one section.
struct Reader<'a> {
    section: &'a Section,
    imported: &'a mut Imported,
}

/// Adds the job of a section to the import, or says why there is none.
pub fn job(section: &Section, imported: &mut Imported) {
    let mut reader = Reader { section, imported };
    reader.name_unknown_keys();
    let built = reader.draft().and_then(|draft| {
        let name = draft.name.clone().unwrap_or_default();
        draft.finish().map_err(|error| format!("[{name}]: the job is left out: {error}"))
    });
    match built {
        Ok(mut job) => {
            reader.set_limits(&mut job);
            reader.note_differences(&job);
            imported.jobs.push(job);
        }
        Err(why) => imported.unsupported.push(why),
    }
}

impl Reader<'_> {
    fn name_unknown_keys(&mut self) {
        for (key, value) in &self.section.settings {
            let known = TAKEN.contains(&key.as_str()) || WITHOUT_EFFECT.contains(&key.as_str());
            if !known {
                self.refuse(format!("[{}] {key}={value}", self.section.name));
            }
        }
    }

    /// The value of a key as `parse` reads it; a value that it does not is named.
    fn value<T>(&mut self, keys: &[&str], parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let (key, text) = self.section.last(keys)?;
        let parsed = parse(text);
        if parsed.is_none() {
            self.refuse(format!("[{}] {key}={text}", self.section.name));
        }
        parsed
    }

    /// Whether the last of several keys is this one.
    fn is_last(&self, key: &str, keys: &[&str]) -> bool {
        self.section.last(keys).is_some_and(|(last, _)| last == key)
    }

    /// One switch in fio, with two names.
    fn direct(&mut self) -> bool {
        let names = ["direct", "buffered"];
        let is_buffered = self.is_last("buffered", &names);
        self.value(&names, flag).is_some_and(|on| on != is_buffered)
    }

    /// One percentage in fio, with two names.
    fn read_percent(&mut self) -> Option<f64> {
        let names = ["rwmixread", "rwmixwrite"];
        let of_writes = self.is_last("rwmixwrite", &names);
        let percent = self.value(&names, |text| text.parse::<f64>().ok())?;
        Some(if of_writes { 100.0 - percent } else { percent })
    }

    /// Names something once, however often it is looked at.
    fn refuse(&mut self, what: String) {
        if !self.imported.unsupported.contains(&what) {
            self.imported.unsupported.push(what);
        }
    }

    fn note(&mut self, what: &str) {
        self.imported.notes.push(format!("[{}] {what}", self.section.name));
    }

    fn flag(&mut self, keys: &[&str]) -> bool {
        self.value(keys, flag).unwrap_or(false)
    }

    fn threads(&mut self) -> u32 {
        self.value(&["numjobs"], |text| whole(text).and_then(|n| u32::try_from(n).ok())).unwrap_or(1)
    }

    fn draft(&mut self) -> Result<Draft, String> {
        let direction = self.direction()?;
        let both = direction.read_percent > 0.0 && direction.read_percent < 100.0;
        let read_percent = self.read_percent().filter(|_| both).unwrap_or(direction.read_percent);
        let (engine, depth) = self.engine();
        let block = self.block();
        let mut draft = Draft {
            name: Some(self.section.get(&["name"]).unwrap_or(&self.section.name).to_string()),
            access: Some(direction.access),
            read_percent: Some(read_percent),
            engine: Some(engine),
            depth: Some(depth),
            threads: Some(self.threads()),
            direct: Some(self.direct()),
            invalidate: self.value(&["invalidate"], flag),
            iopoll: Some(self.flag(&["hipri"])),
            warmup: self.value(&["ramp_time"], values::time),
            seed: self.value(&["randseed"], whole),
            data: Some(self.data()),
            after_previous: Some(self.flag(&["stonewall", "wait_for_previous"])),
            ..Draft::default()
        };
        if matches!(direction.access, Access::Random(_)) {
            draft.distribution = self.value(&["random_distribution"], values::distribution);
        }
        self.set_place(&mut draft, engine);
        self.set_offset(&mut draft, &block);
        draft.block = Some(block);
        self.set_sync(&mut draft);
        self.set_rate(&mut draft, read_percent);
        Ok(draft)
    }

    fn direction(&mut self) -> Result<Direction, String> {
        let text = self.section.get(&["rw", "readwrite"]).unwrap_or("read");
        let (word, modifier) = text.split_once(':').unwrap_or((text, ""));
        if !modifier.is_empty() {
            self.refuse(format!("[{}] rw={text}: without the part after the colon", self.section.name));
        }
        word.parse().map_err(|_| format!("[{}] rw={text}: the job is left out", self.section.name))
    }

    fn engine(&mut self) -> (EngineKind, u32) {
        let engine = self.value(&["ioengine"], |text| match text {
            text if SYNC_ENGINES.contains(&text) => Some(EngineKind::Psync),
            "libaio" => Some(EngineKind::Libaio),
            "io_uring" => Some(EngineKind::IoUring),
            "mmap" => Some(EngineKind::Mmap),
            "null" => Some(EngineKind::Null),
            _ => None,
        });
        let depth =
            self.value(&["iodepth"], |text| whole(text).and_then(|n| u32::try_from(n).ok())).unwrap_or(1);
        let engine = engine.unwrap_or_else(|| {
            // posixaio and the like queue; what queues here is libaio.
            if self.section.get(&["ioengine"]).is_some() && depth > 1 {
                EngineKind::Libaio
            } else {
                EngineKind::Psync
            }
        });
        if depth > 1 && matches!(engine, EngineKind::Psync | EngineKind::Mmap) {
            self.note(&format!(
                "iodepth={depth} has no effect with {engine}, neither in fio nor here: depth 1"
            ));
            return (engine, 1);
        }
        (engine, depth)
    }

    fn block(&mut self) -> BlockSize {
        let split = self.value(&["bssplit"], values::block_split);
        let fixed = self.value(&["bs", "blocksize"], |text| same_for_both(text).and_then(values::bytes));
        split.unwrap_or(BlockSize::Fixed(fixed.unwrap_or(Bytes(4096))))
    }

    fn data(&mut self) -> Data {
        let compressible = self.value(&["buffer_compress_percentage"], |text| text.parse::<f64>().ok());
        match compressible {
            Some(percent) if percent > 0.0 => Data::Compressible(percent),
            _ if self.flag(&["zero_buffers"]) => Data::Zero,
            _ => Data::Random,
        }
    }

    /// Files: without a file name each clone of a job has its own `nrfiles` files, which share `size`.
    fn set_place(&mut self, draft: &mut Draft, engine: EngineKind) {
        let size = self.value(&["size"], values::bytes);
        let filesize = self.value(&["filesize"], values::bytes);
        if engine == EngineKind::Null {
            draft.size = size.or(filesize);
            return;
        }
        let directory = self.value(&["directory"], one_path);
        if let Some(path) = self.value(&["filename"], one_path) {
            let path = directory.map_or_else(|| path.clone(), |directory| directory.join(&path));
            draft.size = filesize.or(size);
            let is_device = path.starts_with("/dev") && !path.starts_with("/dev/shm");
            draft.place = Some(if is_device { Place::Device(path) } else { Place::File(path) });
            return;
        }
        let files = self.value(&["nrfiles"], whole).unwrap_or(1).max(1);
        draft.place = Some(Place::Dir(directory.unwrap_or_else(|| PathBuf::from("."))));
        draft.prefix = Some(prefix(draft.name.as_deref().unwrap_or_default()));
        draft.files = u32::try_from(files.saturating_mul(self.threads().into())).ok();
        draft.size = filesize.or(size.map(|size| Bytes(size.0 / files)));
    }

    fn set_offset(&mut self, draft: &mut Draft, block: &BlockSize) {
        let Some(offset) = self.value(&["offset"], values::bytes).filter(|offset| offset.0 > 0) else {
            return;
        };
        let rounded = offset.0.next_multiple_of(block.smallest().max(1));
        if rounded != offset.0 {
            self.note(&format!("offset={} is rounded up to {rounded}, a multiple of the block", offset.0));
        }
        draft.offset = Some(Bytes(rounded));
        // fio counts size from the offset; weir counts it from the beginning.
        draft.size = draft.size.map(|size| Bytes(size.0.saturating_add(rounded)));
    }

    fn set_sync(&mut self, draft: &mut Draft) {
        let writes = draft.read_percent.is_none_or(|percent| percent < 100.0);
        let fsync = self.value(&["fsync"], whole).filter(|&every| every > 0);
        let fdatasync = self.value(&["fdatasync"], whole).filter(|&every| every > 0);
        let open_sync = self.value(&["sync"], |text| match text {
            "0" | "none" => Some(OpenSync::None),
            "1" | "sync" => Some(OpenSync::Sync),
            "dsync" => Some(OpenSync::Dsync),
            _ => None,
        });
        draft.sync_at_end = Some(writes && (self.flag(&["end_fsync"]) || self.flag(&["fsync_on_close"])));
        draft.sync_mode = Some(if fdatasync.is_some() { SyncMode::Fdatasync } else { SyncMode::Fsync });
        // fio ignores both for reads; weir would refuse them.
        if writes {
            draft.sync_every = fdatasync.or(fsync);
            draft.open_sync = open_sync;
        }
    }

    /// fio limits each direction of each clone; weir's rate is that of the whole job.
    fn set_rate(&mut self, draft: &mut Draft, read_percent: f64) {
        let Some(text) = self.section.get(&["rate_iops"]) else {
            return;
        };
        let rates: Vec<Option<f64>> =
            text.split(',').map(|part| whole(part).map(|rate| rate as f64)).collect();
        let of_reads = rates[0];
        let of_writes = rates.get(1).copied().unwrap_or(of_reads);
        let share = read_percent / 100.0;
        let limits = [(of_reads, share), (of_writes, 1.0 - share)];
        let total = limits
            .iter()
            .filter(|(_, share)| *share > 0.0)
            .filter_map(|(rate, share)| rate.map(|rate| rate / share));
        let total = total.fold(f64::INFINITY, f64::min);
        if !total.is_finite() || total <= 0.0 {
            self.refuse(format!("[{}] rate_iops={text}", self.section.name));
            return;
        }
        draft.rate_iops = Some(total * f64::from(self.threads()));
        draft.arrival = self.value(&["rate_process"], |text| match text {
            "linear" => Some(Arrival::Constant),
            "poisson" => Some(Arrival::Poisson),
            _ => None,
        });
    }

    /// fio stops after `size` bytes per clone, after `runtime`, or with both at whichever is first; `time_based` goes
    /// round until `runtime` is over.
    fn set_limits(&mut self, job: &mut Job) {
        let runtime = self.value(&["runtime", "timeout"], values::time);
        let time_based = self.flag(&["time_based"]);
        job.duration = runtime.unwrap_or(Nanos(0));
        job.operations = if time_based { 0 } else { self.operations(job) };
        if job.duration.0 == 0 && job.operations == 0 {
            job.duration = Job::default().duration;
            self.note("neither a runtime nor a size says where the job ends: it runs for 10 s");
        }
    }

    fn operations(&mut self, job: &Job) -> u64 {
        let size = self.value(&["size"], values::bytes);
        let bytes = self.value(&["io_size"], values::bytes).or(size).map_or(0, |bytes| bytes.0);
        let loops = self.value(&["loops"], whole).unwrap_or(1).max(1);
        let of_size = (bytes as f64 / mean_block(&job.block)) as u64;
        let per_clone = match self.value(&["number_ios"], whole).filter(|&number| number > 0) {
            Some(number) if of_size > 0 => number.min(of_size),
            Some(number) => number,
            None => of_size,
        };
        per_clone.saturating_mul(loops).saturating_mul(job.threads.into())
    }

    fn note_differences(&mut self, job: &Job) {
        if job.threads > 1 && matches!(job.access, Access::Sequential) {
            self.note("each of fio's numjobs reads or writes its own sequence; weir's threads share one");
        }
        let maps_blocks = !self.flag(&["norandommap"]);
        if maps_blocks && matches!(job.access, Access::Random(_)) && job.duration.0 == 0 {
            self.note("fio visits each random block once; weir draws each block anew, as with norandommap");
        }
        if job.rate.is_some() {
            self.note("fio's rate_iops holds a job back; weir's rate is an open loop, and latency counts from the intended start");
        }
    }
}

/// A single path without fio's own variables; several are separated by colons.
fn one_path(text: &str) -> Option<PathBuf> {
    let plain = !text.is_empty() && !text.contains([':', '$', '\0']);
    plain.then(|| PathBuf::from(text))
}

/// What the names of a job's files begin with.
pub fn prefix(name: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
    let name: String = name.chars().take(64).map(plain).collect();
    format!("weir-fio-{name}")
}

fn mean_block(block: &BlockSize) -> f64 {
    match block {
        BlockSize::Fixed(size) => size.0 as f64,
        BlockSize::Split(sizes) => {
            let weight: f64 = sizes.iter().map(|(_, weight)| weight).sum();
            sizes.iter().map(|(size, share)| size.0 as f64 * share).sum::<f64>() / weight
        }
    }
}
