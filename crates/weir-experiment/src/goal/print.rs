//! Goals as people write them.

use std::fmt;

use crate::goal::{Bound, Goal, Limit};
use crate::measures::Metric;

/// A figure's value in its unit, in as many digits as it takes to read the same value back.
fn exact(metric: &Metric, value: f64) -> String {
    match metric {
        Metric::Bulk | Metric::Device => {
            in_unit(value, &[(1e9, "GB/s"), (1e6, "MB/s"), (1e3, "KB/s"), (1.0, "B/s")])
        }
        metric if metric.is_latency() => in_unit(value, &[(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")]),
        _ => value.to_string(),
    }
}

/// In the largest unit of which it is a whole number.
fn in_unit(value: f64, units: &[(f64, &str)]) -> String {
    let unit = units.iter().find(|(factor, _)| value % factor == 0.0).or(units.last());
    unit.map_or_else(|| value.to_string(), |(factor, name)| format!("{}{name}", value / factor))
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = self.weights.iter().any(|(metric, _)| self.more_is_better(metric));
        f.write_str(if more { "max " } else { "min " })?;
        for (place, (metric, weight)) in self.weights.iter().enumerate() {
            let with_the_first = self.more_is_better(metric) == more;
            f.write_str(match (place, with_the_first) {
                (0, true) => "",
                (0, false) => "-",
                (_, true) => " + ",
                (_, false) => " - ",
            })?;
            match self.weights.len() {
                1 => write!(f, "{metric}")?,
                _ => write!(f, "{weight}*{metric}")?,
            }
        }
        for (place, bound) in self.bounds.iter().enumerate() {
            write!(f, " {} {bound}", if place == 0 { "with" } else { "and" })?;
        }
        for (metric, share) in &self.guardrails {
            write!(f, " keep {metric} within {}%", percent(*share))?;
        }
        Ok(())
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.metric, if self.at_most { "<=" } else { ">=" })?;
        match self.limit {
            Limit::Value(limit) => f.write_str(&exact(&self.metric, limit)),
            Limit::Share { share, of } => write!(f, "{}% of {of}", percent(share)),
        }
    }
}

/// A share in percent, without the dust of floating point.
pub fn percent(share: f64) -> f64 {
    (share * 1e8).round() / 1e6
}
