//! `weir knobs journal`, `confirm` and `rollback`.

use std::time::Duration;

use jiff::Zoned;
use weir_host::knob::{self, Journal, KnobError, LedBack, Listed, Until, Which};
use weir_knobs::KnobName;
use weir_knobs::persist::{Found, KEEPERS};
use weir_report::text::{self, knobs::Change};

use super::keep;
use crate::change_journal::{all_journals, failed, the_journal};
use crate::failure::{Lacking, Outcome};
use crate::machine::{self, root_or};
use crate::output::print;

/// What anybody may do.
const LOOKING: &str = "`weir knobs journal` works without";

/// What is in force by weir, and what is kept for the next boot.
pub fn show() -> anyhow::Result<Outcome> {
    let (mut out, mut damaged) = (String::new(), Vec::new());
    for journal in all_journals() {
        let (entries, failed) = knob::entries(&journal);
        let changes: Vec<Change> = entries.into_iter().map(change).collect();
        out.push_str(&text::knobs::changes(&changes));
        damaged.extend(failed);
        if journal.is_closed() {
            let folder = journal.folder().display();
            out.push_str(&format!("{folder} may be read by root alone: there may be changes in it\n"));
        }
    }
    for keeper in KEEPERS {
        let kept = match keep::text_of(keeper, None).ok().flatten().map(|text| keeper.found(&text)) {
            Some(Found::Kept(kept)) => kept.into_iter().map(|one| one.setting.to_string()).collect(),
            Some(Found::Edited(line)) => vec![format!("edited after weir wrote it, at the line `{line}`")],
            Some(Found::Foreign) | None => Vec::new(),
        };
        for one in kept {
            out.push_str(&format!("at the next boot, by {}: {one}\n", keeper.path()));
        }
    }
    if out.is_empty() && damaged.is_empty() {
        out = "weir has nothing in force, and keeps nothing for the next boot\n".to_string();
    }
    print(&out)?;
    ended(damaged)
}

fn change(listed: Listed) -> Change {
    // weir-fleet reads these words, too (`crates/weir-fleet/src/journal.rs`).
    let who = if listed.alive { "running" } else { "ended" };
    let until = match listed.until {
        Until::End => "until that ends".to_string(),
        Until::Deadline(left) => format!("goes back in {} unless confirmed", said(left)),
        Until::Rollback if listed.changes.iter().all(|(knob, ..)| knob.is_of_server()) => {
            "stays until `weir knobs rollback`".to_string()
        }
        Until::Rollback => "stays until `weir knobs rollback` or the next boot".to_string(),
        Until::Stale => "nobody answers for it any more: the next weir takes it back".to_string(),
        Until::Void => "of an earlier boot, and void".to_string(),
    };
    let title = match listed.by_guard {
        true => {
            let since = Zoned::now().saturating_sub(listed.age).strftime("%F %H:%M:%S").to_string();
            let (age, pid) = (said(listed.age), listed.pid);
            format!("held by weir guard since {since} ({age}), process {pid} ({who}); {until}")
        }
        false => format!("{} ago, by process {} ({who}); {until}", said(listed.age), listed.pid),
    };
    Change { title, values: listed.changes }
}

/// A time to the second, of hours to the minute.
fn said(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Root may change what is in the journal, and a user what is in a journal of variables of servers alone.
fn may_change(journal: &Journal, what: &str) -> anyhow::Result<()> {
    let (entries, _) = knob::entries(journal);
    let mut knobs = entries.iter().flat_map(|entry| &entry.changes).map(|(knob, ..)| knob).peekable();
    let is_of_servers = knobs.peek().is_some() && knobs.all(KnobName::is_of_server);
    if is_of_servers { Ok(()) } else { root_or(what, LOOKING) }
}

/// Keeps what waits: of one process, or all.
pub fn confirm(of: Option<u32>) -> anyhow::Result<Outcome> {
    let journal = the_journal();
    may_change(&journal, "confirming a change")?;
    for sentence in knob::confirm(&journal, of).map_err(failed)? {
        print(&format!("{sentence}\n"))?;
    }
    Ok(Outcome::Done)
}

/// Restores.
pub fn rollback(all: bool) -> anyhow::Result<Outcome> {
    let journal = the_journal();
    may_change(&journal, "putting settings back")?;
    let is_empty = knob::entries(&journal).0.is_empty();
    let outcome =
        told(knob::rollback(&machine::host(), &journal, if all { Which::All } else { Which::Last }));
    if is_empty && std::env::var_os("SUDO_USER").is_some() {
        say!(
            "note: this is root's journal: run `weir knobs rollback` without sudo for what you changed without it"
        );
    }
    outcome
}

/// Restores what ended processes have left behind, and nothing that a running weir or a user keeps: what a service
/// does after its end, whichever it was.
pub fn recover() -> anyhow::Result<Outcome> {
    let journal = the_journal();
    may_change(&journal, "putting settings back")?;
    told(knob::recover(&machine::host(), &journal))
}

fn told(done: LedBack) -> anyhow::Result<Outcome> {
    for sentence in &done.said {
        print(&format!("{sentence}\n"))?;
    }
    ended(done.failed)
}

/// The errors, the last of which ends the command.
fn ended(mut failed: Vec<KnobError>) -> anyhow::Result<Outcome> {
    let Some(last) = failed.pop() else { return Ok(Outcome::Done) };
    for error in failed {
        say!("error: {error}");
        if let Some(hint) = error.hint() {
            say!("hint: {hint}");
        }
    }
    Err(Lacking { what: last.to_string(), hint: last.hint() }.into())
}
