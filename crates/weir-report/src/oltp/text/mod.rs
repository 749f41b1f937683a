//! A run of transactions: server and conditions, rates and latencies, where a transaction's time goes, warnings.

pub mod limits;

use crate::bench::text::{TOO_FEW, quantile, steady_words, to_the_second};
use crate::conditions::text as conditions;
use crate::layout::{labelled, labelled_command, shell, table};
use limits::limits;
use weir_core::result::Record;
use weir_core::stats::Quantile;
use weir_core::units::{Nanos, grouped, per_second, significant};
use weir_oltp::durability::State;
use weir_oltp::oltp_result::{KindResult, OltpResult};
use weir_oltp::{Kind, text};

/// A share of time below this is not shown: it would print as none.
const SHOWN_SHARE: f64 = 0.0005;

/// The report of a run of transactions.
pub fn oltp(result: &OltpResult, record: &Record) -> String {
    let mut out = format!(
        "weir {} {}, started {}\n",
        record.weir_version,
        record.kind,
        to_the_second(&record.started_at)
    );
    labelled(&mut out, "server", &server(result));
    if result.durability.state != State::Unknown {
        labelled(&mut out, "durable", &result.durability.sentence);
    }
    conditions::append(&mut out, &record.conditions);
    labelled(&mut out, "workload", &text::describe(&result.spec, result.script_path.as_deref()));
    labelled(&mut out, "measured", &measured(result));
    out.push('\n');
    table(&mut out, &transactions(result), 1);
    out.push('\n');
    if !result.statements.is_empty() {
        table(&mut out, &statements(result), 1);
        out.push('\n');
    }
    labelled(&mut out, "queries", &queries(result));
    labelled(&mut out, "errors", &errors(result));
    late(&mut out, result);
    labelled(&mut out, "cpu", &cpu(result));
    labelled(&mut out, "checks", &checks(result));
    for note in &result.notes {
        labelled(&mut out, "warning", &note.text);
    }
    if let Some(verdict) = &result.verdict {
        out.push_str(&format!("\n{}\n", limits(verdict)));
    }
    if let Some(path) = &result.record_path {
        labelled(&mut out, "record", path);
        labelled_command(
            &mut out,
            "show",
            &shell(&["weir", "results", "show", &record.id].map(String::from)),
        );
    }
    labelled_command(&mut out, "again", &shell(&record.command));
    out
}

/// The server, how it is reached, and what of its settings decides what a commit costs.
fn server(result: &OltpResult) -> String {
    let server = &result.server;
    let encrypted = if server.tls { ", encrypted" } else { "" };
    let mut parts = vec![format!("{} at {}{encrypted}", text::family(server), server.places.join(", "))];
    let shown = [
        "innodb_flush_log_at_trx_commit",
        "sync_binlog",
        "innodb_buffer_pool_size",
        "innodb_io_capacity",
        "synchronous_commit",
        "fsync",
        "shared_buffers",
        "max_wal_size",
    ];
    let is_shown = |name: &&str| {
        // Without a binary log its syncs do not matter.
        *name != "sync_binlog"
            || server.variables.get("log_bin").is_some_and(|on| on.eq_ignore_ascii_case("on"))
    };
    let value = |name: &str| {
        let value = server.variables.get(name)?;
        let bytes = value.parse().ok().filter(|n: &u64| name.ends_with("_size") && *n >= 1 << 20);
        Some(format!("{name} {}", bytes.map_or(value.clone(), |n| weir_core::units::Bytes(n).to_string())))
    };
    parts.extend(shown.into_iter().filter(is_shown).filter_map(value));
    parts.extend(server.differences().into_iter().map(|other| format!("at {other}")));
    parts.join(", ")
}

fn measured(result: &OltpResult) -> String {
    let asked = match (result.spec.duration.0, result.spec.transactions) {
        (0, 0) => String::new(),
        (0, transactions) => format!(" ({} transactions asked for)", grouped(transactions)),
        (duration, _) if result.elapsed_ns + duration / 20 < duration => format!(" of {}", Nanos(duration)),
        _ => String::new(),
    };
    format!("{}{asked}", Nanos(result.elapsed_ns))
}

fn transactions(result: &OltpResult) -> Vec<Vec<String>> {
    let head = ["", "count", "/s", "mean", "p50", "p95", "p99", "p99.9", "max"];
    let of = &result.transactions;
    let mut row = vec!["transactions".to_string(), grouped(of.count), per_second(of.per_second)];
    row.extend(latencies(of, [of.latency.p50, of.latency.p95, of.latency.p99, of.latency.p99_9]));
    vec![head.map(String::from).to_vec(), row]
}

/// Mean, percentiles and longest; nothing finished has none.
fn latencies<const N: usize>(of: &KindResult, percentiles: [Quantile; N]) -> Vec<String> {
    if of.count == 0 {
        return vec!["-".to_string(); N + 2];
    }
    let mut cells = vec![Nanos(of.latency.mean_ns.round() as u64).to_string()];
    cells.extend(percentiles.map(quantile));
    cells.push(Nanos(of.latency.max_ns).to_string());
    cells
}

/// Kinds of statements in the order of a transaction, then what is left of its time.
fn statements(result: &OltpResult) -> Vec<Vec<String>> {
    let of_time = if result.rest_time_share.is_some() { "of a transaction" } else { "of statements" };
    let head = ["statement", "a transaction", "errors", "mean", "p50", "p95", "p99", "max", of_time];
    let mut rows = vec![head.map(String::from).to_vec()];
    let transactions = result.transactions.count.max(1) as f64;
    for (kind, of) in &result.statements {
        let each = of.count as f64 / transactions;
        let each = if (each - each.round()).abs() < 0.005 { format!("{each:.0}") } else { significant(each) };
        let mut row = vec![kind.name().to_string(), each, grouped(of.errors)];
        row.extend(latencies(of, [of.latency.p50, of.latency.p95, of.latency.p99]));
        row.push(share(of.time_share));
        rows.push(row);
    }
    if let Some(rest) = result.rest_time_share.filter(|share| *share >= SHOWN_SHARE) {
        let mut row = vec!["outside them".to_string()];
        row.extend(vec![String::new(); head.len() - 2]);
        row.push(share(rest));
        rows.push(row);
    }
    rows
}

fn share(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn queries(result: &OltpResult) -> String {
    let queries = result.queries;
    let count = |n: u64| grouped(n);
    format!(
        "{} ({}/s): {} reading, {} writing, {} other",
        count(queries.total()),
        per_second(queries.per_second),
        count(queries.read),
        count(queries.write),
        count(queries.other)
    )
}

fn errors(result: &OltpResult) -> String {
    let errors = &result.errors;
    let mut parts = Vec::new();
    if !errors.ignored.is_empty() {
        let each: Vec<String> =
            errors.ignored.iter().map(|(code, n)| format!("{} × {code}", grouped(*n))).collect();
        parts.push(each.join(", "));
    }
    if errors.retried > 0 {
        parts.push(format!(
            "{} transactions ran again (time of all attempts counted)",
            grouped(errors.retried)
        ));
    }
    if errors.reconnects > 0 {
        parts.push(format!("{} connections made again", grouped(errors.reconnects)));
    }
    if parts.is_empty() { "none".to_string() } else { parts.join("; ") }
}

fn late(out: &mut String, result: &OltpResult) {
    let Some(late) = result.lateness else { return };
    let text = format!(
        "{:.1} % of {} transactions finished more than {} after their intended start; longest delay of a start {}",
        late.late_share * 100.0,
        grouped(late.intended),
        Nanos(late.late_after_ns),
        Nanos(late.start_delay_max_ns)
    );
    labelled(out, "late", &text);
}

fn cpu(result: &OltpResult) -> String {
    let cpu = result.cpu;
    let each = |ns: f64| Nanos(ns.round() as u64);
    let own = format!("a transaction costs the client {}", each(cpu.process_ns_per_operation));
    let (Some(share), Some(processors)) = (result.client_cpu_share, &result.processors) else { return own };
    format!(
        "{own} and this machine {} in all; client {:.0} % of it; {}",
        each(cpu.machine_ns_per_operation),
        share * 100.0,
        processors.words()
    )
}

/// The self-checks, each with its figure.
fn checks(result: &OltpResult) -> String {
    let mut parts = vec![steady_words(result.steady, result.lateness.is_some(), "rate")];
    let connections = result.connections;
    if let Some(busy) = connections.busy_share {
        parts.push(format!("connections in transactions {:.1} % of the time", busy * 100.0));
    }
    if connections.count > 1 {
        parts.push(format!(
            "{} to {} transactions a connection",
            grouped(connections.fewest),
            grouped(connections.most)
        ));
    }
    if let Some(stall) = result.stall.filter(|stall| stall.oldest_ns > 0) {
        parts.push(format!("oldest in flight at a tick {}", Nanos(stall.oldest_ns)));
    }
    parts.join("; ")
}

/// The run in a few words, for lists.
pub(crate) fn headline(result: &OltpResult) -> String {
    let of = &result.transactions;
    if of.count == 0 {
        return "nothing finished".to_string();
    }
    let tail = match quantile(of.latency.p99) {
        text if text == TOO_FEW => format!("mean {}", Nanos(of.latency.mean_ns.round() as u64)),
        text => format!("p99 {text}"),
    };
    let early = if result.ended_early.is_some() { ", ended early" } else { "" };
    let commit = result.statements.get(&Kind::Commit).and_then(|c| c.latency.p50.ns());
    let commit = commit.map_or(String::new(), |ns| format!(", commit {}", Nanos(ns)));
    format!("{} tps, {tail}{commit}{early}", per_second(of.per_second))
}
