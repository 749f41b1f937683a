//! Axes: which range they cover, where their ticks lie, and where on the drawing a value goes.

use super::unit::Unit;

/// What a logarithmic axis can show.
const LOG_RANGE: std::ops::RangeInclusive<f64> = 1e-12..=1e24;

/// Share of a [`Scale::LogOrZero`] axis that lies below the smallest decade, for zero.
const ROOM_FOR_ZERO: f64 = 0.1;

/// How values become distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By their logarithm, ticks at 1, 2 and 5.
    Log,
    /// By their logarithm, ticks at powers of two (depth, threads).
    Log2,
    /// By their logarithm, with a place for zero at the foot: a collapse to nothing must be seen.
    LogOrZero,
    /// Shares of operations q in 0..1 by -log10(1-q): each nine takes the same room.
    Nines,
}

/// An axis before it knows its values.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What is shown, without the unit.
    pub title: String,
    /// What the numbers mean.
    pub unit: Unit,
    /// How values become distances.
    pub scale: Scale,
    /// Values that must lie on it whatever the data are.
    pub include: Vec<f64>,
    /// End exactly where the data end instead of at a round value.
    pub tight: bool,
}

impl Axis {
    /// A y axis: ends at round values; linear ones start at zero.
    pub fn y(title: impl Into<String>, unit: Unit, scale: Scale) -> Axis {
        let include = if scale == Scale::Linear { vec![0.0] } else { Vec::new() };
        Axis { title: title.into(), unit, scale, include, tight: false }
    }

    /// An x axis: ends where the data end.
    pub fn x(title: impl Into<String>, unit: Unit, scale: Scale) -> Axis {
        Axis { title: title.into(), unit, scale, include: Vec::new(), tight: true }
    }

    /// The line that names the axis and its unit.
    pub fn caption(&self, largest: f64) -> String {
        let unit = self.unit.caption(largest);
        let scale = match self.scale {
            Scale::Log | Scale::LogOrZero | Scale::Log2 => "log scale",
            Scale::Linear | Scale::Nines => "",
        };
        let detail: Vec<&str> = [unit.as_str(), scale].into_iter().filter(|s| !s.is_empty()).collect();
        if detail.is_empty() { self.title.clone() } else { format!("{} ({})", self.title, detail.join(", ")) }
    }

    /// The range that shows all `values`; those a logarithm cannot show are left out.
    pub fn range(&self, values: impl Iterator<Item = f64>) -> (f64, f64) {
        // A logarithmic axis has a tick for each decade.
        let usable = |v: &f64| v.is_finite() && (!self.is_log() || LOG_RANGE.contains(v));
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.chain(self.include.iter().copied()).filter(usable) {
            low = low.min(value);
            high = high.max(value);
        }
        match self.scale {
            _ if low > high => (if self.is_log() { 1.0 } else { 0.0 }, 10.0),
            Scale::Nines => (0.0, high.clamp(0.9, 1.0 - 1e-12)),
            Scale::Linear => self.linear_range(low, high),
            Scale::Log | Scale::LogOrZero | Scale::Log2 => self.log_range(low, high),
        }
    }

    fn linear_range(&self, low: f64, high: f64) -> (f64, f64) {
        let high = if high > low { high } else { low + low.abs().max(1.0) };
        if self.tight {
            return (low, high);
        }
        let step = linear_step(low, high, 5);
        ((low / step).floor() * step, (high / step - 1e-9).ceil() * step)
    }

    fn log_range(&self, low: f64, high: f64) -> (f64, f64) {
        if self.scale == Scale::Log2 {
            return if high > low { (low, high) } else { (low / 2.0, high * 2.0) };
        }
        if self.tight && high > low * 1.5 {
            return (low, high);
        }
        let (low, high) = (round_down(low), round_up(high));
        if high >= low * 4.9 { (low, high) } else { (round_down(low * 0.99), round_up(high * 1.01)) }
    }

    fn is_log(&self) -> bool {
        matches!(self.scale, Scale::Log | Scale::LogOrZero | Scale::Log2)
    }
}

/// The largest of 1, 2, 5 × 10ⁿ that is not above `value`.
fn round_down(value: f64) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    let fits = |m: &f64| m * decade <= value * (1.0 + 1e-9);
    [5.0, 2.0, 1.0].into_iter().find(fits).unwrap_or(0.5) * decade
}

/// The smallest of 1, 2, 5 × 10ⁿ that is not below `value`.
fn round_up(value: f64) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    let fits = |m: &f64| m * decade >= value * (1.0 - 1e-9);
    [1.0, 2.0, 5.0, 10.0].into_iter().find(fits).unwrap_or(10.0) * decade
}

/// A step of 1, 2 or 5 × 10ⁿ that cuts the range into about `pieces`.
fn linear_step(low: f64, high: f64, pieces: usize) -> f64 {
    round_up((high - low) / pieces.max(1) as f64)
}

/// Ticks of a linear axis: multiples of a round step, at most `most` (but at least two where the range allows).
pub fn linear_ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let span_is_usable = (high - low).is_finite() && high > low;
    if !span_is_usable {
        return vec![low];
    }
    let mut step = linear_step(low, high, most.max(2));
    loop {
        let first = (low / step - 1e-9).ceil();
        let count = ((high / step + 1e-9).floor() - first) as usize + 1;
        if count <= most.max(2) {
            // Adding zero turns -0 into 0.
            return (0..count).map(|i| (first + i as f64) * step + 0.0).collect();
        }
        step = round_up(step * 1.5);
    }
}

/// Candidate sets of ticks for a logarithmic axis, densest first.
fn log_candidates(low: f64, high: f64, scale: Scale) -> Vec<Vec<f64>> {
    let within = |v: &f64| *v >= low * (1.0 - 1e-9) && *v <= high * (1.0 + 1e-9);
    let powers = |base: f64, every: i32| -> Vec<f64> {
        let first = (low.ln() / base.ln()).floor() as i32;
        let last = (high.ln() / base.ln()).ceil() as i32;
        (first..=last).filter(|e| e % every == 0).map(|e| base.powi(e)).filter(within).collect()
    };
    if scale == Scale::Log2 {
        return vec![powers(2.0, 1), powers(2.0, 2), powers(2.0, 3), powers(2.0, 4)];
    }
    let first = low.log10().floor() as i32;
    let last = high.log10().ceil() as i32;
    let fine =
        (first..=last).flat_map(|e| [1.0, 2.0, 5.0].map(|m| m * 10f64.powi(e))).filter(within).collect();
    let mut sets = vec![fine];
    sets.extend((1..=6).map(|every| powers(10.0, every)));
    sets
}

/// An axis with its range, laid out between two places on the drawing.
#[derive(Debug, Clone)]
pub struct Placed {
    /// The axis.
    pub axis: Axis,
    /// Smallest value on it (of the logarithmic part, where zero has its own place).
    pub low: f64,
    /// Largest value on it.
    pub high: f64,
    /// Where `low` lies, in drawing units.
    pub start: f64,
    /// Where `high` lies.
    pub end: f64,
}

impl Placed {
    /// Where a value lies; those outside the range go to its edge.
    pub fn at(&self, value: f64) -> f64 {
        self.start + (self.end - self.start) * self.share(value)
    }

    fn share(&self, value: f64) -> f64 {
        let log = |v: f64| (v / self.low).ln() / (self.high / self.low).ln();
        let nines = |q: f64| -(1.0 - q.min(1.0 - 1e-12)).log10();
        let share = match self.axis.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log | Scale::Log2 => log(value),
            Scale::LogOrZero if value < self.low => 0.0,
            Scale::LogOrZero => ROOM_FOR_ZERO + (1.0 - ROOM_FOR_ZERO) * log(value),
            Scale::Nines => nines(value) / nines(self.high),
        };
        if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) }
    }

    /// Ticks with their texts, the densest set for which `fits` says that the texts have room.
    pub fn ticks(&self, fits: impl Fn(&[(f64, String)]) -> bool) -> Vec<(f64, String)> {
        let labelled = |values: Vec<f64>| -> Vec<(f64, String)> {
            values.into_iter().map(|v| (v, self.axis.unit.tick(v, self.high))).collect()
        };
        let candidates = match self.axis.scale {
            Scale::Linear => (2..=8).rev().map(|n| linear_ticks(self.low, self.high, n)).collect(),
            Scale::Nines => self.nines_candidates(),
            scale => log_candidates(self.low, self.high, scale),
        };
        let mut chosen = labelled(vec![self.low, self.high]);
        for candidate in candidates.into_iter().filter(|c| c.len() >= 2) {
            let ticks = labelled(candidate);
            if fits(&ticks) {
                chosen = ticks;
                break;
            }
        }
        if self.axis.scale == Scale::LogOrZero {
            chosen.insert(0, (0.0, "0".to_string()));
        }
        chosen
    }

    fn nines_candidates(&self) -> Vec<Vec<f64>> {
        let nines = -(1.0 - self.high).log10();
        let whole: Vec<f64> = (1..=12).map(f64::from).filter(|n| *n <= nines + 1e-6).collect();
        let share = |n: &f64| 1.0 - 10f64.powf(-n);
        let with = |head: &[f64], every: usize| -> Vec<f64> {
            head.iter().copied().chain(whole.iter().step_by(every).map(share)).collect()
        };
        vec![with(&[0.0, 0.5], 1), with(&[0.0], 1), with(&[0.0], 2), with(&[0.0], 3)]
    }

    /// Values at which a fainter line helps to read a logarithmic axis: 2…9 in each decade, if there is room.
    pub fn minor(&self) -> Vec<f64> {
        if !matches!(self.axis.scale, Scale::Log | Scale::LogOrZero) {
            return Vec::new();
        }
        let decades = (self.high / self.low).log10();
        if (self.end - self.start).abs() / decades.max(0.1) < 45.0 {
            return Vec::new();
        }
        let first = self.low.log10().floor() as i32;
        let last = self.high.log10().ceil() as i32;
        (first..=last)
            .flat_map(|e| (2..10).map(move |m| f64::from(m) * 10f64.powi(e)))
            .filter(|v| *v > self.low && *v < self.high)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn placed(scale: Scale, unit: Unit, values: &[f64]) -> Placed {
        let axis = Axis::y("x", unit, scale);
        let (low, high) = axis.range(values.iter().copied());
        Placed { axis, low, high, start: 300.0, end: 0.0 }
    }

    #[test]
    fn ticks_are_round_and_named() {
        let texts = |p: Placed| p.ticks(|_| true).into_iter().map(|t| t.1).collect::<Vec<_>>().join(" | ");
        for (scale, unit, values, want) in [
            (Scale::Linear, Unit::Iops, &[0.0, 740.0][..], "0 | 200 | 400 | 600 | 800"),
            (
                Scale::Log,
                Unit::Latency,
                &[90e3, 3e6],
                "50 µs | 100 µs | 200 µs | 500 µs | 1 ms | 2 ms | 5 ms",
            ),
            (Scale::Log2, Unit::Count("deep"), &[1.0, 16.0], "1 | 2 | 4 | 8 | 16"),
            (Scale::LogOrZero, Unit::Iops, &[0.0, 3.0, 80.0], "0 | 2 | 5 | 10 | 20 | 50 | 100"),
            (Scale::Nines, Unit::Quantile, &[0.0, 0.9995], "0 % | 50 % | 90 % | 99 % | 99.9 %"),
        ] {
            assert_eq!(texts(placed(scale, unit, values)), want);
        }
    }

    proptest! {
        #[test]
        fn every_axis_shows_its_data_between_ordered_distinct_ticks(
            a in 1e-3f64..1e12, factor in 1.0f64..1e9, most in 2usize..9, which in 0usize..4,
        ) {
            let scale = [Scale::Linear, Scale::Log, Scale::Log2, Scale::LogOrZero][which];
            let p = placed(scale, Unit::Latency, &[a, a * factor]);
            prop_assert!(p.low <= a * 1.000_001 && p.high >= a * factor * 0.999_999, "{p:?}");
            prop_assert!(p.low < p.high);
            let ticks = p.ticks(|ticks| ticks.len() <= most);
            prop_assert!(ticks.len() >= 2 && ticks.len() <= most + 2, "{ticks:?}");
            for pair in ticks.windows(2) {
                prop_assert!(pair[0].0 < pair[1].0 && p.at(pair[0].0) > p.at(pair[1].0), "{ticks:?}");
                prop_assert!(pair[0].1 != pair[1].1, "two ticks read alike: {ticks:?}");
            }
            prop_assert!(ticks.iter().all(|t| (0.0..=300.0).contains(&p.at(t.0))));
        }

        #[test]
        fn linear_ticks_are_multiples_of_a_round_step(low in -1e6f64..1e6, span in 1e-3f64..1e9, most in 2usize..12) {
            let ticks = linear_ticks(low, low + span, most);
            prop_assert!(!ticks.is_empty() && ticks.len() <= most);
            if let [first, second, ..] = ticks[..] {
                let step = second - first;
                let leading = step / 10f64.powf(step.log10().floor());
                let round = [1.0, 2.0, 5.0, 10.0].iter().any(|m| (leading - m).abs() < 1e-6 * m.max(1.0));
                prop_assert!(round || span < 1e-2 || step < low.abs() * 1e-9, "step {step} of {ticks:?}");
            }
        }
    }
}
