//! The ladder of sources: programs in the kernel, the kernel's tracer, its counters. Each rung says what is lost on it.

use weir_blocktrace::Source;

use super::kernel;
use super::source::{Counted, Opened, Wanted, Watch};
use crate::failure::Lacking;

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
