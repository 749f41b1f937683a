//! What can be typed.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueHint};
use weir_core::units::Nanos;

use crate::behind::{ALONE, WITH_VALUE};

/// Runs weir on many hosts over ssh, and compares what they answer.
#[derive(Debug, Parser)]
#[command(
    name = "weir fleet",
    bin_name = "weir fleet",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a weir command on every host: copied there, run, its results pulled, and removed
    Run(Box<RunArgs>),
    /// Show the last run again, or which hosts are slow and why
    Show(ShowArgs),
}

const EXAMPLES: &str = "\
Examples:
  weir fleet run --hosts db1,db2,db[03:20] doctor --quick /var/lib/mysql
  weir fleet run --hosts 'db*' --sudo trace fsync --duration 10s
      the Host entries of your ssh configuration that match
  weir fleet run --inventory hosts.ini --hosts 'prod,!db07' --together bench --dir /data
  weir fleet run --hosts @hosts.txt --sudo --canary 1,10%,all --probe /data \\
      knobs apply vm.dirty_bytes=15MB
  weir fleet run --hosts db1 recorder export syncs --out {out}/syncs.csv
      {out} is a folder on the host whose files are pulled

Exit codes: 0 every host done, 1 a bar missed or a change taken back, 2 wrong usage, 3 a host without a result,
4 an I/O error in a workload, 128 + signal. Of several the worst decides: signal, 3, 4, 1.";

/// Arguments of `weir fleet run`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct RunArgs {
    /// Hosts: names and ranges with commas between, @FILE, or a pattern of your ssh configuration's names; with --inventory, groups and
    /// names of that
    #[arg(long, value_name = "WHAT")]
    pub hosts: Vec<String>,
    /// An Ansible inventory: INI, or the JSON of `ansible-inventory --list`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub inventory: Option<PathBuf>,
    /// Take this ssh configuration instead of yours
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub ssh_config: Option<PathBuf>,
    /// Hosts that are worked on at the same time
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub parallel: u32,
    /// How long a host may take to answer
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub connect_timeout: Nanos,
    /// How long weir may run on a host
    #[arg(long, value_name = "TIME", default_value = "15m")]
    pub timeout: Nanos,
    /// The weir to copy; once for each architecture [default: the one beside weir-fleet]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub binary: Vec<PathBuf>,
    /// Run weir as root there, by `sudo -n`
    #[arg(long)]
    pub sudo: bool,
    /// Start everywhere at the same time, when every host is ready or has failed
    #[arg(long)]
    pub together: bool,
    /// Start everywhere at this time: 02:30, 02:30:15, or with date and offset as in RFC 3339
    #[arg(long, value_name = "TIME", conflicts_with = "together")]
    pub at: Option<String>,
    /// Keep results there [default: $WEIR_FLEET, else ~/.local/state/weir/fleet]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub into: Option<PathBuf>,
    /// The summary as JSON of schema weir.fleet/1
    #[arg(long)]
    pub json: bool,
    /// Also write a JUnit report, a case for each host
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub junit: Option<PathBuf>,
    /// With `knobs apply`: change so many hosts after each step, such as 1,10%,all; needs --probe
    #[arg(long, value_name = "STEPS", requires = "probe", conflicts_with_all = ["together", "at"])]
    pub canary: Option<String>,
    /// With --canary: the folder on the hosts where commits are probed before and after the change
    #[arg(long, value_name = "DIR", requires = "canary")]
    pub probe: Option<String>,
    /// With --canary: length of a probe; there are two before and two after
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub probe_time: Nanos,
    /// With --canary: take the change back where commits are worse by more than this
    #[arg(long, value_name = "PERCENT", default_value_t = 20.0)]
    pub worse: f64,
    /// The command and its arguments, as after `weir`
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<String>,
}

/// Arguments of `weir fleet show`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ShowArgs {
    /// What of it.
    #[command(subcommand)]
    pub what: Option<What>,
    /// Which run.
    #[command(flatten)]
    pub run: WhichRun,
}

/// What to show.
#[derive(Debug, Subcommand)]
pub enum What {
    /// Name the hosts whose commits are slower than those of their peers, and why
    Slow {
        /// Hosts of one model that it takes to say what is usual
        #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(3..))]
        peers: u32,
        /// Which run.
        #[command(flatten)]
        run: WhichRun,
    },
}

/// A stored run.
#[derive(Debug, clap::Args)]
pub struct WhichRun {
    /// Beginning or end of its id, or `last`
    #[arg(value_name = "RUN", default_value = "last")]
    pub run: String,
    /// The folder of results
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub into: Option<PathBuf>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// Puts options that no command of weir's has before the command. What follows `--` is left as it is.
pub fn in_order(arguments: Vec<String>) -> Vec<String> {
    if arguments.get(1).map(String::as_str) != Some("run") {
        return arguments;
    }
    let mut arguments = arguments.into_iter();
    let mut ordered: Vec<String> = arguments.by_ref().take(2).collect();
    let mut rest = Vec::new();
    while let Some(word) = arguments.next() {
        let name = word.split('=').next().unwrap_or_default();
        if word == "--" {
            rest.push(word);
            rest.extend(arguments);
            break;
        }
        if WITH_VALUE.contains(&name) {
            let has_value = word.contains('=');
            ordered.push(word);
            ordered.extend(if has_value { None } else { arguments.next() });
        } else if ALONE.contains(&word.as_str()) {
            ordered.push(word);
        } else {
            rest.push(word);
        }
    }
    ordered.extend(rest);
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<RunArgs, clap::Error> {
        let words = line.split(' ').map(String::from).collect();
        match Cli::try_parse_from(in_order(words))?.command {
            Command::Run(args) => Ok(*args),
            Command::Show(_) => panic!("{line}"),
        }
    }

    #[test]
    fn options_stand_before_the_command_or_behind_it() {
        for line in [
            "weir-fleet run --hosts a,b --sudo doctor --quick /x --json",
            "weir-fleet run doctor --quick /x --json --hosts a,b --sudo",
            "weir-fleet run doctor --hosts=a,b --quick --sudo /x --json",
        ] {
            let args = parsed(line).unwrap();
            assert_eq!((args.hosts.join(" ").as_str(), args.sudo, args.json), ("a,b", true, false), "{line}");
            assert_eq!(args.command.join(" "), "doctor --quick /x --json", "{line}");
        }
        assert!(parsed("weir-fleet run --hosts a --json doctor").unwrap().json);
        // The doctor has an option of that name.
        let args = parsed("weir-fleet run --hosts a doctor --junit {out}/x.xml").unwrap();
        assert_eq!((args.junit, args.command.join(" ").as_str()), (None, "doctor --junit {out}/x.xml"));
        assert!(parsed("weir-fleet run --hosts a --canary 1 knobs apply x=1").is_err(), "without --probe");
        assert!(parsed("weir-fleet run --hosts a").is_err(), "without a command");
    }

    #[test]
    fn clap_finds_no_fault() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }
}
