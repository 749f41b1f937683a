//! The guard as a service: what is to be written where, from the settings chosen.

pub mod unit;

use std::path::{Path, PathBuf};

use self::unit::Needs;
use crate::daemon::MetricsAt;
use crate::daemon::manifest::{List, Piece};
use crate::guard::settings::{GuardSettings, May, print};

/// What was installed.
pub const LIST: List = List {
    path: "/var/lib/weir/guard-installed.json",
    schema: "weir.guard-installed/1",
    command: "weir guard install",
};
const DASHBOARD: &str = include_str!("grafana-guard.json");

/// Unit, configuration and dashboard.
pub fn pieces(settings: &GuardSettings, program: &Path, share: &Path) -> Vec<Piece> {
    let piece = |path: PathBuf, text: String| Piece { path, text };
    vec![
        piece(PathBuf::from(unit::CONFIG), print(settings)),
        piece(share.join("grafana-guard.json"), DASHBOARD.to_string()),
        // Last: what it names is there when it is.
        piece(PathBuf::from(unit::PATH), unit::text(&needs(settings, program))),
    ]
}

/// The same as a package brings them.
pub fn packaged(program: &Path, share: &Path) -> Vec<Piece> {
    let settings = of_package();
    let mut pieces = pieces(&settings, program, share);
    pieces.retain(|piece| piece.path != Path::new(unit::PATH));
    let unit = unit::packaged(&needs(&settings, program));
    pieces.push(Piece { path: PathBuf::from(unit::OF_PACKAGE), text: unit });
    pieces
}

/// The configuration of a package, which an install may replace as long as nobody has edited it.
pub fn packaged_config() -> Piece {
    Piece { path: PathBuf::from(unit::CONFIG), text: print(&of_package()) }
}

/// Whoever starts the service of a package without more has a guard that watches.
fn of_package() -> GuardSettings {
    GuardSettings { shadow: true, ..GuardSettings::default() }
}

fn needs(settings: &GuardSettings, program: &Path) -> Needs {
    let tcp = matches!(settings.metrics, Some(MetricsAt::Tcp(_)));
    let parent = |path: &Path| path.parent().map(Path::to_path_buf);
    let socket = match &settings.metrics {
        Some(MetricsAt::Unix(path)) => parent(path),
        _ => None,
    };
    let log = settings.log.as_deref().and_then(parent);
    let own = |folder: &PathBuf| ["/run/weir", "/var/lib/weir"].iter().any(|own| folder.starts_with(own));
    Needs {
        program: program.to_path_buf(),
        port: tcp,
        cgroups: settings.may.contains(&May::Cgroup) || settings.may_be_private(),
        for_others: tcp && settings.metrics_for_others,
        folders: socket.into_iter().chain(log).filter(|folder| !own(folder)).collect(),
    }
}

/// What to do next, first things first.
pub fn next_steps(settings: &GuardSettings, now: bool) -> String {
    let mut steps = Vec::new();
    // One that runs already refuses another.
    if !settings.shadow && !now {
        steps.push(("watch it first, in shadow mode", "weir guard run --shadow"));
    }
    if !now {
        steps.push((
            "start it, now and at every boot",
            "systemctl daemon-reload && systemctl enable --now weir-guard",
        ));
    }
    steps.push(("watch it", "weir guard watch"));
    if settings.shadow {
        steps.push((
            "let it act, when its decisions convince you",
            "weir guard install --config /etc/weir/guard.toml --shadow=false --now",
        ));
    }
    steps.push(("remove it, and restore every limit", "weir guard uninstall"));
    let line =
        |(n, (what, command)): (usize, &(&str, &str))| format!("  {}. {what}\n     {command}\n", n + 1);
    format!("next\n{}", steps.iter().enumerate().map(line).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::install::SHARE;
    use crate::daemon::install::testing::dashboard_names;
    use crate::guard::settings::Protected;

    fn settings() -> GuardSettings {
        GuardSettings { shadow: true, ..GuardSettings::default() }
    }

    fn texts(settings: &GuardSettings) -> Vec<String> {
        let pieces = pieces(settings, Path::new("/usr/local/bin/weir"), Path::new(SHARE));
        pieces.into_iter().map(|piece| piece.text).collect()
    }

    #[test]
    fn the_service_gets_what_its_settings_need_and_no_more() {
        let [config, _, unit] = &texts(&settings())[..] else { panic!() };
        assert!(config.contains("shadow = true\n"), "{config}");
        assert!(unit.contains("RestrictAddressFamilies=AF_UNIX\n"), "{unit}");
        let inside = GuardSettings { metrics: "unix:/run/weir/metrics.sock".parse().ok(), ..settings() };
        assert_eq!(&texts(&inside)[2], unit, "its own folder is writable anyway");
        let loopback = GuardSettings {
            metrics: "127.0.0.1:9750".parse().ok(),
            log: Some(PathBuf::from("/var/log/db/guard.log")),
            ..settings()
        };
        let text = &texts(&loopback)[2];
        assert!(text.contains("AF_UNIX AF_INET AF_INET6\nIPAddressDeny=any\n"), "{text}");
        assert!(text.contains(" -/var/log/db\n"), "{text}");
        let cgroups = GuardSettings { may: vec![May::Cgroup], ..settings() };
        let [config, _, unit] = &texts(&cgroups)[..] else { panic!() };
        assert!(
            config.contains("may = [\"cgroup\"]\n") && unit.contains(" -/sys/fs/cgroup\n"),
            "{config}{unit}"
        );
        let spares = GuardSettings { spare: vec![Protected::All], ..settings() };
        let [config, _, unit] = &texts(&spares)[..] else { panic!() };
        assert!(
            config.contains("spare = [\"all\"]\n") && unit.contains("ProtectControlGroups=yes\n"),
            "{config}{unit}"
        );
        let others =
            GuardSettings { metrics: "0.0.0.0:9750".parse().ok(), metrics_for_others: true, ..settings() };
        assert!(!texts(&others)[2].contains("IPAddressDeny"));
    }

    #[test]
    fn the_dashboard_shows_metrics_that_there_are() {
        assert!(dashboard_names(DASHBOARD, include_str!("../metrics.rs"), "weir_guard_") > 20);
    }

    #[test]
    fn shadow_comes_first() {
        let steps = next_steps(&GuardSettings::default(), false);
        assert!(
            steps.starts_with("next\n  1. watch it first, in shadow mode\n     weir guard run --shadow\n"),
            "{steps}"
        );
        let steps = next_steps(&settings(), true);
        assert!(steps.contains("--shadow=false --now") && !steps.contains("enable --now"), "{steps}");
        let steps = next_steps(&GuardSettings::default(), true);
        assert!(steps.starts_with("next\n  1. watch it\n") && !steps.contains("guard run"), "{steps}");
    }

    #[test]
    fn the_readme_shows_the_steps_that_are_printed() {
        let steps = next_steps(&settings(), false);
        assert!(include_str!("../../../../../README.md").contains(&steps), "{steps}");
    }
}
