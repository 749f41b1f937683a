//! The guard as a service: what is to be written where, from the settings chosen.

pub mod manifest;
pub mod unit;

use std::path::{Path, PathBuf};

use self::manifest::Piece;
use self::unit::Needs;
use crate::failure::Lacking;
use crate::guard::settings::{GuardSettings, May, MetricsAt, print};

/// Where the dashboard lies unless it is asked for elsewhere.
pub const SHARE: &str = "/usr/local/share/weir";
const DASHBOARD: &str = include_str!("grafana-guard.json");

/// Folders of which a program is likely to go away, or which the service does not see.
const PASSING: [&str; 5] = ["/tmp", "/var/tmp", "/home", "/root", "/dev"];

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

/// Why the program should be elsewhere before a service depends on it.
pub fn passing(program: &Path) -> Option<String> {
    let folder = PASSING.iter().find(|folder| program.starts_with(folder))?;
    Some(format!(
        "the service would run {}, and files under {folder} may go away: install weir to /usr/local/bin \
         first",
        program.display()
    ))
}

/// Whether only root can change what the service would run: root runs it at every boot.
///
/// # Errors
/// What others can change, and what to do.
pub fn check_program(program: &Path) -> Result<(), Lacking> {
    let refused = |why: String| Lacking {
        what: format!(
            "the service would run {} as root, and other accounts can change it: {why}",
            program.display()
        ),
        hint: Some("install -o root -g root -m 755 weir /usr/local/bin/weir, and run that one".to_string()),
    };
    weir_fs::trusted_chain(program).map(drop).map_err(|error| refused(error.to_string()))
}

/// What to do next, first things first.
pub fn next_steps(settings: &GuardSettings, now: bool) -> String {
    let mut steps = Vec::new();
    if !settings.shadow {
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
            "sed -i 's/^shadow = true/shadow = false/' /etc/weir/guard.toml && systemctl restart weir-guard",
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
    fn a_program_that_others_may_change_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        // A folder that anybody may write to; what is in it is as good as theirs.
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("weir");
        std::fs::write(&program, "").unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let refused = check_program(&program).unwrap_err();
        assert!(refused.what.contains("other accounts can change it"), "{}", refused.what);
        let safe = Path::new("/bin/sh");
        assert!(check_program(safe).is_ok());
        assert!(check_program(&folder.path().join("none")).is_err());
    }

    #[test]
    fn the_dashboard_shows_metrics_that_there_are() {
        let metrics = include_str!("../metrics.rs");
        let board: serde_json::Value = serde_json::from_str(DASHBOARD).unwrap();
        let panels = board["panels"].as_array().unwrap();
        let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
        let mut seen = 0;
        for expression in targets.map(|target| target["expr"].as_str().unwrap()) {
            let names = expression
                .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .filter(|word| word.starts_with("weir_guard_"));
            for name in names {
                let family = name.trim_end_matches("_total");
                let known = [name, family].iter().any(|name| metrics.contains(&format!("\"{name}\"")));
                assert!(known, "{expression}: there is no metric {name}");
                seen += 1;
            }
        }
        assert!(seen > 20, "{seen} names");
    }

    #[test]
    fn shadow_comes_first() {
        let steps = next_steps(&GuardSettings::default(), false);
        assert!(
            steps.starts_with("next\n  1. watch it first, in shadow mode\n     weir guard run --shadow\n"),
            "{steps}"
        );
        let steps = next_steps(&settings(), true);
        assert!(steps.contains("shadow = false") && !steps.contains("enable --now"), "{steps}");
        assert!(passing(Path::new("/home/me/target/release/weir")).is_some());
        assert_eq!(passing(Path::new("/usr/local/bin/weir")), None);
    }
}
