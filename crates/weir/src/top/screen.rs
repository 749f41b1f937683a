//! The terminal while `weir top` has it: frames, keys, and the way back on every way out.

use std::io::{self, BufWriter, Stdout, Write, stdout};
use std::time::{Duration, Instant};

use crossterm::cursor::{Hide, Show};
use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use crossterm::execute;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;
use weir_io::runner::Stop;
use weir_top::{Key, Look, Model, Samples, draw};

use crate::terminal::restore_before_a_panic_is_told;

/// How long the screen may take to end.
const GRACE: Duration = Duration::from_secs(1);
/// Bytes of a large frame.
const FRAME_BYTES: usize = 1 << 16;
/// How often keys and signals are looked at, and what has piled up is taken in.
const SLICE: Duration = Duration::from_millis(50);

/// The terminal while the screen has it. It is given back when this is dropped, in a panic too.
pub struct Screen<W: Write> {
    terminal: Terminal<CrosstermBackend<Restoring<W>>>,
    look: Look,
    /// Whether keys come one by one, and that is to be undone.
    is_raw: bool,
}

/// A writer whose terminal is left as it was when it goes.
struct Restoring<W: Write>(W);

impl<W: Write> Write for Restoring<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<W: Write> Drop for Restoring<W> {
    fn drop(&mut self) {
        let _ = execute!(self.0, LeaveAlternateScreen, Show);
    }
}

impl Screen<BufWriter<Stdout>> {
    /// Takes the terminal.
    pub fn enter(look: Look) -> io::Result<Self> {
        restore_before_a_panic_is_told(give_back);
        enable_raw_mode()?;
        // A frame goes out in one piece.
        let screen = Screen::on(BufWriter::with_capacity(FRAME_BYTES, stdout()), look);
        let mut screen = screen.inspect_err(|_| _ = disable_raw_mode())?;
        screen.is_raw = true;
        Ok(screen)
    }
}

/// Leaves the terminal as it was.
fn give_back() {
    let _ = disable_raw_mode();
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
}

impl<W: Write> Screen<W> {
    fn on(mut out: W, look: Look) -> io::Result<Screen<W>> {
        execute!(out, EnterAlternateScreen, Hide)?;
        let terminal = Terminal::new(CrosstermBackend::new(Restoring(out)))?;
        Ok(Screen { terminal, look, is_raw: false })
    }

    /// Draws a frame of the size that the terminal has now.
    pub fn draw(&mut self, model: &Model) -> io::Result<()> {
        let look = self.look;
        self.terminal.draw(|frame| draw(model, look, frame.area(), frame.buffer_mut()))?;
        Ok(())
    }
}

impl<W: Write> Drop for Screen<W> {
    fn drop(&mut self) {
        if self.is_raw {
            let _ = disable_raw_mode();
        }
    }
}

/// Shows samples until the user or a signal ends it, or no more come.
pub fn run<S: Samples<Error = anyhow::Error>>(
    samples: &mut S,
    model: &mut Model,
    look: Look,
    stop: &Stop,
) -> anyhow::Result<()> {
    let interval = Duration::from_nanos(model.about.interval_ns);
    let mut screen = Screen::enter(look)?;
    end_without_a_terminal(stop)?;
    screen.draw(model)?;
    let mut next = Instant::now() + interval;
    loop {
        let (mut changed, goes_on) = keys(model, next.min(Instant::now() + SLICE))?;
        if !goes_on || stop.requested().is_some() {
            return Ok(());
        }
        model.fetch(samples);
        samples.drain()?;
        if Instant::now() >= next {
            let Some(sample) = samples.take()? else { return Ok(()) };
            model.push(sample);
            changed = true;
            // An interval that was missed is not made up for.
            while next <= Instant::now() {
                next += interval;
            }
        }
        if changed {
            screen.draw(model)?;
        }
    }
}

/// Ends the process when a signal has asked for it and the screen does not: reading keys of a terminal that hung up may
/// never return.
fn end_without_a_terminal(stop: &Stop) -> io::Result<()> {
    let stop = stop.clone();
    std::thread::Builder::new().name("end".to_string()).spawn(move || {
        loop {
            std::thread::sleep(GRACE);
            if let Some(signal) = stop.requested() {
                std::thread::sleep(GRACE);
                give_back();
                std::process::exit(128 + i32::from(signal));
            }
        }
    })?;
    Ok(())
}

/// Waits for keys until a moment, and takes all there are. Whether a frame is due, and whether it goes on.
fn keys(model: &mut Model, until: Instant) -> io::Result<(bool, bool)> {
    let mut changed = false;
    let mut wait = until.saturating_duration_since(Instant::now());
    while event::poll(wait)? {
        wait = Duration::ZERO;
        match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                let Some(key) = known(key.code, key.modifiers) else { continue };
                if model.key(key).is_break() {
                    return Ok((true, false));
                }
                changed = true;
            }
            Event::Resize(..) => changed = true,
            _ => {}
        }
    }
    if !changed {
        // A terminal that hung up is always ready and never has a key.
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
    }
    Ok((changed, true))
}

fn known(code: KeyCode, modifiers: KeyModifiers) -> Option<Key> {
    Some(match code {
        KeyCode::Char(c) if modifiers.contains(KeyModifiers::CONTROL) => Key::Ctrl(c.to_ascii_lowercase()),
        KeyCode::Char(_) if modifiers.contains(KeyModifiers::ALT) => return None,
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_panic_gives_the_terminal_back() {
        let out = Shared::default();
        let theirs = out.clone();
        let ended = std::panic::catch_unwind(move || {
            let _screen = Screen::on(theirs, Look::terminal(false)).unwrap();
            panic!("amid a frame");
        });
        assert!(ended.is_err());
        let written = String::from_utf8(out.0.lock().unwrap().clone()).unwrap();
        assert!(written.starts_with("\x1b[?1049h\x1b[?25l"), "{written:?}");
        assert!(written.ends_with("\x1b[?1049l\x1b[?25h"), "{written:?}");
    }

    #[test]
    fn keys_of_the_terminal_are_the_screen_s() {
        for (code, modifiers, expected) in [
            (KeyCode::Char('c'), KeyModifiers::CONTROL, Some(Key::Ctrl('c'))),
            (KeyCode::Char('Q'), KeyModifiers::SHIFT, Some(Key::Char('Q'))),
            (KeyCode::Char('q'), KeyModifiers::ALT, None),
            (KeyCode::BackTab, KeyModifiers::SHIFT, Some(Key::BackTab)),
            (KeyCode::F(1), KeyModifiers::NONE, None),
        ] {
            assert_eq!(known(code, modifiers), expected, "{code:?}");
        }
    }
}
