//! sysbench's random numbers for keys and strings: the same distributions over the same rows, from weir's generator.
//!
//! The hot rows of a distribution lie together, as sysbench has them, and not scattered as those of weir's own
//! workloads: which pages of a table are hot is part of what a benchmark under sysbench's name measures.

use weir_core::workload::rng::Rng;

/// `--rand-type`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Shape {
    /// All alike.
    Uniform,
    /// The mean of `--rand-spec-iter` uniform numbers: a bell over the whole range.
    Gaussian,
    /// A share `--rand-spec-res` of the numbers in the `--rand-spec-pct` in the middle, the others bell-shaped.
    #[default]
    Special,
    /// Self-similar from the low end, by `--rand-pareto-h`.
    Pareto,
}

impl Shape {
    /// The shapes by sysbench's names.
    pub const ALL: [(&'static str, Shape); 4] = [
        ("uniform", Shape::Uniform),
        ("gaussian", Shape::Gaussian),
        ("special", Shape::Special),
        ("pareto", Shape::Pareto),
    ];

    /// The name of the option's value.
    pub fn name(self) -> &'static str {
        Shape::ALL.iter().find(|(_, shape)| *shape == self).map_or("", |(name, _)| name)
    }
}

/// The distributions as the options shape them. Ranges are closed and of 32 bits, as in sysbench.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Random {
    /// What scripts get that do not name a shape.
    pub shape: Shape,
    /// Uniform numbers whose mean makes the bell.
    pub iterations: u32,
    /// Width of the middle, in percent of the range.
    pub middle_percent: f64,
    /// Share of the numbers that fall there, in percent.
    pub middle_share: f64,
    /// ln h / ln (1-h).
    pub pareto_power: f64,
}

impl Default for Random {
    fn default() -> Self {
        Random {
            shape: Shape::Special,
            iterations: 12,
            middle_percent: 1.0,
            middle_share: 75.0,
            pareto_power: pareto_power(0.2),
        }
    }
}

/// The exponent that gives a share h of the range a share 1-h of the numbers.
pub fn pareto_power(h: f64) -> f64 {
    h.ln() / (1.0 - h).ln()
}

impl Random {
    /// A number of the shape asked for.
    #[inline]
    pub fn default_in(&self, from: u32, to: u32, rng: &mut Rng) -> u32 {
        self.shaped(self.shape, from, to, rng)
    }

    /// A number of a named shape.
    #[inline]
    pub fn shaped(&self, shape: Shape, from: u32, to: u32, rng: &mut Rng) -> u32 {
        match shape {
            Shape::Uniform => uniform(from, to, rng),
            Shape::Gaussian => above(from, self.bell(rng) * width(from, to)),
            Shape::Special => self.special(from, to, rng),
            Shape::Pareto => above(from, width(from, to) * rng.unit().powf(self.pareto_power)),
        }
    }

    /// The mean of some uniform numbers in `[0, 1)`.
    fn bell(&self, rng: &mut Rng) -> f64 {
        (0..self.iterations).map(|_| rng.unit()).sum::<f64>() / f64::from(self.iterations)
    }

    /// One draw decides where the number goes, and then where in the middle: sysbench stretches the range so that
    /// what lies beyond it is the share of the middle. The draws that reach the middle are the high ones, so it is
    /// filled from its upper part; that is sysbench's too.
    fn special(&self, from: u32, to: u32, rng: &mut Rng) -> u32 {
        let span = f64::from(to.wrapping_sub(from));
        let draw = rng.unit();
        if draw * span * 100.0 / (100.0 - self.middle_share) < span {
            return above(from, self.bell(rng) * span);
        }
        let middle = span * self.middle_percent / 100.0;
        above(from, draw * (middle + 1.0) + span / 2.0 - middle / 2.0)
    }
}

/// Numbers in a closed range; 2^32 for a range that is turned round, which wraps as in sysbench.
fn width(from: u32, to: u32) -> f64 {
    f64::from(to.wrapping_sub(from).wrapping_add(1))
}

fn above(from: u32, distance: f64) -> u32 {
    from.wrapping_add(distance as u32)
}

/// All numbers of a range alike.
#[inline]
pub fn uniform(from: u32, to: u32, rng: &mut Rng) -> u32 {
    above(from, rng.unit() * width(from, to))
}

/// Appends a text after a pattern: `#` becomes a digit, `@` a small letter, everything else stays.
pub fn text(pattern: &[u8], rng: &mut Rng, out: &mut Vec<u8>) {
    out.reserve(pattern.len());
    // One draw of 64 bits serves twelve characters, by multiplication: the high part is the character.
    let (mut bits, mut left) = (0, 0);
    for &byte in pattern {
        let (first, choices) = match byte {
            b'#' => (b'0', 10),
            b'@' => (b'a', 26),
            other => {
                out.push(other);
                continue;
            }
        };
        if left == 0 {
            (bits, left) = (rng.next_u64(), 12);
        }
        let product = u128::from(bits) * choices;
        out.push(first + (product >> 64) as u8);
        (bits, left) = (product as u64, left - 1);
    }
}

/// A sequence of 32-bit numbers without repetition: the n-th value of a permutation chosen by a seed (quadratic
/// residues modulo a prime that is 3 modulo 4; J. Preshing, "How to Generate a Sequence of Unique Random Integers",
/// 2012).
#[derive(Debug, Clone, Copy)]
pub struct Unique {
    start: u32,
    offset: u32,
}

/// The largest prime below 2^32.
const PRIME: u32 = 4_294_967_291;

impl Unique {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Unique {
        let mut rng = Rng::new(seed, 0x756e_6971);
        Unique { start: rng.next_u64() as u32, offset: rng.next_u64() as u32 }
    }

    /// Its n-th value; different for different n.
    pub fn nth(&self, n: u32) -> u32 {
        let index = self.start.wrapping_add(n);
        residue(residue(index).wrapping_add(self.offset) ^ 0x5bf0_3635)
    }
}

/// A bijection of 32 bits: squares are distinct in the lower half of the field, their negatives fill the upper one.
fn residue(x: u32) -> u32 {
    if x >= PRIME {
        return x;
    }
    let square = (u64::from(x) * u64::from(x) % u64::from(PRIME)) as u32;
    if x <= PRIME / 2 { square } else { PRIME - square }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const SAMPLES: usize = 100_000;

    fn share_in(shape: Shape, from: u32, to: u32, inside: impl Fn(u32) -> bool) -> f64 {
        let (random, mut rng) = (Random::default(), Rng::new(1, 1));
        let hits = (0..SAMPLES).filter(|_| inside(random.shaped(shape, from, to, &mut rng))).count();
        hits as f64 / SAMPLES as f64
    }

    #[test]
    fn shapes_put_their_shares_where_sysbench_does() {
        // (shape, from, to of the part looked at, its share; of the range 1..=10000)
        let cases = [
            (Shape::Uniform, 1, 2500, 0.25, 0.01),
            (Shape::Special, 4950, 5052, 0.75, 0.03),
            (Shape::Pareto, 1, 2000, 0.80, 0.01),
            // Twelve uniform numbers: a deviation of 1/12 of the range.
            (Shape::Gaussian, 4168, 5833, 0.68, 0.01),
        ];
        for (shape, from, to, expected, tolerance) in cases {
            let share = share_in(shape, 1, 10_000, |v| (from..=to).contains(&v));
            assert!((share - expected).abs() < tolerance, "{shape:?}: {share} in {from}..={to}");
            let inside = share_in(shape, 1, 10_000, |v| (1..=10_000).contains(&v));
            assert!((inside - 1.0).abs() < f64::EPSILON, "{shape:?} leaves its range");
        }
        assert!(share_in(Shape::Uniform, 7, 7, |v| v == 7) >= 1.0);
    }

    #[test]
    fn texts_follow_their_pattern() {
        let mut out = Vec::new();
        text(b"##-@@'#", &mut Rng::new(2, 2), &mut out);
        assert_eq!(out.len(), 7);
        assert!(out[0].is_ascii_digit() && out[1].is_ascii_digit() && out[6].is_ascii_digit());
        assert!(out[3].is_ascii_lowercase() && out[4].is_ascii_lowercase());
        assert_eq!((out[2], out[5]), (b'-', b'\''));
        let mut digits = Vec::new();
        text(&[b'#'; 20_000], &mut Rng::new(3, 3), &mut digits);
        for digit in b'0'..=b'9' {
            let count = digits.iter().filter(|d| **d == digit).count();
            assert!((1700..2300).contains(&count), "{count} of {}", digit as char);
        }
    }

    #[test]
    fn unique_numbers_never_come_twice() {
        for seed in [0, 1, 99] {
            let unique = Unique::new(seed);
            let seen: HashSet<u32> = (0..200_000).map(|n| unique.nth(n)).collect();
            assert_eq!(seen.len(), 200_000, "seed {seed}");
        }
        assert_ne!(Unique::new(1).nth(0), Unique::new(2).nth(0));
    }
}
