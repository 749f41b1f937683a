//! Everything that is looked at, opened before the run and read at its end.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use weir_core::target::Load;
use weir_db::connection::Connection;
use weir_db::vitals::{Unseen, snapshot, variables_that_matter};
use weir_host::{Host, Numbers, Spent, own_cpu_ns, own_processors, thread_cpu_ns};
use weir_oltp::limits::{Counters, CpuTimes, NOT_COUNTED, Watched};
use weir_oltp::vitals::{self, Gauges, Snapshot};

use super::kernel::Syncs;
use super::machine::Device;
use super::place::{self, Home};
use super::processes::Processes;
use super::sessions::Looks;
use super::threads::Threads;
use super::{Scope, Trace};
use crate::clock::Moment;

/// Longest wait for an answer to a look: a server that hangs must not hang the run's end.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Counters that have a height, not only a sum, are read so often.
const COUNT_EVERY_NS: u64 = 1_000_000_000;

/// The eyes.
pub struct Eyes {
    host: Host,
    home: Home,
    sessions: Option<Looks>,
    device: Option<Device>,
    syncs: Option<Syncs>,
    client: Threads,
    server: Threads,
    processes: Processes,
    zero: Instant,
    first: Clocks,
    /// The server's counters when measuring began.
    counted: Option<Snapshot>,
    /// Its variables, by which counters are read.
    variables: BTreeMap<String, String>,
    /// What of its counters was refused.
    refused: Unseen,
    gauges: Gauges,
    /// When counters were last read.
    counted_ns: u64,
    unseen: Vec<String>,
}

/// Processor time so far.
#[derive(Default)]
struct Clocks {
    client_ns: u64,
    machine: Option<Spent>,
    own_ns: u64,
    block_delay_ns: u64,
}

impl Eyes {
    /// Connects, finds the server, and attaches programs to the kernel.
    pub fn open(scope: &Scope) -> Eyes {
        let host = Host::live();
        let mut unseen = Vec::new();
        let (mut home, mut sessions, mut variables) = (Home::default(), None, BTreeMap::new());
        match Connection::open(&scope.server.answering_within(ANSWER_WITHIN)) {
            Ok(mut connection) => {
                home = place::find(&host, &scope.server, &mut connection);
                variables = variables_that_matter(&mut connection).unwrap_or_default();
                sessions =
                    Some(Looks::new(connection, home.process.map(|process| Numbers::of(&host, process))));
            }
            Err(error) => unseen.push(format!("sessions and their waits: {error}")),
        }
        unseen.append(&mut home.unseen);
        let device =
            home.data.as_deref().map(|data| Device::under(&host, data, scope.trace != Trace::Nothing));
        let device = noted(device, "the device of the data", &mut unseen);
        let syncs_count =
            scope.trace == Trace::RequestsAndSyncs && !device.as_ref().is_some_and(Device::is_memory);
        let traced = home.process.filter(|_| syncs_count);
        let syncs = noted(traced.map(Syncs::start), NOT_COUNTED.trim_end_matches(": "), &mut unseen);
        Eyes {
            host,
            home,
            sessions,
            device,
            syncs,
            client: Threads::default(),
            server: Threads::default(),
            processes: Processes::default(),
            zero: Instant::now(),
            first: Clocks::default(),
            counted: None,
            variables,
            refused: Unseen::default(),
            gauges: Gauges::default(),
            counted_ns: 0,
            unseen,
        }
    }

    /// Measuring begins.
    pub fn begin(&mut self) {
        let family = self.family();
        self.processes = Processes::default();
        self.processes.look(&family);
        if let Some(syncs) = &mut self.syncs {
            syncs.begin(Moment::now().awake_ns);
        }
        if let Some(device) = &mut self.device {
            device.begin(&self.host);
        }
        self.counted = self.count();
        self.zero = Instant::now();
        self.first = self.clocks();
        self.look();
    }

    /// Looks once; what it cost this thread.
    pub fn look(&mut self) -> Duration {
        let before_ns = thread_cpu_ns().unwrap_or(0);
        let now_ns = self.now_ns();
        self.client.look(&self.host, client_threads(&self.host), now_ns);
        if let Some(sessions) = &mut self.sessions {
            let threads = sessions.look(&self.host);
            let begun: Vec<u32> = threads.iter().filter_map(|thread| self.host.process_of(*thread)).collect();
            self.processes.look(&begun);
            self.server.look(&self.host, threads, self.zero.elapsed().as_nanos() as u64);
        }
        if let Some(syncs) = &mut self.syncs {
            syncs.look(Moment::now().awake_ns);
        }
        if now_ns >= self.counted_ns + COUNT_EVERY_NS {
            self.counted_ns = now_ns;
            self.count();
        }
        Duration::from_nanos(thread_cpu_ns().unwrap_or(0).saturating_sub(before_ns))
    }

    /// Measuring has ended.
    pub fn end(mut self) -> Watched {
        let now_ns = self.now_ns();
        self.processes.look(&[]);
        let last = self.clocks();
        let device = self.device.as_mut().and_then(|device| device.end(&self.host));
        if let Some(syncs) = &mut self.syncs {
            syncs.end(Moment::now().awake_ns);
        }
        let counters = self.counters();
        let syncs = self.syncs.as_ref().map(Syncs::taken);
        let syncs = noted(syncs, NOT_COUNTED.trim_end_matches(": "), &mut self.unseen);
        self.remark();
        let (load, device) = device.unzip();
        let delay = last.block_delay_ns.saturating_sub(self.first.block_delay_ns);
        let counts_delay = self.host.counts_block_delay() == Some(true) && self.home.process.is_some();
        Watched {
            elapsed_ns: now_ns,
            processors: self.host.processors().unwrap_or(0),
            client_processors: own_processors().unwrap_or(0),
            server_processors: self
                .home
                .process
                .and_then(|process| self.host.processors_of(process))
                .unwrap_or(0),
            cpu: self.used(&last),
            pressure_cpu: load.as_ref().and_then(|load| pressure(load, "cpu")),
            pressure_io: load.as_ref().and_then(|load| pressure(load, "io")),
            client_tasks: self.client.times(),
            session_tasks: self.server.times(),
            sessions: self.sessions.as_mut().and_then(Looks::take),
            syncs,
            device,
            counters,
            block_delay_ns: counts_delay.then_some(delay),
            tested: Vec::new(),
            cost_ns: last.own_ns.saturating_sub(self.first.own_ns),
            unseen: self.unseen,
        }
    }

    /// The server's counters now; a lost connection is said once, and ends asking.
    fn count(&mut self) -> Option<Snapshot> {
        let sessions = self.sessions.as_mut().filter(|sessions| sessions.refused.is_none())?;
        match snapshot(sessions.connection(), &mut self.refused) {
            Ok(counted) => {
                self.gauges.look(sessions.connection().dialect(), &counted, &self.variables);
                Some(counted)
            }
            Err(error) => {
                let said = format!("the server's own counters: {error}");
                if !self.unseen.contains(&said) {
                    self.unseen.push(said);
                }
                None
            }
        }
    }

    fn counters(&mut self) -> Option<Counters> {
        let last = self.count()?;
        let dialect = self.sessions.as_mut()?.connection().dialect();
        Some(self.gauges.complete(vitals::counters(dialect, self.counted.as_ref()?, &last)))
    }

    fn now_ns(&self) -> u64 {
        self.zero.elapsed().as_nanos() as u64
    }

    fn family(&self) -> Vec<u32> {
        self.home.process.map(|process| self.host.family_of(process)).unwrap_or_default()
    }

    fn clocks(&self) -> Clocks {
        let own_ns = thread_cpu_ns().unwrap_or(0);
        Clocks {
            client_ns: own_cpu_ns().unwrap_or(0).saturating_sub(own_ns),
            machine: self.host.spent().ok(),
            own_ns,
            block_delay_ns: self.family().iter().map(|process| self.host.block_delay_ns(*process)).sum(),
        }
    }

    fn used(&self, last: &Clocks) -> CpuTimes {
        let first = &self.first;
        let since = |pick: fn(&Spent) -> u64| {
            let (last, first) = (last.machine.as_ref()?, first.machine.as_ref()?);
            Some(pick(last).saturating_sub(pick(first)))
        };
        CpuTimes {
            client_ns: last.client_ns.saturating_sub(first.client_ns),
            server_ns: self.home.process.map(|_| self.processes.used_ns()),
            machine_ns: since(|spent| spent.pressing_ns),
            niced_ns: since(|spent| spent.niced_ns),
            stolen_ns: since(|spent| spent.stolen_ns),
        }
    }

    /// Says what was refused while looking.
    fn remark(&mut self) {
        let refused = self.sessions.as_mut().and_then(|sessions| sessions.refused.take());
        let stages = self.device.as_ref().and_then(Device::unseen);
        let clocks =
            self.server.is_refused().then(|| "the clocks of the server's threads: not allowed".to_string());
        let delay = (self.home.process.is_some() && self.host.counts_block_delay() == Some(false)).then(|| {
            "how long the server's threads wait for block I/O: the kernel counts it only with kernel.task_delayacct = 1"
                .to_string()
        });
        self.unseen.extend(refused.into_iter().chain(stages).chain(clocks).chain(delay));
        self.unseen.extend_from_slice(self.refused.sentences());
    }
}

/// What could be opened; what could not is a sentence.
fn noted<T>(opened: Option<Result<T, String>>, what: &str, unseen: &mut Vec<String>) -> Option<T> {
    match opened? {
        Ok(it) => Some(it),
        Err(why) => {
            unseen.push(format!("{what}: {why}"));
            None
        }
    }
}

/// All threads of this process but the one that looks.
fn client_threads(host: &Host) -> Vec<u32> {
    let own = std::fs::read_link("/proc/thread-self").ok();
    let own = own.and_then(|link| link.file_name()?.to_string_lossy().parse::<u32>().ok());
    let mut threads = host.threads_of(std::process::id());
    threads.retain(|thread| Some(*thread) != own);
    threads
}

fn pressure(load: &Load, resource: &str) -> Option<f64> {
    load.pressure.get(resource).map(|pressure| pressure.some_percent / 100.0)
}
