//! What `weir guard run` is to do: a file, with flags laid over it.

use std::path::Path;

use crate::cli::guard::run::Args;
use crate::failure::Usage;
use crate::guard::settings::{GuardSettings, Protected, file};

/// What was typed, laid over the text of a file, if there is one.
///
/// # Errors
/// When the file does not say what it should, or metrics would be for everybody.
pub fn guard(args: &Args, file: Option<(&Path, &str)>) -> anyhow::Result<GuardSettings> {
    let mut settings = match file {
        Some((path, text)) => file::parse(text).map_err(|mistake| Usage {
            what: format!("{}:{}: {}", path.display(), mistake.line, mistake.what),
            hint: mistake.hint,
        })?,
        None => GuardSettings::default(),
    };
    lay_over(&mut settings, args);
    check(&settings)?;
    Ok(settings)
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
    settings.actuator = args.actuator.unwrap_or(settings.actuator);
    if !args.may.is_empty() {
        settings.may = args.may.clone();
    }
    if !args.spare.is_empty() {
        settings.spare = args.spare.clone();
    }
    settings.sensor = args.sensor.unwrap_or(settings.sensor);
    settings.shadow = args.shadow.unwrap_or(settings.shadow);
    settings.metrics = args.metrics.clone().or(settings.metrics.take());
    settings.metrics_for_others |= args.metrics_for_others;
    settings.log = args.log.clone().or(settings.log.take());
    settings.duration = args.duration.or(settings.duration);
    settings.format = args.format.unwrap_or(settings.format);
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
    use crate::guard::settings::Format;

    #[test]
    fn flags_go_before_the_file() {
        let text = "target-p99 = \"20ms\"\nkeep = 0.8\ndevices = \"sda\"\nshadow = true\nformat = \"json\"\n";
        let guard = |args: &Args| guard(args, Some((Path::new("guard.toml"), text)));
        let typed = Args { keep: Some(0.95), no_history: true, ..Args::default() };
        let settings = guard(&typed).unwrap();
        assert_eq!(settings.target.p99, LatencyTarget::Absolute(Nanos::from_millis(20)));
        assert_eq!((settings.target.keep, settings.shadow, settings.history), (0.95, true, false));
        assert_eq!((settings.format, &settings.devices[..]), (Format::Json, &["sda".to_string()][..]));
        assert_eq!(
            guard(&Args { format: Some(Format::Text), ..typed.clone() }).unwrap().format,
            Format::Text
        );
        assert!(!guard(&Args { shadow: Some(false), ..typed.clone() }).unwrap().shadow);
        let others = Args { metrics: "0.0.0.0:9750".parse().ok(), ..typed.clone() };
        assert!(guard(&others).unwrap_err().to_string().contains("are readable by every host"));
        assert!(guard(&Args { metrics_for_others: true, ..others }).is_ok());
        let all = Args { protect: vec![Protected::All, Protected::Pid(1)], ..typed };
        assert!(guard(&all).is_err());
    }
}
