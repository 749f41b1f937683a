//! What weir adds after sysbench's report of a database run: latency by kind of statement, and a line for each figure
//! above it that sysbench would have measured otherwise.

use super::database::Database;
use super::fileio_extra::{head, row, too_short_for, wait_behind};
use super::general::General;
use weir_core::stats::Histogram;
use weir_oltp::processors::Processors;
use weir_oltp::{Kind, OltpRecord};

/// From here on a client takes so much of the machine that it may be what is measured.
const CLIENT_SHARE: f64 = 0.25;

/// Both blocks, ready to print.
pub fn blocks(general: &General, database: &Database, record: &OltpRecord) -> String {
    let mut text = String::from(
        "weir: latency by kind, events from intended start to end, statements from sending to the whole answer (ms)\n",
    );
    text.push_str(&head());
    for (kind, measured) in record.kinds.iter().filter(|(_, measured)| measured.latency.count() > 0) {
        text.push_str(&row(
            if *kind == Kind::Transaction { "event" } else { kind.name() },
            &measured.latency,
        ));
    }
    text.push_str("\nweir: how to read this report\n");
    for line in lines(general, database, record) {
        text.push_str(&format!("    - {line}\n"));
    }
    text
}

fn lines(general: &General, database: &Database, record: &OltpRecord) -> Vec<String> {
    let events = record.kinds.get(&Kind::Transaction).map(|measured| &measured.latency);
    let mut lines: Vec<String> = [
        retried(record),
        lateness(general, record),
        longest(record, events),
        client(record),
        events.and_then(|events| too_short_for(record.elapsed_ns, events.count(), "a server's caches")),
        record
            .error
            .as_ref()
            .map(|error| format!("The run ended early: {error}. What was measured is kept.")),
    ]
    .into_iter()
    .flatten()
    .collect();
    lines.extend(
        database.without_effect.iter().map(|name| format!("--{name} has no effect: weir does not do that.")),
    );
    lines.extend(record.notes.iter().map(|note| super::fileio_extra::sentence(&note.text)));
    lines
}

fn retried(record: &OltpRecord) -> Option<String> {
    (record.retried > 0).then(|| {
        let codes: Vec<String> =
            record.ignored_errors.iter().map(|(code, count)| format!("{count} x {code}")).collect();
        format!(
            "Events that took more than one attempt: {} ({}); their latency holds all of them.",
            record.retried,
            codes.join(", ")
        )
    })
}

fn lateness(general: &General, record: &OltpRecord) -> Option<String> {
    let late = record.lateness.as_ref().filter(|_| general.rate > 0)?;
    Some(format!(
        "Open loop: {} events were due, {} had not started at the end. Latency runs from the intended start; sysbench \
         stamps arrivals after its own sleep and drops what is queued at the end.",
        late.intended, late.not_started
    ))
}

fn longest(record: &OltpRecord, events: Option<&Histogram>) -> Option<String> {
    let oldest_ns = record.intervals.iter().map(|interval| interval.oldest_ns).max().unwrap_or(0);
    let longest_ns = oldest_ns.max(events.and_then(Histogram::max).unwrap_or(0));
    if record.lateness.is_some() { None } else { wait_behind(longest_ns, "event") }
}

/// The client's CPU is counted with the server's when both are on one machine.
fn client(record: &OltpRecord) -> Option<String> {
    // A machine that does not say is not judged.
    let all = Processors::of(record).filter(|all| all.busy > 0.0)?;
    let share = all.client / all.busy;
    (share > CLIENT_SHARE).then(|| {
        format!(
            "The client took {:.0} % of the CPU time that this machine spent: it may be what limits the run.",
            100.0 * share
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{Kept, Log};
    use crate::{Request, parse};
    use weir_oltp::record::KindRecord;

    #[test]
    fn remarks_fit_what_ran() {
        let words: Vec<String> =
            "oltp_read_write --mysql-compression=on --rate=10 run".split(' ').map(str::to_string).collect();
        let mut kept = Kept::default();
        let mut log = Log::new(&mut kept);
        let Ok(Request::Script(request)) = parse(&words, &|_| Err(String::new()), &mut log) else {
            panic!("parsed")
        };
        let database = Database::from_values(&request.values, &mut log).unwrap();
        let mut latency = Histogram::new();
        latency.record(2_000_000_000);
        let kind = KindRecord { latency, ..KindRecord::default() };
        let mut record: OltpRecord = serde_json::from_value(serde_json::json!({
            "schema": "x", "spec": {}, "server": { "version": "", "places": [], "tls": false, "variables": {} },
            "elapsed_ns": 5_000_000_000u64, "kinds": {}, "ignored_errors": { "1213": 3 }, "retried": 2,
            "reconnects": 0, "intervals": [], "threads": [], "lateness": null,
            "cpu": {
                "process_user_ns": 3_000_000_000u64, "process_system_ns": 1_000_000_000u64,
                "machine_busy_ns": 8_000_000_000u64, "processors": 2
            },
            "notes": [], "error": "gone"
        }))
        .unwrap();
        record.kinds = [(Kind::Transaction, kind.clone()), (Kind::Read, kind)].into();
        let text = blocks(&request.general, &database, &record);
        for said in [
            "    event              1       2000",
            "    read               1",
            "Events that took more than one attempt: 2 (3 x 1213)",
            "An event took 2",
            "The client took 50 %",
            "1 events: too short to see past a server's caches",
            "The run ended early: gone.",
            "--mysql-compression has no effect",
        ] {
            assert!(text.contains(said), "{said:?} is missing in\n{text}");
        }
    }
}
