//! What is done beside transactions that nobody measures: they make a server what it is under load.

use std::time::{Duration, Instant};

use weir_core::units::Nanos;
use weir_db::runner::{self, READY_WITHIN, RunOptions, Silent};
use weir_db::vitals::{Unseen, snapshot, variables_that_matter};
use weir_db::{Connection, Server};
use weir_experiment::Transactions;
use weir_io::runner::{Stop, pause};
use weir_oltp::OltpSpec;
use weir_oltp::vitals::Settling;

use crate::servers::Logins;

/// Between two looks at how much a server has still to flush.
const LOOK: Duration = Duration::from_secs(1);

/// Does something beside transactions that go on until it is done, but no longer than `longest`; `number` gives them keys of
/// their own.
pub fn beside<T>(
    transactions: &Transactions,
    logins: &Logins,
    number: u64,
    longest: Duration,
    stop: &Stop,
    act: impl FnOnce() -> Result<T, String>,
) -> Result<T, String> {
    let servers = logins.named(&transactions.server).map_err(|error| format!("{error:#}"))?;
    let spec = OltpSpec {
        seed: transactions.spec.seed.wrapping_sub(number + 1),
        warmup: Nanos(0),
        duration: Nanos(longest.as_nanos() as u64),
        transactions: 0,
        ..transactions.spec.clone()
    };
    let enough = stop.of_one_run();
    let options = RunOptions::default();
    let (acted, ran) = std::thread::scope(|scope| {
        let run = || runner::run(&spec, &servers, &options, &mut Silent, &enough).map(drop);
        let running = scope.spawn(run);
        let acted = act();
        enough.request(1);
        (acted, running.join())
    });
    match ran {
        Ok(Ok(())) => acted,
        Ok(Err(error)) => acted.and(Err(error.to_string())),
        Err(_) => Err("transactions that nobody measures ended in a panic".to_string()),
    }
}

/// Runs transactions until the server flushes at a pace of its own. A sentence where it has not come to one by then.
pub fn settle(
    transactions: &Transactions,
    logins: &Logins,
    number: u64,
    longest: Duration,
    stop: &Stop,
) -> Result<Option<String>, String> {
    let servers = logins.named(&transactions.server).map_err(|error| format!("{error:#}"))?;
    let Some(server) = servers.first() else { return Ok(None) };
    let settled = beside(transactions, logins, number, longest * 2, stop, || settled(server, longest, stop))?;
    let told = || {
        format!(
            "dirty pages or the log still grew or shrank after {} under load",
            Nanos(longest.as_nanos() as u64)
        )
    };
    Ok((!settled).then(told))
}

/// Looks on; whether it has settled.
fn settled(server: &Server, longest: Duration, stop: &Stop) -> Result<bool, String> {
    let failed = |error| format!("cannot read the server's counters: {error}");
    // Settings are in force while it is asked: a server that never answers must not keep them so.
    let mut connection = Connection::open(&server.answering_within(READY_WITHIN)).map_err(failed)?;
    let variables = variables_that_matter(&mut connection).map_err(failed)?;
    let (mut settling, mut unseen) = (Settling::default(), Unseen::default());
    let begun = Instant::now();
    while begun.elapsed() < longest {
        if !pause(stop, LOOK) {
            return Ok(true);
        }
        if settling.look(&snapshot(&mut connection, &mut unseen).map_err(failed)?, &variables) {
            return Ok(true);
        }
    }
    Ok(false)
}
