//! Syncs of the server's processes, by programs in the kernel where they are allowed.

#[cfg(feature = "trace")]
pub use with::Syncs;
#[cfg(not(feature = "trace"))]
pub use without::Syncs;

#[cfg(feature = "trace")]
mod with {
    //! A session of weir's programs.

    use weir_core::stats::CoarseHistogram;
    use weir_kernel::sync_sensor::{Brackets, SyncSession, Whose};
    use weir_oltp::limits::SyncUse;

    /// Where every call of the machine pays for the watching, it lasts so long,
    const GLANCE_NS: u64 = 500_000_000;
    /// and longer where fewer syncs than this have ended by then,
    const ENOUGH: u64 = 100;
    /// but not longer than this;
    const GLANCE_MAX_NS: u64 = 8_000_000_000;
    /// and then it rests so many times as long.
    const REST: u64 = 7;

    /// Syncs counted so far.
    pub struct Syncs {
        session: SyncSession,
        ended: CoarseHistogram,
        eye: Eye,
        /// For how long they were watched for.
        watched_ns: u64,
        /// What the programs could not keep.
        lost: u64,
        /// Whether the programs ever counted this process's own calls, which it makes at every look.
        answers: bool,
    }

    /// Whether it watches now.
    #[derive(Clone, Copy)]
    enum Eye {
        /// Since then, and how many had ended by then.
        Open { since_ns: u64, ended: u64 },
        /// Until then.
        Shut { until_ns: u64 },
    }

    impl Syncs {
        /// Loads and attaches the programs for a server's first process and all that it starts, those included that live
        /// between two looks only; or says what is missing.
        pub fn start(process: u32) -> Result<Syncs, String> {
            let session = SyncSession::start(&Whose::Descendants(process)).map_err(|why| why.to_string())?;
            let eye = Eye::Open { since_ns: 0, ended: 0 };
            Ok(Syncs { session, ended: CoarseHistogram::new(), eye, watched_ns: 0, lost: 0, answers: false })
        }

        /// Measuring begins.
        pub fn begin(&mut self, now_ns: u64) {
            self.session.look(now_ns);
            (self.ended, self.watched_ns, self.lost) = (CoarseHistogram::new(), 0, 0);
            self.eye = Eye::Open { since_ns: now_ns, ended: 0 };
        }

        /// Adds what ended since the look before.
        pub fn look(&mut self, now_ns: u64) {
            match self.eye {
                Eye::Open { since_ns, ended } => {
                    self.add(now_ns);
                    let (glance_ns, seen) = (now_ns - since_ns, self.ended.count() - ended);
                    let enough = glance_ns >= GLANCE_NS && seen >= ENOUGH || glance_ns >= GLANCE_MAX_NS;
                    if enough && self.session.brackets() == Brackets::AllCalls {
                        self.session.rest();
                        self.watched_ns += glance_ns;
                        self.eye = Eye::Shut { until_ns: now_ns + REST * glance_ns };
                    }
                }
                // Where it cannot be opened again, it stays shut.
                Eye::Shut { until_ns } if now_ns >= until_ns && self.session.wake().is_ok() => {
                    self.eye = Eye::Open { since_ns: now_ns, ended: self.ended.count() };
                }
                Eye::Shut { .. } => {}
            }
        }

        /// Measuring has ended.
        pub fn end(&mut self, now_ns: u64) {
            if let Eye::Open { since_ns, .. } = self.eye {
                self.add(now_ns);
                self.watched_ns += now_ns - since_ns;
            }
        }

        fn add(&mut self, now_ns: u64) {
            let look = self.session.look(now_ns);
            self.lost += look.sensor.lost;
            self.answers |= look.sensor.silent_ns == 0;
            for look in look.devices.into_values() {
                self.ended.merge(&look.syncs.ended);
            }
        }

        /// All that was counted.
        ///
        /// # Errors
        /// Programs that count nothing say nothing of the server.
        pub fn taken(&self) -> Result<SyncUse, String> {
            if !self.answers {
                return Err("the programs in the kernel count no calls, not even weir's own".to_string());
            }
            Ok(SyncUse {
                count: self.ended.count(),
                lost: self.lost,
                watched_ns: self.watched_ns,
                mean_ns: self.ended.mean().unwrap_or(0.0),
                p99_ns: self.ended.quantile(0.99).unwrap_or(0),
            })
        }
    }
}

#[cfg(not(feature = "trace"))]
mod without {
    //! Built without programs for the kernel.

    use weir_oltp::limits::SyncUse;

    /// Never there.
    pub enum Syncs {}

    impl Syncs {
        /// Says that it cannot be.
        pub fn start(_process: u32) -> Result<Syncs, String> {
            Err("this weir was built without tracing".to_string())
        }

        /// Never asked for.
        pub fn begin(&mut self, _now_ns: u64) {
            match *self {}
        }

        /// Never asked for.
        pub fn look(&mut self, _now_ns: u64) {
            match *self {}
        }

        /// Never asked for.
        pub fn end(&mut self, _now_ns: u64) {
            match *self {}
        }

        /// Never asked for.
        pub fn taken(&self) -> Result<SyncUse, String> {
            match *self {}
        }
    }
}
