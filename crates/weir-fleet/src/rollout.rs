//! A change of settings, step by step: on each host of a step probes of commits, the change, probes again. Harm on one host, or a host
//! that fails, takes the change back on all. Each host's own guardian takes it back too, unless it is confirmed in time: so nothing stays
//! where this program, or the way to a host, is gone.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use weir_core::stop::Stop;

use crate::course::{Plan, Turn, on_each};
use crate::figures::{self, Commits};
use crate::gate::Gate;
use crate::guardrail::{self, Probes};
use crate::inventory::Host;
use crate::journal::{self, Entry, Standing};
use crate::report::{Change, HostReport, Rollout, State};
use crate::session::{Failure, Session, error_in};

/// What `weir knobs journal` says where nothing is in force.
const NOTHING_IN_FORCE: &str = "weir has nothing in force";

/// And of settings for the next boot, which are no change in force.
const NEXT_BOOT: &str = "at the next boot";

/// Why a host is not done whose change is not in force any more when it is to be confirmed.
const GONE: &str = "the change is no longer in force there: the host restarted, its time was over, or somebody rolled it back";

/// Probes before a change, and after it.
const PROBES: usize = 2;

/// Probes after a change that is to be called harmful: what a neighbour does for some seconds must not take back a rollout.
const PROBES_MOST: usize = 3 * PROBES;

/// How long what takes no time may take.
const SHORT: Duration = Duration::from_secs(120);

/// weir's exit code where it refused before it wrote anything.
const REFUSED: i32 = 2;

/// What weir says where every value is as it was asked for.
const NOTHING_TO_CHANGE: &str = "nothing to change";

/// How much longer than a few times its length a probe may take: it writes its file first.
const GRACE: Duration = Duration::from_secs(40);

/// How a rollout goes.
#[derive(Debug, Clone)]
pub struct Rules {
    /// How many hosts have the change after each step.
    pub steps: Vec<usize>,
    /// Hosts that are worked on at the same time.
    pub parallel: usize,
    /// The folder on the hosts whose storage is probed.
    pub probe: String,
    /// How long a probe takes.
    pub probe_time: Duration,
    /// How much worse commits may be, in percent.
    pub worse_percent: f64,
}

impl Rules {
    /// The time after which a host restores by itself: every step with as many turns as its hosts take, and some more.
    pub fn confirm_within(&self) -> Duration {
        let turn = ((PROBES + PROBES_MOST) as u32) * (4 * self.probe_time + GRACE) + 4 * SHORT;
        let from = std::iter::once(0).chain(self.steps.iter().copied());
        let turns: usize =
            self.steps.iter().zip(from).map(|(to, from)| (to - from).div_ceil(self.parallel)).sum();
        Duration::from_secs(600) + turn.saturating_mul(u32::try_from(turns).unwrap_or(u32::MAX))
    }

    fn probing(&self) -> Vec<String> {
        let duration = format!("{}ms", self.probe_time.as_millis());
        let words = [
            "bench",
            "--dir",
            &self.probe,
            "--rw",
            "write",
            "--block",
            "4k",
            "--sync-every",
            "1",
            "--size",
            "4M",
            "--duration",
            &duration,
            "--format",
            "json",
        ];
        words.map(String::from).to_vec()
    }
}

/// A host between its step and the end.
#[derive(Default)]
struct Seat {
    session: Option<Session>,
    made: Made,
    report: Option<HostReport>,
    begun: Option<Instant>,
}

/// What is known of the change on a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Made {
    /// It was not asked for, was refused, or there was nothing to change.
    #[default]
    Not,
    /// It was asked for, and its entry in the journal was not seen.
    Perhaps,
    /// It is the entry of this process.
    By(String),
}

impl Made {
    fn is(&self, entry: &Entry) -> bool {
        match self {
            Made::Not => false,
            // The journal was empty before.
            Made::Perhaps => true,
            Made::By(process) => *process == entry.process,
        }
    }
}

/// Carries the change from step to step. The report of each host, and whether all is as it was asked.
pub fn carry(plan: &Plan, hosts: &[Host], rules: &Rules) -> Vec<HostReport> {
    let seats: Vec<Mutex<Seat>> = hosts.iter().map(|_| Mutex::default()).collect();
    let (mut from, mut good) = (0, true);
    for (nth, &to) in rules.steps.iter().enumerate() {
        say!("step {} of {}: {} of {} hosts", nth + 1, rules.steps.len(), to, hosts.len());
        let part: Vec<(&Host, &Mutex<Seat>)> = hosts[from..to].iter().zip(&seats[from..to]).collect();
        let reports =
            on_each(plan, &plan.stop, part, |turn, seat, gate| step(turn, seat, gate, rules, nth + 1));
        from = to;
        good = reports.iter().all(|report| report.state == State::Done) && plan.stop.requested().is_none();
        if !good {
            break;
        }
    }
    finish(plan, hosts, &seats, good);
    let reports = seats.into_iter().zip(hosts).map(|(seat, host)| {
        let seat = seat.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        seat.report.unwrap_or_else(|| HostReport::new(&host.name))
    });
    reports.collect()
}

/// Confirms the change wherever it is, or takes it back.
fn finish(plan: &Plan, hosts: &[Host], seats: &[Mutex<Seat>], good: bool) {
    let touched: Vec<(&Host, &Mutex<Seat>)> =
        hosts.iter().zip(seats).filter(|(_, seat)| locked(seat).made != Made::Not).collect();
    if touched.is_empty() {
        return;
    }
    say!(
        "{}",
        if good {
            "every step held: confirms the change"
        } else {
            "takes the change back on every host that has it"
        }
    );
    // From here on nothing is left half done, whoever asks to stop.
    on_each(plan, &Stop::default(), touched, |turn, seat, gate| {
        let _pass = gate.enter(turn.stop);
        let mut seat = locked(seat);
        end(turn, &mut seat, good)
    });
}

fn step(turn: &Turn<'_>, seat: &Mutex<Seat>, gate: &Gate, rules: &Rules, nth: usize) -> HostReport {
    let mut report = HostReport::new(&turn.host.name);
    let mut seat = locked(seat);
    let _pass = gate.enter(turn.stop);
    let begun = Instant::now();
    let mut probes = Probes::default();
    let result = turn.open(&mut report).and_then(|mut session| {
        let result = changed(turn, &mut session, rules, &mut probes, &mut seat.made);
        if seat.made == Made::Not {
            report.cleaned = session.close();
        } else {
            seat.session = Some(session);
        }
        result
    });
    match result.map(|()| guardrail::harm(&probes, rules.worse_percent)) {
        Ok(None) if seat.made == Made::Not => {
            (report.state, report.why) = (State::Done, Some(NOTHING_TO_CHANGE.to_string()));
        }
        Ok(None) => report.state = State::Done,
        Ok(Some(why)) => (report.state, report.why) = (State::BelowBar, Some(why)),
        Err(failure) => report.fail(failure),
    }
    if let Some(commits) = probes.after.last().or(probes.before.last()) {
        report.figures.commits = Some(*commits);
    }
    let change = if seat.made == Made::Not { Change::NotMade } else { Change::LeftToGuardian };
    report.rollout = Some(Rollout { step: nth, probes, change });
    report.elapsed_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    seat.begun = Some(begun);
    seat.report = Some(report.clone());
    report
}

/// Probes, the change, probes.
fn changed(
    turn: &Turn<'_>,
    session: &mut Session,
    rules: &Rules,
    probes: &mut Probes,
    made: &mut Made,
) -> Result<(), Failure> {
    nothing_in_force(session)?;
    turn.doing("probing before the change");
    probes.before = probed(session, rules)?;
    turn.doing("changing");
    // Somebody there may have changed something meanwhile.
    nothing_in_force(session)?;
    *made = Made::Perhaps;
    let ended = session.run(&turn.plan.arguments, Instant::now() + SHORT)?.whole()?;
    if ended.code != 0 {
        // Killed, or without anybody to print to, it may have left the change in force: the end asks the journal.
        if ended.code == REFUSED {
            *made = Made::Not;
        }
        let why = error_in(&ended.err).unwrap_or_else(|| format!("exit code {}", ended.code));
        return Err(Failure::Failed(why));
    }
    match journal(session)?.into_iter().next() {
        Some(entry) => *made = Made::By(entry.process),
        None if ended.out.lines().any(|line| line == NOTHING_TO_CHANGE) => {
            *made = Made::Not;
            return Ok(());
        }
        None => return Err(Failure::Failed("its journal has no entry of the change".to_string())),
    }
    turn.doing("probing after the change");
    loop {
        match probed(session, rules) {
            // A storage that does not even end a probe any more has no commits to speak of.
            Err(Failure::TimedOut(_)) => {
                probes.after.push(Commits::default());
                return Ok(());
            }
            after => probes.after.extend(after?),
        }
        if probes.after.len() >= PROBES_MOST || guardrail::harm(probes, rules.worse_percent).is_none() {
            return Ok(());
        }
        turn.doing("slower after the change: probing again");
    }
}

/// A rollback takes back the newest change: it must be this one.
fn nothing_in_force(session: &mut Session) -> Result<(), Failure> {
    let printed = weir(session, &["knobs", "journal"])?;
    let foreign = |line: &&str| {
        !line.trim().is_empty() && !line.starts_with(NOTHING_IN_FORCE) && !line.starts_with(NEXT_BOOT)
    };
    match printed.lines().find(foreign) {
        None => Ok(()),
        Some(line) => Err(Failure::Failed(format!(
            "weir has a change in force there, and a rollback could meet that one: {}",
            crate::session::short(line)
        ))),
    }
}

fn probed(session: &mut Session, rules: &Rules) -> Result<Vec<Commits>, Failure> {
    let mut all = Vec::new();
    for _ in 0..PROBES {
        let ended = session.run(&rules.probing(), Instant::now() + 4 * rules.probe_time + GRACE)?.whole()?;
        let commits = figures::read(&ended.out).commits.filter(|_| ended.code == 0);
        let why = || error_in(&ended.err).unwrap_or_else(|| format!("exit code {}", ended.code));
        all.push(commits.ok_or_else(|| Failure::Failed(format!("the probe failed: {}", why())))?);
    }
    Ok(all)
}

/// Runs weir; what it printed.
fn weir(session: &mut Session, words: &[&str]) -> Result<String, Failure> {
    let arguments: Vec<String> = words.iter().map(|word| word.to_string()).collect();
    let ended = session.run(&arguments, Instant::now() + SHORT)?.whole()?;
    match ended.code {
        0 => Ok(ended.out),
        code => Err(Failure::Failed(error_in(&ended.err).unwrap_or_else(|| format!("exit code {code}")))),
    }
}

fn journal(session: &mut Session) -> Result<Vec<Entry>, Failure> {
    Ok(journal::entries(&weir(session, &["knobs", "journal"])?))
}

/// Keeps the change, or takes it back. What became of it is the journal's word: `weir knobs confirm` and `rollback` end well also where
/// there is nothing of this change any more. `asked` says whether a confirmation was sent.
fn settle(session: &mut Session, made: &Made, good: bool, asked: &mut bool) -> Result<Change, Failure> {
    let entries = journal(session)?;
    let Some(at) = entries.iter().position(|entry| made.is(entry)) else {
        return Ok(match (made, good) {
            (Made::By(_), true) => Change::Gone,
            (Made::By(_), false) => Change::RolledBack,
            _ => Change::NotMade,
        });
    };
    match (good, entries[at].standing) {
        (true, Standing::Stays) => return Ok(Change::Kept),
        (true, Standing::Leaves) => return Ok(Change::Gone),
        (true, Standing::Waits) => {
            *asked = true;
            // Somebody else's change may wait there, too.
            weir(session, &["knobs", "confirm", "--of", &entries[at].process])?;
        }
        (false, _) if at > 0 => {
            let why = "a later change lies over it, and a rollback would take back that one";
            return Err(Failure::Failed(why.to_string()));
        }
        (false, _) => {
            weir(session, &["knobs", "rollback"])?;
        }
    }
    let after = journal(session)?.into_iter().find(|entry| made.is(entry)).map(|entry| entry.standing);
    match (good, after) {
        (true, Some(Standing::Stays)) => Ok(Change::Kept),
        (true, Some(Standing::Waits)) => Err(Failure::Failed("it was not confirmed".to_string())),
        (true, Some(Standing::Leaves) | None) => Ok(Change::Gone),
        (false, None) => Ok(Change::RolledBack),
        (false, Some(_)) => Err(Failure::Failed("a rollback left it in force".to_string())),
    }
}

/// The last word on a host.
fn end(turn: &Turn<'_>, seat: &mut Seat, good: bool) -> HostReport {
    let mut report = seat.report.take().unwrap_or_else(|| HostReport::new(&turn.host.name));
    turn.doing(if good { "confirming" } else { "rolling back" });
    let (made, mut asked) = (seat.made.clone(), false);
    let mut result = match &mut seat.session {
        Some(session) => {
            session.see_through();
            settle(session, &made, good, &mut asked)
        }
        None => Err(Failure::Stopped),
    };
    if result.is_err() {
        // The connection may be gone, and the host may not.
        if let Some(session) = seat.session.take() {
            report.cleaned = session.close();
        }
        let mut again = HostReport::new(&turn.host.name);
        result = turn.open(&mut again).and_then(|mut session| {
            let result = settle(&mut session, &made, good, &mut asked);
            seat.session = Some(session);
            result
        });
    }
    if let Some(session) = seat.session.take() {
        report.cleaned = session.close();
    }
    let (change, failure) = match result {
        Ok(Change::Gone) => (Change::Gone, Some(Failure::Failed(GONE.to_string()))),
        Ok(change) => (change, None),
        Err(failure) if asked => (Change::NotKnown, Some(failure)),
        Err(failure) => (Change::LeftToGuardian, Some(failure)),
    };
    if let Some(failure) = failure {
        let before = report.why.take();
        report.fail(failure);
        report.why = Some([before, report.why.take()].into_iter().flatten().collect::<Vec<_>>().join("; "));
    }
    if let Some(part) = &mut report.rollout {
        part.change = change;
    }
    if let Some(begun) = seat.begun {
        report.elapsed_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    }
    // Taken back though nothing was wrong with it here: the change is not in force, so this host is not done.
    if !good && report.state == State::Done {
        (report.state, report.why) = (State::NotRun, Some("taken back with the others".to_string()));
    }
    seat.report = Some(report.clone());
    report
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_restores_only_after_every_turn_has_had_its_time() {
        let rules = Rules {
            steps: vec![1, 3, 40],
            parallel: 16,
            probe: "/data".to_string(),
            probe_time: Duration::from_secs(5),
            worse_percent: 20.0,
        };
        // 1, 1 and 3 turns of eight probes of a minute each, and eight minutes.
        assert_eq!(rules.confirm_within(), Duration::from_secs(600 + 5 * 960));
    }
}
