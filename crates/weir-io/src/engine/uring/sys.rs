//! The system calls, constants and structures of io_uring (include/uapi/linux/io_uring.h).

use std::io;

pub const OFF_SQ_RING: i64 = 0;
pub const OFF_SQES: i64 = 0x1000_0000;

pub const SETUP_IOPOLL: u32 = 1 << 0;
pub const SETUP_CQSIZE: u32 = 1 << 3;
pub const SETUP_CLAMP: u32 = 1 << 4;
pub const SETUP_SUBMIT_ALL: u32 = 1 << 7;
pub const SETUP_COOP_TASKRUN: u32 = 1 << 8;
pub const SETUP_SINGLE_ISSUER: u32 = 1 << 12;
pub const SETUP_DEFER_TASKRUN: u32 = 1 << 13;
pub const SETUP_NO_SQARRAY: u32 = 1 << 16;

pub const FEAT_SINGLE_MMAP: u32 = 1 << 0;
pub const FEAT_EXT_ARG: u32 = 1 << 8;
pub const FEAT_MIN_TIMEOUT: u32 = 1 << 15;

pub const ENTER_GETEVENTS: u32 = 1 << 0;
pub const ENTER_EXT_ARG: u32 = 1 << 3;
pub const ENTER_REGISTERED_RING: u32 = 1 << 4;

pub const REGISTER_BUFFERS: u32 = 0;
pub const REGISTER_FILES: u32 = 2;
pub const REGISTER_RING_FDS: u32 = 20;

pub const OP_FSYNC: u8 = 3;
pub const OP_READ_FIXED: u8 = 4;
pub const OP_WRITE_FIXED: u8 = 5;
pub const OP_SYNC_FILE_RANGE: u8 = 8;
pub const OP_READ: u8 = 22;
pub const OP_WRITE: u8 = 23;

pub const SQE_FIXED_FILE: u8 = 1 << 0;
pub const FSYNC_DATASYNC: u32 = 1;

/// `struct io_uring_sqe`, as far as it is used here.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Submission {
    pub opcode: u8,
    pub flags: u8,
    pub priority: u16,
    pub fd: i32,
    pub offset: u64,
    pub address: u64,
    pub len: u32,
    pub op_flags: u32,
    pub user_data: u64,
    pub buffer_index: u16,
    pub personality: u16,
    pub splice_fd: i32,
    pub pad: [u64; 2],
}

/// `struct io_uring_cqe`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Completion {
    pub user_data: u64,
    pub result: i32,
    pub flags: u32,
}

/// `struct io_sqring_offsets`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct SubmissionOffsets {
    pub head: u32,
    pub tail: u32,
    pub ring_mask: u32,
    pub ring_entries: u32,
    pub flags: u32,
    pub dropped: u32,
    pub array: u32,
    pub reserved: u32,
    pub user_address: u64,
}

/// `struct io_cqring_offsets`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct CompletionOffsets {
    pub head: u32,
    pub tail: u32,
    pub ring_mask: u32,
    pub ring_entries: u32,
    pub overflow: u32,
    pub completions: u32,
    pub flags: u32,
    pub reserved: u32,
    pub user_address: u64,
}

/// `struct io_uring_params`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Params {
    pub sq_entries: u32,
    pub cq_entries: u32,
    pub flags: u32,
    pub sq_thread_cpu: u32,
    pub sq_thread_idle: u32,
    pub features: u32,
    pub wq_fd: u32,
    pub reserved: [u32; 3],
    pub sq: SubmissionOffsets,
    pub cq: CompletionOffsets,
}

/// `struct io_uring_getevents_arg`; `min_wait_us` counts from Linux 6.12 on.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct WaitArgument {
    pub sigmask: u64,
    pub sigmask_bytes: u32,
    pub min_wait_us: u32,
    pub timespec: u64,
}

/// `struct __kernel_timespec`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Timespec {
    pub seconds: i64,
    pub nanoseconds: i64,
}

/// `struct io_uring_rsrc_update`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct ResourceUpdate {
    pub offset: u32,
    pub reserved: u32,
    pub data: u64,
}

/// io_uring_setup(2).
pub fn setup(entries: u32, params: &mut Params) -> io::Result<i32> {
    // SAFETY: `params` is valid for the call to read and fill.
    let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, entries, std::ptr::from_mut(params)) };
    if fd >= 0 { Ok(fd as i32) } else { Err(io::Error::last_os_error()) }
}

/// io_uring_register(2) over `count` items at `items`.
///
/// # Safety
/// `items` points to `count` valid items of the kind that `opcode` expects, and what they refer to (buffers, files)
/// stays in place as long as the ring lives.
pub unsafe fn register<T>(fd: i32, opcode: u32, items: *const T, count: u32) -> io::Result<i32> {
    // SAFETY: promised by the caller.
    let answer = unsafe { libc::syscall(libc::SYS_io_uring_register, fd, opcode, items, count) };
    if answer >= 0 { Ok(answer as i32) } else { Err(io::Error::last_os_error()) }
}

/// io_uring_enter(2): submits and, with [`ENTER_GETEVENTS`], waits.
pub fn enter(fd: i32, submit: u32, min: u32, flags: u32, argument: Option<&WaitArgument>) -> io::Result<u32> {
    let (pointer, bytes) = match argument {
        Some(argument) => (std::ptr::from_ref(argument).cast::<libc::c_void>(), size_of::<WaitArgument>()),
        None => (std::ptr::null(), 0),
    };
    // SAFETY: the argument is null or valid for the length given; the ring behind `fd` is ours.
    let answer = unsafe { libc::syscall(libc::SYS_io_uring_enter, fd, submit, min, flags, pointer, bytes) };
    if answer >= 0 { Ok(answer as u32) } else { Err(io::Error::last_os_error()) }
}
