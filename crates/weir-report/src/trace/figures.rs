//! The figures that all renderings share.

use serde::Serialize;

use weir_blocktrace::analysis::{CellKey, Device, Parts};
use weir_blocktrace::{Analysis, Cell, Class, SizeClass, Stage};
use weir_core::stats::Distribution;
use weir_core::target::DeviceNumber;

/// A stage, or another latency.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// Durations.
    pub count: u64,
    pub min_ns: u64,
    pub mean_ns: f64,
    pub p50_ns: u64,
    pub p90_ns: u64,
    pub p99_ns: u64,
    pub p99_9_ns: u64,
    pub max_ns: u64,
    /// Share of Q2C, 0 to 1; only for stages that do not overlap others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

impl Figures {
    pub fn of(distribution: &Distribution, share: Option<f64>) -> Figures {
        let [p50_ns, p90_ns, p99_ns, p99_9_ns] = distribution.quantiles([0.5, 0.9, 0.99, 0.999]);
        Figures {
            count: distribution.count(),
            min_ns: distribution.min_ns(),
            mean_ns: distribution.mean_ns(),
            p50_ns,
            p90_ns,
            p99_ns,
            p99_9_ns,
            max_ns: distribution.max_ns(),
            share,
        }
    }
}

/// One kind of I/O of one device: a class, or a class and a size.
pub struct Kind {
    pub cell: Cell,
    pub parts: Parts,
}

impl Kind {
    /// A class over all sizes.
    pub fn class(analysis: &Analysis, device: &Device, class: Class) -> Kind {
        Kind {
            cell: analysis.table.of_class(device.device, class),
            parts: device.parts_of(|key| key.classes.has(class)),
        }
    }

    /// What stands for a device: all that moves data, or where nothing does, flushes and commands.
    pub fn whole(analysis: &Analysis, device: &Device) -> Kind {
        let data = Kind::class(analysis, device, Class::All);
        if data.cell.ios > 0 {
            return data;
        }
        let cell = analysis.table.sum(|key| key.device == device.device);
        Kind { cell, parts: device.parts_of(|_| true) }
    }

    /// A class of one size.
    pub fn sized(analysis: &Analysis, device: &Device, class: Class, size: SizeClass) -> Kind {
        let takes = |key: &CellKey| key.classes.has(class) && key.size == size;
        let number = device.device;
        let in_table = |key: &weir_blocktrace::Key| {
            key.device == number && takes(&CellKey { classes: key.classes, size: key.size })
        };
        Kind { cell: analysis.table.sum(in_table), parts: device.parts_of(takes) }
    }

    /// The stages that occur, in the order of an I/O's life, the totals last.
    pub fn stages(&self) -> Vec<(Stage, Figures)> {
        let occur = Stage::ALL.into_iter().filter(|stage| !self.cell.stage(*stage).is_empty());
        occur.map(|stage| (stage, self.stage(stage))).collect()
    }

    /// Those of them that have a row: of the sums of others only the whole, from Q, or from G where no Q was seen.
    pub fn shown(&self) -> impl Iterator<Item = Stage> + '_ {
        let occurs = move |stage| !self.cell.stage(stage).is_empty();
        Stage::ALL.into_iter().filter(move |stage| match stage {
            Stage::Q2D | Stage::G2DAll => false,
            Stage::G2C if occurs(Stage::Q2C) => false,
            stage => occurs(*stage),
        })
    }

    /// One stage.
    pub fn stage(&self, stage: Stage) -> Figures {
        let whole = (stage == Stage::Q2C && self.parts.total_ns() > 0).then_some(1.0);
        Figures::of(self.cell.stage(stage), self.parts.share(stage).or(whole))
    }
}

/// The classes that occur on a device, in the order of reports.
pub fn classes(analysis: &Analysis, device: DeviceNumber) -> Vec<Class> {
    let occurs = |class: &Class| {
        analysis
            .table
            .cells()
            .any(|(key, cell)| key.device == device && key.classes.has(*class) && cell.ios > 0)
    };
    Class::ALL.into_iter().filter(occurs).collect()
}

/// The sizes of a class on a device, ascending.
pub fn sizes(analysis: &Analysis, device: DeviceNumber, class: Class) -> Vec<SizeClass> {
    let mut sizes: Vec<SizeClass> = analysis
        .table
        .cells()
        .filter(|(key, cell)| key.device == device && key.classes.has(class) && cell.ios > 0)
        .map(|(key, _)| key.size)
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// A stage's name in JSON and CSV: `q2c`; `g2d` where nothing was inserted, `g2d_all` inserted or not.
pub fn stage_key(stage: Stage) -> &'static str {
    match stage {
        Stage::Q2G => "q2g",
        Stage::G2I => "g2i",
        Stage::G2D => "g2d",
        Stage::I2D => "i2d",
        Stage::Q2M => "q2m",
        Stage::M2D => "m2d",
        Stage::D2C => "d2c",
        Stage::Q2C => "q2c",
        Stage::Q2D => "q2d",
        Stage::G2DAll => "g2d_all",
        Stage::G2C => "g2c",
    }
}

/// Events per second over a span; 0 without a span.
pub fn rate(count: u64, span_ns: u64) -> f64 {
    if span_ns == 0 { 0.0 } else { count as f64 * 1e9 / span_ns as f64 }
}

/// A part of a whole, 0 to 1; 0 without a whole.
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
