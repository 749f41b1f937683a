//! `prepare`: makes the files, or extends those that are there, and sees them on the device.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use weir_core::stats::random::mix64;
use weir_core::workload::data;
use weir_core::workload::rng::Rng;
use weir_core::workload::spec::Data;
use weir_core::workload::verify::{self, BlockId};
use weir_fs::{Access, reopen};
use weir_io::runner::Stop;
use weir_sysbench::{Fileio, Log, Quit, Settings};

use super::files::{MODE, check_sealable, folder, open_flags, refuse_flags};
use crate::cmd::sysbench::errno;
use crate::failure::Outcome;

const MEBIBYTE: f64 = 1024.0 * 1024.0;
/// What O_DIRECT needs at most of a buffer's address.
const ALIGNMENT: usize = 4096;

/// Writes whole blocks until each file has its size. The data is random: zeros would let compressing and thin
/// devices answer from nothing.
pub fn prepare(settings: &Settings, log: &mut Log<'_>, stop: &Stop) -> Result<Outcome, Quit> {
    let fileio = &settings.fileio;
    let total = fileio.total_size();
    log.notice(format!("{} files, {}Kb each, {}Mb total", fileio.files, fileio.file_size >> 10, total >> 20));
    log.notice("Creating files for the test...");
    log.notice(format!("Extra file open flags: {}", fileio.flags.title()));
    refuse_flags(fileio.flags, log)?;
    check_sealable(settings, log)?;
    let started = Instant::now();
    let writer = BlockWriter::new(fileio.block_size as usize, settings.general.validate);
    let mut writer =
        writer.map_err(|error| log.fatal(errno::with_number("Can't get random bytes", &error)))?;
    let mut made = Vec::new();
    for index in 0..fileio.files {
        let end = one_file(fileio, index, &mut writer, &mut made, log, stop);
        if end.is_err() {
            remove_made(&made, log);
        }
        if let Some(signal) = end? {
            log.console.err("Interrupted; a further prepare goes on from here.\n");
            return Ok(Outcome::Interrupted(signal));
        }
    }
    let seconds = started.elapsed().as_secs_f64().max(1e-9);
    match writer.written {
        0 => log.notice("No bytes written."),
        bytes => log.notice(format!(
            "{bytes} bytes written in {seconds:.2} seconds ({:.2} MiB/sec).",
            bytes as f64 / MEBIBYTE / seconds
        )),
    }
    if settings.general.extra && writer.written > 0 {
        log.notice(
            "\nweir: the files hold random data; sysbench writes zeros, which compressing devices swallow.",
        );
    }
    Ok(Outcome::Done)
}

/// Makes or extends one file. `Some`: a signal asked to stop.
fn one_file(
    fileio: &Fileio,
    index: u32,
    writer: &mut BlockWriter,
    made: &mut Vec<String>,
    log: &mut Log<'_>,
    stop: &Stop,
) -> Result<Option<u8>, Quit> {
    let name = Fileio::file_name(index);
    let opened = found_or_made(&name, open_flags(fileio.flags), made)
        .and_then(|mut file| file.seek(SeekFrom::End(0)).map(|size| (file, size)));
    let (mut file, size) =
        opened.map_err(|error| log.fatal(errno::with_number("Can't open file", &error)))?;
    log.notice(match size {
        size if size >= fileio.file_size => format!("Reusing existing file {name}"),
        0 => format!("Creating file {name}"),
        _ => format!("Extending existing file {name}"),
    });
    let written = writer.fill(&mut file, index, size..fileio.file_size, stop);
    let stopped = written.map_err(|error| log.fatal(errno::with_number("Failed to write file!", &error)))?;
    if stopped.is_some() {
        return Ok(stopped);
    }
    // sysbench ignores this one, and a device that lost the data passes.
    let synced = file.sync_all();
    synced.map_err(|error| {
        log.fatal(errno::with_number(&format!("Failed to fsync file! file: {name}"), &error))
    })?;
    Ok(None)
}

/// Opens a file, or makes it and notes that.
fn found_or_made(name: &str, flags: i32, made: &mut Vec<String>) -> io::Result<File> {
    let folder = folder()?;
    let found = match folder.open_sole_file(name, Access::ReadWrite) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let file = folder.create_new(name, MODE)?;
            made.push(name.to_string());
            file
        }
        found => found?,
    };
    reopen(&found, OpenOptions::new().write(true).custom_flags(flags))
}

/// After a failure the file system may be full: what this call has made goes away again.
fn remove_made(made: &[String], log: &mut Log<'_>) {
    let removed = made
        .iter()
        .filter(|name| folder().and_then(|folder| folder.remove_file(name.as_str())).is_ok())
        .count();
    if removed > 0 {
        log.console.err(&format!("Removed what this prepare had made ({removed} of the files).\n"));
    }
}

/// Writes blocks of random data, each different.
struct BlockWriter {
    /// With a checksum and their place, for `--validate`: the id that tells them from blocks of a run.
    sealed_as: Option<u64>,
    memory: Vec<u8>,
    start: usize,
    block: usize,
    /// Bytes written so far.
    written: u64,
    /// Of the last block; every other prepare, and every run, begins elsewhere.
    unique: u64,
}

impl BlockWriter {
    fn new(block: usize, sealed: bool) -> io::Result<BlockWriter> {
        let own = weir_fs::random()?;
        let mut memory = vec![0; block + ALIGNMENT];
        let start = memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        data::prepare(&mut memory[start..start + block], Data::Random, &mut Rng::new(own, 0x7072_6570));
        Ok(BlockWriter { sealed_as: sealed.then(run_id), memory, start, block, written: 0, unique: own })
    }

    /// Writes from the start of a range of a file until at least its end. `Some`: a signal asked to stop.
    fn fill(
        &mut self,
        file: &mut File,
        index: u32,
        range: Range<u64>,
        stop: &Stop,
    ) -> io::Result<Option<u8>> {
        let mut at = range.start;
        while at < range.end {
            if let Some(signal) = stop.requested() {
                return Ok(Some(signal));
            }
            let block = &mut self.memory[self.start..self.start + self.block];
            self.unique = self.unique.wrapping_add(1);
            data::refresh(block, Data::Random, self.unique);
            if let Some(run_id) = self.sealed_as {
                verify::seal(block, BlockId { run_id, file: index, offset: at }, 1);
            }
            file.write_all(block)?;
            at += self.block as u64;
            self.written += self.block as u64;
        }
        Ok(None)
    }
}

/// Differs from that of every other prepare and run.
fn run_id() -> u64 {
    mix64(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64))
}
