//! Any text as a fio job file: every job that comes out of it is admitted, and its operations lie inside its files.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_core::workload::spec::Target;
use weir_core::workload::{JobStream, Layout, OpSource, fio, validate};

const FILES_MAX: u32 = 100;
const UNSIZED_BYTES: u64 = 1 << 30;

fuzz_target!(|text: &str| {
    for job in fio::import(text).jobs {
        assert_eq!(validate::job(&job), Ok(()), "{job:?}");
        let (files, size) = match &job.target {
            Target::Files { count, size, .. } => ((*count).min(FILES_MAX), size.0),
            Target::File { size, .. } | Target::Device { size, .. } | Target::Null { size } => (1, size.0),
        };
        let file_bytes = vec![if size == 0 { UNSIZED_BYTES } else { size }; files as usize];
        let Ok(mut stream) = JobStream::new(&job, &Layout { file_bytes: file_bytes.clone() }) else {
            continue;
        };
        let mut operations = Vec::new();
        stream.fill(&mut operations, 200);
        for op in operations {
            assert!(op.offset + u64::from(op.len) <= file_bytes[op.file as usize], "{op:?} of {job:?}");
        }
    }
});
