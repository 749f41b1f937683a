//! How programs learn that a call begins and returns.

use std::ffi::OsStr;

use libbpf_rs::{OpenObject, Result};

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

/// Whether a program runs when a call begins: it is attached after the one that sees the call's end.
pub fn is_begin(program: &OsStr) -> bool {
    program == "on_enter" || program.as_encoded_bytes().starts_with(b"enter_")
}

/// The system call whose function a program is for; `None` of all other programs.
fn own_call(program: &str) -> Option<&str> {
    program.strip_prefix("enter_").or_else(|| program.strip_prefix("exit_"))
}

/// Has the programs of one way loaded, and not the other's.
///
/// # Errors
/// The kernel does not describe the function that serves a call.
pub fn choose(object: &mut OpenObject, brackets: Brackets) -> Result<()> {
    for mut program in object.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        if let Some(call) = own_call(&name) {
            let is_wanted = brackets == Brackets::OwnCalls;
            program.set_autoload(is_wanted);
            if is_wanted {
                program.set_attach_target(0, Some(format!("{SERVED_BY}{call}")))?;
            }
        } else if name == "on_enter" || name == "on_exit" {
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
            ("on_exit", None, false),
            ("on_task_gone", None, false),
        ] {
            assert_eq!((own_call(program), is_begin(OsStr::new(program))), (call, begins), "{program}");
        }
    }
}
