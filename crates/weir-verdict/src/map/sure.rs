//! How sure a line of a map is: by the drift between start and end, by what the model misses, and by what limited the load.

use serde::{Deserialize, Serialize};

use weir_core::units::significant;

/// Off by no more: sure.
const SURE: f64 = 0.1;
/// Off by no more: roughly. Beyond, a limiter set by it would be wrong by a factor that its user can feel.
const ROUGHLY: f64 = 0.3;

/// How far a line is to be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sure {
    /// Repeats and model agree within a tenth.
    Sure,
    /// Within three tenths, or a lower bound.
    Roughly,
    /// Further off, or not measured.
    DoNotUse,
}

impl Sure {
    /// The word in reports.
    pub fn name(self) -> &'static str {
        match self {
            Sure::Sure => "sure",
            Sure::Roughly => "roughly",
            Sure::DoNotUse => "do not use",
        }
    }
}

/// A degree and the figures behind it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HowSure {
    /// The degree.
    pub sure: Sure,
    /// The figures, as a sentence without its full stop.
    pub why: String,
}

impl HowSure {
    /// By nothing but a reason.
    pub fn of(sure: Sure, why: impl Into<String>) -> HowSure {
        HowSure { sure, why: why.into() }
    }

    /// By a share that something is off, absent where it was not measured. `what` is the difference, as in `… is 3.1 %`.
    pub fn by(off: Option<f64>, what: &str) -> HowSure {
        let Some(off) = off else { return HowSure::of(Sure::Roughly, format!("{what} was not measured")) };
        let sure = match off {
            off if off <= SURE => Sure::Sure,
            off if off <= ROUGHLY => Sure::Roughly,
            _ => Sure::DoNotUse,
        };
        HowSure::of(sure, format!("{what} is {} %", significant(off * 100.0)))
    }

    /// Both hold: the worse degree, both reasons.
    #[must_use]
    pub fn and(self, other: HowSure) -> HowSure {
        HowSure { sure: self.sure.max(other.sure), why: format!("{}; {}", self.why, other.why) }
    }
}
