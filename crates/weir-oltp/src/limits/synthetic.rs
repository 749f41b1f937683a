//! Evidence by its shares, for tests.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "made for tests")]

use std::collections::BTreeMap;

use super::evidence::{Evidence, Load};
use super::waits::Wait;
use super::watched::{CpuTimes, DeviceUse, Sessions, SyncUse, TaskTimes, Watched};

/// Length of every made-up run.
pub const ELAPSED_NS: u64 = 10_000_000_000;
const SAMPLES: f64 = 1000.0;

/// A run on two processors of which the shares are known.
pub struct Scene {
    /// Sessions of a closed loop.
    pub sessions: u32,
    /// Transactions per second.
    pub rate: u64,
    /// Sessions on a processor, waiting for one.
    pub server: (f64, f64),
    /// The client's threads on a processor, waiting for one, as shares of the sessions' time.
    pub client: (f64, f64),
    /// What sessions sleep for, as shares of all samples; the rest runs.
    pub waits: &'static [(Wait, f64)],
    /// The session at the root of queues for rows.
    pub roots: &'static [(Wait, f64)],
    /// Idle processors, of two.
    pub idle: f64,
    /// Syncs a transaction.
    pub syncs: f64,
    /// A device, or memory.
    pub device: DeviceUse,
}

impl Default for Scene {
    fn default() -> Self {
        Scene {
            sessions: 4,
            rate: 1000,
            server: (0.1, 0.0),
            client: (0.05, 0.0),
            waits: &[(Wait::Client, 0.9)],
            roots: &[],
            idle: 1.0,
            syncs: 0.0,
            device: disk(0.0, 0.0, 0.1),
        }
    }
}

/// A disk by reads and writes per second and its utilisation.
pub fn disk(reads_per_second: f64, writes_per_second: f64, util: f64) -> DeviceUse {
    DeviceUse { name: "vda".to_string(), reads_per_second, writes_per_second, util, ..DeviceUse::default() }
}

/// Memory.
pub fn memory() -> DeviceUse {
    DeviceUse { name: "tmpfs".to_string(), is_memory: true, ..DeviceUse::default() }
}

impl Scene {
    /// The evidence.
    pub fn evidence(&self) -> Evidence {
        let all = u64::from(self.sessions) * ELAPSED_NS;
        let part = |share: f64, of: u64| (share * of as f64) as u64;
        let busy_ns = part(2.0 - self.idle, ELAPSED_NS);
        let client_ns = part(self.client.0, all);
        let samples = |shares: &[(Wait, f64)]| -> BTreeMap<Wait, u64> {
            shares.iter().map(|(wait, share)| (*wait, (share * SAMPLES) as u64)).collect()
        };
        let mut waits = samples(self.waits);
        let asleep: u64 = waits.values().sum();
        waits.insert(Wait::Cpu, SAMPLES as u64 - asleep);
        let transactions = self.rate * 10;
        Evidence {
            load: Load {
                transactions,
                elapsed_ns: ELAPSED_NS,
                sessions: self.sessions,
                busy_ns: all,
                transaction_ns: all,
                ..Load::default()
            },
            watched: Watched {
                elapsed_ns: ELAPSED_NS,
                processors: 2,
                client_processors: 2,
                cpu: CpuTimes {
                    client_ns,
                    server_ns: Some(busy_ns.saturating_sub(client_ns)),
                    machine_ns: Some(busy_ns),
                    ..CpuTimes::default()
                },
                client_tasks: Some(TaskTimes {
                    threads: self.sessions,
                    on_ns: client_ns,
                    queued_ns: part(self.client.1, all),
                    total_ns: all,
                }),
                session_tasks: Some(TaskTimes {
                    threads: self.sessions,
                    on_ns: part(self.server.0, all),
                    queued_ns: part(self.server.1, all),
                    total_ns: all,
                }),
                sessions: Some(Sessions {
                    looks: 80,
                    waits,
                    roots: samples(self.roots),
                    ..Sessions::default()
                }),
                syncs: Some(SyncUse {
                    count: (self.syncs * transactions as f64) as u64,
                    watched_ns: 0,
                    mean_ns: 5e6,
                    p99_ns: 6_000_000,
                    ..SyncUse::default()
                }),
                device: Some(self.device.clone()),
                ..Watched::default()
            },
        }
    }
}
