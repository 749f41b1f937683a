//! Everything the doctor measured, in one table.

use super::plots::interval_text;
use super::row_anchor;
use crate::page::{Table, data_table, note};
use maud::{Markup, html};
use weir_core::units::{Nanos, grouped, per_second, significant};
use weir_verdict::doctor::{DoctorReport, Measurement};

/// The table, and what engines noticed.
pub fn html(report: &DoctorReport) -> Markup {
    const HEAD: [&str; 12] = [
        "step",
        "n",
        "a second",
        "95 % interval",
        "MB/s",
        "mean",
        "p50",
        "p95",
        "p99",
        "p99.9",
        "longest",
        "%util",
    ];
    let table = Table {
        head: HEAD.map(str::to_string).to_vec(),
        rows: report.measurements.iter().map(row).collect(),
        anchors: report.measurements.iter().map(|m| row_anchor(&m.id)).collect(),
        ..Table::default()
    };
    html! {
        (data_table(&table))
        @for Measurement { title, error, notes, .. } in &report.measurements {
            @if let Some(error) = error { (note(&format!("{title} ended with an I/O error"), error, true)) }
            @for remark in notes { (note(title, remark, false)) }
        }
    }
}

fn row(m: &Measurement) -> Vec<String> {
    let latency = |ns: Option<u64>| ns.map_or("too few".to_string(), |ns| Nanos(ns).to_string());
    let l = &m.latency;
    vec![
        m.title.clone(),
        grouped(l.n),
        per_second(m.iops.mean),
        interval_text(&m.iops),
        significant(m.bytes_per_second / 1e6),
        Nanos(l.mean_ns as u64).to_string(),
        latency(l.p50_ns),
        latency(l.p95_ns),
        latency(l.p99_ns),
        latency(l.p999_ns),
        Nanos(l.max_ns.max(m.oldest_ns_max)).to_string(),
        m.utilization.map_or("–".to_string(), |u| format!("{} %", significant(u * 100.0))),
    ]
}
