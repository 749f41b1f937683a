//! Shares and distributions of stages by class.

use super::{largest, mean, parts_named, percent, quantile, time_bars, values};
use crate::page::{Table, data_table};
use crate::plot::{Stack, StackFigure};
use crate::trace::figures::Kind;
use maud::{Markup, html};
use weir_blocktrace::analysis::Device;
use weir_blocktrace::{Analysis, Class, Stage};
use weir_core::units::{Nanos, grouped};

/// One bar: the time of all I/Os of a class.
pub fn stack_of(analysis: &Analysis, device: &Device, class: Class, label: &str) -> Stack {
    let cell = analysis.table.of_class(device.device, class);
    let q2c = cell.stage(Stage::Q2C);
    Stack {
        label: label.to_string(),
        note: format!("{} I/Os, mean Q2C {}", grouped(cell.ios), mean(q2c)),
        values: values(&device.parts_of(|key| key.classes.has(class))),
    }
}

/// Classes of which there are any.
fn classes(analysis: &Analysis, device: &Device) -> Vec<Class> {
    let any = |class: &Class| analysis.table.of_class(device.device, *class).ios > 0;
    Class::ALL.into_iter().filter(any).collect()
}

/// Bars by class, and the table of all stages.
pub fn html(id: &str, analysis: &Analysis, device: &Device) -> Markup {
    let classes = classes(analysis, device);
    let parts = device.parts_of(|key| key.classes.has(Class::All));
    let finding = match largest(&parts) {
        Some((place, share)) => format!("{} of the time of all I/Os was spent {place}.", percent(share)),
        None => "No I/O with data is known from its beginning to its end.".to_string(),
    };
    let figure = StackFigure {
        id: format!("{id}-share"),
        title: "Where the time went".to_string(),
        finding: format!(
            "{finding} Each bar is all the time of a class between queue and completion; flushes are not in “all”. What \
             the letters stand for is said at the end of this page."
        ),
        parts: parts_named(),
        stacks: classes.iter().map(|class| stack_of(analysis, device, *class, &class.words())).collect(),
    };
    html! {
        (time_bars(figure))
        (data_table(&table(analysis, device, &classes)))
    }
}

fn table(analysis: &Analysis, device: &Device, classes: &[Class]) -> Table {
    let head = ["", "n", "min", "mean", "p50", "p90", "p99", "p99.9", "max", "share of Q2C"];
    let mut rows = Vec::new();
    for class in classes {
        let kind = Kind::class(analysis, device, *class);
        for stage in kind.shown() {
            let d = kind.cell.stage(stage);
            let mut row = vec![format!("{} {}", class.words(), stage.name()), grouped(d.count())];
            row.extend([Nanos(d.min_ns()).to_string(), mean(d)]);
            row.extend([0.5, 0.9, 0.99, 0.999].map(|q| quantile(d, q)));
            row.push(Nanos(d.max_ns()).to_string());
            row.push(kind.parts.share(stage).map_or(String::new(), percent));
            rows.push(row);
        }
    }
    Table { head: head.map(str::to_string).to_vec(), rows, ..Table::default() }
}
