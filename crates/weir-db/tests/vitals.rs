//! What real servers say of themselves.
#![allow(
    clippy::unwrap_used,
    reason = "test code throughout; clippy knows that only of functions under #[test]"
)]

use std::io::Write;
use weir_db::Connection;
use weir_db::sandbox::{Binaries, Flavour, Sandbox, SandboxSpec};
use weir_db::vitals::{Watch, variables_that_matter};
use weir_oltp::Dialect;

#[test]
fn counters_grow_with_work_and_variables_are_there() {
    for flavour in [Flavour::Mariadb, Flavour::Postgres] {
        if let Err(error) = Binaries::find(flavour, None) {
            _ = writeln!(
                std::io::stderr(),
                "not run: counters_grow_with_work_and_variables_are_there ({flavour}): {error}"
            );
            continue;
        }
        let parent = tempfile::tempdir().unwrap();
        let sandbox = Sandbox::start(&SandboxSpec::new(flavour, parent.path().join("d")), &|| false).unwrap();
        let mut connection = Connection::open(&sandbox.server()).unwrap();
        let mut watch = Watch::begin(Connection::open(&sandbox.server()).unwrap()).unwrap();

        if flavour == Flavour::Mariadb {
            connection.run("CREATE DATABASE t").unwrap();
            connection.run("USE t").unwrap();
        }
        connection.run("CREATE TABLE a (id int PRIMARY KEY, c char(200))").unwrap();
        for id in 0..300 {
            connection.run(&format!("INSERT INTO a VALUES ({id}, 'x')")).unwrap();
            if id % 100 == 0 {
                watch.look(&mut |thread| (thread, None)).unwrap();
            }
        }
        if sandbox.server().dialect == Dialect::Postgres {
            // Backends hand in their counts when they have been idle for a while, and when they end.
            drop(connection);
            connection = Connection::open(&sandbox.server()).unwrap();
            connection.run("SELECT pg_stat_clear_snapshot(), pg_sleep(1.5)").unwrap();
        }
        let vitals = watch.end().unwrap();
        assert_eq!(vitals.unseen, Vec::<String>::new(), "{flavour}");
        let counters = vitals.counters();
        assert!(counters.log_bytes.unwrap() > 300 * 100, "{flavour}: {counters:?}");
        assert!(counters.syncs.unwrap() > 0 && counters.deadlocks == Some(0), "{flavour}: {counters:?}");
        // PostgreSQL's counts of this watch may not have been handed in when they are taken off.
        let (commits, requests) = (vitals.commits().unwrap(), vitals.requests().unwrap());
        assert!((260..400).contains(&requests) && vitals.own_statements > 3, "{flavour}: {requests}");
        assert!(commits.least >= 260 && commits.most < 400, "{flavour}: {commits:?}");
        assert!(vitals.checkpoint_age.is_some_and(|age| (0.0..=1.0).contains(&age)), "{flavour}");
        assert_eq!(vitals.pool_bytes(), Some(128 << 20), "{flavour}");
        assert!(vitals.sessions.looks > 0, "{flavour}");
        let variables = variables_that_matter(&mut connection).unwrap();
        assert_eq!(variables, vitals.variables);
        assert!(variables.len() > 15, "{flavour}: {variables:?}");
        println!("{flavour}: {counters:?} hit {:?} cost {} us", vitals.hit_ratio(), vitals.cost_ns / 1000);
    }
}
