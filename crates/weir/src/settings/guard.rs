//! What `weir guard run` is to do: a file, with flags laid over it.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::cli::guard::run::Args;
use crate::failure::{Lacking, Usage};
use crate::guard::settings::{GuardSettings, Protected, file};

/// Where settings are looked for without `--config`.
const DEFAULT_FILE: &str = "/etc/weir/guard.toml";

/// What was typed, laid over the file.
///
/// # Errors
/// When the file cannot be read, does not say what it should, or metrics would be for everybody.
pub fn guard(args: &Args) -> anyhow::Result<GuardSettings> {
    let path = args.config.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_FILE));
    let text = match &args.config {
        Some(named) => std::fs::read_to_string(named),
        // Found, not named: it says what root does at every boot.
        None => found(&path),
    };
    let mut settings = match text {
        Ok(text) => file::parse(&text).map_err(|mistake| Usage {
            what: format!("{}:{}: {}", path.display(), mistake.line, mistake.what),
            hint: mistake.hint,
        })?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && args.config.is_none() => {
            GuardSettings::default()
        }
        Err(error) => {
            let what = format!("cannot read the settings {}: {error}", path.display());
            return Err(Lacking { what, hint: None }.into());
        }
    };
    lay_over(&mut settings, args);
    check(&settings)?;
    Ok(settings)
}

/// The text of a file that only root or the caller can have written.
fn found(path: &Path) -> io::Result<String> {
    const LONGEST_BYTES: u64 = 1 << 20;
    let file = weir_fs::trusted_file(path)?;
    let mut text = String::new();
    file.take(LONGEST_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

fn lay_over(settings: &mut GuardSettings, args: &Args) {
    if !args.devices.is_empty() {
        settings.devices = args.devices.clone();
    }
    if !args.protect.is_empty() {
        settings.protect = args.protect.clone();
    }
    settings.target.p99 = args.target_p99.unwrap_or(settings.target.p99);
    settings.target.keep = args.keep.unwrap_or(settings.target.keep);
    settings.lever = args.actuator.unwrap_or(settings.lever);
    if !args.may.is_empty() {
        settings.may = args.may.clone();
    }
    if !args.spare.is_empty() {
        settings.spare = args.spare.clone();
    }
    settings.sensor = args.sensor.unwrap_or(settings.sensor);
    settings.shadow |= args.shadow;
    settings.metrics = args.metrics.clone().or(settings.metrics.take());
    settings.metrics_for_others |= args.metrics_for_others;
    settings.log = args.log.clone().or(settings.log.take());
    settings.duration = args.duration.or(settings.duration);
    settings.format = args.format;
    settings.history &= !args.no_history;
}

fn check(settings: &GuardSettings) -> anyhow::Result<()> {
    settings.metrics.iter().try_for_each(|at| at.check(settings.metrics_for_others))?;
    if settings.protect.len() > 1 && settings.protect.contains(&Protected::All) {
        let what = "`all` includes every other process".to_string();
        return Err(Usage { what, hint: Some("name either all, or single processes".to_string()) }.into());
    }
    if let Some(who) = settings.spare.iter().find(|who| matches!(who, Protected::Comm(_) | Protected::Pid(_)))
    {
        let what = format!("--spare {who} names processes; it takes a cgroup");
        return Err(Usage { what, hint: Some("name a unit, cgroup:PATH, or all".to_string()) }.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use weir_control::LatencyTarget;
    use weir_core::units::Nanos;

    use super::*;

    #[test]
    fn flags_go_before_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("guard.toml");
        std::fs::write(&path, "target-p99 = \"20ms\"\nkeep = 0.8\ndevices = \"sda\"\nshadow = true\n")
            .unwrap();
        let typed = Args { config: Some(path), keep: Some(0.95), no_history: true, ..Args::default() };
        let settings = guard(&typed).unwrap();
        assert_eq!(settings.target.p99, LatencyTarget::Absolute(Nanos::from_millis(20)));
        assert_eq!((settings.target.keep, settings.shadow, settings.history), (0.95, true, false));
        assert_eq!(settings.devices, ["sda"]);
        let others = Args { metrics: "0.0.0.0:9750".parse().ok(), ..typed.clone() };
        assert!(guard(&others).unwrap_err().to_string().contains("are readable by every host"));
        assert!(guard(&Args { metrics_for_others: true, ..others }).is_ok());
        let all = Args { protect: vec![Protected::All, Protected::Pid(1)], ..typed };
        assert!(guard(&all).is_err());
    }
}
