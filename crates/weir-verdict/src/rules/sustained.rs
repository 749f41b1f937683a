//! How long writes keep their rate, who limits them, and what that means for a database.

use crate::doctor::{Evidence, Finding, Grade, Headline, Measurement, Statement, Topic};
use crate::rules::headline::worst;
use crate::sustained::fall::LONG;
use crate::sustained::{Endurance, Figure, Kind, LimitUnit, Pressure, Sure, Sustained};
use crate::view::{View, fact, limit, percent, time};
use weir_core::target::{CounterSource, DeviceCounters};
use weir_core::units::{Bytes, Nanos, grouped, megabytes_per_second, per_second, significant};

/// How near a limit that can be read lies to a rate that it explains.
const NEAR: std::ops::RangeInclusive<f64> = 0.80..=1.25;
/// The page whose writes are counted, and the load whose time is told.
const PAGE: f64 = 16384.0;
const LOAD: f64 = 100e9;
/// A sustained rate of less than this share of the burst is poor: whoever sizes by the burst gets half or less.
const POOR: f64 = 0.5;

/// One finding for each kind of writes.
pub fn findings(view: &View, sustained: &Sustained) -> Vec<Finding> {
    sustained.pressures.iter().map(|one| finding(view, sustained, one)).collect()
}

/// What limits each kind of writes, in a sentence each.
pub fn headline(sustained: &Sustained, findings: &[Finding], ended_early: Option<&str>) -> Headline {
    if sustained.pressures.is_empty() {
        let text = "Too little was measured for a verdict.".to_string();
        return Headline { grade: Grade::Unknown, text };
    }
    let mut text = String::new();
    for (one, finding) in sustained.pressures.iter().zip(findings) {
        let what = if one.pressure == Pressure::Small { "Small writes" } else { "Bulk writes" };
        text.push_str(&format!("{what}: {}. ", finding.summary));
    }
    text.push_str(
        &ended_early.map_or(String::new(), |why| format!("It ended early ({why}), so this is incomplete.")),
    );
    Headline { grade: worst(findings), text: text.trim_end().to_string() }
}

fn finding(view: &View, sustained: &Sustained, one: &Endurance) -> Finding {
    let Some(m) = view.measurements.iter().find(|m| m.id == one.measurement) else {
        return Finding {
            topic: Topic::Sustained,
            grade: None,
            summary: String::new(),
            statements: Vec::new(),
        };
    };
    let mut statements = vec![first(one, m)];
    statements.extend(refill(view, one));
    statements.extend(unit(view, one));
    statements.extend(whose(view, sustained, one));
    statements.extend(meaning(one, m));
    let is_short = (m.iops.intervals as usize) < LONG.intervals_min();
    let grade = match one.burst.filter(|burst| burst.value > 0.0) {
        Some(burst) if one.sustained.value < POOR * burst.value => Grade::Poor,
        Some(_) => Grade::Fair,
        None if is_short => Grade::Unknown,
        None => Grade::Good,
    };
    if grade == Grade::Unknown {
        let text = format!("That is too short to tell: no fall shows within {}.", time(one.elapsed_ns));
        statements.push(Statement::new(text, Vec::new()));
    }
    Finding { topic: Topic::Sustained, grade: Some(grade), summary: summary(one), statements }
}

/// A rate in the words of what is limited.
fn rate(value: f64, unit: Option<LimitUnit>) -> String {
    match unit {
        Some(LimitUnit::Bytes) => megabytes_per_second(value),
        _ => format!("{} writes/s", per_second(value)),
    }
}

fn amount(value: f64, unit: Option<LimitUnit>) -> String {
    match unit {
        Some(LimitUnit::Bytes) => limit(Bytes(value.max(0.0) as u64)),
        _ => format!("{} operations", grouped(three_digits(value))),
    }
}

fn three_digits(value: f64) -> u64 {
    let step = 10f64.powi((value.max(1.0).log10().floor() as i32 - 2).max(0));
    ((value / step).round() * step).max(0.0) as u64
}

/// Bulk writes are told in bytes, whatever limits them.
fn shown(one: &Endurance, figure: Figure) -> String {
    match (one.pressure, one.unit) {
        (Pressure::Bulk, None) => megabytes_per_second(figure.value * one.block.0 as f64),
        (_, unit) => rate(figure.value, unit),
    }
}

fn summary(one: &Endurance) -> String {
    let low = shown(one, one.sustained);
    let lasted = one.burst_ns.map(time);
    match (one.kind, one.burst) {
        (Kind::TokenBucket, Some(burst)) => {
            let sure = if one.sure == Sure::Certain { "certain" } else { "likely" };
            let high = shown(one, burst);
            match lasted {
                Some(lasted) => format!("{high} for {lasted}, then {low} (a token bucket, {sure})"),
                None => format!("{low}, and {high} after an idle time (a token bucket, {sure})"),
            }
        }
        (Kind::WriteCache, Some(burst)) => format!(
            "{} until {} are written, then {low} (a write cache, likely)",
            shown(one, burst),
            limit(one.written)
        ),
        (Kind::Fell, Some(burst)) => {
            format!("{} for {}, then {low} (unexplained)", shown(one, burst), lasted.unwrap_or_default())
        }
        _ => format!("{low}, steady for {}", time(one.elapsed_ns)),
    }
}

fn writes(one: &Endurance) -> String {
    let order = if one.pressure == Pressure::Small { "Random" } else { "Sequential" };
    format!("{order} writes of {}", one.block)
}

fn evidence(
    m: &Measurement,
    name: &str,
    text: String,
    figure: Figure,
    in_unit: impl Fn(f64) -> String,
) -> Evidence {
    let interval =
        (figure.high > figure.low).then(|| format!("[{}, {}]", in_unit(figure.low), in_unit(figure.high)));
    Evidence { source: m.id.clone(), figure: format!("{name} {text}"), n: m.latency.n, interval }
}

/// What the rate did.
fn first(one: &Endurance, m: &Measurement) -> Statement {
    let of = |name: &str, figure: Figure| {
        evidence(m, name, shown(one, figure), figure, |value| shown(one, Figure { value, ..figure }))
    };
    let mut found = vec![of("sustained", one.sustained)];
    found.extend(one.burst.map(|burst| of("burst", burst)));
    found.extend(one.credit.map(|credit| {
        evidence(m, "credit", amount(credit.value, one.unit), credit, |v| amount(v, one.unit))
    }));
    let (what, low) = (writes(one), shown(one, one.sustained));
    let credit = one.credit.map_or(String::new(), |credit| amount(credit.value, one.unit));
    let ran = match (one.burst, one.burst_ns) {
        (Some(burst), Some(ns)) => {
            format!("{what} ran at {} for {}, then at {low}", shown(one, burst), time(ns))
        }
        _ => format!("{what} ran at {low} for {}", time(one.elapsed_ns)),
    };
    let latency = one
        .p50_ns
        .filter(|(before, after)| *before > 0 && *after > *before / 5 * 6)
        .map_or(String::new(), |(before, after)| {
            format!(" The median latency rose from {} to {}.", time(before), time(after))
        });
    let text = match one.kind {
        Kind::TokenBucket if one.burst_ns.is_some() => {
            format!(
                "{ran}: the credit of a token bucket was spent. It held {credit} when weir began.{latency}"
            )
        }
        Kind::TokenBucket => format!(
            "{ran}, and faster after an idle time: a token bucket without credit when the writes began. Writing the \
             test file had spent {credit}."
        ),
        Kind::WriteCache => format!(
            "{ran}: {} were written by then, and a faster part of the device was full.{latency}",
            limit(one.written)
        ),
        Kind::Fell => format!("{ran}. What followed fits neither a token bucket nor a write cache.{latency}"),
        Kind::Steady => format!(
            "{ran} and did not slow down ({} written). A credit that lasts longer than this does not show.",
            limit(one.written)
        ),
    };
    Statement::new(text, found)
}

fn measured<'a>(view: &View<'a>, one: &Endurance, suffix: &str) -> Option<&'a Measurement> {
    let id = format!("{}{suffix}", one.measurement);
    view.measurements.iter().find(|m| m.id == id)
}

/// What came back while idle.
fn refill(view: &View, one: &Endurance) -> Option<Statement> {
    let m = measured(view, one, "-again")?;
    let idle = time(one.idle_ns);
    let found = match (one.kind, one.refill) {
        (Kind::TokenBucket, Some(refill)) => {
            let each = match one.unit {
                Some(LimitUnit::Bytes) => megabytes_per_second(refill.value),
                _ => format!("{} operations/s", per_second(refill.value)),
            };
            let ends = if one.refilled_whole {
                format!("or more: {idle} filled it up")
            } else if one.sure == Sure::Certain {
                "which is the sustained rate, as in a token bucket".to_string()
            } else {
                format!("{} of the sustained rate", percent(refill.value / one.sustained.value))
            };
            let text = format!(
                "{idle} idle brought back {}: it refills at {each}, {ends}.",
                amount(refill.value * one.idle_ns as f64 / 1e9, one.unit)
            );
            Statement::new(text, vec![evidence(m, "refill", each.clone(), refill, |v| rate(v, one.unit))])
        }
        (Kind::WriteCache, _) => Statement::new(
            format!("{idle} idle brought nothing back, and reads stayed fast: so it is no token bucket."),
            vec![fact(&m.id, format!("{} writes/s", per_second(m.iops.mean)))],
        ),
        (Kind::Fell, _) => Statement::new(
            format!(
                "After {idle} idle the writes ran at {} writes/s: other load on the device, a bucket that refills by \
                 other rules, or a cache that does.",
                per_second(m.iops.mean)
            ),
            vec![fact(&m.id, format!("{} writes/s", per_second(m.iops.mean)))],
        ),
        _ => return None,
    };
    Some(found)
}

/// Which of the two limits it is.
fn unit(view: &View, one: &Endurance) -> Option<Statement> {
    let unit = one.unit?;
    let m = measured(view, one, "-other")?;
    let (counts, not) = match unit {
        LimitUnit::Operations => ("operations", "bytes"),
        LimitUnit::Bytes => ("bytes", "operations"),
    };
    let reads = match one.reads_limited {
        Some(true) => " Reads are limited, too.",
        Some(false) => " Reads are not limited.",
        None => "",
    };
    let text = match one.kind {
        Kind::Steady => format!(
            "The rate is even, and writes of {} show that {counts} are limited, not {not}: more like a limit than a device.",
            m.block
        ),
        _ => format!("Writes of {} show that the limit counts {counts}, not {not}.{reads}", m.block),
    };
    Some(Statement::new(text, vec![fact(&m.id, format!("{} writes/s", per_second(m.iops.mean)))]))
}

/// Who sets the limit, where that can be read.
fn whose(view: &View, sustained: &Sustained, one: &Endurance) -> Option<Statement> {
    let by_cgroup = cgroup(view, one);
    if one.kind == Kind::Steady {
        return by_cgroup;
    }
    by_cgroup
        .or_else(|| sustained.counters.iter().find_map(amazon))
        .or_else(|| sustained.counters.iter().find_map(temperature))
        .or_else(|| unreadable(view, sustained))
}

fn cgroup(view: &View, one: &Endurance) -> Option<Statement> {
    let block = one.block.0 as f64;
    let operations =
        |figure: Figure| figure.value / if one.unit == Some(LimitUnit::Bytes) { block } else { 1.0 };
    for throttle in &view.target()?.throttles {
        for (key, per_operation) in [("wiops", 1.0), ("wbps", block)] {
            let Some(limit) = throttle.limits.get(key) else { continue };
            for (figure, which) in [(Some(one.sustained), "sustained"), (one.burst, "burst")] {
                let Some(figure) = figure else { continue };
                if !NEAR.contains(&(operations(figure) * per_operation / *limit as f64)) {
                    continue;
                }
                let shown = if key == "wiops" {
                    format!("{} writes/s", grouped(*limit))
                } else {
                    megabytes_per_second(*limit as f64)
                };
                let text = format!(
                    "When weir began, the cgroup {} limited {} to {shown}: this is the {which} rate.",
                    throttle.cgroup, throttle.device
                );
                return Some(Statement::new(
                    text,
                    vec![fact(format!("cgroup {} {key}", throttle.cgroup), grouped(*limit))],
                ));
            }
        }
    }
    None
}

/// Amazon's volumes count the time in which they or the instance were asked for more than they may give.
fn amazon(counters: &DeviceCounters) -> Option<Statement> {
    if counters.source != CounterSource::AmazonEbs {
        return None;
    }
    const NAMES: [(&str, &str); 4] = [
        ("volume_iops_exceeded_us", "the volume's IOPS"),
        ("volume_throughput_exceeded_us", "the volume's throughput"),
        ("instance_iops_exceeded_us", "the instance's IOPS"),
        ("instance_throughput_exceeded_us", "the instance's throughput"),
    ];
    let over = |(name, words): &(&'static str, &'static str)| {
        let us = counters.values.get(*name).copied().filter(|us| *us >= 100_000)?;
        Some((us, format!("{words} ({})", Nanos(us.saturating_mul(1000)))))
    };
    let mut found: Vec<(u64, String)> = NAMES.iter().filter_map(over).collect();
    if found.is_empty() {
        return None;
    }
    found.sort_by_key(|(us, _)| std::cmp::Reverse(*us));
    let words: Vec<String> = found.into_iter().map(|(_, words)| words).collect();
    let text =
        format!("Amazon's own counters say what was exceeded, and for how long: {}.", words.join(", "));
    Some(Statement::new(text, vec![fact(format!("{} NVMe log page 0xD0", counters.device), "exceeded")]))
}

fn temperature(counters: &DeviceCounters) -> Option<Statement> {
    let of = |name: &str| counters.values.get(name).copied().unwrap_or(0);
    let slowed_s = of("thermal_throttle_light_s") + of("thermal_throttle_heavy_s");
    if counters.source != CounterSource::NvmeSmart || slowed_s == 0 {
        return None;
    }
    let text = format!(
        "{} says that it slowed itself down for {slowed_s} s because of its temperature: better cooling may help.",
        counters.device
    );
    Some(Statement::new(text, vec![fact(format!("{} SMART log", counters.device), format!("{slowed_s} s"))]))
}

fn unreadable(view: &View, sustained: &Sustained) -> Option<Statement> {
    let target = view.target()?;
    let device = target.stack.iter().find(|layer| Some(&layer.name) == target.device.as_ref())?;
    let read = if sustained.counters.is_empty() {
        "no counter of a provider can be read here"
    } else {
        "the device's own counters did not move"
    };
    let where_to = match device.bus.as_deref() {
        Some("virtio" | "xen" | "nvme" | "scsi") => "; the provider's or hypervisor's settings tell",
        _ => "",
    };
    let text = format!(
        "Who limits {} is not known: no cgroup's limit is near these rates, and {read}{where_to}.",
        device.name
    );
    Some(Statement::new(
        text,
        vec![fact(&device.name, device.bus.clone().unwrap_or_else(|| "no bus".to_string()))],
    ))
}

/// What a database gets.
fn meaning(one: &Endurance, m: &Measurement) -> Option<Statement> {
    let burst = one.burst?;
    // How many pages a second operations smaller than a page stand for is known where operations are what is limited.
    if one.unit.is_none() && (one.block.0 as f64) < PAGE {
        return None;
    }
    let pages = |figure: Figure| match (one.unit, one.pressure) {
        (Some(LimitUnit::Bytes), _) => figure.value / PAGE,
        (None, Pressure::Bulk) => figure.value * one.block.0 as f64 / PAGE,
        _ => figure.value,
    };
    let (high, low) = (pages(burst), pages(one.sustained));
    if low <= 0.0 || high <= 0.0 {
        return None;
    }
    let load = |rate: f64| Nanos((LOAD / PAGE / rate * 1e9) as u64);
    let mut text = format!(
        "A database writes {} pages of 16 KiB a second at first and {} a second for good: a load of 100 GB takes \
         about {}, not {}.",
        per_second(high),
        per_second(low),
        load(low),
        load(high)
    );
    if let (Some(credit), Some(refill)) = (one.credit, one.refill.filter(|refill| refill.value > 0.0)) {
        text.push_str(&format!(
            " Hardly any credit is left now: what was there comes back in {} without writes. A minute at the burst \
             rate needs {} min of refill.",
            Nanos((credit.value / refill.value * 1e9) as u64),
            significant((burst.value - one.sustained.value).max(0.0) / refill.value)
        ));
    }
    Some(Statement::new(text, vec![fact(&m.id, format!("{} pages/s", per_second(low)))]))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::doctor::DoctorReport;
    use crate::from_record;
    use crate::sustained::made::Device;
    use crate::synthetic::{Lab, bucket_of_operations};

    fn text(report: &DoctorReport) -> String {
        let all = report.findings.iter().flat_map(|finding| &finding.statements);
        all.map(|statement| statement.text.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_bucket_is_told_with_its_figures_and_what_they_mean() {
        let report = from_record(&bucket_of_operations().record(Vec::new())).unwrap();
        assert_eq!(report.headline.grade, Grade::Poor, "{}", report.headline.text);
        assert!(report.headline.text.contains("then 1,00"), "{}", report.headline.text);
        let text = text(&report);
        for part in [
            "the credit of a token bucket was spent",
            "which is the sustained rate, as in a token bucket",
            "counts operations, not bytes. Reads are limited, too.",
            "pages of 16 KiB a second at first",
            "comes back in",
            "Who limits vdb is not known",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        for statement in report.findings.iter().flat_map(|finding| &finding.statements) {
            assert!(!statement.evidence.is_empty(), "no evidence: {}", statement.text);
        }
    }

    #[test]
    fn who_limits_is_named_where_it_can_be_read() {
        let mut by_cgroup = bucket_of_operations();
        by_cgroup.throttle("wiops", 4000);
        let report = from_record(&by_cgroup.record(Vec::new())).unwrap();
        assert!(text(&report).contains("the cgroup / limited vdb to 4,000 writes/s: this is the burst rate"));
        let mut amazon = bucket_of_operations();
        let counters = |us: u64| DeviceCounters {
            device: "nvme1n1".into(),
            source: CounterSource::AmazonEbs,
            values: BTreeMap::from([("volume_iops_exceeded_us".to_string(), us)]),
        };
        let notes = amazon.notes.sustained.as_mut().unwrap();
        (notes.counters_before, notes.counters_after) =
            (vec![counters(7_000_000)], vec![counters(38_000_000)]);
        let report = from_record(&amazon.record(Vec::new())).unwrap();
        assert!(text(&report).contains("the volume's IOPS (31.0 s)"), "{}", text(&report));
    }

    #[test]
    fn steady_storage_is_good_and_a_longer_run_is_the_next_step() {
        let mut lab = Lab::new();
        lab.sustained(Device::Plain(20_000.0), 100);
        let report = from_record(&lab.record(Vec::new())).unwrap();
        assert_eq!(report.headline.grade, Grade::Good, "{}", report.headline.text);
        assert!(report.headline.text.contains("steady for 25"), "{}", report.headline.text);
        assert_eq!(report.next.iter().filter(|next| next.command.contains("--sustained=2h")).count(), 1);
        // Ended after seconds: no fall shows in so few intervals.
        let mut lab = Lab::new();
        lab.sustained(Device::Plain(20_000.0), 8);
        let short = from_record(&lab.record(Vec::new())).unwrap();
        assert_eq!(short.headline.grade, Grade::Unknown, "{}", short.headline.text);
        assert!(text(&short).contains("too short to tell"), "{}", text(&short));
    }

    /// Small writes that fell are poor, whatever bulk writes would have done.
    #[test]
    fn what_could_not_be_judged_outweighs_nothing() {
        let mut record = bucket_of_operations().record(Vec::new());
        let bulk = |step: &serde_json::Value| step["id"] == "sustained-bulk";
        let at = record.extra["steps"].as_array().unwrap().iter().position(bulk).unwrap();
        // The user ended it there.
        record.jobs.truncate(at + 1);
        record.jobs[at].intervals.truncate(8);
        let report = from_record(&record).unwrap();
        let grades: Vec<_> = report.findings.iter().map(|finding| finding.grade).collect();
        assert_eq!(grades, [Some(Grade::Poor), Some(Grade::Unknown)]);
        assert_eq!(report.headline.grade, Grade::Poor, "{}", report.headline.text);
    }

    /// The test file is written before, and its rate falls where a credit runs out.
    #[test]
    fn a_sustained_examination_is_not_the_next_step_of_itself() {
        let mut record = bucket_of_operations().record(Vec::new());
        record.jobs[0].job.read_percent = 0.0;
        for (index, interval) in record.jobs[0].intervals.iter_mut().enumerate() {
            let done = interval.classes.values_mut().next().unwrap();
            done.count = if index < 6 { 1000 } else { 250 + index as u64 % 2 };
        }
        let report = from_record(&record).unwrap();
        assert!(report.measurements[0].fall.is_some());
        assert!(report.next.is_empty(), "{:?}", report.next);
    }

    #[test]
    fn the_general_examination_says_that_a_rate_fell_and_names_the_next_step() {
        use crate::notes::StepKind;
        let fallen = |low: f64| {
            let mut lab = Lab::new();
            lab.curve(StepKind::WriteDepth, &[(16, 4000.0)]);
            let mut record = lab.record(Vec::new());
            record.jobs[0].job.read_percent = 0.0;
            for (index, interval) in record.jobs[0].intervals.iter_mut().enumerate() {
                let done = interval.classes.values_mut().next().unwrap();
                done.count = if index < 6 { 1000 } else { low as u64 + index as u64 % 2 };
            }
            from_record(&record).unwrap()
        };
        let report = fallen(250.0);
        assert!(text(&report).contains("the rate fell after"), "{}", text(&report));
        assert_eq!(report.next[0].command, "weir doctor --sustained /srv/db");
        assert!(!text(&fallen(990.0)).contains("fell"));
    }
}
