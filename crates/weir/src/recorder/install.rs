//! The recorder as a service of systemd: its unit, and a dashboard and alerts of its metrics.

use std::path::{Path, PathBuf};

use crate::daemon::MetricsAt;
use crate::daemon::install::{addresses, argument, families, word};
use crate::daemon::manifest::{List, Piece};
use crate::recorder::RecorderSettings;

/// Where the unit lies.
pub const PATH: &str = "/etc/systemd/system/weir-recorder.service";
/// Where it lies when it came with a package.
const OF_PACKAGE: &str = "/usr/lib/systemd/system/weir-recorder.service";
/// Its name.
pub const NAME: &str = "weir-recorder.service";
/// What was installed.
pub const LIST: List = List {
    path: "/var/lib/weir/recorder-installed.json",
    schema: "weir.recorder-installed/1",
    command: "weir recorder install",
};
const DASHBOARD: &str = include_str!("install/grafana-recorder.json");
const ALERTS: &str = include_str!("install/alerts-recorder.yml");

/// Those that load programs into the kernel and read its symbols, and those that see other users' processes
/// (capabilities(7)). Without CAP_SYS_ADMIN the place of a wait is known when it ends, and not before (`/proc/PID/stack`).
const CAPABILITIES: &str = "CAP_BPF CAP_PERFMON CAP_SYSLOG CAP_SYS_PTRACE CAP_DAC_READ_SEARCH";

/// Folders of its own that the service may write to.
const OWN: [&str; 2] = ["/var/lib/weir/recorder", "/run/weir-recorder"];

/// Unit, dashboard and alerts of a recorder with these settings, started with these options.
pub fn pieces(settings: &RecorderSettings, program: &Path, options: &[String], share: &Path) -> Vec<Piece> {
    let head = "# Written by `weir recorder install`; `weir recorder uninstall` takes it away.\n";
    let unit = unit(settings.metrics.as_ref(), settings.metrics_for_others, program, options);
    all(share, PATH, format!("{head}{unit}"))
}

/// The same as a package brings them, without options.
pub fn packaged(program: &Path, share: &Path) -> Vec<Piece> {
    let head = "# `weir recorder install OPTIONS` writes a unit with these options to /etc/systemd/system, where it takes this \
                one's place.\n";
    all(share, OF_PACKAGE, format!("{head}{}", unit(None, false, program, &[])))
}

fn all(share: &Path, path: &str, unit: String) -> Vec<Piece> {
    let shared = [("grafana-recorder.json", DASHBOARD), ("alerts-recorder.yml", ALERTS)];
    let shared = shared.map(|(name, text)| Piece { path: share.join(name), text: text.to_string() });
    shared.into_iter().chain([Piece { path: PathBuf::from(path), text: unit }]).collect()
}

/// The unit that runs a program with these options.
fn unit(metrics: Option<&MetricsAt>, for_others: bool, program: &Path, options: &[String]) -> String {
    let words: Vec<String> = [program.display().to_string(), "recorder".into(), "run".into()]
        .into_iter()
        .chain(options.iter().cloned())
        .map(|text| argument(&text))
        .collect();
    let command = words.join(" ");
    let port = matches!(metrics, Some(MetricsAt::Tcp(_)));
    let (families, addresses) = (families(port), addresses(port && for_others));
    let folder = match metrics {
        Some(MetricsAt::Unix(path)) => {
            path.parent().filter(|folder| !OWN.iter().any(|own| folder.starts_with(own)))
        }
        _ => None,
    };
    // What is not there, such as a folder not yet mounted, must not keep the service from starting.
    let writable = folder.map_or(String::new(), |folder| {
        format!("ReadWritePaths={}\n", word(&format!("-{}", folder.display())))
    });
    format!(
        "\
[Unit]
Description=weir recorder: what storage and syncs did, kept for looking back
After=local-fs.target

[Service]
Type=notify
NotifyAccess=main
ExecStart={command}
Restart=on-failure
RestartSec=10
# A recorder whose sampling hangs is started again; one that waits for its disk only samples on.
WatchdogSec=30
# A recorder that is told to end says by which signal.
SuccessExitStatus=143
# It closes its segment first; the journal holds what it could not.
TimeoutStopSec=60
KillMode=mixed
StateDirectory=weir/recorder
StateDirectoryMode=0700
RuntimeDirectory=weir-recorder
# What is watched comes first.
Nice=5
IOSchedulingClass=idle
MemoryMax=256M
TasksMax=32
LimitCORE=0

CapabilityBoundingSet={CAPABILITIES}
NoNewPrivileges=yes
ProtectSystem=strict
{writable}ProtectHome=read-only
PrivateTmp=yes
DevicePolicy=closed
ProtectKernelTunables=yes
ProtectControlGroups=yes
ProtectKernelModules=yes
ProtectClock=yes
ProtectHostname=yes
RestrictAddressFamilies={families}
{addresses}RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RemoveIPC=yes
KeyringMode=private
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=bpf perf_event_open
SystemCallErrorNumber=EPERM
UMask=0077

[Install]
WantedBy=multi-user.target
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::install::testing::{dashboard_names, names_in};

    fn text(metrics: Option<&str>, options: &[&str]) -> String {
        let metrics: Option<MetricsAt> = metrics.map(|at| at.parse().unwrap());
        let options: Vec<String> = options.iter().map(ToString::to_string).collect();
        unit(metrics.as_ref(), false, Path::new("/opt/my weir"), &options)
    }

    #[test]
    fn the_service_gets_what_its_options_need_and_no_more() {
        let plain = text(None, &["--interval", "5s"]);
        for line in [
            "Type=notify",
            "WatchdogSec=30",
            "RestrictAddressFamilies=AF_UNIX",
            "IPAddressDeny=any",
            "ExecStart=\"/opt/my weir\" recorder run --interval 5s",
        ] {
            assert!(plain.lines().any(|found| found == line), "{line}: {plain}");
        }
        assert!(!plain.contains("ReadWritePaths"), "{plain}");
        let port = text(Some("127.0.0.1:9751"), &[]);
        assert!(port.contains("AF_UNIX AF_INET AF_INET6\nIPAddressDeny=any\n"), "{port}");
        assert!(!text(Some("unix:/run/weir-recorder/metrics.sock"), &[]).contains("ReadWritePaths"));
        assert!(text(Some("unix:/srv/m/s"), &[]).contains("ReadWritePaths=-/srv/m\n"));
    }

    #[test]
    fn the_dashboard_shows_metrics_that_there_are() {
        assert!(dashboard_names(DASHBOARD, include_str!("metrics.rs"), "weir_recorder_") > 20);
    }

    #[test]
    fn the_alerts_ask_for_metrics_that_there_are() {
        assert!(names_in(ALERTS, include_str!("metrics.rs"), "weir_recorder_") > 10);
    }
}
