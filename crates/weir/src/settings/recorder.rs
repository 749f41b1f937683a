//! What `weir recorder` is to do, and which times are meant.

use std::path::PathBuf;

use jiff::civil::Time;
use jiff::{SignedDuration, Timestamp, Zoned};
use weir_core::units::{Bytes, Nanos};

use crate::cli::recorder::RunArgs;
use crate::failure::Usage;
use crate::recorder::RecorderSettings;

/// The shortest interval: each looks at every process.
const INTERVAL_MIN: Nanos = Nanos(1_000_000_000);
/// The smallest archive: it holds some segments of a busy machine.
const BYTES_MIN: Bytes = Bytes(16 << 20);

/// What `weir recorder run` is to do with the archive in `dir`.
///
/// # Errors
/// Where a time makes no sense.
pub fn recorder(args: &RunArgs, dir: PathBuf) -> anyhow::Result<RecorderSettings> {
    if args.interval < INTERVAL_MIN || args.interval > args.segment {
        let what = format!(
            "--interval {}: expected 1s to the length of a segment ({})",
            args.interval, args.segment
        );
        return Err(Usage { what, hint: None }.into());
    }
    if args.stall < INTERVAL_MIN {
        let what = format!("--stall {}: expected 1s or more, the time between two looks", args.stall);
        return Err(Usage { what, hint: None }.into());
    }
    if args.max_age < args.segment {
        let what = format!(
            "--max-age {}: expected the length of a segment ({}) or more",
            args.max_age, args.segment
        );
        return Err(Usage {
            what,
            hint: Some("name a unit, as in 14d: without one it is seconds".to_string()),
        }
        .into());
    }
    if args.max_bytes < BYTES_MIN {
        let what = format!("--max-bytes {}: expected {BYTES_MIN} or more", args.max_bytes);
        return Err(
            Usage { what, hint: Some("name a unit, as in 2g: without one it is bytes".to_string()) }.into()
        );
    }
    args.metrics.iter().try_for_each(|at| at.check(args.metrics_for_others))?;
    Ok(RecorderSettings {
        dir,
        interval: args.interval,
        devices: args.devices.clone(),
        slow: args.slow,
        max_age: args.max_age,
        max_bytes: args.max_bytes,
        segment: args.segment,
        stall: args.stall,
        duration: args.duration,
        metrics: args.metrics.clone(),
        metrics_for_others: args.metrics_for_others,
    })
}

/// A stretch of time, Unix time, ms.
///
/// # Errors
/// Where a time cannot be read, or the end lies before the start.
pub fn stretch(since: &str, until: Option<&str>, now: &Zoned) -> anyhow::Result<(i64, i64)> {
    let until_ms = match until {
        Some(text) => point(text, now)?,
        None => now.timestamp().as_millisecond(),
    };
    let mut since_ms = point(since, now)?;
    // From 23:00 until 01:00: the evening before.
    let is_clock = |text: &str| text.parse::<Time>().is_ok();
    if since_ms >= until_ms && is_clock(since) && until.is_some_and(is_clock) {
        since_ms -= 86_400_000;
    }
    if since_ms >= until_ms {
        let what = format!("--since {since} is not before --until {}", until.unwrap_or("now"));
        return Err(Usage { what, hint: None }.into());
    }
    Ok((since_ms, until_ms))
}

fn point(text: &str, now: &Zoned) -> anyhow::Result<i64> {
    if text == "now" {
        return Ok(now.timestamp().as_millisecond());
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at.as_millisecond());
    }
    if text.contains(':') && !text.contains('-') {
        if let Ok(time) = text.parse::<Time>() {
            let today = now.date().to_datetime(time).to_zoned(now.time_zone().clone())?;
            let last = if today > *now { today.checked_sub(jiff::Span::new().days(1))? } else { today };
            return Ok(last.timestamp().as_millisecond());
        }
    } else if let Ok(at) = text.parse::<jiff::civil::DateTime>() {
        return Ok(at.to_zoned(now.time_zone().clone())?.timestamp().as_millisecond());
    }
    let days = text.strip_suffix('d').and_then(|days| days.parse::<i64>().ok());
    let ago = match days {
        Some(days) => Some(SignedDuration::from_hours(days.saturating_mul(24).clamp(0, 1 << 30))),
        None => text
            .parse::<Nanos>()
            .ok()
            .map(|ago| SignedDuration::from_nanos(ago.0.min(i64::MAX as u64) as i64)),
    };
    match ago.map(|ago| now.timestamp().checked_sub(ago)) {
        Some(Ok(at)) => Ok(at.as_millisecond()),
        _ => {
            let what = format!("expected HH:MM, a date with a time, or a length such as 2h, got `{text}`");
            Err(Usage { what, hint: Some("`weir recorder show --help` has examples".to_string()) }.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command, recorder};

    fn typed(words: &str) -> Cli {
        Cli::try_parse_from(words.split(' ')).unwrap_or_else(|error| panic!("{words}: {error}"))
    }

    /// What may be kept, or why not, with the hint.
    fn kept(options: &str) -> Result<(Nanos, Bytes), String> {
        let Command::Recorder(args) = typed(&format!("weir recorder run {options}")).command else {
            panic!()
        };
        let recorder::Command::Run(args) = args.command else { panic!() };
        let settings = recorder(&args, PathBuf::from("/srv/archive"));
        settings.map(|settings| (settings.max_age, settings.max_bytes)).map_err(|error| {
            let usage = error.downcast::<Usage>().unwrap();
            format!("{}; {}", usage.what, usage.hint.unwrap_or_default())
        })
    }

    #[test]
    fn an_archive_that_keeps_nothing_is_refused() {
        let day = 86_400_000_000_000;
        assert_eq!(kept("--max-age 14d --max-bytes 2g").unwrap(), (Nanos(14 * day), Bytes(2 << 30)));
        assert_eq!(kept("--max-age 6min --segment 6min --max-bytes 16m").unwrap().1, BYTES_MIN);
        for (options, hint) in [
            ("--max-age 14", "14d"),
            ("--max-age 59min", "seconds"),
            ("--max-bytes 2", "2g"),
            ("--max-bytes 15m", "bytes"),
        ] {
            let why = kept(options).unwrap_err();
            assert!(why.contains(hint) && why.contains("or more"), "{options}: {why}");
        }
    }

    /// Commands stand in the alerts between backquotes.
    #[test]
    fn commands_in_the_alerts_can_be_typed() {
        const ALERTS: &str = include_str!("../recorder/install/alerts-recorder.yml");
        let quoted = ALERTS.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
        let commands: Vec<&str> = quoted.filter(|text| text.starts_with("weir ")).collect();
        assert!(commands.len() >= 4, "{commands:?}");
        for words in commands {
            if let Command::Recorder(args) = typed(words).command
                && let recorder::Command::Show(args) = args.command
            {
                let now = Timestamp::UNIX_EPOCH.to_zoned(jiff::tz::TimeZone::UTC);
                stretch(&args.since, args.until.as_deref(), &now).unwrap();
            }
        }
        let bare = ALERTS.lines().filter(|line| line.contains("weir recorder ") && !line.contains("`weir "));
        assert_eq!(bare.collect::<Vec<_>>(), [] as [&str; 0]);
    }

    #[test]
    fn times_are_the_last_that_have_passed() {
        let now: Timestamp = "2026-11-25T12:00:00Z".parse().unwrap();
        let now = now.to_zoned(jiff::tz::TimeZone::UTC);
        let at = |text: &str| text.parse::<Timestamp>().unwrap().as_millisecond();
        for (since, until, expected) in [
            ("03:00", Some("03:30"), ("2026-11-25T03:00:00Z", "2026-11-25T03:30:00Z")),
            ("23:00", Some("23:30:15"), ("2026-11-24T23:00:00Z", "2026-11-24T23:30:15Z")),
            ("23:00", Some("01:00"), ("2026-11-24T23:00:00Z", "2026-11-25T01:00:00Z")),
            ("2h", None, ("2026-11-25T10:00:00Z", "2026-11-25T12:00:00Z")),
            ("1d", Some("now"), ("2026-11-24T12:00:00Z", "2026-11-25T12:00:00Z")),
            (
                "2026-11-20 03:00",
                Some("2026-11-20T03:00:01Z"),
                ("2026-11-20T03:00:00Z", "2026-11-20T03:00:01Z"),
            ),
        ] {
            assert_eq!(
                stretch(since, until, &now).unwrap(),
                (at(expected.0), at(expected.1)),
                "{since} {until:?}"
            );
        }
        for (since, until) in [("soon", None), ("25:00", None), ("1h", Some("2h")), ("", None)] {
            assert!(stretch(since, until, &now).is_err(), "{since}");
        }
    }
}
