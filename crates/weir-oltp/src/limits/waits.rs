//! What a session of a server is doing at one moment, from what the server says of it and where its thread sleeps.

use serde::{Deserialize, Serialize};

/// What a session does or waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// Its thread runs or waits for a processor.
    Cpu,
    /// The client's next statement.
    Client,
    /// Its commit: the log's write and sync, or the leader of the group that makes them.
    Commit,
    /// A standby or replica that has to confirm its commit.
    Replica,
    /// Pages from the file.
    Read,
    /// Room: dirty pages or log that have to be written first.
    WriteBack,
    /// A row, a table or a transaction that another session holds.
    Lock,
    /// Something inside the server: latches, pins, mutexes.
    Latch,
    /// Anything else.
    Other,
}

/// Where a thread that is not on a processor sleeps, by its system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OffCpu {
    /// It does not sleep: it runs or waits for a processor.
    Runs,
    /// recv, poll, epoll: for somebody to say something.
    Socket,
    /// fsync, fdatasync, sync_file_range, msync.
    Sync,
    /// read, pread, preadv.
    Read,
    /// write, pwrite, pwritev.
    Write,
    /// Completions of asynchronous I/O.
    Asynchronous,
    /// futex, semop: another thread.
    Futex,
    /// nanosleep: some time, to look again then.
    Nap,
    /// Anything else.
    Elsewhere,
}

impl Wait {
    /// All of them, in the order of reports.
    pub const ALL: [Wait; 9] = [
        Wait::Cpu,
        Wait::Client,
        Wait::Commit,
        Wait::Replica,
        Wait::Read,
        Wait::WriteBack,
        Wait::Lock,
        Wait::Latch,
        Wait::Other,
    ];

    /// PostgreSQL's `wait_event_type` and `wait_event`, both empty while a backend runs, and where it sleeps, where that could
    /// be seen: a backend that was woken keeps the names until it gets a processor.
    /// The names are those of the table "Wait Events" in PostgreSQL's documentation, 13 to 18. `Aio…` are 18's reads,
    /// which alone go that way: of a worker (`io_method = worker`, the default) or of io_uring.
    pub fn of_postgres(kind: &str, event: &str, sleeps: Option<OffCpu>) -> Wait {
        match (kind, event) {
            _ if sleeps == Some(OffCpu::Runs) => Wait::Cpu,
            ("", _) => Wait::Cpu,
            ("Client", _) => Wait::Client,
            ("IO", "WALSync" | "WALWrite" | "WalSync" | "WalWrite") => Wait::Commit,
            ("IPC", "SyncRep") => Wait::Replica,
            // The group's followers wait for the leader's lock; WALInsert is the copy into the buffer.
            ("LWLock", "WALWrite" | "WALWriteLock") => Wait::Commit,
            ("IO", "DataFileRead" | "DataFilePrefetch" | "SLRURead" | "BufFileRead") => Wait::Read,
            ("IO", "AioIoCompletion" | "AioIoUringExecution" | "AioIoUringSubmit") => Wait::Read,
            ("IO", io) if io.starts_with("DataFile") || io.starts_with("SLRU") => Wait::WriteBack,
            ("LWLock", "BufferIO") | ("IPC", "BufferIO") => Wait::Read,
            ("IPC", "CheckpointStart" | "CheckpointDone") | ("LWLock", "Checkpoint") => Wait::WriteBack,
            ("Lock", _) => Wait::Lock,
            ("LWLock" | "BufferPin", _) => Wait::Latch,
            _ => Wait::Other,
        }
    }

    /// A session of MySQL or MariaDB: `COMMAND` and `STATE` of its process list, whether InnoDB has it in a lock wait,
    /// and where its thread sleeps, where that could be seen.
    ///
    /// The states are those of the servers' documentation ("General thread states"). MariaDB shows a commit under way as
    /// `Commit` and, from the end of the statement to that of the group's sync, as `Updating status`, which statements that
    /// commit nothing hardly ever show; MySQL as
    /// `waiting for handler commit` and `query end`; of 5.7 see [`STARTING_COMMIT`].
    pub fn of_mysql(command: &str, state: &str, lock_wait: bool, sleeps: Option<OffCpu>) -> Wait {
        let idle = command.eq_ignore_ascii_case("sleep");
        match sleeps {
            _ if lock_wait || is_lock_state(state) => Wait::Lock,
            Some(OffCpu::Runs) => Wait::Cpu,
            Some(OffCpu::Socket) => Wait::Client,
            _ if idle => Wait::Client,
            _ if is_replica_state(state) => Wait::Replica,
            _ if is_commit_state(state) => Wait::Commit,
            Some(OffCpu::Read) => Wait::Read,
            Some(OffCpu::Write | OffCpu::Sync | OffCpu::Asynchronous) => Wait::WriteBack,
            // MySQL's statements nap where InnoDB has no room: in its log (log_free_check), or for a page
            // (buf_LRU_get_free_block).
            Some(OffCpu::Nap) => Wait::WriteBack,
            Some(OffCpu::Futex) => Wait::Latch,
            Some(OffCpu::Elsewhere) => Wait::Other,
            // Without a look at the thread a statement that is under way is taken to work.
            None => Wait::Cpu,
        }
    }

    /// The words in reports.
    pub fn name(self) -> &'static str {
        match self {
            Wait::Cpu => "processor",
            Wait::Client => "client",
            Wait::Commit => "commit",
            Wait::Replica => "replicas",
            Wait::Read => "reads",
            Wait::WriteBack => "write-back",
            Wait::Lock => "locks",
            Wait::Latch => "latches",
            Wait::Other => "other",
        }
    }
}

fn is_lock_state(state: &str) -> bool {
    let state = state.to_ascii_lowercase();
    state.starts_with("waiting for") && state.ends_with("lock")
}

/// `Waiting for semi-sync ACK from slave`, and `… from replica` from MySQL 8.0.26 on.
fn is_replica_state(state: &str) -> bool {
    state.to_ascii_lowercase().starts_with("waiting for semi-sync ack from ")
}

/// A COMMIT of MySQL 5.7, which shows only that it began; so called by the question that asks for sessions.
pub const STARTING_COMMIT: &str = "starting COMMIT";

fn is_commit_state(state: &str) -> bool {
    ["commit", "committing", "updating status", "query end", "waiting for handler commit", STARTING_COMMIT]
        .iter()
        .any(|known| state.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_postgresql_are_told_apart() {
        for (kind, event, expected) in [
            ("", "", Wait::Cpu),
            ("Client", "ClientRead", Wait::Client),
            ("LWLock", "WALWrite", Wait::Commit),
            ("LWLock", "WALInsert", Wait::Latch),
            ("IO", "WALSync", Wait::Commit),
            ("IPC", "SyncRep", Wait::Replica),
            ("IO", "DataFileRead", Wait::Read),
            ("IO", "AioIoCompletion", Wait::Read),
            ("IO", "AioIoUringSubmit", Wait::Read),
            ("IO", "AioIoUringExecution", Wait::Read),
            ("IO", "DataFileExtend", Wait::WriteBack),
            ("Lock", "transactionid", Wait::Lock),
            ("Lock", "tuple", Wait::Lock),
            ("LWLock", "BufferContent", Wait::Latch),
            ("Timeout", "VacuumDelay", Wait::Other),
        ] {
            assert_eq!(Wait::of_postgres(kind, event, None), expected, "{kind}:{event}");
            let runs = Wait::of_postgres(kind, event, Some(OffCpu::Runs));
            assert_eq!(runs, Wait::Cpu, "{kind}:{event}");
            assert_eq!(Wait::of_postgres(kind, event, Some(OffCpu::Futex)), expected, "{kind}:{event}");
        }
    }

    #[test]
    fn states_of_mysql_and_mariadb_are_told_apart_with_the_thread() {
        for (command, state, lock_wait, sleeps, expected) in [
            ("Sleep", "", false, Some(OffCpu::Socket), Wait::Client),
            ("Sleep", "", false, None, Wait::Client),
            ("Execute", "Updating status", false, Some(OffCpu::Futex), Wait::Commit),
            ("Execute", "Commit", false, Some(OffCpu::Sync), Wait::Commit),
            ("Query", "waiting for handler commit", false, Some(OffCpu::Futex), Wait::Commit),
            ("Execute", "Commit", false, Some(OffCpu::Runs), Wait::Cpu),
            ("Query", "Waiting for semi-sync ACK from slave", false, Some(OffCpu::Futex), Wait::Replica),
            ("Execute", "Waiting for semi-sync ACK from replica", false, None, Wait::Replica),
            ("Execute", "Updating", true, Some(OffCpu::Futex), Wait::Lock),
            ("Execute", "Waiting for table metadata lock", false, Some(OffCpu::Futex), Wait::Lock),
            ("Execute", "Statistics", false, Some(OffCpu::Read), Wait::Read),
            ("Execute", "Updating", false, Some(OffCpu::Write), Wait::WriteBack),
            ("Execute", "Updating", false, Some(OffCpu::Futex), Wait::Latch),
            ("Execute", "updating", false, Some(OffCpu::Nap), Wait::WriteBack),
            ("Sleep", "", false, Some(OffCpu::Nap), Wait::Client),
            ("Execute", "Sending data", false, None, Wait::Cpu),
            // The list was read a moment before the thread was looked at.
            ("Execute", "Sending data", false, Some(OffCpu::Socket), Wait::Client),
        ] {
            let found = Wait::of_mysql(command, state, lock_wait, sleeps);
            assert_eq!(found, expected, "{command} {state} {lock_wait} {sleeps:?}");
        }
    }
}
