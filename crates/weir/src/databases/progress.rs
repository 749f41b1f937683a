//! Progress of a run of transactions, and of tables being filled: one line that renews itself on a terminal.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use weir_core::units::{Nanos, grouped, per_second};
use weir_db::load::Event;
use weir_db::runner::{Observer, Tick};
use weir_oltp::{Kind, OltpSpec, schema};

use crate::progress::{Progress, STALL_NS, place_in_time};

impl Observer for Progress {
    fn tick(&mut self, tick: &Tick<'_>) {
        self.show(&line(tick));
    }
}

/// One second in one line.
fn line(tick: &Tick<'_>) -> String {
    let mut line = place_in_time(tick.spec.duration, tick.at_ns);
    // First, since a terminal cuts off the end of a long line.
    if tick.interval.oldest_ns > STALL_NS {
        line.push_str(&format!("  oldest in flight {}", Nanos(tick.interval.oldest_ns)));
    }
    let seconds = tick.interval.len_ns.max(1) as f64 / 1e9;
    let of = tick.interval.classes.get(&Kind::Transaction);
    let (count, p50, p99) = of.map_or((0, 0, 0), |of| (of.count, of.p50_ns, of.p99_ns));
    line.push_str(&format!("  {} tps", per_second(count as f64 / seconds)));
    if count > 0 {
        line.push_str(&format!("  p50 {}  p99 {}", Nanos(p50), Nanos(p99)));
    }
    for (n, what) in
        [(tick.queued, "due"), (tick.ignored_errors, "errors"), (tick.reconnects, "connections made again")]
    {
        if n > 0 {
            line.push_str(&format!("  {} {what}", grouped(n)));
        }
    }
    line
}

/// Progress over tables that several connections work on.
pub struct Loading {
    line: Mutex<Line>,
    since: Instant,
}

struct Line {
    progress: Progress,
    doing: &'static str,
    /// Rows of each table so far.
    rows: BTreeMap<u32, u64>,
    complete: u32,
    tables: u32,
    table_size: u64,
}

impl Loading {
    /// Nothing has happened yet.
    pub fn of(spec: &OltpSpec, doing: &'static str) -> Loading {
        let line = Line {
            progress: Progress::new(),
            doing,
            rows: BTreeMap::new(),
            complete: 0,
            tables: schema::tables(spec),
            table_size: spec.table_size,
        };
        Loading { line: Mutex::new(line), since: Instant::now() }
    }

    /// Something has happened to a table. Called from any thread.
    pub fn event(&self, event: Event) {
        // A line of progress is worth showing whatever became of the thread that held it.
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Rows { table, done, .. } => {
                line.rows.insert(table, done);
            }
            Event::Complete { table } => {
                let all = line.table_size;
                line.rows.insert(table, all);
                line.complete += 1;
            }
            Event::Creating { .. }
            | Event::Indexing { .. }
            | Event::Reading { .. }
            | Event::Dropping { .. } => {}
        }
        let text = line.text(event);
        line.progress.show(&text);
    }

    /// Removes the line; the time it all took.
    pub fn end(self) -> Nanos {
        self.line.into_inner().unwrap_or_else(PoisonError::into_inner).progress.clear();
        Nanos(u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Line {
    fn text(&self, event: Event) -> String {
        let rows: u64 = self.rows.values().sum();
        let all = u64::from(self.tables) * self.table_size;
        let indexing = if matches!(event, Event::Indexing { .. }) { ", indexing" } else { "" };
        format!(
            "{} tables: {} of {} complete, {} of {} rows ({} %){indexing}",
            self.doing,
            self.complete,
            self.tables,
            grouped(rows),
            grouped(all),
            rows * 100 / all.max(1)
        )
    }
}

#[cfg(test)]
mod tests {
    use weir_core::result::record::{Interval, IntervalClass};

    use super::*;

    #[test]
    fn a_second_says_what_matters_first() {
        let of =
            IntervalClass { count: 700, p50_ns: 2_000_000, p99_ns: 9_000_000, ..IntervalClass::default() };
        let interval = Interval {
            len_ns: 1_000_000_000,
            oldest_ns: 3_000_000_000,
            classes: [(Kind::Transaction, of)].into(),
            ..Interval::default()
        };
        let spec = OltpSpec::default();
        let latencies = BTreeMap::new();
        let tick = Tick {
            spec: &spec,
            at_ns: 4_000_000_000,
            interval: &interval,
            latencies: &latencies,
            ignored_errors: 2,
            reconnects: 0,
            queued: 1_500,
            threads: &Vec::new,
        };
        let expected =
            "4 of 10 s  oldest in flight 3.00 s  700 tps  p50 2.00 ms  p99 9.00 ms  1,500 due  2 errors";
        assert_eq!(line(&tick), expected);
        let silent = Interval { len_ns: 1_000_000_000, ..Interval::default() };
        assert_eq!(
            line(&Tick { interval: &silent, at_ns: -1, ignored_errors: 0, queued: 0, ..tick }),
            "warming up, 0 s left  0 tps"
        );
    }

    #[test]
    fn tables_add_up() {
        let loading = Loading::of(&OltpSpec { tables: 2, table_size: 100, ..OltpSpec::default() }, "filling");
        loading.event(Event::Rows { table: 0, done: 40, of: 100 });
        loading.event(Event::Complete { table: 1 });
        let line = loading.line.lock().unwrap();
        let expected = "filling tables: 1 of 2 complete, 140 of 200 rows (70 %), indexing";
        assert_eq!(line.text(Event::Indexing { table: 0 }), expected);
    }
}
