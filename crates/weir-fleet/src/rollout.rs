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
use crate::report::{Change, HostReport, Rollout, State};
use crate::session::{Failure, Session, error_in};

/// What `weir knobs journal` says where nothing is in force.
const NOTHING_IN_FORCE: &str = "weir has nothing in force";

/// And of settings for the next boot, which are no change in force.
const NEXT_BOOT: &str = "at the next boot";

/// Probes before a change, and after it.
const PROBES: usize = 2;

/// How long what takes no time may take.
const SHORT: Duration = Duration::from_secs(120);

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
        let turn = (2 * PROBES as u32) * (4 * self.probe_time + GRACE) + 2 * SHORT;
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
    /// Whether the change may be in force there.
    touched: bool,
    report: Option<HostReport>,
    begun: Option<Instant>,
}

/// Carries the change from step to step. The report of each host, and whether all is as it was asked.
pub fn carry(plan: &Plan, hosts: &[Host], rules: &Rules) -> Vec<HostReport> {
    let seats: Vec<Mutex<Seat>> = hosts.iter().map(|_| Mutex::default()).collect();
    let (mut from, mut good) = (0, true);
    for (nth, &to) in rules.steps.iter().enumerate() {
        say!("step {} of {}: {} of {} hosts", nth + 1, rules.steps.len(), to, hosts.len());
        let part: Vec<(&Host, &Mutex<Seat>)> = hosts[from..to].iter().zip(&seats[from..to]).collect();
        let reports =
            on_each(plan, &plan.stop, &part, |turn, seat, gate| step(turn, seat, gate, rules, nth + 1));
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
        hosts.iter().zip(seats).filter(|(_, seat)| locked(seat).touched).collect();
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
    on_each(plan, &Stop::default(), &touched, |turn, seat, gate| {
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
        let result = changed(turn, &mut session, rules, &mut probes, &mut seat.touched);
        if seat.touched {
            seat.session = Some(session);
        } else {
            report.cleaned = session.close();
        }
        result
    });
    match result.map(|()| guardrail::harm(&probes, rules.worse_percent)) {
        Ok(None) => report.state = State::Done,
        Ok(Some(why)) => (report.state, report.why) = (State::BelowBar, Some(why)),
        Err(failure) => report.fail(failure),
    }
    if let Some(commits) = probes.after.last().or(probes.before.last()) {
        report.figures.commits = Some(*commits);
    }
    let change = if seat.touched { Change::LeftToGuardian } else { Change::NotMade };
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
    touched: &mut bool,
) -> Result<(), Failure> {
    // A rollback takes back the newest change: it must be this one.
    let journal = weir(session, &["knobs".to_string(), "journal".to_string()])?;
    let foreign = |line: &&str| {
        !line.trim().is_empty() && !line.starts_with(NOTHING_IN_FORCE) && !line.starts_with(NEXT_BOOT)
    };
    if let Some(line) = journal.lines().find(foreign) {
        let line = crate::session::short(line);
        return Err(Failure::Failed(format!(
            "weir has a change in force there, and a rollback could meet that one: {line}"
        )));
    }
    turn.doing("probing before the change");
    probes.before = probed(session, rules)?;
    turn.doing("changing");
    *touched = true;
    let ended = session.run(&turn.plan.arguments, Instant::now() + SHORT)?;
    if ended.code != 0 {
        // weir's transaction is all or nothing: after an error there is nothing to take back.
        *touched = false;
        let why = error_in(&ended.err).unwrap_or_else(|| format!("exit code {}", ended.code));
        return Err(Failure::Failed(why));
    }
    turn.doing("probing after the change");
    probes.after = match probed(session, rules) {
        // A storage that does not even end a probe any more has no commits to speak of.
        Err(Failure::TimedOut(_)) => vec![Commits::default()],
        probes => probes?,
    };
    Ok(())
}

fn probed(session: &mut Session, rules: &Rules) -> Result<Vec<Commits>, Failure> {
    let mut all = Vec::new();
    for _ in 0..PROBES {
        let ended = session.run(&rules.probing(), Instant::now() + 4 * rules.probe_time + GRACE)?;
        let commits = figures::read(&ended.out).commits.filter(|_| ended.code == 0);
        let why = || error_in(&ended.err).unwrap_or_else(|| format!("exit code {}", ended.code));
        all.push(commits.ok_or_else(|| Failure::Failed(format!("the probe failed: {}", why())))?);
    }
    Ok(all)
}

/// Runs weir; what it printed.
fn weir(session: &mut Session, arguments: &[String]) -> Result<String, Failure> {
    let ended = session.run(arguments, Instant::now() + SHORT)?;
    match ended.code {
        0 => Ok(ended.out),
        code => Err(Failure::Failed(error_in(&ended.err).unwrap_or_else(|| format!("exit code {code}")))),
    }
}

/// The last word on a host.
fn end(turn: &Turn<'_>, seat: &mut Seat, good: bool) -> HostReport {
    let mut report = seat.report.take().unwrap_or_else(|| HostReport::new(&turn.host.name));
    turn.doing(if good { "confirming" } else { "rolling back" });
    let words = ["knobs", if good { "confirm" } else { "rollback" }].map(String::from);
    let mut result = match &mut seat.session {
        Some(session) => {
            session.see_through();
            weir(session, &words)
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
            let result = weir(&mut session, &words);
            seat.session = Some(session);
            result
        });
    }
    if let Some(session) = seat.session.take() {
        report.cleaned = session.close();
    }
    let change = match (&result, good) {
        (Ok(_), true) => Change::Kept,
        (Ok(_), false) => Change::RolledBack,
        (Err(_), _) => Change::LeftToGuardian,
    };
    if let Err(failure) = result {
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
        // 1, 1 and 3 turns of four probes of a minute each, and four minutes.
        assert_eq!(rules.confirm_within(), Duration::from_secs(600 + 5 * 480));
    }
}
