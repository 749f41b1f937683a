//! The ladder of sources: programs in the kernel, the kernel's tracer, its counters. Each rung says what is lost on it.

use std::collections::BTreeMap;

use weir_blocktrace::{SlowIo, Source, StageTable};
use weir_core::target::Layer;
use weir_core::units::Nanos;
use weir_report::text::trace_live::About;

use super::{Request, kernel, lacking};
use crate::failure::{Lacking, Usage};

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

impl<'a> Wanted<'a> {
    /// What a request asks of its source.
    pub fn of(request: &'a Request) -> anyhow::Result<Wanted<'a>> {
        let Request { devices, pids, slow, detail, .. } = request;
        let cgroup = request.cgroup.as_deref().map(cgroup_id).transpose()?;
        Ok(Wanted { devices, pids: pids.clone(), cgroup, slow: *slow, detail: *detail })
    }

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

/// The id of a cgroup is the inode number of its folder (kernfs).
fn cgroup_id(path: &std::path::Path) -> anyhow::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let below = std::path::Path::new("/sys/fs/cgroup").join(path.strip_prefix("/").unwrap_or(path));
    let unified = std::path::Path::new("/sys/fs/cgroup/unified").join(path.strip_prefix("/").unwrap_or(path));
    let candidates = [path.to_path_buf(), below, unified];
    let found = candidates.iter().find(|path| path.join("cgroup.procs").exists());
    let id = found.and_then(|path| std::fs::metadata(path).ok()).map(|meta| meta.ino());
    id.ok_or_else(|| {
        let what = format!("{} is not a cgroup", path.display());
        Usage { what, hint: Some("give its folder under /sys/fs/cgroup".to_string()) }.into()
    })
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
        About { source: self.source, how: self.how.clone(), remarks: self.remarks.clone(), interval, slow }
    }
}

/// Opens the source that was asked for, or the best there is; what was given up on the way down is said.
pub fn open(source: Option<Source>, wanted: &Wanted<'_>) -> anyhow::Result<Opened> {
    match source {
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
