//! The service: which rights the guard has, and what becomes of its settings however it ends.

use std::path::PathBuf;

use crate::daemon::install::{addresses, argument, families, word};

/// Where the unit lies.
pub const PATH: &str = "/etc/systemd/system/weir-guard.service";
/// Where it lies when it came with a package.
pub const OF_PACKAGE: &str = "/usr/lib/systemd/system/weir-guard.service";
/// Its name.
pub const NAME: &str = "weir-guard.service";
/// Where the configuration lies.
pub const CONFIG: &str = "/etc/weir/guard.toml";

/// What the chosen options need beyond what every guard needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// The program, by its absolute path.
    pub program: PathBuf,
    /// It answers on a port.
    pub port: bool,
    /// That port is not only for this machine.
    pub for_others: bool,
    /// It turns limits of cgroups.
    pub cgroups: bool,
    /// Folders that its log or its metrics' socket lie in.
    pub folders: Vec<PathBuf>,
}

/// The first two load programs into the kernel (since Linux 5.8), the others see which files other users' processes have
/// open for writing, and so who is bulk on which device (capabilities(7)). The limits themselves take none: their files
/// belong to root.
const CAPABILITIES: [&str; 4] = ["CAP_BPF", "CAP_PERFMON", "CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH"];

/// Where limits of cgroups are turned: those that a user's manager made have files that belong to the user, and root without this writes to its
/// own alone. What it could write to beyond them is mounted read-only (`ProtectSystem=strict`).
const OF_CGROUPS: &str = "CAP_DAC_OVERRIDE";

/// Its threads, and a guardian process for each limit in use: up to two for a device, and for each of 16 cgroups of bulk writers one besides
/// its thread. That is enough for a hundred devices.
const TASKS_MOST: u32 = 512;

/// The unit that an install writes.
pub fn text(needs: &Needs) -> String {
    format!("# Written by `weir guard install`; `weir guard uninstall` takes it away.\n{}", body(needs))
}

/// The unit that a package brings.
pub fn packaged(needs: &Needs) -> String {
    format!(
        "# Its rights are those that guard.toml needs as the package brings it. `weir guard install OPTIONS` writes a unit\n# \
         with the rights that its options need to /etc/systemd/system, where it takes this one's place.\n{}",
        body(needs)
    )
}

/// The unit. Everything is read-only but the dirty limits, the devices' shares of them, cgroups where it may turn those,
/// and weir's own folders.
fn body(needs: &Needs) -> String {
    let program = argument(&needs.program.display().to_string());
    // What /sys/class/bdi points at.
    let mut writable = vec![PathBuf::from("/proc/sys/vm"), PathBuf::from("/sys/devices/virtual/bdi")];
    writable.extend(needs.cgroups.then(|| PathBuf::from("/sys/fs/cgroup")));
    writable.extend(needs.folders.iter().cloned());
    // What is not there, such as a folder not yet mounted, must not keep the service from starting.
    let optional = |path: &PathBuf| word(&format!("-{}", path.display()));
    let writable = writable.iter().map(optional).collect::<Vec<_>>().join(" ");
    let of_cgroups = needs.cgroups.then_some(OF_CGROUPS);
    let capabilities = CAPABILITIES.into_iter().chain(of_cgroups).collect::<Vec<_>>().join(" ");
    let families = families(needs.port);
    // It would make all of them read-only, whatever else is said of them.
    let protect_cgroups = if needs.cgroups { "no" } else { "yes" };
    let addresses = addresses(needs.for_others);
    format!(
        "\
[Unit]
Description=weir guard: syncs keep their latency while bulk writers flood the page cache
After=local-fs.target remote-fs.target systemd-sysctl.service tuned.service
StartLimitIntervalSec=5min
StartLimitBurst=5

[Service]
Type=notify
NotifyAccess=main
ExecStart={program} guard run --config {CONFIG}
# Runs after every end, a kill and the watchdog's included: what the guard had set goes back, and nothing else.
ExecStopPost={program} knobs rollback --stale
Restart=on-failure
RestartSec=5
# A guard that is told to end says by which signal.
SuccessExitStatus=143
# A guard that hangs is killed, and its limits go back.
WatchdogSec=30
TimeoutStopSec=30
# The guardian process outlives the guard by as long as it takes to put the limits back.
KillMode=mixed
StateDirectory=weir
StateDirectoryMode=0750
RuntimeDirectory=weir
Environment=WEIR_STORE=/var/lib/weir/runs
# A flood must not take memory or processor away from what is to hold it.
OOMScoreAdjust=-500
Nice=-5
MemoryMax=512M
TasksMax={TASKS_MOST}
LimitCORE=0

CapabilityBoundingSet={capabilities}
NoNewPrivileges=yes
ProtectSystem=strict
ReadWritePaths={writable}
ProtectHome=read-only
PrivateTmp=yes
DevicePolicy=closed
ProtectKernelTunables=yes
ProtectControlGroups={protect_cgroups}
ProtectKernelModules=yes
ProtectKernelLogs=yes
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
    use std::collections::BTreeMap;

    use super::*;

    fn needs() -> Needs {
        Needs { program: PathBuf::from("/usr/local/bin/weir"), ..Needs::default() }
    }

    /// Keys of all sections with their values, in order; panics at a line that is neither.
    fn parsed(text: &str) -> BTreeMap<String, Vec<String>> {
        let mut keys: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut section = "";
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                Some(name) => section = name,
                None => {
                    let (key, value) = line.split_once('=').unwrap();
                    keys.entry(format!("{section}.{key}")).or_default().push(value.to_string());
                }
            }
        }
        keys
    }

    #[test]
    fn the_service_is_watched_and_always_cleaned_up_after() {
        let unit = parsed(&text(&needs()));
        for (key, value) in [
            ("Service.Type", "notify"),
            ("Service.WatchdogSec", "30"),
            ("Service.TasksMax", "512"),
            ("Service.Restart", "on-failure"),
            ("Service.ExecStart", "/usr/local/bin/weir guard run --config /etc/weir/guard.toml"),
            ("Service.ExecStopPost", "/usr/local/bin/weir knobs rollback --stale"),
            ("Service.ProtectSystem", "strict"),
            ("Service.CapabilityBoundingSet", "CAP_BPF CAP_PERFMON CAP_SYS_PTRACE CAP_DAC_READ_SEARCH"),
            ("Service.ReadWritePaths", "-/proc/sys/vm -/sys/devices/virtual/bdi"),
            ("Service.RestrictAddressFamilies", "AF_UNIX"),
            ("Service.ProtectControlGroups", "yes"),
            ("Install.WantedBy", "multi-user.target"),
        ] {
            assert_eq!(unit[key], [value], "{key}");
        }
    }

    #[test]
    fn rights_come_only_with_the_options_that_need_them() {
        let folders = vec![PathBuf::from("/srv/my log"), PathBuf::from("/srv/100%")];
        let unit = parsed(&text(&Needs { port: true, folders, ..needs() }));
        assert_eq!(unit["Service.RestrictAddressFamilies"], ["AF_UNIX AF_INET AF_INET6"]);
        assert_eq!(unit["Service.IPAddressAllow"], ["localhost"]);
        let writable = &unit["Service.ReadWritePaths"][0];
        assert!(writable.ends_with(" \"-/srv/my log\" -/srv/100%%"), "{writable}");
        let unit = parsed(&text(&Needs { cgroups: true, ..needs() }));
        assert_eq!(unit["Service.ProtectControlGroups"], ["no"]);
        assert!(unit["Service.CapabilityBoundingSet"][0].ends_with(" CAP_DAC_OVERRIDE"));
        let writable = &unit["Service.ReadWritePaths"][0];
        assert!(writable.ends_with(" -/sys/fs/cgroup"), "{writable}");
        let unit = parsed(&text(&Needs { port: true, for_others: true, ..needs() }));
        assert!(!unit.contains_key("Service.IPAddressDeny"));
    }
}
