//! Where the names of points go: beside their point, not on each other, nor on anything else that is drawn.

/// A rectangle: left, top, right, bottom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Box4 {
    /// Left edge.
    pub left: f64,
    /// Upper edge.
    pub top: f64,
    /// Right edge.
    pub right: f64,
    /// Lower edge.
    pub bottom: f64,
}

/// A name to be placed.
#[derive(Debug, Clone, Copy)]
pub struct Wish {
    /// The point it belongs to.
    pub at: (f64, f64),
    /// Its width.
    pub width: f64,
}

/// Distances from a point at which a name may stand, nearest first.
const RINGS: [f64; 4] = [8.0, 16.0, 28.0, 44.0];

/// What it costs to stand nearer to another point than to one's own, in units of area covered.
const MISLEADING: f64 = 150.0;

impl Box4 {
    /// A box around a point.
    pub fn around((x, y): (f64, f64), half: f64) -> Box4 {
        Box4 { left: x - half, top: y - half, right: x + half, bottom: y + half }
    }

    /// The smallest box with two corners.
    pub fn between(a: (f64, f64), b: (f64, f64)) -> Box4 {
        Box4 { left: a.0.min(b.0), top: a.1.min(b.1), right: a.0.max(b.0), bottom: a.1.max(b.1) }
    }

    /// Area that both cover, with a margin.
    pub fn overlap(&self, other: &Box4) -> f64 {
        let width = self.right.min(other.right) - self.left.max(other.left);
        let height = self.bottom.min(other.bottom) - self.top.max(other.top);
        // A line has no area of its own, and must not be written over either.
        if width > -1.0 && height > -1.0 { (width + 1.0) * (height + 1.0) } else { 0.0 }
    }

    /// From a point to the nearest place of the box.
    fn distance(&self, (x, y): (f64, f64)) -> f64 {
        (x - x.clamp(self.left, self.right)).hypot(y - y.clamp(self.top, self.bottom))
    }

    fn outside(&self, bounds: &Box4) -> f64 {
        let over = [
            bounds.left - self.left,
            self.right - bounds.right,
            bounds.top - self.top,
            self.bottom - bounds.bottom,
        ];
        over.into_iter().map(|o| o.max(0.0)).sum()
    }
}

/// Boxes for names of a height, in the order of the wishes: earlier ones choose first. Where there is no free place, the
/// one that covers least.
pub fn place(wishes: &[Wish], height: f64, obstacles: &[Box4], bounds: &Box4) -> Vec<Box4> {
    let mut taken: Vec<Box4> = obstacles.to_vec();
    let mut out = Vec::with_capacity(wishes.len());
    for wish in wishes {
        let cost = |candidate: &Box4| {
            let covered: f64 = taken.iter().map(|other| candidate.overlap(other)).sum();
            let distance = candidate.distance(wish.at);
            let nearest = wishes.iter().map(|w| candidate.distance(w.at)).fold(f64::INFINITY, f64::min);
            let misleads = if nearest < distance { MISLEADING } else { 0.0 };
            covered + 50.0 * candidate.outside(bounds) + distance + misleads
        };
        let mut best: Option<(f64, Box4)> = None;
        for (i, candidate) in candidates(wish, height).into_iter().enumerate() {
            // Of places alike, the first.
            let cost = cost(&candidate) + i as f64 * 0.01;
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, candidate));
            }
        }
        if let Some((_, chosen)) = best {
            taken.push(chosen);
            out.push(chosen);
        }
    }
    out
}

/// Right, left, above and below and the corners between them, ring by ring.
fn candidates(wish: &Wish, height: f64) -> Vec<Box4> {
    let ((x, y), half) = (wish.at, height / 2.0);
    let at = |left: f64, middle: f64| Box4 {
        left,
        top: middle - half,
        right: left + wish.width,
        bottom: middle + half,
    };
    let ring = |distance: f64| {
        let (right, left, centre) = (x + distance, x - distance - wish.width, x - wish.width / 2.0);
        let (above, below) = (y - distance - half, y + distance + half);
        [
            at(right, y),
            at(left, y),
            at(x + distance * 0.4, above),
            at(x - distance * 0.4 - wish.width, above),
            at(x + distance * 0.4, below),
            at(x - distance * 0.4 - wish.width, below),
            at(centre, above),
            at(centre, below),
        ]
    };
    RINGS.into_iter().flat_map(ring).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_lonely_name_stands_to_the_right_and_one_at_the_edge_turns_round() {
        let bounds = Box4 { left: 0.0, top: 0.0, right: 100.0, bottom: 100.0 };
        let of = |x: f64| place(&[Wish { at: (x, 50.0), width: 30.0 }], 12.0, &[], &bounds)[0];
        assert_eq!(of(50.0).left, 58.0);
        assert_eq!(of(95.0).right, 87.0);
    }

    proptest! {
        #[test]
        fn names_of_points_on_a_grid_do_not_meet(picks in prop::collection::btree_set((0u8..5, 0u8..8), 1..12)) {
            let bounds = Box4 { left: 0.0, top: 0.0, right: 700.0, bottom: 400.0 };
            let points: Vec<(f64, f64)> =
                picks.iter().map(|(x, y)| (60.0 + 130.0 * f64::from(*x), 20.0 + 45.0 * f64::from(*y))).collect();
            let wishes: Vec<Wish> = points.iter().map(|at| Wish { at: *at, width: 50.0 }).collect();
            let markers: Vec<Box4> = points.iter().map(|at| Box4::around(*at, 5.0)).collect();
            let placed = place(&wishes, 14.0, &markers, &bounds);
            for (i, a) in placed.iter().enumerate() {
                prop_assert!(a.outside(&bounds) == 0.0, "{a:?}");
                prop_assert!(markers.iter().all(|m| a.overlap(m) == 0.0), "{a:?} covers a marker");
                for b in &placed[i + 1..] {
                    prop_assert!(a.overlap(b) == 0.0, "{a:?} and {b:?}");
                }
            }
        }
    }
}
