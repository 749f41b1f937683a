//! The state of the screen: samples, and what the user chose to see of them.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

use weir_blocktrace::fsync::SlowSync;
use weir_blocktrace::{Class, DeviceFrame, Row};

use crate::history::History;
use crate::key::{Action, Key, action};
use crate::pane::Pane;
use crate::rows::{self, Choice, Order, Rank};
use crate::sample::{About, Process, Sample, Samples, Wish};

/// Whether the screen goes on.
pub type Flow = ControlFlow<()>;

/// A key fetches so often at most: at least one sample comes each time, and none steps further than by ten.
const FETCHES_MAX: usize = 32;
/// Characters of a filter.
const FILTER_MAX: usize = 40;
/// Samples over which slow syncs are listed.
pub const SLOW_SAMPLES: usize = 60;

/// How much of the screen a pane has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum View {
    /// All panes.
    #[default]
    Overview,
    /// The selected one alone.
    Zoomed,
    /// The selected row, with all that is known of it.
    Details,
}

/// Recorded samples that are to be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// Those from a time on, Unix time, ms.
    At(i64),
    /// Those so many steps away.
    Steps(i64),
}

/// The state of the screen.
#[derive(Debug, Clone)]
pub struct Model {
    /// What stays the same.
    pub about: About,
    /// The last samples.
    pub history: History,
    /// The selected pane.
    pub pane: Pane,
    /// How much of the screen it has.
    pub view: View,
    /// Whether the keys are shown.
    pub help: bool,
    /// Whether a filter is typed.
    pub typing: bool,
    /// Lines of details or help that have been scrolled past.
    pub scrolled: usize,
    /// The most of them, as they were drawn last.
    pub scrolls: Cell<usize>,
    asked: Option<Asked>,
    choices: [Choice; 4],
}

impl Model {
    /// Nothing seen yet; keeps so many samples.
    pub fn new(about: About, samples_max: usize) -> Model {
        Model {
            about,
            history: History::new(samples_max),
            pane: Pane::Processes,
            view: View::Overview,
            help: false,
            typing: false,
            scrolled: 0,
            scrolls: Cell::new(0),
            asked: None,
            choices: Default::default(),
        }
    }

    /// Takes in a sample.
    pub fn push(&mut self, sample: Sample) {
        self.history.push(sample);
    }

    /// What is chosen of a pane.
    pub fn choice(&self, pane: Pane) -> &Choice {
        &self.choices[pane as usize]
    }

    fn choice_mut(&mut self) -> &mut Choice {
        &mut self.choices[self.pane as usize]
    }

    /// Shows the recorded sample of a time, Unix time, ms, or the next one there is; whether there is any.
    pub fn begin_at<S: Samples>(&mut self, at_ms: i64, samples: &mut S) -> bool {
        self.asked = Some(Asked::At(at_ms));
        self.fetch(samples);
        self.history.shown().is_some_and(|sample| sample.is_recorded)
    }

    /// Fetches recorded samples that keys have asked for, and shows them.
    pub fn fetch<S: Samples>(&mut self, samples: &mut S) {
        for _ in 0..FETCHES_MAX {
            let Some(asked) = self.asked.take() else { return };
            match asked {
                Asked::At(at_ms) => {
                    let found = samples.recorded(Wish::After(at_ms));
                    match found.is_empty() {
                        true => self.history.show_recorded(samples.recorded(Wish::Before(at_ms)), true),
                        false => self.history.show_recorded(found, false),
                    }
                }
                Asked::Steps(by) => {
                    let Some(wish) = self.history.wish(by < 0) else { return };
                    let found = samples.recorded(wish);
                    let is_end = found.is_empty();
                    match wish {
                        Wish::Before(_) if is_end => return,
                        Wish::Before(_) => self.history.put_before(found),
                        Wish::After(_) => self.history.put_after(found),
                    }
                    let left = self.history.step(by);
                    self.asked = (left != 0 && !is_end).then_some(Asked::Steps(left));
                }
            }
        }
    }

    /// Steps through time; what lies beyond the samples that are held is asked for.
    fn step(&mut self, by: i64) {
        let left = self.history.step(by);
        self.asked = (left != 0).then_some(Asked::Steps(left));
    }

    /// Goes to another time, among recorded samples where it lies before those that were watched.
    fn leap(&mut self, by_ms: i64) {
        let Some(shown) = self.history.shown() else { return };
        let to_ms = shown.at_ms.saturating_add(by_ms);
        let watched = |sample: &Sample| to_ms >= sample.begin_ms();
        let first = self.history.first();
        if by_ms > 0 && (!shown.is_recorded || first.is_some_and(watched)) {
            return self.history.go_live();
        }
        self.asked = Some(Asked::At(to_ms));
    }

    /// Does what a key says.
    pub fn key(&mut self, key: Key) -> Flow {
        action(key, self.typing).map_or(Flow::Continue(()), |action| self.act(action))
    }

    fn act(&mut self, action: Action) -> Flow {
        match action {
            Action::Quit => return Flow::Break(()),
            Action::Help => (self.help, self.scrolled) = (!self.help, 0),
            Action::Back => self.back(),
            Action::Pane(by) => {
                let next = (self.pane as i8 + by).rem_euclid(Pane::ALL.len() as i8);
                self.show(Pane::ALL[next as usize]);
            }
            Action::To(pane) => self.show(pane),
            Action::Row(by) if self.help || self.view == View::Details => {
                self.scrolled = self.scrolled.saturating_add_signed(by as isize).min(self.scrolls.get());
            }
            Action::Row(by) => self.select(by),
            Action::Open if self.count(self.pane) > 0 => {
                self.select(0);
                (self.view, self.scrolled) = (View::Details, 0);
            }
            Action::Open => {}
            Action::Zoom if self.view == View::Zoomed => self.view = View::Overview,
            Action::Zoom => self.view = View::Zoomed,
            Action::Step(by) => self.step(by),
            Action::Leap(by_ms) => self.leap(by_ms),
            Action::Live => self.history.go_live(),
            Action::Pause if self.history.is_live() => self.step(0),
            Action::Pause => self.history.go_live(),
            Action::Sort => {
                let ranks = Rank::of(self.pane);
                let order = &mut self.choice_mut().order;
                *order = Order { column: (order.column + 1) % ranks.len(), reversed: false };
            }
            Action::Reverse => self.choice_mut().order.reversed ^= true,
            Action::Filter => self.typing = true,
            Action::Type(c) => {
                let filter = &mut self.choice_mut().filter;
                if filter.chars().count() < FILTER_MAX {
                    filter.push(c);
                }
            }
            Action::Erase => _ = self.choice_mut().filter.pop(),
            Action::Accept => self.typing = false,
        }
        Flow::Continue(())
    }

    /// One step back: out of what was opened last.
    fn back(&mut self) {
        if self.typing {
            self.typing = false;
            self.choice_mut().filter.clear();
        } else if self.help {
            (self.help, self.scrolled) = (false, 0);
        } else if self.view != View::Overview {
            self.view = View::Overview;
        } else {
            self.choice_mut().filter.clear();
        }
    }

    fn show(&mut self, pane: Pane) {
        self.pane = pane;
        if self.view == View::Details {
            self.view = View::Overview;
        }
    }

    /// Moves the selection; rows that are not there are not selected.
    fn select(&mut self, by: i32) {
        let names = self.names(self.pane);
        let Some(last) = names.len().checked_sub(1) else { return };
        let place = self.place(self.pane, &names) as i64;
        let place = (place + i64::from(by)).clamp(0, last as i64) as usize;
        let choice = self.choice_mut();
        (choice.place, choice.selected) = (place, Some(names[place].clone()));
    }

    /// Where the selected row of a pane is among rows of these names.
    pub fn place(&self, pane: Pane, names: &[String]) -> usize {
        let choice = self.choice(pane);
        let found = choice.selected.as_ref().and_then(|name| names.iter().position(|other| other == name));
        found.unwrap_or(choice.place.min(names.len().saturating_sub(1)))
    }

    /// Names of a pane's rows, as they are ordered and filtered.
    pub fn names(&self, pane: Pane) -> Vec<String> {
        match pane {
            Pane::Devices => self.devices().iter().map(|device| device.number.to_string()).collect(),
            Pane::Classes => self.classes().iter().map(|row| row.class.name().to_string()).collect(),
            Pane::Processes => self.processes().iter().map(|process| rows::id(process)).collect(),
            Pane::Slow => self.slow().iter().map(|(_, slow)| rows::slow_id(slow)).collect(),
        }
    }

    fn count(&self, pane: Pane) -> usize {
        self.names(pane).len()
    }

    /// The devices of the shown sample, ordered and filtered.
    pub fn devices(&self) -> Vec<&DeviceFrame> {
        let devices = self.history.shown().map_or(&[][..], |sample| &sample.frame.devices);
        rows::devices(devices, self.choice(Pane::Devices))
    }

    /// The selected device.
    pub fn device(&self) -> Option<&DeviceFrame> {
        let devices = self.devices();
        let names: Vec<String> = devices.iter().map(|device| device.number.to_string()).collect();
        devices.get(self.place(Pane::Devices, &names)).copied()
    }

    /// The classes of the selected device.
    pub fn classes(&self) -> Vec<&Row> {
        let rows = self.device().map_or(&[][..], |device| &device.rows);
        let several = rows.len() > 2;
        let filter = &self.choice(Pane::Classes).filter;
        // Of one kind alone, the sum says nothing more.
        let shown = |row: &&Row| {
            (several || row.class != Class::All || rows.len() == 1) && rows::holds(&row.class.words(), filter)
        };
        rows.iter().filter(shown).collect()
    }

    /// The processes of the shown sample, ordered and filtered.
    pub fn processes(&self) -> Vec<&Process> {
        let Some(sample) = self.history.shown() else { return Vec::new() };
        rows::processes(&sample.processes, sample.frame.length_ns, self.choice(Pane::Processes))
    }

    /// The selected process.
    pub fn process(&self) -> Option<&Process> {
        let processes = self.processes();
        let names: Vec<String> = processes.iter().map(|process| rows::id(process)).collect();
        processes.get(self.place(Pane::Processes, &names)).copied()
    }

    /// Slow syncs of the last samples up to the shown one, each with its sample's clock.
    pub fn slow(&self) -> Vec<(&str, &SlowSync)> {
        let samples = self.history.back().take(SLOW_SAMPLES);
        let slow = samples.flat_map(|sample| sample.slow.iter().map(|slow| (sample.clock.as_str(), slow)));
        // A name is looked for in all of the history.
        let mut names = BTreeMap::new();
        rows::slow(slow.collect(), self.choice(Pane::Slow), |slow| {
            names.entry(slow.device).or_insert_with(|| self.device_name(slow)).clone()
        })
    }

    /// The name of a slow sync's device; its number where no sample up to the shown one has it.
    pub fn device_name(&self, slow: &SlowSync) -> String {
        let Some(number) = slow.device else { return "-".to_string() };
        let mut devices = self.history.back().flat_map(|sample| &sample.frame.devices);
        let known = devices.find(|frame| frame.number == number);
        known.map_or_else(|| number.to_string(), |frame| frame.name.clone())
    }

    /// The selected slow sync.
    pub fn slow_sync(&self) -> Option<(&str, &SlowSync)> {
        let slow = self.slow();
        let names: Vec<String> = slow.iter().map(|(_, slow)| rows::slow_id(slow)).collect();
        slow.get(self.place(Pane::Slow, &names)).copied()
    }
}
