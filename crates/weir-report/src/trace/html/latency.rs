//! How latencies are distributed: by stage, and by class.

use crate::page::{Table, distribution, figure};
use crate::plot::Series;
use maud::{Markup, html};
use weir_blocktrace::analysis::Device;
use weir_blocktrace::{Analysis, Class, Stage};
use weir_core::stats::Distribution;

/// Fewer I/Os than this make no curve.
const FEWEST: u64 = 5;

fn curve(name: String, look: usize, d: &Distribution) -> Series {
    distribution::curve_of(name, look, d.count(), Some(d.max_ns()), |q| d.quantile(q))
}

/// Two figures: the stages of all I/Os, and Q2C by class.
pub fn distributions(id: &str, analysis: &Analysis, device: &Device) -> Markup {
    let all = analysis.table.of_class(device.device, Class::All);
    let stages = [
        (Stage::Q2C, 5),
        (Stage::D2C, 0),
        (Stage::I2D, 1),
        (Stage::Q2G, 2),
        (Stage::G2D, 3),
        (Stage::M2D, 4),
    ];
    let by_stage = stages.into_iter().filter(|(stage, _)| all.stage(*stage).count() >= FEWEST);
    let by_stage: Vec<Series> =
        by_stage.map(|(stage, look)| curve(stage.name().to_string(), look, all.stage(stage))).collect();
    let classes = [
        (Class::Read, 0),
        (Class::Write, 1),
        (Class::SyncWrite, 2),
        (Class::Metadata, 3),
        (Class::Discard, 4),
        (Class::Flush, 5),
    ];
    let cells = classes.map(|(class, look)| (class, look, analysis.table.of_class(device.device, class)));
    let by_class: Vec<Series> = cells
        .iter()
        .filter(|(_, _, cell)| cell.stage(Stage::Q2C).count() >= FEWEST)
        .map(|(class, look, cell)| curve(class.words(), *look, cell.stage(Stage::Q2C)))
        .collect();
    let tail = "Each further nine to the right is ten times rarer. Dotted: fewer than three I/Os lie beyond.";
    let title = "How long each stage took";
    let stages = (!by_stage.is_empty())
        .then(|| distribution::of_series(&format!("{id}-stages"), title, tail, by_stage));
    let title = "How long I/Os took from queue to completion";
    let finding = "By class. A write that a process waits for is in “write” and in “sync write”.";
    let classes = (by_class.len() > 1)
        .then(|| distribution::of_series(&format!("{id}-classes"), title, finding, by_class));
    html! { @for plot in stages.iter().chain(&classes) { (figure(plot, &Table::default())) } }
}
