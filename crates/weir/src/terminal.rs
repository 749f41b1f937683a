//! The terminal as a screen: keys without echo, frames without flicker, everything put back on every way out.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, isatty, tcgetattr, tcsetattr};
use weir_core::printable;

/// Another screen, the cursor hidden, no line breaks of the terminal's own (ECMA-48 private modes of xterm).
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/// The terminal while the view has it.
pub struct Terminal {
    /// Its modes before, where keys can be read.
    before: Option<Termios>,
}

impl Terminal {
    /// Takes the terminal.
    pub fn enter() -> io::Result<Terminal> {
        let stdin = io::stdin();
        let before = if isatty(&stdin) { tcgetattr(&stdin).ok() } else { None };
        if let Some(before) = &before {
            let mut modes = before.clone();
            // A second signal of a key, and a stop, would leave the screen to the shell.
            modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
            tcsetattr(&stdin, OptionalActions::Now, &modes)?;
        }
        let modes = before.clone();
        restore_before_a_panic_is_told(move || leave(modes.as_ref()));
        let terminal = Terminal { before };
        write(ENTER)?;
        Ok(terminal)
    }

    /// Columns and rows.
    pub fn size(&self) -> (usize, usize) {
        weir_cli::terminal_size().unwrap_or((80, 24))
    }

    /// Shows lines, which fit into so many columns, from the top.
    pub fn draw(&self, lines: &[String], columns: usize) -> io::Result<()> {
        // Each line clears its own rest, so that nothing is blank for even a moment; behind a full line the cursor
        // still stands on its last character, which that would clear.
        let clear = |line: &String| if line.chars().count() < columns { "\x1b[K" } else { "" };
        // Names on the screen are chosen by others.
        let shown = |line: &String| format!("{}{}", printable::line(line), clear(line));
        let text: Vec<String> = lines.iter().map(shown).collect();
        write(&format!("\x1b[H{}\x1b[J", text.join("\r\n")))
    }

    /// Waits for a key, but not past a moment.
    pub fn key(&self, until: Instant) -> Option<u8> {
        let left = until.saturating_duration_since(Instant::now());
        if self.before.is_none() {
            std::thread::sleep(left);
            return None;
        }
        let stdin = io::stdin();
        let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        if !poll(&mut polled, Some(&timeout)).is_ok_and(|ready| ready > 0) {
            return None;
        }
        let mut byte = [0];
        match rustix::io::read(&stdin, &mut byte) {
            Ok(1) => Some(byte[0]),
            _ => {
                // A terminal that hung up is always ready and never has a key.
                std::thread::sleep(left.min(Duration::from_millis(100)));
                None
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        leave(self.before.as_ref());
    }
}

/// Gives the terminal back, with the modes that it had.
fn leave(before: Option<&Termios>) {
    let _ = write(LEAVE);
    if let Some(before) = before {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
    }
}

/// The message of a panic would be lost with the other screen.
pub fn restore_before_a_panic_is_told(restore: impl Fn() + Send + Sync + 'static) {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        restore();
        told(panic);
    }));
}

/// Whether a key ends a view: `q`, Ctrl-C, Ctrl-\.
pub fn ends(key: Option<u8>) -> bool {
    matches!(key, Some(b'q' | b'Q' | 0x03 | 0x1c))
}

/// Asks for something that must not show while it is typed. `None`: there is no terminal, or nothing was typed.
pub fn ask_hidden(question: &str) -> io::Result<Option<String>> {
    // The terminal itself, not stdin: that may be a file.
    let Ok(terminal) = File::options().read(true).write(true).open("/dev/tty") else { return Ok(None) };
    let before = tcgetattr(&terminal)?;
    let mut modes = before.clone();
    modes.local_modes.remove(LocalModes::ECHO);
    modes.local_modes.insert(LocalModes::ECHONL);
    tcsetattr(&terminal, OptionalActions::Flush, &modes)?;
    let restored = Restored { terminal: terminal.try_clone()?, before };
    let answer = answered(question, &terminal, BufReader::new(&terminal));
    drop(restored);
    answer
}

/// Asks; names in the question may be others'.
fn answered(question: &str, mut to: impl Write, mut from: impl BufRead) -> io::Result<Option<String>> {
    to.write_all(printable::line(question).as_bytes())?;
    let mut answer = String::new();
    from.read_line(&mut answer)?;
    Ok(Some(answer.trim_end_matches(['\r', '\n']).to_string()).filter(|answer| !answer.is_empty()))
}

/// Modes that come back however asking ends.
struct Restored {
    terminal: File,
    before: Termios,
}

impl Drop for Restored {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_no_name_in_a_question() {
        let mut shown = Vec::new();
        let answer = answered("password of a\u{1b}]0;b\u{9c}: ", &mut shown, &b"secret\r\n"[..]).unwrap();
        assert_eq!(String::from_utf8(shown).unwrap(), "password of a\u{fffd}]0;b\u{fffd}: ");
        assert_eq!(answer.as_deref(), Some("secret"));
    }
}
