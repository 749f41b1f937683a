//! Watches for some seconds and prints what was counted: `stages SECONDS [full] [slow NS]`.
use std::time::Duration;

use weir_blocktrace::{Class, Stage};
use weir_kernel::live::{Detail, Options, StageSession};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let seconds: f64 = words.first().map_or(Ok(1.0), |word| word.parse())?;
    let detail = if words.iter().any(|word| word == "full") { Detail::Full } else { Detail::Default };
    let slow = words.iter().position(|word| word == "slow").and_then(|at| words.get(at + 1));
    let slow_ns = slow.map(|word| word.parse()).transpose()?;
    let mut session = StageSession::start(&Options { detail, slow_ns, ..Options::default() })?;
    for _ in 0..10 {
        std::thread::sleep(Duration::from_secs_f64(seconds / 10.0));
        session.snapshot();
    }
    let snapshot = session.snapshot();
    println!(
        "{:?} {:?} {:?} {:?} {:?}",
        snapshot.unit, snapshot.start_stamp, snapshot.issue_stamp, snapshot.losses, snapshot.overhead
    );
    for device in snapshot.table.devices() {
        for class in Class::ALL {
            let cell = snapshot.table.of_class(device, class);
            if cell.ios == 0 && cell.stage(Stage::D2C).is_empty() {
                continue;
            }
            println!(
                "{device} {}: {} I/Os, {} bytes, {} errors",
                class.name(),
                cell.ios,
                cell.bytes,
                cell.errors
            );
            for stage in Stage::ALL {
                let d = cell.stage(stage);
                if !d.is_empty() {
                    let [p50, p99] = d.quantiles([0.5, 0.99]);
                    println!(
                        "  {:5} n {} min {} mean {:.0} p50 {p50} p99 {p99} max {}",
                        stage.name(),
                        d.count(),
                        d.min_ns(),
                        d.mean_ns(),
                        d.max_ns()
                    );
                }
            }
        }
    }
    for slow in session.slow() {
        println!("{slow:?}");
    }
    Ok(())
}
