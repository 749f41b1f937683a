//! One limit turned many times a second, as long as a guard runs, under one entry of the journal.
//!
//! The entry is in the journal before the first write, and says which values are the guard's: not every one of them could be
//! journaled. From then on a [`Governor`] writes only over what it wrote itself. A value of somebody else's, an entry
//! that is gone, a device that is another one: it restores what is its own and writes no more.

mod actuator;
mod descent;
mod hand;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use weir_control::Limits;
use weir_knobs::{KnobName, Value};

use self::descent::Descent;
use self::hand::Hand;
use super::alive::Alive;
use super::band::Band;
use super::dirty::Threshold;
use super::entry::{Entry, State, Written};
use super::guardian::{Guardian, SpareGuardian};
use super::journal::Entered;
use super::refusal::{check_writable, refused};
use super::stderr::say;
use super::{Hold, Journal, KnobError, order, restore};
use crate::error::HostError;
use crate::host::Host;
use crate::vm;

pub use actuator::{Actuator, BdiOf, Choice, PrivateLimits};

/// The machine's dirty limit is read again after so long.
const THRESHOLD_STANDS: Duration = Duration::from_secs(1);
/// Without a sign of life for so long a guard hangs, and its guardian puts the limits back.
pub const HANGS_AFTER: Duration = Duration::from_secs(30);

/// Whoever has the journal has it for some milliseconds. A process that hangs with it must not stop the guard's loop: what cannot be
/// restored by then is left to the guardian.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

/// What became of a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    /// It is in force, as far as the way down has come.
    Written {
        /// The limit in force, in bytes: whole pages less than one page beneath what was asked for, or more than that
        /// on the way down.
        bytes: u64,
    },
    /// Somebody else turned it, or its guardian put it back. Nothing is written any more.
    StoodDown {
        /// The baseline, and what was restored.
        said: String,
    },
    /// Somebody wrote the baseline again, to all of its knobs or some, as a service manager does that applies its properties. The others
    /// were restored. Nothing is written any more.
    Reset {
        /// What was restored.
        said: String,
    },
    /// The device is gone, or another one now. Nothing is written any more; a new governor may start.
    Gone {
        /// The same.
        said: String,
    },
}

/// One limit that a guard sets. Dropped, or when its process ends in whatever way, the baseline is back.
#[derive(Debug)]
pub struct Governor {
    host: Host,
    journal: Journal,
    file: PathBuf,
    entry: Entry,
    hand: Hand,
    bands: Vec<Band>,
    /// What each knob holds unless somebody else turned it.
    in_force: Vec<Value>,
    limits: Limits,
    /// In force when the limits were read last, in bytes.
    seen_bytes: Cell<u64>,
    /// The machine's dirty limit, and when it was read: it moves slowly, with free memory.
    threshold: Cell<Option<(Instant, Threshold)>>,
    /// The same when it was the baseline last.
    baseline: Cell<Threshold>,
    descent: Option<Descent>,
    /// Why nothing is written any more.
    over: Option<Move>,
    /// Whether everything of the guard's is back, or left to the guardian.
    is_back: bool,
    hangs_after: Duration,
    beaten: Option<Instant>,
    guardian: Option<Guardian>,
    _alive: Option<Alive>,
}

impl Governor {
    /// Takes an actuator. Nothing is written to the kernel yet; `floor_bytes` is the least limit it will ever get.
    ///
    /// # Errors
    /// When the actuator's files cannot be read or written, another change uses one of them, the journal cannot be
    /// written, or no guardian starts. Nothing is changed then.
    pub fn start(
        journal: &Journal,
        host: &Host,
        actuator: &Actuator,
        floor_bytes: u64,
    ) -> Result<Governor, KnobError> {
        Governor::start_within(journal, host, actuator, floor_bytes, HANGS_AFTER)
    }

    /// The same as [`Governor::start`] with a guardian that may have been started ahead.
    ///
    /// # Errors
    /// As [`Governor::start`].
    pub fn start_with(
        journal: &Journal,
        host: &Host,
        actuator: &Actuator,
        floor_bytes: u64,
        spare: &SpareGuardian,
    ) -> Result<Governor, KnobError> {
        Governor::begin(journal, host, actuator, floor_bytes, HANGS_AFTER, spare)
    }

    /// The limit that an actuator has before anybody takes it, in bytes.
    ///
    /// # Errors
    /// When the actuator's files cannot be read.
    pub fn baseline_bytes(host: &Host, actuator: &Actuator) -> Result<u64, KnobError> {
        let hand = Hand::of(host, actuator)?;
        Ok(hand.saved_bytes(host, &hand.read(host)?)?)
    }

    /// The same as [`Governor::start`] with another time without a [`Governor::beat`] that is a hang.
    ///
    /// # Errors
    /// As [`Governor::start`].
    pub fn start_within(
        journal: &Journal,
        host: &Host,
        actuator: &Actuator,
        floor_bytes: u64,
        hangs_after: Duration,
    ) -> Result<Governor, KnobError> {
        Governor::begin(journal, host, actuator, floor_bytes, hangs_after, &SpareGuardian::default())
    }

    fn begin(
        journal: &Journal,
        host: &Host,
        actuator: &Actuator,
        floor_bytes: u64,
        hangs_after: Duration,
        spare: &SpareGuardian,
    ) -> Result<Governor, KnobError> {
        let host = &host.keeping_open();
        let hand = Hand::of(host, actuator)?;
        for (knob, value) in hand.knobs.iter().zip(hand.read(host)?) {
            check_writable(host, knob, &value)?;
        }
        // Computed once: memory moves, and the journal's bands must hold every limit that is ever set.
        let limits = Cell::new(Limits::default());
        let entry = || {
            let found = hand.read(host)?;
            is_unlimited(actuator, &hand, &found)?;
            limits.set(saved_limits(host, &hand, &found, floor_bytes)?);
            entry(host, &hand, found, &limits.get(), hangs_after)
        };
        let Entered { file, entry, alive } =
            journal.enter_at_once(host, &hand.knobs, LOCK_PATIENCE, entry)?;
        let found: Vec<Value> = entry.changes.iter().map(|change| change.old.clone()).collect();
        let bands: Vec<Band> = entry.changes.iter().filter_map(|change| change.band).collect();
        let guardian = match host.live.then(|| spare.start(&file, &entry)).transpose() {
            Ok(guardian) => guardian,
            Err(error) => {
                journal.remove(&file)?;
                return Err(KnobError::NoGuardian(error));
            }
        };
        Ok(Governor {
            limits: limits.get(),
            seen_bytes: Cell::new(limits.get().now_bytes),
            threshold: Cell::new(None),
            baseline: Cell::new(Threshold::read(host)?),
            in_force: found,
            host: host.clone(),
            journal: journal.clone(),
            descent: None,
            over: None,
            is_back: false,
            beaten: None,
            file,
            entry,
            hand,
            bands,
            hangs_after,
            guardian,
            _alive: alive,
        })
    }

    /// The limits: in force as read now, the baseline, and the least. In bytes. The baseline is as the kernel computed it when the governor
    /// started, or less where it is a share of memory of which others have taken some since.
    ///
    /// # Errors
    /// When the actuator's files cannot be read.
    pub fn limits(&self) -> Result<Limits, KnobError> {
        self.limits_of(&self.hand.read(&self.host)?)
    }

    /// The same by these values, which are in force.
    fn limits_of(&self, values: &[Value]) -> Result<Limits, KnobError> {
        let bounds = self.bounds(values)?;
        let limits = self.hand.limits(&self.host, values, &bounds, || Ok(self.threshold()?.bytes))?;
        self.seen_bytes.set(limits.now_bytes);
        Ok(limits)
    }

    /// Baseline and floor with the memory of now, where these values are in force.
    fn bounds(&self, now: &[Value]) -> Result<Limits, HostError> {
        let Some(percent) = self.share_percent() else { return Ok(self.limits) };
        let threshold = self.threshold()?;
        if let [_, Value::Ratio(_)] = now {
            self.baseline.set(threshold);
        }
        let saved_bytes = self.baseline.get().with_memory_of(&threshold, percent);
        let least_bytes = self.hand.least_bytes(&self.host)?;
        let saved_bytes = saved_bytes.max(least_bytes).min(self.limits.saved_bytes);
        Ok(Limits { saved_bytes, floor_bytes: self.limits.floor_bytes.min(saved_bytes), ..self.limits })
    }

    /// The baseline, where it is a share of memory.
    fn share_percent(&self) -> Option<u64> {
        match &self.entry.changes[..] {
            [_, Written { old: Value::Ratio(percent), .. }] => Some(*percent),
            _ => None,
        }
    }

    /// The limit of the guard's in force, where the baseline has become less than that.
    fn above_baseline(&self, saved_bytes: u64) -> Option<u64> {
        match &self.in_force[..] {
            [_, Value::Bytes(bytes)] if *bytes > saved_bytes && self.share_percent().is_some() => {
                Some(*bytes)
            }
            _ => None,
        }
    }

    fn threshold(&self) -> Result<Threshold, HostError> {
        if let Some((at, threshold)) = self.threshold.get()
            && at.elapsed() < THRESHOLD_STANDS
        {
            return Ok(threshold);
        }
        let threshold = Threshold::read(&self.host)?;
        self.threshold.set(Some((Instant::now(), threshold)));
        Ok(threshold)
    }

    /// Sets the limit to so many bytes, bounded by floor and baseline. Upward at once; downward at once as far as
    /// not much more is dirty, and otherwise in steps of which each [`Governor::beat`] takes those that are due.
    ///
    /// # Errors
    /// When the kernel refuses a value, or cannot be asked. The baseline is in force again then, as far as the
    /// kernel lets it.
    pub fn set(&mut self, bytes: u64) -> Result<Move, KnobError> {
        if let Some(end) = self.attend()? {
            return Ok(end);
        }
        let Limits { now_bytes: now, saved_bytes, floor_bytes } = self.limits()?;
        let goal = bytes.max(floor_bytes).min(saved_bytes);
        if self.descent.as_ref().is_none_or(|descent| descent.goal != goal) {
            let under_way = self.descent.take();
            self.descent = Some(Descent::new(now, goal, Instant::now(), under_way.as_ref()));
        }
        self.step(now)
    }

    /// Leads a private actuator's limits to these. Lowered far below what a cgroup uses, memory.high makes the one who writes it
    /// reclaim memory, which takes long where that is dirty.
    ///
    /// # Errors
    /// As [`Governor::set`].
    pub fn set_private(&mut self, limits: &PrivateLimits) -> Result<Move, KnobError> {
        if let Some(end) = self.attend()? {
            return Ok(end);
        }
        let found: Vec<Value> = self.entry.changes.iter().map(|change| change.old.clone()).collect();
        for (nth, value) in self.hand.private_values(&found, limits).into_iter().enumerate() {
            if let Err(error) = self.write(nth, value) {
                return self.give_up(error);
            }
        }
        if let Some(end) = self.look()? {
            return Ok(end);
        }
        Ok(Move::Written { bytes: self.limits()?.now_bytes })
    }

    /// A sign of life for the guardian, to be given several times within [`HANGS_AFTER`]. Goes on with a way down, and
    /// sees whether the limit is still the guard's.
    ///
    /// # Errors
    /// As [`Governor::set`], and when the guardian has ended and no other one starts.
    pub fn beat(&mut self) -> Result<Move, KnobError> {
        if let Some(end) = self.attend()? {
            return Ok(end);
        }
        if self.descent.is_none() && self.share_percent().is_none() {
            return Ok(Move::Written { bytes: self.seen_bytes.get() });
        }
        // As they were just seen to be.
        let Limits { now_bytes: now, saved_bytes, .. } = self.limits_of(&self.in_force)?;
        let above = self.above_baseline(saved_bytes);
        if let Some(bytes) = above.filter(|_| self.descent.is_none()) {
            self.descent = Some(Descent::new(bytes, saved_bytes, Instant::now(), None));
        }
        self.step(above.unwrap_or(now))
    }

    /// Restores the baseline, at once. The actuator stays in use for the next [`Governor::set`].
    ///
    /// # Errors
    /// When a value cannot be written.
    pub fn release(&mut self) -> Result<Move, KnobError> {
        if let Some(end) = self.look()? {
            return Ok(end);
        }
        self.put_back()?;
        Ok(Move::Written { bytes: self.limits()?.now_bytes })
    }

    /// Restores the baseline and takes the entry out of the journal. The sentences tell what was restored.
    ///
    /// # Errors
    /// When a value cannot be written; the journal keeps its entry then.
    pub fn stop(mut self) -> Result<Vec<String>, KnobError> {
        let done = self.lead_back();
        if done.is_err() {
            self.leave_to_guardian();
        }
        done
    }

    /// It waits for what this process did not wait for.
    fn leave_to_guardian(&mut self) {
        self.is_back = true;
        if let Some(guardian) = self.guardian.take() {
            guardian.leave();
        }
    }

    /// Looks, and tells the guardian that somebody did: who only ever sets has no time to [`Governor::beat`].
    fn attend(&mut self) -> Result<Option<Move>, KnobError> {
        let end = self.look()?;
        if end.is_none() {
            self.give_sign()?;
        }
        Ok(end)
    }

    /// Whether the values are still those that this governor wrote or found, under an entry that is still there.
    fn look(&mut self) -> Result<Option<Move>, KnobError> {
        if self.over.is_some() {
            return Ok(self.over.clone());
        }
        let now = match self.hand.read(&self.host) {
            Err(error) if error.is_absent() => return Ok(Some(self.end("", gone))),
            now => now?,
        };
        let is_another = |change: &Written| {
            order::device_sequence(&self.host.tree, &change.knob) != change.device_sequence
        };
        // All knobs of an actuator belong to one device.
        if self.entry.changes.first().is_some_and(is_another) {
            return Ok(Some(self.end("", gone)));
        }
        let is_as = |nth: usize, value: &Value| *value == self.in_force[nth];
        let is_reset = |nth: usize, value: &Value| *value == self.entry.changes[nth].old;
        let values = || now.iter().enumerate();
        let is_there = self.file.exists();
        if is_there && values().all(|(nth, value)| is_as(nth, value)) {
            return Ok(None);
        }
        let is_baseline = values().all(|(nth, value)| is_as(nth, value) || is_reset(nth, value));
        Ok(Some(match is_there && is_baseline {
            true => self.end("", |said| Move::Reset { said }),
            false => self.stand_down(),
        }))
    }

    /// Takes what is due of a way to another limit.
    fn step(&mut self, now: u64) -> Result<Move, KnobError> {
        let Some(descent) = &mut self.descent else { return Ok(Move::Written { bytes: now }) };
        let goal = descent.goal;
        let backlog = self.hand.is_of_dirty_pages().then(|| backlog(&self.host)).flatten();
        let due = descent.due(Instant::now(), backlog);
        if descent.is_over() {
            self.descent = None;
        }
        let mut values = self.hand.values(&self.host, due.unwrap_or(now), goal, &self.bands)?;
        if goal >= self.limits.saved_bytes {
            self.hand.leave_share(&mut values, &self.entry.changes);
        }
        let mut writes: Vec<(usize, Value)> = values.into_iter().enumerate().collect();
        match due {
            // Write-back begins, while the limit waits for it.
            None => writes.truncate(1),
            Some(bytes) if bytes > now => writes.reverse(),
            Some(_) => {}
        }
        for (nth, value) in writes {
            if let Err(error) = self.write(nth, value) {
                return self.give_up(error);
            }
        }
        // This process may have been stopped before the write, for longer than its guardian waits.
        if let Some(end) = self.look()? {
            return Ok(end);
        }
        Ok(Move::Written { bytes: self.limits()?.now_bytes })
    }

    /// Writes over what is the guard's. That it took is seen when somebody looks.
    fn write(&mut self, nth: usize, value: Value) -> Result<(), KnobError> {
        if self.in_force[nth] == value {
            return Ok(());
        }
        let (host, knob) = (&self.host, &self.hand.knobs[nth]);
        let written = self.hand.places[nth].write(&host.tree, &value);
        written.map_err(|error| refused(host, knob, &value, error))?;
        self.in_force[nth] = value;
        self.threshold.set(None);
        Ok(())
    }

    /// After a refusal: the baseline, unless the device is gone.
    fn give_up(&mut self, error: KnobError) -> Result<Move, KnobError> {
        if let Some(end) = self.look()? {
            return Ok(end);
        }
        // A value that cannot be restored now is tried again at the end.
        let _ = self.put_back();
        Err(error)
    }

    fn put_back(&mut self) -> Result<(), KnobError> {
        self.descent = None;
        // Upward: the limit before that from which the kernel writes by itself.
        for nth in (0..self.in_force.len()).rev() {
            self.write(nth, self.entry.changes[nth].old.clone())?;
        }
        Ok(())
    }

    fn give_sign(&mut self) -> Result<(), KnobError> {
        let is_due = |beaten: Instant| beaten.elapsed() >= self.hangs_after / 10;
        let Some(guardian) = self.guardian.as_mut().filter(|_| self.beaten.is_none_or(is_due)) else {
            return Ok(());
        };
        self.beaten = Some(Instant::now());
        if guardian.beat().is_err() {
            // Whatever ended it: without one a kill of this process would leave the limit.
            self.guardian = None;
            match Guardian::start(&self.file, &self.entry) {
                Ok(other) => self.guardian = Some(other),
                Err(error) => {
                    self.end("no guardian", |said| Move::StoodDown { said });
                    return Err(KnobError::NoGuardian(error));
                }
            }
        }
        Ok(())
    }

    fn stand_down(&mut self) -> Move {
        let why = match self.file.exists() {
            true => "",
            false => "the guardian restored the limit, because the guard gave no sign of life",
        };
        self.end(why, |said| Move::StoodDown { said })
    }

    fn end(&mut self, why: &str, make: fn(String) -> Move) -> Move {
        let mut said = vec![why.to_string()];
        match self.lead_back() {
            Ok(more) => {
                said.extend(more);
                // It has nothing left to watch over.
                self.guardian = None;
            }
            Err(error) => said.push(error.to_string()),
        }
        said.retain(|sentence| !sentence.is_empty());
        let end = make(said.join("; "));
        self.over = Some(end.clone());
        end
    }

    /// Restores what is still as this governor wrote it, and takes the entry out of the journal.
    fn lead_back(&mut self) -> Result<Vec<String>, KnobError> {
        if self.is_back {
            return Ok(Vec::new());
        }
        self.descent = None;
        let _lock = match self.journal.lock_within(LOCK_PATIENCE) {
            Err(error) if error.is_absent() => None,
            lock => Some(lock?),
        };
        // Without its entry somebody else may have the knobs by now.
        let said = match self.file.exists() || self.journal.is_free(&self.entry) {
            true => restore::with_lock(&self.host, &self.journal, &self.file, self.exactly())?,
            false => Vec::new(),
        };
        self.is_back = true;
        Ok(said)
    }

    /// The entry with the values in force for the bands in which they lie: what somebody else wrote into a band stays.
    fn exactly(&self) -> Entry {
        let mut entry = self.entry.clone();
        for (change, value) in entry.changes.iter_mut().zip(&self.in_force) {
            change.band = None;
            if *value != change.old {
                change.new = vec![value.clone()];
                change.band = Band::only(value);
            }
        }
        entry
    }
}

/// What is restored to a cgroup's memory.high must not be a limit: the kernel reclaims memory in that very write, for as long as
/// those inside like, and whoever writes holds the journal's lock. Its owner may have set one since anybody looked.
fn is_unlimited(actuator: &Actuator, hand: &Hand, found: &[Value]) -> Result<(), KnobError> {
    let is_high = |knob: &KnobName| matches!(actuator, Actuator::Private { high, .. } if high == knob);
    match hand.knobs.iter().zip(found).find(|(knob, value)| is_high(knob) && value.to_string() != "max") {
        Some((knob, value)) => Err(KnobError::Limited { knob: knob.clone(), value: value.clone() }),
        None => Ok(()),
    }
}

impl Drop for Governor {
    fn drop(&mut self) {
        match self.lead_back() {
            Ok(sentences) => sentences.iter().for_each(|sentence| say(&format!("weir: {sentence}"))),
            Err(error) => {
                say(&format!("weir: a limit could not be restored: {error}"));
                self.leave_to_guardian();
            }
        }
    }
}

fn gone(said: String) -> Move {
    Move::Gone { said }
}

/// What goes into the journal: values as they are now, and which ones are going to be the guard's.
fn entry(
    host: &Host,
    hand: &Hand,
    found: Vec<Value>,
    limits: &Limits,
    hangs_after: Duration,
) -> Result<Entry, KnobError> {
    let bands = hand.bands(host, &found, limits)?;
    let written = |((knob, old), band): ((&KnobName, Value), Band)| Written {
        device_sequence: order::device_sequence(&host.tree, knob),
        knob: knob.clone(),
        old,
        new: Vec::new(),
        band: Some(band),
        touched: false,
        target: None,
    };
    let changes = hand.knobs.iter().zip(found).zip(bands).map(written).collect();
    let entry = Entry::new(&host.tree, Hold::WhileAlive, changes)?;
    let silence_ns = Some(u64::try_from(hangs_after.as_nanos()).unwrap_or(u64::MAX));
    // Nothing is the guard's before its first write.
    Ok(Entry { state: State::InForce, silence_ns, ..entry })
}

fn saved_limits(host: &Host, hand: &Hand, found: &[Value], floor_bytes: u64) -> Result<Limits, HostError> {
    let saved_bytes = hand.saved_bytes(host, found)?;
    let floor_bytes = floor_bytes.max(hand.least_bytes(host)?).min(saved_bytes);
    Ok(Limits { now_bytes: saved_bytes, saved_bytes, floor_bytes })
}

/// Dirty or being written, on the whole machine; of one device alone the kernel tells only debuggers.
fn backlog(host: &Host) -> Option<u64> {
    let dirty = host.tree.parsed("/proc/meminfo", vm::parse_dirty);
    dirty.ok().map(|(dirty, writeback)| dirty + writeback)
}
