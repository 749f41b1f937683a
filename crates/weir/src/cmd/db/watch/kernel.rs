//! Syncs of the server's processes, by programs in the kernel where they are allowed.

#[cfg(feature = "trace")]
pub use with::Syncs;
#[cfg(not(feature = "trace"))]
pub use without::Syncs;

#[cfg(feature = "trace")]
mod with {
    //! A session of weir's programs.

    use weir_core::oltp::limits::SyncUse;
    use weir_core::stats::Histogram;
    use weir_trace::syncs::{Session, Whose};

    /// Syncs counted so far.
    pub struct Syncs {
        session: Session,
        ended: Histogram,
    }

    impl Syncs {
        /// Loads and attaches the programs for these processes, or says what is missing.
        pub fn start(processes: &[u32]) -> Result<Syncs, String> {
            let whose = Whose::Listed(processes.to_vec());
            let session = Session::start(&whose).map_err(|why| why.to_string())?;
            Ok(Syncs { session, ended: Histogram::new() })
        }

        /// Measuring begins, with these processes.
        pub fn begin(&mut self, processes: &[u32], now_ns: u64) {
            // More than fit keep the list as it was.
            let _ = self.session.list(processes);
            self.session.look(now_ns);
            self.ended = Histogram::new();
        }

        /// Adds what ended since the look before.
        pub fn look(&mut self, now_ns: u64) {
            for look in self.session.look(now_ns).devices.into_values() {
                self.ended.merge(&look.syncs.ended);
            }
        }

        /// All that was counted.
        pub fn taken(&self) -> SyncUse {
            SyncUse {
                count: self.ended.count(),
                mean_ns: self.ended.mean().unwrap_or(0.0),
                p99_ns: self.ended.quantile(0.99).unwrap_or(0),
            }
        }
    }
}

#[cfg(not(feature = "trace"))]
mod without {
    //! Built without programs for the kernel.

    use weir_core::oltp::limits::SyncUse;

    /// Never there.
    pub enum Syncs {}

    impl Syncs {
        /// Says that it cannot be.
        pub fn start(_processes: &[u32]) -> Result<Syncs, String> {
            Err("this weir was built without tracing".to_string())
        }

        /// Never asked for.
        pub fn begin(&mut self, _processes: &[u32], _now_ns: u64) {
            match *self {}
        }

        /// Never asked for.
        pub fn look(&mut self, _now_ns: u64) {
            match *self {}
        }

        /// Never asked for.
        pub fn taken(&self) -> SyncUse {
            match *self {}
        }
    }
}
