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
        let devices: Vec<_> = target.request_layers().iter().map(|layer| layer.number).collect();
        let watch = if !wanted {
            Err("--no-trace was given".to_string())
        } else if devices.is_empty() {
            Err("no block device with requests is visible".to_string())
        } else {
            session::Watch::start(devices)
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
    use weir_kernel::live::{Options, StageSession};

    /// The session, in its default detail: what it costs is little.
    pub struct Watch(StageSession);

    impl Watch {
        /// Starts one, or says what is missing.
        pub fn start(devices: Vec<DeviceNumber>) -> Result<Watch, String> {
            StageSession::start(&Options { devices, ..Options::default() })
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
        pub fn start(_devices: Vec<DeviceNumber>) -> Result<Watch, String> {
            Err("this weir was built without tracing".to_string())
        }

        /// Never asked for.
        pub fn table(&mut self) -> StageTable {
            match *self {}
        }
    }
}
