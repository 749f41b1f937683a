//! The page of a run of transactions.

mod limits;

use crate::bench::html::job::{self, Told};
use crate::bench::text::quantile;
use crate::conditions::under_which_conditions;
use crate::layout::shell;
use crate::page::distribution::{self, Sample};
use crate::page::timeline::Sort;
use crate::page::{
    Page, Table, Tile, data_table, date, facts_table, figure, headline, lede, merge, page, paragraph,
    remark_note, section, stacks, tiles, typed,
};
use crate::plot::{LOOKS, Stack, StackFigure};
use limits::limits;
use maud::{Markup, html};
use weir_core::result::Record;
use weir_core::units::{Nanos, grouped, per_second};
use weir_oltp::kind::Tally;
use weir_oltp::oltp_result::KindResult;
use weir_oltp::{Kind, OltpRecord, OltpResult, derive, text};

/// Notes that make figures doubtful rather than explain them.
const BAD: [&str; 4] = ["server-error", "ended-early", "no-transactions", "stall"];

/// Draws a run of transactions as one HTML document; `raw` is what `record` holds.
pub fn oltp(record: &Record, raw: &OltpRecord) -> String {
    let result = derive(record, raw);
    let workload = text::describe(&raw.spec, raw.script_path.as_deref());
    let title = format!("{} on {}", name(raw), text::family(&raw.server));
    let body = html! {
        (headline(&title))
        (lede(sentence(&result)))
        p.soft { (workload) }
        (tiles(&head(&result)))
        @for note in &result.notes { (remark_note(note, BAD.contains(&note.key.as_str()))) }
        (section("time", "Where a transaction's time goes", breakdown(&result)))
        @if let Some(verdict) = &result.verdict { (section("limits", "What limits it", limits(verdict))) }
        (section("measured", "What was measured", plots(raw, &result)))
        (section("checks", "Does it hold together?", facts_table(&checks(&result))))
        (section("server", "Server", facts_table(&server(raw, &result))))
        (under_which_conditions(record))
        (section("again", "How to run it again", again(record, raw)))
    };
    page(&Page {
        title: format!("weir {}: {title}", record.kind),
        kind: record.kind.clone(),
        date: date(&record.started_at),
        foot: format!("weir {} · record {}", record.weir_version, record.id),
        body,
    })
}

fn name(raw: &OltpRecord) -> String {
    raw.script_path.clone().unwrap_or_else(|| raw.spec.script.to_string())
}

/// The finding in one sentence.
fn sentence(result: &OltpResult) -> String {
    let of = &result.transactions;
    if of.count == 0 {
        return "Nothing finished while measuring.".to_string();
    }
    let half = of.latency.p50.ns().map_or("Too few finished to speak of a median".to_string(), |ns| {
        format!("Half of them finished within {}", Nanos(ns))
    });
    let tail = of.latency.p99.ns().map_or(String::new(), |ns| format!(", 99 % within {}", Nanos(ns)));
    let longest = Nanos(of.latency.max_ns);
    format!("{} transactions a second. {half}{tail}; the longest took {longest}.", per_second(of.per_second))
}

fn head(result: &OltpResult) -> Vec<Tile> {
    let of = &result.transactions;
    let tile = |name: &str, value: String, detail: String| Tile { name: name.to_string(), value, detail };
    let mut out = vec![
        tile("transactions a second", per_second(of.per_second), format!("n = {}", grouped(of.count))),
        tile("p99", quantile(of.latency.p99), format!("median {}", quantile(of.latency.p50))),
        tile(
            "longest",
            Nanos(of.latency.max_ns).to_string(),
            format!("p99.9 {}", quantile(of.latency.p99_9)),
        ),
        tile(
            "queries a second",
            per_second(result.queries.per_second),
            format!("{} in all", grouped(result.queries.total())),
        ),
    ];
    if let (Some(share), Some(processors)) = (result.client_cpu_share, &result.processors) {
        out.push(tile("client's share of CPU time", format!("{:.0} %", share * 100.0), processors.words()));
    }
    out
}

/// One whole that is a mean transaction, and the kinds with their figures.
fn breakdown(result: &OltpResult) -> Markup {
    if result.statements.is_empty() {
        return paragraph("No statement finished.");
    }
    let rest = result.rest_time_share;
    let mut parts: Vec<(String, usize)> = Vec::new();
    let mut values = Vec::new();
    for (place, (kind, of)) in by_share(result).into_iter().enumerate() {
        parts.push((kind.name().to_string(), place));
        values.push(of.time_share);
    }
    let others = 1.0 - values.iter().sum::<f64>() - rest.unwrap_or(0.0);
    parts.push(("all other statements".to_string(), parts.len()));
    values.push(others.max(0.0));
    if let Some(rest) = rest {
        parts.push(("outside statements".to_string(), parts.len()));
        values.push(rest);
    }
    let (whole, note) = match rest {
        Some(_) => ("a mean transaction", Nanos(result.transactions.latency.mean_ns as u64).to_string()),
        None => ("all statements", String::new()),
    };
    let largest = by_share(result)
        .first()
        .map_or(String::new(), |(kind, of)| format!("{:.0} % is {}.", of.time_share * 100.0, kind.name()));
    let stack = StackFigure {
        id: "breakdown".to_string(),
        title: "Shares of time".to_string(),
        finding: format!("{largest} A statement counts from the end of the one before to its whole answer."),
        parts,
        stacks: vec![Stack { label: whole.to_string(), note, values }],
    };
    html! { (stacks(&stack, &Table::default())) (data_table(&statements(result))) }
}

/// Kinds by their share of the time, largest first: as many as have a colour beside the rest and what is outside.
fn by_share(result: &OltpResult) -> Vec<(Kind, &KindResult)> {
    const PARTS: usize = LOOKS - 2;
    let mut all: Vec<(Kind, &KindResult)> = result.statements.iter().map(|(kind, of)| (*kind, of)).collect();
    all.sort_by(|a, b| b.1.time_share.total_cmp(&a.1.time_share));
    all.truncate(PARTS);
    all
}

fn statements(result: &OltpResult) -> Table {
    // A column of zeros would push the last one out of the page.
    let failed = result.transactions.errors > 0 || result.statements.values().any(|of| of.errors > 0);
    let mut head = vec!["", "count"];
    head.extend(failed.then_some("errors"));
    head.extend(["rows", "share", "mean", "p50", "p95", "p99", "p99.9", "longest"]);
    let row = |kind: Kind, of: &KindResult| {
        let mut row = vec![kind.name().to_string(), grouped(of.count)];
        row.extend(failed.then(|| grouped(of.errors)));
        row.extend([grouped(of.rows), format!("{:.1} %", of.time_share * 100.0)]);
        row.push(Nanos(of.latency.mean_ns.round() as u64).to_string());
        row.extend([of.latency.p50, of.latency.p95, of.latency.p99, of.latency.p99_9].map(quantile));
        row.push(Nanos(of.latency.max_ns).to_string());
        row
    };
    let mut rows = vec![row(Kind::Transaction, &result.transactions)];
    rows.extend(result.statements.iter().map(|(kind, of)| row(*kind, of)));
    Table { head: head.into_iter().map(String::from).collect(), rows, ..Table::default() }
}

/// Latencies of transactions, commits and the most frequent reading statement, then the course of transactions.
fn plots(raw: &OltpRecord, result: &OltpResult) -> Markup {
    let read = result.statements.iter().filter(|(kind, _)| kind.tally() == Some(Tally::Read));
    let read = read.max_by_key(|(_, of)| of.count).map(|(kind, _)| *kind);
    let shown = [Some(Kind::Transaction), Some(Kind::Commit), read];
    let samples: Vec<Sample<'_>> = shown
        .into_iter()
        .flatten()
        .filter_map(|kind| {
            let latency = &raw.kinds.get(&kind)?.latency;
            Some(Sample { name: kind.name().to_string(), look: kind.look(), latency })
        })
        .collect();
    let finding = "Each further nine to the right is ten times rarer. Dotted: fewer than three lie beyond, up to the \
                   longest one.";
    let plot = distribution::figure("latency", "How long they took", finding, &samples);
    let together = merge::together(raw.intervals.len(), 1);
    let told = Told { regimes: &result.regimes, stall: result.stall, together };
    let intervals = merge::merged(&raw.intervals, together);
    html! {
        (figure(&plot, &Table::default()))
        @if raw.intervals.len() >= 2 { (job::course("run", &intervals, &[], &[Kind::Transaction], &told)) }
    }
}

/// Self-checks, and what else was counted.
fn checks(result: &OltpResult) -> Vec<(String, String, String)> {
    let mut rows = Vec::new();
    let mut row = |name: &str, value: String, source: &str| {
        rows.push((name.to_string(), value, source.to_string()));
    };
    row(
        "steady state",
        job::steady(result.steady),
        "five rounds; range at most 20 % of the mean, slope at most 10 %",
    );
    row("warm-up", job::warmup(result.warmup), "MSER-5");
    let connections = result.connections;
    if let Some(busy) = connections.busy_share {
        row(
            "connections",
            format!("{:.1} % of their time in transactions", busy * 100.0),
            "near 100 % in a closed loop",
        );
    }
    let each = format!("{} to {}", grouped(connections.fewest), grouped(connections.most));
    row("transactions a connection", each, "warm-up included");
    let queries = result.queries;
    let counted = format!(
        "{} reading, {} writing, {} other",
        grouped(queries.read),
        grouped(queries.write),
        grouped(queries.other)
    );
    row("queries", counted, "as sysbench counts them");
    let ignored: Vec<String> =
        result.errors.ignored.iter().map(|(code, n)| format!("{} × {code}", grouped(*n))).collect();
    let borne = if ignored.is_empty() { "none".to_string() } else { ignored.join(", ") };
    row("errors borne", borne, "by the server's code");
    let again = format!("{} ({:.2} %)", grouped(result.errors.retried), result.errors.retried_share * 100.0);
    row("transactions that ran again", again, "their latency holds all attempts");
    row("connections made again", grouped(result.errors.reconnects), "");
    let own = Nanos(result.cpu.process_ns_per_operation.round() as u64);
    row("CPU of the client", format!("{own} a transaction"), "user and system");
    if result.cpu.machine_ns_per_operation > 0.0 {
        let all = Nanos(result.cpu.machine_ns_per_operation.round() as u64);
        row("CPU of the machine", format!("{all} a transaction"), "all processes and the kernel");
    }
    if let Some(late) = result.lateness {
        let (text, source) = job::lateness(&late);
        row("late", text, &source);
    }
    rows
}

fn server(raw: &OltpRecord, result: &OltpResult) -> Vec<(String, String, String)> {
    let server = &raw.server;
    let row = |name: &str, value: String| (name.to_string(), value, String::new());
    let mut rows = vec![
        row("version", server.version.clone()),
        row("at", server.places.join(", ")),
        row("encrypted", if server.tls { "yes" } else { "no" }.to_string()),
        row("commits", result.durability.sentence.clone()),
    ];
    rows.extend(server.variables.iter().map(|(name, value)| row(name, value.clone())));
    rows.extend(server.differences().into_iter().map(|other| row("unlike that", other)));
    rows
}

fn again(record: &Record, raw: &OltpRecord) -> Markup {
    html! {
        (typed(shell(&record.command)))
        @if let Ok(spec) = toml::to_string(&raw.spec) {
            details { summary { "The workload, all defaults filled in" } (typed(spec)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::stats::random::Random;
    use weir_oltp::samples;

    #[test]
    fn the_page_shows_rates_latencies_and_where_the_time_goes() {
        let raw = samples::raw(&mut Random::new(1), 8, 1.0);
        let page = oltp(&samples::record(&raw), &raw);
        assert!(page.starts_with(crate::page::OPENING));
        for part in [
            "read_write on MariaDB 10.11.14",
            "id=\"run-time\"",
            "id=\"run-heat-transaction\"",
            "id=\"breakdown\"",
            "outside statements",
            "point select",
            "innodb_buffer_pool_size",
            "3 × 1213",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(!page.contains("<script"));
        let empty = OltpRecord { kinds: Default::default(), intervals: Vec::new(), ..raw };
        assert!(oltp(&samples::record(&empty), &empty).contains("Nothing finished"));
    }
}
