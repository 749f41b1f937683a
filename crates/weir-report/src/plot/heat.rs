//! Heat maps: counts over time and latency as shades.

use std::collections::BTreeMap;

use super::scale::Placed;
use super::svg::{Svg, number};
use super::{HeatCell, LOOKS};

/// How many shades there are; each is a constant factor more than the one before.
pub const SHADES: usize = LOOKS;

/// The shade of a count, 1..=[`SHADES`]: evenly by its logarithm, since a tail of single operations must be seen
/// beside a body of thousands.
pub fn shade(count: u64, largest: u64) -> usize {
    let share = (count.max(1) as f64).ln() / (largest.max(2) as f64).ln();
    ((share * SHADES as f64).floor() as usize + 1).min(SHADES)
}

/// Rows for each doubling of latency: a divisor of what records and sketches have, or rows would alternate between holding
/// more and fewer of their buckets.
const ROWS_PER_OCTAVE: u64 = 4;

/// The cells of one column: `buckets` are lowest latency, highest latency (ns) and count.
pub fn column(x: (f64, f64), buckets: impl Iterator<Item = (u64, u64, u64)>) -> Vec<HeatCell> {
    let mut rows: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for (low, high, count) in buckets {
        let (bottom, top) = row(low.midpoint(high));
        rows.entry(bottom).or_insert((top, 0)).1 += count;
    }
    let cell = |(bottom, (top, count))| HeatCell { x, y: (bottom as f64, top as f64), count };
    rows.into_iter().map(cell).collect()
}

/// The row that a latency lies in: its lower and upper edge in ns.
fn row(ns: u64) -> (u64, u64) {
    let octave = 1u64 << ns.max(ROWS_PER_OCTAVE).ilog2();
    let width = octave / ROWS_PER_OCTAVE;
    let bottom = octave + (ns.max(octave) - octave) / width * width;
    (bottom, bottom.saturating_add(width))
}

/// Draws all cells of one shade as one path, which keeps hours of them small.
pub fn draw(svg: &mut Svg, cells: &[HeatCell], x: &Placed, y: &Placed) {
    let largest = cells.iter().map(|c| c.count).max().unwrap_or(0);
    let mut paths = vec![String::new(); SHADES];
    for cell in cells.iter().filter(|c| c.count > 0) {
        let (left, right) = (x.at(cell.x.0), x.at(cell.x.1));
        let (bottom, top) = (y.at(cell.y.0), y.at(cell.y.1));
        // A hair of overlap hides the seams that antialiasing leaves between neighbours.
        let (width, height) = ((right - left).max(0.6) + 0.3, (bottom - top).max(0.6) + 0.3);
        let d = &mut paths[shade(cell.count, largest) - 1];
        d.push_str(&format!(
            "M{} {}h{}v{}h-{}z",
            number(left),
            number(top),
            number(width),
            number(height),
            number(width)
        ));
    }
    for (i, d) in paths.iter().enumerate() {
        svg.path(&format!("h{}", i + 1), d);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_rise_by_constant_factors() {
        let shades: Vec<usize> = [1, 9, 11, 99, 101, 1_000_000].map(|n| shade(n, 1_000_000)).to_vec();
        assert_eq!(shades, [1, 1, 2, 2, 3, 6]);
        assert_eq!(shade(1, 1), 1);
    }
}
