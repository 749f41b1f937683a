//! The files of a test: `test_file.0` and on, in the current folder.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use weir_core::workload::verify::SEALED_BYTES_MIN;
use weir_fs::{Access, Dir};
use weir_io::place::{Place, make_room_for};
use weir_sysbench::fileio::{ExtraFlags, IoMode, TestMode};
use weir_sysbench::text::size;
use weir_sysbench::{Fileio, Log, Quit, Settings};

use crate::cmd::sysbench::errno;

/// Permissions of files that are made: their owner's alone, as with sysbench.
pub const MODE: u32 = 0o600;

/// The current folder. Names in it are weir's own choice: what another account put there under one of them, a link for
/// example, is not followed, and a file that has another name elsewhere is not written to.
pub fn folder() -> io::Result<Dir> {
    Dir::open(Path::new("."))
}

/// Flags of open(2) for `--file-extra-flags`.
pub fn open_flags(flags: ExtraFlags) -> i32 {
    let set = [(flags.sync, libc::O_SYNC), (flags.dsync, libc::O_DSYNC), (flags.direct, libc::O_DIRECT)];
    set.iter().filter(|(wanted, _)| *wanted).fold(0, |all, (_, flag)| all | flag)
}

/// Says that a combination of flags is refused.
pub fn refuse_flags(flags: ExtraFlags, log: &mut Log<'_>) -> Result<(), Quit> {
    match flags.refused() {
        Some(value) => Err(log.fatal(format!("Unknown extra flags value: {value}"))),
        None => Ok(()),
    }
}

/// Blocks that hold a checksum must have room for it and not straddle the end of a file.
pub fn check_sealable(settings: &Settings, log: &mut Log<'_>) -> Result<(), Quit> {
    let fileio = &settings.fileio;
    let sequential = fileio.test_mode.is_some_and(TestMode::is_sequential);
    let block = if sequential { fileio.request_size } else { fileio.block_size };
    if !settings.general.validate {
        return Ok(());
    }
    if block < SEALED_BYTES_MIN as u64 {
        return Err(log.fatal(format!("--validate needs requests of at least {SEALED_BYTES_MIN} bytes")));
    }
    if !fileio.file_size.is_multiple_of(block) {
        return Err(log.fatal(format!(
            "--validate needs files of whole requests: {} bytes are no multiple of {block}",
            fileio.file_size
        )));
    }
    Ok(())
}

/// Removes all files; those that are not there are no error, as in sysbench.
pub fn remove(fileio: &Fileio, log: &mut Log<'_>) {
    log.notice("Removing test files...");
    for index in 0..fileio.files {
        let name = Fileio::file_name(index);
        if let Err(error) = folder().and_then(|folder| folder.remove_file(&name))
            && error.kind() != io::ErrorKind::NotFound
        {
            log.console.err(&format!("WARNING: cannot remove '{name}': {}\n", errno::words(&error)));
        }
    }
}

/// The files of a run, checked: made anew for `seqwr`, else there and large enough.
pub fn for_run(settings: &Settings, log: &mut Log<'_>) -> Result<Vec<Place>, Quit> {
    let fileio = &settings.fileio;
    let creates = fileio.test_mode == Some(TestMode::SequentialWrite);
    let mut places = Vec::with_capacity(fileio.files as usize);
    make_room_for(fileio.files as usize);
    // Held together as the run will hold them, so that a limit on open files is met here.
    let mut opened = Vec::with_capacity(fileio.files as usize);
    for index in 0..fileio.files {
        let name = Fileio::file_name(index);
        if creates {
            create(&name, log)?;
        }
        log.debug(format!("Opening file: {name}"));
        let (place, file) = open(fileio, &name, log)?;
        if creates {
            extend(settings, &file, index, log)?;
        } else {
            check_size(settings, &name, &file, log)?;
        }
        opened.push(file);
        places.push(place);
    }
    Ok(places)
}

fn create(name: &str, log: &mut Log<'_>) -> Result<(), Quit> {
    let created = folder().and_then(|folder| {
        match folder.remove_file(name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        folder.create_new(name, MODE)
    });
    match created {
        Ok(_) => Ok(()),
        Err(error) => Err(log.fatal(errno::with_number(&format!("Cannot create file '{name}'"), &error))),
    }
}

/// Opens as the run will, for reading and writing whatever the test does: sysbench's tests need both.
fn open(fileio: &Fileio, name: &str, log: &mut Log<'_>) -> Result<(Place, File), Quit> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(open_flags(fileio.flags));
    let opened = match refuse_flags(fileio.flags, log) {
        Ok(()) => folder().and_then(|folder| {
            let place = Place::of(folder.open_sole_file(name, Access::ReadWrite)?, Path::new(name));
            let file = place.open(&options)?;
            Ok((place, file))
        }),
        Err(_) => Err(io::Error::from_raw_os_error(libc::ENOENT)),
    };
    opened.map_err(|error| {
        let quit = log.fatal(errno::with_number(&format!("Cannot open file '{name}'"), &error));
        log.warning("Did you forget to run the prepare step?");
        quit
    })
}

/// A new file grows as it is written, but a mapping cannot grow, and checksums need to know their blocks.
fn extend(settings: &Settings, file: &File, index: u32, log: &mut Log<'_>) -> Result<(), Quit> {
    if settings.fileio.io_mode != IoMode::Mmap && !settings.general.validate {
        return Ok(());
    }
    let extended = file.set_len(settings.fileio.file_size);
    extended.map_err(|error| {
        log.fatal(errno::with_number(&format!("ftruncate() failed on file {index}"), &error))
    })
}

/// 0.4.12 did not look at sizes; 1.0.20 refuses a file that is a byte too short.
fn check_size(settings: &Settings, name: &str, file: &File, log: &mut Log<'_>) -> Result<(), Quit> {
    let fileio = &settings.fileio;
    let bytes = match file.metadata() {
        Ok(metadata) => metadata.len(),
        Err(error) => {
            return Err(log.fatal(errno::with_number(&format!("fstat() failed on file '{name}'"), &error)));
        }
    };
    if bytes >= fileio.file_size {
        return Ok(());
    }
    let quit = log.fatal(format!(
        "Size of file '{name}' is {}B, but at least {}B is expected.",
        size(bytes as f64),
        size(fileio.file_size as f64)
    ));
    log.warning("Did you run 'prepare' with different --file-total-size or --file-num values?");
    if settings.general.extra {
        let missing = fileio.file_size - bytes;
        log.console
            .err(&format!("hint: it is {missing} bytes short; prepare, with the same options, adds them\n"));
    }
    Err(quit)
}
