//! Floods and the quiet between them, from the seconds of a history.

use weir_control::Second;

/// A bulk writer that is throttled for less than this in a second hardly presses, ms.
const HELD_LEAST_MS: u64 = 20;
/// Less than this a second is no flood: logs and the odd file, bytes.
const BULK_LEAST_BYTES: u64 = 4 << 20;
/// A flood that pauses for no longer than this goes on, s.
const PAUSE_MOST: usize = 3;
/// A shorter one is no flood, s.
const FLOOD_LEAST: usize = 3;

/// Whether bulk writers press.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stretch {
    /// They do not.
    Quiet,
    /// They do.
    Flood,
}

/// A stretch of a device's time, with what was done in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// Which kind.
    pub stretch: Stretch,
    /// `before`, `flood 2`, `after`.
    pub name: String,
    /// Its seconds: the first, and the one behind the last.
    pub range: (usize, usize),
}

/// The phases of a device, in the order of time; they cover all seconds.
pub fn phases(seconds: &[Second], shadow: bool) -> Vec<Phase> {
    let mut pressed: Vec<bool> = seconds.iter().map(|second| is_pressed(second, shadow)).collect();
    let (first, last) = (pressed.iter().position(|p| *p), pressed.iter().rposition(|p| *p));
    if let (Some(first), Some(last)) = (first, last) {
        smooth(&mut pressed[first..=last], false, PAUSE_MOST);
    }
    smooth(&mut pressed, true, FLOOD_LEAST - 1);
    let mut phases: Vec<Phase> = Vec::new();
    let mut start = 0;
    for end in 1..=pressed.len() {
        if end == pressed.len() || pressed[end] != pressed[start] {
            let stretch = if pressed[start] { Stretch::Flood } else { Stretch::Quiet };
            phases.push(Phase { stretch, name: String::new(), range: (start, end) });
            start = end;
        }
    }
    name(&mut phases);
    phases
}

/// By who is throttled and by what was dirtied; where somebody dirtied and it is not known how much, by whether the guard held against
/// it, or would have.
fn is_pressed(second: &Second, shadow: bool) -> bool {
    let dirtied = second.bulk_bytes.map_or(second.holding || shadow, |bytes| bytes >= BULK_LEAST_BYTES);
    second.bulk_held_ms >= HELD_LEAST_MS || dirtied
}

/// Turns runs of `value` that are no longer than `most` into their opposite.
fn smooth(pressed: &mut [bool], value: bool, most: usize) {
    for run in pressed.chunk_by_mut(|a, b| a == b) {
        if run.first() == Some(&value) && run.len() <= most {
            run.fill(!value);
        }
    }
}

fn name(phases: &mut [Phase]) {
    let floods = phases.iter().filter(|phase| phase.stretch == Stretch::Flood).count();
    let (mut flood, last) = (0, phases.len().saturating_sub(1));
    for (i, phase) in phases.iter_mut().enumerate() {
        phase.name = match phase.stretch {
            Stretch::Flood => {
                flood += 1;
                if floods == 1 { "flood".to_string() } else { format!("flood {flood}") }
            }
            Stretch::Quiet if floods == 0 => "quiet".to_string(),
            Stretch::Quiet if i == 0 => "before".to_string(),
            Stretch::Quiet if i == last => "after".to_string(),
            Stretch::Quiet => "between".to_string(),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floods_are_told_from_pauses_and_from_the_odd_file() {
        let second = |pressed: char| Second {
            bulk_bytes: (!"?h".contains(pressed)).then_some(if pressed == '#' { 100 << 20 } else { 1000 }),
            bulk_held_ms: if pressed == '?' { 400 } else { 0 },
            holding: pressed == 'h',
            ..Second::default()
        };
        for (course, expected) in [
            ("", ""),
            ("....", "quiet 0..4"),
            ("..#..", "quiet 0..5"),
            ("..####..", "before 0..2, flood 2..6, after 6..8"),
            ("####", "flood 0..4"),
            (".hhh", "before 0..1, flood 1..4"),
            (".##..#??.", "before 0..1, flood 1..8, after 8..9"),
            ("####....####.#", "flood 1 0..4, between 4..8, flood 2 8..14"),
        ] {
            let seconds: Vec<Second> = course.chars().map(second).collect();
            let found = phases(&seconds, false);
            let found: Vec<String> =
                found.iter().map(|p| format!("{} {}..{}", p.name, p.range.0, p.range.1)).collect();
            assert_eq!(found.join(", "), expected, "{course}");
        }
        // In shadow nothing is held.
        let unknown: Vec<Second> = "...???..".chars().map(second).collect();
        let unknown =
            unknown.into_iter().map(|second| Second { bulk_held_ms: 0, ..second }).collect::<Vec<_>>();
        assert_eq!((phases(&unknown, false).len(), phases(&unknown, true).len()), (1, 3));
    }
}
