//! Any text as a job file: it is refused with a line that is there, or its jobs print to a file of the same jobs.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_core::workload::jobfile;

fuzz_target!(|text: &str| {
    match jobfile::parse(text) {
        Ok(jobs) => {
            let printed = jobfile::print(&jobs);
            assert_eq!(jobfile::parse(&printed).as_ref(), Ok(&jobs), "{printed}");
        }
        Err(error) => assert!(error.line >= 1 && error.line <= text.lines().count() + 1, "{error}"),
    }
});
