//! The rules, one file a topic. A rule looks at the [`super::view::View`] and says what follows, or nothing.

pub mod bars;
pub mod caveats;
pub mod class;
pub mod commit;
pub mod concurrency;
pub mod fall;
pub mod flood;
pub mod headline;
pub mod map;
pub mod next;
pub mod product;
pub mod product_advice;
pub mod sequential;
pub mod settings;
pub mod sustained;
pub mod sync_path;
pub mod tails;
pub mod utilization;

use super::doctor::Finding;
use super::stages;
use super::view::View;

/// All findings, in reading order.
pub fn findings(view: &View) -> Vec<Finding> {
    let rules: [fn(&View) -> Option<Finding>; 10] = [
        class::judge,
        utilization::judge,
        commit::judge,
        concurrency::judge,
        sync_path::judge,
        tails::judge,
        sequential::judge,
        fall::judge,
        flood::judge,
        stages::judge,
    ];
    rules.iter().filter_map(|rule| rule(view)).collect()
}
