//! A command on many hosts: a thread for each, behind a gate, with one line to start from where that is asked.

use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use weir_core::stop::Stop;

use crate::binary::Payloads;
use crate::figures;
use crate::gate::{Arrival, Gate, Line};
use crate::inventory::Host;
use crate::progress::{self, Word};
use crate::report::{HostReport, State};
use crate::session::{ClockOffset, Failure, Session};
use crate::store::Store;
use crate::wire::Ssh;

/// Copies at the same time: more would share the same line out.
const COPIES: usize = 16;

/// How long copying, or pulling, may take.
pub const COPY: Duration = Duration::from_secs(300);

/// A thread of a host holds little.
const STACK_BYTES: usize = 512 << 10;

/// When weir starts on a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// When the host is ready.
    Ready,
    /// When all are ready or have failed.
    Together,
    /// At a given time.
    At(Timestamp),
}

/// What a run is about.
pub struct Plan {
    /// How hosts are reached.
    pub ssh: Ssh,
    /// As root.
    pub sudo: bool,
    /// The programs.
    pub payloads: Payloads,
    /// weir's arguments there.
    pub arguments: Vec<String>,
    /// How long weir may run.
    pub timeout: Duration,
    /// Hosts that are worked on at the same time.
    pub parallel: usize,
    /// When weir starts.
    pub start: Start,
    /// Where results go.
    pub store: Store,
    /// The run's name, kind and date.
    pub id: String,
    /// The kind of results.
    pub kind: String,
    /// The date of its folder.
    pub date: String,
    /// Ends it.
    pub stop: Stop,
}

/// Now, in nanoseconds since 1970.
pub fn now_ns() -> i64 {
    i64::try_from(Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX)
}

/// What a host's thread needs beside the plan.
pub struct Turn<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// Which host it is.
    pub number: usize,
    /// The host.
    pub host: &'a Host,
    /// Ends its waits.
    pub stop: &'a Stop,
    /// Copies.
    pub copies: &'a Gate,
    /// To the one who follows.
    pub words: Sender<(usize, Word)>,
}

impl Turn<'_> {
    /// Says what the host does now.
    pub fn doing(&self, what: &'static str) {
        let _ = self.words.send((self.number, Word::Doing(what)));
    }

    /// Says that it has ended.
    pub fn ended(&self, report: &HostReport) {
        let _ = self.words.send((self.number, Word::Ended(report.sentence())));
    }

    /// Connects and copies the program.
    pub fn open(&self, report: &mut HostReport) -> Result<Session, Failure> {
        let (plan, stop) = (self.plan, self.stop);
        self.doing("connecting");
        // The host's own end comes after this program's: it is for the case that nobody is there any more to say it.
        let longest = plan.timeout + Duration::from_secs(10);
        let mut session =
            Session::open(&plan.ssh, self.host, plan.sudo, plan.payloads.need_bytes(), longest, stop)?;
        report.architecture = Some(session.architecture.clone());
        let Some(payload) = plan.payloads.of(&session.architecture) else {
            let why = format!(
                "no weir for {}, only for {}; name one with --binary",
                session.architecture,
                plan.payloads.architectures()
            );
            report.cleaned = session.close();
            return Err(Failure::Failed(why));
        };
        self.doing("copying");
        let Some(_pass) = self.copies.enter(stop) else {
            report.cleaned = session.close();
            return Err(Failure::Stopped);
        };
        match session.put(payload, Instant::now() + COPY) {
            Ok(()) => Ok(session),
            Err(failure) => {
                report.cleaned = session.close();
                Err(failure)
            }
        }
    }
}

/// A thread for each host, which owns what comes with the host: where the thread cannot start, that is dropped. `work` says in its report
/// how it went.
pub fn on_each<T: Send>(
    plan: &Plan,
    stop: &Stop,
    hosts: Vec<(&Host, T)>,
    work: impl Fn(&Turn<'_>, T, &Gate) -> HostReport + Sync,
) -> Vec<HostReport> {
    let (gate, copies) = (Gate::new(plan.parallel), Gate::new(COPIES.min(plan.parallel)));
    let names: Vec<String> = hosts.iter().map(|(host, _)| host.name.clone()).collect();
    let (words, heard) = mpsc::channel();
    thread::scope(|scope| {
        let (gate, copies, work) = (&gate, &copies, &work);
        let begun: Vec<_> = hosts
            .into_iter()
            .enumerate()
            .map(|(number, (host, more))| {
                let turn = Turn { plan, number, host, stop, copies, words: words.clone() };
                let spawned = thread::Builder::new()
                    .name(host.name.clone())
                    .stack_size(STACK_BYTES)
                    .spawn_scoped(scope, move || {
                        let report = work(&turn, more, gate);
                        turn.ended(&report);
                        report
                    });
                (host, spawned)
            })
            .collect();
        drop(words);
        progress::follow(&names, &heard, stop);
        let ended = begun.into_iter().map(|(host, spawned)| {
            let failed = |why: &str| {
                let mut report = HostReport::new(&host.name);
                report.fail(Failure::Failed(why.to_string()));
                report
            };
            match spawned.map(thread::ScopedJoinHandle::join) {
                Ok(Ok(report)) => report,
                Ok(Err(_)) => failed("weir-fleet itself failed on it"),
                Err(error) => failed(&format!("no thread for it: {error}")),
            }
        });
        ended.collect()
    })
}

/// Runs the command everywhere.
pub fn everywhere(plan: &Plan, hosts: &[Host]) -> Vec<HostReport> {
    let at = match plan.start {
        Start::At(time) => {
            let ahead = Duration::try_from(time.duration_since(Timestamp::now())).unwrap_or_default();
            Some(Instant::now() + ahead)
        }
        _ => None,
    };
    let line = (plan.start != Start::Ready).then(|| Line::new(hosts.len(), at));
    let line = line.as_ref();
    let hosts: Vec<_> = hosts.iter().map(|host| (host, line.map(Line::arrival))).collect();
    on_each(plan, &plan.stop, hosts, |turn, arrival, gate| one(turn, gate, line, arrival))
}

fn one(turn: &Turn<'_>, gate: &Gate, line: Option<&Line>, arrival: Option<Arrival<'_>>) -> HostReport {
    let mut report = HostReport::new(&turn.host.name);
    let pass = gate.enter(turn.stop);
    let begun = Instant::now();
    let opened = if pass.is_some() {
        turn.open(&mut report).and_then(|session| asked(session, line, &mut report))
    } else {
        Err(Failure::Stopped)
    };
    drop(arrival);
    match opened {
        Ok((session, clock)) => {
            // Whoever waits for others holds no place of theirs.
            let _pass = if line.is_some() { None } else { pass };
            worked(turn, session, clock, line, &mut report);
        }
        Err(failure) => report.fail(failure),
    }
    report.elapsed_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    report
}

/// Where hosts start together, their clocks are asked for.
fn asked(
    mut session: Session,
    line: Option<&Line>,
    report: &mut HostReport,
) -> Result<(Session, Option<ClockOffset>), Failure> {
    if line.is_none() {
        return Ok((session, None));
    }
    match session.clock(now_ns) {
        Ok(clock) => Ok((session, clock)),
        Err(failure) => {
            report.cleaned = session.close();
            Err(failure)
        }
    }
}

/// Runs weir, pulls what it left, and closes.
fn worked(
    turn: &Turn<'_>,
    mut session: Session,
    clock: Option<ClockOffset>,
    line: Option<&Line>,
    report: &mut HostReport,
) {
    let plan = turn.plan;
    report.clock = clock;
    if let Some(line) = line {
        turn.doing("waiting for the start");
        let on_the_way = Duration::from_nanos(clock.map_or(0, |clock| clock.within_ns.unsigned_abs()));
        if !line.wait(on_the_way, turn.stop) {
            report.fail(Failure::Stopped);
            report.cleaned = session.close();
            return;
        }
    }
    turn.doing("running");
    match session.run(&plan.arguments, Instant::now() + plan.timeout) {
        Ok(ended) => {
            report.began_ns = ended.began_ns.zip(clock).map(|(began, clock)| here(began, clock));
            report.code = Some(ended.code);
            report.state = State::of_code(ended.code);
            report.figures = figures::read(&ended.out);
            if !matches!(report.state, State::Done | State::BelowBar) {
                report.why = crate::session::error_in(&ended.err)
                    .or_else(|| Some(format!("exit code {}", ended.code)));
            }
            turn.doing("pulling");
            let mut shelf = plan.store.shelf(&plan.kind, &plan.date, &turn.host.name, &plan.id);
            let printed = if ended.out.trim_start().starts_with('{') { "stdout.json" } else { "stdout.txt" };
            let kept = [(printed, &ended.out), ("stderr.txt", &ended.err)]
                .into_iter()
                .filter(|(_, text)| !text.is_empty())
                .try_for_each(|(name, text)| shelf.keep(name, text).map_err(Failure::Failed));
            let pulled =
                kept.and_then(|()| session.pull(&mut |name| shelf.place(name), Instant::now() + COPY));
            report.files = shelf.files();
            if let Err(failure) = pulled.and(ended.cut.map_or(Ok(()), Err)) {
                report.fail(failure);
            }
        }
        Err(failure) => report.fail(failure),
    }
    turn.doing("cleaning up");
    report.cleaned = session.close();
}

/// A time of a host's, by this machine's clock.
fn here(at_ns: i64, clock: ClockOffset) -> i64 {
    at_ns.saturating_sub(clock.offset_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_that_a_host_says_is_too_far_off() {
        let clock = |offset_ns| ClockOffset { offset_ns, within_ns: 1 };
        assert_eq!(here(7, clock(3)), 4);
        assert_eq!(here(i64::MAX, clock(-1)), i64::MAX);
        assert_eq!(here(i64::MIN, clock(1)), i64::MIN);
    }

    #[test]
    fn nobody_waits_for_a_host_whose_thread_panics() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("weir");
        std::fs::write(&program, "#!/bin/sh\n").unwrap();
        let ssh = Ssh { program: "false".into(), config: None, connect_timeout: Duration::ZERO };
        let plan = Plan {
            ssh,
            sudo: false,
            payloads: Payloads::read(&[program]).unwrap(),
            arguments: Vec::new(),
            timeout: Duration::ZERO,
            parallel: 3,
            start: Start::Together,
            store: Store::new(Some(folder.path())).unwrap(),
            id: String::new(),
            kind: String::new(),
            date: String::new(),
            stop: Stop::default(),
        };
        let named = |name: &str| Host { name: name.into(), address: name.into(), port: None, user: None };
        let hosts = ["a", "b", "c"].map(named);
        let line = Line::new(hosts.len(), None);
        let with_arrivals = hosts.iter().map(|host| (host, line.arrival())).collect();
        // Where the others waited, the test would have no end.
        let stop = plan.stop.clone();
        thread::spawn(move || {
            thread::sleep(Duration::from_secs(20));
            stop.request(15);
        });
        let reports = on_each(&plan, &plan.stop, with_arrivals, |turn, arrival, _| {
            assert_ne!(turn.host.name, "b", "as the test wants it");
            drop(arrival);
            let mut report = HostReport::new(&turn.host.name);
            report.state = if line.wait(Duration::ZERO, turn.stop) { State::Done } else { State::NotRun };
            report
        });
        let states: Vec<State> = reports.iter().map(|report| report.state).collect();
        assert_eq!(states, [State::Done, State::Failed, State::Done]);
    }
}
