//! What is typed after `weir tune`, and the arms it means.

use clap::Parser;
use weir_core::experiment::Workload;
use weir_core::workload::Job;
use weir_core::workload::spec::EngineKind;

use super::*;
use crate::cli::tune::Command;
use crate::cli::{Cli, Command as Top};

fn command(words: &str) -> Command {
    let words = words.split('|').flat_map(|part| match part.strip_prefix('=') {
        Some(whole) => vec![whole.to_string()],
        None => part.split_whitespace().map(String::from).collect(),
    });
    let typed = Cli::try_parse_from(["weir".to_string(), "tune".to_string()].into_iter().chain(words));
    match typed.unwrap().command {
        Top::Tune(args) => args.command,
        other => panic!("{other:?}"),
    }
}

fn arms(words: &str) -> Result<Vec<Arm>, String> {
    let text = |error: anyhow::Error| format!("{error:#}");
    match command(words) {
        Command::Sweep(mut args) => {
            let wants = wants_flood(&args.knob);
            let asked = common(&mut args.common, Base::Commits, wants).map_err(text)?;
            sweep_arms(&asked, &args.knob, &args.grid, Some("sdx")).map_err(text)
        }
        other => panic!("{other:?}"),
    }
}

fn job(arm: &Arm) -> &Job {
    match &arm.workload {
        Workload::Job(job) => job,
        Workload::Command(spec) => panic!("{spec:?}"),
    }
}

#[test]
fn a_sweep_has_an_arm_for_each_value_and_a_flood_where_the_knob_needs_one() {
    let sweep = arms("sweep vm.dirty_bytes --grid 4MB,15MB").unwrap();
    let labels: Vec<&str> = sweep.iter().map(|arm| arm.label.as_str()).collect();
    assert_eq!(labels, ["vm.dirty_bytes=4000000", "vm.dirty_bytes=15000000"]);
    assert_eq!(sweep[0].floods, ["dd"]);
    let commits = job(&sweep[0]);
    assert_eq!((commits.threads, commits.sync.every, commits.direct), (10, 1, false));
    let quiet = arms("sweep @/nr_requests --grid 32 --rw randread --depth 8").unwrap();
    assert_eq!(quiet[0].settings[0].to_string(), "sdx/nr_requests=32");
    assert!(quiet[0].floods.is_empty());
    assert_eq!((job(&quiet[0]).engine, job(&quiet[0]).threads), (EngineKind::IoUring, 1));
    assert!(arms("sweep vm.dirty_bytes --grid 4MB --flood none").unwrap()[0].floods.is_empty());
}
