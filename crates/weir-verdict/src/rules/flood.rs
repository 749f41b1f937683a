//! Survival under a bulk writer: how much of its commits the storage keeps, and what a lower dirty limit saves.

use crate::doctor::{
    Advice, EffectSide, Evidence, Finding, FloodEffect, FloodStory, Grade, Statement, Topic,
};
use crate::rules::{commit, tails};
use crate::view::{View, limit, longest, percent, quoted, threads, time, times};
use weir_core::units::{Bytes, megabytes_per_second, per_second};

/// Share of the idle commits that must remain: above it a flood is felt by few, below the other a database stands
/// nearly still.
const GOOD_SHARE: f64 = 0.5;
const FAIR_SHARE: f64 = 0.2;
/// No bulk writer makes commits so much faster: the machine was another while one of the two was measured.
const ANOTHER_MACHINE: f64 = 1.25;

/// Grades by the worst share kept, at any number of threads.
pub fn judge(view: &View) -> Option<Finding> {
    let story = view.flood?;
    let worst = worst(story)?;
    let share = kept(&worst.flood, worst);
    let grade = if is_unclear(story, worst) { Grade::Unknown } else { grade_of(worst) };
    // What the summary says comes first.
    let others = story.effects.iter().filter(|effect| effect.threads != worst.threads);
    let mut statements: Vec<Statement> = std::iter::once(worst).chain(others).map(collapse).collect();
    statements.push(reason(grade, worst));
    statements.extend(pressure(view, story, worst));
    let chosen = chosen_limit(story);
    statements.extend(story.effects.iter().filter_map(|effect| rescue(effect, chosen?)));
    let summary = match grade {
        Grade::Unknown if share > ANOTHER_MACHINE => {
            "commits beside a bulk writer were faster than before it, so that nothing follows".to_string()
        }
        Grade::Unknown => "a bulk writer caused no collapse".to_string(),
        _ => {
            format!("a bulk writer leaves {} of {} commits", left(&worst.flood, worst), owner(worst.threads))
        }
    };
    Some(Finding { topic: Topic::Flood, grade: Some(grade), summary, statements })
}

/// The effect at the number of threads that keeps least.
pub fn worst(story: &FloodStory) -> Option<&FloodEffect> {
    story.effects.iter().min_by(|a, b| kept(&a.flood, a).total_cmp(&kept(&b.flood, b)))
}

/// Whether nothing follows from a flood: the machine was another, or a writer that hardly pressed changed little.
pub fn is_unclear(story: &FloodStory, worst: &FloodEffect) -> bool {
    let share = kept(&worst.flood, worst);
    share > ANOTHER_MACHINE || !story.provoked && share >= GOOD_SHARE
}

/// By the share that remains, or by the latency that remains if that is the better: a fast device may lose most of
/// its commits and still serve every database. A p99 alone does not tell: whoever waits for a commit that is stuck makes no
/// others meanwhile, so that a stall of seconds is one slow commit of thousands.
pub fn grade_of(effect: &FloodEffect) -> Grade {
    let by_share = match kept(&effect.flood, effect) {
        s if s >= GOOD_SHARE => Grade::Good,
        s if s >= FAIR_SHARE => Grade::Fair,
        _ => Grade::Poor,
    };
    let by_latency = |p99| commit::grade(p99).max(tails::grade(effect.flood.worst_ns));
    effect.flood.p99_ns.map_or(by_share, |p99| by_share.min(by_latency(p99)))
}

fn reason(grade: Grade, worst: &FloodEffect) -> Statement {
    let share = left(&worst.flood, worst);
    let p99 = worst.flood.p99_ns.map_or("too few for a p99".to_string(), |p99| format!("p99 {}", time(p99)));
    let text = match grade {
        Grade::Unknown if kept(&worst.flood, worst) > ANOTHER_MACHINE => {
            "Not graded: the machine changed between the runs before and beside the bulk writer.".to_string()
        }
        Grade::Unknown => format!("Not graded: {share} remain, but the bulk writer caused little pressure."),
        _ => format!(
            "{share} of the commits remain, {p99} (good: half, or p99 within 5 ms and no pause; fair: a fifth, or 20 ms and no stall)."
        ),
    };
    Statement::new(text, vec![side_of(&worst.idle), side_of(&worst.flood)])
}

/// Whose commits they are.
pub fn owner(n: u32) -> String {
    if n == 1 { "one thread's".to_string() } else { format!("{n} threads'") }
}

/// Share of the idle rate that a side keeps.
pub fn kept(side: &EffectSide, effect: &FloodEffect) -> f64 {
    if effect.idle.iops.mean > 0.0 { side.iops.mean / effect.idle.iops.mean } else { 1.0 }
}

/// The same in words. Nobody is left with more than all: a rate above the idle one is chance.
pub fn left(side: &EffectSide, effect: &FloodEffect) -> String {
    percent(kept(side, effect).min(1.0))
}

fn collapse(effect: &FloodEffect) -> Statement {
    let (idle, flood) = (&effect.idle, &effect.flood);
    let share = kept(flood, effect);
    let change = match share {
        s if s <= 0.0 => "none finished".to_string(),
        s if s < GOOD_SHARE => format!("{} fewer", times(1.0 / s)),
        s => format!("{} of idle", percent(s)),
    };
    let text = format!(
        "A bulk writer takes {} from {} commits/s to {} ({change}); the longest took {}.",
        threads(effect.threads),
        per_second(idle.iops.mean),
        per_second(flood.iops.mean),
        longest(flood),
    );
    Statement::new(text, vec![side_of(idle), side_of(flood)])
}

/// Whether the flood really pressed: dirty pages reached against the limits.
fn pressure(view: &View, story: &FloodStory, worst: &FloodEffect) -> Option<Statement> {
    let peak = story.samples.iter().map(|s| s.dirty_bytes + s.writeback_bytes).max()?;
    let limits = &view.notes.flood;
    // A writer that takes most commits without dirty pages pressed all the same.
    let too_little = !story.provoked && is_unclear(story, worst);
    let verdict = if too_little { ", too little to judge by" } else { "" };
    let text = format!(
        "Dirty pages reached {} (write-back starts at {}, writers wait at {}){verdict}.",
        Bytes(peak),
        limits.background_limit,
        limits.dirty_limit
    );
    let evidence = Evidence {
        source: "flood timeline".into(),
        figure: format!("peak {}", Bytes(peak)),
        n: story.samples.len() as u64,
        interval: None,
    };
    Some(Statement::new(text, vec![evidence]))
}

fn rescue(effect: &FloodEffect, chosen: Bytes) -> Option<Statement> {
    let side = effect.rescues.iter().find(|r| r.dirty_bytes == Some(chosen))?;
    let text = format!(
        "Under the same flood with vm.dirty_bytes = {}, {} did {} commits/s ({} of idle), the longest took {}.",
        limit(chosen),
        threads(effect.threads),
        per_second(side.iops.mean),
        percent(kept(side, effect)),
        longest(side),
    );
    Some(Statement::new(text, vec![side_of(side)]))
}

/// How much more commits a lowered limit must bring to be advised.
const WORTH_IT: f64 = 1.2;

/// Whether a lowered limit is better than the flood beyond the noise.
fn helps(effect: &FloodEffect, side: &EffectSide) -> bool {
    is_beyond_noise(effect, side) && side.iops.mean >= effect.flood.iops.mean * WORTH_IT
}

fn is_beyond_noise(effect: &FloodEffect, side: &EffectSide) -> bool {
    side.iops.low > effect.flood.iops.high
}

/// The best of what was tried and does not help: what it changed, and what is missing for advice.
pub fn tried(story: &FloodStory) -> Option<String> {
    let sides = story.effects.iter().flat_map(|effect| effect.rescues.iter().map(move |side| (effect, side)));
    let gain =
        |(effect, side): &(&FloodEffect, &EffectSide)| kept(side, effect) - kept(&effect.flood, effect);
    let (effect, side) = sides.max_by(|a, b| gain(a).total_cmp(&gain(b))).filter(|best| gain(best) > 0.0)?;
    let lacks = if is_beyond_noise(effect, side) {
        "less than the fifth more that is asked for"
    } else {
        "which may be chance: the trials' intervals overlap"
    };
    Some(format!(
        "vm.dirty_bytes = {} left {} of {} commits instead of {}, {lacks}",
        limit(side.dirty_bytes?),
        left(side, effect),
        owner(effect.threads),
        left(&effect.flood, effect),
    ))
}

/// Share of the best limit's commits that a higher limit must keep to be preferred, for bulk writes gain by it.
const NEAR_BEST: f64 = 0.8;

/// The limit to propose: the highest of those tried that helps somewhere and stays near the best everywhere.
pub fn chosen_limit(story: &FloodStory) -> Option<Bytes> {
    let near_best = |limit: Bytes| {
        story.effects.iter().all(|effect| {
            let best = effect.rescues.iter().map(|r| r.iops.mean).fold(0.0, f64::max);
            let same = effect.rescues.iter().find(|r| r.dirty_bytes == Some(limit));
            same.is_none_or(|side| side.iops.mean >= NEAR_BEST * best)
        })
    };
    let helping = story.effects.iter().flat_map(|e| e.rescues.iter().filter(|side| helps(e, side)));
    let limits: Vec<(Bytes, f64)> =
        helping.filter_map(|side| Some((side.dirty_bytes?, side.iops.mean))).collect();
    let near = limits.iter().map(|(limit, _)| *limit).filter(|limit| near_best(*limit)).max();
    near.or_else(|| limits.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(limit, _)| *limit))
}

fn side_of(side: &EffectSide) -> Evidence {
    Evidence {
        source: side.measurement.clone(),
        figure: format!("{} commits/s", per_second(side.iops.mean)),
        n: side.n,
        interval: (side.iops.intervals >= 3)
            .then(|| format!("[{}, {}]/s", per_second(side.iops.low), per_second(side.iops.high))),
    }
}

/// What to change: the chosen limit, or the experiment where none could be tried.
pub fn advise(view: &View) -> Option<Advice> {
    let story = view.flood?;
    match chosen_limit(story) {
        Some(limit) => measured(view, story, limit),
        None => experiment(view, story),
    }
}

fn measured(view: &View, story: &FloodStory, bytes: Bytes) -> Option<Advice> {
    let tried = |effect: &FloodEffect| effect.rescues.iter().position(|r| r.dirty_bytes == Some(bytes));
    let (effect, side) = story.effects.iter().find_map(|e| Some((e, &e.rescues[tried(e)?])))?;
    let mut effects = Vec::new();
    let mut evidence = Vec::new();
    for each in &story.effects {
        let Some(same) = each.rescues.iter().find(|r| r.dirty_bytes == Some(bytes)) else { continue };
        effects.push(format!(
            "{}: {} → {} commits/s ({} of idle)",
            threads(each.threads),
            per_second(each.flood.iops.mean),
            per_second(same.iops.mean),
            percent(kept(same, each)),
        ));
        evidence.extend([side_of(&each.flood), side_of(same)]);
    }
    let (current, undo) = found(view);
    Some(Advice {
        topic: Topic::Flood,
        knob: "vm.dirty_bytes".into(),
        current,
        proposed: limit(bytes),
        measured: true,
        effect: Statement::new(format!("Under a flood, {}.", effects.join("; ")), evidence),
        cost: cost(&effect.flood, side),
        durability: "as before; less unwritten data is lost in a crash".into(),
        reversibility:
            "at once, and gone at the next boot. It concerns every file system of the machine; set it while \
             few pages are dirty, or writers wait until dirty pages fit"
                .into(),
        command: format!("sysctl -w vm.dirty_bytes={}", bytes.0),
        undo,
    })
}

/// What bulk writing loses: the device's rate where it was seen, since write(2) runs at memory speed until the
/// limit is reached.
fn cost(flood: &EffectSide, side: &EffectSide) -> Statement {
    let seen = flood.device_bytes_per_second.zip(side.device_bytes_per_second);
    let handed = flood.flood_bytes_per_second.zip(side.flood_bytes_per_second);
    let (what, (before, after)) = match (seen, handed) {
        (Some(pair), _) => ("the device wrote", pair),
        (None, Some(pair)) => ("the bulk writer got", pair),
        (None, None) => return Statement::new("The loss of bulk throughput was not measured.", Vec::new()),
    };
    let text = format!(
        "Under the flood {what} {} before and {} with it.",
        megabytes_per_second(before),
        megabytes_per_second(after)
    );
    let rate = |side: &EffectSide, rate: f64| Evidence {
        source: side.measurement.clone(),
        figure: megabytes_per_second(rate),
        n: 0,
        interval: None,
    };
    Statement::new(text, vec![rate(flood, before), rate(side, after)])
}

/// The limit in force before, for people, and the command that brings it back.
fn found(view: &View) -> (String, String) {
    match (knob_found(view, "vm.dirty_bytes"), knob_found(view, "vm.dirty_ratio")) {
        (Some(bytes), _) => (limit(Bytes(bytes)), format!("sysctl -w vm.dirty_bytes={bytes}")),
        (None, Some(ratio)) => (
            format!("vm.dirty_ratio = {ratio} ({} now)", view.notes.flood.dirty_limit),
            format!("sysctl -w vm.dirty_ratio={ratio}"),
        ),
        (None, None) => ("not read".into(), "sysctl -w vm.dirty_ratio=20".into()),
    }
}

fn knob_found(view: &View, name: &str) -> Option<u64> {
    view.notes.flood.limits_found.iter().find(|(found, _)| found == name).map(|(_, value)| *value)
}

/// The limit to try where none could be: what a device of 200 MB/s writes in 75 ms.
const UNTRIED: Bytes = Bytes(15_000_000);

/// A collapse without a measured rescue: the experiment to make, unless so low a limit is in force.
fn experiment(view: &View, story: &FloodStory) -> Option<Advice> {
    let worst = story.effects.iter().min_by(|a, b| kept(&a.flood, a).total_cmp(&kept(&b.flood, b)))?;
    let is_low = knob_found(view, "vm.dirty_bytes").is_some_and(|bytes| (1..=UNTRIED.0).contains(&bytes));
    if is_low || kept(&worst.flood, worst) >= GOOD_SHARE || worst.rescues.iter().any(|r| r.n > 0) {
        return None;
    }
    let (current, undo) = found(view);
    Some(Advice {
        topic: Topic::Flood,
        knob: "vm.dirty_bytes".into(),
        current,
        proposed: limit(UNTRIED),
        measured: false,
        effect: Statement::new(
            "Not measured: a lower dirty limit often restores commits under a flood; weir doctor measures it \
             as root on a quiet machine.",
            vec![side_of(&worst.flood)],
        ),
        cost: Statement::new("Not measured: bulk writes may lose throughput.", Vec::new()),
        durability: "none".into(),
        reversibility: "weir restores the limit after the trial".into(),
        command: format!("sudo weir doctor {}", quoted(&view.notes.path)),
        undo,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Estimate;

    #[test]
    fn a_stall_is_seen_behind_a_good_p99() {
        let side = |rate: f64, p99_ns: Option<u64>, worst_ns: u64| EffectSide {
            measurement: String::new(),
            dirty_bytes: None,
            iops: Estimate { mean: rate, ..Estimate::default() },
            n: 5000,
            mean_ns: 0.0,
            p99_ns,
            worst_ns,
            cut_short: false,
            flood_bytes_per_second: None,
            device_bytes_per_second: None,
        };
        for (rate, p99_ns, worst_ns, grade) in [
            (500.0, Some(300_000), 90_000_000, Grade::Good),
            (500.0, Some(300_000), 450_000_000, Grade::Fair),
            (500.0, Some(300_000), 9_600_000_000, Grade::Poor),
            (500.0, None, 90_000_000, Grade::Poor),
            (500.0, Some(19_000_000), 90_000_000, Grade::Fair),
            (3000.0, Some(300_000), 450_000_000, Grade::Good),
        ] {
            let effect = FloodEffect {
                threads: 1,
                idle: side(5000.0, None, 0),
                flood: side(rate, p99_ns, worst_ns),
                rescues: Vec::new(),
            };
            assert_eq!(grade_of(&effect), grade, "{rate} {p99_ns:?} {worst_ns}");
        }
    }
}
