//! Two database runs side by side, by the same intervals and rules as other runs.

use serde_json::{Value, json};

use super::derive::derive;
use super::oltp_result::OltpResult;
use super::record::OltpRecord;
use super::{Kind, text};
use weir_core::result::Record;
use weir_core::result::comparison::{self, Comparison, Figures};
use weir_core::result::difference::{self, Difference};
use weir_core::result::record::Note;
use weir_core::result::series::{self, Series};

/// Kinds that are compared. Each further one would widen the intervals of all (Holm), and a transaction holds its
/// statements.
const KINDS: [Kind; 2] = [Kind::Transaction, Kind::Commit];
/// Notes of a run that cast doubt on any comparison with it.
const DOUBTS: [&str; 8] =
    ["server-error", "ended-early", "never-settled", "regimes", "unsteady", "stall", "client-cpu", "retries"];

/// Compares B with A, each a record with what it holds. `seed` drives the resamples: the same seed gives the same
/// intervals.
pub fn compare(
    (a, raw_a): (&Record, &OltpRecord),
    (b, raw_b): (&Record, &OltpRecord),
    seed: u64,
) -> Comparison {
    let (result_a, result_b) = (derive(a, raw_a), derive(b, raw_b));
    let pairs = KINDS.iter().filter_map(|kind| {
        let of = |raw: &OltpRecord, result: &OltpResult| figures(raw, result, *kind);
        Some((kind.name(), of(raw_a, &result_a)?, of(raw_b, &result_b)?))
    });
    let name = |raw: &OltpRecord| raw.script_path.clone().unwrap_or_else(|| raw.spec.script.to_string());
    let job = comparison::job(name(raw_a), name(raw_b), pairs, seed);
    let workload = difference::between(&workload(raw_a), &workload(raw_b), &["seed"]);
    let mut warnings = warnings(raw_a, raw_b, &workload);
    for (name, result) in [("A", &result_a), ("B", &result_b)] {
        let doubts = result.notes.iter().filter(|note| DOUBTS.contains(&note.key.as_str()));
        warnings.extend(doubts.map(|n| Note { key: n.key.clone(), text: format!("{name}: {}", n.text) }));
    }
    let differences = conditions(a, raw_a, b, raw_b);
    Comparison::of([a, b], vec![job], workload, differences, warnings)
}

fn figures(raw: &OltpRecord, result: &OltpResult, kind: Kind) -> Option<Figures> {
    let of = match kind {
        Kind::Transaction => &result.transactions,
        statement => result.statements.get(&statement)?,
    };
    let ns = |quantile: weir_core::stats::Quantile| quantile.ns().map(|ns| ns as f64);
    (of.count > 0).then(|| Figures {
        throughput: Some(of.per_second),
        p50: ns(of.latency.p50),
        p99: ns(of.latency.p99),
        series: Series::of_intervals(&raw.intervals, kind),
    })
}

fn workload(raw: &OltpRecord) -> Value {
    json!({ "workload": raw.spec, "script": raw.script_path })
}

/// Kernel, device and settings of the machine, and the server.
fn conditions(a: &Record, raw_a: &OltpRecord, b: &Record, raw_b: &OltpRecord) -> Vec<Difference> {
    let server = |raw: &OltpRecord| {
        let server = &raw.server;
        json!({
            "version": server.version, "tls": server.tls, "places": server.places, "variables": server.variables,
            "others": server.others,
        })
    };
    let all = |record: &Record, raw: &OltpRecord| comparison::conditions(record, ("server", server(raw)));
    difference::between(&all(a, raw_a), &all(b, raw_b), &difference::VOLATILE)
}

fn warnings(a: &OltpRecord, b: &OltpRecord, workload: &[Difference]) -> Vec<Note> {
    let mut warnings = comparison::workload_warnings(workload);
    let mut warn = |key: &str, text: String| warnings.push(Note { key: key.to_string(), text });
    if a.server.dialect != b.server.dialect {
        let names = [a, b].map(|raw| text::family(&raw.server));
        warn("servers-differ", format!("different servers: {} (A) and {} (B)", names[0], names[1]));
    }
    if a.spec.rate.is_some() || b.spec.rate.is_some() {
        let text = "the requested rate set the throughput; compare the latencies";
        warn("open-loop", text.to_string());
    }
    if [a, b].iter().any(|raw| series::whole(&raw.intervals).len() < weir_core::stats::bootstrap::UNITS_MIN) {
        warn("few-intervals", comparison::FEW_INTERVALS.to_string());
    }
    warnings
}
