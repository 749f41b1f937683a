//! Who sent the I/O, for a bounded number of senders.

use std::collections::HashMap;

use super::waiting::{List, Waiting};
use crate::analysis::{Direction, Sender, Summary};
use crate::class::{Class, ClassSet};
use crate::life::Piece;
use crate::stage::Stage;

/// Senders kept apart. When there are more, the lesser half is added up as one.
const SENDERS_MAX: usize = 1024;
/// Pieces of one sender with the same moments that wait to be counted.
const BATCH: usize = 128;
/// Places that spare the hash table.
const RECENT: usize = 256;
/// The name of the lesser half.
pub const OTHERS: &str = "(others)";

/// Senders by id.
#[derive(Debug)]
pub struct Senders {
    index: HashMap<u64, u32>,
    open: Vec<Open>,
    recent: [(u64, u32); RECENT],
    others: Sender,
}

#[derive(Debug)]
struct Open {
    sender: Sender,
    waiting: Waiting,
}

const NOBODY: (u64, u32) = (u64::MAX, 0);

impl Default for Senders {
    fn default() -> Self {
        Senders {
            index: HashMap::new(),
            open: Vec::new(),
            recent: [NOBODY; RECENT],
            others: Sender::default(),
        }
    }
}

impl Senders {
    /// Counts a piece; `name` is asked when the sender is new.
    #[inline]
    pub fn piece(
        &mut self,
        id: u64,
        piece: &Piece,
        classes: ClassSet,
        known: u8,
        name: impl FnOnce() -> String,
    ) {
        let recent = self.recent[id as usize % RECENT];
        let at = if recent.0 == id { recent.1 } else { self.find(id, name) };
        let open = &mut self.open[at as usize];
        open.sender.pieces += 1;
        open.sender.errors += u64::from(piece.error != 0);
        let traffic = &mut open.sender.traffic[Direction::of(classes) as usize];
        traffic.requests += 1;
        traffic.bytes += u64::from(piece.bytes);
        if classes.has(Class::All)
            && let Some(list) = open.waiting.push(&piece.times, known, BATCH)
        {
            count(list, &mut open.sender);
        }
    }

    /// A sender's name from now on. What it sent under another name stays with that name: a thread that became
    /// another program.
    pub fn name(&mut self, id: u64, name: &str) {
        let Some(&at) = self.index.get(&id) else { return };
        let sender = &mut self.open[at as usize].sender;
        if sender.name.is_empty() || sender.pieces == 0 {
            sender.name = name.to_string();
        } else if sender.name != name {
            self.index.remove(&id);
            self.recent[id as usize % RECENT] = NOBODY;
        }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: Senders) {
        if other.others.members > 0 {
            self.others.merge(&other.others);
        }
        for mut theirs in other.open {
            theirs.flush();
            let id = theirs.sender.id;
            let same =
                self.index.get(&id).filter(|&&at| self.open[at as usize].sender.name == theirs.sender.name);
            let at = match same {
                Some(&at) => at,
                None => self.insert(id, theirs.sender.name.clone()),
            };
            let mine = &mut self.open[at as usize].sender;
            let members = mine.members;
            mine.merge(&theirs.sender);
            mine.members = members;
        }
    }

    /// All senders, the busiest first, the lesser ones added up as [`OTHERS`] at the end.
    pub fn finish(self) -> Vec<Sender> {
        let mut senders: Vec<Sender> =
            self.open.into_iter().map(Open::finish).filter(|s| s.pieces > 0).collect();
        senders.sort_by_key(|s| (std::cmp::Reverse(s.pieces), s.id));
        if self.others.members > 0 {
            senders.push(self.others);
        }
        senders
    }

    #[cold]
    fn find(&mut self, id: u64, name: impl FnOnce() -> String) -> u32 {
        let at = match self.index.get(&id) {
            Some(&at) => at,
            None => self.insert(id, name()),
        };
        self.recent[id as usize % RECENT] = (id, at);
        at
    }

    fn insert(&mut self, id: u64, name: String) -> u32 {
        if self.open.len() >= SENDERS_MAX {
            self.fold_lesser_half();
        }
        let at = self.open.len() as u32;
        let sender = Sender { id, name, members: 1, ..Sender::default() };
        self.open.push(Open { sender, waiting: Waiting::default() });
        self.index.insert(id, at);
        at
    }

    fn fold_lesser_half(&mut self) {
        self.open.sort_by_key(|open| std::cmp::Reverse(open.sender.pieces));
        for lesser in self.open.split_off(SENDERS_MAX / 2) {
            let sender = lesser.finish();
            self.others.merge(&Sender { name: OTHERS.to_string(), ..sender });
        }
        self.recent = [NOBODY; RECENT];
        // A thread that was renamed has two entries; the one in use is the one it is called by now, and either
        // will do for what comes.
        let entries = self.open.iter().enumerate();
        self.index = entries.map(|(at, open)| (open.sender.id, at as u32)).collect();
    }
}

impl Open {
    fn flush(&mut self) {
        self.waiting.lists().for_each(|list| count(list, &mut self.sender));
    }

    fn finish(mut self) -> Sender {
        self.flush();
        self.sender
    }
}

fn count(list: &mut List, sender: &mut Sender) {
    let Sender { stages, parts, q2c, d2c, .. } = sender;
    list.count(parts, |stage, durations| {
        let summary = Summary {
            count: durations.values_ns.len() as u64,
            sum_ns: u64::try_from(durations.sum_ns).unwrap_or(u64::MAX),
            min_ns: durations.min_ns,
            max_ns: durations.max_ns,
        };
        stages[stage as usize].merge(&summary);
        match stage {
            Stage::Q2C => q2c.record_known(durations),
            Stage::D2C => d2c.record_known(durations),
            Stage::G2D => stages[Stage::G2DAll as usize].merge(&summary),
            _ => {}
        }
    });
}
