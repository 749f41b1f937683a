//! Survival under a bulk writer: how much of its commits the storage keeps, and what a lower dirty limit saves.

use crate::units::{Bytes, megabytes_per_second, per_second};
use crate::verdict::doctor::{
    Advice, EffectSide, Evidence, Finding, FloodEffect, FloodStory, Grade, Statement, Topic,
};
use crate::verdict::view::{View, limit, percent, threads, time, times};

/// Share of the idle commits that must remain: above it a flood is felt by few, below the other a database stands
/// nearly still.
const GOOD_SHARE: f64 = 0.5;
const FAIR_SHARE: f64 = 0.2;

/// Grades by the worst share kept, at any number of threads.
pub fn judge(view: &View) -> Option<Finding> {
    let story = view.flood?;
    let worst = story.effects.iter().min_by(|a, b| kept(&a.flood, a).total_cmp(&kept(&b.flood, b)))?;
    let share = kept(&worst.flood, worst);
    let grade = match share {
        _ if !story.provoked && share >= GOOD_SHARE => Grade::Unknown,
        s if s >= GOOD_SHARE => Grade::Good,
        s if s >= FAIR_SHARE => Grade::Fair,
        _ => Grade::Poor,
    };
    let mut statements: Vec<Statement> = story.effects.iter().map(collapse).collect();
    statements.extend(pressure(view, story));
    statements.extend(story.effects.iter().filter_map(rescue));
    let summary = match grade {
        Grade::Unknown => "no collapse could be provoked by a bulk writer".to_string(),
        _ => format!("a bulk writer leaves {} of {} commits", percent(share), owner(worst.threads)),
    };
    Some(Finding { topic: Topic::Flood, grade: Some(grade), summary, statements })
}

/// Whose commits they are.
fn owner(n: u32) -> String {
    if n == 1 { "one thread's".to_string() } else { format!("{n} threads'") }
}

/// Share of the idle rate that a side keeps.
pub fn kept(side: &EffectSide, effect: &FloodEffect) -> f64 {
    if effect.idle.iops.mean > 0.0 { side.iops.mean / effect.idle.iops.mean } else { 1.0 }
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
        time(flood.worst_ns),
    );
    Statement::new(text, vec![side_of(idle), side_of(flood)])
}

/// Whether the flood really pressed: dirty pages reached against the limits.
fn pressure(view: &View, story: &FloodStory) -> Option<Statement> {
    let peak = story.samples.iter().map(|s| s.dirty_bytes + s.writeback_bytes).max()?;
    let limits = &view.notes.flood;
    let verdict = if story.provoked { String::new() } else { ", too little to judge by".to_string() };
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

fn rescue(effect: &FloodEffect) -> Option<Statement> {
    let best = best_rescue(effect)?;
    let text = format!(
        "Under the same flood with vm.dirty_bytes = {}, {} did {} commits/s ({} of idle), the longest took {}.",
        limit(best.dirty_bytes?),
        threads(effect.threads),
        per_second(best.iops.mean),
        percent(kept(best, effect)),
        time(best.worst_ns),
    );
    Some(Statement::new(text, vec![side_of(best)]))
}

/// The lowered limit with the highest rate, if it is better than the flood beyond the noise.
pub fn best_rescue(effect: &FloodEffect) -> Option<&EffectSide> {
    let best = effect.rescues.iter().max_by(|a, b| a.iops.mean.total_cmp(&b.iops.mean))?;
    (best.iops.low > effect.flood.iops.high && best.iops.mean >= effect.flood.iops.mean * 1.2).then_some(best)
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

/// What to change: the limit that was measured to help most at the thread count that suffered most, or the
/// experiment where none could be made.
pub fn advise(view: &View) -> Option<Advice> {
    let story = view.flood?;
    let helped = story.effects.iter().filter_map(|e| Some((e, best_rescue(e)?)));
    let chosen = helped.max_by(|a, b| gain(a.0, a.1).total_cmp(&gain(b.0, b.1)));
    match chosen {
        Some((effect, side)) => measured(view, story, effect, side),
        None => experiment(view, story),
    }
}

/// How many times over the flooded rate; a flooded rate of nothing counts as one commit in the time.
fn gain(effect: &FloodEffect, side: &EffectSide) -> f64 {
    side.iops.mean / effect.flood.iops.mean.max(0.1)
}

fn measured(view: &View, story: &FloodStory, effect: &FloodEffect, side: &EffectSide) -> Option<Advice> {
    let bytes = side.dirty_bytes?;
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
            "at once, and gone at the next boot. It concerns every file system of the machine; set it \
            while little is dirty, or writers wait until dirty pages fit"
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
        (None, None) => return Statement::new("What bulk writing loses was not seen.", Vec::new()),
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
    let notes = &view.notes.flood;
    let of = |name: &str| notes.limits_found.iter().find(|(n, _)| n == name).map(|(_, v)| *v);
    match (of("vm.dirty_bytes"), of("vm.dirty_ratio")) {
        (Some(bytes), _) => (limit(Bytes(bytes)), format!("sysctl -w vm.dirty_bytes={bytes}")),
        (None, Some(ratio)) => (
            format!("vm.dirty_ratio = {ratio} ({} now)", notes.dirty_limit),
            format!("sysctl -w vm.dirty_ratio={ratio}"),
        ),
        (None, None) => ("not read".into(), "sysctl -w vm.dirty_ratio=20".into()),
    }
}

/// A collapse without a measured rescue: the experiment to make.
fn experiment(view: &View, story: &FloodStory) -> Option<Advice> {
    let worst = story.effects.iter().min_by(|a, b| kept(&a.flood, a).total_cmp(&kept(&b.flood, b)))?;
    if kept(&worst.flood, worst) >= GOOD_SHARE || worst.rescues.iter().any(|r| r.n > 0) {
        return None;
    }
    let (current, undo) = found(view);
    Some(Advice {
        topic: Topic::Flood,
        knob: "vm.dirty_bytes".into(),
        current,
        proposed: "15 MB".into(),
        measured: false,
        effect: Statement::new(
            "Not measured: a lower dirty limit often brings commits back under a flood; whether it does here, \
             weir doctor measures as root on a quiet machine.",
            vec![side_of(&worst.flood)],
        ),
        cost: Statement::new("Not measured: bulk writes may lose throughput.", Vec::new()),
        durability: "none".into(),
        reversibility: "weir puts the limit back by itself after the trial".into(),
        command: format!("sudo weir doctor {}", view.notes.path),
        undo,
    })
}
