//! The report for people, at most 100 columns wide.

use crate::trace::Analysis;
use crate::units::grouped;

/// The report.
pub fn report(analysis: &Analysis) -> String {
    format!("{} events\n", grouped(analysis.events))
}
