//! A source of figures: what is asked of it, and what it gives.

use std::collections::BTreeMap;

use weir_blocktrace::{SlowIo, Source, StageTable};
use weir_core::target::Layer;
use weir_core::units::Nanos;
use weir_report::text::trace_live::About;

/// What a source has counted since it was opened.
#[derive(Default)]
pub struct Counted {
    /// Stages; absent where the source has none.
    pub table: Option<StageTable>,
    /// What it lost, by reason.
    pub lost: BTreeMap<String, u64>,
    /// Time spent in the kernel for it, ns, where known.
    pub kernel_ns: Option<u64>,
}

/// A source under way.
pub trait Watch {
    /// All that was counted so far.
    fn counted(&mut self) -> anyhow::Result<Counted>;

    /// Slow requests since the last call, in order of completion.
    fn slow(&mut self) -> Vec<SlowIo> {
        Vec::new()
    }

    /// Takes in what has piled up; called several times a second.
    fn drain(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
}

/// What is asked of a source.
pub struct Wanted<'a> {
    /// Devices; none means all.
    pub devices: &'a [Layer],
    /// Processes; none means all.
    pub pids: Vec<u32>,
    /// The id of a cgroup (v2).
    pub cgroup: Option<u64>,
    /// From when on a request is slow.
    pub slow: Option<Nanos>,
    /// Every bio instead of every request.
    pub detail: bool,
}

impl Wanted<'_> {
    /// What only stages can give, as typed.
    pub fn beyond_counters(&self) -> Option<&'static str> {
        let asked = [
            (!self.pids.is_empty(), "--pid"),
            (self.cgroup.is_some(), "--cgroup"),
            (self.slow.is_some(), "--slow"),
            (self.detail, "--detail"),
        ];
        asked.into_iter().find(|(asked, _)| *asked).map(|(_, name)| name)
    }
}

/// A source that was opened, and what had to be given up for it.
pub struct Opened {
    /// The source.
    pub watch: Box<dyn Watch>,
    /// Which it is.
    source: Source,
    /// Hooks and detail in a few words.
    how: String,
    /// Why better sources are not used, and what is lost.
    remarks: Vec<String>,
}

impl Opened {
    /// A source under way, and what it cannot show.
    pub fn new(watch: Box<dyn Watch>, source: Source, how: &str, remarks: Vec<String>) -> Opened {
        Opened { watch, source, how: how.to_string(), remarks }
    }

    /// The same, after better ones were tried in vain.
    pub fn after(mut self, tried: Vec<String>) -> Opened {
        self.remarks = tried.into_iter().chain(self.remarks).collect();
        self
    }

    /// What stays the same while watching.
    pub fn about(&self, interval: Nanos, slow: Option<Nanos>) -> About {
        let (how, remarks) = (self.how.clone(), self.remarks.clone());
        About { source: self.source, how, remarks, interval, slow }
    }
}
