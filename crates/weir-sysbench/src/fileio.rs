//! The options of fileio, checked in sysbench's order.

use super::help;
use super::log::{Log, Quit};
use super::values::Values;
use weir_core::workload::spec::SyncMode;

/// What a run does to the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestMode {
    /// `seqwr`: makes the files anew and writes them from one end to the other.
    SequentialWrite,
    /// `seqrewr`: writes over existing files.
    SequentialRewrite,
    /// `seqrd`.
    SequentialRead,
    /// `rndrd`.
    RandomRead,
    /// `rndwr`.
    RandomWrite,
    /// `rndrw`: reads and writes in the ratio asked for.
    RandomMixed,
}

/// How the I/O is issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoMode {
    /// pread and pwrite.
    Sync,
    /// Linux native AIO, so many requests in flight per thread.
    Async {
        /// Requests in flight per thread.
        backlog: u32,
    },
    /// memcpy to and from a mapping.
    Mmap,
}

/// Flags the files are opened with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExtraFlags {
    /// O_SYNC.
    pub sync: bool,
    /// O_DSYNC.
    pub dsync: bool,
    /// O_DIRECT.
    pub direct: bool,
}

/// When files are synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fsync {
    /// Every file after this many requests; 0: never.
    pub frequency: u64,
    /// After each write.
    pub all: bool,
    /// At the end of the run.
    pub end: bool,
    /// How.
    pub mode: SyncMode,
}

/// What the options of fileio ask for.
#[derive(Debug, Clone, PartialEq)]
pub struct Fileio {
    /// Number of files.
    pub files: u32,
    /// Size of each: the total, divided and rounded down.
    pub file_size: u64,
    /// Bytes of each random request, and of each write of `prepare`.
    pub block_size: u64,
    /// Bytes of each sequential request.
    pub request_size: u64,
    /// Blocks merged into one sequential request; 0: not asked for.
    pub merged_requests: u32,
    /// What a run does; always there for `run`.
    pub test_mode: Option<TestMode>,
    /// How.
    pub io_mode: IoMode,
    /// Flags.
    pub flags: ExtraFlags,
    /// Syncs.
    pub fsync: Fsync,
    /// Reads for each write; of single precision, as sysbench compares with it.
    pub rw_ratio: f32,
}

impl TestMode {
    const ALL: [(&'static str, TestMode); 6] = [
        ("seqwr", TestMode::SequentialWrite),
        ("seqrewr", TestMode::SequentialRewrite),
        ("seqrd", TestMode::SequentialRead),
        ("rndrd", TestMode::RandomRead),
        ("rndwr", TestMode::RandomWrite),
        ("rndrw", TestMode::RandomMixed),
    ];

    /// Whether it goes from one end of the files to the other.
    pub fn is_sequential(self) -> bool {
        matches!(self, TestMode::SequentialWrite | TestMode::SequentialRewrite | TestMode::SequentialRead)
    }

    /// Whether it only reads.
    pub fn reads_only(self) -> bool {
        matches!(self, TestMode::SequentialRead | TestMode::RandomRead)
    }

    /// The words of the report.
    pub fn title(self) -> &'static str {
        match self {
            TestMode::SequentialWrite => "sequential write (creation)",
            TestMode::SequentialRewrite => "sequential rewrite",
            TestMode::SequentialRead => "sequential read",
            TestMode::RandomRead => "random read",
            TestMode::RandomWrite => "random write",
            TestMode::RandomMixed => "random r/w",
        }
    }
}

impl IoMode {
    /// The words of the report.
    pub fn title(self) -> &'static str {
        match self {
            IoMode::Sync => "synchronous",
            IoMode::Async { .. } => "asynchronous",
            IoMode::Mmap => "fast mmaped",
        }
    }
}

impl ExtraFlags {
    /// The flags as sysbench lists them, trailing space and all.
    pub fn title(self) -> String {
        let shown = [(self.sync, "sync "), (self.dsync, "dsync "), (self.direct, "directio")];
        let text: String = shown.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect();
        if text.is_empty() { "(none)".to_string() } else { text }
    }

    /// sysbench's number for a combination that it refuses to open files with: `direct` goes with nothing else.
    pub fn refused(self) -> Option<u32> {
        let value = u32::from(self.sync) + 2 * u32::from(self.dsync) + 4 * u32::from(self.direct);
        (value > 4).then_some(value)
    }
}

impl Fileio {
    /// Reads the options; `run`: the command is `run`, which needs a test mode.
    pub fn from_values(values: &Values, run: bool, log: &mut Log<'_>) -> Result<Fileio, Quit> {
        let (files, file_size) = layout(values, log)?;
        let test_mode = if run { Some(test_mode(values, log)?) } else { None };
        let io_mode = io_mode(values, log)?;
        let merged_requests = merged(values, log)?;
        let block = values.size("file-block-size") as i32;
        if block <= 0 {
            return Err(log.fatal(format!("Invalid value for file-block-size: {block}.")));
        }
        let block_size = block as u64;
        let flags = extra_flags(values, log)?;
        let fsync = fsync(values, log)?;
        let rw_ratio = values.double("file-rw-ratio", log)? as f32;
        if rw_ratio < 0.0 {
            return Err(log.fatal(format!("Invalid value for --file-rw-ratio: {rw_ratio:.6}.")));
        }
        let request_size = block_size * u64::from(merged_requests.max(1));
        if request_size > i32::MAX as u64 {
            return Err(log.fatal("Failed to allocate a memory buffer"));
        }
        let io_mode = if run { with_backlog(io_mode, values, log)? } else { io_mode };
        Ok(Fileio {
            files,
            file_size,
            block_size,
            request_size,
            merged_requests,
            test_mode,
            io_mode,
            flags,
            fsync,
            rw_ratio,
        })
    }

    /// Bytes of all files together.
    pub fn total_size(&self) -> u64 {
        self.file_size * u64::from(self.files)
    }

    /// The name of a file in the current folder.
    pub fn file_name(index: u32) -> String {
        format!("test_file.{index}")
    }
}

/// Number of files and size of each.
fn layout(values: &Values, log: &mut Log<'_>) -> Result<(u32, u64), Quit> {
    let number = values.int("file-num", log)?;
    let files = match u32::try_from(number) {
        Ok(files) if files > 0 => files,
        _ => return Err(log.fatal(format!("Invalid value for file-num: {number}"))),
    };
    let total = values.size("file-total-size") as i64;
    if total <= 0 {
        return Err(log.fatal(format!("Invalid value for file-total-size: {total}")));
    }
    let file_size = total as u64 / u64::from(files);
    if file_size == 0 {
        // sysbench divides by zero here.
        return Err(
            log.fatal(format!("Invalid value for file-total-size: {total} (less than a byte for each file)"))
        );
    }
    Ok((files, file_size))
}

fn test_mode(values: &Values, log: &mut Log<'_>) -> Result<TestMode, Quit> {
    let Some(text) = values.text("file-test-mode") else {
        let quit = log.fatal("Missing required argument: --file-test-mode\n");
        log.notice("fileio options:");
        log.raw(&help::list(super::options::FILEIO));
        return Err(quit);
    };
    let found = TestMode::ALL.iter().find(|(name, _)| *name == text).map(|(_, mode)| *mode);
    found.ok_or_else(|| log.fatal(format!("Invalid IO operations mode: {text}.")))
}

fn io_mode(values: &Values, log: &mut Log<'_>) -> Result<IoMode, Quit> {
    match values.text("file-io-mode").unwrap_or("sync") {
        "sync" => Ok(IoMode::Sync),
        "async" => Ok(IoMode::Async { backlog: 1 }),
        "mmap" => Ok(IoMode::Mmap),
        text => Err(log.fatal(format!("unknown I/O mode: {text}"))),
    }
}

/// The backlog is looked at only by a run that uses it, after everything else.
fn with_backlog(mode: IoMode, values: &Values, log: &mut Log<'_>) -> Result<IoMode, Quit> {
    if !matches!(mode, IoMode::Async { .. }) {
        return Ok(mode);
    }
    let number = values.int("file-async-backlog", log)?;
    match u32::try_from(number) {
        Ok(backlog) if backlog > 0 => Ok(IoMode::Async { backlog }),
        _ => Err(log.fatal(format!("Invalid value of file-async-backlog: {number}"))),
    }
}

fn merged(values: &Values, log: &mut Log<'_>) -> Result<u32, Quit> {
    let number = values.int("file-merged-requests", log)?;
    u32::try_from(number).map_err(|_| log.fatal(format!("Invalid value for file-merged-requests: {number}.")))
}

fn extra_flags(values: &Values, log: &mut Log<'_>) -> Result<ExtraFlags, Quit> {
    let mut flags = ExtraFlags::default();
    let list = values.list("file-extra-flags");
    for text in list {
        match text.as_str() {
            "sync" => flags.sync = true,
            "dsync" => flags.dsync = true,
            "direct" => flags.direct = true,
            // sysbench names the first of the list, whichever is wrong.
            _ => return Err(log.fatal(format!("Invalid value for file-extra-flags: {}", list[0]))),
        }
    }
    Ok(flags)
}

fn fsync(values: &Values, log: &mut Log<'_>) -> Result<Fsync, Quit> {
    let number = values.int("file-fsync-freq", log)?;
    let Ok(frequency) = u64::try_from(number) else {
        return Err(log.fatal(format!("Invalid value for file-fsync-freq: {number}.")));
    };
    let all = values.flag("file-fsync-all");
    let mode = match values.text("file-fsync-mode").unwrap_or("") {
        "fsync" => SyncMode::Fsync,
        "fdatasync" => SyncMode::Fdatasync,
        text => return Err(log.fatal(format!("Invalid fsync mode: {text}."))),
    };
    // Syncing after each write leaves nothing for the other two to do.
    Ok(Fsync {
        frequency: if all { 0 } else { frequency },
        all,
        end: values.flag("file-fsync-end") && !all,
        mode,
    })
}
