//! What is said on stderr while hosts work: a line for each that ends, and from time to time which ones are waited for.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use weir_core::stop::Stop;

/// How often those that are waited for are named.
const EVERY: Duration = Duration::from_secs(10);

/// How many are named.
const NAMED: usize = 4;

/// What a host's thread says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// It begins to do this.
    Doing(&'static str),
    /// It has ended; in a sentence.
    Ended(String),
}

/// Says it until every host has ended, and hears when somebody asks to stop.
pub fn follow(names: &[String], words: &Receiver<(usize, Word)>, stop: &Stop) {
    let begun = Instant::now();
    let mut doing: Vec<Option<(&'static str, Instant)>> = vec![None; names.len()];
    let (mut ended, mut said_at, mut said_stop) = (0, begun, false);
    while ended < names.len() {
        match words.recv_timeout(Duration::from_millis(500)) {
            Ok((n, Word::Doing(what))) => doing[n] = Some((what, Instant::now())),
            Ok((n, Word::Ended(sentence))) => {
                doing[n] = None;
                ended += 1;
                say!("[{ended}/{}] {sentence}", names.len());
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if stop.requested().is_some() && !said_stop {
            said_stop = true;
            say!("stopping: hosts end weir and remove their folders; a second Ctrl-C does not wait for that");
        }
        if said_at.elapsed() >= EVERY {
            said_at = Instant::now();
            if let Some(sentence) = waiting(names, &doing, said_at) {
                say!("{ended} of {} hosts ended; {sentence}", names.len());
            }
        }
    }
}

/// Which hosts are waited for, the longest wait first.
fn waiting(names: &[String], doing: &[Option<(&'static str, Instant)>], now: Instant) -> Option<String> {
    let mut all: Vec<(&String, &str, u64)> = names
        .iter()
        .zip(doing)
        .filter_map(|(name, doing)| {
            doing.map(|(what, since)| (name, what, now.saturating_duration_since(since).as_secs()))
        })
        .collect();
    all.sort_by_key(|(_, _, seconds)| std::cmp::Reverse(*seconds));
    let named: Vec<String> = all
        .iter()
        .take(NAMED)
        .map(|(name, what, seconds)| format!("{name} {what} for {seconds} s"))
        .collect();
    let more = all.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    (!all.is_empty()).then(|| format!("waiting: {}{more}", named.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stragglers_are_named_longest_first() {
        let now = Instant::now() + Duration::from_secs(100);
        let since = |seconds: u64| now - Duration::from_secs(seconds);
        let names: Vec<String> = (0..7).map(|n| format!("db{n}")).collect();
        let mut doing = vec![Some(("running", since(5))); 7];
        doing[3] = Some(("copying", since(40)));
        doing[0] = None;
        let said = waiting(&names, &doing, now).unwrap();
        assert!(said.starts_with("waiting: db3 copying for 40 s, db1 running for 5 s"), "{said}");
        assert!(said.ends_with(", and 2 more"), "{said}");
        assert_eq!(waiting(&names, &[None; 7], now), None);
    }
}
