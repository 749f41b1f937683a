//! From the words of a command line to what they ask for, saying on the way what sysbench would say.

use super::fileio::Fileio;
use super::general::General;
use super::log::{Log, Quit};
use super::options::{self, Kind};
use super::script::ScriptRequest;
use super::values::Values;
use super::{HEADER, LEGACY_HEADER, VERSION, help};

/// Everything the options ask for.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The options of every test.
    pub general: General,
    /// The options of fileio.
    pub fileio: Fileio,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Nothing more: help or the version has been printed.
    Done,
    /// Make the files.
    Prepare(Settings),
    /// Run the test.
    Run(Settings),
    /// Remove the files.
    Cleanup(Settings),
    /// Read a Lua script and do what its command asks for.
    Script(Box<ScriptRequest>),
}

/// Reads a configuration file for the parser: its content, or the system's answer as text.
pub type ReadConfig<'a> = &'a dyn Fn(&str) -> Result<String, String>;

const OLD_TEST: &str = "WARNING: the --test option is deprecated. You can pass a script name or path on the command \
                        line without any options.\n";
const OTHER_TESTS: [&str; 4] = ["cpu", "memory", "threads", "mutex"];
const COMMANDS: [&str; 4] = ["prepare", "run", "cleanup", "help"];

/// What was typed, sorted.
#[derive(Default)]
struct Typed {
    values: Values,
    test: Option<String>,
    command: Option<String>,
    /// The test was named by `--test=`.
    old_style: bool,
    /// Options that are not general ones, to be read once the test is known.
    pending: Vec<String>,
}

/// Parses the words after the program's name. `config` reads the file of `--config-file`.
pub fn parse(words: &[String], config: ReadConfig<'_>, log: &mut Log<'_>) -> Result<Request, Quit> {
    let mut typed = sort(words, config, log)?;
    typed.values.defaults(options::general().chain(options::database()));
    if typed.values.flag("help") {
        log.raw(&help::general());
        return Ok(Request::Done);
    }
    if typed.values.flag("version") {
        log.raw(&format!("{VERSION}\n"));
        log.console.err("This is weir, which takes command lines of sysbench 1.0.20.\n");
        return Ok(Request::Done);
    }
    let general = General::from_values(&mut typed.values, typed.old_style, log)?;
    log.notice(if general.legacy_report { LEGACY_HEADER } else { HEADER });
    let command = match check_test(&typed, log)? {
        Test::Fileio(command) => command,
        Test::Script(test) => {
            let Typed { values, command, pending, .. } = typed;
            let request = ScriptRequest { general, test, command, values, pending };
            return Ok(Request::Script(Box::new(request)));
        }
    };
    read_pending(&mut typed, log)?;
    match command.as_str() {
        "help" => {
            log.raw(&help::fileio());
            Ok(Request::Done)
        }
        "prepare" => Ok(Request::Prepare(settings(general, &typed.values, false, log)?)),
        "cleanup" => Ok(Request::Cleanup(settings(general, &typed.values, false, log)?)),
        "run" => Ok(Request::Run(settings(general, &typed.values, true, log)?)),
        other => Err(log.usage(format!("Unknown command: {other}"))),
    }
}

fn settings(general: General, values: &Values, run: bool, log: &mut Log<'_>) -> Result<Settings, Quit> {
    Ok(Settings { general, fileio: Fileio::from_values(values, run, log)? })
}

fn sort(words: &[String], config: ReadConfig<'_>, log: &mut Log<'_>) -> Result<Typed, Quit> {
    let mut typed = Typed::default();
    for word in words {
        let Some(option) = word.strip_prefix("--") else {
            positional(&mut typed, word, log)?;
            continue;
        };
        if let Some(test) = option.strip_prefix("test=") {
            log.console.err(OLD_TEST);
            typed.old_style = true;
            // 0.4.12 took the command first as well: `sysbench run --test=fileio`.
            let first = typed.test.replace(test.to_string());
            typed.command = typed.command.or(first.filter(|word| COMMANDS.contains(&word.as_str())));
        } else if !take_general(&mut typed.values, option, config, log)? {
            typed.pending.push(option.to_string());
        }
    }
    Ok(typed)
}

fn positional(typed: &mut Typed, word: &str, log: &mut Log<'_>) -> Result<(), Quit> {
    if typed.test.is_none() {
        typed.test = Some(word.to_string());
    } else if typed.command.is_none() {
        typed.command = Some(word.to_string());
    } else {
        return Err(log.usage(format!("Unrecognized command line argument: {word}")));
    }
    Ok(())
}

/// Takes a general option; false if it is none, or has no value of its kind.
fn take_general(
    values: &mut Values,
    option: &str,
    config: ReadConfig<'_>,
    log: &mut Log<'_>,
) -> Result<bool, Quit> {
    let (name, value) = options::split(option);
    match options::general_kind(name) {
        None => Ok(false),
        Some(Kind::File) => {
            read_config(values, value.unwrap_or(""), config, log)?;
            Ok(true)
        }
        Some(kind) => Ok(values.set(name, value, kind)),
    }
}

/// A file that cannot be opened is complained about and passed over, as in sysbench.
fn read_config(
    values: &mut Values,
    path: &str,
    config: ReadConfig<'_>,
    log: &mut Log<'_>,
) -> Result<(), Quit> {
    if path.is_empty() {
        return Ok(());
    }
    match config(path) {
        Err(answer) => log.console.err(&format!("{path}: {answer}\n")),
        Ok(content) => {
            let read = values.read_config(&content);
            read.map_err(|complaint| log.usage(format!("{path}: {complaint}")))?;
        }
    }
    Ok(())
}

/// Which test was asked for.
enum Test {
    /// fileio, and the command.
    Fileio(String),
    /// A script: a file, or the name of a module.
    Script(String),
}

fn check_test(typed: &Typed, log: &mut Log<'_>) -> Result<Test, Quit> {
    let Some(test) = typed.test.as_deref().filter(|test| !test.is_empty() && *test != "-") else {
        return Err(log.usage(
            "weir reads no script from standard input: name the test and a command, as in 'sysbench fileio run'",
        ));
    };
    if test == "fileio" {
        let missing = "The 'fileio' test requires a command argument. See 'sysbench fileio help'";
        return typed.command.clone().map(Test::Fileio).ok_or_else(|| log.usage(missing));
    }
    if OTHER_TESTS.contains(&test) {
        return Err(log.usage(format!(
            "weir does not do sysbench's '{test}' test: it measures storage. Of sysbench's built-in tests it runs fileio."
        )));
    }
    Ok(Test::Script(test.to_string()))
}

fn read_pending(typed: &mut Typed, log: &mut Log<'_>) -> Result<(), Quit> {
    for option in &typed.pending {
        let (name, value) = options::split(option);
        let taken = options::fileio_kind(name).is_some_and(|kind| typed.values.set(name, value, kind));
        if !taken {
            return Err(log.usage(format!("invalid option: --{option}")));
        }
    }
    typed.values.defaults(options::FILEIO);
    warn_of_unknown(&typed.values, log);
    Ok(())
}

/// Says which options of a configuration file act on nothing.
pub fn warn_of_unknown(values: &Values, log: &mut Log<'_>) {
    for name in values.unknown() {
        log.console.err(&format!("WARNING: --config-file: unknown option '{name}' is ignored\n"));
    }
}
