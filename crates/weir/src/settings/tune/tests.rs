//! What is typed after `weir tune`, and the arms it means.

use weir_core::workload::Job;
use weir_core::workload::spec::{EngineKind, Target};
use weir_experiment::Workload;

use super::*;
use crate::cli::Command as Top;
use crate::cli::tune::Command;

fn command(words: &str) -> Command {
    let words = words.split('|').flat_map(|part| match part.strip_prefix('=') {
        Some(whole) => vec![whole.to_string()],
        None => part.split_whitespace().map(String::from).collect(),
    });
    let typed = crate::cli::parse(["weir".to_string(), "tune".to_string()].into_iter().chain(words));
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
            let asked = common(&mut args.common, Base::Commits, wants, Origin::Typed).map_err(text)?;
            sweep_arms(&asked, &args.knob, &args.grid, Some("sdx")).map_err(text)
        }
        Command::Ladder(mut args) => {
            let asked = common(&mut args.common, Base::Mixed, false, Origin::Typed).map_err(text)?;
            ladder_arms(&asked, &args, Some("sdx")).map_err(text)
        }
        Command::Ab(mut args) => {
            args.common.command = args.a_command.clone();
            let asked = common(&mut args.common, Base::Commits, false, Origin::Typed).map_err(text)?;
            ab_arms(&asked, &args, Some("sdx")).map(Vec::from).map_err(text)
        }
        other => panic!("{other:?}"),
    }
}

fn job(arm: &Arm) -> &Job {
    match &arm.workload {
        Workload::Job(job) => job,
        other => panic!("{other:?}"),
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

#[test]
fn a_ladder_adds_each_step_to_those_before() {
    let ladder = arms("ladder block=4k drop-caches,vm.swappiness=0 threads=8 sync.every=0").unwrap();
    assert_eq!(ladder.len(), 5);
    let settings = |at: usize| ladder[at].settings.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(settings(2), ["vm.drop_caches=3", "vm.swappiness=0"]);
    assert_eq!(settings(4), ["vm.swappiness=0"]);
    assert_eq!((job(&ladder[1]).block.largest(), job(&ladder[4]).block.largest()), (4096, 4096));
    assert_eq!((job(&ladder[2]).threads, job(&ladder[3]).threads), (2, 8));
    assert_eq!((job(&ladder[3]).sync.every, job(&ladder[4]).sync.every), (1, 0));
    // The files are those of the base: nothing is written again for a step.
    assert!(ladder.iter().all(|arm| job(arm).target == job(&ladder[0]).target));
}

#[test]
fn the_field_reports_ladder_needs_no_words() {
    let ladder = arms("ladder").unwrap();
    let depths: Vec<(u32, u32)> = ladder.iter().map(|arm| (job(arm).depth, job(arm).threads)).collect();
    assert_eq!(depths, [(1, 2), (1, 2), (128, 2), (256, 2), (2, 2), (256, 16), (256, 2), (256, 2)]);
    assert!(matches!(&job(&ladder[0]).target, Target::Files { count: 2, .. }));
    assert!(ladder.iter().all(|arm| job(arm).sync.every == 1));
}

#[test]
fn two_ways_are_settings_jobs_or_commands() {
    let schedulers = arms("ab @/scheduler=none @/scheduler=mq-deadline").unwrap();
    assert_eq!(schedulers[1].settings[0].to_string(), "sdx/scheduler=mq-deadline");
    let threads = arms("ab found job:threads=4").unwrap();
    assert_eq!((job(&threads[0]).threads, job(&threads[1]).threads), (10, 4));
    let commands = arms("ab --a-command|=echo x=1|--b-command|=echo x=2|--metric|=x=x=([0-9]+)").unwrap();
    match &commands[1].workload {
        Workload::Command(spec) => assert_eq!(spec.command, "echo x=2"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_fileio_command_line_is_a_job_in_our_own_folder() {
    let line =
        "sysbench fileio --file-num=2 --file-total-size=64M --file-test-mode=rndrw --threads=4 --time=3 run";
    let ladder = arms(&format!("ladder|block=16k|--fileio|={line}")).unwrap();
    let job = job(&ladder[0]);
    assert_eq!((job.threads, job.block.largest()), (4, 16384));
    assert!(matches!(&job.target, Target::Files { count: 2, keep: false, size, .. } if size.0 == 32 << 20));
}

#[test]
fn mistakes_are_named() {
    for (words, complaint) in [
        ("ladder blok=4k", "known key of a job"),
        ("ladder block", "expected KEY=VALUE"),
        ("ladder threads=many", "threads"),
        ("ladder --command|=true|--metric|=x=(x)", "needs steps"),
        ("sweep vm.dirty_bytes --grid much", "vm.dirty_bytes=much"),
        ("sweep vm.swappiness --grid 1 --metric|=x=(x)", "reads a command's output"),
        ("sweep vm.swappiness --grid 1 --command|=true", "no --metric"),
        ("sweep vm.swappiness --grid 1 --command|=true|--metric|=x=x", "no group"),
        ("sweep vm.swappiness --grid 1 --operations 5", "--operations"),
        ("sweep vm.swappiness --grid 1 --duration 1ms", "shows nothing"),
        ("sweep vm.swappiness --grid 1 --goal|=max speed", "speed"),
        ("ab job:threads=2 found --fileio|=--file-test-mode=sideways", "--fileio"),
    ] {
        match arms(words) {
            Err(error) => assert!(error.contains(complaint), "{words}: {error}"),
            Ok(arms) => panic!("{words}: {arms:?}"),
        }
    }
}
