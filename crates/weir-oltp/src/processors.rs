//! Who used the processors while transactions were measured: one account for everything that a report says of them.
//!
//! The server's and the client's part are by their tasks' own clocks, the whole is by the kernel's ticks. Ticks miss runs
//! that are shorter than they are, by 0.2 of a processor at one connection on a machine of two: where server and client
//! alone used more, the whole is what they used.

use serde::{Deserialize, Serialize};

use super::OltpRecord;
use super::limits::{Load, Watched};
use weir_core::result::record::CpuRecord;

/// In less time than this, ticks of a hundredth of a second tell nothing of the machine.
const MACHINE_MIN_NS: u64 = 500_000_000;
/// Clocks that differ by this share, and by this many processors, disagree by more than noise.
const NOISE_SHARE: f64 = 0.05;
const NOISE: f64 = 0.05;

/// Processors busy on average, and for whom: server, client and rest add up to `busy`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Processors {
    /// Processors there are.
    pub online: u32,
    /// Busy, whoever used them.
    pub busy: f64,
    /// For the server; `None` where its processes are not on this machine or not found: what they use here is in `rest`.
    pub server: Option<f64>,
    /// For the client: weir.
    pub client: f64,
    /// For everybody else, kernel and hypervisor included.
    pub rest: f64,
    /// The part of `rest` that ran with a lowered priority, as far as it is known; it gives way to everything else.
    pub niced: f64,
    /// The part of `rest` that a hypervisor gave to others.
    pub stolen: f64,
    /// Busy by the kernel's ticks, where these fall short of what server and client used by more than noise.
    pub by_ticks: Option<f64>,
}

impl Processors {
    /// The account of a run; `None` where nothing tells what the machine did.
    pub fn of(record: &OltpRecord) -> Option<Processors> {
        match record.seen() {
            Some(watched) if watched.cpu.machine_ns.is_some() => Processors::watched(&watched),
            _ => Processors::by_ticks(&record.cpu, record.elapsed_ns),
        }
    }

    /// From what was watched beside a run.
    pub fn watched(watched: &Watched) -> Option<Processors> {
        let cpu = &watched.cpu;
        let (niced_ns, stolen_ns) = (cpu.niced_ns.unwrap_or(0), cpu.stolen_ns.unwrap_or(0));
        let machine_ns = cpu.machine_ns.map(|ns| ns.saturating_add(niced_ns).saturating_add(stolen_ns));
        let named_ns = cpu.server_ns.map(|ns| ns.saturating_add(cpu.client_ns));
        // Of a server that is not seen nothing is known without the machine's clock.
        let all_ns = machine_ns.or(named_ns)?;
        let per = |ns: u64| ns as f64 / watched.elapsed_ns.max(1) as f64;
        let enough = watched.processors > 0 && watched.elapsed_ns >= MACHINE_MIN_NS;
        enough.then(|| {
            let parts = Parts {
                server: cpu.server_ns.map(per),
                client: per(cpu.client_ns),
                niced: per(niced_ns),
                stolen: per(stolen_ns),
            };
            Processors::add_up(watched.processors, per(all_ns), parts)
        })
    }

    /// From the runner's own reading, where nothing was watched.
    fn by_ticks(cpu: &CpuRecord, elapsed_ns: u64) -> Option<Processors> {
        let per = |ns: u64| ns as f64 / elapsed_ns.max(1) as f64;
        let known = cpu.machine_busy_ns > 0 && cpu.processors > 0 && elapsed_ns >= MACHINE_MIN_NS;
        let client = per(cpu.process_user_ns.saturating_add(cpu.process_system_ns));
        let parts = Parts { server: None, client, niced: 0.0, stolen: 0.0 };
        known.then(|| Processors::add_up(cpu.processors, per(cpu.machine_busy_ns), parts))
    }

    fn add_up(online: u32, by_ticks: f64, parts: Parts) -> Processors {
        let most = f64::from(online);
        // Looks at different moments may find a little more time used than there was.
        let named = parts.server.unwrap_or(0.0) + parts.client;
        let fit = if named > most { most / named } else { 1.0 };
        let (server, client) = (parts.server.map(|server| server * fit), parts.client * fit);
        let named = server.unwrap_or(0.0) + client;
        let busy = by_ticks.clamp(named.min(most), most);
        let rest = (busy - named).max(0.0);
        let short = named - by_ticks;
        let stolen = parts.stolen.min(rest);
        Processors {
            online,
            busy: named + rest,
            server,
            client,
            rest,
            niced: parts.niced.min(rest - stolen),
            stolen,
            by_ticks: (short > NOISE && short > NOISE_SHARE * named).then_some(by_ticks),
        }
    }

    /// Share of all processors that was busy, 0 to 1.
    pub fn busy_share(&self) -> f64 {
        (self.busy / f64::from(self.online.max(1))).min(1.0)
    }

    /// Processor time of a transaction, of so many processors.
    pub fn each_ns(processors: f64, load: &Load) -> f64 {
        processors * load.elapsed_ns as f64 / load.transactions.max(1) as f64
    }

    /// `1.81 of 2 processors busy: 0.99 the server, 0.18 the client, 0.64 the rest (0.60 of it niced)`. Figures add up as
    /// they are printed.
    pub fn words(&self) -> String {
        let hundredths = |processors: f64| (processors * 100.0).round() as u64;
        let print = |hundredths: u64| format!("{}.{:02}", hundredths / 100, hundredths % 100);
        let (server, client) = (self.server.map(hundredths), hundredths(self.client));
        let named = server.unwrap_or(0) + client;
        let rest = hundredths(self.busy).saturating_sub(named);
        let part = |share: f64, what: &str| {
            let share = hundredths(share).min(rest);
            (share > 0).then(|| format!("{} of it {what}", print(share)))
        };
        let of_rest: Vec<String> = [part(self.niced, "niced"), part(self.stolen, "taken by the hypervisor")]
            .into_iter()
            .flatten()
            .collect();
        let of_rest = if of_rest.is_empty() { String::new() } else { format!(" ({})", of_rest.join(", ")) };
        let server = server.map_or(String::new(), |server| format!("{} the server, ", print(server)));
        format!(
            "{} of {} processors busy: {server}{} the client, {} the rest{of_rest}",
            print(named + rest),
            self.online,
            print(client),
            print(rest)
        )
    }

    /// Where clocks disagree: what is wrong with which.
    pub fn disagreement(&self) -> Option<String> {
        let by_ticks = self.by_ticks?;
        let whose = if self.server.is_some() { "server and client" } else { "the client" };
        Some(format!(
            "the kernel's ticks count {by_ticks:.2} processors for the whole machine, and {whose} alone used {:.2} by \
             their own clocks: ticks miss short runs, so that what others used is not known",
            self.server.unwrap_or(0.0) + self.client
        ))
    }
}

struct Parts {
    server: Option<f64>,
    client: f64,
    niced: f64,
    stolen: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::CpuTimes;

    const SECOND: u64 = 1_000_000_000;

    fn account(server: Option<u64>, client: u64, machine: u64, niced: u64, stolen: u64) -> Processors {
        let ms = |ms: u64| ms * SECOND / 1000;
        let cpu = CpuTimes {
            client_ns: ms(client),
            server_ns: server.map(ms),
            machine_ns: Some(ms(machine)),
            niced_ns: Some(ms(niced)),
            stolen_ns: Some(ms(stolen)),
        };
        let watched = Watched { elapsed_ns: SECOND, processors: 2, cpu, ..Watched::default() };
        Processors::watched(&watched).unwrap()
    }

    #[test]
    fn all_that_was_busy_is_in_one_account() {
        for (account, words) in [
            (
                account(Some(990), 180, 1170, 640, 0),
                "1.81 of 2 processors busy: 0.99 the server, 0.18 the client, 0.64 the rest (0.64 of it niced)",
            ),
            (
                account(Some(500), 100, 700, 0, 300),
                "1.00 of 2 processors busy: 0.50 the server, 0.10 the client, 0.40 the rest (0.30 of it taken by the hypervisor)",
            ),
            (account(None, 100, 700, 0, 0), "0.70 of 2 processors busy: 0.10 the client, 0.60 the rest"),
            // Rounded, the parts would come to 0.02 more than the whole.
            (
                account(Some(335), 335, 670, 0, 0),
                "0.68 of 2 processors busy: 0.34 the server, 0.34 the client, 0.00 the rest",
            ),
            (
                account(Some(1900), 300, 2200, 0, 0),
                "2.00 of 2 processors busy: 1.73 the server, 0.27 the client, 0.00 the rest",
            ),
        ] {
            assert_eq!(account.words(), words);
        }
    }

    #[test]
    fn clocks_that_disagree_are_told_of() {
        assert_eq!(account(Some(500), 200, 690, 0, 0).disagreement(), None);
        let short = account(Some(500), 200, 450, 0, 0);
        assert_eq!(
            short.words(),
            "0.70 of 2 processors busy: 0.50 the server, 0.20 the client, 0.00 the rest"
        );
        assert!(
            short.disagreement().unwrap().contains("count 0.45 processors"),
            "{:?}",
            short.disagreement()
        );
    }
}
