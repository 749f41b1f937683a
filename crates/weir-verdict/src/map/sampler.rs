//! Which point is measured next.
//!
//! A point is a share of writes and a load. Points of full load, along a few shares, give the edge; the model of
//! [`super::cost`] is fitted to it. Points inside are asked for where latency changes most between neighbours, since a map
//! drawn through points of equal latency says nothing new between them.

use super::cost::CostModel;
use super::{Ask, Seen};

/// How many points, and when a map is good enough.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// Points at most.
    pub points_max: usize,
    /// The edge is known where the model misses no measured point by more than this share.
    pub edge_error: f64,
    /// Neighbours whose latencies differ by less than this factor need no point between them.
    pub latency_ratio: f64,
}

impl Default for Plan {
    fn default() -> Self {
        Plan { points_max: 40, edge_error: 0.05, latency_ratio: 1.5 }
    }
}

/// Shares whose edge is measured in any case: reads alone, writes alone, half and half.
const FIRST: [f64; 3] = [0.0, 1.0, 0.5];
/// Shares that are added where the model misses, at most.
const SHARES_MAX: usize = 9;
/// Loads at which every share is looked at, the one that tells more first.
const LOADS: [f64; 2] = [0.8, 0.3];
/// Loads and shares nearer than this are one.
const NEAREST: f64 = 0.06;

/// The next point, or nothing where the map is good enough.
pub fn next(plan: &Plan, seen: &[Seen]) -> Option<Ask> {
    if seen.len() >= plan.points_max {
        return None;
    }
    edge(plan, seen).or_else(|| inside(plan, seen))
}

/// Shares of the measured edge, ascending, each with its total rate.
fn edges(seen: &[Seen]) -> Vec<(f64, f64)> {
    let of_edge = seen.iter().filter(|s| matches!(s.ask, Ask::Edge { .. }));
    let mut all: Vec<(f64, f64)> = of_edge.map(|s| (s.ask.share(), s.reads + s.writes)).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all
}

/// An edge point: those that are always asked for, then the middle of the widest gap, beside the share that the model
/// misses most where it misses any.
fn edge(plan: &Plan, seen: &[Seen]) -> Option<Ask> {
    let known = edges(seen);
    let is_known = |share: f64| known.iter().any(|(s, _)| (s - share).abs() < 1e-9);
    if let Some(share) = FIRST.into_iter().find(|share| !is_known(*share)) {
        return Some(Ask::Edge { share });
    }
    if known.len() >= SHARES_MAX {
        return None;
    }
    let model = CostModel::fit(seen)?;
    let miss = |(share, rate): &(f64, f64)| (model.edge(*share) / rate - 1.0).abs();
    // With three points the model goes through all of them: its interference is verified by a fourth and a fifth.
    let worst = known.iter().enumerate().max_by(|a, b| miss(a.1).total_cmp(&miss(b.1)))?;
    let missed = miss(worst.1) > plan.edge_error;
    if known.len() >= FIRST.len() + 2 && !missed {
        return None;
    }
    let gaps = known.windows(2).enumerate().map(|(i, pair)| {
        let beside = usize::from(missed && (i == worst.0 || i + 1 == worst.0));
        (beside, pair[1].0 - pair[0].0, f64::midpoint(pair[0].0, pair[1].0))
    });
    let wide = gaps.filter(|(_, gap, _)| *gap > 2.0 * NEAREST);
    let best = wide.max_by(|a, b| (a.0, a.1).partial_cmp(&(b.0, b.1)).unwrap_or(std::cmp::Ordering::Equal));
    best.map(|(_, _, share)| Ask::Edge { share })
}

/// A point below the edge: first one load at every share, then the next, then halfway where latency changes most.
fn inside(plan: &Plan, seen: &[Seen]) -> Option<Ask> {
    let known = edges(seen);
    let has = |share: f64, load: f64| column(seen, share).iter().any(|(l, _)| (l - load).abs() < NEAREST);
    let all = LOADS.into_iter().flat_map(|load| known.iter().map(move |(share, _)| (*share, load)));
    let missing = all.into_iter().find(|(share, load)| !has(*share, *load));
    missing.or_else(|| steepest(plan, seen, &known)).map(|(share, load)| ask_inside(&known, share, load))
}

/// Share and load halfway between the neighbours whose latencies differ most.
fn steepest(plan: &Plan, seen: &[Seen], known: &[(f64, f64)]) -> Option<(f64, f64)> {
    let mut widest: Option<(f64, f64, f64)> = None;
    for (share, _) in known {
        for pair in column(seen, *share).windows(2).filter(|pair| pair[1].0 - pair[0].0 > 2.0 * NEAREST) {
            let ratio = (pair[1].1 / pair[0].1).max(pair[0].1 / pair[1].1);
            if ratio > plan.latency_ratio && widest.is_none_or(|(most, ..)| ratio > most) {
                widest = Some((ratio, *share, f64::midpoint(pair[0].0, pair[1].0)));
            }
        }
    }
    widest.map(|(_, share, load)| (share, load))
}

/// Loads of one share and their latencies, ascending, the edge last.
fn column(seen: &[Seen], wanted: f64) -> Vec<(f64, f64)> {
    let here = seen.iter().filter(|s| (s.ask.share() - wanted).abs() < 1e-9 && s.p99_ns > 0.0);
    let mut all: Vec<(f64, f64)> = here
        .map(|s| match s.ask {
            Ask::Edge { .. } => (1.0, s.p99_ns),
            Ask::Inside { load, .. } => (load, s.p99_ns),
        })
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all
}

fn ask_inside(edges: &[(f64, f64)], share: f64, load: f64) -> Ask {
    let edge = edges.iter().find(|(s, _)| (s - share).abs() < 1e-9).map_or(0.0, |(_, rate)| *rate);
    let total = edge * load;
    Ask::Inside { share, load, reads: total * (1.0 - share), writes: total * share }
}
