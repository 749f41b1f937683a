//! What a race found, in figures and sentences.

use crate::design::{Observation, Phase};
use crate::effects::{EffectJudge, Wanted};
use crate::finding::{Finding, Recommendation};
use crate::measures::Metric;
use crate::race::confirm::Confirmation;
use crate::race::{End, FOUND, Race, Step, rank, screen};
use crate::space::Dimension;
use crate::words;
use weir_core::stats::bca::ALPHA;
use weir_core::units::{Nanos, significant};

/// The finding as far as the race came.
pub fn of(race: &Race) -> Finding {
    let fresh = Fresh::of(race);
    let judge = EffectJudge::new(fresh.shown(race), &race.plan.goal, race.plan.seed);
    let mut finding = Finding { arms: judge.summaries(&race.arms), ..Finding::default() };
    if let Some(winner) = race.choice().filter(|_| !fresh.trials.is_empty()) {
        let confirming = EffectJudge::new(fresh.trials.iter().copied(), &race.plan.goal, race.plan.seed);
        let wanted: Vec<Wanted> = metrics(race, &confirming)
            .into_iter()
            .map(|metric| Wanted { from: FOUND, to: winner, metric })
            .collect();
        finding.effects = confirming.effects(&wanted);
    }
    (finding.headline, finding.recommendation) = answer(race, &fresh, &finding);
    finding.remarks = remarks(race, &fresh);
    finding
}

/// Trials that had no part in choosing the winner.
struct Fresh<'a> {
    trials: Vec<&'a Observation>,
    confirmation: Option<Confirmation>,
}

impl<'a> Fresh<'a> {
    fn of(race: &'a Race) -> Fresh<'a> {
        let trials: Vec<&Observation> =
            race.seen.iter().filter(|seen| seen.proposal.phase == Phase::Confirm).collect();
        Fresh { trials, confirmation: race.choice().map(|arm| race.met(FOUND, arm)) }
    }

    /// Trials for the table of arms: of arms that were confirmed, only fresh ones, as the best of many was also lucky.
    fn shown(&self, race: &'a Race) -> impl Iterator<Item = &'a Observation> {
        let confirmed: Vec<usize> = self.trials.iter().map(|trial| trial.proposal.arm).collect();
        let is_shown = move |seen: &&Observation| {
            seen.proposal.phase == Phase::Confirm || !confirmed.contains(&seen.proposal.arm)
        };
        race.seen.iter().filter(is_shown)
    }
}

/// The goal's figures and those that anybody asks for, as far as they were measured.
fn metrics(race: &Race, judge: &EffectJudge<'_>) -> Vec<Metric> {
    let measured = judge.metrics();
    let mut metrics = race.plan.goal.metrics();
    for metric in [Metric::Rate, Metric::P99, Metric::Bulk] {
        if !metrics.contains(&metric) {
            metrics.push(metric);
        }
    }
    metrics.retain(|metric| measured.contains(metric));
    metrics
}

fn answer(race: &Race, fresh: &Fresh<'_>, finding: &Finding) -> (String, Recommendation) {
    let keep = |why: String| (format!("keep the baseline settings: {why}"), Recommendation::Keep { why });
    match race.step {
        Step::Done(End::NothingFound) => {
            ("nothing can be said: the baseline gave no figures".to_string(), Recommendation::None)
        }
        Step::Done(End::TooShort { needed_ns }) => {
            let (knobs, needed) = (race.plan.dimensions.len(), Nanos(needed_ns));
            (
                format!("the time is too short to race over {knobs} knobs: it takes {needed} at least"),
                Recommendation::None,
            )
        }
        Step::Done(End::NoneBetter) => {
            let count = race.points.len() - 1;
            keep(format!("none of {count} candidates was better by the goal `{}`", race.plan.goal))
        }
        Step::Done(End::Infeasible) => {
            let why = infeasible(race);
            (format!("no tried setting keeps the goal's bounds: {why}"), Recommendation::Infeasible { why })
        }
        Step::Confirm | Step::Done(End::Confirmed) => match (race.choice(), &fresh.confirmation) {
            (Some(winner), Some(confirmation)) => {
                let name = words::arm(&race.arms[winner]);
                if confirmation.pairs < race.plan.rules.pairs {
                    let lacking = confirmation.lacking(race.plan.rules.pairs);
                    return (
                        format!("not confirmed: the best candidate was {name}, and {lacking}"),
                        Recommendation::None,
                    );
                }
                match confirmation.accepted(race.plan.rules.pairs, race.plan.rules.gain) {
                    Ok(()) => change(race, winner, confirmation, finding),
                    Err(why) => keep(format!("the best candidate was {name}, and {why}")),
                }
            }
            _ => ("the race has no winner".to_string(), Recommendation::None),
        },
        Step::Start | Step::Baseline | Step::Screen { .. } | Step::Race { .. } | Step::Final { .. } => {
            (unfinished(race), Recommendation::None)
        }
    }
}

/// How far a race came that was cut short before it had a winner, and who leads.
fn unfinished(race: &Race) -> String {
    let standings = rank::standings(&race.trials(Phase::Race));
    let arms: Vec<usize> = standings.keys().copied().collect();
    let made = words::count(race.seen.len(), "trial");
    match rank::best_first(&standings, &arms).first() {
        None => format!("not finished: {made} were made, none of them of the race itself"),
        Some(&FOUND) => format!("not finished: after {made} no candidate is ahead of the baseline settings"),
        Some(leader) => format!(
            "not finished: after {made} {} leads, and nothing has confirmed it",
            words::arm(&race.arms[*leader])
        ),
    }
}

fn change(
    race: &Race,
    winner: usize,
    confirmation: &Confirmation,
    finding: &Finding,
) -> (String, Recommendation) {
    let settings = race.arms[winner].settings.clone();
    let effect = |metric: &Metric| {
        let found = finding.effects.iter().find(|effect| effect.metric == *metric)?;
        Some(format!("{} {}", words::figure(metric), words::effect(found, ALPHA)))
    };
    let score = confirmation
        .gain
        .as_ref()
        .map(|gain| format!("by the goal {} {}", words::change(gain.ratio), words::interval(gain, ALPHA)));
    let goal = &race.plan.goal;
    let single = goal.weights.len() == 1;
    let gain = goal.headline().filter(|_| single).and_then(effect).or(score).unwrap_or_default();
    let bounds = match confirmation.found_breaches.as_slice() {
        [] => String::new(),
        broken => format!("; it keeps the bounds, which the baseline does not: {}", broken.join(", ")),
    };
    let headline = format!(
        "{}: {gain} against the baseline settings, in {} pairs on fresh data{bounds}",
        words::arm(&race.arms[winner]),
        confirmation.pairs,
    );
    let others: Vec<String> = finding
        .effects
        .iter()
        .filter(|e| goal.weights.iter().all(|(metric, _)| *metric != e.metric))
        .filter_map(|e| effect(&e.metric))
        .collect();
    let cost = if others.is_empty() { "no other figure was measured".to_string() } else { others.join("; ") };
    let durability = words::durability(&settings);
    let reversibility = words::reversibility(&settings);
    (headline, Recommendation::Change { arm: winner, settings, cost, durability, reversibility })
}

/// What the arm that comes nearest to the bounds lacks.
fn infeasible(race: &Race) -> String {
    let standings = rank::standings(&race.trials(Phase::Race));
    let arms: Vec<usize> = standings.keys().copied().collect();
    let nearest = rank::best_first(&standings, &arms).into_iter().next();
    let told = nearest.and_then(|arm| {
        let breaches = race.breaches(arm)?.join(", ");
        Some(format!("with {}, the nearest, {breaches}", words::arm(&race.arms[arm])))
    });
    told.unwrap_or_else(|| "no candidate ran to its end".to_string())
}

fn remarks(race: &Race, fresh: &Fresh<'_>) -> Vec<String> {
    let count = |phase: Phase| race.seen.iter().filter(|seen| seen.proposal.phase == phase).count();
    let mut remarks = race.plan.left_out.clone();
    remarks.extend(screening(race));
    if count(Phase::Race) > 0 {
        remarks.push(format!(
            "{} candidates raced over {} in {} trials; {} more trials confirm.",
            race.points.len().saturating_sub(1),
            race.kept.iter().map(|d| d.knob.to_string()).collect::<Vec<_>>().join(", "),
            count(Phase::Race),
            fresh.trials.len(),
        ));
    }
    remarks.extend(given(race));
    let spoilt = race.seen.iter().filter(|seen| seen.outcome.measured().is_none()).count();
    if spoilt > 0 {
        remarks.push(format!(
            "{spoilt} trials were aborted or failed and count as twice as bad as the worst measured."
        ));
    }
    if race.duration_ns < race.plan.duration_ns {
        let (used, wanted) = (Nanos(race.duration_ns), Nanos(race.plan.duration_ns));
        remarks.push(format!("Trials measured {used} instead of {wanted}, for lack of time."));
    }
    remarks
}

fn screening(race: &Race) -> Vec<String> {
    if race.screened.is_empty() {
        let skipped = race.plan.dimensions.len() > race.plan.rules.knobs && !race.points.is_empty();
        let why = "The time was too short to screen the knobs first.".to_string();
        return if skipped { vec![why] } else { Vec::new() };
    }
    let mut knobs: Vec<_> = race.plan.dimensions.iter().zip(&race.screened).collect();
    knobs.sort_by(|a, b| b.1.change.total_cmp(&a.1.change));
    let (kept, dropped): (Vec<_>, Vec<_>) =
        knobs.into_iter().partition(|(d, _)| race.kept.iter().any(|k| k.knob == d.knob));
    // A broken limit weighs in the score, which is then no ratio of figures.
    let limited = !race.plan.goal.bounds.is_empty() || !race.plan.goal.guardrails.is_empty();
    let shown = |change: f64| words::change(change.exp());
    let effect = |e: &screen::Effect| match limited {
        true => format!("{} times what noise alone shows", significant(e.weight())),
        false => format!("{}; noise alone {}", shown(e.change), shown(e.noise)),
    };
    let list = |knobs: &[(&Dimension, &screen::Effect)]| {
        let one = |(d, e): &(&Dimension, &screen::Effect)| format!("{} ({})", d.knob, effect(e));
        knobs.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    let beyond = race.plan.dimensions.len().saturating_sub(race.screened.len());
    let unseen = if beyond > 0 { format!(" {beyond} more knobs were not screened.") } else { String::new() };
    vec![format!(
        "Screening: the goal depends most on {}; not raced over: {}.{unseen}",
        list(&kept),
        list(&dropped)
    )]
}

/// How the user's own candidates did: in the race, and on fresh data where one met the winner there.
fn given(race: &Race) -> Vec<String> {
    // By figures alone: a broken limit is named, not weighed.
    let standings = rank::standings(&race.scored(Phase::Race, 0.0));
    let Some((winner, best)) = race.winner.and_then(|winner| Some((winner, standings.get(&winner)?))) else {
        return Vec::new();
    };
    let of = |arm: usize| {
        let standing = standings.get(&arm)?;
        let name = words::arm(&race.arms[arm]);
        if arm == winner {
            return Some(format!("{name}, which you named, is the winner."));
        }
        let ahead = (standing.mean - best.mean).exp() - 1.0;
        let met = race.met(arm, winner).gain.filter(|_| race.named == Some(arm));
        Some(match met {
            None => format!(
                "{name}, which you named, was {} % {} the winner in {} of the race{}.",
                significant(ahead.abs() * 100.0),
                if ahead > 0.0 { "ahead of" } else { "behind" },
                words::count(standing.trials, "trial"),
                match race.breaches(arm).unwrap_or_default().join(", ") {
                    broken if !broken.is_empty() => format!(", but {broken}"),
                    _ if ahead > 0.0 => ", but less surely".to_string(),
                    _ => String::new(),
                }
            ),
            Some(gain) => format!(
                "On fresh data the race's winner, {}, was by the goal {} {} against {name}, which you named: {}.",
                words::arm(&race.arms[winner]),
                words::change(gain.ratio),
                words::interval(&gain, ALPHA),
                if gain.low > 1.0 {
                    "it is better"
                } else if gain.high < 1.0 {
                    "yours is better"
                } else {
                    "no difference is shown, so yours stands"
                }
            ),
        })
    };
    race.given().filter_map(of).collect()
}
