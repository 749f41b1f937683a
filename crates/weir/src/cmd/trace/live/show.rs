//! Who shows the intervals: a screen, plain lines, or JSON Lines.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use weir_blocktrace::{Frame, History, SlowIo};
use weir_io::runner::Stop;
use weir_report::text::trace_live::{self, About, Screen};

use super::json;
use crate::live::{Taken, View, Whole};
use crate::output::{print, print_exact};
use crate::terminal::{Terminal, ends};

/// How often keys, signals and the terminal's size are looked at.
const SLICE: Duration = Duration::from_millis(100);
/// A sparkline shows a minute, but not more points than a wide terminal has columns.
const POINTS_MAX: u64 = 120;
/// Slow requests kept for the screen; no terminal has more rows.
const SLOW_MAX: usize = 200;

/// Shows intervals, and the whole at the end.
pub struct Show {
    about: About,
    form: Form,
}

enum Form {
    Screen(Box<OnScreen>),
    Lines,
    Json,
}

struct OnScreen {
    terminal: Terminal,
    history: History,
    slow: VecDeque<SlowIo>,
    last: Option<(Frame, BTreeMap<String, u64>)>,
    size: (usize, usize),
}

impl Show {
    /// On a terminal, which is the view's until it is dropped or ends.
    pub fn screen(about: About) -> anyhow::Result<Show> {
        let points = (60_000_000_000 / about.interval.0.max(1)).clamp(2, POINTS_MAX) as usize;
        let terminal = Terminal::enter()?;
        let size = terminal.size();
        let (history, slow) = (History::new(points), VecDeque::new());
        let form = Form::Screen(Box::new(OnScreen { terminal, history, slow, last: None, size }));
        Ok(Show { about, form })
    }

    /// As lines that are only ever appended; what they stand on goes to stderr first.
    pub fn lines(about: About) -> Show {
        Show::told(Show { about, form: Form::Lines })
    }

    /// As JSON Lines.
    pub fn json(about: About) -> Show {
        Show::told(Show { about, form: Form::Json })
    }

    fn told(self) -> Show {
        say!("weir: source {} ({})", self.about.source.name(), self.about.how);
        self.about.remarks.iter().for_each(|remark| say!("weir: {remark}"));
        self
    }

    /// Gives the terminal back and shows the whole time.
    pub fn end(self, whole: &Whole) -> anyhow::Result<()> {
        let Show { about, form } = self;
        match form {
            Form::Json => print_exact(&json::summary(&about, whole)?),
            Form::Screen(screen) => {
                let (columns, _) = screen.size;
                drop(screen);
                print(&trace_live::summary(&about, &whole.frame, columns))
            }
            Form::Lines => print(&format!("\n{}", trace_live::summary(&about, &whole.frame, usize::MAX))),
        }
    }
}

impl View for Show {
    fn wait(
        &mut self,
        until: Instant,
        stop: &Stop,
        drain: &mut dyn FnMut() -> anyhow::Result<()>,
    ) -> anyhow::Result<bool> {
        while Instant::now() < until {
            let slice = until.min(Instant::now() + SLICE);
            let key = match &mut self.form {
                Form::Screen(screen) => screen.key(slice, &self.about)?,
                _ => {
                    std::thread::sleep(slice.saturating_duration_since(Instant::now()));
                    None
                }
            };
            drain()?;
            if stop.requested().is_some() || ends(key) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn interval(&mut self, taken: &Taken) -> anyhow::Result<()> {
        match &mut self.form {
            Form::Screen(screen) => screen.interval(taken, &self.about),
            Form::Lines => {
                let mut text = trace_live::lines(&taken.frame);
                for io in &taken.slow {
                    let name = taken.frame.devices.iter().find(|d| d.number == io.piece.device);
                    text.push_str(&trace_live::slow_line(io, name.map(|d| d.name.as_str())));
                    text.push('\n');
                }
                print(&text)
            }
            Form::Json => print_exact(&json::interval(&self.about, taken)?),
        }
    }
}

impl OnScreen {
    fn key(&mut self, until: Instant, about: &About) -> anyhow::Result<Option<u8>> {
        let key = self.terminal.key(until);
        let size = self.terminal.size();
        if size != self.size {
            self.size = size;
            self.draw(about)?;
        }
        Ok(key)
    }

    fn interval(&mut self, taken: &Taken, about: &About) -> anyhow::Result<()> {
        self.history.push(&taken.frame);
        self.slow.extend(taken.slow.iter().cloned());
        let surplus = self.slow.len().saturating_sub(SLOW_MAX);
        self.slow.drain(..surplus);
        self.last = Some((taken.frame.clone(), taken.lost.clone()));
        self.draw(about)
    }

    fn draw(&self, about: &About) -> anyhow::Result<()> {
        let Some((frame, lost)) = &self.last else { return Ok(()) };
        let (columns, rows) = self.size;
        let screen = Screen { about, frame, history: &self.history, slow: &self.slow, lost };
        self.terminal.draw(&trace_live::screen(&screen, columns, rows), columns)?;
        Ok(())
    }
}
