//! The options of every test, checked in sysbench's order so that the first complaint is the same.

use super::log::{Log, Quit};
use super::random::{Random, Shape, pareto_power};
use super::values::Values;

/// Most checkpoints one run reports.
const CHECKPOINTS_MAX: usize = 256;

/// What the general options ask for.
#[derive(Debug, Clone, PartialEq)]
pub struct General {
    /// Threads.
    pub threads: u32,
    /// Stop after this many events; 0: no limit.
    pub events: u64,
    /// Stop after this many seconds; 0: no limit.
    pub time_s: u64,
    /// Seconds after `time_s` at which stuck I/O is abandoned.
    pub forced_shutdown_s: Option<u64>,
    /// Print every request.
    pub debug: bool,
    /// Write and check checksums.
    pub validate: bool,
    /// 0: from the clock.
    pub seed: i32,
    /// Events per second of an open loop; 0: closed loop.
    pub rate: u32,
    /// Seconds between intermediate reports; 0: none.
    pub report_interval_s: u32,
    /// Seconds at which a whole report is printed, ascending.
    pub checkpoints_s: Vec<u32>,
    /// Percentile of sysbench's part of the report; 0: none.
    pub percentile: u32,
    /// Print the histogram.
    pub histogram: bool,
    /// 0.4.12's layout.
    pub legacy_report: bool,
    /// What weir adds after the report.
    pub extra: bool,
    /// How scripts draw their keys; fileio does not follow it.
    pub random: Random,
    /// A distribution other than the uniform one was asked for.
    pub shape_given: bool,
}

impl General {
    /// Reads the options. `old_style`: the test was named by `--test=`, as 0.4.12 did.
    pub fn from_values(values: &mut Values, old_style: bool, log: &mut Log<'_>) -> Result<General, Quit> {
        let threads = threads(values, log)?;
        let events = limit(values, "max-requests", "events", log)?;
        let time_s = time_limit(values, old_style, log)?;
        if events == 0 && time_s == 0 {
            log.warning("Both event and time limits are disabled, running an endless test");
        }
        let forced_shutdown_s = if time_s > 0 { forced_shutdown(values, time_s, log)? } else { None };
        let stack = values.size("thread-stack-size") as i32;
        if stack <= 0 {
            return Err(log.fatal(format!("Invalid value for thread-stack-size: {stack}.\n")));
        }
        let debug = values.flag("debug");
        let (seed, random) = read_random(values, log)?;
        let rate = limit(values, "tx-rate", "rate", log)? as u32;
        let report_interval_s = not_negative(values, "report-interval", log)? as u32;
        let checkpoints_s = checkpoints(values, log)?;
        let legacy_report = values.flag("legacy-report");
        let (percentile, histogram) = set_up_log(values, debug, log)?;
        Ok(General {
            threads,
            events,
            time_s,
            forced_shutdown_s,
            debug,
            validate: values.flag("validate"),
            seed,
            rate,
            report_interval_s,
            checkpoints_s,
            percentile,
            histogram,
            legacy_report,
            extra: values.flag("weir-extra"),
            random,
            shape_given: values.given("rand-type") && random.shape != Shape::Uniform,
        })
    }
}

fn threads(values: &Values, log: &mut Log<'_>) -> Result<u32, Quit> {
    let mut threads = values.int("num-threads", log)?;
    if threads > 1 {
        log.warning("--num-threads is deprecated, use --threads instead");
    } else {
        threads = values.int("threads", log)?;
    }
    match u32::try_from(threads) {
        Ok(threads) if threads > 0 => Ok(threads),
        _ => Err(log.fatal(format!("Invalid value for --threads: {threads}.\n"))),
    }
}

/// A number that must not be negative. sysbench takes -1 for 2^64 - 1; weir refuses it.
fn not_negative(values: &Values, name: &str, log: &mut Log<'_>) -> Result<u64, Quit> {
    let value = values.int(name, log)?;
    u64::try_from(value).map_err(|_| log.fatal(format!("Invalid value for --{name}: {value}.")))
}

/// A limit under its old name, where that is not 0, else under its own.
fn limit(values: &Values, old: &str, name: &str, log: &mut Log<'_>) -> Result<u64, Quit> {
    let value = not_negative(values, old, log)?;
    if value == 0 {
        return not_negative(values, name, log);
    }
    log.warning(format!("--{old} is deprecated, use --{name} instead"));
    Ok(value)
}

/// 1.0.20 ignores `--max-time=0`, so that a command line that meant "no limit" runs 10 s. Written the way of 0.4.12,
/// with `--test=`, it keeps its meaning.
fn time_limit(values: &Values, old_style: bool, log: &mut Log<'_>) -> Result<u64, Quit> {
    if old_style && values.given("max-time") && values.int("max-time", log)? == 0 && !values.given("time") {
        return Ok(0);
    }
    limit(values, "max-time", "time", log)
}

/// Seconds after the time limit; bare: 5 % of it.
fn forced_shutdown(values: &Values, time_s: u64, log: &mut Log<'_>) -> Result<Option<u64>, Quit> {
    let Some(text) = values.text("forced-shutdown") else { return Ok(Some(time_s / 20)) };
    if text.eq_ignore_ascii_case("off") {
        return Ok(None);
    }
    let (number, share) = match text.split_once('%') {
        Some((number, _)) => (number, true),
        None => (text, false),
    };
    match number.parse::<u32>().map(u64::from) {
        Ok(percent) if share => Ok(Some(percent * time_s / 100)),
        Ok(seconds) => Ok(Some(seconds)),
        Err(_) => Err(log.fatal(format!("Invalid value for --forced-shutdown: '{text}'"))),
    }
}

/// The seed and the distributions.
fn read_random(values: &Values, log: &mut Log<'_>) -> Result<(i32, Random), Quit> {
    let mut seed = values.int("rand-seed", log)?;
    if seed == 0 {
        seed = values.int("seed-rng", log)?;
    }
    let name = values.text("rand-type").unwrap_or("").to_string();
    let Some((_, shape)) = Shape::ALL.into_iter().find(|(known, _)| *known == name) else {
        return Err(log.fatal(format!("Invalid random numbers distribution: {name}.")));
    };
    let percent = |value: i32| f64::from(value.clamp(0, 100));
    let random = Random {
        shape,
        iterations: values.int("rand-spec-iter", log)?.max(1) as u32,
        middle_percent: percent(values.int("rand-spec-pct", log)?),
        middle_share: percent(values.int("rand-spec-res", log)?),
        pareto_power: pareto_power(values.double("rand-pareto-h", log)?),
    };
    Ok((seed, random))
}

fn checkpoints(values: &Values, log: &mut Log<'_>) -> Result<Vec<u32>, Quit> {
    let mut seconds = Vec::new();
    for text in values.list("report-checkpoints") {
        match text.trim_start().parse::<i32>().ok().and_then(|v| u32::try_from(v).ok()) {
            Some(second) => seconds.push(second),
            None => return Err(log.fatal(format!("Invalid value for --report-checkpoints: '{text}'"))),
        }
    }
    if seconds.len() > CHECKPOINTS_MAX {
        return Err(log.fatal(format!(
            "Too many checkpoints in --report-checkpoints (up to {CHECKPOINTS_MAX} can be defined)"
        )));
    }
    seconds.sort_unstable();
    Ok(seconds)
}

/// The percentile and whether to print the histogram; from here on the log obeys `--verbosity`.
fn set_up_log(values: &mut Values, debug: bool, log: &mut Log<'_>) -> Result<(u32, bool), Quit> {
    let legacy = values.flag("legacy-report") && !values.given("verbosity");
    let verbosity = match (debug, legacy) {
        (true, _) => 5,
        (false, true) => 4,
        (false, false) => values.int("verbosity", log)?,
    };
    if verbosity > 5 {
        log.raw(&format!("Invalid value for verbosity: {verbosity}\n"));
        return Err(Quit(1));
    }
    let percentile = values.int("percentile", log);
    let histogram = values.flag("histogram");
    // The log is set up by now as far as its verbosity goes, but prints everything until all of it is.
    match percentile? {
        percentile if !(0..=100).contains(&percentile) => {
            Err(log.fatal(format!("Invalid value for --percentile: {percentile}")))
        }
        0 if histogram => Err(log.fatal("--histogram cannot be used with --percentile=0")),
        percentile => {
            log.set_verbosity(verbosity);
            Ok((percentile as u32, histogram))
        }
    }
}
