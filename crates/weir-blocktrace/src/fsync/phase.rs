//! Which part of a sync a wait belongs to, by the functions on its stack.

use serde::{Deserialize, Serialize};

/// A place where waits are slept; see [`super::Analyst::site`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteId(pub(super) u32);

/// A part of a sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Phase {
    /// The file's own data: writeback of its pages, or direct I/O.
    OwnData,
    /// The file system's journal or log: jbd2, fast commit, xfs' log, btrfs' log tree or transaction; metadata
    /// written at once where there is none.
    Journal,
    /// A flush of the device's cache that the task asked for itself.
    Flush,
    /// Submission held up: no free request or tag, or writeback throttling (wbt, iocost, iolatency).
    RequestQueue,
    /// A pause in balance_dirty_pages.
    DirtyPause,
    /// A lock of the file or the file system that another task held.
    Lock,
    /// Reading what the sync needs and memory did not hold.
    Read,
    /// Slept in a place that none of the rules knows.
    Other,
    /// On a CPU.
    Cpu,
    /// Could have run, had no CPU.
    RunQueue,
    /// The stack of the wait was not taken, and no other of that process was either.
    Unknown,
}

impl Phase {
    /// How many there are.
    pub const COUNT: usize = 11;

    /// In the order of reports.
    pub const ALL: [Phase; Phase::COUNT] = [
        Phase::OwnData,
        Phase::Journal,
        Phase::Flush,
        Phase::RequestQueue,
        Phase::DirtyPause,
        Phase::Lock,
        Phase::Read,
        Phase::Other,
        Phase::Cpu,
        Phase::RunQueue,
        Phase::Unknown,
    ];

    /// As in reports.
    pub fn name(self) -> &'static str {
        match self {
            Phase::OwnData => "own data",
            Phase::Journal => "journal",
            Phase::Flush => "flush",
            Phase::RequestQueue => "submission",
            Phase::DirtyPause => "dirty pause",
            Phase::Lock => "lock",
            Phase::Read => "read",
            Phase::Other => "elsewhere",
            Phase::Cpu => "on CPU",
            Phase::RunQueue => "no free CPU",
            Phase::Unknown => "not sampled",
        }
    }
}

/// Beginnings of function names and what a wait under them is. The first line that any frame fits decides, so
/// that a flush inside a journal commit is a flush, and a lock inside a journal commit is the journal.
const RULES: [(Phase, &[&str]); 8] = [
    (
        Phase::Flush,
        &["blkdev_issue_flush", "xfs_blkdev_issue_flush", "wait_dev_flush", "barrier_all_devices"],
    ),
    (Phase::DirtyPause, &["balance_dirty_pages"]),
    (
        Phase::Journal,
        &[
            "jbd2_",
            "__jbd2_",
            "ext4_fc_",
            "ext4_force_commit",
            "ext4_fsync_journal",
            "start_this_handle",
            "add_transaction_credits",
            "wait_transaction_locked",
            "xfs_log_",
            "xlog_",
            "xfs_trans_alloc",
            "xfs_trans_commit",
            "__xfs_trans_commit",
            "btrfs_sync_log",
            "btrfs_log_",
            "btrfs_commit_transaction",
            "btrfs_wait_for_commit",
            "btrfs_start_transaction",
            "btrfs_join_transaction",
            "start_transaction",
            "wait_current_trans",
            "__sync_dirty_buffer",
            "sync_mapping_buffers",
            "ext4_write_inode",
            "wait_log_commit",
            "wait_for_writer",
            "write_all_supers",
            "f2fs_write_checkpoint",
            "f2fs_issue_checkpoint",
        ],
    ),
    (
        Phase::RequestQueue,
        &[
            "blk_mq_get_tag",
            "rq_qos_wait",
            "wbt_wait",
            "ioc_rqos_throttle",
            "blkcg_iolatency",
            "blk_queue_enter",
            "__bio_queue_enter",
            "__blk_mq_alloc_requests",
            "blk_mq_alloc_request",
        ],
    ),
    (
        Phase::Read,
        &[
            "xfs_buf_read",
            "xfs_buf_iowait",
            "ext4_read_bh",
            "ext4_read_block_bitmap",
            "ext4_mb_init_cache",
            "ext4_wait_block_bitmap",
            "filemap_read",
            "read_extent_buffer",
            "read_tree_block",
        ],
    ),
    (
        Phase::OwnData,
        &[
            "folio_wait_writeback",
            "wait_on_page_writeback",
            "__filemap_fdatawait_range",
            "filemap_fdatawait",
            "file_write_and_wait_range",
            "filemap_write_and_wait_range",
            "btrfs_wait_ordered",
            "btrfs_start_ordered_extent",
            "iomap_dio_",
            "__iomap_dio_rw",
            "blkdev_direct_IO",
            "__blkdev_direct_IO",
            "blkdev_direct_write",
            "blkdev_dio",
            "do_writepages",
            "sync_inodes_sb",
            "sync_bdevs",
            "f2fs_wait_on_page_writeback",
        ],
    ),
    (
        Phase::Lock,
        &[
            "rwsem_down_",
            "__mutex_lock",
            "mutex_lock",
            "down_read",
            "down_write",
            "__down",
            "__folio_lock",
            "__lock_page",
            "xfs_buf_lock",
            "__lock_buffer",
            "xfs_iflock",
            "__xfs_iunpin_wait",
            "xfs_iunpin",
        ],
    ),
    (Phase::OwnData, &["folio_wait_bit", "wait_on_page_bit"]),
];

/// Frames that every wait has and that say nothing about it.
const SCHEDULER: [&str; 22] = [
    "__schedule",
    "schedule",
    "io_schedule",
    "io_schedule_timeout",
    "schedule_timeout",
    "__wait_for_common",
    "wait_for_completion",
    "wait_for_completion_io",
    "wait_for_completion_io_timeout",
    "bit_wait_io",
    "bit_wait",
    "__wait_on_bit",
    "out_of_line_wait_on_bit",
    "folio_wait_bit_common",
    "folio_wait_bit",
    "wait_on_page_bit",
    "wait_on_page_bit_common",
    "preempt_schedule",
    "preempt_schedule_common",
    "schedule_preempt_disabled",
    "__cond_resched",
    "preempt_schedule_irq",
];

/// The phase of a stack, innermost function first.
pub(super) fn classify(frames: &[&str]) -> Phase {
    let fits = |names: &[&str]| frames.iter().any(|frame| names.iter().any(|name| frame.starts_with(name)));
    RULES.iter().find(|(_, names)| fits(names)).map_or(Phase::Other, |(phase, _)| *phase)
}

/// A stack in a few words: the innermost functions that are not the scheduler's, and the outermost of the file
/// system.
pub(super) fn describe(frames: &[&str]) -> String {
    const SHOWN: usize = 3;
    let telling = frames.iter().copied().filter(|frame| !SCHEDULER.contains(frame) && !is_entry(frame));
    let shown: Vec<&str> = telling.take(SHOWN).collect();
    if shown.is_empty() { frames.first().copied().unwrap_or("?").to_string() } else { shown.join(" < ") }
}

fn is_entry(frame: &str) -> bool {
    ["do_syscall_64", "entry_SYSCALL", "x64_sys_call", "__x64_sys", "__arm64_sys", "el0", "invoke_syscall"]
        .iter()
        .any(|name| frame.starts_with(name))
}
