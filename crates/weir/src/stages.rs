//! Stages of the target's I/O beside the steps of an examination or the trials of an experiment, by programs in the
//! kernel where they are allowed.

use weir_blocktrace::StageTable;
use weir_core::target::TargetFacts;

/// A watch over the whole, of which every step takes its part; or why there is none.
pub struct StageWatch {
    watch: Result<session::Watch, String>,
    before: StageTable,
}

impl StageWatch {
    /// Begins; `wanted` unless the user said no.
    pub fn begin(target: &TargetFacts, wanted: bool) -> StageWatch {
        StageWatch::begin_as(target, wanted, false)
    }

    /// Begins with every bio followed from its Q, as in recordings: it costs more, and Q2C is seen.
    pub fn begin_in_full(target: &TargetFacts) -> StageWatch {
        StageWatch::begin_as(target, true, true)
    }

    fn begin_as(target: &TargetFacts, wanted: bool, in_full: bool) -> StageWatch {
        let devices: Vec<_> = target.request_layers().iter().map(|layer| layer.number).collect();
        let watch = if !wanted {
            Err("--no-trace was given".to_string())
        } else if devices.is_empty() {
            Err("no block device with requests is visible".to_string())
        } else {
            session::Watch::start(devices, in_full)
        };
        StageWatch { watch, before: StageTable::default() }
    }

    /// Why stages are not seen, if they are not.
    pub fn unseen(&self) -> Option<String> {
        self.watch.as_ref().err().cloned()
    }

    /// A step begins.
    pub fn step(&mut self) {
        if let Ok(watch) = &mut self.watch {
            self.before = watch.table();
        }
    }

    /// The step's part.
    pub fn taken(&mut self) -> Option<StageTable> {
        let table = self.watch.as_mut().ok()?.table();
        Some(table.since(&self.before))
    }
}

#[cfg(feature = "trace")]
mod session {
    //! A session of weir's programs in the kernel.

    use weir_blocktrace::StageTable;
    use weir_core::target::DeviceNumber;
    use weir_kernel::live::{Detail, Options, StageSession};

    /// The session. What its default detail costs is little.
    pub struct Watch(StageSession);

    impl Watch {
        /// Starts one, or says what is missing.
        pub fn start(devices: Vec<DeviceNumber>, in_full: bool) -> Result<Watch, String> {
            let detail = if in_full { Detail::Full } else { Detail::Default };
            StageSession::start(&Options { devices, detail, ..Options::default() })
                .map(Watch)
                .map_err(|why| why.to_string())
        }

        /// All counted so far.
        pub fn table(&mut self) -> StageTable {
            self.0.snapshot().table
        }
    }
}

#[cfg(not(feature = "trace"))]
mod session {
    //! Built without programs for the kernel.

    use weir_blocktrace::StageTable;
    use weir_core::target::DeviceNumber;

    /// Never there.
    pub enum Watch {}

    impl Watch {
        /// Says that it cannot be.
        pub fn start(_devices: Vec<DeviceNumber>, _in_full: bool) -> Result<Watch, String> {
            Err("this weir was built without tracing".to_string())
        }

        /// Never asked for.
        pub fn table(&mut self) -> StageTable {
            match *self {}
        }
    }
}
