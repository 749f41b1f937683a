//! The law and static limits over cells of the plant: share of idle commits / share of the left-over that bulk writers get.
//!
//!     cargo run --release -p weir-control --example cells [-- guard | random FROM TO | one NAME]
use weir_control::plant::score::{self, Score};
use weir_control::plant::{Credits, Event, FloodKind, Law, PlantSpec, Script, scenario, simulate};
use weir_control::{Guard, Parameters};
use weir_core::stats::random::Random;

type Cell = (String, PlantSpec, Script);

fn phases(threads: &[u32], idle: &[u32], phase: f64) -> Script {
    let all = idle.len() + threads.len();
    let mut s = Script::of_seconds((phase * all as f64) as u64);
    for (i, n) in idle.iter().enumerate() {
        s = s.and(i as f64 * phase, Event::Threads(*n)).and(i as f64 * phase, Event::Flood(0));
    }
    for (i, n) in threads.iter().enumerate() {
        let at = (idle.len() + i) as f64 * phase;
        s = s.and(at, Event::Threads(*n)).and(at, Event::Flood(1));
    }
    s
}

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for letter in ["a", "b", "c", "d"] {
        for (mode, direct) in [("buf", false), ("dir", true)] {
            for (kind, flood) in [("fresh", FloodKind::Fresh), ("rewr", FloodKind::Rewriting)] {
                let mut spec = PlantSpec::preset(letter).unwrap_or_default();
                spec.syncs.direct = direct;
                spec.bulk.kind = flood;
                cells.push((format!("{letter} {mode} {kind}"), spec, Script::gauntlet(20, letter == "d")));
            }
        }
    }
    cells.push(("a crowded".into(), PlantSpec::device_a().crowded(), Script::gauntlet(20, false)));
    for n in [4, 16] {
        for entangled in [0.3, 1.0] {
            let mut spec = PlantSpec::device_a();
            (spec.syncs.shared_journal, spec.syncs.entangled) = (true, entangled);
            spec.device.requests_per_second = 2000.0;
            spec.device.bytes_per_second = 150e6;
            cells.push((format!("ext4 {n} e{entangled}"), spec.clone(), phases(&[1, n, 1], &[1], 20.0)));
        }
    }
    let mut spec = PlantSpec::device_a();
    spec.device.requests_per_second = 2000.0;
    spec.device.bytes_per_second = 150e6;
    cells.push(("xfs 16 unseen".into(), spec.clone(), phases(&[1, 16, 1], &[1], 20.0)));
    let mut steps = phases(&[1, 4, 1], &[1, 4], 24.0);
    for i in 2..5 {
        let at = f64::from(i) * 24.0;
        for (at, event) in [(at + 8.0, Event::Requests(0.3)), (at + 16.0, Event::Requests(1.0))] {
            steps.events.push(weir_control::plant::Timed { at_ns: (at * 1e9) as u64, event });
        }
    }
    steps.events.sort_by_key(|event| event.at_ns);
    cells.push(("iops steps".into(), PlantSpec::device_a(), steps));
    let mut spec = PlantSpec::device_a();
    spec.device.credits = Some(Credits { bytes: 5e9, baseline_bytes_per_second: 60e6 });
    cells.push(("credits".into(), spec, phases(&[1, 4, 1], &[1, 4], 30.0)));
    let mut spec = PlantSpec::device_a().crowded();
    (spec.syncs.threads, spec.bulk.writers) = (10, 0);
    let mut script = Script::of_seconds(75).and(15.0, Event::Flood(1));
    for at in [30.0, 45.0, 60.0] {
        script = script.and(at, Event::Latency(100.0)).and(at + 0.5, Event::Latency(1.0));
    }
    cells.push(("tips".into(), spec, script));
    cells
}

fn random(seed: u64) -> Cell {
    let mut random = Random::new(seed);
    let mut spec = scenario::plant(&mut random);
    spec.syncs.shared_journal = random.uniform() < 0.4;
    if spec.device.slice_ns == 0 && random.uniform() < 0.5 {
        spec.device.slice_ns = 10_000_000;
    }
    let mut n = || [1, 2, 4, 8, 16, 32][random.below(6)];
    let (a, b) = (n(), n());
    (
        format!(
            "seed {seed}: {:.0} IOPS {:.0} MB/s slice {} ms dir {} jrn {} ent {:.1} {:?} {a},{b}",
            spec.device.requests_per_second,
            spec.device.bytes_per_second / 1e6,
            spec.device.slice_ns / 1_000_000,
            u8::from(spec.syncs.direct),
            u8::from(spec.syncs.shared_journal),
            spec.syncs.entangled,
            spec.bulk.kind
        ),
        spec,
        phases(&[a, b, a], &[a], 20.0),
    )
}

fn law(name: &str) -> Law {
    match name {
        "guard" => Law::Guard(Box::new(Guard::new(Parameters::default()))),
        mb => Law::Static((mb.parse::<f64>().unwrap_or(16.0) * 1e6) as u64),
    }
}

fn pair(s: &Score) -> String {
    format!("{:3.0}/{:3.0}", 100.0 * s.kept().unwrap_or(0.0), 100.0 * s.used().unwrap_or(0.0))
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let which = args.get(1).map_or("cells", String::as_str);
    let from: u64 = args.get(2).and_then(|n| n.parse().ok()).unwrap_or(1);
    let to: u64 = args.get(3).and_then(|n| n.parse().ok()).unwrap_or(10);
    let seed = 5;
    let cells = if which == "random" { (from..to).map(random).collect() } else { cells() };
    let cells: Vec<Cell> = cells
        .into_iter()
        .filter(|c| which != "one" || args.get(2).is_some_and(|w| c.0.contains(w.as_str())))
        .collect();
    let all = ["guard", "2", "4", "8", "16", "32", "64"];
    let laws = if which == "guard" { &all[..1] } else { &all[..] };
    println!(
        "{:28} {:>7}  {}",
        "cell",
        "threads",
        laws.iter().map(|l| format!("{l:>7}")).collect::<Vec<_>>().join(" ")
    );
    let mut sums = vec![(0.0, 0.0, 0u32); laws.len()];
    let target = Parameters::default().target.p99;
    for (name, spec, script) in &cells {
        let idle = score::undisturbed(spec, script, seed);
        let histories: Vec<_> = laws.iter().map(|l| simulate(spec, script, law(l), seed)).collect();
        for phase in score::phases(&histories[0]).into_iter().filter(|p| p.writers > 0 && p.threads > 0) {
            let scores: Vec<Score> =
                histories.iter().map(|h| score::score(h, &idle, phase, target)).collect();
            println!(
                "{name:28} {:>7}  {}",
                phase.threads,
                scores.iter().map(pair).collect::<Vec<_>>().join(" ")
            );
            for (sum, s) in sums.iter_mut().zip(&scores) {
                *sum = (
                    sum.0 + s.kept().unwrap_or(0.0).min(1.0),
                    sum.1 + s.used().unwrap_or(0.0).min(1.2),
                    sum.2 + 1,
                );
            }
        }
        if which == "one" {
            for m in &histories[0].moves {
                println!("  {:6.1} {:?} {:.1} MB", m.at_ns as f64 / 1e9, m.branch, m.bytes as f64 / 1e6);
            }
            for s in &histories[0].seconds {
                println!(
                    "  s {:3} commits {} bulk {:.0} MB limit {:.1} MB thr {}",
                    s.at_ns / 1_000_000_000,
                    s.commits,
                    s.bulk_bytes as f64 / 1e6,
                    s.limit_bytes as f64 / 1e6,
                    s.threads
                );
            }
        }
    }
    println!(
        "{:28} {:>7}  {}",
        "mean",
        "",
        sums.iter()
            .map(|s| format!("{:3.0}/{:3.0}", 100.0 * s.0 / f64::from(s.2), 100.0 * s.1 / f64::from(s.2)))
            .collect::<Vec<_>>()
            .join(" ")
    );
}
