//! A ratio that was estimated, with what is needed to cut an interval of any level from it.
//!
//! A few thousand resamples say nothing of what happens once in ten thousand times, which a correction for many
//! comparisons asks for. So the resamples are read up to `REACH` standard deviations only, and from there the
//! interval grows in proportion, as a normal distribution's would.

use serde::{Deserialize, Serialize};

use crate::stats::student::{normal_below, normal_quantile, student_beyond, student_quantile};

/// Level of one comparison alone: intervals of 95 %.
pub const ALPHA: f64 = 0.05;
/// How far out resamples are read: 1 % of them lie beyond on either side, 20 of 2,000.
const REACH: f64 = 2.326;

/// A ratio B / A with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RatioInterval {
    /// B / A.
    pub ratio: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl RatioInterval {
    /// Whether the data are compatible with no difference.
    pub fn covers_one(&self) -> bool {
        self.low <= 1.0 && 1.0 <= self.high
    }
}

/// A ratio and its uncertainty.
#[derive(Debug, Clone)]
pub struct Estimate {
    /// Logarithm of the ratio.
    pub(super) point: f64,
    /// Logarithms of resampled ratios, ascending; empty where the shape is a normal distribution's.
    pub(super) draws: Vec<f64>,
    /// Efron's z0: how far the median of the draws lies from the point, in standard deviations.
    pub(super) bias: f64,
    /// Efron's acceleration.
    pub(super) skew: f64,
    /// Standard deviations of the estimate for one of the draws, or in logarithms where there are none.
    pub(super) widen: f64,
    /// Degrees of freedom of Student's t.
    pub(super) freedom: f64,
}

impl Estimate {
    /// An estimate of which the draws come from `units` independent ones.
    pub fn expanded(point: f64, mut draws: Vec<f64>, units: f64) -> Estimate {
        draws.sort_by(f64::total_cmp);
        let units = units.max(2.0);
        let widen = (units / (units - 1.0)).sqrt();
        Estimate { point, draws, bias: 0.0, skew: 0.0, widen, freedom: units - 1.0 }
    }

    /// An estimate whose shape is not known, with its standard deviation.
    pub(super) fn normal(point: f64, deviation: f64, freedom: f64) -> Estimate {
        Estimate { point, draws: Vec::new(), bias: 0.0, skew: 0.0, widen: deviation, freedom }
    }

    /// Corrected for bias and, by the influence of each unit, for skewness.
    pub(super) fn corrected(mut self, influences: &[f64]) -> Estimate {
        let below = self.draws.partition_point(|draw| *draw < self.point);
        let upto = self.draws.partition_point(|draw| *draw <= self.point);
        let share = (below + upto) as f64 / (2 * self.draws.len().max(1)) as f64;
        self.bias = normal_quantile(share.clamp(0.05, 0.95));
        let power = |n: i32| influences.iter().map(|i| i.powi(n)).sum::<f64>();
        let spread = power(2).powf(1.5);
        self.skew = if spread > 0.0 { power(3) / (6.0 * spread) } else { 0.0 };
        self
    }

    /// The ratio.
    pub fn ratio(&self) -> f64 {
        self.point.exp()
    }

    /// The interval that leaves out the truth with chance `alpha`.
    pub fn interval(&self, alpha: f64) -> RatioInterval {
        let z = self.widen * student_quantile(alpha, self.freedom);
        // Only the spread of the resamples is used where they do not surround the point (a tail of few samples).
        let (low, high) = (self.end(-z).min(self.point), self.end(z).max(self.point));
        RatioInterval { ratio: self.point.exp(), low: low.exp(), high: high.exp() }
    }

    /// The least `alpha` whose interval excludes 1: 1 where none does.
    pub fn p(&self) -> f64 {
        let towards_one = if self.point > 0.0 { -1.0 } else { 1.0 };
        let reaches = |z: f64| self.end(towards_one * z) * towards_one >= 0.0;
        let (mut low, mut high) = (0.0, 1e6);
        if self.point == 0.0 || reaches(low) {
            return 1.0;
        }
        for _ in 0..80 {
            let middle = (low + high) / 2.0;
            if reaches(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        student_beyond(low / self.widen, self.freedom)
    }

    /// The smallest ratio above 1 that would have been told from 1 in four of five such experiments, at level `alpha`.
    pub fn detectable(&self, alpha: f64) -> f64 {
        let (low, high) = (self.end(-1.0), self.end(1.0));
        let z = student_quantile(alpha, self.freedom) + student_quantile(0.4, self.freedom);
        (self.widen * z * (high - low) / 2.0).exp()
    }

    /// The end of an interval `z` standard deviations of the draws away from the point.
    fn end(&self, z: f64) -> f64 {
        let near = z.clamp(-REACH, REACH);
        if near == 0.0 || self.draws.is_empty() {
            return self.point + z;
        }
        let turned = self.bias + (self.bias + near) / (1.0 - self.skew * (self.bias + near));
        self.point + (self.draw_at(normal_below(turned)) - self.point) * (z / near)
    }

    fn draw_at(&self, q: f64) -> f64 {
        let last = self.draws.len().saturating_sub(1);
        self.draws.get(((q * self.draws.len() as f64) as usize).min(last)).copied().unwrap_or(self.point)
    }
}
