//! What is measured in which time. Pure: from the time and the options to a list of steps.

use weir_core::units::{Bytes, Nanos};
use weir_verdict::notes::SyncPath;

const SECOND: u64 = 1_000_000_000;
const K4: u64 = 4 << 10;
const K16: u64 = 16 << 10;

/// How thorough, and how long that takes at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode {
    /// `quick`, `default`, `thorough`.
    pub name: &'static str,
    /// The time asked for.
    pub budget_ns: u64,
}

impl Mode {
    /// Half a minute.
    pub const QUICK: Mode = Mode { name: "quick", budget_ns: 30 * SECOND };
    /// Three minutes.
    pub const DEFAULT: Mode = Mode { name: "default", budget_ns: 180 * SECOND };
    /// Ten minutes.
    pub const THOROUGH: Mode = Mode { name: "thorough", budget_ns: 600 * SECOND };

    /// A map.
    pub const MAP: Mode = Mode { name: "map", budget_ns: 180 * SECOND };
    /// A map of fewer points.
    pub const MAP_QUICK: Mode = Mode { name: "map-quick", budget_ns: 60 * SECOND };

    /// Writes until the rate has fallen, for so long at most.
    pub fn sustained(longest: Nanos) -> Mode {
        Mode { name: "sustained", budget_ns: longest.0 }
    }

    /// The mode whose steps suit a time, stretched or shrunk to it.
    pub fn of(budget: Nanos) -> Mode {
        let nearest = match budget.0 {
            ns if ns < 75 * SECOND => Mode::QUICK,
            ns if ns < 400 * SECOND => Mode::DEFAULT,
            _ => Mode::THOROUGH,
        };
        Mode { budget_ns: budget.0, ..nearest }
    }
}

/// Everything to be measured before the flood, in order, and the flood.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The mode.
    pub mode: Mode,
    /// Size of the test file, if writing it does not take too long.
    pub file_size: Bytes,
    /// Longest time for writing it.
    pub layout_ns: u64,
    /// How long weir watches what others do.
    pub watch_ns: u64,
    /// The steps, each of its own length.
    pub steps: Vec<Step>,
    /// The flood.
    pub flood: FloodPlan,
    /// Length of each step of a product, where one is examined.
    pub product_step_ns: u64,
}

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What to do.
    pub what: What,
    /// For how long.
    pub duration_ns: u64,
    /// Left out first when time runs short.
    pub optional: bool,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A depth of the random-read curve.
    Read(u32),
    /// A depth of a random-write curve, with its block size.
    Write(u32, u64),
    /// Commits.
    Commit {
        /// How writes are made durable.
        path: SyncPath,
        /// Size.
        block: u64,
        /// Threads.
        threads: u32,
    },
    /// Sequential reads.
    BulkRead,
    /// Sequential writes over existing blocks.
    BulkWrite,
}

/// The phases of the flood.
#[derive(Debug, Clone, PartialEq)]
pub struct FloodPlan {
    /// Numbers of committing threads, the one that matters most first.
    pub threads: Vec<u32>,
    /// Commits alone.
    pub idle_ns: u64,
    /// Longest time for dirty pages to build up.
    pub build_up_ns: u64,
    /// Commits under the flood.
    pub flood_ns: u64,
    /// The flood alone under a lowered limit, before commits are measured.
    pub settle_ns: u64,
    /// Commits under the flood with a lowered limit.
    pub rescue_ns: u64,
    /// Longest wait for write-back after a flood.
    pub drain_ns: u64,
    /// Lowered limits as parts of the one derived from the device's rate: 1.0 is that one.
    pub limits: Vec<f64>,
}

impl FloodPlan {
    /// Expected time of everything.
    pub fn expected_ns(&self, with_rescue: bool) -> u64 {
        let runs = self.threads.len() as u64;
        let rescue = self.limits.len() as u64 * (self.settle_ns + runs * self.rescue_ns + self.drain_ns / 4);
        let before = runs * (self.idle_ns + self.flood_ns) + self.build_up_ns / 2 + self.drain_ns / 2;
        before + if with_rescue { rescue } else { 0 }
    }
}

impl FloodPlan {
    /// Steps that are announced up to the first wait for write-back: commits idle and under the flood, its build-up, the wait.
    pub fn steps(&self) -> usize {
        2 * self.threads.len() + 2
    }

    /// The same of each lowered limit: the flood alone, commits, the wait.
    pub fn steps_of_limit(&self) -> usize {
        self.threads.len() + 2
    }

    /// The same of the trial as a whole, which waits for a quiet second first.
    pub fn steps_of_rescue(&self) -> usize {
        1 + self.limits.len() * self.steps_of_limit()
    }
}

impl Plan {
    /// Expected time of everything: half of what the test file may take, the steps, and the flood where there is one.
    pub fn expected_ns(&self, with_flood: bool, with_rescue: bool) -> u64 {
        let steps: u64 = self.steps.iter().map(|step| step.duration_ns).sum();
        let flood = if with_flood { self.flood.expected_ns(with_rescue) } else { 0 };
        self.watch_ns + self.layout_ns / 2 + steps + flood
    }
}

/// The plan of a mode. `size` is what the user asked for.
pub fn plan(mode: Mode, size: Option<Bytes>) -> Plan {
    let base = match mode.name {
        "quick" => quick(),
        "thorough" => thorough(),
        _ => default(),
    };
    let mut plan = stretched(base, mode);
    if let Some(size) = size {
        plan.file_size = size;
    }
    plan
}

/// The plan of a product's examination with so many steps: a test file, then the steps, none longer than its figures need.
pub fn of_product(mode: Mode, size: Option<Bytes>, steps: usize) -> Plan {
    let (file, most) = match mode.name {
        "quick" => (256 << 20, 3.0),
        "thorough" => (1 << 30, 60.0),
        _ => (512 << 20, 12.0),
    };
    let base = plan(mode, None);
    let layout_ns = base.layout_ns.min(mode.budget_ns / 6).max(seconds(4.0).min(mode.budget_ns / 6));
    let left_ns = mode.budget_ns.saturating_sub(base.watch_ns + layout_ns);
    let step_ns = (left_ns / steps.max(1) as u64).min(seconds(most));
    Plan {
        file_size: size.unwrap_or(Bytes(file)),
        layout_ns,
        steps: Vec::new(),
        product_step_ns: step_ns,
        ..base
    }
}

/// The plan of a sustained examination: a test file larger than most caches of controllers, and no other step. Writing it
/// spends credit too, so it takes no more than a tenth of the time.
pub fn of_sustained(mode: Mode, size: Option<Bytes>) -> Plan {
    Plan {
        mode,
        file_size: size.unwrap_or(Bytes(1 << 30)),
        layout_ns: (mode.budget_ns / 10).clamp(seconds(3.0), seconds(20.0)),
        watch_ns: seconds(1.0),
        steps: Vec::new(),
        ..default()
    }
}

/// The plan of a map: a test file, and no step that is known beforehand.
pub fn of_map(mode: Mode, size: Option<Bytes>) -> Plan {
    Plan {
        mode,
        file_size: size.unwrap_or(Bytes(1 << 30)),
        layout_ns: mode.budget_ns / 10,
        watch_ns: seconds(1.0),
        steps: Vec::new(),
        ..default()
    }
}

fn quick() -> Plan {
    let mut steps = reads(&[1, 8, 32, 128], 0.7);
    steps.extend([commit(SyncPath::Buffered, K16, 1, 1.2), commit(SyncPath::Buffered, K16, 10, 1.2)]);
    steps.extend(writes(&[1, 8, 32], K4, 0.7));
    steps.extend([commit(SyncPath::Buffered, K4, 1, 1.0), commit(SyncPath::Direct, K16, 1, 1.0)]);
    steps.push(step(What::BulkRead, 1.0));
    Plan {
        mode: Mode::QUICK,
        file_size: Bytes(512 << 20),
        layout_ns: seconds(2.5),
        watch_ns: seconds(1.0),
        steps,
        flood: FloodPlan {
            threads: vec![10],
            idle_ns: seconds(1.2),
            build_up_ns: seconds(3.5),
            flood_ns: seconds(3.5),
            settle_ns: seconds(0.8),
            rescue_ns: seconds(2.5),
            drain_ns: seconds(3.0),
            limits: vec![1.0],
        },
        product_step_ns: 0,
    }
}

fn default() -> Plan {
    let mut steps = reads(&[1, 2, 4, 8, 16, 32, 64, 128], 2.5);
    steps.extend([commit(SyncPath::Buffered, K16, 1, 4.0), commit(SyncPath::Buffered, K16, 10, 4.0)]);
    steps.extend(writes(&[1, 2, 4, 8, 16, 32, 64, 128], K4, 2.0));
    steps.extend([commit(SyncPath::Buffered, K4, 1, 3.0), commit(SyncPath::Buffered, K4, 10, 3.0)]);
    steps.extend([commit(SyncPath::Direct, K16, 1, 3.0), commit(SyncPath::DirectDsync, K16, 1, 3.0)]);
    steps.extend([step(What::BulkRead, 3.0), step(What::BulkWrite, 3.0)]);
    steps.extend(writes(&[1, 8, 32], K16, 2.0).into_iter().map(optional));
    Plan {
        mode: Mode::DEFAULT,
        file_size: Bytes(2 << 30),
        layout_ns: seconds(15.0),
        watch_ns: seconds(2.0),
        steps,
        flood: FloodPlan {
            threads: vec![10, 1],
            idle_ns: seconds(5.0),
            build_up_ns: seconds(12.0),
            flood_ns: seconds(10.0),
            settle_ns: seconds(2.0),
            rescue_ns: seconds(8.0),
            drain_ns: seconds(10.0),
            limits: vec![1.0],
        },
        product_step_ns: 0,
    }
}

fn thorough() -> Plan {
    let depths = [1, 2, 4, 8, 16, 32, 64, 128];
    let mut steps = reads(&depths, 6.0);
    for path in [SyncPath::Buffered, SyncPath::Direct, SyncPath::DirectDsync] {
        for (block, threads) in [(K16, 1), (K16, 10), (K4, 1), (K4, 10)] {
            steps.push(commit(path, block, threads, 8.0));
        }
    }
    steps.extend(writes(&depths, K4, 6.0));
    steps.extend([step(What::BulkRead, 8.0), step(What::BulkWrite, 8.0)]);
    steps.extend(writes(&depths, K16, 4.0).into_iter().map(optional));
    Plan {
        mode: Mode::THOROUGH,
        file_size: Bytes(8 << 30),
        layout_ns: seconds(45.0),
        watch_ns: seconds(3.0),
        steps,
        flood: FloodPlan {
            threads: vec![10, 1],
            idle_ns: seconds(12.0),
            build_up_ns: seconds(20.0),
            flood_ns: seconds(18.0),
            settle_ns: seconds(3.0),
            rescue_ns: seconds(10.0),
            drain_ns: seconds(15.0),
            limits: vec![0.4, 1.0, 4.0],
        },
        product_step_ns: 0,
    }
}

/// Multiplies all times so that the whole fits the mode's budget.
fn stretched(mut plan: Plan, mode: Mode) -> Plan {
    let factor = mode.budget_ns as f64 / plan.mode.budget_ns as f64;
    let stretch = |ns: &mut u64| *ns = (*ns as f64 * factor) as u64;
    stretch(&mut plan.layout_ns);
    plan.steps.iter_mut().for_each(|step| stretch(&mut step.duration_ns));
    let flood = &mut plan.flood;
    for ns in [
        &mut flood.idle_ns,
        &mut flood.build_up_ns,
        &mut flood.flood_ns,
        &mut flood.settle_ns,
        &mut flood.rescue_ns,
        &mut flood.drain_ns,
    ] {
        stretch(ns);
    }
    plan.mode = mode;
    plan
}

fn seconds(seconds: f64) -> u64 {
    (seconds * SECOND as f64) as u64
}

fn step(what: What, length: f64) -> Step {
    Step { what, duration_ns: seconds(length), optional: false }
}

fn optional(step: Step) -> Step {
    Step { optional: true, ..step }
}

fn commit(path: SyncPath, block: u64, threads: u32, length: f64) -> Step {
    step(What::Commit { path, block, threads }, length)
}

fn reads(depths: &[u32], length: f64) -> Vec<Step> {
    depths.iter().map(|depth| step(What::Read(*depth), length)).collect()
}

fn writes(depths: &[u32], block: u64, length: f64) -> Vec<Step> {
    depths.iter().map(|depth| step(What::Write(*depth, block), length)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A product's examination keeps within its time whatever the number of steps.
    #[test]
    fn plans_of_products_fit_their_time() {
        let modes = [Mode::QUICK, Mode::DEFAULT, Mode::THOROUGH, Mode::of(Nanos::from_secs(20))];
        for (mode, steps) in modes.into_iter().flat_map(|mode| [(mode, 2), (mode, 8)]) {
            let plan = of_product(mode, None, steps);
            let whole = plan.watch_ns + plan.layout_ns + steps as u64 * plan.product_step_ns;
            assert!(whole <= mode.budget_ns && plan.product_step_ns >= SECOND, "{mode:?} {steps}: {whole}");
        }
    }

    #[test]
    fn the_steps_of_a_flood_are_counted_before_it() {
        // Idle, build-up, under the flood, drain; quiet, build-up, commits, drain.
        let count = |mode| {
            let flood = plan(mode, None).flood;
            (flood.steps(), flood.steps_of_rescue())
        };
        assert_eq!(count(Mode::QUICK), (4, 4));
        assert_eq!(count(Mode::DEFAULT), (6, 5));
        assert_eq!(count(Mode::THOROUGH), (6, 13));
    }

    /// Every plan with all its steps and a rescue fits its budget; a step is never too short to mean anything.
    #[test]
    fn plans_fit_their_time() {
        let modes = [Mode::QUICK, Mode::DEFAULT, Mode::THOROUGH];
        let asked = [20, 60, 90, 300, 1200].map(|s| Mode::of(Nanos::from_secs(s)));
        for mode in modes.into_iter().chain(asked) {
            let plan = plan(mode, None);
            let steps: u64 = plan.steps.iter().map(|s| s.duration_ns).sum();
            let whole = plan.watch_ns + plan.layout_ns + steps + plan.flood.expected_ns(true);
            assert!(whole <= mode.budget_ns, "{mode:?}: {whole}");
            assert!(whole * 3 >= mode.budget_ns * 2, "{mode:?} wastes time: {whole}");
            assert!(plan.steps.iter().all(|s| s.duration_ns >= SECOND * 2 / 5), "{mode:?}");
        }
    }
}
