//! The history in the store: a record that is there from the start, and beside it a file to which each minute is
//! appended, so that a kill costs a minute at most and a long guard never writes its past again.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use weir_control::history::{Addition, KIND};
use weir_control::{History, Noted, Second};
use weir_core::result::Record;

use crate::store::{SECONDS, Store};

/// One record covers this long at most.
const LONGEST_MS: u64 = 24 * 3600 * 1000;
/// And this much.
const LARGEST_BYTES: u64 = 32 << 20;
/// So many records of guards stay in the store.
const KEPT: usize = 14;
/// Additions are handed over so often.
const HAND_OVER_MS: u64 = 60_000;

/// What an unfinished record says of its end.
const UNFINISHED: &str = "no orderly end: it is still running, or was killed";

/// One record under way, written by one thread.
pub struct Chapter {
    store: Store,
    record: Record,
    additions: File,
}

impl Chapter {
    /// Puts the record into the store.
    ///
    /// # Errors
    /// When the store cannot be written to.
    pub fn begin(store: Store, mut record: Record, history: &History) -> anyhow::Result<Chapter> {
        record.kind = KIND.to_string();
        record.extra = serde_json::to_value(history)?;
        record.ended_early = Some(UNFINISHED.to_string());
        make_room(&store)?;
        let path = store.path_of(&record.id).with_extension(SECONDS);
        let additions = store.create(&path)?;
        store.save(&record)?;
        Ok(Chapter { store, record, additions })
    }

    /// Where the record lies.
    pub fn path(&self) -> PathBuf {
        self.store.path_of(&self.record.id)
    }

    /// Adds whole lines. Not synced: a kill does not lose them, and a sync would wait for the flood.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        self.additions.write_all(lines)
    }

    /// It ended in order.
    ///
    /// # Errors
    /// When the store cannot be written to.
    pub fn end(mut self) -> anyhow::Result<()> {
        self.record.ended_early = None;
        self.store.save(&self.record).map(drop)
    }
}

/// Removes the oldest histories, so that a new one is the last that has room.
fn make_room(store: &Store) -> io::Result<()> {
    let names = store.names()?.into_iter().map(|name| store.dir.join(name));
    let mut histories: Vec<PathBuf> =
        names.filter(|path| path.extension().is_some_and(|extension| extension == SECONDS)).collect();
    histories.sort();
    let surplus = histories.len().saturating_sub(KEPT - 1);
    for path in histories.drain(..surplus) {
        let _ = store.remove(&path.with_extension("json"));
        let _ = store.remove(&path);
    }
    Ok(())
}

/// What is to be added, gathered until it is handed over.
#[derive(Default)]
pub struct Pages {
    lines: Vec<u8>,
    seconds: Vec<Vec<Second>>,
    decisions: Vec<Noted>,
    left_out: u64,
    handed_over_ms: u64,
    handed_over_bytes: u64,
}

impl Pages {
    /// For so many devices.
    pub fn new(devices: usize) -> Pages {
        Pages { seconds: vec![Vec::new(); devices], ..Pages::default() }
    }

    /// A second of a device.
    pub fn second(&mut self, device: usize, second: Second) {
        self.seconds[device].push(second);
    }

    /// A decision.
    pub fn noted(&mut self, noted: &Noted) {
        self.decisions.push(noted.clone());
    }

    /// A decision that was left out.
    pub fn left_out(&mut self) {
        self.left_out += 1;
    }

    /// What has gathered, if it is time to pass it on.
    pub fn due(&mut self, at_ms: u64) -> Option<Vec<u8>> {
        (at_ms.saturating_sub(self.handed_over_ms) >= HAND_OVER_MS).then(|| self.take(at_ms))
    }

    /// What has gathered.
    pub fn take(&mut self, at_ms: u64) -> Vec<u8> {
        for (device, seconds) in self.seconds.iter_mut().enumerate() {
            if !seconds.is_empty() {
                line(&mut self.lines, &Addition::Seconds { device, seconds: std::mem::take(seconds) });
            }
        }
        if !self.decisions.is_empty() || self.left_out > 0 {
            let decisions = std::mem::take(&mut self.decisions);
            let left_out = std::mem::take(&mut self.left_out);
            line(&mut self.lines, &Addition::Decisions { decisions, left_out });
        }
        self.handed_over_ms = at_ms;
        self.handed_over_bytes += self.lines.len() as u64;
        std::mem::take(&mut self.lines)
    }

    /// Whether another record has to begin.
    pub fn is_full(&self, at_ms: u64) -> bool {
        at_ms >= LONGEST_MS || self.handed_over_bytes >= LARGEST_BYTES
    }
}

fn line(lines: &mut Vec<u8>, addition: &Addition) {
    // Numbers and texts: there is nothing in it that could not be written.
    if let Ok(text) = serde_json::to_vec(addition) {
        lines.extend(text);
        lines.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use weir_control::{Effect, Target};

    use weir_record::Body;

    use super::*;
    use crate::session::{Ran, Session};

    fn record() -> Record {
        let stop = weir_io::runner::Stop::default();
        Session::begin("guard", &[], std::path::Path::new("/")).record(Ran::default(), &stop)
    }

    fn history() -> History {
        let device = weir_control::DeviceHistory {
            name: "sda".to_string(),
            number: Default::default(),
            actuator: "vm.dirty_bytes".to_string(),
            sensor: weir_control::SensorSource::Canary,
            saved_bytes: 4,
            floor_bytes: 1,
            seconds: Vec::new(),
        };
        History { devices: vec![device], target: Target::default(), ..History::new() }
    }

    fn noted(at_ms: u64) -> Noted {
        Noted { at_ms, device: "sda".to_string(), decision: None, effect: Effect::Gone }
    }

    #[test]
    fn what_was_handed_over_survives_any_end() {
        let folder = tempfile::tempdir().unwrap();
        let store = || Store::at(folder.path().to_path_buf()).unwrap();
        let mut chapter = Chapter::begin(store(), record(), &history()).unwrap();
        let path = chapter.path();
        let read = || {
            let record = store().load(&path).unwrap();
            let Body::Guard(history) = record.body else { panic!("it is a guard's") };
            (record.head.ended_early, *history)
        };
        let mut pages = Pages::new(1);
        pages.second(0, Second { at_ms: 1000, ..Second::default() });
        assert_eq!(pages.due(59_999), None);
        pages.noted(&noted(1500));
        pages.left_out();
        chapter.append(&pages.due(60_000).unwrap()).unwrap();
        // A kill in the middle of a line.
        chapter.append(b"{\"seconds\":{\"device\":0,\"sec").unwrap();
        let (ended, history) = read();
        assert!(ended.is_some());
        assert_eq!(history.devices[0].seconds.len(), 1);
        assert_eq!((history.decisions, history.left_out), (vec![noted(1500)], 1));
        chapter.end().unwrap();
        assert_eq!(read().0, None);
    }

    #[test]
    fn the_oldest_make_room_and_other_records_stay() {
        let folder = tempfile::tempdir().unwrap();
        let store = || Store::at(folder.path().to_path_buf()).unwrap();
        let other = record();
        store().save(&other).unwrap();
        let mut ids = Vec::new();
        for n in 0..KEPT + 3 {
            let record = Record { id: format!("20260101-000000-{n:03}-0000"), ..record() };
            ids.push(record.id.clone());
            Chapter::begin(store(), record, &history()).unwrap().end().unwrap();
        }
        let mut expected: Vec<String> = ids[3..].to_vec();
        expected.push(other.id);
        expected.sort();
        assert_eq!(store().ids().unwrap(), expected);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2 * KEPT + 1);
    }

    #[test]
    fn a_record_is_full_after_a_day_or_with_its_size() {
        let mut pages = Pages::new(1);
        assert!(!pages.is_full(LONGEST_MS - 1) && pages.is_full(LONGEST_MS));
        pages.handed_over_bytes = LARGEST_BYTES;
        assert!(pages.is_full(0));
    }
}
