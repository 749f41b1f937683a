//! The workload that a command shall run.

use weir_core::units::Nanos;
use weir_core::workload::spec::{Arrival, Rate};
use weir_oltp::{OltpSpec, Script};

use crate::cli::db::workload::{CourseArgs, MixArgs, TableArgs, WorkloadArgs};

/// What was typed over the defaults. Not yet validated.
pub fn spec(script: Option<Script>, args: &WorkloadArgs) -> OltpSpec {
    let spec = with_tables(OltpSpec::default(), &args.tables);
    let spec = OltpSpec { script: script.unwrap_or(spec.script), ..spec };
    with_course(with_mix(spec, &args.mix), &args.course)
}

/// An option that was typed and is about weir's own tables and transactions: a user's script has its own.
pub fn unknown_to_scripts(args: &WorkloadArgs) -> Option<String> {
    let typed = [serde_json::to_value(&args.tables), serde_json::to_value(&args.mix)];
    let mut typed = typed.iter().flatten().filter_map(|options| options.as_object()).flatten();
    typed.find(|(_, value)| !value.is_null()).map(|(name, _)| format!("--{name}"))
}

/// Tables only.
pub fn tables(args: &TableArgs, threads: Option<u32>, seed: Option<u64>) -> OltpSpec {
    let spec = with_tables(OltpSpec::default(), args);
    OltpSpec { threads: threads.unwrap_or(spec.threads), seed: seed.unwrap_or(spec.seed), ..spec }
}

fn with_tables(spec: OltpSpec, args: &TableArgs) -> OltpSpec {
    OltpSpec {
        tables: args.tables.unwrap_or(spec.tables),
        table_size: args.table_size.unwrap_or(spec.table_size),
        auto_inc: args.auto_inc.unwrap_or(spec.auto_inc),
        secondary: args.secondary.unwrap_or(spec.secondary),
        create_secondary: args.create_secondary.unwrap_or(spec.create_secondary),
        storage_engine: args.storage_engine.clone().unwrap_or(spec.storage_engine),
        ..spec
    }
}

fn with_mix(spec: OltpSpec, args: &MixArgs) -> OltpSpec {
    OltpSpec {
        point_selects: args.point_selects.unwrap_or(spec.point_selects),
        range_selects: args.range_selects.unwrap_or(spec.range_selects),
        simple_ranges: args.simple_ranges.unwrap_or(spec.simple_ranges),
        sum_ranges: args.sum_ranges.unwrap_or(spec.sum_ranges),
        order_ranges: args.order_ranges.unwrap_or(spec.order_ranges),
        distinct_ranges: args.distinct_ranges.unwrap_or(spec.distinct_ranges),
        range_size: args.range_size.unwrap_or(spec.range_size),
        index_updates: args.index_updates.unwrap_or(spec.index_updates),
        non_index_updates: args.non_index_updates.unwrap_or(spec.non_index_updates),
        delete_inserts: args.delete_inserts.unwrap_or(spec.delete_inserts),
        random_points: args.random_points.unwrap_or(spec.random_points),
        number_of_ranges: args.number_of_ranges.unwrap_or(spec.number_of_ranges),
        delta: args.delta.unwrap_or(spec.delta),
        skip_trx: args.skip_trx.unwrap_or(spec.skip_trx),
        prepared: !args.no_prepared,
        keys: args.keys.unwrap_or(spec.keys),
        seed: args.seed.unwrap_or(spec.seed),
        ..spec
    }
}

fn with_course(spec: OltpSpec, args: &CourseArgs) -> OltpSpec {
    let transactions = args.transactions.unwrap_or(spec.transactions);
    // A user who asks for a number of transactions wants all of them.
    let default = if transactions > 0 { Nanos(0) } else { spec.duration };
    let arrival = args.arrival.unwrap_or(Arrival::Constant);
    OltpSpec {
        threads: args.threads.unwrap_or(spec.threads),
        duration: args.duration.unwrap_or(default),
        transactions,
        warmup: args.warmup.unwrap_or(spec.warmup),
        rate: args.rate.map(|iops| Rate { iops, arrival }),
        late_after: args.late_after.unwrap_or(spec.late_after),
        reconnect: args.reconnect,
        statement_timeout: args.statement_timeout.unwrap_or(spec.statement_timeout),
        ..spec
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        run: crate::cli::db::workload::RunArgs,
    }

    fn check(line: &str) -> OltpSpec {
        let args = Line::try_parse_from(line.split(' ')).unwrap_or_else(|error| panic!("{line}: {error}"));
        spec(args.run.script, &args.run.workload)
    }

    #[test]
    fn options_are_sysbenchs_and_so_are_defaults() {
        assert_eq!(check("run"), OltpSpec::default());
        let all = check(
            "run oltp_read_only --tables 10 --table-size=1000000 --threads 8 --time 60 --events 0 --keys zipf:0.99 \
             --no-prepared --range-selects=false --skip-trx --point-selects 5 --rate 500 --arrival poisson",
        );
        assert_eq!(
            (all.script, all.tables, all.table_size, all.threads),
            (Script::ReadOnly, 10, 1_000_000, 8)
        );
        assert_eq!((all.duration, all.point_selects, all.skip_trx), (Nanos::from_secs(60), 5, true));
        assert!(!all.prepared && !all.range_selects);
        assert_eq!(all.rate, Some(Rate { iops: 500.0, arrival: Arrival::Poisson }));
    }

    #[test]
    fn options_of_weirs_own_transactions_are_none_of_a_script() {
        for (line, expected) in [
            ("run --tables 1", Some("--tables")),
            ("run --auto-inc=false", Some("--auto-inc")),
            ("run --sysbench-tables", Some("--sysbench-tables")),
            ("run --keys zipf:0.9", Some("--keys")),
            ("run --threads 8 --time 5 --rate 9 --reconnect --seed 3 --no-prepared", None),
        ] {
            let args = Line::try_parse_from(line.split(' ')).unwrap();
            assert_eq!(unknown_to_scripts(&args.run.workload).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn a_number_of_transactions_takes_the_limit_of_time_away() {
        assert_eq!(check("run --events 100").duration, Nanos(0));
        assert_eq!(check("run --events 100 --time 5").duration, Nanos::from_secs(5));
    }
}
