//! The log of decisions: which of them matter, and each as a sentence or as JSON.

use serde::Serialize;
use weir_control::{Action, Branch, Decision, Effect, Mood, Noted, Second};
use weir_core::units::{Nanos, megabytes_per_second, per_second};
use weir_report::guard as words;

/// Value of `schema` in each JSON line.
pub const SCHEMA: &str = "weir.guard.log/1";

/// Lines that may come at once, and how many a second after that.
const BURST: f64 = 30.0;
const PER_SECOND: f64 = 1.0;

/// That a target is out of reach is said again after so long.
const AGAIN_NS: u64 = 60_000_000_000;

/// What is remembered of a device's lines, to know which decision is news.
#[derive(Debug, Default)]
pub struct News {
    /// The last state that was told: a branch in which the guard does something counts as one.
    told: Option<Option<Branch>>,
    /// When it was last told that a target is out of reach.
    out_of_reach_ns: Option<u64>,
    /// Lines that may still come at once.
    room: Option<(f64, u64)>,
}

impl News {
    /// Whether a decision says something new: something came of it, or the guard is in another state.
    pub fn is_news(&mut self, decision: &Decision, effect: &Effect) -> bool {
        let state = state(decision.branch);
        let changed = self.told != Some(state);
        // At the start all is well until something else is said.
        let first_calm = self.told.is_none() && decision.branch == Branch::Steady;
        self.told = Some(state);
        if decision.branch == Branch::Infeasible {
            let since = self.out_of_reach_ns.map(|at_ns| decision.at_ns.saturating_sub(at_ns));
            let is_news = since.is_none_or(|ns| ns >= AGAIN_NS);
            if is_news {
                self.out_of_reach_ns = Some(decision.at_ns);
            }
            return is_news || *effect != Effect::None;
        }
        (changed && !first_calm) || *effect != Effect::None
    }

    /// Whether there is room for a line now.
    pub fn has_room(&mut self, now_ns: u64) -> bool {
        let (room, then_ns) = self.room.unwrap_or((BURST, now_ns));
        let room = (room + now_ns.saturating_sub(then_ns) as f64 / 1e9 * PER_SECOND).min(BURST);
        let has = room >= 1.0;
        self.room = Some((if has { room - 1.0 } else { room }, now_ns));
        has
    }
}

/// Branches between which the guard goes back and forth while it holds a limit are one state.
fn state(branch: Branch) -> Option<Branch> {
    match branch {
        Branch::Steady
        | Branch::Draining
        | Branch::Arm
        | Branch::OldestSync
        | Branch::Tail
        | Branch::Share
        | Branch::RateDrop
        | Branch::Probe
        | Branch::Tip
        | Branch::Raise
        | Branch::Search
        | Branch::Infeasible => None,
        other => Some(other),
    }
}

#[derive(Serialize)]
struct Line<'a, T> {
    schema: &'static str,
    at: &'a str,
    kind: &'static str,
    #[serde(flatten)]
    what: T,
    sentence: String,
}

/// A decision in one sentence: what was done, to what, why, on what.
pub fn sentence(noted: &Noted) -> String {
    let whose = if noted.device.is_empty() { String::new() } else { format!("{}: ", noted.device) };
    let reason = words::reason(noted);
    let Some(decision) = &noted.decision else { return whose + &reason };
    let before = words::limit(decision.inputs.limit_bytes, decision.inputs.of_cgroup);
    let done = match words::done(noted) {
        Some(done) => format!("limit {done} from {before}"),
        None => format!("limit {before}"),
    };
    format!("{whose}{done} ({}): {reason}", words::branch(decision.branch))
}

/// A decision as a line of JSON.
pub fn noted_json(at: &str, noted: &Noted) -> String {
    json(at, "decision", noted, sentence(noted))
}

/// A minute as a line of JSON.
pub fn minute_json(at: &str, minute: &Minute) -> String {
    json(at, "minute", minute, minute.sentence())
}

/// Something that is neither, as a line of JSON.
pub fn remark_json(at: &str, sentence: &str) -> String {
    json(at, "remark", serde_json::Map::new(), sentence.to_string())
}

fn json<T: Serialize>(at: &str, kind: &'static str, what: T, sentence: String) -> String {
    // Numbers and texts: there is nothing in it that could not be written.
    serde_json::to_string(&Line { schema: SCHEMA, at, kind, what, sentence }).unwrap_or_default()
}

/// Seconds of a device added up.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Minute {
    /// The device.
    pub device: String,
    /// Seconds.
    pub seconds: u64,
    /// Syncs that ended.
    pub syncs: u64,
    /// Greatest of the seconds' 99th percentiles, in microseconds.
    pub p99_us: u64,
    /// Greatest age of a sync under way, in microseconds.
    pub oldest_us: u64,
    /// The last target, in microseconds.
    pub target_us: Option<u64>,
    /// Seconds over it.
    pub seconds_over_target: u64,
    /// Written to the device by all, in bytes.
    pub written_bytes: u64,
    /// The limit at the end, in bytes.
    pub limit_bytes: u64,
    /// Whether that is a cgroup's: what it may write in a tenth of a second.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub of_cgroup: bool,
    /// Times that the limit was set.
    pub changes: u64,
}

impl Minute {
    /// Takes in a second.
    pub fn add(&mut self, second: &Second) {
        self.seconds += 1;
        self.syncs += second.syncs;
        self.p99_us = self.p99_us.max(second.p99_us.unwrap_or(0));
        self.oldest_us = self.oldest_us.max(second.oldest_us);
        self.target_us = second.target_us.or(self.target_us);
        self.seconds_over_target += u64::from(second.is_over_target());
        self.written_bytes += second.written_bytes;
        (self.limit_bytes, self.of_cgroup) = (second.limit_bytes, second.of_cgroup);
    }

    /// In one sentence.
    pub fn sentence(&self) -> String {
        let rate = |count: u64| count as f64 / self.seconds.max(1) as f64;
        let time = |us: u64| Nanos(us.saturating_mul(1000));
        let syncs = match self.syncs {
            0 => "no syncs".to_string(),
            n => format!("{} syncs/s, p99 at most {}", per_second(rate(n)), time(self.p99_us)),
        };
        let target = match self.target_us {
            Some(target) => {
                let over = self.seconds_over_target;
                format!(" (target {}, {over} of {} s over it)", time(target), self.seconds)
            }
            None => String::new(),
        };
        format!(
            "{}: last {} s: {syncs}{target}, {} written, limit {}, set {} times",
            self.device,
            self.seconds,
            megabytes_per_second(rate(self.written_bytes)),
            words::limit(self.limit_bytes, self.of_cgroup),
            self.changes
        )
    }
}

/// The limit that is asked for after a decision, in bytes; `None` is the baseline.
pub fn wish(decision: &Decision, before: Option<u64>) -> Option<u64> {
    match (decision.action, decision.mood) {
        (Action::Set { bytes }, _) => Some(bytes),
        (Action::Keep, Mood::Holding) => before,
        (Action::Release, _) | (Action::Keep, Mood::Released) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;

    #[test]
    fn only_what_is_new_is_told() {
        let mut news = News::default();
        let written = Effect::Written { bytes: 7 };
        for (branch, effect, expected) in [
            (Branch::Steady, Effect::None, false),
            (Branch::Arm, written.clone(), true),
            (Branch::Draining, Effect::None, false),
            (Branch::Tail, written, true),
            (Branch::Steady, Effect::None, false),
            (Branch::Silent, Effect::None, true),
            (Branch::Silent, Effect::None, false),
            (Branch::Steady, Effect::None, true),
            (Branch::Infeasible, Effect::None, true),
            (Branch::Steady, Effect::None, false),
            (Branch::Infeasible, Effect::None, false),
            (Branch::Infeasible, Effect::Written { bytes: 7 }, true),
        ] {
            let decision = Decision { branch, ..testing::decision(0) };
            assert_eq!(news.is_news(&decision, &effect), expected, "{branch:?} {effect:?}");
        }
        // It is said again a minute later.
        let decision = Decision { branch: Branch::Infeasible, ..testing::decision(AGAIN_NS) };
        assert!(news.is_news(&decision, &Effect::None));
    }

    #[test]
    fn a_storm_of_lines_is_bounded() {
        let mut news = News::default();
        let of_a_second = |news: &mut News, second: u64| {
            (0..100).filter(|n| news.has_room((second * 100 + n) * 10_000_000)).count()
        };
        assert!(of_a_second(&mut news, 0) >= BURST as usize);
        let later: usize = (1..61).map(|second| of_a_second(&mut news, second)).sum();
        assert!((59..=61).contains(&later), "{later} lines in a minute");
    }

    #[test]
    fn lines_of_json_say_when_what_and_the_same_in_words() {
        let effect = Effect::StoodDown { why: "somebody set it to 9".to_string() };
        let noted = Noted { at_ms: 5, device: "sda".to_string(), decision: None, effect };
        let line: serde_json::Value = serde_json::from_str(&noted_json("now", &noted)).unwrap();
        assert_eq!(
            (&line["schema"], &line["kind"], &line["at"]),
            (&SCHEMA.into(), &"decision".into(), &"now".into())
        );
        assert_eq!(line["sentence"], "sda: yielded: somebody set it to 9");
        assert_eq!(line["effect"]["stood-down"]["why"], "somebody set it to 9");
        let mut minute = Minute { device: "sda".to_string(), changes: 2, ..Minute::default() };
        for p99_us in [1000, 3000] {
            let second = Second {
                syncs: 10,
                p99_us: Some(p99_us),
                target_us: Some(2000),
                written_bytes: 4_000_000,
                limit_bytes: 8_000_000,
                ..Second::default()
            };
            minute.add(&second);
        }
        let line: serde_json::Value = serde_json::from_str(&minute_json("now", &minute)).unwrap();
        assert_eq!((&line["kind"], &line["syncs"]), (&"minute".into(), &20.into()));
        assert_eq!(
            line["sentence"],
            "sda: last 2 s: 10.0 syncs/s, p99 at most 3.00 ms (target 2.00 ms, 1 of 2 s over it), 4.00 MB/s written, \
             limit 8.00 MB, set 2 times"
        );
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&remark_json("now", "ok")).unwrap()["sentence"],
            "ok"
        );
    }
}
