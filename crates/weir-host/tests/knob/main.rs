//! Knobs on the real machine: every exit restores.
#![allow(clippy::unwrap_used)] // test code throughout; clippy knows that only of functions under #[test]

mod devices;
mod governed;
mod kills;
mod limits;
mod runs;
mod terms;

use std::process::ExitCode;

use weir_host::{Host, knob};

type Check = fn();
const CHECKS: &[(&str, Check)] = &[
    ("root_restore_leads_back_and_two_runs_do_not_share_a_knob", limits::root_restore_leads_back),
    ("root_a_killed_run_is_led_back_by_its_guardian", limits::root_a_killed_run_is_led_back),
    ("root_a_terminals_signals_do_not_reach_the_guardian", limits::root_signals_do_not_reach_the_guardian),
    ("root_the_next_run_recovers_when_the_guardian_died_too", limits::root_the_next_run_recovers),
    ("root_a_value_that_somebody_else_wrote_is_left_alone", limits::root_a_foreign_value_is_left_alone),
    ("root_a_switch_of_the_scheduler_is_led_back_with_all_it_resets", devices::root_a_switch_is_led_back),
    ("root_a_refused_value_takes_back_what_was_written_before_it", devices::root_a_refusal_takes_all_back),
    ("root_what_the_kernel_refuses_is_said_in_words", devices::root_refusals_are_said_in_words),
    (
        "root_what_may_not_be_written_is_said_before_anything_is",
        devices::root_what_may_not_be_written_is_said_before_anything_is,
    ),
    ("root_a_share_in_bytes_is_led_back_exactly", devices::root_a_share_in_bytes_is_led_back),
    ("root_everything_of_a_device_is_read", devices::root_everything_of_a_device_is_read),
    ("root_what_is_not_confirmed_goes_back_by_itself", terms::root_what_is_not_confirmed_goes_back),
    (
        "root_what_is_not_confirmed_goes_back_at_sigterm",
        terms::root_what_is_not_confirmed_goes_back_at_sigterm,
    ),
    ("root_what_lost_its_journal_goes_back_at_once", terms::root_what_lost_its_journal_goes_back),
    ("root_what_is_confirmed_stays_until_a_rollback", terms::root_what_is_confirmed_stays),
    (
        "root_a_confirmation_of_one_process_keeps_nothing_of_others",
        terms::root_a_confirmation_of_one_process_keeps_nothing_of_others,
    ),
    (
        "root_a_confirmation_is_of_the_process_and_not_of_its_number",
        terms::root_a_confirmation_is_of_the_process_and_not_of_its_number,
    ),
    ("root_changes_go_back_newest_first_and_twice_is_harmless", terms::root_changes_go_back_newest_first),
    (
        "root_a_change_from_another_pid_namespace_is_in_use_until_that_ends",
        terms::root_a_change_from_another_pid_namespace_is_in_use_until_that_ends,
    ),
    ("root_a_second_run_waits_for_the_first", terms::root_a_second_run_waits),
    ("root_a_journal_without_room_changes_nothing", terms::root_a_journal_without_room_changes_nothing),
    (
        "root_a_journal_that_became_read_only_is_led_back",
        terms::root_a_journal_that_became_read_only_is_led_back,
    ),
    ("root_a_damaged_journal_blocks_nobody", terms::root_a_damaged_journal_blocks_nobody),
    ("root_kills_at_any_moment_are_led_back", kills::root_kills_at_any_moment_are_led_back),
    ("root_a_marked_limit_is_what_the_kernel_takes", governed::root_a_marked_limit_is_what_the_kernel_takes),
    ("root_a_killed_guard_is_led_back_by_its_guardian", governed::root_a_killed_guard_is_led_back),
    ("root_a_guardian_may_be_started_ahead", governed::root_a_guardian_may_be_started_ahead),
    ("root_a_guard_that_hangs_is_led_back_and_stands_down", governed::root_a_hang_is_led_back),
    ("root_who_only_ever_sets_does_not_hang", governed::root_who_only_ever_sets_does_not_hang),
    ("root_a_journal_that_is_removed_is_no_loss", governed::root_a_journal_that_is_removed_is_no_loss),
    ("root_a_guard_gets_another_guardian", governed::root_a_guard_gets_another_guardian),
    ("root_another_writer_of_a_governed_limit_is_left_alone", governed::root_another_writer_is_left_alone),
    (
        "root_others_values_inside_the_band_survive_a_kill",
        governed::root_others_values_inside_the_band_survive,
    ),
    ("root_a_device_may_go_and_come_back_while_governed", governed::root_a_device_may_go_and_come_back),
    ("root_a_guard_without_a_journal_changes_nothing", governed::root_without_a_journal_nothing_is_changed),
    ("root_a_refused_limit_puts_back_what_was_found", governed::root_a_refused_limit_puts_back),
    ("root_a_guard_killed_at_any_moment_is_led_back", kills::root_a_guard_killed_at_any_moment_is_led_back),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(knob::ARGUMENT) => return knob::guardian_main(&Host::live(), &arguments[1..]),
        Some(verb) if verb.starts_with("__") => runs::be(verb, &arguments[1..]),
        _ => {}
    }
    let mut passed = 0;
    for (name, check) in CHECKS.iter().filter(|(name, _)| is_wanted(name, &arguments)) {
        match runs::why_not() {
            Some(reason) => println!("test {name} ... not run: {reason}"),
            None => {
                check();
                println!("test {name} ... ok");
                passed += 1;
            }
        }
    }
    // In the words of the standard harness, for whoever adds up.
    println!(
        "test result: ok. {passed} passed; 0 failed; 0 ignored; 0 measured; {} filtered out",
        CHECKS.len() - passed
    );
    ExitCode::SUCCESS
}

/// As the standard harness takes it: parts of names to run, after `--skip` parts of names not to run.
fn is_wanted(name: &str, arguments: &[String]) -> bool {
    let mut wanted: Option<bool> = None;
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let skips = argument == "--skip";
        let part = if skips { arguments.next() } else { Some(argument) };
        match part.filter(|part| !part.starts_with('-')).map(|part| name.contains(part.as_str())) {
            Some(true) if skips => return false,
            Some(found) if !skips => wanted = Some(wanted.unwrap_or(false) || found),
            _ => {}
        }
    }
    wanted.unwrap_or(true)
}
