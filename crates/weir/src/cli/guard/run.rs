//! What can be typed after `weir guard run`.

use std::path::PathBuf;

use clap::ValueHint;
use weir_control::LatencyTarget;
use weir_core::units::Nanos;

use crate::daemon::MetricsAt;
use crate::guard::settings::{ActuatorChoice, Format, May, Protected, SensorChoice, latency_target, share};

const NOTES: &str = "\
Begin with --shadow: the guard decides and logs, and changes nothing.

The guard restores the baseline at every end. SIGINT, SIGTERM and SIGHUP end it. SIGUSR1 makes it guard a limit again that it had yielded; so does SIGHUP where NOTIFY_SOCKET is set, as under systemd. Settings come from --config, or /etc/weir/guard.toml where that exists; flags override the file.

Examples:
  weir guard run --shadow
  weir guard run /var/lib/mysql --protect mariadb.service --target-p99 50ms
  weir guard run sda nvme0n1 --target-p99 5x --keep 0.9 --metrics 127.0.0.1:9750
  weir guard run --print-config > /etc/weir/guard.toml";

/// Arguments of `weir guard run`.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// Devices, or paths on them [default: every device with a file system that is mounted for writing]
    #[arg(value_name = "PATH|DEVICE", value_hint = ValueHint::AnyPath)]
    pub devices: Vec<String>,
    /// The 99th percentile that syncs are to keep: a time, or a multiple of what it is undisturbed [default: 5x]
    #[arg(long, value_name = "TIME|Nx", value_parser = latency_target)]
    pub target_p99: Option<LatencyTarget>,
    /// Share of their undisturbed rate that syncs are to keep, 0 to 1 [default: 0.93]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub keep: Option<f64>,
    /// Whose syncs: a systemd unit, comm:NAME, pid:N (with its children), cgroup:PATH, or all. Repeatable [default: all]
    #[arg(long, value_name = "WHO")]
    pub protect: Vec<Protected>,
    /// Decide and log, and change nothing; `--shadow=false` where the file says otherwise
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub shadow: Option<bool>,
    /// The actuator: the limit that the guard sets [default: auto]
    #[arg(long, alias = "lever", value_name = "ACTUATOR")]
    pub actuator: Option<ActuatorChoice>,
    /// What else it may turn where that helps more. Repeatable [default: nothing]
    #[arg(long, value_name = "WHAT")]
    pub may: Vec<May>,
    /// Whose cgroup is left alone: a systemd unit, cgroup:PATH, or all. Others that bulk writers are alone in get
    /// memory.high, io.max and cpu.max for as long as they flood. Repeatable [default: nobody's]
    #[arg(long, value_name = "WHO")]
    pub spare: Vec<Protected>,
    /// Where latencies come from [default: auto]
    #[arg(long, value_name = "SENSOR")]
    pub sensor: Option<SensorChoice>,
    /// Settings from this file [default: /etc/weir/guard.toml, if it is there]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Print the settings as a file for --config, and end
    #[arg(long)]
    pub print_config: bool,
    /// Answer GET /metrics in OpenMetrics there: 127.0.0.1:9750, or unix:PATH
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<MetricsAt>,
    /// Let --metrics listen on an address that others can reach; nobody is asked who he is
    #[arg(long)]
    pub metrics_for_others: bool,
    /// Append every decision that matters to this file, one JSON object a line
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub log: Option<PathBuf>,
    /// End after this long [default: until a signal]
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Nanos>,
    /// Form of the log on stderr, and of the summary on stdout at the end [default: text]
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Keep no history in the store
    #[arg(long)]
    pub no_history: bool,
}
