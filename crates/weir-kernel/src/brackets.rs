//! How programs learn that a call begins and returns.

use std::ffi::{CStr, OsStr};

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Func;
use libbpf_rs::{ObjectBuilder, OpenObject, Result};

use crate::loading;

/// How programs learn that a call begins and returns; `bpf/sync_brackets.h` has both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Brackets {
    /// By the kernel's functions that serve these very calls (fentry, fexit): no other call is touched.
    OwnCalls,
    /// By the tracepoints that every call of the machine passes (sys_enter, sys_exit), where functions cannot be traced.
    AllCalls,
}

/// What the kernel's functions that serve system calls are called before the call's name.
#[cfg(target_arch = "x86_64")]
const SERVED_BY: &str = "__x64_sys_";
#[cfg(target_arch = "aarch64")]
const SERVED_BY: &str = "__arm64_sys_";
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const SERVED_BY: &str = "__se_sys_";

const TRIAL: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/function.bpf.o"));

/// The names of the function that serves a call: on x86-64, one without arguments goes by the second.
fn serving(call: &str) -> [String; 2] {
    [format!("{SERVED_BY}{call}"), format!("__do_sys_{call}")]
}

impl Brackets {
    /// The cheapest way this kernel has; traces a function for an instant.
    pub fn here() -> Brackets {
        let traced = loading::quietly(trace_a_function);
        give_memory_back();
        traced.map_or(Brackets::AllCalls, |()| Brackets::OwnCalls)
    }

    /// What the kernel calls the programs' hooks.
    pub fn name(self) -> &'static str {
        match self {
            Brackets::OwnCalls => "fentry",
            Brackets::AllCalls => "sys_enter",
        }
    }
}

/// To load a program libbpf reads all the kernel's types, megabytes in small pieces, which the allocator would keep.
pub fn give_memory_back() {
    // SAFETY: it takes no pointers and may be called at any time.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}

fn trace_a_function() -> Result<()> {
    let mut object = ObjectBuilder::default().open_memory(TRIAL)?;
    loading::refuse_as_asked("function", &mut object);
    for mut program in object.progs_mut() {
        program.set_attach_target(0, Some(format!("{SERVED_BY}fsync")))?;
    }
    object.load()?.progs_mut().try_for_each(|program| program.attach().map(drop))
}

/// Whether a program runs when a call begins: it is attached after the one that sees the call's end.
pub fn is_begin(program: &OsStr) -> bool {
    ["on_enter", "enter_"].iter().any(|start| program.as_encoded_bytes().starts_with(start.as_bytes()))
}

/// The tracepoint of a program that every call of the machine passes; `None` of all other programs.
pub fn every_call(program: &OsStr) -> Option<&'static CStr> {
    match program.to_str()? {
        "on_enter" => Some(c"sys_enter"),
        "on_exit" => Some(c"sys_exit"),
        _ => None,
    }
}

/// The system call whose function a program is for; `None` of all other programs.
fn own_call(program: &str) -> Option<&str> {
    program.strip_prefix("enter_").or_else(|| program.strip_prefix("exit_"))
}

/// Has the programs of one way loaded, and not the other's.
///
/// # Errors
/// The kernel does not describe itself, or not the function that serves a call.
pub fn choose(object: &mut OpenObject, brackets: Brackets) -> Result<()> {
    // Megabytes, read only where they are asked, and given back before libbpf reads its own to load the programs.
    let types = if brackets == Brackets::OwnCalls { Some(Btf::from_vmlinux()?) } else { None };
    for mut program in object.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        if let Some(call) = own_call(&name) {
            program.set_autoload(types.is_some());
            if let Some(types) = &types {
                let [usual, other] = serving(call);
                let is_usual = types.type_by_name::<Func<'_>>(&usual).is_some();
                program.set_attach_target(0, Some(if is_usual { usual } else { other }))?;
            }
        } else if every_call(program.name()).is_some() {
            program.set_autoload(brackets == Brackets::AllCalls);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_told_apart_by_their_names() {
        for (program, call, begins) in [
            ("enter_fsync", Some("fsync"), true),
            ("exit_sync_file_range", Some("sync_file_range"), false),
            ("on_enter", None, true),
            ("on_enter_ring_req", None, true),
            ("on_exit", None, false),
            ("on_task_gone", None, false),
        ] {
            assert_eq!((own_call(program), is_begin(OsStr::new(program))), (call, begins), "{program}");
        }
    }
}
