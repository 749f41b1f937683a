//! The flood: a bulk buffered writer beside a workload, as `dd` or `cp` would be.
//!
//! Its files lie in a scratch folder, so they are removed when the flood stops, after Ctrl-C and SIGTERM, and by the
//! next run after a SIGKILL.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use weir_core::result::record::FloodRecord;
use weir_core::units::Bytes;
use weir_core::workload::data;
use weir_core::workload::rng::Rng;
use weir_core::workload::spec::Data;
use weir_fs::{Dir, Private};

use crate::IoError;
use crate::error::Fault;
use crate::files::free_bytes;
use crate::place::Place;
use crate::scratch;
use crate::sys::clock::{now_ns, sleep_until_ns};

/// What a flood takes where no size is given, half of what is free at most, unless it needs more.
const SIZE_DEFAULT_BYTES: u64 = 16 << 30;
/// What floods whose size nobody gave leave free: a tenth of the file system, at least and at most this.
const KEPT_MIN_BYTES: u64 = 512 << 20;
const KEPT_MAX_BYTES: u64 = 16 << 30;
/// Size of the file that `cp` copies from.
const SOURCE_BYTES: u64 = 256 << 20;
/// Room that stays free on the file system.
const SPARE_BYTES: u64 = 256 << 20;
/// Length of the intervals whose rates are kept.
const INTERVAL_NS: u64 = 1_000_000_000;

/// What a flood writes.
#[derive(Debug, Clone, PartialEq)]
pub struct FloodSpec {
    /// As typed: `dd`, `cp` or `dd:size=4G,bs=1M,rate=200M,writers=2`.
    pub text: String,
    /// Folder of its file, on the file system under test.
    pub dir: PathBuf,
    /// Most it writes before it starts over at the beginning of its file; the room it needs. 0: as [`FloodSpec::sized`] has
    /// it, else half of what is free, at most 16 GiB.
    pub size: Bytes,
    /// Size of each write(2).
    pub block: Bytes,
    /// Parallel writers.
    pub writers: u32,
    /// Most bytes per second it hands over; 0: no limit.
    pub rate: Bytes,
    /// Read what it writes from another file (`cp`) instead of from memory (`dd`).
    pub copies: bool,
}

/// What there is for floods whose size nobody gave.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// Size of the file system.
    pub size_bytes: u64,
    /// Free on it.
    pub free_bytes: u64,
    /// All that may be dirty before the kernel throttles writers; 0 where that is not known.
    pub dirty_limit_bytes: u64,
    /// Floods that share it.
    pub floods: u64,
}

impl FloodSpec {
    /// With a size, where none was given. A file that is smaller than the limit of dirty pages is written anew while it is
    /// still dirty: nobody is throttled, and the device gets little of it. So it is larger than that limit, if there is
    /// room.
    pub fn sized(self, room: &Room) -> FloodSpec {
        if self.size.0 > 0 {
            return self;
        }
        let (half, floods) = (room.free_bytes / 2, room.floods.max(1));
        let sources = if self.copies { floods * SOURCE_BYTES } else { 0 };
        let kept = (room.size_bytes / 10).clamp(KEPT_MIN_BYTES, KEPT_MAX_BYTES).min(half);
        let there = room.free_bytes.saturating_sub(kept.max(SPARE_BYTES + sources));
        let wanted =
            (room.dirty_limit_bytes / 4 * 5 + KEPT_MIN_BYTES).max(SIZE_DEFAULT_BYTES.min(half)).min(there);
        FloodSpec { size: Bytes((wanted / floods) >> 20 << 20), ..self }
    }

    /// Parses `dd`, `cp`, or one of them followed by `:` and any of `size=`, `bs=`, `rate=` (bytes per second),
    /// `writers=` and `dir=`, separated by commas.
    pub fn parse(text: &str, dir: &Path) -> Result<FloodSpec, IoError> {
        let (kind, settings) = text.split_once(':').unwrap_or((text, ""));
        let copies = match kind {
            "dd" => false,
            "cp" => true,
            _ => return Err(spec_error(text, &format!("expected dd or cp, got `{kind}`"))),
        };
        let mut spec = FloodSpec {
            text: text.to_string(),
            dir: dir.to_path_buf(),
            size: Bytes(0),
            block: Bytes(if copies { 128 << 10 } else { 1 << 20 }),
            writers: 1,
            rate: Bytes(0),
            copies,
        };
        for setting in settings.split(',').filter(|s| !s.is_empty()) {
            let (key, value) = setting
                .split_once('=')
                .ok_or_else(|| spec_error(text, &format!("`{setting}` has no `=`")))?;
            let bytes = || value.parse::<Bytes>().map_err(|e| spec_error(text, &e.to_string()));
            match key {
                "size" => spec.size = bytes()?,
                "bs" => spec.block = bytes()?,
                "rate" => spec.rate = bytes()?,
                "writers" => {
                    spec.writers = value.parse().map_err(|_| {
                        spec_error(
                            text,
                            &format!(
                                "expected a number of writers, got \
                            `{value}`"
                            ),
                        )
                    })?;
                }
                "dir" => spec.dir = PathBuf::from(value),
                _ => {
                    return Err(spec_error(
                        text,
                        &format!("expected one of size, bs, rate, writers, dir, got `{key}`"),
                    ));
                }
            }
        }
        if spec.writers == 0 || spec.block.0 == 0 {
            return Err(spec_error(text, "writers and bs must be positive"));
        }
        if spec.size.0 > 0 {
            spec.refuse_blocks_beyond_size()?;
        }
        // A block is read from a place inside the source that differs from block to block.
        if spec.copies && spec.block.0 > SOURCE_BYTES / 2 {
            return Err(spec_error(
                text,
                &format!("expected bs of at most {} with cp", Bytes(SOURCE_BYTES / 2)),
            ));
        }
        Ok(spec)
    }

    /// Each writer writes at least a block.
    fn refuse_blocks_beyond_size(&self) -> Result<(), IoError> {
        let least = Bytes(self.block.0.saturating_mul(u64::from(self.writers)));
        if self.size < least {
            let why = format!("expected size of at least writers × bs = {least}, got {}", self.size);
            return Err(spec_error(&self.text, &why));
        }
        Ok(())
    }
}

fn spec_error(text: &str, why: &str) -> IoError {
    IoError::usage(format!("flood `{text}`: {why}")).hint("for example: --flood dd:size=8G,bs=1M,rate=300M")
}

/// What the writers share.
struct Shared {
    spec: FloodSpec,
    halt: AtomicBool,
    bytes: AtomicU64,
    failure: Mutex<Option<String>>,
    rates: Mutex<Vec<f64>>,
}

/// A running flood; dropping it stops it and removes its files.
pub struct Flood {
    shared: Arc<Shared>,
    writers: Vec<JoinHandle<()>>,
    watcher: Option<JoinHandle<()>>,
    start_ns: u64,
    scratch: Option<Private>,
}

impl Flood {
    /// Starts the writers in a folder of their own in the one that the spec names. Refuses when the file system has not
    /// the room.
    pub fn start(spec: FloodSpec) -> Result<Flood, IoError> {
        scratch::remove_abandoned(&spec.dir);
        let dir = scratch::open(&spec.dir)?;
        Flood::start_in(&dir, spec)
    }

    /// The same in an open folder, whatever the spec names.
    pub fn start_in(dir: &Dir, mut spec: FloodSpec) -> Result<Flood, IoError> {
        let free = free_bytes(dir)?;
        if spec.size.0 == 0 {
            spec.size = Bytes((free / 2).min(SIZE_DEFAULT_BYTES));
        }
        let needed = spec.size.0.saturating_add(if spec.copies { SOURCE_BYTES } else { 0 });
        if needed.saturating_add(SPARE_BYTES) > free {
            return Err(IoError::environment(format!(
                "the flood needs {} in {}, where {} is free",
                Bytes(needed),
                dir.path().display(),
                Bytes(free)
            ))
            .hint("make it smaller: --flood dd:size=2G"));
        }
        // Behind the room, which may come back.
        spec.refuse_blocks_beyond_size()?;
        let scratch = scratch::make(dir, "flood")?;
        let source = if spec.copies { Some(write_source(scratch.dir())?) } else { None };
        let mut flood = Flood {
            shared: Arc::new(Shared {
                halt: AtomicBool::new(false),
                bytes: AtomicU64::new(0),
                failure: Mutex::new(None),
                rates: Mutex::new(Vec::new()),
                spec,
            }),
            writers: Vec::new(),
            watcher: None,
            start_ns: now_ns(),
            scratch: Some(scratch),
        };
        flood.spawn(source)?;
        Ok(flood)
    }

    fn spawn(&mut self, source: Option<Arc<File>>) -> Result<(), IoError> {
        let cannot = |e: io::Error| IoError::environment(format!("cannot start the flood: {e}"));
        let Some(folder) = self.scratch.as_ref().map(Private::dir) else { return Ok(()) };
        for index in 0..self.shared.spec.writers {
            let name = format!("flood.{index}");
            let path = folder.path().join(&name);
            let file = folder.create_new(&name, 0o600).map_err(|e| IoError {
                fault: Fault::Environment,
                ..IoError::io("cannot create", &path, e)
            })?;
            let (shared, source) = (self.shared.clone(), source.clone());
            let body = move || {
                if let Err(error) = write_round_and_round(&shared, &file, source.as_deref()) {
                    let mut failure = shared.failure.lock().unwrap_or_else(|e| e.into_inner());
                    failure.get_or_insert(format!("{}: {error}", path.display()));
                }
            };
            let writer = std::thread::Builder::new()
                .name(format!("weir-flood-{index}"))
                .spawn(body)
                .map_err(cannot)?;
            self.writers.push(writer);
        }
        let shared = self.shared.clone();
        let start_ns = self.start_ns;
        let body = move || keep_rates(&shared, start_ns);
        self.watcher = Some(
            std::thread::Builder::new().name("weir-flood-rates".to_string()).spawn(body).map_err(cannot)?,
        );
        Ok(())
    }

    /// Bytes handed to the page cache so far.
    pub fn bytes(&self) -> u64 {
        self.shared.bytes.load(Relaxed)
    }

    /// How long it has run.
    pub fn age_ns(&self) -> u64 {
        now_ns() - self.start_ns
    }

    /// Stops the writers, removes their files, and says what they did.
    pub fn stop(mut self) -> FloodRecord {
        let elapsed_ns = self.age_ns();
        let bytes = self.bytes();
        self.halt();
        let failure = self.shared.failure.lock().unwrap_or_else(|e| e.into_inner()).take();
        let rates = std::mem::take(&mut *self.shared.rates.lock().unwrap_or_else(|e| e.into_inner()));
        FloodRecord {
            spec: self.shared.spec.text.clone(),
            bytes,
            elapsed_ns,
            bytes_per_second: rates,
            ended: failure.unwrap_or_else(|| "stopped".to_string()),
        }
    }

    fn halt(&mut self) {
        self.shared.halt.store(true, Relaxed);
        for thread in self.writers.drain(..).chain(self.watcher.take()) {
            // A panic of a writer was printed by its own thread; the files go all the same.
            let _ = thread.join();
        }
        self.scratch = None;
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.halt();
    }
}

/// A file of random data for `cp` to read from, in the page cache as a just-made dump would be.
fn write_source(folder: &Dir) -> Result<Arc<File>, IoError> {
    let path = folder.path().join("source");
    let file = folder.create_new("source", 0o600).map_err(|e| IoError::io("cannot create", &path, e))?;
    let place = Place::of(file, &path);
    let stop = crate::stop::Stop::default();
    crate::files::fill(&place, 0, SOURCE_BYTES, Data::Random, false, &stop, &mut |_| {})?;
    let opened = place.open(OpenOptions::new().read(true));
    opened.map(Arc::new).map_err(|e| IoError::io("cannot open", &path, e))
}

/// Writes a file from end to end, and again from its beginning, until told to stop.
fn write_round_and_round(shared: &Shared, file: &File, source: Option<&File>) -> io::Result<()> {
    let spec = &shared.spec;
    let mut buffer = vec![0; spec.block.0 as usize];
    let own = weir_fs::random()?;
    data::fill_random(&mut buffer, &mut Rng::new(own, 0x666c_6f6f_6400));
    let share = spec.size.0 / u64::from(spec.writers) / spec.block.0 * spec.block.0;
    let own_rate = spec.rate.0 / u64::from(spec.writers);
    let (start_ns, mut written, mut at) = (now_ns(), 0u64, 0u64);
    while !shared.halt.load(Relaxed) {
        if let Some(source) = source {
            source.read_exact_at(&mut buffer, at % (SOURCE_BYTES - spec.block.0))?;
        } else {
            data::stamp(&mut buffer, own.wrapping_add(written));
        }
        file.write_all_at(&buffer, at)?;
        written += spec.block.0;
        shared.bytes.fetch_add(spec.block.0, Relaxed);
        at = if at + 2 * spec.block.0 <= share { at + spec.block.0 } else { 0 };
        if own_rate > 0 {
            let due_ns = start_ns + (u128::from(written) * 1_000_000_000 / u128::from(own_rate)) as u64;
            wait_until(shared, due_ns);
        }
    }
    Ok(())
}

/// Sleeps in short steps, so that a stop is noticed.
fn wait_until(shared: &Shared, due_ns: u64) {
    while !shared.halt.load(Relaxed) {
        let now = now_ns();
        if now >= due_ns {
            return;
        }
        sleep_until_ns(due_ns.min(now + 50_000_000));
    }
}

/// Keeps the rate of every second.
fn keep_rates(shared: &Shared, start_ns: u64) {
    let (mut last_ns, mut last_bytes) = (start_ns, 0);
    while !shared.halt.load(Relaxed) {
        wait_until(shared, last_ns + INTERVAL_NS);
        let (now, bytes) = (now_ns(), shared.bytes.load(Relaxed));
        if now >= last_ns + INTERVAL_NS / 2 {
            let rate = (bytes - last_bytes) as f64 * 1e9 / (now - last_ns) as f64;
            shared.rates.lock().unwrap_or_else(|e| e.into_inner()).push(rate);
        }
        (last_ns, last_bytes) = (now, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_parse_or_say_why_not() {
        let dir = Path::new("/tmp");
        let spec = FloodSpec::parse("cp:size=2G,bs=64k,rate=200M,writers=3", dir).unwrap();
        assert_eq!((spec.size, spec.block, spec.rate), (Bytes(2 << 30), Bytes(64 << 10), Bytes(200 << 20)));
        assert_eq!((spec.writers, spec.copies), (3, true));
        for (text, why) in [
            ("rsync", "expected dd or cp"),
            ("dd:size", "no `=`"),
            ("dd:size=12q", "`q` is not one of"),
            ("dd:speed=3", "one of size"),
            ("dd:writers=0", "must be positive"),
            ("dd:bs=0", "must be positive"),
            ("dd:size=1M,bs=2M", "size of at least writers × bs = "),
            ("dd:size=1G,bs=512M,writers=8", "size of at least writers × bs = "),
            ("dd:size=1G,bs=4000000T,writers=8", "size of at least writers × bs = "),
            ("cp:bs=256M", "bs of at most"),
        ] {
            let error = FloodSpec::parse(text, dir).unwrap_err();
            assert!(error.to_string().contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn a_flood_of_no_size_exceeds_what_may_be_dirty_and_leaves_room() {
        const M: u64 = 1 << 20;
        const G: u64 = 1 << 30;
        for (text, size_bytes, free_bytes, dirty_limit_bytes, floods, expected) in [
            ("dd", 4_000 * G, 1_000 * G, G, 1, 16 * G),
            // A machine of 128 GiB may have 25.6 GiB dirty.
            ("dd", 4_000 * G, 1_000 * G, 25 * G, 1, 31 * G + 768 * M),
            ("dd", 4_000 * G, 1_000 * G, 25 * G, 2, 15 * G + 896 * M),
            ("dd", 4_000 * G, 40 * G, 25 * G, 1, 24 * G),
            ("dd", 100 * G, 40 * G, 25 * G, 1, 30 * G),
            ("dd", 4_000 * G, 20 * G, 25 * G, 1, 10 * G),
            ("dd", 2 * G, 2 * G, 25 * G, 1, 2 * G - 512 * M),
            ("dd", 2 * G, 600 * M, 25 * G, 1, 300 * M),
            ("cp", 2 * G, 600 * M, 25 * G, 1, 88 * M),
            ("cp", 2 * G, 200 * M, 25 * G, 1, 0),
            ("dd:size=3M", 4_000 * G, 1_000 * G, 25 * G, 1, 3 * M),
        ] {
            let room = Room { size_bytes, free_bytes, dirty_limit_bytes, floods };
            let spec = FloodSpec::parse(text, Path::new("/tmp")).unwrap().sized(&room);
            assert_eq!(spec.size, Bytes(expected), "{text} {room:?}");
        }
    }

    #[test]
    fn a_flood_that_does_not_fit_does_not_start() {
        let dir = tempfile::tempdir().unwrap();
        let huge = u64::MAX;
        for (text, why) in [
            (format!("cp:size={huge}"), "where"),
            (format!("dd:bs={}", huge / 2), "size of at least writers × bs"),
        ] {
            let spec = FloodSpec::parse(&text, dir.path()).unwrap();
            let error = Flood::start(spec).err().unwrap();
            assert!(error.to_string().contains(why), "{text}: {error}");
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "{text}");
        }
        let most = FloodSpec::parse("cp:size=128M,bs=128M", dir.path()).unwrap();
        assert_eq!(most.block, Bytes(SOURCE_BYTES / 2));
    }

    #[test]
    fn a_flood_writes_and_leaves_nothing() {
        for text in ["dd:size=4M,bs=64k", "dd:size=4M,bs=64k,rate=8M,writers=2"] {
            let dir = tempfile::tempdir().unwrap();
            let flood = Flood::start(FloodSpec::parse(text, dir.path()).unwrap()).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(300));
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "{text}");
            let record = flood.stop();
            assert!(record.bytes >= 64 << 10, "{text}: {record:?}");
            assert_eq!(record.ended, "stopped");
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "{text}");
        }
    }
}
