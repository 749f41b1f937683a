//! Bulk throughput: what backups, scans and checkpoints can expect.

use crate::doctor::{Finding, Measurement, Statement, Topic};
use crate::notes::StepKind;
use crate::view::{View, throughput_of};
use weir_core::units::megabytes_per_second;

/// States both directions; writing the test file stands in where blocks were not overwritten.
pub fn judge(view: &View) -> Option<Finding> {
    let of = |wanted: StepKind| view.find(|kind, _| kind == wanted);
    let read = of(StepKind::SequentialRead);
    let write = of(StepKind::SequentialWrite).or_else(|| of(StepKind::Layout));
    let measured: Vec<(&str, &Measurement)> =
        [read.map(|m| ("reads", m)), write.map(|m| ("writes", m))].into_iter().flatten().collect();
    let (_, first) = measured.first()?;
    let figures: Vec<String> = measured
        .iter()
        .map(|(word, m)| format!("{word} {}", megabytes_per_second(m.bytes_per_second)))
        .collect();
    let text = format!("Sequential {}, in blocks of {} with O_DIRECT.", figures.join(", "), first.block);
    let evidence = measured.iter().map(|(_, m)| throughput_of(m)).collect();
    let statements = vec![Statement::new(text, evidence)];
    Some(Finding { topic: Topic::Sequential, grade: None, summary: figures.join(", "), statements })
}
