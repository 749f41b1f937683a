//! What a shell offers while a command line is typed. Commands, options and fixed words are clap's; runs, devices and
//! knobs are those that are here now.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

use clap::{Arg, Command};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter};
use weir_core::workload::spec::{Arrival, EngineKind, OpenSync, SyncMode};
use weir_core::workload::text::Direction;
use weir_host::{Host, knob};
use weir_knobs::catalog;
use weir_sysbench::help::SCRIPTS;
use weir_sysbench::options::{self, Kind, Known};

use crate::manual::TOPICS;
use crate::{cli, store};

type Offer = fn(&str) -> Vec<CompletionCandidate>;

/// Answers a shell that asks, and ends the process; returns at once where none does. What is asked about `weir fleet` goes to the
/// program behind it, which knows its options and takes this one's place, if it is installed.
pub fn answer<T>(fleet: impl FnOnce(&[OsString]) -> T) {
    if weir_cli::completion::is_about("fleet") {
        fleet(&env::args_os().skip(1).collect::<Vec<_>>());
    }
    weir_cli::completion::answer(all);
}

/// The commands with their values, and the topics of `help`, which is clap's own and knows commands alone.
fn all() -> Command {
    let mut command = offering(cli::command());
    command.build();
    let topics = TOPICS.iter().map(|topic| Command::new(topic.name).about(topic.about));
    command.mut_subcommand("help", |help| help.subcommands(topics))
}

/// A command and all below it, each value with what can stand for it.
fn offering(command: Command) -> Command {
    let below: Vec<String> = command.get_subcommands().map(|c| c.get_name().to_string()).collect();
    let command = below.into_iter().fold(command, |command, name| command.mut_subcommand(name, offering));
    let name = command.get_name().to_string();
    command.mut_args(|argument| match offer(&name, &argument) {
        Some(offer) => argument
            .add(ArgValueCompleter::new(move |typed: &OsStr| typed.to_str().map(offer).unwrap_or_default())),
        None => argument,
    })
}

/// The name of a value says what it stands for.
fn offer(command: &str, argument: &Arg) -> Option<Offer> {
    let value = argument.get_value_names()?.first()?.as_str();
    let of_a_job: Option<Offer> = match argument.get_long() {
        Some("rw") => Some(|typed| words(typed, Direction::WORDS)),
        Some("engine") => Some(|typed| words(typed, EngineKind::WORDS)),
        Some("sync-mode") => Some(|typed| words(typed, SyncMode::WORDS)),
        Some("open-sync") => Some(|typed| words(typed, OpenSync::WORDS)),
        Some("arrival") => Some(|typed| words(typed, Arrival::WORDS)),
        _ => None,
    };
    of_a_job.or_else(|| offer_of_value(command, value))
}

fn offer_of_value(command: &str, value: &str) -> Option<Offer> {
    Some(match (command, value) {
        ("fileio", "SYSBENCH-ARGS") => of_fileio,
        ("sysbench", "SYSBENCH-ARGS") => of_sysbench,
        (_, "RUN") | ("compare", "A" | "B") => runs,
        (_, "DEVICE" | "PATH|DEVICE") => devices,
        (_, "KNOB" | "KNOB,…") => knobs,
        (_, "KNOB=VALUE") => settings,
        ("ladder", "STEP") | ("ab", "A" | "B") | ("race", "SETTINGS") => changes,
        (_, "DIR") => folders,
        _ => return None,
    })
}

fn runs(typed: &str) -> Vec<CompletionCandidate> {
    if typed.contains('/') || typed.starts_with('.') {
        return PathCompleter::file().complete(typed.as_ref());
    }
    let names = ["last", "last~1"].map(String::from).into_iter();
    starting(typed, names.chain(store::ids_to_offer().into_iter().rev()))
}

fn devices(typed: &str) -> Vec<CompletionCandidate> {
    let mut found = starting(typed, block_devices(Path::new("/sys/class/block")).into_iter());
    found.extend(PathCompleter::any().complete(typed.as_ref()));
    found
}

/// Those that hold something: a loop device without a file has no size.
fn block_devices(folder: &Path) -> Vec<String> {
    let size = |name: &str| fs::read_to_string(folder.join(name).join("size")).unwrap_or_default();
    let names = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = names.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| !matches!(size(name).trim(), "" | "0"));
    names.sort();
    names
}

/// Knobs, the last of several with commas.
fn knobs(typed: &str) -> Vec<CompletionCandidate> {
    let done = typed.rfind(',').map_or("", |comma| &typed[..=comma]);
    starting(typed, knob_names().map(|name| format!("{done}{name}")))
}

fn settings(typed: &str) -> Vec<CompletionCandidate> {
    starting(typed, knob_names().map(|name| format!("{name}=")))
}

/// What an experiment can compare.
fn changes(typed: &str) -> Vec<CompletionCandidate> {
    let mut found = settings(typed);
    found.extend(starting(typed, ["found", "job:", "db:", "drop-caches"].map(String::from).into_iter()));
    found
}

/// The knobs of this machine, and those of whatever device the target has.
fn knob_names() -> impl Iterator<Item = String> {
    let here = knob::readings(&Host::live(), None).into_iter();
    let here = here.flat_map(|reading| spellings(&reading.knob.to_string()));
    let of_target = catalog::CATALOG
        .iter()
        .filter_map(|spec| Some(format!("@/{}", spec.pattern().strip_prefix("DEV/")?)));
    here.chain(of_target)
}

/// Sysctls of which one zeroes the other are one knob, which people know by the sysctls' names.
fn spellings(knob: &str) -> Vec<String> {
    match knob {
        "vm.dirty" | "vm.dirty_background" => {
            ["bytes", "ratio"].map(|unit| format!("{knob}_{unit}")).to_vec()
        }
        _ => vec![knob.to_string()],
    }
}

fn words(typed: &str, known: &[&str]) -> Vec<CompletionCandidate> {
    starting(typed, known.iter().map(|word| word.to_string()))
}

/// sysbench's own command line, which clap passes through: its commands, and its options up to their values.
fn of_fileio(typed: &str) -> Vec<CompletionCandidate> {
    let commands = ["prepare", "run", "cleanup", "help"].map(String::from).into_iter();
    starting(typed, commands.chain(spelt(options::general().chain(options::FILEIO))))
}

/// The same, databases' too.
fn of_sysbench(typed: &str) -> Vec<CompletionCandidate> {
    let mut found = of_fileio(typed);
    let tests = ["fileio"].iter().chain(&SCRIPTS).map(|test| test.to_string());
    found.extend(starting(typed, tests.chain(spelt(options::database()))));
    found
}

fn spelt(known: impl Iterator<Item = &'static Known>) -> impl Iterator<Item = String> {
    known.map(|known| match known.kind {
        Kind::Flag => format!("--{}", known.name),
        _ => format!("--{}=", known.name),
    })
}

fn folders(typed: &str) -> Vec<CompletionCandidate> {
    PathCompleter::dir().complete(typed.as_ref())
}

fn starting(typed: &str, names: impl Iterator<Item = String>) -> Vec<CompletionCandidate> {
    names.filter(|name| name.starts_with(typed)).map(CompletionCandidate::new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every value that means one of these things is completed, in whatever command it stands.
    #[test]
    fn runs_devices_and_knobs_are_offered_wherever_they_are_meant() {
        for line in [
            "report RUN",
            "compare A",
            "compare B",
            "results show RUN",
            "results export RUN",
            "results rm RUN",
            "tune resume RUN",
            "trace util RUN",
            "trace util PATH|DEVICE",
            "top PATH|DEVICE",
            "trace live PATH|DEVICE",
            "trace record PATH|DEVICE",
            "guard run PATH|DEVICE",
            "knobs show KNOB",
            "knobs apply KNOB=VALUE",
            "tune sweep KNOB",
            "tune race KNOB",
            "tune ladder STEP",
            "db sandbox mariadb DIR",
            "bench ENGINE",
            "bench MODE",
            "fileio SYSBENCH-ARGS",
            "sysbench SYSBENCH-ARGS",
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            let (value, path) = words.split_last().unwrap();
            let root = cli::command();
            let command = path.iter().fold(&root, |command, name| {
                command.find_subcommand(name).unwrap_or_else(|| panic!("{line}: there is no {name}"))
            });
            let named = |argument: &&Arg| argument.get_value_names().is_some_and(|names| names[0] == **value);
            let argument =
                command.get_arguments().find(named).unwrap_or_else(|| panic!("{line}: no such value"));
            assert!(offer(command.get_name(), argument).is_some(), "{line}");
        }
    }

    #[test]
    fn devices_without_a_size_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        for (name, size) in [("sda", "100\n"), ("loop0", "0\n"), ("dm-0", "8\n")] {
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join("size"), size).unwrap();
        }
        assert_eq!(block_devices(folder.path()), ["dm-0", "sda"]);
        assert_eq!(block_devices(Path::new("/nowhere")), Vec::<String>::new());
    }

    #[test]
    fn help_is_offered_commands_and_topics() {
        let all = all();
        let help = all.find_subcommand("help").unwrap();
        for word in ["doctor", "fleet", "units", "exit-codes"] {
            assert!(help.find_subcommand(word).is_some(), "{word}");
        }
        assert!(help.find_subcommand("topic").is_none_or(Command::is_hide_set));
    }

    #[test]
    fn words_of_jobs_and_sysbenchs_options_are_offered() {
        let bench = cli::command().find_subcommand("bench").unwrap().clone();
        for (option, typed, expected) in
            [("rw", "randr", &["randread", "randrw"][..]), ("engine", "io", &["io_uring"])]
        {
            let argument =
                bench.get_arguments().find(|argument| argument.get_long() == Some(option)).unwrap();
            assert_eq!(values(offer("bench", argument).unwrap()(typed)), expected, "{option}");
        }
        assert_eq!(values(of_fileio("--file-te")), ["--file-test-mode="]);
        assert_eq!(values(of_fileio("pre")), ["prepare"]);
        assert_eq!(values(of_fileio("--histo")), ["--histogram"]);
        assert_eq!(values(of_sysbench("oltp_read_o")), ["oltp_read_only"]);
        assert_eq!(values(of_sysbench("--mysql-so")), ["--mysql-socket="]);
    }

    fn values(found: Vec<CompletionCandidate>) -> Vec<String> {
        found.iter().map(|candidate| candidate.get_value().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn of_a_list_the_last_is_completed() {
        assert_eq!(values(knobs("vm.swappiness,@/nr_r")), ["vm.swappiness,@/nr_requests"]);
        assert!(values(settings("@/nr_r")).contains(&"@/nr_requests=".to_string()));
        assert!(values(changes("fo")).contains(&"found".to_string()));
    }
}
