//! `weir guard status`: a running guard, asked over its socket.

use std::fmt::Write;

use weir_control::{DeviceState, State};
use weir_core::units::{Bytes, Nanos, megabytes_per_second, per_second, significant};
use weir_report::guard as words;

use crate::cli::guard::status::Args;
use crate::failure::Outcome;
use crate::guard::{self, socket};
use crate::output::{print, print_exact};

/// Decisions that are shown.
const DECISIONS: usize = 5;

/// Runs the command.
pub fn run(args: Args, _command: &[String]) -> anyhow::Result<Outcome> {
    let state = socket::ask()?;
    match args.json {
        true => print_exact(&(serde_json::to_string(&state)? + "\n"))?,
        false => print(&text(&state))?,
    }
    Ok(Outcome::Done)
}

/// A state for people.
pub fn text(state: &State) -> String {
    let mut out = String::new();
    let mode = if state.shadow { "shadow: decides and touches nothing" } else { "guards" };
    let _ = writeln!(out, "weir guard, process {}, since {}: {mode}", state.pid, state.since);
    let _ = writeln!(out, "to hold: {}; protects {}", words::target(&state.target), state.protect);
    for device in &state.devices {
        of_device(&mut out, device);
    }
    if !state.decisions.is_empty() {
        out.push_str("\nlast decisions\n");
        for noted in state.decisions.iter().rev().take(DECISIONS).rev() {
            let ago = Nanos(state.at_ms.saturating_sub(noted.at_ms).saturating_mul(1_000_000));
            let _ = writeln!(out, "  {ago} ago  {}", guard::sentence(noted));
        }
    }
    for remark in &state.remarks {
        let _ = writeln!(out, "note: {remark}");
    }
    let (share, memory) = (significant(state.cost.cpu_share * 100.0), Bytes(state.cost.rss_bytes));
    let _ = writeln!(out, "\ncosts {share} % of a processor and {memory} of memory");
    out
}

fn of_device(out: &mut String, device: &DeviceState) {
    let second = &device.second;
    let time = |us: u64| Nanos(us.saturating_mul(1000)).to_string();
    let standing = words::standing(device);
    let _ = writeln!(out, "\n{} ({}): {standing}", device.name, device.number);
    let p99 = second.p99_us.map_or("no syncs now".to_string(), |us| format!("p99 {} now", time(us)));
    let target =
        second.target_us.map_or("target not known yet".to_string(), |us| format!("target {}", time(us)));
    let kept = second.kept.map_or(String::new(), |kept| {
        format!(", {} % of their undisturbed rate", significant(f64::from(kept) * 100.0))
    });
    let _ = writeln!(
        out,
        "  syncs    {p99}, {target}, {}/s{kept}; {} of {} s over the target",
        per_second(second.syncs as f64),
        device.totals.seconds_over_target,
        device.totals.seconds
    );
    let _ = writeln!(out, "  limit    {} ({})", words::limit_of(device), device.actuator);
    if let Some(limits) = words::private_limit_of(device) {
        let actuator = device.private_actuator.as_deref().unwrap_or("memory.high");
        let _ = writeln!(out, "  cgroups  {limits} ({actuator})");
    }
    let written = megabytes_per_second(second.written_bytes as f64);
    let backlog = words::size(second.backlog_bytes);
    let _ = writeln!(out, "  device   {written} written, {backlog} dirty or under way");
    if !device.writers.is_empty() {
        let writer = |writer: &weir_control::Writer| {
            format!("{} (process {}) {}", writer.comm, writer.pid, megabytes_per_second(writer.bytes as f64))
        };
        let writers: Vec<String> = device.writers.iter().map(writer).collect();
        let _ = writeln!(out, "  bulk     {}", writers.join(", "));
    }
    let sensor = words::sensor(device.sensor.source);
    let silent = Nanos(device.sensor.silent_ns);
    let silence = if device.sensor.silent_ns > 1_000_000_000 {
        format!(", silent for {silent}")
    } else {
        String::new()
    };
    let _ = writeln!(out, "  sensor   {sensor}{silence}");
}
