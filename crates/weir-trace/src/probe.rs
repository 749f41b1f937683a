//! Whether this kernel and this user can run weir's BPF programs.

use std::mem::MaybeUninit;

use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};

mod skeleton {
    #![allow(
        missing_docs,
        clippy::all,
        clippy::undocumented_unsafe_blocks,
        clippy::unwrap_used,
        reason = "generated"
    )]
    include!(concat!(env!("OUT_DIR"), "/probe.skel.rs"));
}

/// Loads and attaches the smallest program there is, and takes it away again.
///
/// # Errors
/// What the kernel or libbpf said.
pub fn bpf_works() -> Result<(), libbpf_rs::Error> {
    let mut object = MaybeUninit::uninit();
    let mut loaded = skeleton::ProbeSkelBuilder::default().open(&mut object)?.load()?;
    loaded.attach()
}

/// The capabilities for which the kernel admits weir's programs: CAP_SYS_ADMIN alone, or the two others together
/// (capabilities(7)).
const CAPABILITIES: [(u32, &str); 2] = [(38, "CAP_PERFMON"), (39, "CAP_BPF")];
const CAP_SYS_ADMIN: u32 = 21;

/// Capabilities that this process lacks to run programs.
fn lacking() -> Vec<String> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let has = |capability: u32| effective & (1 << capability) != 0;
    if has(CAP_SYS_ADMIN) {
        return Vec::new();
    }
    CAPABILITIES
        .iter()
        .filter(|(capability, _)| !has(*capability))
        .map(|(_, name)| name.to_string())
        .collect()
}

/// The error to say at once where `what` cannot work, instead of what libbpf makes of it.
pub(crate) fn denial(what: &'static str) -> Option<crate::Error> {
    let lacking = lacking();
    if !lacking.is_empty() {
        return Some(crate::Error::Denied { what, lacking });
    }
    if !std::path::Path::new("/sys/kernel/btf/vmlinux").exists() {
        let lacking = "a description of its types, /sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF)".into();
        return Some(crate::Error::Unsupported { lacking });
    }
    None
}

/// What the kernel offers to live sessions, and what this user may use of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The kernel's release.
    pub kernel: String,
    /// Whether it describes its own types (/sys/kernel/btf/vmlinux), without which no program finds its fields.
    pub btf: bool,
    /// How programs can be attached: "tp_btf" or "raw_tp"; `None` where they cannot.
    pub attach: Option<&'static str>,
    /// Why not, in the kernel's words.
    pub refusal: Option<String>,
    /// Capabilities that are missing; CAP_SYS_ADMIN stands for all.
    pub lacking: Vec<String>,
    /// Block tracepoints that are there, by name.
    pub tracepoints: Vec<String>,
    /// Where tracefs is mounted and readable.
    pub tracefs: Option<std::path::PathBuf>,
    /// Lockdown mode, where it is not "none".
    pub lockdown: Option<String>,
}

/// Asks the kernel; attaches a program for an instant.
pub fn report() -> Report {
    Report { attach: bpf_works().is_ok().then_some("tp_btf"), ..Report::default() }
}

#[cfg(test)]
mod tests {
    #[test]
    fn loads() {
        println!("{:?}", super::bpf_works());
    }
}
