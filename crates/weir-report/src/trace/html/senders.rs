//! Processes and cgroups: who sent how much, and where its time went.

use super::{longest, mean, parts_named, quantile, time_bars, values};
use crate::page::{Table, data_table};
use crate::plot::{Stack, StackFigure, Unit};
use maud::{Markup, html};
use weir_blocktrace::Analysis;
use weir_blocktrace::analysis::{Direction, Sender};
use weir_core::units::grouped;

/// Bars drawn.
const BARS: usize = 8;
/// Rows of the table.
const ROWS: usize = 40;

/// Bars of the busiest processes, the table of more, and cgroups where there are any.
pub fn html(analysis: &Analysis) -> Markup {
    let processes = analysis.processes_by_name();
    let figure = StackFigure {
        id: "senders-share".to_string(),
        title: "Where their time went".to_string(),
        finding: finding(&processes),
        parts: parts_named(),
        stacks: processes.iter().take(BARS).map(stack).collect(),
    };
    let further = processes.len().saturating_sub(ROWS);
    html! {
        (time_bars(figure))
        (data_table(&table(&processes)))
        @if further > 0 { p { (further) " further processes sent less." } }
        @if !analysis.cgroups.is_empty() { h3 { "By cgroup" } (data_table(&table(&analysis.cgroups))) }
    }
}

fn bytes(sender: &Sender) -> u64 {
    sender.traffic.iter().map(|t| t.bytes).sum()
}

fn finding(processes: &[Sender]) -> String {
    let all: u64 = processes.iter().map(bytes).sum();
    let known = processes.iter().filter(|p| p.members > 0);
    let most = known.max_by_key(|p| bytes(p)).filter(|p| bytes(p) > 0);
    most.map_or(String::new(), |p| {
        let share = super::percent(bytes(p) as f64 / all as f64);
        format!(
            "{} sent {share} of the data. Buffered writes are sent by the kernel's own threads.",
            label(p)
        )
    })
}

/// `mysqld (12 threads)`, `dd, thread 4711`, `id 1234`; what was sent by nobody in particular, `(flushes)`, has no thread.
fn label(sender: &Sender) -> String {
    match (sender.name.as_str(), sender.members) {
        ("", _) => format!("id {}", sender.id),
        (name, 0) => name.to_string(),
        (name, 2..) => format!("{name} ({} threads)", sender.members),
        (name, _) => format!("{name}, thread {}", sender.id),
    }
}

fn stack(sender: &Sender) -> Stack {
    let mean = mean(&sender.q2c);
    let moved = Unit::Bytes.value(bytes(sender) as f64);
    Stack {
        label: label(sender),
        note: format!("{} I/Os, {moved}, mean Q2C {mean}", grouped(sender.pieces)),
        values: values(&sender.parts),
    }
}

fn table(senders: &[Sender]) -> Table {
    let head = ["", "I/Os", "read", "written", "Q2C mean", "p50", "p99", "max", "D2C p50", "errors"];
    let row = |sender: &Sender| {
        let moved = |d: Direction| Unit::Bytes.value(sender.traffic[d as usize].bytes as f64);
        let (q2c, d2c) = (&sender.q2c, &sender.d2c);
        vec![
            label(sender),
            grouped(sender.pieces),
            moved(Direction::Read),
            moved(Direction::Write),
            mean(q2c),
            quantile(q2c, 0.5),
            quantile(q2c, 0.99),
            longest(q2c),
            quantile(d2c, 0.5),
            grouped(sender.errors),
        ]
    };
    let rows: Vec<Vec<String>> = senders.iter().take(ROWS).map(row).collect();
    Table { head: head.map(str::to_string).to_vec(), rows, ..Table::default() }
}
