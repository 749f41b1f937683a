//! Heat maps: counts over time and latency as shades.

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
