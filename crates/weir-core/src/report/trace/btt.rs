//! btt's sections and names, with right numbers.

use crate::trace::Analysis;

/// The report.
pub fn report(_analysis: &Analysis) -> String {
    String::new()
}
