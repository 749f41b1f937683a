//! A made-up history: quiet, a flood with the limit led to where ten threads and then one thread are served, quiet.

use weir_control::history::{KIND, SCHEMA};
use weir_control::{
    Action, Branch, Decision, DeviceHistory, Effect, History, Inputs, Mood, Noted, Second, SensorSource,
    Target,
};
use weir_core::result::Record;
use weir_core::target::DeviceNumber;

/// The baseline limit, in bytes.
pub const SAVED: u64 = 4_788_000_000;
/// When the flood begins and ends, s.
pub const FLOOD: (u64, u64) = (30, 90);

/// The limit in force at the end of a second.
fn limit(at: u64) -> u64 {
    match at {
        30..=31 => 40_000_000,
        32..=59 => 20_000_000,
        60..=61 => 12_000_000,
        62..=89 => 8_000_000,
        _ => SAVED,
    }
}

fn second(at: u64) -> Second {
    let flood = (FLOOD.0..FLOOD.1).contains(&at);
    // The limit comes late at the start and where ten threads become one.
    let late = [30, 31, 60, 61].contains(&at);
    let wobble = (at * 7919) % 13;
    Second {
        at_ms: (at + 1) * 1000,
        syncs: if late { 300 + wobble } else { 1440 + 3 * wobble },
        p50_us: Some(350 + wobble),
        p99_us: Some(if late { 700_000 } else { 92_000 + 500 * wobble }),
        max_us: Some(if late { 900_000 } else { 110_000 }),
        oldest_us: if late { 650_000 } else { 2_000 },
        target_us: Some(460_000),
        kept: Some(if late { 0.2 } else { 0.97 }),
        limit_bytes: limit(at),
        backlog_bytes: if flood { limit(at) } else { 1_000_000 },
        written_bytes: if flood { 190_000_000 } else { 24_000_000 },
        bulk_bytes: Some(if flood { 140_000_000 } else { 0 }),
        bulk_held_ms: if flood { 800 } else { 0 },
        own_held_ms: 0,
        private_dirty_bytes: None,
        private_pace: None,
        holding: flood,
        of_cgroup: false,
    }
}

fn noted(at_ms: u64, branch: Branch, now: u64, action: Action, shadow: bool) -> Noted {
    let bytes = match action {
        Action::Keep => now,
        Action::Set { bytes } => bytes,
        Action::Release => SAVED,
    };
    let inputs = Inputs {
        syncs: 312,
        syncs_per_second: 312.0,
        p99_ns: Some(700_000_000),
        target_ns: Some(460_000_000),
        kept: Some(0.2),
        oldest_ns: 650_000_000,
        limit_bytes: now,
        bulk_active: true,
        achievable_kept: (branch == Branch::Infeasible).then_some(0.86),
        ..Inputs::default()
    };
    let mood = if action == Action::Release { Mood::Released } else { Mood::Holding };
    let decision = Decision { at_ns: at_ms * 1_000_000, action, branch, inputs, mood };
    let effect = match action {
        Action::Keep => Effect::None,
        _ if shadow => Effect::Shadow { bytes },
        _ => Effect::Written { bytes },
    };
    Noted { at_ms, device: "loop0".to_string(), decision: Some(decision), effect }
}

/// The history; in shadow the limit stays, and decisions only say what they would do.
pub fn history(shadow: bool) -> History {
    let set = |bytes| Action::Set { bytes };
    let steps = [
        (30_200, Branch::Arm, SAVED, set(40_000_000)),
        (31_900, Branch::OldestSync, 40_000_000, set(20_000_000)),
        (60_500, Branch::Tail, 20_000_000, set(12_000_000)),
        (61_900, Branch::Share, 12_000_000, set(8_000_000)),
        (75_000, Branch::Infeasible, 8_000_000, Action::Keep),
        (80_000, Branch::Raise, 8_000_000, set(8_400_000)),
        (90_000, Branch::Unneeded, 8_400_000, Action::Release),
    ];
    let mut decisions: Vec<Noted> =
        steps.into_iter().map(|(at, branch, now, action)| noted(at, branch, now, action, shadow)).collect();
    let what = "no program in the kernel: <BPF> is not permitted; a canary writes instead".to_string();
    decisions.push(Noted {
        at_ms: 90_500,
        device: String::new(),
        decision: None,
        effect: Effect::Remark { what },
    });
    let mut seconds: Vec<Second> = (0..120).map(second).collect();
    if shadow {
        seconds.iter_mut().for_each(|second| (second.limit_bytes, second.holding) = (SAVED, false));
    }
    // The machine slept.
    seconds.retain(|second| !(100_000..105_000).contains(&second.at_ms));
    History {
        schema: SCHEMA.to_string(),
        shadow,
        target: Target::default(),
        protect: "mariadb.service".to_string(),
        devices: vec![DeviceHistory {
            name: "loop0".to_string(),
            number: DeviceNumber { major: 7, minor: 0 },
            actuator: "vm.dirty_bytes".to_string(),
            sensor: SensorSource::Syscalls,
            saved_bytes: SAVED,
            floor_bytes: 8_388_608,
            seconds,
        }],
        decisions,
        left_out: 0,
    }
}

/// A record that holds a history.
pub fn record(history: &History) -> Record {
    Record {
        schema: weir_core::result::record::SCHEMA.to_string(),
        id: "20261121-180000-000-beef".to_string(),
        weir_version: "0.1.0".to_string(),
        command: ["weir", "guard", "run"].map(String::from).to_vec(),
        kind: KIND.to_string(),
        started_at: "2026-11-21T18:00:00Z".to_string(),
        conditions: serde_json::Value::Null,
        jobs: Vec::new(),
        floods: Vec::new(),
        notes: Vec::new(),
        ended_early: None,
        extra: serde_json::to_value(history).unwrap(),
    }
}
