//! What a user does, and what goes wrong, against the built binary.
#![allow(
    clippy::unwrap_used,
    reason = "test code throughout; clippy knows that only of functions under #[test]"
)]

mod command_lines;
mod db_experiments;
mod db_explain;
mod db_faults;
mod db_housed;
mod db_run;
mod db_sandbox;
mod db_sandbox_attacks;
mod db_server;
mod doctor;
mod doctor_map;
mod fallbacks;
mod faults;
mod guard;
mod guard_beside;
mod guard_cgroup;
mod guard_install;
mod guard_simulate;
mod habits;
mod honesty;
mod hostile;
mod hostile_records;
mod knobs;
mod lab;
mod old_records;
mod printable;
mod recorder;
mod replay;
mod report;
mod results;
mod signals;
mod supply_chain;
mod sysbench;
mod sysbench_oltp;
mod top;
mod trace_diff;
mod trace_fsync;
mod trace_live;
mod trace_read;
mod trace_record;
mod trace_reports;
mod tune;
mod tune_kills;
mod usage;
mod weir;
