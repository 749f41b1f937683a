//! The law in simulated cells that are drawn at random, beside static limits in the same cells: where it stands by their front,
//! as `bench/guard/gauntlet` computes it on real devices, and exactly: nothing here is noise. Arguments: seed, cells, and optionally one cell to tell of move by move.
//! Without arguments: the devices A to D in the phases of that bench, beside static limits.

use weir_control::plant::scenario::between;
use weir_control::plant::score::{phases, score, undisturbed};
use weir_control::plant::{Event, FloodKind, History, Law, PlantSpec, Script, simulate};
use weir_control::{Guard, LatencyTarget, Parameters};
use weir_core::stats::random::Random;

/// Seconds: idle, then the flood, of which the first are left out.
const IDLE: usize = 12;
const FLOOD: usize = 36;
const LEFT_OUT: usize = 3;
const SEED: u64 = 11;
/// What differs by less is the same, in points.
const NOISE: f64 = 3.0;

/// Points of commits and of bulk that a static limit has more of, at as much of the other less `slack`. Less than 0: none has.
fn short(guard: (f64, f64), others: &[(f64, f64)], slack: f64) -> (f64, f64) {
    let as_much = |other: f64, own: f64| other >= own - slack;
    let commits = others.iter().filter(|other| as_much(other.1, guard.1)).map(|other| other.0 - guard.0);
    let bulk = others.iter().filter(|other| as_much(other.0, guard.0)).map(|other| other.1 - guard.1);
    (commits.fold(-guard.0, f64::max), bulk.fold(-guard.1, f64::max))
}

fn summary(name: &str, mut far: Vec<(f64, f64)>) {
    let distance = |short: &(f64, f64)| short.0.max(short.1);
    far.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
    let Some(worst) = far.last() else { return };
    println!(
        "{name}: on the front or beyond it {} of {}; behind by {:.1} in the median, {:.1} at worst; commits short by {:.1} at most, over 5 in {}",
        far.iter().filter(|short| distance(short) <= NOISE).count(),
        far.len(),
        distance(&far[far.len() / 2]),
        distance(worst),
        far.iter().map(|short| short.0).fold(f64::MIN, f64::max),
        far.iter().filter(|short| short.0 > 5.0).count()
    );
}

struct Cell {
    name: String,
    spec: PlantSpec,
    script: Script,
}

fn draw(seed: u64, nth: u64) -> Cell {
    let mut random = Random::new(seed.wrapping_mul(1_000_003) ^ nth);
    let mut spec = PlantSpec::default();
    spec.device.requests_per_second = between(&mut random, 300.0, 20_000.0);
    spec.device.bytes_per_second = between(&mut random, 40e6, 1e9);
    if random.uniform() < 0.3 {
        spec.device.slice_ns = 0;
    }
    spec.cache.saved_bytes = 3_900_000_000;
    spec.syncs.threads = between(&mut random, 1.0, 33.0) as u32;
    spec.syncs.direct = random.uniform() < 0.4;
    spec.syncs.entangled = if random.uniform() < 0.3 { 0.3 * random.uniform() } else { 0.0 };
    let fresh = random.uniform() < 0.6;
    spec.bulk.kind = if fresh { FloodKind::Fresh } else { FloodKind::Rewriting };
    spec.bulk.writers = 0;
    if random.uniform() < 0.3 {
        spec = spec.crowded();
    }
    let mut script = Script::of_seconds((IDLE + FLOOD) as u64).and(IDLE as f64, Event::Flood(1));
    let (kind, share) = (random.below(5), 0.1 + 0.4 * random.uniform());
    let third = FLOOD as f64 / 3.0;
    let course = match kind {
        0 => Some(Event::Rate(share)),
        1 => Some(Event::Bandwidth(share)),
        _ => None,
    };
    if let Some(event) = course {
        let back = if kind == 0 { Event::Rate(1.0) } else { Event::Bandwidth(1.0) };
        script = script.and(IDLE as f64 + third, event).and(IDLE as f64 + 2.0 * third, back);
    }
    let name = format!(
        "{:.0} IOPS {:.0} MB/s {}t {}{}{}{} {}",
        spec.device.requests_per_second,
        spec.device.bytes_per_second / 1e6,
        spec.syncs.threads,
        if spec.syncs.direct { "direct " } else { "buffered " },
        if fresh { "fresh" } else { "rewriting" },
        if spec.syncs.entangled > 0.0 { " entangled" } else { "" },
        if spec.device.crowded_ns > 0 { " crowded" } else { "" },
        match kind {
            0 => format!("rate x{share:.2}"),
            1 => format!("bytes x{share:.2}"),
            _ => "steady".to_string(),
        },
    );
    Cell { name, spec, script }
}

/// Commits in % of idle, at most 100, and bulk bytes a second.
fn point(history: &History, idle: &History) -> (f64, f64) {
    let (from, to) = (IDLE + LEFT_OUT, IDLE + FLOOD);
    let kept = history.commits_per_second(from, to) / idle.commits_per_second(from, to).max(1e-9);
    ((100.0 * kept).min(100.0), history.bulk_per_second(from, to))
}

/// What the law was worth on the fixed devices, phase by phase: commits in % of idle, bulk in % of what was left.
fn fixed_devices() {
    for (letter, crowded, direct) in ["a", "b", "c", "d"]
        .into_iter()
        .flat_map(|letter| [(letter, false, false), (letter, true, false), (letter, false, true)])
    {
        let mut spec = PlantSpec::preset(letter).unwrap_or_default();
        if crowded {
            spec = spec.crowded();
        }
        spec.syncs.direct = direct;
        let script = Script::gauntlet(15, letter == "d");
        let idle = undisturbed(&spec, &script, SEED);
        let worth_of = |law| {
            let history = simulate(&spec, &script, law, SEED);
            let told: Vec<String> = phases(&history)
                .into_iter()
                .filter(|phase| phase.writers > 0)
                .map(|mut phase| {
                    phase.from += LEFT_OUT;
                    let worth = score(&history, &idle, phase, LatencyTarget::TimesIdle(5.0));
                    let percent = |share: Option<f64>| {
                        share.map_or("-".to_string(), |share| format!("{:.0}", 100.0 * share))
                    };
                    format!("{}t {}/{}", phase.threads, percent(worth.kept()), percent(worth.used()))
                })
                .collect();
            told.join("  ")
        };
        println!(
            "{letter}{}{}: {}",
            if crowded { " crowded" } else { "" },
            if direct { " direct" } else { "" },
            worth_of(Law::Guard(Box::new(Guard::new(Parameters::default()))))
        );
        for megabytes in [1, 2, 4, 8, 16, 32] {
            println!("    static {megabytes} MB: {}", worth_of(Law::Static(megabytes * 1_000_000)));
        }
    }
}

fn main() {
    if std::env::args().len() == 1 {
        return fixed_devices();
    }
    let arguments: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let (seed, cells) = (arguments.first().copied().unwrap_or(1), arguments.get(1).copied().unwrap_or(20));
    let told = arguments.get(2).copied();
    let (mut compared_exactly, mut as_measured) = (Vec::new(), Vec::new());
    for nth in 1..=cells {
        if told.is_some_and(|told| told != nth) {
            continue;
        }
        let cell = draw(seed, nth);
        let idle = undisturbed(&cell.spec, &cell.script, SEED);
        let rate = cell.spec.device.bytes_per_second;
        let run = |law| simulate(&cell.spec, &cell.script, law, SEED);
        let mut limits: Vec<u64> = [8, 16, 32, 64, 128, 256, 512]
            .iter()
            .map(|ms| (rate * f64::from(*ms) / 1e3).max(1e6) as u64)
            .collect();
        limits.dedup();
        let mut fixed: Vec<(u64, (f64, f64))> =
            limits.into_iter().map(|bytes| (bytes, point(&run(Law::Static(bytes)), &idle))).collect();
        fixed.push((cell.spec.cache.saved_bytes, point(&run(Law::AsFound), &idle)));
        let history = run(Law::Guard(Box::new(Guard::new(Parameters::default()))));
        let own = point(&history, &idle);
        let most = fixed.iter().map(|(_, point)| point.1).fold(own.1, f64::max).max(1.0);
        let share = |point: (f64, f64)| (point.0, 100.0 * point.1 / most);
        let guard = share(own);
        let others: Vec<(f64, f64)> = fixed.iter().map(|(_, point)| share(*point)).collect();
        let exact = short(guard, &others, 0.0);
        compared_exactly.push(exact);
        as_measured.push(short(guard, &others, NOISE));
        let distance = exact.0.max(exact.1);
        let front: Vec<String> = fixed
            .iter()
            .map(|(bytes, point)| format!("{:.1}:{:.0}/{:.0}", *bytes as f64 / 1e6, point.0, share(*point).1))
            .collect();
        println!(
            "{nth:3} {distance:+6.1} guard {:.0}/{:.0} | {} | {}",
            guard.0,
            guard.1,
            front.join(" "),
            cell.name
        );
        if told.is_some() {
            for step in &history.moves {
                let at = step.at_ns as f64 / 1e9;
                println!("  {at:6.1} {:8.2} MB {:?}", step.bytes as f64 / 1e6, step.branch);
            }
            for (at, second) in history.seconds.iter().enumerate() {
                println!(
                    "  {at} limit {:.2} kept {:.2} bulk {:.1}",
                    second.limit_bytes as f64 / 1e6,
                    second.commits as f64 / idle.seconds[at].commits.max(1) as f64,
                    second.bulk_bytes as f64 / 1e6
                );
            }
        }
    }
    summary("compared exactly", compared_exactly);
    summary("as on real devices, where as much is 3 points less", as_measured);
}
