//! The report of sysbench 0.4.12, for scripts that parse it (`--legacy-report`).

use super::args::Settings;
use super::fileio_report::{Counts, Cumulative, percentile_ms, print_fairness};
use super::log::Log;
use super::mode::print_syncs_and_test;
use super::text::legacy_size;

/// All lines from `Running the test` to `Doing … test`.
pub fn print_mode(settings: &Settings, log: &mut Log<'_>) {
    let (general, fileio) = (&settings.general, &settings.fileio);
    log.notice("Running the test with following options:");
    log.notice(format!("Number of threads: {}", general.threads));
    if general.debug {
        log.notice("Debug mode enabled.\n");
    }
    if general.validate {
        log.notice("Additional request validation enabled.\n");
    }
    if general.seed != 0 {
        log.notice(format!("Initializing random number generator from seed ({}).\n", general.seed));
    }
    if let Some(after_s) = general.forced_shutdown_s {
        log.notice(format!("Forcing shutdown in {} seconds", general.time_s + after_s));
    }
    log.notice("");
    let flags = u32::from(fileio.flags.sync || fileio.flags.dsync || fileio.flags.direct);
    log.notice(match flags {
        0 => "Extra file open flags: 0".to_string(),
        _ => format!("Extra file open flags: {}", fileio.flags.title()),
    });
    log.notice(format!("{} files, {}b each", fileio.files, legacy_size(fileio.file_size as f64)));
    log.notice(format!("{}b total file size", legacy_size(fileio.total_size() as f64)));
    log.notice(format!("Block size {}b", legacy_size(fileio.block_size as f64)));
    if fileio.merged_requests > 0 {
        let request = legacy_size(fileio.request_size as f64);
        log.notice(format!("Merging requests up to {request}b for sequential IO."));
    }
    if fileio.test_mode.is_some_and(|mode| !mode.is_sequential()) {
        log.notice(format!("Number of random requests for random IO: {}", general.events));
        log.notice(format!("Read/Write ratio for combined random IO test: {:2.2}", fileio.rw_ratio));
    }
    print_syncs_and_test(settings, log);
}

/// The report, from `Operations performed` to `Threads fairness`.
pub fn print(report: &Cumulative<'_>, log: &mut Log<'_>) {
    print_operations(report.counts, report.interval_s, log);
    let events = &report.counts.events;
    let ms = |ns: f64| ns / 1e6;
    log.notice("");
    log.notice("Test execution summary:");
    log.notice(format!("    total time:                          {:.4}s", report.total_s));
    log.notice(format!("    total number of events:              {}", events.count()));
    log.notice(format!("    total time taken by event execution: {:.4}", events.sum() as f64 / 1e9));
    log.notice("    per-request statistics:");
    log.notice(format!(
        "         min:                            {:10.2}ms",
        ms(events.min().unwrap_or(0) as f64)
    ));
    log.notice(format!(
        "         avg:                            {:10.2}ms",
        ms(events.mean().unwrap_or(0.0))
    ));
    log.notice(format!(
        "         max:                            {:10.2}ms",
        ms(events.max().unwrap_or(0) as f64)
    ));
    if events.count() > 0 && report.percentile > 0 {
        log.notice(format!(
            "         approx. {:3} percentile:         {:10.2}ms",
            report.percentile,
            percentile_ms(events, report.percentile)
        ));
    }
    log.notice("");
    print_fairness(report.shares, log);
}

fn print_operations(counts: &Counts, seconds: f64, log: &mut Log<'_>) {
    let per_second = |value: u64| if seconds > 0.0 { value as f64 / seconds } else { 0.0 };
    let bytes = counts.bytes_read + counts.bytes_written;
    log.notice(format!(
        "Operations performed:  {} Read, {} Write, {} Other = {} Total",
        counts.reads,
        counts.writes,
        counts.fsyncs,
        counts.reads + counts.writes + counts.fsyncs
    ));
    log.notice(format!(
        "Read {}b  Written {}b  Total transferred {}b  ({}b/sec)",
        legacy_size(counts.bytes_read as f64),
        legacy_size(counts.bytes_written as f64),
        legacy_size(bytes as f64),
        legacy_size(per_second(bytes)),
    ));
    log.notice(format!("{:8.2} Requests/sec executed", per_second(counts.reads + counts.writes)));
}
