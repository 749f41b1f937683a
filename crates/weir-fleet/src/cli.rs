//! What can be typed.

use std::path::PathBuf;

use clap::{CommandFactory, Parser, Subcommand, ValueHint};
use weir_core::units::{Bytes, Nanos};

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
    /// Show the last run again, or what the tables of the fleet answer: which devices are slow and why, latency, drift, growth
    Show(Box<ShowArgs>),
    /// Ask the tables of the fleet in SQL
    Sql(SqlArgs),
    /// Take recorders' archives and the results of runs into the tables of the fleet
    Import(ImportArgs),
    /// Write rows of one table to a Parquet file
    Export(ExportArgs),
    /// Merge small files of the tables: one for each host and day become few for each week
    Compact(FolderArgs),
    /// Bring the tables into a bucket of an object store; what is there already is not sent again
    Push(PushArgs),
    /// Remove old files of the tables
    Prune(PruneArgs),
    /// Print the names of the files that a package holds beside this program, or one of them
    #[command(hide = true)]
    PackageFiles(weir_cli::packaged::Args),
}

const EXAMPLES: &str = "\
Examples:
  weir fleet run --hosts db1,db2,db[03:20] doctor --quick /var/lib/mysql
  weir fleet run --hosts 'db*' --sudo trace fsync --duration 10s
      the Host entries of your ssh configuration that match
  weir fleet run --inventory hosts.ini --hosts 'prod,!db07' --together bench --dir /data
  weir fleet run --hosts @hosts.txt --sudo --canary 1,10%,all --probe /data \\
      knobs apply vm.dirty_bytes=15MB
  weir fleet run --hosts db1 recorder export syncs --to {out}/syncs.csv
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
    /// Also write a page with the hosts, the slow ones first, and their commits; replaces only a page of weir's
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    /// With `knobs apply`: change so many hosts after each step, such as 1,10%,all; needs --probe
    #[arg(long, value_name = "STEPS", requires = "probe", conflicts_with_all = ["together", "at"])]
    pub canary: Option<String>,
    /// With --canary: the folder on the hosts where commits are probed before and after the change
    #[arg(long, value_name = "DIR", requires = "canary")]
    pub probe: Option<String>,
    /// With --canary: length of a probe; there are two before and two after, and up to four more where these are worse
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
    /// Beginning or end of a run's id, or `last`
    #[arg(value_name = "RUN", default_value = "last")]
    pub run: String,
    /// Folder and form.
    #[command(flatten)]
    pub folder: FolderArgs,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    /// Also write a page with the hosts, the slow ones first, and their commits; replaces only a page of weir's
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
}

/// What to show.
#[derive(Debug, Subcommand)]
pub enum What {
    /// Name the devices and hosts that are slower than their peers at equal load, and why; with a RUN, by the commits of that run
    Slow {
        /// Judge this run of `doctor` or `bench` (or `last`) instead of the tables
        #[arg(value_name = "RUN", conflicts_with = "sql")]
        run: Option<String>,
        /// How to ask.
        #[command(flatten)]
        asking: Asking,
    },
    /// Latency of each stage over all devices: median, spread, the slowest
    Latency(Asking),
    /// Name the settings, firmware and versions in which a host differs from most
    Drift(Asking),
    /// Say what is faster or slower since a time, device by device at equal load
    Change {
        /// When: a day, or a time of RFC 3339
        #[arg(long, value_name = "TIME")]
        at: String,
        /// How to ask.
        #[command(flatten)]
        asking: Asking,
    },
    /// Name the devices near the load at which their model slows down
    Capacity(Asking),
    /// Name the devices whose slowest requests get slower
    Tails(Asking),
}

/// How the tables are asked.
#[derive(Debug, Clone, clap::Args)]
pub struct Asking {
    /// The time.
    #[command(flatten)]
    pub period: Period,
    /// The engine.
    #[command(flatten)]
    pub engine: Engine,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    /// Also write a page with the verdict and, for slow and latency, the devices over time (of a run: its hosts); replaces only a page of weir's
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    /// Print the SQL and ask nothing
    #[arg(long, conflicts_with_all = ["json", "html"])]
    pub sql: bool,
}

/// From when until when.
#[derive(Debug, Clone, clap::Args)]
pub struct Period {
    /// From this time on: a day, or a time of RFC 3339
    #[arg(long, value_name = "TIME", conflicts_with = "last")]
    pub since: Option<String>,
    /// Until this time [default: the newest hour of most hosts]
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// So long before the end [default: 3d for slow, 1d for latency, as long as since --at for change, else 30d]
    #[arg(long, value_name = "TIME")]
    pub last: Option<Nanos>,
    /// Devices or hosts of one kind that it takes to say what is usual [default: 6; of a run 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(3..))]
    pub peers: Option<u32>,
}

/// How much of this machine a question takes.
#[derive(Debug, Clone, clap::Args)]
pub struct Engine {
    /// Memory for rows; more than that goes to files beside the tables [default: a quarter of the machine's]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Bytes>,
    /// Ask the tables in this bucket instead: s3://BUCKET/PREFIX, gs://…, az://…; keys come from the environment
    #[arg(long, value_name = "URL")]
    pub bucket: Option<String>,
    /// A cluster.
    #[command(flatten)]
    pub spark: SparkArgs,
    /// Folder.
    #[command(flatten)]
    pub folder: FolderArgs,
}

/// A cluster that answers instead of this machine.
#[derive(Debug, Clone, clap::Args)]
pub struct SparkArgs {
    /// Ask this Spark Connect server, Spark 4 or Sail: `sc://HOST:15002/;use_ssl=true;user_id=NAME`, of which only HOST must stand
    #[arg(long, value_name = "URL")]
    pub spark: Option<String>,
    /// The token that it wants, in a file that only you can read
    #[arg(long, value_name = "FILE", requires = "spark", value_hint = ValueHint::FilePath)]
    pub spark_token: Option<PathBuf>,
    /// The certificate authority of its TLS, PEM [default: this system's]
    #[arg(long, value_name = "FILE", requires = "spark", value_hint = ValueHint::FilePath)]
    pub spark_ca: Option<PathBuf>,
    /// Where its workers find the folder store of the results, such as s3a://fleet/store [default: where it is here]
    #[arg(long, value_name = "URI", requires = "spark")]
    pub spark_store: Option<String>,
}

/// The folder of results.
#[derive(Debug, Clone, clap::Args)]
pub struct FolderArgs {
    /// The folder of results [default: $WEIR_FLEET, else ~/.local/state/weir/fleet]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub into: Option<PathBuf>,
}

const SQL_EXAMPLES: &str = "\
Examples:
  weir fleet sql \"SELECT host, SUM(n) AS syncs FROM syncs GROUP BY host ORDER BY syncs DESC LIMIT 10\"
  weir fleet show slow --sql | weir fleet sql -

Tables: stages, syncs, waits, counters, facts; docs/reference/fleet.md has their columns.";

/// Arguments of `weir fleet sql`.
#[derive(Debug, clap::Args)]
#[command(after_help = SQL_EXAMPLES)]
pub struct SqlArgs {
    /// A question, or - for standard input
    // One may begin with a comment.
    #[arg(value_name = "SELECT", allow_hyphen_values = true)]
    pub sql: String,
    /// The engine.
    #[command(flatten)]
    pub engine: Engine,
    /// As JSON: a list with an object for each row
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `weir fleet import`.
#[derive(Debug, clap::Args)]
pub struct ImportArgs {
    /// Archives of a recorder, or files that `weir recorder export` made and that are called TABLE.parquet [default: all that runs pulled]
    #[arg(value_name = "PATH", requires = "host", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// The host that they are of
    #[arg(long, value_name = "NAME", requires = "paths")]
    pub host: Option<String>,
    /// Folder.
    #[command(flatten)]
    pub folder: FolderArgs,
}

/// Arguments of `weir fleet export`.
#[derive(Debug, clap::Args)]
pub struct ExportArgs {
    /// stages, syncs, waits, counters or facts
    #[arg(value_name = "TABLE", value_parser = ["stages", "syncs", "waits", "counters", "facts"])]
    pub table: String,
    /// The Parquet file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: PathBuf,
    /// From this time on: a day, or a time of RFC 3339
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Until this time
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Folder.
    #[command(flatten)]
    pub folder: FolderArgs,
}

/// Arguments of `weir fleet push`.
#[derive(Debug, clap::Args)]
pub struct PushArgs {
    /// Where to: s3://BUCKET/PREFIX, gs://… or az://…; keys come from the environment, as AWS_ACCESS_KEY_ID and so on
    #[arg(long, value_name = "URL")]
    pub bucket: String,
    /// Folder.
    #[command(flatten)]
    pub folder: FolderArgs,
}

/// Arguments of `weir fleet prune`.
#[derive(Debug, clap::Args)]
pub struct PruneArgs {
    /// Keep so much
    #[arg(long, value_name = "TIME")]
    pub keep: Nanos,
    /// Folder.
    #[command(flatten)]
    pub folder: FolderArgs,
}

/// What shells are offered: for `weir fleet …`, where weir hands on its shell's question, else for `weir-fleet …`.
pub fn offered(behind_weir: bool) -> clap::Command {
    let own = Cli::command();
    if behind_weir { clap::Command::new("weir").subcommand(own.name("fleet")) } else { own }
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
            _ => panic!("{line}"),
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
        Cli::command().debug_assert();
    }
}
