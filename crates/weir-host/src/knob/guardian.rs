//! The guardian: a child process that waits for the end of its pipe, for a deadline, or for the silence of a guard
//! that hangs, and then restores what is in the journal. A destructor does not run after SIGKILL; the end of a pipe
//! arrives in any case.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::iter::repeat_n;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::entry::{Entry, State, Term, boot_clock_ns};
use super::journal::Journal;
use super::silence::Silence;
use super::stderr::say;
use super::{KnobError, restore};
use crate::host::Host;

/// The hidden first argument by which the binary knows that it is to be a guardian.
pub const ARGUMENT: &str = "__guardian";

/// After a restoration that failed it is tried again so many times, so long after the last one: for an hour.
const TRIES: usize = 120;
const PAUSE: Duration = Duration::from_secs(30);

/// A running guardian, seen from the process it guards.
#[derive(Debug)]
pub(super) struct Guardian {
    child: Child,
    pipe: Option<ChildStdin>,
}

impl Guardian {
    /// Starts one for an entry of the journal. When this returns, it will act however this process ends.
    pub fn start(file: &Path, entry: &Entry) -> io::Result<Self> {
        Guardian::spawn([file.as_os_str(), OsStr::new(&entry.since_ns.to_string())])
    }

    /// Starts one that hears from its pipe whose guardian it is.
    fn start_ahead() -> io::Result<Self> {
        Guardian::spawn([])
    }

    fn spawn<'a>(arguments: impl IntoIterator<Item = &'a OsStr>) -> io::Result<Self> {
        // This very program, even if its file has been replaced since.
        let mut command = Command::new("/proc/self/exe");
        command.arg0("weir").arg(ARGUMENT).args(arguments).stdin(Stdio::piped()).stdout(Stdio::null());
        // Not in the folder it was started in, which somebody may want to unmount.
        command.current_dir("/");
        // SAFETY: between fork and exec only system calls are made.
        unsafe { command.pre_exec(come_away) };
        let mut child = command.spawn()?;
        let pipe = child.stdin.take();
        if let Some(pipe) = &pipe {
            // The process that beats must not wait for a guardian that does not listen.
            // SAFETY: the descriptor is open; fcntl takes numbers and touches no memory of ours.
            unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
        }
        Ok(Guardian { child, pipe })
    }

    /// Tells one that was started ahead what it guards. The pipe keeps it, however this process ends.
    fn assign(&mut self, file: &Path, entry: &Entry) -> io::Result<()> {
        let mut order = file.as_os_str().as_encoded_bytes().to_vec();
        order.extend(format!("\0{}\0", entry.since_ns).as_bytes());
        // The pipe is empty: it takes all or nothing.
        let pipe = self.pipe.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        pipe.write_all(&order)
    }
}

/// A guardian that is started before there is anything to guard: while a bulk writer floods, the start of a process may take a
/// second, in which the flood goes on without a limit.
#[derive(Debug, Clone, Default)]
pub struct SpareGuardian(Arc<Mutex<Option<Guardian>>>);

impl SpareGuardian {
    /// Starts one unless there is one. Where that fails, the next change starts its own, or says why not.
    pub fn prepare(&self) {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.is_none() {
            *spare = Guardian::start_ahead().ok();
        }
    }

    /// A guardian of this entry: the spare one if there is one and it lives, else a new one.
    pub(super) fn start(&self, file: &Path, entry: &Entry) -> io::Result<Guardian> {
        let spare = self.0.try_lock().ok().and_then(|mut spare| spare.take());
        let ready = spare.and_then(|mut guardian| guardian.assign(file, entry).is_ok().then_some(guardian));
        ready.map_or_else(|| Guardian::start(file, entry), Ok)
    }
}

impl Guardian {
    /// A sign of life. A pipe that is full has signs enough in it.
    ///
    /// # Errors
    /// When the guardian is no longer there.
    pub fn beat(&mut self) -> io::Result<()> {
        let Some(pipe) = &mut self.pipe else { return Ok(()) };
        match pipe.write(&[1]) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }

    /// Lets it end by itself while this process goes on. A thread waits for it, so that no zombie stays.
    pub fn leave(mut self) {
        drop(self.pipe.take());
        let waits = move || drop(self);
        // Without a thread it is waited for here.
        let _ = std::thread::Builder::new().name("guardian's end".to_string()).spawn(waits);
    }

    /// Lets it go on by itself after this process.
    pub fn leave_behind(mut self) {
        drop(self.pipe.take());
        // Nobody waits for it: it may have minutes to live.
        std::mem::forget(self);
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        drop(self.pipe.take());
        // It ends by itself now; waiting keeps no zombie behind.
        let _ = self.child.wait();
    }
}

/// Away from the terminal: Ctrl-C and a closed terminal end the guarded process, not its guardian. With nothing open but the
/// first three descriptors: what the guarded process has inherited, such as the lock of a script, must not stay held for
/// as long as a change may wait for confirmation.
fn come_away() -> io::Result<()> {
    rustix::process::setsid()?;
    block_sigterm();
    // The pipe by which std hears of a failed exec stays until then.
    weir_fs::close_at_exec(3)
}

/// The guardian's whole life: wait for the end of standard input, then restore the entry named by the arguments, its
/// file and the moment it was made, if it is still there. Without arguments standard input names it first.
pub fn guardian_main(host: &Host, arguments: &[String]) -> ExitCode {
    ignore_signals();
    let parsed = match arguments {
        [] => match heard_order() {
            Some(order) => Some(order),
            // Its process has ended and never changed anything.
            None => return ExitCode::SUCCESS,
        },
        [file, since] => since.parse().ok().map(|since_ns| (PathBuf::from(file), since_ns)),
        _ => None,
    };
    let Some((file, since_ns)) = parsed else {
        eprintln!("error: {ARGUMENT} is weir's own and takes a file of its journal and a time");
        return ExitCode::from(2);
    };
    let journal = Journal::at(file.parent().unwrap_or(Path::new("/")));
    match watch(host, &journal, &file, since_ns) {
        Ok(sentences) => {
            tell("after the end of the run", &sentences);
            ExitCode::SUCCESS
        }
        Err(error) => {
            say(&format!("weir: a setting could not be restored: {error}"));
            ExitCode::from(3)
        }
    }
}

/// What a guardian that was started ahead is to guard.
fn heard_order() -> Option<(PathBuf, u64)> {
    let mut input = io::stdin().lock();
    let mut word = || {
        let mut bytes = Vec::new();
        input.read_until(0, &mut bytes).ok()?;
        (bytes.pop() == Some(0)).then_some(bytes)
    };
    let (file, since) = (word()?, word()?);
    Some((OsString::from_vec(file).into(), String::from_utf8(since).ok()?.parse().ok()?))
}

fn tell(when: &str, sentences: &[String]) {
    sentences.iter().for_each(|sentence| say(&format!("weir: {when}: {sentence}")));
}

/// What the guardian has to do about an entry as it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Duty {
    /// Wait for the end of the process, and for this long at most.
    Wait(Option<Duration>),
    LeadBack,
    /// It is kept: there is nothing to guard.
    Done,
}

/// `hangs`: whether the process gives no sign of life, though it was to.
fn duty(entry: &Entry, owner_ended: bool, hangs: bool, now_ns: u64) -> Duty {
    // A confirmation is seen this much later.
    const LOOK: Duration = Duration::from_secs(1);
    match entry.hold {
        _ if owner_ended && entry.is_stale(false, now_ns) => Duty::LeadBack,
        _ if hangs => Duty::LeadBack,
        Term::WhileAlive => Duty::Wait(entry.silence_ns.map(|most_ns| Silence::look(most_ns).min(LOOK))),
        Term::Kept if owner_ended => Duty::Done,
        Term::Kept => Duty::Wait(None),
        Term::UntilConfirmed { .. } if entry.is_stale(true, now_ns) => Duty::LeadBack,
        Term::UntilConfirmed { .. } if entry.state != State::InForce => Duty::Wait(Some(LOOK)),
        Term::UntilConfirmed { deadline_ns } => {
            Duty::Wait(Some(LOOK.min(Duration::from_nanos(deadline_ns.saturating_sub(now_ns)))))
        }
    }
}

/// Watches over an entry until it is gone, kept or restored. Another one in its place has a guardian of its own.
fn watch(host: &Host, journal: &Journal, file: &Path, since_ns: u64) -> Result<Vec<String>, KnobError> {
    let (mut owner_ended, mut silence, mut known) = (false, Silence::default(), None);
    // systemd ends what is left of a unit by SIGTERM, and soon by SIGKILL: the time for a confirmation is over then.
    let now_ns = |owner_ended| {
        if owner_ended && is_asked_to_end() { u64::MAX } else { boot_clock_ns() }
    };
    loop {
        let has_no_journal = !journal.folder().exists();
        let (mut is_lost, mut is_unread) = (has_no_journal, false);
        let entry = match (journal.read(file), known.take()) {
            // Somebody removed the whole journal, without a look at what was in force by it.
            (Err(KnobError::Host(error)), Some(entry)) if error.is_absent() && is_lost => entry,
            (Err(KnobError::Host(error)), _) if error.is_absent() => return Ok(Vec::new()),
            // What is known of it holds. One that cannot be read now may be read again later; a damaged one may not.
            (Err(error), Some(entry)) => {
                is_unread = !matches!(error, KnobError::Damaged { .. });
                is_lost |= !is_unread;
                entry
            }
            (entry, _) => entry?,
        };
        if entry.since_ns != since_ns {
            return Ok(Vec::new());
        }
        let hangs = !owner_ended && entry.silence_ns.is_some_and(|most_ns| silence.is_beyond(most_ns));
        match duty(&entry, owner_ended, hangs, now_ns(owner_ended)) {
            Duty::Done => return Ok(Vec::new()),
            Duty::LeadBack if is_lost => return restore::with_lock(host, journal, file, entry),
            // Nobody can confirm it any more.
            Duty::Wait(_) if owner_ended && has_no_journal => {
                return restore::with_lock(host, journal, file, entry);
            }
            Duty::LeadBack => {
                let is_due = |entry: &Entry| {
                    entry.since_ns == since_ns
                        && duty(entry, owner_ended, hangs, now_ns(owner_ended)) == Duty::LeadBack
                };
                let times = repeat_n(PAUSE, pauses(&entry, is_alone(&entry)));
                let said = persistently(times, || {
                    match restore::from_file(host, journal, file, is_due) {
                        // It cannot be read under the lock either: better restored by what is known than not at all.
                        Err(KnobError::Host(_)) if is_unread => {
                            restore::with_lock(host, journal, file, entry.clone()).map(Some)
                        }
                        done => done,
                    }
                })?;
                match said {
                    Some(said) if hangs => {
                        tell("the guard does not respond", &said);
                        return outlast(host, journal, file, entry);
                    }
                    Some(said) => return Ok(said),
                    // It was confirmed meanwhile.
                    None => {}
                }
            }
            Duty::Wait(time) if owner_ended => {
                let_go_of_pipes();
                sleep(time.unwrap_or(Duration::MAX));
            }
            Duty::Wait(time) => {
                let began = Instant::now();
                match listen(time) {
                    Heard::End => owner_ended = true,
                    Heard::Beat => silence.end(),
                    Heard::Nothing => silence.goes_on(began.elapsed(), time.unwrap_or_default()),
                }
            }
        }
        known = Some(entry);
    }
}

/// Whether nobody waits for the guardian, and so nobody else is told what could not be restored.
fn is_alone(entry: &Entry) -> bool {
    // SAFETY: it takes nothing and cannot fail.
    let parent = unsafe { libc::getppid() };
    u32::try_from(parent) != Ok(entry.pid)
}

/// How often a restoration that fails is tried again. Whoever waits for the guardian tells it, and the next weir tries
/// again; nobody waits for it at the end of a time for confirmation.
fn pauses(entry: &Entry, is_alone: bool) -> usize {
    let is_unconfirmed = entry.state == State::InForce && matches!(entry.hold, Term::UntilConfirmed { .. });
    if is_alone || is_unconfirmed { TRIES } else { 0 }
}

/// What cannot be restored now, such as a variable of a server that is silent, is tried again after each pause. The journal
/// is free meanwhile.
fn persistently<T>(
    pauses: impl Iterator<Item = Duration>,
    mut act: impl FnMut() -> Result<T, KnobError>,
) -> Result<T, KnobError> {
    for (tries, pause) in pauses.enumerate() {
        match act() {
            Err(KnobError::NotLedBack { said, failed }) if tries == 0 => {
                tell("after the end of the run", &said);
                say(&format!("weir: not restored yet, tried again for an hour: {}", failed.join("; ")));
                let_go_of_pipes();
            }
            Err(KnobError::NotLedBack { .. }) => {}
            done => return done,
        }
        sleep(pause);
    }
    act()
}

/// After a hang: a guard that was stopped just before a write makes it when it wakes, and sees only then that it must
/// not. Should it be killed in between, the write is taken back here.
fn outlast(host: &Host, journal: &Journal, file: &Path, entry: Entry) -> Result<Vec<String>, KnobError> {
    while listen(None) != Heard::End {}
    let _lock = match journal.lock() {
        Err(error) if error.is_absent() => return Ok(Vec::new()),
        lock => lock?,
    };
    if journal.is_free(&entry) { restore::with_lock(host, journal, file, entry) } else { Ok(Vec::new()) }
}

/// A program that waits for the end of our standard error, as ssh does, is not to wait for minutes; a terminal does not.
fn let_go_of_pipes() {
    if io::stderr().is_terminal() {
        return;
    }
    if let Ok(null) = std::fs::OpenOptions::new().write(true).open("/dev/null") {
        // SAFETY: both descriptors are open; dup2 touches no memory of ours.
        unsafe { libc::dup2(null.as_raw_fd(), libc::STDERR_FILENO) };
    }
}

/// A signal to a whole group or session of processes must not end the guardian before it has done its work.
fn ignore_signals() {
    for signal in [libc::SIGINT, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE] {
        // SAFETY: SIG_IGN is a valid disposition, and no handler of ours is replaced in this process.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// SIGTERM waits from before the guardian's first instruction on, to be seen and never to end it.
fn block_sigterm() {
    let mut signals = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset fills the set, which the other calls read; none of them keeps it.
    unsafe {
        libc::sigemptyset(signals.as_mut_ptr());
        libc::sigaddset(signals.as_mut_ptr(), libc::SIGTERM);
        libc::sigprocmask(libc::SIG_BLOCK, signals.as_ptr(), std::ptr::null_mut());
    }
}

/// Whether SIGTERM has come.
fn is_asked_to_end() -> bool {
    let mut signals = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: sigpending fills the set, which sigismember reads.
    unsafe {
        libc::sigpending(signals.as_mut_ptr()) == 0 && libc::sigismember(signals.as_ptr(), libc::SIGTERM) == 1
    }
}

/// What standard input brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heard {
    /// Its end.
    End,
    /// Signs of life.
    Beat,
    Nothing,
}

/// Listens to standard input, for this long at most.
fn listen(time: Option<Duration>) -> Heard {
    let milliseconds =
        time.map_or(-1, |time| i32::try_from(time.as_millis()).unwrap_or(i32::MAX).saturating_add(1));
    let mut input = libc::pollfd { fd: libc::STDIN_FILENO, events: libc::POLLIN, revents: 0 };
    // SAFETY: the kernel reads and writes one pollfd, which lives on this stack.
    if unsafe { libc::poll(&mut input, 1, milliseconds) } <= 0 {
        return Heard::Nothing;
    }
    // Readable without a byte in it is the end; a pipe that cannot be read is as good as closed.
    match io::stdin().read(&mut [0; 64]) {
        Ok(1..) => Heard::Beat,
        _ => Heard::End,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_tried_again() {
        let failed = || KnobError::NotLedBack { said: Vec::new(), failed: vec!["silent".to_string()] };
        for (pauses, good_from, tries, is_restored) in
            [(3, 1, 1, true), (3, 3, 3, true), (3, 4, 4, true), (3, 5, 4, false), (0, 2, 1, false)]
        {
            let mut made = 0;
            let done = persistently(repeat_n(Duration::ZERO, pauses), || {
                made += 1;
                if made < good_from { Err(failed()) } else { Ok(vec!["back".to_string()]) }
            });
            assert_eq!((made, done.is_ok()), (tries, is_restored), "{pauses} {good_from}");
        }
        let mut made = 0;
        let other = persistently(repeat_n(Duration::ZERO, 3), || {
            made += 1;
            Err::<(), _>(KnobError::NoGuardian(io::ErrorKind::Other.into()))
        });
        assert_eq!((made, other.is_err()), (1, true));
    }

    fn entry(hold: Term, state: State) -> Entry {
        Entry {
            schema: String::new(),
            boot_id: String::new(),
            pid: 1,
            pid_started_ticks: 1,
            since_ns: 0,
            hold,
            state,
            silence_ns: None,
            gives_sign: false,
            changes: Vec::new(),
            checksum: String::new(),
        }
    }

    #[test]
    fn one_whom_nobody_waits_for_does_not_give_up() {
        let unconfirmed = Term::UntilConfirmed { deadline_ns: 0 };
        for (hold, state, is_alone, tries) in [
            (Term::WhileAlive, State::InForce, false, 0),
            (Term::WhileAlive, State::InForce, true, TRIES),
            // Who sits at a terminal asks the journal, and not for long.
            (unconfirmed, State::InForce, false, TRIES),
            // What was refused, or taken back by hand.
            (unconfirmed, State::Applying, false, 0),
            (unconfirmed, State::LeadingBack, false, 0),
        ] {
            assert_eq!(pauses(&entry(hold, state), is_alone), tries, "{hold:?} {state:?} {is_alone}");
        }
    }

    #[test]
    fn a_guardian_knows_its_duty() {
        const NEVER: u64 = u64::MAX;
        let second = Duty::Wait(Some(Duration::from_secs(1)));
        let unconfirmed = |deadline_ns| Term::UntilConfirmed { deadline_ns };
        let guarded = Some(4_000_000_000);
        let half = Duty::Wait(Some(Duration::from_millis(500)));
        for (hold, state, silence_ns, owner_ended, hangs, expected) in [
            (Term::WhileAlive, State::InForce, None, false, false, Duty::Wait(None)),
            (Term::WhileAlive, State::InForce, None, true, false, Duty::LeadBack),
            (Term::WhileAlive, State::InForce, guarded, false, false, half),
            (Term::WhileAlive, State::InForce, guarded, false, true, Duty::LeadBack),
            (Term::WhileAlive, State::InForce, guarded, true, false, Duty::LeadBack),
            (Term::Kept, State::Applying, None, false, false, Duty::Wait(None)),
            (Term::Kept, State::Applying, None, true, false, Duty::LeadBack),
            (Term::Kept, State::InForce, None, true, false, Duty::Done),
            (unconfirmed(NEVER), State::Applying, None, true, false, Duty::LeadBack),
            (unconfirmed(0), State::Applying, None, false, false, second),
            (unconfirmed(NEVER), State::InForce, None, false, false, second),
            (unconfirmed(NEVER), State::InForce, None, true, false, second),
            (
                unconfirmed(1300),
                State::InForce,
                None,
                true,
                false,
                Duty::Wait(Some(Duration::from_nanos(300))),
            ),
            (unconfirmed(1000), State::InForce, None, false, false, Duty::LeadBack),
            (unconfirmed(1000), State::InForce, None, true, false, Duty::LeadBack),
        ] {
            let entry = Entry { silence_ns, ..entry(hold, state) };
            assert_eq!(
                duty(&entry, owner_ended, hangs, 1000),
                expected,
                "{hold:?} {state:?} {owner_ended} {hangs}"
            );
        }
    }
}
