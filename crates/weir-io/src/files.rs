//! The files of a job: found or made, filled with real data, and removed afterwards.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use weir_core::units::{Bytes, SECTOR_BYTES};
use weir_core::workload::data;
use weir_core::workload::rng::Rng;
use weir_core::workload::spec::{Data, Job, Target};
use weir_core::workload::stream::{JobStream, Layout};
use weir_fs::{Access, Dir, Private};

use crate::IoError;
use crate::error::Fault;
use crate::place::{Place, make_room_for};
use crate::runner::JobPlan;
use crate::scratch;
use crate::stop::Stop;
use crate::sys::arena::Arena;
use crate::sys::file;

/// Size of each write while filling.
const CHUNK: usize = 1 << 20;
/// Written data is handed to the device this often, so that filling does not pile up dirty pages.
const WRITE_OUT_EVERY: u64 = 16 << 20;
/// Room that stays free on the file system.
const SPARE_BYTES: u64 = 64 << 20;

/// What a job runs on.
#[derive(Debug)]
pub struct Prepared {
    /// Files or device, in order.
    pub places: Vec<Place>,
    /// Bytes of each that the job uses.
    pub file_bytes: Vec<u64>,
    /// Removes what was made, when dropped.
    pub scratch: Option<Private>,
}

/// Is told how far filling has come: bytes done, bytes in all.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

/// Finds or makes what a job runs on. Files that weir makes are written in full, so that no read hits a hole.
pub fn prepare(job: &Job, stop: &Stop, progress: Progress<'_>) -> Result<Prepared, IoError> {
    match &job.target {
        Target::Null { size } => Ok(Prepared { places: Vec::new(), file_bytes: vec![size.0], scratch: None }),
        Target::File { path, size } | Target::Device { path, size } => existing(job, path, *size),
        Target::Files { dir, prefix, count, size, keep } => {
            scratch::remove_abandoned(dir);
            make_room_for(*count as usize);
            let dir = scratch::open(dir)?;
            let scratch = if *keep { None } else { Some(scratch::make(&dir, "bench")?) };
            let folder = scratch.as_ref().map_or(&dir, Private::dir);
            let names = (0..*count).map(|i| format!("{prefix}.{i}"));
            let files = names.map(|name| found_or_made(folder, &name)).collect::<Result<Vec<_>, _>>()?;
            fill_all(job, folder, &files, size.0, stop, progress)?;
            Ok(Prepared { file_bytes: vec![size.0; files.len()], places: files, scratch })
        }
    }
}

/// What jobs run on, found or made once for all that have the same target, and removed with this.
#[derive(Debug, Default)]
pub struct Files {
    made: Vec<(Target, Prepared)>,
}

impl Files {
    /// What a job runs on.
    fn prepared(&mut self, job: &Job, stop: &Stop, progress: Progress<'_>) -> Result<&Prepared, IoError> {
        let at = match self.made.iter().position(|(target, _)| *target == job.target) {
            Some(at) => {
                self.made[at].1.places.iter().try_for_each(|place| file::open(job, place).map(drop))?;
                at
            }
            None => {
                self.made.push((job.target.clone(), prepare(job, stop, progress)?));
                self.made.len() - 1
            }
        };
        Ok(&self.made[at].1)
    }

    /// A job with its stream over what it runs on.
    ///
    /// # Errors
    /// Those of [`prepare`], when an earlier job's files cannot be opened as this job asks, or when the stream does not fit the files.
    pub fn plan(&mut self, job: Job, stop: &Stop, progress: Progress<'_>) -> Result<JobPlan, IoError> {
        let prepared = self.prepared(&job, stop, progress)?;
        let layout = Layout { file_bytes: prepared.file_bytes.clone() };
        let source = JobStream::new(&job, &layout)
            .map_err(|error| IoError { hint: error.hint, ..IoError::usage(error.what) })?;
        Ok(JobPlan { source: Box::new(source), places: prepared.places.clone(), job })
    }
}

/// What offsets and lengths of I/O past the page cache must be multiples of here; through it, a sector.
///
/// # Errors
/// When it cannot be opened.
pub fn block_bytes(place: &Place, direct: bool) -> Result<u64, IoError> {
    let opened = place.open(OpenOptions::new().read(true));
    let opened = opened.map_err(|error| IoError::io("cannot open", place.path(), error))?;
    let needed = if direct { file::direct_alignment(&opened) } else { None };
    Ok(needed.unwrap_or(SECTOR_BYTES).max(SECTOR_BYTES))
}

/// A file or device that is there already; never made longer or shorter.
fn existing(job: &Job, path: &Path, size: Bytes) -> Result<Prepared, IoError> {
    let place = Place::named(path)?;
    let opened = file::open(job, &place)?;
    let bytes = file::size_bytes(&opened, path)?;
    if bytes < size.0 {
        return Err(IoError::usage(format!(
            "{} has {}, and the workload wants {size}",
            path.display(),
            Bytes(bytes)
        ))
        .hint("give a smaller --size, or leave it out to use all of it"));
    }
    let used = job.target.used_of(bytes);
    if used < job.block.largest() {
        return Err(IoError::usage(format!(
            "{} has {}, less than one block of {}",
            path.display(),
            Bytes(bytes),
            Bytes(job.block.largest())
        ))
        .hint("give a smaller --block, or a larger file"));
    }
    Ok(Prepared { places: vec![place], file_bytes: vec![used], scratch: None })
}

/// A file under a name that weir chose: nobody meant a link there, nor a file that has another name elsewhere.
fn found_or_made(folder: &Dir, name: &str) -> Result<Place, IoError> {
    let path = folder.path().join(name);
    let found = match folder.open_sole_file(name, Access::ReadWrite) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => folder.create_new(name, 0o600),
        found => found,
    };
    let file = found.map_err(|error| {
        let strange = matches!(error.raw_os_error(), Some(libc::ELOOP)) || error.raw_os_error().is_none();
        let refused = fill_error("cannot create", &path, error);
        if strange {
            IoError { fault: Fault::Environment, ..refused }
                .hint("weir did not make the file of that name: remove it, or choose another --dir")
        } else {
            refused
        }
    })?;
    Ok(Place::of(file, &path))
}

fn fill_all(
    job: &Job,
    folder: &Dir,
    files: &[Place],
    size: u64,
    stop: &Stop,
    progress: Progress<'_>,
) -> Result<(), IoError> {
    let missing: Vec<(&Place, u64)> = files
        .iter()
        .map(|place| (place, place.held().metadata().map_or(0, |m| m.len())))
        .filter(|(_, len)| *len < size)
        .collect();
    let total = missing.iter().map(|(_, len)| size - len).fold(0_u64, u64::saturating_add);
    if total > 0 {
        check_room(folder, total)?;
    }
    let mut before = 0;
    for (place, len) in missing {
        let mut advance = |bytes: u64| progress(before + bytes, total);
        fill(place, len, size, job.data, job.direct, stop, &mut advance)?;
        before += size - len;
    }
    Ok(())
}

/// Refuses to start what cannot fit.
fn check_room(folder: &Dir, needed: u64) -> Result<(), IoError> {
    let free = free_bytes(folder)?;
    if needed.saturating_add(SPARE_BYTES) <= free {
        return Ok(());
    }
    Err(IoError::environment(format!(
        "{} has {} free, and the files need {} more while {} stay free",
        folder.path().display(),
        Bytes(free),
        Bytes(needed),
        Bytes(SPARE_BYTES)
    ))
    .hint("give a smaller --size, or another folder with --dir"))
}

/// Bytes that this user may still write on the file system of `folder`.
pub fn free_bytes(folder: &Dir) -> Result<u64, IoError> {
    folder.free_bytes().map_err(|error| IoError {
        fault: Fault::Environment,
        ..IoError::io("cannot examine", folder.path(), error)
    })
}

/// Writes a file from `from` up to `size`, with data that the device cannot take a short cut on.
pub fn fill(
    place: &Place,
    from: u64,
    size: u64,
    data: Data,
    direct: bool,
    stop: &Stop,
    advance: &mut dyn FnMut(u64),
) -> Result<(), IoError> {
    let failed = |what: &str, error: io::Error| fill_error(what, place.path(), error);
    let mut arena = Arena::new(1, CHUNK).map_err(|e| failed("no memory to fill", e))?;
    // Of this file and this run alone: storage that deduplicates keeps equal data once.
    let own = weir_fs::random().map_err(|e| failed("no random bytes to fill", e))?;
    let mut rng = Rng::new(own, 0x6669_6c6c);
    data::prepare(arena.slice_mut(0, CHUNK), data, &mut rng);
    let aligned = from.is_multiple_of(CHUNK as u64) && size.is_multiple_of(4096);
    let file = open_to_fill(place, direct && aligned).map_err(|e| failed("cannot open", e))?;
    let (mut at, mut written_out) = (from, from);
    while at < size {
        if stop.requested().is_some() {
            return Err(IoError::environment("interrupted while the files were being filled"));
        }
        let len = (size - at).min(CHUNK as u64) as usize;
        let chunk = arena.slice_mut(0, len);
        data::refresh(chunk, data, own.wrapping_add(at));
        file.write_all_at(chunk, at).map_err(|e| failed("cannot write", e))?;
        at += len as u64;
        if at - written_out >= WRITE_OUT_EVERY {
            start_write_out(&file, written_out, at - written_out);
            written_out = at;
        }
        advance(at - from);
    }
    file.sync_all().map_err(|e| failed("cannot sync", e))
}

fn fill_error(what: &str, path: &Path, error: io::Error) -> IoError {
    let full = matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT));
    let readable = IoError::io(what, path, error);
    if full {
        return IoError { fault: Fault::Environment, ..readable }
            .hint("the file system is full: give a smaller --size, or another folder with --dir");
    }
    readable
}

/// Opens with O_DIRECT where that works, so that filling does not push other data out of the page cache.
fn open_to_fill(place: &Place, direct: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true);
    if direct && let Ok(file) = place.open(options.clone().custom_flags(libc::O_DIRECT)) {
        return Ok(file);
    }
    place.open(&options)
}

/// Starts write-out of a range and waits for the range before it: at most two ranges are dirty at once.
fn start_write_out(file: &File, offset: u64, len: u64) {
    let fd = file.as_raw_fd();
    let before = offset.saturating_sub(len);
    // SAFETY: sync_file_range takes numbers; it is advice here, and errors surface at the final sync.
    unsafe {
        libc::sync_file_range(fd, offset as i64, len as i64, libc::SYNC_FILE_RANGE_WRITE);
        libc::sync_file_range(
            fd,
            before as i64,
            (offset - before) as i64,
            libc::SYNC_FILE_RANGE_WAIT_BEFORE
                | libc::SYNC_FILE_RANGE_WRITE
                | libc::SYNC_FILE_RANGE_WAIT_AFTER,
        );
    }
}

/// Sets so many bytes of an empty file aside without writing them (fallocate), as products do with their logs.
///
/// # Errors
/// Where the file system cannot, or has not so many.
pub fn allocate(place: &Place, bytes: u64) -> Result<(), IoError> {
    // SAFETY: fallocate takes a descriptor, which the place holds, and numbers.
    match unsafe { libc::fallocate(place.held().as_raw_fd(), 0, 0, bytes as libc::off_t) } {
        0 => Ok(()),
        _ => Err(IoError::io("cannot allocate", place.path(), io::Error::last_os_error())),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn job(dir: &Path, size: u64, keep: bool) -> Job {
        let (dir, prefix) = (dir.to_path_buf(), "t".to_string());
        Job { target: Target::Files { dir, prefix, count: 2, size: Bytes(size), keep }, ..Job::default() }
    }

    #[test]
    fn files_are_written_in_full_and_go_away() {
        let dir = tempfile::tempdir().unwrap();
        let mut last = (0, 0);
        let prepared =
            prepare(&job(dir.path(), 3 << 20, false), &Stop::default(), &mut |done, all| last = (done, all))
                .unwrap();
        assert_eq!(last, (6 << 20, 6 << 20));
        for place in &prepared.places {
            let content = std::fs::read(place.path()).unwrap();
            assert_eq!(content.len(), 3 << 20);
            let zeros = content.iter().filter(|b| **b == 0).count();
            assert!(zeros < content.len() / 100, "{zeros} zero bytes: not random data");
        }
        drop(prepared);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    /// Storage that deduplicates would keep one of two equal sectors.
    #[test]
    fn no_sector_is_in_two_files() {
        let dir = tempfile::tempdir().unwrap();
        for data in [Data::Random, Data::Compressible(100.0)] {
            let mut seen = std::collections::HashSet::new();
            // Two files of a run, and two runs.
            for _ in 0..2 {
                let spec = Job { data, ..job(dir.path(), 3 << 20, false) };
                let prepared = prepare(&spec, &Stop::default(), &mut |_, _| {}).unwrap();
                for place in &prepared.places {
                    for sector in std::fs::read(place.path()).unwrap().chunks(512) {
                        assert!(
                            seen.insert(sector.to_vec()),
                            "{data:?}: {} repeats a sector",
                            place.path().display()
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn jobs_of_one_target_share_its_files() {
        let dir = tempfile::tempdir().unwrap();
        let mut files = Files::default();
        let first = job(dir.path(), 1 << 20, false);
        let mut other = first.clone();
        if let Target::Files { prefix, .. } = &mut other.target {
            *prefix = "u".to_string();
        }
        let mut plan = |job: &Job| {
            let plan = files.plan(job.clone(), &Stop::default(), &mut |_, _| {}).unwrap();
            plan.places.iter().map(|place| place.held().metadata().unwrap().ino()).collect::<Vec<_>>()
        };
        let inodes = plan(&first);
        assert_eq!(plan(&Job { read_percent: 0.0, ..first }), inodes);
        assert!(plan(&other).iter().all(|inode| !inodes.contains(inode)));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "a folder for each prefix");
        drop(files);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn kept_files_are_reused() {
        let dir = tempfile::tempdir().unwrap();
        let spec = job(dir.path(), 1 << 20, true);
        drop(prepare(&spec, &Stop::default(), &mut |_, _| {}).unwrap());
        let mut wrote = false;
        prepare(&spec, &Stop::default(), &mut |_, _| wrote = true).unwrap();
        assert!(!wrote);
    }

    #[test]
    fn too_little_room_is_said_before_anything_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let error = prepare(&job(dir.path(), 1 << 60, false), &Stop::default(), &mut |_, _| {}).unwrap_err();
        assert_eq!(error.fault, Fault::Environment);
        assert!(error.to_string().contains("free"), "{error}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn names_that_weir_chooses_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let victim = tempfile::tempdir().unwrap();
        let precious = victim.path().join("precious");
        std::fs::write(&precious, "mine").unwrap();
        let spec = job(dir.path(), 1 << 20, true);
        let run = || prepare(&spec, &Stop::default(), &mut |_, _| {});
        std::os::unix::fs::symlink(&precious, dir.path().join("t.1")).unwrap();
        assert!(run().unwrap_err().hint.unwrap().contains("weir did not make the file"));
        std::fs::remove_file(dir.path().join("t.1")).unwrap();
        std::fs::hard_link(&precious, dir.path().join("t.1")).unwrap();
        assert!(run().unwrap_err().to_string().contains("2 names"));
        assert_eq!(std::fs::read(&precious).unwrap(), b"mine");
    }
}
