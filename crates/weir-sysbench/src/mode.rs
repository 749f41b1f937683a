//! The lines before a run: what is going to be done.

use super::args::Settings;
use super::fileio::Fileio;
use super::general::General;
use super::log::Log;
use super::text::size;

/// All lines from `Running the test` to `Doing … test`.
pub fn print(settings: &Settings, log: &mut Log<'_>) {
    print_general(&settings.general, log);
    log.notice("");
    print_fileio(settings, log);
}

/// What every test says.
pub fn print_general(general: &General, log: &mut Log<'_>) {
    log.notice("Running the test with following options:");
    log.notice(format!("Number of threads: {}", general.threads));
    if general.rate > 0 {
        log.notice(format!("Target transaction rate: {}/sec", general.rate));
    }
    if general.report_interval_s > 0 {
        log.notice(format!("Report intermediate results every {} second(s)", general.report_interval_s));
    }
    if !general.checkpoints_s.is_empty() {
        let list: Vec<String> = general.checkpoints_s.iter().map(u32::to_string).collect();
        log.notice(format!("Report checkpoint(s) at {} seconds", list.join(", ")));
    }
    if general.debug {
        log.notice("Debug mode enabled.\n");
    }
    if general.validate {
        log.notice("Validation checks: on.\n");
    }
    match general.seed {
        0 => log.notice("Initializing random number generator from current time\n"),
        seed => log.notice(format!("Initializing random number generator from seed ({seed}).\n")),
    }
    if let Some(after_s) = general.forced_shutdown_s {
        log.notice(format!("Forcing shutdown in {} seconds", general.time_s + after_s));
    }
}

fn print_fileio(settings: &Settings, log: &mut Log<'_>) {
    let (general, fileio) = (&settings.general, &settings.fileio);
    log.notice(format!("Extra file open flags: {}", fileio.flags.title()));
    log.notice(format!("{} files, {}B each", fileio.files, size(fileio.file_size as f64)));
    log.notice(format!("{}B total file size", size(fileio.total_size() as f64)));
    log.notice(format!("Block size {}B", size(fileio.block_size as f64)));
    if fileio.merged_requests > 0 {
        log.notice(format!(
            "Merging requests up to {}B for sequential IO.",
            size(fileio.request_size as f64)
        ));
    }
    if fileio.test_mode.is_some_and(|mode| !mode.is_sequential()) {
        log.notice(format!("Number of IO requests: {}", general.events));
        log.notice(format!("Read/Write ratio for combined random IO test: {:2.2}", fileio.rw_ratio));
    }
    print_syncs_and_test(settings, log);
}

/// The lines in which both versions agree: when files are synced, and which test runs in which way.
pub(super) fn print_syncs_and_test(settings: &Settings, log: &mut Log<'_>) {
    let (general, fileio) = (&settings.general, &settings.fileio);
    print_syncs(fileio, log);
    log.notice(format!("Using {} I/O mode", fileio.io_mode.title()));
    if general.validate {
        log.notice("Using checksums validation.");
    }
    if let Some(mode) = fileio.test_mode {
        log.notice(format!("Doing {} test", mode.title()));
    }
}

/// When files are synced; in the words that 0.4.12 has too.
fn print_syncs(fileio: &Fileio, log: &mut Log<'_>) {
    let fsync = &fileio.fsync;
    if fsync.frequency > 0 {
        log.notice(format!("Periodic FSYNC enabled, calling fsync() each {} requests.", fsync.frequency));
    }
    if fsync.end {
        log.notice("Calling fsync() at the end of test, Enabled.");
    }
    if fsync.all {
        log.notice("Calling fsync() after each write operation.");
    }
}
