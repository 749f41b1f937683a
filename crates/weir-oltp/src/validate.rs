//! Workloads that make no sense, each with a sentence that says why and a hint.

use super::{OltpSpec, Script, statement_order};
use weir_core::workload::SpecError;
use weir_core::workload::validate::{check_distribution, check_rate, fail_if};

/// The largest value of the column `id`, a signed INTEGER on both servers.
pub const ID_MAX: u64 = i32::MAX as u64;
/// Both protocols count the values of a prepared statement in 16 bits.
const VALUES_MAX: u32 = 65_535;
/// More threads than any kernel gives one process by default.
const THREADS_MAX: u32 = 30_000;

/// Looks at everything that can be judged without a server; the first mistake found is returned.
pub fn spec(spec: &OltpSpec) -> Result<(), SpecError> {
    numbers(spec)?;
    values(spec)?;
    fail_if(
        statement_order::of(spec).iter().all(|part| part.kind.tally() == Some(super::kind::Tally::Other)),
        || "a transaction without statements does nothing".into(),
        "ask for at least one select, range, update or delete-insert",
    )?;
    let engine = &spec.storage_engine;
    fail_if(
        engine.is_empty() || !engine.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'),
        || format!("expected the name of a storage engine, got `{engine}`"),
        "a name has letters, digits and _ only, for example innodb or rocksdb",
    )?;
    check_distribution(spec.keys)?;
    spec.rate.map_or(Ok(()), check_rate)
}

fn numbers(spec: &OltpSpec) -> Result<(), SpecError> {
    fail_if(spec.threads == 0, || "0 connections run nothing".into(), "use at least one thread")?;
    fail_if(
        spec.threads > THREADS_MAX,
        || format!("{} threads are more than this process may have", spec.threads),
        "a connection is a thread: use 30000 at most",
    )?;
    fail_if(spec.tables == 0, || "0 tables hold nothing".into(), "use at least one table")?;
    fail_if(
        spec.table_size == 0 || spec.table_size > ID_MAX,
        || format!("a table cannot have {} rows", spec.table_size),
        "the rows' numbers are of type INTEGER: 1 to 2147483647",
    )?;
    fail_if(
        spec.range_size == 0,
        || "a range of 0 rows reads nothing".into(),
        "a range has at least one row",
    )?;
    let rows = spec.table_size.saturating_mul(u64::from(spec.tables));
    fail_if(
        spec.script == Script::Commit && u64::from(spec.threads) > rows,
        || format!("{} connections cannot each have a row of their own in {rows} rows", spec.threads),
        "use a larger table-size; commits on shared rows would wait for locks and not for the disk",
    )
}

fn values(spec: &OltpSpec) -> Result<(), SpecError> {
    let (what, count, each) = match spec.script {
        Script::SelectRandomPoints => ("points", spec.random_points, 1),
        Script::SelectRandomRanges => ("ranges", spec.number_of_ranges, 2),
        _ => return Ok(()),
    };
    fail_if(count == 0, || format!("0 {what} select nothing"), "use at least one")?;
    fail_if(
        count > VALUES_MAX / each,
        || format!("{count} {what} are more than a prepared statement takes"),
        "a statement has at most 65535 values",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::workload::spec::{Arrival, Distribution, Rate};

    #[test]
    fn what_makes_no_sense_is_refused_and_says_why() {
        let check = |change: fn(&mut OltpSpec), expected: &str| {
            let mut bad = OltpSpec::default();
            change(&mut bad);
            let error = spec(&bad).expect_err(expected);
            assert!(error.what.contains(expected), "{}: lacks {expected}", error.what);
            assert!(error.hint.is_some(), "{expected}");
        };
        check(|s| s.threads = 0, "0 connections");
        check(|s| s.threads = 1_000_000, "threads");
        check(|s| s.tables = 0, "0 tables");
        check(|s| s.table_size = 0, "0 rows");
        check(|s| s.table_size = 1 << 31, "2147483648 rows");
        check(|s| s.range_size = 0, "range of 0");
        check(|s| (s.script, s.table_size, s.threads) = (Script::Commit, 3, 4), "row of their own");
        check(|s| (s.script, s.random_points) = (Script::SelectRandomPoints, 0), "0 points");
        check(|s| (s.script, s.number_of_ranges) = (Script::SelectRandomRanges, 40_000), "40000 ranges");
        check(
            |s| (s.script, s.point_selects, s.range_selects) = (Script::ReadOnly, 0, false),
            "without statements",
        );
        check(|s| s.storage_engine = "innodb; drop".to_string(), "storage engine");
        check(|s| s.keys = Distribution::Zipf(0.0), "zipf");
        check(|s| s.rate = Some(Rate { iops: 0.0, arrival: Arrival::Poisson }), "rate of 0");
    }

    #[test]
    fn what_sysbench_runs_by_default_is_accepted() {
        for script in [
            Script::ReadWrite,
            Script::PointSelect,
            Script::BulkInsert,
            Script::SelectRandomPoints,
            Script::SelectRandomRanges,
            Script::Commit,
        ] {
            assert_eq!(spec(&OltpSpec { script, ..OltpSpec::default() }), Ok(()));
        }
    }
}
