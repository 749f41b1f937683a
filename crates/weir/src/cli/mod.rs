//! What can be typed. These structs hold just that; `cmd` turns it into validated core types.

pub mod bench;
pub mod compare;
pub mod db;
pub mod doctor;
pub mod fileio;
mod forms;
pub mod guard;
pub mod knobs;
pub mod recorder;
pub mod report;
pub mod results;
#[cfg(feature = "trace")]
pub mod top;
pub mod trace;
pub mod tune;

use std::ffi::OsString;
use std::path::Path;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::manual;

/// Measures storage as a database uses it, reports the result, and restores every setting.
#[derive(Debug, Parser)]
#[command(name = "weir", version, max_term_width = 100, arg_required_else_help = true, after_help = manual::list())]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Is this storage good enough for a database, and what should change?
    Doctor(doctor::Args),
    /// Run one workload and report it
    Bench(Box<bench::Args>),
    /// sysbench's fileio test, with sysbench's own options and report
    Fileio(fileio::Args),
    /// sysbench's command lines: fileio, its database scripts, your own Lua scripts
    Sysbench(fileio::Args),
    /// Find better settings by experiment
    Tune(tune::Args),
    /// Run transactions on a database server and find its limit
    Db(Box<db::Args>),
    #[cfg(feature = "trace")]
    /// Watch devices, processes and slow syncs on one screen
    Top(top::Args),
    /// Show where an I/O, or an fsync, spends its time
    Trace(trace::Args),
    /// Show settings of kernel and devices, set them in a transaction, restore them, keep them for the next boot
    Knobs(Box<knobs::Args>),
    /// Hold the latency of syncs while bulk writers fill the page cache
    Guard(Box<guard::Args>),
    /// Record what storage and syncs do, always, and look back at what went wrong
    Recorder(Box<recorder::Args>),
    /// Run a command on many hosts over ssh and compare them; a program of its own
    #[command(disable_help_flag = true, disable_help_subcommand = true)]
    Fleet {
        /// What weir-fleet is given
        #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// List, show and export stored runs
    Results(results::Args),
    /// Compare two stored runs, with intervals
    Compare(compare::Args),
    /// Draw a stored run as one self-contained HTML page
    Report(report::Args),
    /// Print a completion script for a shell
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print a topic, as `weir help TOPIC` does
    #[command(hide = true)]
    Topic {
        /// Its name.
        name: String,
    },
    /// Print the names of the files that a package holds beside this program, or one of them
    #[command(hide = true)]
    PackageFiles(weir_cli::packaged::Args),
}

/// All that can be typed.
pub fn command() -> clap::Command {
    forms::both(Cli::command())
}

/// What was typed.
pub fn parse<I, T>(arguments: I) -> Result<Cli, clap::Error>
where
    I: IntoIterator<Item = T>,
    T: Into<OsString>,
{
    let mut command = command();
    let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
    let named = |topic: &OsString| topic.to_str().and_then(manual::Topic::named);
    let matches = match &arguments[..] {
        // clap's own `help` knows commands, of which none is called as a topic is.
        [program, help, topic] if help == "help" && named(topic).is_some() => {
            command.try_get_matches_from_mut([program, &OsString::from("topic"), topic])?
        }
        _ => command.try_get_matches_from_mut(arguments)?,
    };
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Whether the binary was called by the name `sysbench`.
pub fn called_as_sysbench(arguments: &[String]) -> bool {
    arguments.first().and_then(|a| Path::new(a).file_name()).is_some_and(|name| name == "sysbench")
}

/// weir-fleet's lists. It is another program, and no crate has both.
#[cfg(test)]
#[path = "../../../weir-fleet/src/behind.rs"]
mod behind;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::behind;

    fn options(command: &clap::Command, found: &mut BTreeSet<String>) {
        let own = command.get_arguments().flat_map(|a| a.get_long_and_visible_aliases().unwrap_or_default());
        found.extend(own.map(|name| format!("--{name}")));
        command.get_subcommands().for_each(|below| options(below, found));
    }

    #[test]
    fn what_weir_fleet_takes_behind_a_command_is_no_option_of_the_command() {
        let mut found = BTreeSet::new();
        options(&super::command(), &mut found);
        assert!(found.contains("--junit") && found.contains("--quick"));
        for name in behind::WITH_VALUE.iter().chain(&behind::ALONE) {
            assert!(!found.contains(*name), "{name} belongs to a command");
        }
    }
}
