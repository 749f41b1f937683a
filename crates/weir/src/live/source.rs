//! The ladder of sources: programs in the kernel, the kernel's tracer, its counters. Each rung says what is lost on it.

use std::collections::BTreeMap;

use weir_blocktrace::{SlowIo, Source, StageTable};
use weir_core::target::Layer;
use weir_core::units::Nanos;
use weir_report::text::trace_live::About;

use super::kernel;
use crate::failure::Lacking;

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
    fn beyond_counters(&self) -> Option<&'static str> {
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
    fn after(mut self, tried: Vec<String>) -> Opened {
        self.remarks = tried.into_iter().chain(self.remarks).collect();
        self
    }

    /// What stays the same while watching.
    pub fn about(&self, interval: Nanos, slow: Option<Nanos>) -> About {
        let (how, remarks) = (self.how.clone(), self.remarks.clone());
        About { source: self.source, how, remarks, interval, slow }
    }
}

/// Opens the source that was asked for, or the best there is; what was given up on the way down is said.
pub fn open(choice: Option<Source>, wanted: &Wanted<'_>) -> anyhow::Result<Opened> {
    match choice {
        Some(Source::Bpf) => kernel::bpf(wanted).map_err(|why| lacking(Source::Bpf, &why.to_string())),
        Some(Source::Tracefs) => {
            kernel::tracer(wanted).map_err(|why| lacking(Source::Tracefs, &why.to_string()))
        }
        Some(Source::Diskstats) => diskstats(wanted),
        None => best(wanted),
    }
}

fn best(wanted: &Wanted<'_>) -> anyhow::Result<Opened> {
    let no_bpf = match kernel::bpf(wanted) {
        Ok(opened) => return Ok(opened),
        Err(why) => format!("no programs in the kernel: {why}"),
    };
    let no_tracer = match kernel::tracer(wanted) {
        Ok(opened) => return Ok(opened.after(vec![no_bpf])),
        Err(why) => format!("no tracer: {why}"),
    };
    match wanted.beyond_counters() {
        None => Ok(diskstats(wanted)?.after(vec![no_bpf, no_tracer])),
        Some(option) => {
            let what =
                format!("{option} needs single requests, which cannot be seen here: {no_bpf}; {no_tracer}");
            let hint = Some(format!("run it as root, or leave {option} out"));
            Err(Lacking { what, hint }.into())
        }
    }
}

/// The kernel's counters are read with every frame anyway; nothing else is counted.
struct Counters;

impl Watch for Counters {
    fn counted(&mut self) -> anyhow::Result<Counted> {
        Ok(Counted::default())
    }
}

fn diskstats(wanted: &Wanted<'_>) -> anyhow::Result<Opened> {
    if let Some(option) = wanted.beyond_counters() {
        let why = format!("{option} needs single requests, and counters do not have them");
        return Err(lacking(Source::Diskstats, &why));
    }
    let remarks = Source::Diskstats.loses().map(|what| format!("not shown: {what}")).into_iter().collect();
    Ok(Opened::new(Box::new(Counters), Source::Diskstats, "the kernel's counters", remarks))
}

/// What a source needs that is not there, with the way out.
fn lacking(source: Source, why: &str) -> anyhow::Error {
    let what = format!("the source {} cannot be used here: {why}", source.name());
    let hint = match source {
        Source::Bpf => "run it as root, or let --source auto take the best there is",
        Source::Tracefs => "run it as root, or use --source diskstats, which needs no privilege",
        Source::Diskstats => "/proc/diskstats must be readable",
    };
    Lacking { what, hint: Some(hint.to_string()) }.into()
}
