//! System calls that a throw-away server has no need for: those that make a user namespace, in which it would have every
//! capability over what is its own, and those that mount. What it mounted there would be what others find who look
//! through `/proc/PID/root`, and much of the kernel's code is only in reach of who has a capability. Those for keys are
//! refused, too: who starts a process gives it the keys of its session, whatever account it becomes.

use std::io;
use std::mem::offset_of;

/// The processor's calls; those of another architecture are numbered differently, and refused.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;
/// On x86-64 the calls of its 32-bit pointers have this bit, and are refused.
const X32: u32 = 0x4000_0000;

/// Refused as to one without rights. `clone3` is not among them: see [`filter`].
const REFUSED: [libc::c_long; 12] = [
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_mount_setattr,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
];

/// linux/bpf_common.h: a word of the call, jumps that compare it, and an answer.
const LOAD: u16 = 0x20;
const IS_EQUAL: u16 = 0x15;
const IS_AT_LEAST: u16 = 0x35;
const HAS_BITS: u16 = 0x45;
const ANSWER: u16 = 0x06;
/// linux/seccomp.h.
const ALLOW: u32 = 0x7fff_0000;
const ERRNO: u32 = 0x0005_0000;
const SET_MODE_FILTER: libc::c_long = 1;
/// What a kernel says that was built without filters.
const WITHOUT_FILTERS: [i32; 2] = [libc::ENOSYS, libc::EINVAL];
/// The filter is no reason for slower speculation.
const SPEC_ALLOW: libc::c_long = 4;

/// Whether a call may be made is asked of these instructions, from above.
pub(super) struct Filter(Vec<libc::sock_filter>);

impl Filter {
    /// The one for servers.
    pub fn of_servers() -> Filter {
        Filter(filter())
    }

    /// Puts it around this process and what it starts, for good. No new privileges must be possible any more. Only a
    /// system call: this runs between fork and exec.
    pub fn enter(&self) -> io::Result<()> {
        let length = u16::try_from(self.0.len()).map_err(io::Error::other)?;
        let program = libc::sock_fprog { len: length, filter: self.0.as_ptr().cast_mut() };
        // SAFETY: the kernel reads the program and its instructions, so many as it says, which live until here.
        let status =
            unsafe { libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, SPEC_ALLOW, &raw const program) };
        match io::Error::last_os_error() {
            error if status != 0 && !WITHOUT_FILTERS.contains(&error.raw_os_error().unwrap_or(0)) => {
                Err(error)
            }
            _ => Ok(()),
        }
    }
}

fn filter() -> Vec<libc::sock_filter> {
    let refused = ERRNO | libc::EPERM.unsigned_abs();
    let number = offset_of!(libc::seccomp_data, nr);
    let architecture = offset_of!(libc::seccomp_data, arch);
    // The lower half of the first argument; both processors have it first.
    let flags = offset_of!(libc::seccomp_data, args);
    let mut code = vec![
        load(architecture),
        jump(IS_EQUAL, ARCHITECTURE, 1, 0),
        answer(refused),
        load(number),
        jump(IS_AT_LEAST, X32, 0, 1),
        answer(refused),
        // Its flags lie in memory, where a filter cannot look; the C library takes clone in its place.
        jump(IS_EQUAL, word(libc::SYS_clone3), 0, 1),
        answer(ERRNO | libc::ENOSYS.unsigned_abs()),
    ];
    for call in REFUSED {
        code.extend([jump(IS_EQUAL, word(call), 0, 1), answer(refused)]);
    }
    code.extend([
        jump(IS_EQUAL, word(libc::SYS_clone), 1, 0),
        jump(IS_EQUAL, word(libc::SYS_unshare), 0, 3),
        load(flags),
        jump(HAS_BITS, libc::CLONE_NEWUSER.unsigned_abs(), 0, 1),
        answer(refused),
        answer(ALLOW),
    ]);
    code
}

fn word(call: libc::c_long) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

fn load(offset: usize) -> libc::sock_filter {
    instruction(LOAD, u32::try_from(offset).unwrap_or(u32::MAX), 0, 0)
}

/// Jumps over so many instructions where it is so, and where it is not.
fn jump(how: u16, value: u32, so: u8, not_so: u8) -> libc::sock_filter {
    instruction(how, value, so, not_so)
}

fn answer(value: u32) -> libc::sock_filter {
    instruction(ANSWER, value, 0, 0)
}

fn instruction(code: u16, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the filter answers to a call.
    fn answer_to(architecture: u32, call: u32, first: u64) -> u32 {
        let code = filter();
        let (mut at, mut held) = (0, 0);
        loop {
            let step = &code[at];
            at += 1;
            let is_so = match step.code {
                LOAD => {
                    held = match step.k as usize {
                        0 => call,
                        4 => architecture,
                        16 => first as u32,
                        other => panic!("nothing is at {other}"),
                    };
                    continue;
                }
                ANSWER => return step.k,
                IS_EQUAL => held == step.k,
                IS_AT_LEAST => held >= step.k,
                HAS_BITS => held & step.k != 0,
                other => panic!("{other:#x}"),
            };
            at += usize::from(if is_so { step.jt } else { step.jf });
        }
    }

    #[test]
    fn calls_are_answered_by_what_they_could_bring() {
        let refused = ERRNO | libc::EPERM as u32;
        let user = libc::CLONE_NEWUSER as u64;
        let thread = (libc::CLONE_VM | libc::CLONE_THREAD) as u64;
        for (call, first, expected) in [
            (libc::SYS_clone, thread, ALLOW),
            (libc::SYS_clone, user | 17, refused),
            (libc::SYS_unshare, libc::CLONE_FILES as u64, ALLOW),
            (libc::SYS_unshare, user, refused),
            (libc::SYS_clone3, 0, ERRNO | libc::ENOSYS as u32),
            (libc::SYS_mount, 0, refused),
            (libc::SYS_mount_setattr, 0, refused),
            (libc::SYS_keyctl, 0, refused),
            // Whatever bits the first argument of another call has.
            (libc::SYS_read, user, ALLOW),
            (libc::SYS_fdatasync, user, ALLOW),
            (libc::SYS_io_uring_setup, user, ALLOW),
        ] {
            assert_eq!(answer_to(ARCHITECTURE, call as u32, first), expected, "{call} {first:#x}");
            assert_eq!(answer_to(ARCHITECTURE ^ 1, call as u32, first), refused, "{call} elsewhere");
            assert_eq!(answer_to(ARCHITECTURE, call as u32 | X32, first), refused, "{call} x32");
        }
    }
}
