//! From keys to what they do.

use crate::pane::Pane;

/// A key, as far as the screen knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// A character with Ctrl.
    Ctrl(char),
    /// Enter.
    Enter,
    /// Escape.
    Escape,
    /// Backspace.
    Backspace,
    /// Tab.
    Tab,
    /// Shift and Tab.
    BackTab,
    /// An arrow.
    Up,
    /// An arrow.
    Down,
    /// An arrow.
    Left,
    /// An arrow.
    Right,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// Home.
    Home,
    /// End.
    End,
}

/// What a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Ends the screen.
    Quit,
    /// Shows the keys, or no longer.
    Help,
    /// Goes back: from details, from a large pane, from a filter.
    Back,
    /// Selects the next pane, or the one before.
    Pane(i8),
    /// Selects this pane.
    To(Pane),
    /// Selects a row further down, or up; in details and help, scrolls.
    Row(i32),
    /// Shows all that is known of the selected row.
    Open,
    /// Gives the selected pane the whole screen, or no longer.
    Zoom,
    /// Goes to a later sample, or an earlier one.
    Step(i64),
    /// Goes so much further in time, or back, ms.
    Leap(i64),
    /// Goes to the present.
    Live,
    /// Stays at this sample, or goes back to the present.
    Pause,
    /// Sorts by the next column.
    Sort,
    /// Turns the order round.
    Reverse,
    /// Begins to type a filter.
    Filter,
    /// Adds a character to the filter.
    Type(char),
    /// Removes the last one.
    Erase,
    /// Ends typing.
    Accept,
}

/// Samples of a long step through time.
const LONG: i64 = 10;
/// A leap through time, ms.
const HOUR_MS: i64 = 3_600_000;
/// Rows of a page.
const PAGE: i32 = 10;

/// Keys as they are shown in the help, with what they do.
pub const HELP: [(&str, &str); 14] = [
    ("q, Ctrl-C", "end"),
    ("?", "these keys, and what cannot be seen here"),
    ("Tab, 1 2 3 4", "next pane; devices, classes, processes, slow syncs"),
    ("Up Down, k j", "select a row, or scroll; PgUp, PgDn go further, g to the first"),
    ("Enter", "all that is known of the row; Esc goes back"),
    ("z", "the pane alone on the screen; again: all of them"),
    ("Left Right", "step back and forward in time, before this screen's start too"),
    ("< >, [ ]", "the same by ten samples, by an hour"),
    ("Space", "stay at this sample; again: the present"),
    ("End", "the present"),
    ("s", "sort by the next column"),
    ("r", "turn the order round"),
    ("/", "filter by name; Enter keeps it, Esc removes it"),
    ("", ""),
];

/// What a key does; `is_typing`: while a filter is typed.
pub fn action(key: Key, is_typing: bool) -> Option<Action> {
    if key == Key::Ctrl('c') {
        return Some(Action::Quit);
    }
    if is_typing {
        return match key {
            Key::Enter => Some(Action::Accept),
            Key::Escape => Some(Action::Back),
            Key::Backspace | Key::Ctrl('h') => Some(Action::Erase),
            Key::Char(c) => Some(Action::Type(c)),
            _ => None,
        };
    }
    Some(match key {
        Key::Char('q' | 'Q') => Action::Quit,
        Key::Char('?' | 'h') => Action::Help,
        Key::Escape => Action::Back,
        Key::Tab => Action::Pane(1),
        Key::BackTab => Action::Pane(-1),
        Key::Char('1') => Action::To(Pane::Devices),
        Key::Char('2') => Action::To(Pane::Classes),
        Key::Char('3') => Action::To(Pane::Processes),
        Key::Char('4') => Action::To(Pane::Slow),
        Key::Up | Key::Char('k') => Action::Row(-1),
        Key::Down | Key::Char('j') => Action::Row(1),
        Key::PageUp => Action::Row(-PAGE),
        Key::PageDown => Action::Row(PAGE),
        Key::Home | Key::Char('g') => Action::Row(i32::MIN),
        Key::Enter => Action::Open,
        Key::Char('z') => Action::Zoom,
        Key::Left => Action::Step(-1),
        Key::Right => Action::Step(1),
        Key::Char('<') => Action::Step(-LONG),
        Key::Char('>') => Action::Step(LONG),
        Key::Char('[') => Action::Leap(-HOUR_MS),
        Key::Char(']') => Action::Leap(HOUR_MS),
        Key::End => Action::Live,
        Key::Char(' ') => Action::Pause,
        Key::Char('s') => Action::Sort,
        Key::Char('r') => Action::Reverse,
        Key::Char('/') => Action::Filter,
        _ => return None,
    })
}
