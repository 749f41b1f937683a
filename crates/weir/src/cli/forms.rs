//! `--json` and `--format json` mean the same wherever there is one of them: nobody has to remember which command has which.

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Command};

/// The heading under which commands with many options have those of their results.
const OUTPUT: &str = "Output";

/// A command and all below it, each with both.
pub fn both(command: Command) -> Command {
    let below: Vec<String> = command.get_subcommands().map(|c| c.get_name().to_string()).collect();
    let command = below.into_iter().fold(command, |command, name| command.mut_subcommand(name, both));
    let argument = |name: &str| command.get_arguments().find(|argument| argument.get_id() == name);
    let heading =
        |beside: &Arg| beside.get_help_heading().filter(|heading| *heading == OUTPUT).map(|_| OUTPUT);
    match (argument("format"), argument("json")) {
        (Some(format), None) if offers_json(format) => {
            let json = Arg::new("json")
                .long("json")
                .help("The same as --format json")
                .action(ArgAction::SetTrue)
                .conflicts_with("format")
                .help_heading(heading(format));
            command.mut_arg("format", |format| format.default_value_if("json", "true", "json")).arg(json)
        }
        (None, Some(json)) => {
            let format = Arg::new("format")
                .long("format")
                .value_name("FORMAT")
                .help("text, or json, which is the same as --json")
                .value_parser(PossibleValuesParser::new(["text", "json"]))
                .hide_possible_values(true)
                .conflicts_with("json")
                .help_heading(heading(json));
            command.mut_arg("json", |json| json.default_value_if("format", "json", "true")).arg(format)
        }
        _ => command,
    }
}

fn offers_json(format: &Arg) -> bool {
    format.get_possible_values().iter().any(|value| value.get_name() == "json")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command whose arguments the matches speak of.
    fn last(matches: &clap::ArgMatches) -> &clap::ArgMatches {
        matches.subcommand().map_or(matches, |(_, below)| last(below))
    }

    #[test]
    fn json_can_be_asked_for_in_either_way_everywhere() {
        let cases: &[(&str, &str)] = &[
            ("doctor", "format"),
            ("bench", "format"),
            ("compare 1 2", "format"),
            ("results show", "format"),
            ("tune ab found vm.swappiness=1", "format"),
            ("tune resume", "format"),
            ("trace read x", "format"),
            ("trace diff a b", "format"),
            ("trace util sda", "format"),
            ("db run", "format"),
            ("db doctor", "format"),
            ("db scale", "format"),
            ("guard run", "format"),
            ("guard simulate", "format"),
            ("trace live", "json"),
            ("trace fsync", "json"),
            ("knobs list", "json"),
            ("knobs show vm.dirty", "json"),
            ("knobs apply --dry-run vm.swappiness=1", "json"),
            ("guard status", "json"),
            ("guard watch", "json"),
            ("db sandbox list", "json"),
            ("results list", "json"),
        ];
        for (line, has) in cases {
            for (way, asked) in [("--json", true), ("--format=json", true), ("--format=text", false)] {
                let words = ["weir"].into_iter().chain(line.split(' ')).chain([way]);
                let matches = crate::cli::command()
                    .try_get_matches_from(words)
                    .unwrap_or_else(|error| panic!("{line} {way}: {error}"));
                let matches = last(&matches);
                let taken = match *has {
                    "json" => matches.get_flag("json"),
                    _ => matches
                        .get_raw("format")
                        .is_some_and(|mut values| values.next() == Some("json".as_ref())),
                };
                assert_eq!(taken, asked, "weir {line} {way}");
            }
            let both = ["weir"].into_iter().chain(line.split(' ')).chain(["--json", "--format=text"]);
            assert!(crate::cli::command().try_get_matches_from(both).is_err(), "weir {line}: both at once");
        }
    }

    /// What terminals of 80 columns would break stands on lines of its own; what is prose breaks by itself.
    #[test]
    fn examples_fit_a_terminal_and_prose_is_left_to_it() {
        fn check(command: &Command, path: &str) {
            let path = format!("{path} {}", command.get_name());
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            for (at, line) in lines.iter().enumerate() {
                let indented = line.starts_with(' ');
                assert!(!indented || line.chars().count() <= 80, "{path}: longer than 80: {line}");
                let goes_on = !indented
                    && !line.is_empty()
                    && lines.get(at + 1).is_some_and(|next| !next.is_empty() && !next.starts_with(' '));
                assert!(!goes_on || line.ends_with(['.', ':']), "{path}: broken by hand: {line}");
            }
            command.get_subcommands().for_each(|below| check(below, &path));
        }
        check(&crate::cli::command(), "");
    }
}
