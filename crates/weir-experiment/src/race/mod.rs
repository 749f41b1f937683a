//! The search over several knobs: screen them, race candidates, confirm the winner on fresh data.
//!
//! The first trials are of the baseline (and of the idle machine, where the goal refers to it). More than four knobs are
//! screened. The race begins with candidates spread over the whole space, the baseline and those of the user;
//! a block runs each of its arms once in random order, the worse half drops out, and new candidates near the best ones
//! join, nearer each time. Then the winner runs against the baseline in turn, as often as the rules say, and
//! only these trials say how much better it is. The best of the user's own candidates runs beside the two: what somebody
//! set by hand is only given up for something that fresh data show to be better. So does the idle machine, where the goal
//! refers to it. The time for them is set aside from the start.

use std::collections::{BTreeMap, VecDeque};

use crate::arm::Arm;
use crate::design::{Design, Observation, Phase, Proposal};
use crate::finding::Finding;
use crate::goal::Bases;
use crate::measures::{Figures, Metric};
use crate::space::{self, Dimension};
use weir_core::stats::random::Random;
use weir_knobs::Setting;

mod budget;
mod confirm;
mod finding;
mod ledger;
mod plan;
mod points;
mod rank;
mod screen;
#[cfg(test)]
mod tests;

pub use plan::{RacePlan, Rules};

use confirm::{Confirmation, Idle};
use ledger::Ledger;
use rank::Trial;

/// The arm of the baseline.
const FOUND: usize = 0;
/// Trials of it before anything else.
const BASELINE: usize = 2;
/// Arms that go from one generation to the next, and as many new ones beside them.
const SURVIVORS: usize = 4;
/// Arms and blocks of the last heat.
const FINALISTS: usize = 3;
const FINAL_BLOCKS: usize = 3;
/// Blocks of it where there is time.
const FINAL_BLOCKS_MAX: usize = 8;
/// Fewest trials that make a race.
const RACE_TRIALS_MIN: usize = 16;
/// Trials of a race that has room for what it would like to do.
const RACE_TRIALS: usize = 48;
/// An operation may take this many times as long as with the baseline settings.
const ABORT_FACTOR: f64 = 3.0;
/// It is never too long below this, ns.
const ABORT_AGE_MIN: f64 = 1e9;
/// How heavily a broken bound weighs against the score, both as logarithms of ratios.
const EXCESS_WEIGHT: f64 = 10.0;

/// A race as far as it came.
#[derive(Debug, Clone)]
pub struct Race {
    plan: RacePlan,
    arms: Vec<Arm>,
    idle: Option<usize>,
    /// Where candidates of the race lie in the space of `kept`.
    points: BTreeMap<usize, Vec<f64>>,
    /// Knobs that are raced over.
    kept: Vec<Dimension>,
    /// Half and row of the arms that screen.
    rows: BTreeMap<usize, (usize, usize)>,
    /// What the screening found of each knob; empty without one.
    screened: Vec<screen::Effect>,
    random: Random,
    ledger: Ledger,
    duration_ns: u64,
    abort_age_ns: Option<u64>,
    step: Step,
    block: u32,
    /// The arms of this block that are still to run.
    queue: VecDeque<usize>,
    outstanding: Option<Proposal>,
    seen: Vec<Observation>,
    /// The arms still in the race.
    pool: Vec<usize>,
    winner: Option<usize>,
    /// The best of the user's candidates, where it is not the winner: it is confirmed too.
    named: Option<usize>,
}

/// Where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Start,
    Baseline,
    Screen {
        half: usize,
    },
    /// Blocks since the start of the race.
    Race {
        blocks: usize,
    },
    Final {
        blocks: usize,
    },
    Confirm,
    Done(End),
}

/// Why it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The baseline gave no figures.
    NothingFound,
    /// There is no time for a race; so much would do, ns.
    TooShort { needed_ns: u64 },
    /// No candidate was better than the baseline.
    NoneBetter,
    /// No candidate keeps the goal's bounds.
    Infeasible,
    /// The winner ran against the baseline.
    Confirmed,
}

impl Race {
    /// A race that has not begun.
    ///
    /// # Errors
    /// What is wrong with the plan.
    pub fn new(plan: RacePlan) -> Result<Race, String> {
        plan.check()?;
        let mut arms = vec![plan.arm(Vec::new())];
        let idle = plan.goal.needs_idle().then_some(arms.len());
        arms.extend(idle.map(|_| plan.idle()));
        Ok(Race {
            random: Random::new(plan.seed),
            duration_ns: plan.duration_ns,
            kept: plan.dimensions.clone(),
            plan,
            arms,
            idle,
            points: BTreeMap::new(),
            rows: BTreeMap::new(),
            screened: Vec::new(),
            ledger: Ledger::default(),
            abort_age_ns: None,
            step: Step::Start,
            block: 0,
            queue: VecDeque::new(),
            outstanding: None,
            seen: Vec::new(),
            pool: Vec::new(),
            winner: None,
            named: None,
        })
    }

    /// The arm that is confirmed to be better, once the race is over.
    pub fn recommended(&self) -> Option<usize> {
        self.choice().filter(|arm| self.is_accepted(*arm))
    }

    /// The arm that fresh data speak for: the winner, but the user's own candidate where that one, too, is better than
    /// the baseline, and the winner not shown to be better than it.
    fn choice(&self) -> Option<usize> {
        let winner = self.winner?;
        let named = self.named.filter(|named| {
            let is_ahead = self.met(*named, winner).gain.is_some_and(|gain| gain.low > 1.0);
            self.is_accepted(*named) && !(is_ahead && self.is_accepted(winner))
        });
        Some(named.unwrap_or(winner))
    }

    fn is_accepted(&self, arm: usize) -> bool {
        self.met(FOUND, arm).accepted(self.plan.rules.pairs, self.plan.rules.gain).is_ok()
    }

    /// One arm against another, as far as the two have met on fresh data.
    fn met(&self, base: usize, arm: usize) -> Confirmation {
        let fresh: Vec<&Observation> =
            self.seen.iter().filter(|seen| seen.proposal.phase == Phase::Confirm).collect();
        let before = self.idle.and_then(|arm| self.figures(arm));
        let idle = Idle { arm: self.idle, before: before.as_ref() };
        Confirmation::of(&fresh, (base, arm), idle, &self.plan.goal, self.plan.seed)
    }

    /// Decides what comes after a block, until there is a trial to make or nothing more to do.
    fn advance(&mut self, left_ns: u64) {
        while self.queue.is_empty() && !matches!(self.step, Step::Done(_)) {
            self.block += 1;
            match self.step {
                Step::Start => self.begin(left_ns),
                Step::Baseline => self.after_baseline(left_ns),
                Step::Screen { half } => self.after_half(half, left_ns),
                Step::Race { blocks } => self.after_block(blocks, left_ns),
                Step::Final { blocks }
                    if blocks < FINAL_BLOCKS || self.has_time_for_more(blocks, left_ns) =>
                {
                    self.heat(Step::Final { blocks: blocks + 1 });
                }
                Step::Final { .. } => self.pick(),
                Step::Confirm | Step::Done(_) => self.step = Step::Done(End::Confirmed),
            }
        }
    }

    fn begin(&mut self, left_ns: u64) {
        let least_ns =
            (self.confirming() * self.plan.rules.pairs + RACE_TRIALS_MIN) as u64 * self.plan.duration_ns / 2;
        if left_ns < least_ns {
            self.step = Step::Done(End::TooShort { needed_ns: least_ns * 2 });
            return;
        }
        self.step = Step::Baseline;
        self.queue.extend(self.idle);
        self.queue.extend([FOUND; BASELINE]);
        self.queue.extend(self.idle_in_turn());
    }

    /// The idle machine, where the confirmation runs it too.
    fn idle_in_turn(&self) -> Option<usize> {
        self.idle.filter(|_| self.plan.idle_in_turn)
    }

    fn after_baseline(&mut self, left_ns: u64) {
        let Some(found) = self.figures(FOUND) else {
            self.step = Step::Done(End::NothingFound);
            return;
        };
        let tail = [Metric::P99, Metric::P95, Metric::P50, Metric::Mean].iter().find_map(|m| found.get(m));
        self.abort_age_ns = tail.map(|ns| (ns * ABORT_FACTOR).max(ABORT_AGE_MIN) as u64);
        let screening = self.needs_screening();
        if self.affordable(left_ns) < RACE_TRIALS + if screening { screen::RUNS } else { 0 } {
            self.duration_ns = (self.plan.duration_ns / 2).max(1);
        }
        if self.affordable(left_ns) < RACE_TRIALS_MIN {
            let needed_ns = self.reserve_ns() + RACE_TRIALS_MIN as u64 * self.trial_ns();
            self.step = Step::Done(End::TooShort { needed_ns });
        } else if screening && self.affordable(left_ns) >= RACE_TRIALS_MIN + screen::RUNS {
            self.screen(0);
        } else {
            self.start_race(left_ns);
        }
    }

    fn needs_screening(&self) -> bool {
        self.plan.dimensions.len() > self.plan.rules.knobs
    }

    fn screen(&mut self, half: usize) {
        let knobs = self.screenable();
        let levels = match self.screen_scores(1).first().filter(|_| half > 0) {
            None => screen::first(knobs.len()),
            Some(scores) => {
                let ordered: Vec<bool> = knobs.iter().map(|d| d.range.levels().is_none()).collect();
                screen::second(scores, &ordered)
            }
        };
        for (row, point) in screen::half(half, &levels, &mut self.random) {
            let settings = space::settings(&knobs, &point);
            self.arms.push(self.plan.arm(settings));
            self.rows.insert(self.arms.len() - 1, (half, row));
            self.queue.push_back(self.arms.len() - 1);
        }
        self.step = Step::Screen { half };
    }

    fn after_half(&mut self, half: usize, left_ns: u64) {
        if half == 0 && self.affordable(left_ns) >= RACE_TRIALS + screen::RUNS {
            self.screen(1);
            return;
        }
        let effects = screen::effects(&self.screen_scores(half + 1), self.screenable().len());
        let keep = screen::keep(&effects, self.plan.rules.knobs);
        self.kept = keep.iter().map(|i| self.plan.dimensions[*i].clone()).collect();
        self.screened = effects;
        self.start_race(left_ns);
    }

    /// The knobs that a screening can take in.
    fn screenable(&self) -> Vec<Dimension> {
        self.plan.dimensions.iter().take(screen::KNOBS_MAX).cloned().collect()
    }

    /// Scores of the first so many halves, by their rows.
    fn screen_scores(&self, halves: usize) -> Vec<screen::Scores> {
        let mut scores = vec![[0.0; screen::RUNS]; halves];
        for trial in self.trials(Phase::Screen) {
            if let Some((half, row)) = self.rows.get(&trial.arm)
                && *half < halves
            {
                scores[*half][*row] = trial.value;
            }
        }
        scores
    }

    fn start_race(&mut self, left_ns: u64) {
        let most = self.plan.rules.candidates;
        let room = self.affordable(left_ns);
        let count = if room >= RACE_TRIALS { most } else { (room / 3).clamp(SURVIVORS, most) };
        self.points.insert(FOUND, space::point(&self.kept, &[]));
        self.pool = vec![FOUND];
        for settings in self.plan.given.clone() {
            let point = space::point(&self.kept, &settings);
            self.enter(settings, point);
        }
        for arm in self.best_screened() {
            self.enter_point(space::point(&self.kept, &self.arms[arm].settings));
        }
        let rest = count.saturating_sub(self.pool.len());
        for point in points::latin_hypercube(self.kept.len(), rest, &mut self.random) {
            self.enter_point(point);
        }
        self.heat(Step::Race { blocks: 1 });
    }

    /// The two best arms of the screening.
    fn best_screened(&self) -> Vec<usize> {
        let mut trials = self.trials(Phase::Screen);
        trials.sort_by(|a, b| b.value.total_cmp(&a.value));
        trials.iter().take(2).map(|trial| trial.arm).collect()
    }

    fn enter_point(&mut self, point: Vec<f64>) {
        self.enter(space::settings(&self.kept, &point), point);
    }

    /// Lets a candidate into the race; one with the same settings as another one is that other one.
    fn enter(&mut self, settings: Vec<Setting>, point: Vec<f64>) {
        let known = self.points.keys().copied().find(|arm| self.arms[*arm].settings == settings);
        let arm = known.unwrap_or_else(|| {
            self.arms.push(self.plan.arm(settings));
            self.arms.len() - 1
        });
        self.points.entry(arm).or_insert(point);
        if !self.pool.contains(&arm) {
            self.pool.push(arm);
        }
    }

    /// A block of all arms in the race, in random order.
    fn heat(&mut self, step: Step) {
        let mut order = self.pool.clone();
        self.random.shuffle(&mut order);
        self.queue.extend(order);
        self.step = step;
    }

    fn after_block(&mut self, blocks: usize, left_ns: u64) {
        let standings = rank::standings(&self.trials(Phase::Race));
        let order = rank::best_first(&standings, &self.pool);
        // The first cut is by one trial each, so it only halves.
        let stay = if blocks == 1 { (order.len() / 2).max(SURVIVORS) } else { SURVIVORS };
        self.pool = order.into_iter().take(stay).collect();
        let next = Step::Race { blocks: blocks + 1 };
        let room = self.affordable(left_ns);
        if blocks == 1 && room >= self.pool.len() + FINALISTS {
            self.heat(next);
        } else if blocks <= self.plan.rules.generations + 1
            && room >= 2 * SURVIVORS + FINALISTS * FINAL_BLOCKS
        {
            self.breed(blocks);
            self.heat(next);
        } else {
            self.pool.truncate(FINALISTS);
            self.heat(Step::Final { blocks: 1 });
        }
    }

    fn has_time_for_more(&self, blocks: usize, left_ns: u64) -> bool {
        blocks < FINAL_BLOCKS_MAX && self.affordable(left_ns) > self.pool.len()
    }

    /// New candidates near the best ones, nearer with each generation.
    fn breed(&mut self, blocks: usize) {
        let spread = 0.2 / (1.0 + blocks.saturating_sub(2) as f64);
        let parents: Vec<Vec<f64>> =
            self.pool.iter().filter_map(|arm| self.points.get(arm).cloned()).collect();
        let views: Vec<&[f64]> = parents.iter().map(Vec::as_slice).collect();
        self.enter_point(points::centre(&self.kept, &views));
        for parent in parents.iter().cycle().take(if parents.is_empty() { 0 } else { SURVIVORS - 1 }) {
            let point = points::near(&self.kept, parent, spread, &mut self.random);
            self.enter_point(point);
        }
    }

    /// The race is over: its winner goes on, if it promises anything.
    fn pick(&mut self) {
        self.queue.clear();
        let standings = rank::standings(&self.trials(Phase::Race));
        if !standings.contains_key(&FOUND) {
            self.step = Step::Done(End::TooShort { needed_ns: self.reserve_ns().saturating_mul(2) });
            return;
        }
        let keeps = |arm: &usize| self.breaches(*arm).is_some_and(|breaches| breaches.is_empty());
        let mut eligible: Vec<usize> = standings.keys().copied().filter(keeps).collect();
        if eligible.iter().any(|arm| self.pool.contains(arm)) {
            eligible.retain(|arm| self.pool.contains(arm) || *arm == FOUND);
        }
        let winner = rank::surest(&standings, &eligible);
        let behind = |winner: usize| standings[&winner].mean <= standings[&FOUND].mean;
        let mut named: Vec<usize> =
            self.given().filter(|arm| keeps(arm) && standings.contains_key(arm)).collect();
        named.sort_by(|a, b| standings[b].mean.total_cmp(&standings[a].mean));
        self.step = match winner {
            None => Step::Done(End::Infeasible),
            Some(FOUND) => Step::Done(End::NoneBetter),
            Some(winner) if keeps(&FOUND) && behind(winner) => Step::Done(End::NoneBetter),
            Some(_) => Step::Confirm,
        };
        self.winner = winner.filter(|_| self.step == Step::Confirm);
        if let Some(winner) = self.winner {
            self.named = named.into_iter().find(|arm| *arm != winner);
            let beside = self.named.into_iter().chain(self.idle_in_turn());
            let arms: Vec<usize> = [FOUND, winner].into_iter().chain(beside).collect();
            for turn in 0..self.plan.rules.pairs {
                let mut order = arms.clone();
                // Two alternate; of more each comes at each place as often.
                if arms.len() > 2 {
                    order.rotate_left(turn / 2 % arms.len());
                }
                if turn % 2 == 1 {
                    order.reverse();
                }
                self.queue.extend(order);
            }
        }
    }

    /// The arms of the user's candidates, once they are in the race.
    fn given(&self) -> impl Iterator<Item = usize> {
        let arm_of = |settings: &Vec<Setting>| {
            self.points.keys().copied().find(|arm| self.arms[*arm].settings == *settings)
        };
        self.plan.given.iter().filter_map(arm_of)
    }

    /// Arms that a confirmation runs in each of its turns.
    fn confirming(&self) -> usize {
        let named = if self.winner.is_some() { self.named.is_some() } else { !self.plan.given.is_empty() };
        2 + usize::from(named) + usize::from(self.idle_in_turn().is_some())
    }

    /// The score of each measured trial of a phase, less what it misses the goal's limits by; a spoilt one is twice as bad
    /// as the worst of them.
    fn trials(&self, phase: Phase) -> Vec<Trial> {
        self.scored(phase, EXCESS_WEIGHT)
    }

    /// As [`Race::trials`] where missed limits weigh as much as that.
    fn scored(&self, phase: Phase, excess_weight: f64) -> Vec<Trial> {
        let (idle, found) = (self.idle.and_then(|arm| self.figures(arm)), self.figures(FOUND));
        let bases = Bases { idle: idle.as_ref(), found: found.as_ref() };
        let value = |seen: &Observation| {
            let figures = &seen.outcome.measured()?.values;
            let score = self.plan.goal.score(figures, bases.found?)?;
            Some(score - excess_weight * self.plan.goal.excess(figures, &bases))
        };
        let of_phase = || self.seen.iter().filter(|seen| seen.proposal.phase == phase);
        let worst = of_phase().filter_map(value).fold(0.0, f64::min);
        of_phase()
            .map(|seen| Trial {
                arm: seen.proposal.arm,
                block: seen.proposal.block,
                value: value(seen).unwrap_or(worst - 2f64.ln()),
            })
            .collect()
    }

    /// What an arm breaks of the goal's limits by its figures before the confirmation; `None` where it has none.
    fn breaches(&self, arm: usize) -> Option<Vec<String>> {
        let (idle, found) = (self.idle.and_then(|arm| self.figures(arm)), self.figures(FOUND));
        let bases = Bases { idle: idle.as_ref(), found: found.as_ref() };
        Some(self.plan.goal.breaches(&self.figures(arm)?, &bases))
    }

    /// Means of an arm's figures over the trials before the confirmation; `None` where none was measured.
    fn figures(&self, arm: usize) -> Option<Figures> {
        let of_arm = self.seen.iter().filter(|s| s.proposal.arm == arm && s.proposal.phase != Phase::Confirm);
        confirm::means(of_arm)
    }

    fn phase(&self) -> Phase {
        match self.step {
            Step::Start | Step::Baseline => Phase::Measure,
            Step::Screen { .. } => Phase::Screen,
            Step::Race { .. } | Step::Final { .. } => Phase::Race,
            Step::Confirm | Step::Done(_) => Phase::Confirm,
        }
    }

    /// The block of the next trial: in a confirmation each turn is one.
    fn block_now(&self) -> u32 {
        match self.step {
            Step::Confirm => {
                let made = self.confirming() * self.plan.rules.pairs - self.queue.len();
                self.block + (made / self.confirming()) as u32
            }
            _ => self.block,
        }
    }
}

impl Design for Race {
    fn arms(&self) -> &[Arm] {
        &self.arms
    }

    fn propose(&mut self, left_ns: u64) -> Option<Proposal> {
        if let Some(outstanding) = &self.outstanding {
            return (left_ns >= outstanding.duration_ns).then(|| outstanding.clone());
        }
        self.ledger.asked(left_ns);
        self.advance(left_ns);
        self.keep_to_the_budget(left_ns);
        let block = self.block_now();
        let arm = self.queue.pop_front()?;
        self.ledger.proposed(left_ns, arm, self.duration_ns);
        let abort_age_ns = self.abort_age_ns.filter(|_| arm != FOUND && Some(arm) != self.idle);
        let proposal =
            Proposal { arm, block, phase: self.phase(), duration_ns: self.duration_ns, abort_age_ns };
        self.outstanding = Some(proposal.clone());
        Some(proposal)
    }

    fn observe(&mut self, observation: &Observation) {
        if self.outstanding.as_ref() == Some(&observation.proposal) {
            self.outstanding = None;
            self.seen.push(observation.clone());
        }
    }

    fn finding(&self) -> Finding {
        finding::of(self)
    }

    fn remaining(&self) -> usize {
        let confirm = self.confirming() * self.plan.rules.pairs;
        let race = 3 * self.plan.rules.candidates + FINALISTS * FINAL_BLOCKS;
        let race_left = |made: usize| race.saturating_sub(made) + confirm;
        self.queue.len()
            + match self.step {
                Step::Start | Step::Baseline if self.needs_screening() => screen::RUNS * 2 + race_left(0),
                Step::Start | Step::Baseline => race_left(0),
                Step::Screen { half } => (1 - half.min(1)) * screen::RUNS + race_left(0),
                Step::Race { .. } | Step::Final { .. } => {
                    race_left(self.seen.iter().filter(|s| s.proposal.phase == Phase::Race).count())
                }
                Step::Confirm | Step::Done(_) => 0,
            }
    }
}
