//! One change in the journal: what was there, what weir wrote, and until when.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_knobs::{KnobName, Value, catalog};

use super::band::Band;
use super::{Hold, KnobError};
use crate::error::{BadLine, HostError};
use crate::tree::Tree;

/// Value of [`Entry::schema`].
const SCHEMA: &str = "weir.journal/2";
/// What weir wrote before it knew of more than the dirty limits. An entry of it has the same fields as far as they
/// go, so it is restored like any other.
const SCHEMA_1: &str = "weir.journal/1";

/// A file of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub schema: String,
    /// The boot it belongs to. After another boot the kernel has forgotten every value weir wrote; servers have not.
    pub boot_id: String,
    /// The process that made the change.
    pub pid: u32,
    /// Its start, in ticks since boot: tells it from a later process of the same id.
    pub pid_started_ticks: u64,
    /// When it was made, on the clock of the boot: a moment that no other entry of the process has.
    #[serde(default)]
    pub since_ns: u64,
    #[serde(default)]
    pub hold: Term,
    #[serde(default)]
    pub state: State,
    /// A guard that gives no sign of life for so long has its changes restored though it still runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence_ns: Option<u64>,
    /// In the order of writing.
    pub changes: Vec<Written>,
    /// Whether its process gave a sign of life when it was read ([`super::alive`]).
    #[serde(skip)]
    pub gives_sign: bool,
    /// Of everything above: a digit that went wrong must not be written to the kernel.
    #[serde(default)]
    pub checksum: String,
}

/// Until when.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Term {
    /// The end of the process.
    #[default]
    WhileAlive,
    /// This moment on the clock of the boot, unless it is confirmed before.
    UntilConfirmed { deadline_ns: u64 },
    /// A rollback.
    Kept,
}

/// How far the change has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum State {
    /// Values are being written: whatever is there now is weir's doing.
    Applying,
    /// Every value is verified: from now on what weir did not write is somebody else's.
    #[default]
    InForce,
    /// Values are being restored. [`Written::target`] has been decided.
    LeadingBack,
}

/// One knob in an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    pub knob: KnobName,
    pub old: Value,
    /// Every value weir may have left there.
    pub new: Vec<Value>,
    /// More of them, where a guard turns the knob for as long as it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub band: Option<Band>,
    /// Whether a write to another knob of the entry changes this one too.
    #[serde(default)]
    pub touched: bool,
    /// The device's number as the kernel counts devices, where it is a device's knob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_sequence: Option<u64>,
    /// What it is to be restored to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Value>,
}

impl Written {
    /// Whether a value is one that weir may have left there.
    pub fn is_weirs(&self, value: &Value) -> bool {
        self.new.contains(value) || self.band.is_some_and(|band| band.has(value))
    }
}

impl Entry {
    /// Of this process, about to be applied.
    pub fn new(tree: &Tree, hold: Hold, changes: Vec<Written>) -> Result<Entry, HostError> {
        let pid = std::process::id();
        Ok(Entry {
            schema: SCHEMA.to_string(),
            boot_id: boot_id(tree)?,
            pid,
            pid_started_ticks: start_of(tree, pid)?.0,
            since_ns: later_than_any(boot_clock_ns()),
            hold: match hold {
                Hold::WhileAlive => Term::WhileAlive,
                Hold::UntilConfirmed { deadline } => Term::UntilConfirmed { deadline_ns: after(deadline) },
                Hold::Kept => Term::Kept,
            },
            state: State::Applying,
            silence_ns: None,
            changes,
            gives_sign: true,
            checksum: String::new(),
        })
    }

    /// The whole text of its file.
    pub fn text(&self) -> Result<Vec<u8>, serde_json::Error> {
        let checksum = self.compute_checksum()?;
        serde_json::to_vec_pretty(&Entry { checksum, ..self.clone() })
    }

    /// Reads the text of the file at `path`.
    ///
    /// # Errors
    /// When it is cut off, altered, or none of weir's.
    pub fn parse(text: &[u8], path: &Path) -> Result<Entry, KnobError> {
        let damaged = |why: String| KnobError::Damaged { file: path.to_path_buf(), why, aside: None };
        let entry: Entry = serde_json::from_slice(text)
            .map_err(|error| damaged(format!("truncated, or not an entry of weir's journal ({error})")))?;
        let is_sound = match entry.schema.as_str() {
            SCHEMA => entry.compute_checksum().is_ok_and(|checksum| checksum == entry.checksum),
            SCHEMA_1 => true,
            other => {
                return Err(damaged(format!("expected the schema {SCHEMA} or {SCHEMA_1}, got `{other}`")));
            }
        };
        if !is_sound {
            return Err(damaged("its checksum does not match: it was changed or damaged".to_string()));
        }
        match entry.changes.iter().find(|change| catalog::spec(&change.knob).is_none()) {
            Some(change) => Err(damaged(format!("weir knows no knob {}", change.knob))),
            None => Ok(entry),
        }
    }

    fn compute_checksum(&self) -> Result<String, serde_json::Error> {
        let plain = Entry { checksum: String::new(), ..self.clone() };
        Ok(format!("{:016x}", fnv1a(&serde_json::to_vec(&plain)?)))
    }

    /// Whether both are of one change, however far each has come.
    pub fn is_same(&self, other: &Entry) -> bool {
        let id = |entry: &Entry| (entry.pid, entry.pid_started_ticks, entry.since_ns);
        id(self) == id(other) && self.boot_id == other.boot_id
    }

    /// Whether the process that made the change still runs: the same id with another start is another process.
    pub fn is_alive(&self, tree: &Tree) -> bool {
        !self.is_of_another_boot(tree).unwrap_or(false)
            && runs(tree, self.pid, self.pid_started_ticks).unwrap_or(self.gives_sign)
    }

    /// Whether it is older than this boot.
    ///
    /// # Errors
    /// When the kernel does not say which boot this is. Then nothing is known, and nothing may be thrown away.
    pub fn is_of_another_boot(&self, tree: &Tree) -> Result<bool, HostError> {
        Ok(boot_id(tree)? != self.boot_id)
    }

    /// Whether another boot leaves any of it in force: servers keep their variables.
    pub fn outlives_boot(&self) -> bool {
        self.changes.iter().any(|change| change.knob.is_of_server())
    }

    /// Whether nobody answers for it any more, so that whoever sees it restores it.
    ///
    /// # Errors
    /// As [`Entry::is_of_another_boot`].
    pub fn is_abandoned(&self, tree: &Tree) -> Result<bool, HostError> {
        let is_past = self.is_of_another_boot(tree)?;
        // No clock of this boot says when a time of another one ends, and no guardian waits for it.
        let now_ns = if is_past { u64::MAX } else { boot_clock_ns() };
        Ok(is_past && !self.outlives_boot() || self.is_stale(self.is_alive(tree), now_ns))
    }

    /// The same of an entry of this boot. `owner_alive` tells of the process that made it.
    pub fn is_stale(&self, owner_alive: bool, now_ns: u64) -> bool {
        match (self.state, self.hold) {
            (State::Applying | State::LeadingBack, _) | (_, Term::WhileAlive) => !owner_alive,
            (State::InForce, Term::UntilConfirmed { deadline_ns }) => now_ns >= deadline_ns,
            (State::InForce, Term::Kept) => false,
        }
    }

    /// Whether others have to keep their hands off its knobs: what is kept may be changed further.
    pub fn holds(&self) -> bool {
        self.state != State::InForce || self.hold != Term::Kept
    }

    /// How long ago it was made.
    pub fn age(&self) -> Duration {
        Duration::from_nanos(boot_clock_ns().saturating_sub(self.since_ns))
    }
}

/// This moment, or the one after the last that it returned: a clock may stand still between two entries.
fn later_than_any(now_ns: u64) -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let later = |last: u64| now_ns.max(last + 1);
    LAST.fetch_update(Relaxed, Relaxed, |last| Some(later(last))).map_or(now_ns, later)
}

/// A moment from now on the clock of the boot.
pub(super) fn after(time: Duration) -> u64 {
    boot_clock_ns().saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// Time since the boot, sleep included, in ns.
pub(super) fn boot_clock_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec, which lives on this stack.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// The process that made an entry, its start and the moment, as far as the name of the file tells: `PID-START.SINCE.json`, in
/// earlier versions `PID-START.N.json`.
pub(super) fn maker(file: &Path) -> Option<(u32, u64, u64)> {
    let (maker, rest) = file.file_name()?.to_str()?.split_once('.')?;
    let (pid, start) = maker.split_once('-')?;
    Some((pid.parse().ok()?, start.parse().ok()?, rest.strip_suffix(".json")?.parse().ok()?))
}

/// Whether the process that started then runs; `None` where none of this number did: it is gone, or in another PID namespace.
pub(super) fn runs(tree: &Tree, pid: u32, start: u64) -> Option<bool> {
    let (started, runs) = start_of(tree, pid).ok()?;
    (started == start).then_some(runs)
}

/// A name for this boot.
fn boot_id(tree: &Tree) -> Result<String, HostError> {
    tree.value::<String>("/proc/sys/kernel/random/boot_id")
}

/// Field 22 of `/proc/PID/stat`, and whether the process runs. One that has ended but was not waited for does not; nor does one whose
/// first thread has ended: a thread of weir's that others keep from ending restores nothing, though all that was open stays open.
fn start_of(tree: &Tree, pid: u32) -> Result<(u64, bool), HostError> {
    tree.parsed(&format!("/proc/{pid}/stat"), parse_start)
}

fn parse_start(text: &str) -> Result<(u64, bool), BadLine> {
    // The command name in parentheses may hold spaces and parentheses itself.
    let bad = || BadLine::new(1, "the state of a process, and its start in field 22", text.trim());
    let mut fields = text.rsplit_once(')').ok_or_else(bad)?.1.split_whitespace();
    let state = fields.next().ok_or_else(bad)?;
    let started = fields.nth(18).and_then(|ticks| ticks.parse().ok()).ok_or_else(bad)?;
    Ok((started, !["Z", "X", "x"].contains(&state)))
}

/// FNV-1a (<http://www.isthe.com/chongo/tech/comp/fnv>), which says whether a text was changed, not whether on purpose.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;
    use crate::knob::testing::{Machine, STAT};

    fn entry() -> Entry {
        let written = |knob: &str, old: &str| Written {
            knob: knob.parse().unwrap(),
            old: old.parse().unwrap(),
            new: vec![Value::Number(1), Value::Word("none".to_string())],
            band: None,
            touched: true,
            device_sequence: Some(7),
            target: None,
        };
        let changes = vec![written("vm.dirty", "ratio=20"), written("loop0/scheduler", "mq-deadline")];
        Entry::new(&Machine::new().host.tree, Hold::Kept, changes).unwrap()
    }

    static ENTRY: LazyLock<Entry> = LazyLock::new(entry);

    proptest! {
        /// Nothing is ever restored to a value that the journal did not hold.
        #[test]
        fn damage_is_seen(
            from in any::<prop::sample::Index>(),
            length in 0_usize..12,
            put in prop_oneof!["[ -~\n]{0,8}", "[0-9]{1,3}", Just("\0".to_string())],
        ) {
            let text = String::from_utf8(ENTRY.text().unwrap()).unwrap();
            let from = from.index(text.len());
            let to = (from + length).min(text.len());
            let damaged = format!("{}{put}{}", &text[..from], &text[to..]);
            match Entry::parse(damaged.as_bytes(), Path::new("/journal/1.json")) {
                Ok(read) => prop_assert_eq!(&read.changes, &ENTRY.changes),
                Err(error) => prop_assert!(error.to_string().starts_with("/journal/1.json: "), "{error}"),
            }
        }
    }

    #[test]
    fn starts_of_processes_parse() {
        assert_eq!(parse_start(STAT), Ok((5555, true)));
        for threads in ["1", "2"] {
            let ended = STAT.replace(" S ", " Z ").replace(" 20 0 1 0 ", &format!(" 20 0 {threads} 0 "));
            assert_eq!(parse_start(&ended), Ok((5555, false)), "whatever threads are left");
        }
        assert!(parse_start("17 (sh) S 1").is_err());
    }

    #[test]
    fn who_has_no_number_here_lives_by_a_sign() {
        let machine = Machine::new();
        let ended = STAT.replace(" S ", " Z ").replace(" 5555 ", " 5556 ");
        machine.set("/proc/18/stat", &ended);
        for (pid, start, gives_sign, is_alive) in [
            (17, 5555, false, true),
            (17, 5554, false, false),
            (17, 5554, true, true),
            (19, 1, false, false),
            (19, 1, true, true),
            // Threads that cannot end keep open what gives the sign.
            (18, 5556, true, false),
        ] {
            let entry = Entry { pid, pid_started_ticks: start, gives_sign, ..entry() };
            let entry = Entry { boot_id: "this-boot".to_string(), ..entry };
            assert_eq!(entry.is_alive(&machine.host.tree), is_alive, "{pid} {start} {gives_sign}");
        }
    }
}
