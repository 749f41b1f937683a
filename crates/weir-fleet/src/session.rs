//! A host while it is worked on: the script that runs there, and what it is asked, in order.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use weir_core::stop::Stop;
use weir_fs::Fresh;

use crate::agent;
use crate::binary::{BLOCK, Payload};
use crate::inventory::Host;
use crate::wire::{Channel, Gone, LINE_BYTES, Ssh};

/// Lines of others (`echo` in a shell's start-up file) that may come before the script's first.
const FOREIGN_LINES: usize = 1000;

/// How long a host may take for what takes no time.
const SHORT: Duration = Duration::from_secs(20);

/// How long a host may take to end weir and remove its folder.
pub const END: Duration = Duration::from_secs(25);

/// The most that is pulled of one host in one run.
pub const PULL_BYTES: u64 = 1 << 30;

/// The most of one file that is pulled.
const FILE_BYTES: u64 = PULL_BYTES / 4;

/// Why a host gives no result, in words for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// It was not reached, or let nobody in.
    Unreachable(String),
    /// It was reached and could not do it.
    Failed(String),
    /// It took too long.
    TimedOut(String),
    /// Somebody asked to stop.
    Stopped,
}

/// The clock of a host against this machine's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClockOffset {
    /// The host's clock is ahead by this.
    pub offset_ns: i64,
    /// And that is true to within this: half of the time that question and answer took.
    pub within_ns: i64,
}

/// How one run of weir ended.
#[derive(Debug, Clone)]
pub struct Ended {
    /// Its exit code, or 128 + signal.
    pub code: i32,
    /// When it began, by the host's clock, in ns since 1970.
    pub began_ns: Option<i64>,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
    /// Where one of the two is longer than is pulled: it is empty here, and the host has failed.
    pub cut: Option<Failure>,
}

impl Ended {
    /// Only what has all that weir printed: what is missing may be what matters.
    pub fn whole(mut self) -> Result<Ended, Failure> {
        self.cut.take().map_or(Ok(self), Err)
    }
}

/// A host that answers.
pub struct Session {
    channel: Channel,
    mark: String,
    /// As `uname -m` has it.
    pub architecture: String,
    /// Whether weir runs as root there.
    pub root: bool,
}

impl Session {
    /// Connects, and starts the script.
    pub fn open(
        ssh: &Ssh,
        host: &Host,
        sudo: bool,
        need_bytes: u64,
        longest: Duration,
        stop: &Stop,
    ) -> Result<Session, Failure> {
        let mark = weir_fs::unguessable().map_err(|error| Failure::Failed(error.to_string()))?;
        let remote = agent::command(&agent::Asked { mark: &mark, sudo, need_bytes, longest });
        let channel = ssh.open(host, &remote, stop).map_err(|gone| reached(gone, "", ssh))?;
        let mut session = Session { channel, mark, architecture: String::new(), root: false };
        let until = Instant::now() + ssh.connect_timeout + SHORT;
        let first = session.first(until).map_err(|gone| {
            let said = session.channel.said();
            reached(gone, &said, ssh)
        })?;
        match first.split_once(' ').unwrap_or((&first, "")) {
            ("ready", rest) => {
                let (architecture, account) = rest.split_once(' ').unwrap_or((rest, ""));
                session.architecture = short(architecture);
                session.root = account == "0";
                Ok(session)
            }
            ("lacks", tool) => Err(Failure::Failed(format!("it has no program called {}", short(tool)))),
            ("no-folder", why) => Err(Failure::Failed(format!("no folder to put weir into: {}", short(why)))),
            _ => Err(Failure::Failed(format!("an answer that means nothing: {}", short(&first)))),
        }
    }

    /// The script's first line, after what start-up files may print.
    fn first(&mut self, until: Instant) -> Result<String, Gone> {
        for _ in 0..FOREIGN_LINES {
            let line = self.channel.line(LINE_BYTES, until)?;
            if let Some(answer) = line.strip_prefix(&self.mark) {
                return Ok(answer.trim_start().to_string());
            }
        }
        Err(Gone::TooLong)
    }

    fn answer(&mut self, until: Instant) -> Result<String, Gone> {
        let line = self.channel.line(LINE_BYTES, until)?;
        match line.strip_prefix(&self.mark) {
            Some(answer) => Ok(answer.trim_start().to_string()),
            None => Err(Gone::Failed(format!("an answer that means nothing: {}", short(&line)))),
        }
    }

    /// Copies the program.
    pub fn put(&mut self, payload: &Payload, until: Instant) -> Result<(), Failure> {
        let mut sent = self.channel.send(payload.announcement().as_bytes(), until);
        for block in payload.packed.chunks(16 * BLOCK) {
            sent = sent.and_then(|()| self.channel.send(block, until));
        }
        let answer = match sent {
            // What the host said before it hung up tells more than that it did.
            Ok(()) | Err(Gone::Closed(_)) => self.answer(until),
            Err(gone) => Err(gone),
        };
        match answer.map_err(|gone| self.lost(gone, "copying"))?.as_str() {
            "put" => Ok(()),
            other => Err(Failure::Failed(format!(
                "the copy is damaged there: {}",
                short(other.trim_start_matches("bad "))
            ))),
        }
    }

    /// Compares the clocks, by the quickest of three questions.
    pub fn clock(&mut self, now_ns: impl Fn() -> i64) -> Result<Option<ClockOffset>, Failure> {
        let mut best: Option<ClockOffset> = None;
        for _ in 0..3 {
            let until = Instant::now() + SHORT;
            let before = now_ns();
            let answer = self.channel.send(b"time\n", until).and_then(|()| self.answer(until));
            let after = now_ns();
            let answer = answer.map_err(|gone| self.lost(gone, "the clock was asked for"))?;
            let Some(there) = answer.strip_prefix("time ").and_then(nanoseconds) else { return Ok(None) };
            let within_ns = (after - before) / 2;
            if best.is_none_or(|best| within_ns < best.within_ns) {
                best = Some(ClockOffset { offset_ns: there.saturating_sub(before + within_ns), within_ns });
            }
        }
        Ok(best)
    }

    /// Runs weir to its end.
    pub fn run(&mut self, arguments: &[String], until: Instant) -> Result<Ended, Failure> {
        let line = agent::run(arguments).map_err(Failure::Failed)?;
        let begun = self.channel.send(line.as_bytes(), until).and_then(|()| self.answer(until));
        let begun = begun.map_err(|gone| self.lost(gone, "starting"))?;
        let Some(began) = begun.strip_prefix("begun ") else {
            return Err(Failure::Failed(format!("an answer that means nothing: {}", short(&begun))));
        };
        let began_ns = nanoseconds(began);
        let done = match self.answer(until) {
            Ok(done) => done,
            Err(gone) => return Err(self.ended_by(gone)),
        };
        let code = done.strip_prefix("done ").and_then(|code| code.trim().parse().ok());
        let code =
            code.ok_or_else(|| Failure::Failed(format!("an answer that means nothing: {}", short(&done))))?;
        let mut cut = None;
        let out = self.text("out", &mut cut)?;
        let err = self.text("err", &mut cut)?;
        Ok(Ended { code, began_ns, out, err, cut })
    }

    /// Ends a run that is not to go on, so that weir restores and removes what it has there.
    fn ended_by(&mut self, gone: Gone) -> Failure {
        if matches!(gone, Gone::Late | Gone::Stopped) {
            self.channel.stop = Stop::default();
            let until = Instant::now() + END;
            let _ = self.channel.send(b"stop\n", until).and_then(|()| self.answer(until));
        }
        self.lost(gone, "running")
    }

    /// One of the two streams that weir printed, which the host sends as one file of its name; empty where not all of it comes.
    fn text(&mut self, which: &str, not_all: &mut Option<Failure>) -> Result<String, Failure> {
        let until = Instant::now() + 2 * SHORT;
        let sent = self.channel.send(format!("text {which}\n").as_bytes(), until);
        sent.map_err(|gone| self.lost(gone, "answering"))?;
        let mut text = None;
        let cut = self.files(until, &mut |name, Sent { bytes: size, .. }, channel| {
            if name != which {
                return Err(Gone::Failed(format!("an answer that means nothing: file {}", short(name))));
            }
            if text.is_some() || size > agent::TEXT_BYTES {
                return Err(Gone::TooLong);
            }
            channel.bytes(size, text.insert(Vec::new()), until)
        })?;
        if let Some((_, size)) = cut {
            let stream = if which == "out" { "output" } else { "error" };
            not_all.get_or_insert(too_long(&format!("its standard {stream}"), size));
            return Ok(String::new());
        }
        let text =
            text.ok_or_else(|| Failure::Failed(format!("an answer that means nothing: no file {which}")))?;
        // Text as it should be is not copied.
        Ok(String::from_utf8(text).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into()))
    }

    /// Pulls the record of the last run and the files that it left in its folder. `place` makes a file for a name; it decides what a host
    /// may call a file.
    pub fn pull(
        &mut self,
        place: &mut dyn FnMut(&str) -> Result<Fresh, String>,
        until: Instant,
    ) -> Result<(), Failure> {
        let sent = self.channel.send(format!("records {FILE_BYTES}\n").as_bytes(), until);
        sent.map_err(|gone| self.lost(gone, "pulling"))?;
        let mut left = PULL_BYTES;
        let cut = self.files(until, &mut |name, Sent { bytes: size, is_whole }, channel| {
            left = left.checked_sub(size).filter(|_| size <= FILE_BYTES).ok_or(Gone::TooLong)?;
            if !is_whole {
                return channel.bytes(size, &mut std::io::sink(), until);
            }
            let mut file = place(name).map_err(Gone::Failed)?;
            channel.bytes(size, &mut file, until)?;
            // Another weir-fleet may read it only when it is whole.
            file.commit_unsynced().map_err(|error| Gone::Failed(format!("cannot write {name}: {error}")))
        })?;
        cut.map_or(Ok(()), |(name, size)| Err(too_long(&short(&name), size)))
    }

    /// From now on a request to stop ends nothing here: what is left to do is to put things back.
    pub fn see_through(&mut self) {
        self.channel.stop = Stop::default();
    }

    /// Takes files until the host says that there are no more. Returns the first of which not all comes, and how long it is.
    fn files(
        &mut self,
        until: Instant,
        take: &mut dyn FnMut(&str, Sent, &mut Channel) -> Result<(), Gone>,
    ) -> Result<Option<(String, u64)>, Failure> {
        let mut cut = None;
        for _ in 0..1000 {
            let answer = self.answer(until).map_err(|gone| self.lost(gone, "pulling"))?;
            if answer == "end" {
                return Ok(cut);
            }
            let parts: Vec<&str> = answer.splitn(4, ' ').collect();
            let ["file", sent, size, name] = parts[..] else {
                return Err(Failure::Failed(format!("an answer that means nothing: {}", short(&answer))));
            };
            let (Ok(sent), Ok(size)) = (sent.parse::<u64>(), size.parse::<u64>()) else {
                return Err(Failure::Failed(format!("an answer that means nothing: {}", short(&answer))));
            };
            let sent = Sent { bytes: sent, is_whole: sent >= size };
            take(name, sent, &mut self.channel).map_err(|gone| self.lost(gone, "pulling"))?;
            if !sent.is_whole {
                cut.get_or_insert((name.to_string(), size));
            }
        }
        Err(Failure::Failed("it has more files than is pulled".to_string()))
    }

    /// Ends the script, which removes its folder. Whether that was confirmed.
    pub fn close(mut self) -> bool {
        let until = Instant::now() + END;
        self.channel.stop = Stop::default();
        let _ = self.channel.send(b"bye\n", until);
        self.channel.end(until) == Some(0)
    }

    fn lost(&mut self, gone: Gone, doing: &str) -> Failure {
        match gone {
            Gone::Stopped => Failure::Stopped,
            Gone::Late => Failure::TimedOut(format!("not in time ({doing})")),
            Gone::TooLong => Failure::Failed(format!("it answers more than weir ever does ({doing})")),
            Gone::Failed(why) => Failure::Failed(why),
            Gone::Closed(_) => {
                let said = self.channel.said();
                let last = last_line(&said).map_or(String::new(), |line| format!(": {line}"));
                Failure::Failed(format!("the connection ended ({doing}){last}"))
            }
        }
    }
}

/// How much of a file comes, and whether that is all of it.
#[derive(Debug, Clone, Copy)]
struct Sent {
    bytes: u64,
    is_whole: bool,
}

fn too_long(what: &str, bytes: u64) -> Failure {
    Failure::Failed(format!("{what} has {bytes} bytes, more than is pulled"))
}

/// Why a host was not reached, by what ssh says.
fn reached(gone: Gone, said: &str, ssh: &Ssh) -> Failure {
    let last = || last_line(said).unwrap_or_else(|| "ssh says nothing".to_string());
    match gone {
        Gone::Stopped => Failure::Stopped,
        Gone::Late => {
            Failure::Unreachable(format!("no answer within {} s", (ssh.connect_timeout + SHORT).as_secs()))
        }
        Gone::TooLong => Failure::Failed("its shell prints more than weir ever does".to_string()),
        Gone::Failed(why) => Failure::Failed(why),
        Gone::Closed(_) => {
            for (words, why) in [
                ("IDENTIFICATION HAS CHANGED", "its host key has changed; weir does not go on"),
                (
                    "Host key verification failed",
                    "its host key is not known here; connect once with ssh and compare the key",
                ),
                ("sudo: ", "no root by sudo -n"),
                ("Permission denied", "no key of this account is accepted"),
                ("timed out", "no answer in time"),
                ("Could not resolve", "its name is not known"),
                ("Connection refused", "connection refused"),
                ("No route to host", "no route to it"),
            ] {
                if said.contains(words) {
                    let is_sudo = words.starts_with("sudo");
                    let why = if is_sudo { format!("{why}: {}", last()) } else { why.to_string() };
                    return if is_sudo { Failure::Failed(why) } else { Failure::Unreachable(why) };
                }
            }
            Failure::Unreachable(last())
        }
    }
}

/// The last line that says something, short enough for a table.
pub fn last_line(text: &str) -> Option<String> {
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(short)
}

/// The error that weir said, else its last line.
pub fn error_in(text: &str) -> Option<String> {
    let error = text.lines().rev().find_map(|line| line.strip_prefix("error: "));
    error.map(short).or_else(|| last_line(text))
}

/// A text that somebody else chose, for a line of a table.
pub fn short(text: &str) -> String {
    let text = weir_core::printable::line(text.trim());
    match text.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

/// `1700000000.123456789` in nanoseconds. A `date` that knows no `%N` prints seconds alone, or something else behind the point.
fn nanoseconds(text: &str) -> Option<i64> {
    let (seconds, fraction) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    let fraction = if fraction.len() == 9 { fraction.parse().unwrap_or(0) } else { 0_i64 };
    seconds.parse::<i64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ssh_says_is_told_in_words() {
        let ssh = Ssh { program: "ssh".into(), config: None, connect_timeout: Duration::from_secs(5) };
        for (said, expected) in [
            (
                "@@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @@\nHost key verification failed.\n",
                "has changed",
            ),
            ("No ED25519 host key is known\nHost key verification failed.\n", "not known here"),
            ("root@x: Permission denied (publickey).\n", "no key of this account"),
            ("ssh: connect to host x port 22: Connection timed out\n", "no answer in time"),
            ("banner\n\u{1b}[2Jodd\n", "\u{fffd}[2Jodd"),
            ("", "ssh says nothing"),
        ] {
            let Failure::Unreachable(why) = reached(Gone::Closed(Some(255)), said, &ssh) else {
                panic!("{said}")
            };
            assert!(why.contains(expected), "{said}: {why}");
        }
        let Failure::Failed(why) = reached(Gone::Closed(Some(1)), "sudo: a password is required\n", &ssh)
        else {
            panic!()
        };
        assert_eq!(why, "no root by sudo -n: sudo: a password is required");
    }

    #[test]
    fn clocks_without_nanoseconds_are_read_too() {
        assert_eq!(nanoseconds("12.000000345"), Some(12_000_000_345));
        assert_eq!(nanoseconds("12.%N"), Some(12_000_000_000));
        assert_eq!(nanoseconds("12"), Some(12_000_000_000));
        assert_eq!(nanoseconds("99999999999999999999.0"), None);
        assert_eq!(nanoseconds("x"), None);
    }
}
