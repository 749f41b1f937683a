//! Watches a trial's job: notes the machine, shows how it goes, and ends what is dangerous or stuck.

use weir_core::result::record::Class;
use weir_core::units::{Bytes, Nanos, per_second};
use weir_core::workload::Job;
use weir_db::runner;
use weir_io::runner::{Observer, Stop, Tick};
use weir_oltp::Kind;

use super::progress::Steps;
use super::scene::Scene;

/// Operations that are still stuck after their time and this share of it are let go by ending the floods.
const GRACE: f64 = 0.4;

/// The watcher.
pub struct Watch<'w, 'a> {
    /// The machine.
    pub scene: &'w mut Scene<'a>,
    /// Where words go.
    pub progress: &'w mut Steps,
    /// Ends this trial alone.
    pub stop: &'w Stop,
    /// Abort when an operation is outstanding longer than this.
    pub abort_age_ns: Option<u64>,
    /// Why the trial was aborted, if it was.
    pub aborted: Option<String>,
    /// The floods were ended because operations were still stuck behind them.
    pub let_go: bool,
}

impl<'w, 'a> Watch<'w, 'a> {
    /// Nothing seen yet.
    pub fn new(
        scene: &'w mut Scene<'a>,
        progress: &'w mut Steps,
        stop: &'w Stop,
        abort_age_ns: Option<u64>,
    ) -> Watch<'w, 'a> {
        Watch { scene, progress, stop, abort_age_ns, aborted: None, let_go: false }
    }

    fn look(&mut self, rate: &str, at_ns: i64, oldest_ns: u64, duration: Nanos) {
        let dirty = self.scene.note();
        self.progress.detail(&format!(": {rate}, {} dirty", Bytes(dirty >> 20 << 20)));
        if let Some(most_ns) = self.abort_age_ns.filter(|most| oldest_ns > *most && self.aborted.is_none()) {
            self.abort(oldest_ns, most_ns);
        }
        let over = at_ns as f64 > duration.0 as f64 * (1.0 + GRACE);
        if over || self.stop.requested().is_some() {
            let ended = self.scene.end_floods();
            self.let_go |= ended && over && oldest_ns > 0;
        }
    }

    fn abort(&mut self, age_ns: u64, most_ns: u64) {
        let (age, most) = (Nanos(age_ns), Nanos(most_ns));
        self.aborted = Some(format!("an operation was in flight for {age}, and at most {most} are allowed"));
        // The floods first: what is stuck behind them ends only then.
        self.scene.end_floods();
        self.stop.request(1);
    }
}

impl runner::Observer for Watch<'_, '_> {
    fn measuring(&mut self) {
        self.scene.begin();
    }

    fn tick(&mut self, tick: &runner::Tick<'_>) {
        let done = tick.interval.classes.get(&Kind::Transaction).map_or(0, |class| class.count);
        let rate = done as f64 * 1e9 / tick.interval.len_ns.max(1) as f64;
        let text = format!("{} transactions/s", per_second(rate));
        self.look(&text, tick.at_ns, tick.interval.oldest_ns, tick.spec.duration);
    }
}

impl Observer for Watch<'_, '_> {
    fn measuring(&mut self, _job: &Job) {
        self.scene.begin();
    }

    fn tick(&mut self, tick: &Tick<'_>) {
        self.look(&rate_text(tick), tick.at_ns, tick.interval.oldest_ns, tick.job.duration);
    }
}

fn rate_text(tick: &Tick<'_>) -> String {
    let rate = |class: &Class| {
        let done = tick.interval.classes.get(class)?.count;
        let rate = done as f64 * 1e9 / tick.interval.len_ns.max(1) as f64;
        Some(format!("{} {}s/s", per_second(rate), class.name()))
    };
    [Class::Commit, Class::Read, Class::Write].iter().find_map(rate).unwrap_or_else(|| "nothing done".into())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use weir_core::target::TargetFacts;
    use weir_host::Host;

    use super::*;

    #[test]
    fn latencies_that_the_end_of_a_flood_cut_short_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let (host, target, stop) = (Host::live(), TargetFacts::default(), Stop::default());
        let duration = Nanos(6_000_000_000);
        for (at_ns, oldest_ns, is_let_go) in [
            (8_000_000_000, 7_000_000_000, false),
            (9_000_000_000, 0, false),
            (9_000_000_000, 8_900_000_000, true),
        ] {
            let mut scene = Scene::new(&host, &target, &stop);
            scene.flood(&["dd:size=1M,bs=64k".to_string()], folder.path(), Duration::ZERO).unwrap();
            let mut progress = Steps::new();
            let mut watch = Watch::new(&mut scene, &mut progress, &stop, None);
            watch.look("", at_ns, oldest_ns, duration);
            // The next one finds no flood.
            watch.look("", at_ns + 1, 1, duration);
            assert_eq!(watch.let_go, is_let_go, "{at_ns} {oldest_ns}");
        }
    }
}
