//! What the kernel offers to weir's BPF programs, and what this user may use of it.

use std::fs;
use std::path::{Path, PathBuf};

use libbpf_rs::ObjectBuilder;
use libbpf_rs::btf::{Btf, types};

use crate::brackets::Brackets;
use crate::{Error, loading};

const BY_BTF: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/probe.bpf.o"));
const RAW: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/probe_raw.bpf.o"));

/// Tracepoints that live sessions hook; the first two are the default detail's.
const TRACEPOINTS: [&str; 10] = [
    "block_rq_complete",
    "block_rq_issue",
    "block_bio_queue",
    "block_getrq",
    "block_split",
    "block_bio_backmerge",
    "block_bio_frontmerge",
    "block_rq_insert",
    "block_bio_complete",
    "block_rq_requeue",
];
/// The capabilities for which the kernel admits weir's programs: CAP_SYS_ADMIN alone, or these together
/// (capabilities(7)).
const CAPABILITIES: [(u32, &str); 2] = [(38, "CAP_PERFMON"), (39, "CAP_BPF")];
const CAP_SYS_ADMIN: u32 = 21;
/// With it the kernel shows where its functions are (kallsyms_show_value, kernel/ksyms_common.c); CAP_SYS_ADMIN is not asked.
const CAP_SYSLOG: (u32, &str) = (34, "CAP_SYSLOG");
const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// What the kernel offers to live sessions, and what this user may use of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The kernel's release.
    pub kernel: String,
    /// Whether it describes its own types (/sys/kernel/btf/vmlinux), without which no program finds its fields.
    pub btf: bool,
    /// How programs can be attached: "tp_btf" or "raw_tp"; `None` where they cannot.
    pub attach: Option<&'static str>,
    /// Why not, in libbpf's words.
    pub refusal: Option<String>,
    /// Where programs that bracket system calls run: at these calls alone ("fentry") or at every call ("sys_enter").
    pub brackets: Option<&'static str>,
    /// Capabilities that are missing: these together are enough, and so is CAP_SYS_ADMIN alone.
    pub lacking: Vec<String>,
    /// Block tracepoints that live sessions hook and the kernel has.
    pub tracepoints: Vec<String>,
    /// Those it lacks, as far as its types can be read.
    pub missing_tracepoints: Vec<String>,
    /// Where tracefs is mounted and can be read.
    pub tracefs: Option<PathBuf>,
    /// Lockdown mode, where it is not "none".
    pub lockdown: Option<String>,
}

/// Asks the kernel; attaches a program for an instant.
pub fn report() -> Report {
    let (tracepoints, missing_tracepoints) = tracepoints();
    let attached = attach();
    Report {
        kernel: fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_string(),
        btf: Path::new(TYPES).exists(),
        attach: attached.as_ref().ok().copied(),
        brackets: attached.is_ok().then(|| Brackets::here().name()),
        refusal: attached.err().map(|refused| format!("{refused:#}")),
        lacking: lacking(false),
        tracepoints,
        missing_tracepoints,
        tracefs: tracefs(),
        lockdown: lockdown(),
    }
}

/// Attaches the smallest program there is, and takes it away again.
fn attach() -> libbpf_rs::Result<&'static str> {
    loading::quietly(|| {
        attach_object("probe", BY_BTF)
            .map(|()| "tp_btf")
            .or_else(|refused| attach_object("probe_raw", RAW).map(|()| "raw_tp").map_err(|_| refused))
    })
}

fn attach_object(name: &str, object: &[u8]) -> libbpf_rs::Result<()> {
    let mut object = ObjectBuilder::default().open_memory(object)?;
    loading::refuse_as_asked(name, &mut object);
    let object = object.load()?;
    object.progs_mut().try_for_each(|program| program.attach().map(drop))
}

/// Those the kernel has, and those it lacks: each has a type of its own, `btf_trace_NAME`.
fn tracepoints() -> (Vec<String>, Vec<String>) {
    let Ok(types) = Btf::from_vmlinux() else { return (Vec::new(), Vec::new()) };
    let names = TRACEPOINTS.iter().map(|name| name.to_string());
    names.partition(|name| types.type_by_name::<types::Typedef<'_>>(&format!("btf_trace_{name}")).is_some())
}

/// Capabilities that this process lacks to run programs and, where these are wanted, to read addresses of the kernel's functions.
fn lacking(addresses: bool) -> Vec<String> {
    let status = weir_fs::read_lossily("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    lacking_of(effective, addresses)
}

fn lacking_of(effective: u64, addresses: bool) -> Vec<String> {
    let has = |capability: u32| effective & (1 << capability) != 0;
    let of_programs = CAPABILITIES.into_iter().filter(|_| !has(CAP_SYS_ADMIN));
    let all = of_programs.chain(addresses.then_some(CAP_SYSLOG));
    all.filter(|(capability, _)| !has(*capability)).map(|(_, name)| name.to_string()).collect()
}

/// The error to say at once where `what` cannot work, instead of what libbpf makes of it.
pub(crate) fn denial(what: &'static str) -> Option<Error> {
    denied(what, false)
}

/// The same of what needs addresses of the kernel's functions, which the kernel keeps from this process.
pub(crate) fn denial_without_addresses(what: &'static str) -> Option<Error> {
    denied(what, true)
}

fn denied(what: &'static str, addresses: bool) -> Option<Error> {
    let lacking = lacking(addresses);
    if !lacking.is_empty() {
        return Some(Error::Denied { what, lacking });
    }
    if !Path::new(TYPES).exists() {
        let lacking = format!("a description of its types, {TYPES} (CONFIG_DEBUG_INFO_BTF)");
        return Some(Error::Unsupported { lacking });
    }
    None
}

/// Where tracefs is mounted and can be read.
fn tracefs() -> Option<PathBuf> {
    let mounts = weir_fs::read_lossily("/proc/self/mounts").ok()?;
    let mut mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    mounts.find_map(|fields| match fields[..] {
        [_, place, "tracefs", ..] if fs::read_dir(place).is_ok() => Some(PathBuf::from(place)),
        _ => None,
    })
}

/// The mode in brackets of `none [integrity] confidentiality`; only the last forbids reading the kernel's memory.
fn lockdown() -> Option<String> {
    let modes = fs::read_to_string("/sys/kernel/security/lockdown").ok()?;
    lockdown_of(&modes)
}

fn lockdown_of(modes: &str) -> Option<String> {
    let (_, mode) = modes.split_once('[')?;
    let (mode, _) = mode.split_once(']')?;
    (mode != "none").then(|| mode.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        for (effective, of_programs, with_addresses) in [
            (0, &["CAP_PERFMON", "CAP_BPF"][..], &["CAP_PERFMON", "CAP_BPF", "CAP_SYSLOG"][..]),
            (1 << 39, &["CAP_PERFMON"], &["CAP_PERFMON", "CAP_SYSLOG"]),
            (1 << 38 | 1 << 39, &[], &["CAP_SYSLOG"]),
            (1 << 38 | 1 << 39 | 1 << 34, &[], &[]),
            (1 << 21, &[], &["CAP_SYSLOG"]),
        ] {
            assert_eq!(lacking_of(effective, false), of_programs, "{effective:x}");
            assert_eq!(lacking_of(effective, true), with_addresses, "{effective:x}");
        }
        assert_eq!(lockdown_of("[none] integrity confidentiality\n"), None);
        assert_eq!(lockdown_of("none integrity [confidentiality]\n").as_deref(), Some("confidentiality"));
    }

    #[test]
    fn a_report_is_consistent() {
        let report = report();
        assert_eq!(report.attach.is_some(), report.refusal.is_none(), "{report:?}");
        assert_eq!(report.attach.is_some(), report.brackets.is_some(), "{report:?}");
        assert!(
            report.attach.is_none()
                || (report.btf && report.tracepoints.contains(&"block_rq_complete".to_string()))
        );
        println!("{report:?}");
    }
}
