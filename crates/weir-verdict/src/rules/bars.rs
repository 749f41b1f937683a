//! Bars the user stated: met, missed, or not measured.

use crate::doctor::{BarResult, Evidence, Measurement, Statement};
use crate::notes::{Bar, BarRule, StepKind, SyncPath};
use crate::rules::flood;
use crate::view::{View, latency_of, point_of, rate_of, throughput_of, time};
use weir_core::units::{Bytes, megabytes_per_second, per_second};

/// Holds every bar against what was measured.
pub fn judge(view: &View) -> Vec<BarResult> {
    view.notes.bars.iter().map(|bar| result(view, bar)).collect()
}

fn result(view: &View, bar: &Bar) -> BarResult {
    let Some((met, figure, evidence)) = hold(view, bar.rule) else {
        let why = match bar.rule {
            BarRule::FloodPercent(_) if view.flood.and_then(flood::worst).is_some() => {
                "nothing follows from this bulk writer"
            }
            _ => "too little was measured",
        };
        let text = format!("{} could not be judged: {why}.", bar.text);
        return BarResult {
            bar: bar.text.clone(),
            met: None,
            statement: Statement::new(text, Vec::new()),
            source: None,
        };
    };
    let text = format!("{} is {}: {figure}.", bar.text, if met { "met" } else { "missed" });
    BarResult {
        bar: bar.text.clone(),
        met: Some(met),
        statement: Statement::new(text, vec![evidence]),
        source: None,
    }
}

fn hold(view: &View, rule: BarRule) -> Option<(bool, String, Evidence)> {
    match rule {
        BarRule::CommitP99(at_most) => {
            let m = view.typical_commit()?;
            // With too few commits for a p99, a p95 above the bar decides as well.
            if let (None, Some(p95)) = (m.latency.p99_ns, m.latency.p95_ns.filter(|p95| *p95 > at_most.0)) {
                return Some((false, format!("even p95 {}", time(p95)), latency_of(m, "p95", p95)));
            }
            let p99 = m.latency.p99_ns?;
            Some((p99 <= at_most.0, format!("p99 {}", time(p99)), latency_of(m, "p99", p99)))
        }
        BarRule::CommitIops(at_least) => {
            let of = |block| view.commits(SyncPath::Buffered, Bytes(block), true);
            let m = of(16 << 10).or_else(|| of(4 << 10))?;
            let rate = m.iops.mean;
            Some((rate >= at_least, format!("{} commits/s", per_second(rate)), rate_of(m)))
        }
        BarRule::ReadIops(at_least) => curve(view, "read", at_least),
        BarRule::WriteIops(at_least) => curve(view, "write", at_least),
        BarRule::ReadRate(at_least) => bulk(view.find(|kind, _| kind == StepKind::SequentialRead)?, at_least),
        BarRule::WriteRate(at_least) => {
            let of = |wanted| view.find(|kind, _| kind == wanted);
            bulk(of(StepKind::SequentialWrite).or_else(|| of(StepKind::Layout))?, at_least)
        }
        BarRule::FloodPercent(at_least) => {
            let story = view.flood?;
            let worst = flood::worst(story).filter(|worst| !flood::is_unclear(story, worst))?;
            let share = flood::kept(&worst.flood, worst);
            let m = view.measurements.iter().find(|m| m.id == worst.flood.measurement)?;
            Some((
                share * 100.0 >= at_least,
                format!("{} kept", flood::left(&worst.flood, worst)),
                rate_of(m),
            ))
        }
    }
}

fn curve(view: &View, word: &str, at_least: f64) -> Option<(bool, String, Evidence)> {
    let curve = view.curve(word)?;
    let best = curve.points.iter().max_by(|a, b| a.iops.mean.total_cmp(&b.iops.mean))?;
    Some((best.iops.mean >= at_least, format!("{} IOPS", per_second(best.iops.mean)), point_of(best)))
}

fn bulk(m: &Measurement, at_least: Bytes) -> Option<(bool, String, Evidence)> {
    let rate = m.bytes_per_second;
    Some((rate >= at_least.0 as f64, megabytes_per_second(rate), throughput_of(m)))
}
