//! An execution of trials as it would be, without running anything: every trial is told that it went as the others.

use std::fmt::Write;

use weir_core::units::Nanos;
use weir_experiment::{Measures, Metric, Observation, Outcome};

use super::{Asked, Lab, Planned, build};

/// More trials than this are not listed.
const LISTED_MAX: usize = 2000;

/// The trials in their order, with their time.
pub fn text(planned: &Planned, asked: &Asked, lab: &Lab<'_>) -> anyhow::Result<String> {
    let mut design = build(planned)?;
    let mut out = format!("{}: goal {}\n", planned.name, planned.goal);
    let (mut least_ns, mut most_ns) = (0, 0);
    let mut trials = Vec::new();
    let mut ended = false;
    while trials.len() < LISTED_MAX {
        let left_ns = asked.budget_ns.saturating_sub(least_ns);
        let Some(proposal) = design.propose(left_ns) else { break };
        let Some(arm) = design.arms().get(proposal.arm).cloned() else { break };
        let (least, most) = lab.expected_ns(&arm, proposal.duration_ns);
        if least > left_ns {
            ended = true;
            break;
        }
        (least_ns, most_ns) = (least_ns + least, most_ns + most);
        trials.push((proposal.phase.name(), proposal.block, arm.label, Nanos(proposal.duration_ns)));
        let values = figures(&asked.measured.figures());
        let outcome = Outcome::Measured(Measures { values, seconds: Vec::new(), operations: 1000 });
        design.observe(&Observation { proposal, outcome });
    }
    let width = trials.iter().map(|(_, _, label, _)| label.chars().count()).max().unwrap_or(0);
    for (at, (phase, block, label, time)) in trials.iter().enumerate() {
        let number = at + 1;
        let _ = writeln!(out, "{number:4}  {phase:7}  block {block:<3} {label:width$}  measures {time}");
    }
    if ended {
        let _ = writeln!(out, "the time of {} ends here", Nanos(asked.budget_ns));
    }
    let (least, most) = (Nanos(least_ns), Nanos(most_ns));
    let time = if least == most { format!("{least}") } else { format!("{least} to {most}") };
    let _ = writeln!(out, "{} trials, {time}, and waits for a clean start between them", trials.len());
    if let Some(unfolds) = &planned.unfolds {
        let _ = writeln!(out, "{unfolds}");
    }
    Ok(out)
}

/// The same for every trial.
fn figures(named: &[&str]) -> std::collections::BTreeMap<Metric, f64> {
    let own =
        [Metric::Rate, Metric::Mean, Metric::P50, Metric::P95, Metric::P99, Metric::Bulk, Metric::Device];
    let named = named.iter().map(|name| Metric::Named((*name).to_string()));
    own.into_iter().chain(named).map(|metric| (metric, 1000.0)).collect()
}
