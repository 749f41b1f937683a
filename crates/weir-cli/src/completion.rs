//! Completion of what is typed after a program of weir's: the scripts of shells, and the answers to them.
//!
//! clap_complete calls this interface of its unstable: scripts of one version may not understand another's answers. The
//! installation writes both, and Cargo.lock holds the version.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use clap::Command;
use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Shells, Zsh};
use clap_complete::{CompleteEnv, Shell};

/// By this variable a shell's script asks for what may come next.
const VARIABLE: &str = "WEIR_COMPLETE";

/// The shells that ask. Those that quote what they are offered, and those that do not.
const SHELLS: Shells<'static> = Shells(&[&Bash, &Elvish, &Fish, &Plain(Powershell), &Zsh]);

/// Answers a shell that asks, and ends the process; returns at once where none does.
pub fn answer(commands: impl Fn() -> Command) {
    CompleteEnv::with_factory(commands).var(VARIABLE).shells(SHELLS).complete();
}

/// A shell that puts what it is offered into the command line as it is, a candidate in a line, and even runs the command line to ask
/// for the next: it is offered what is a word to it and nothing more. Others choose the names of files.
struct Plain<S>(S);

impl<S: EnvCompleter> EnvCompleter for Plain<S> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn is(&self, name: &str) -> bool {
        self.0.is(name)
    }

    fn write_registration(
        &self,
        variable: &str,
        name: &str,
        program: &str,
        completer: &str,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        self.0.write_registration(variable, name, program, completer, out)
    }

    fn write_complete(
        &self,
        command: &mut Command,
        words: Vec<OsString>,
        folder: Option<&Path>,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        let mut all = Vec::new();
        self.0.write_complete(command, words, folder, &mut all)?;
        let all = String::from_utf8_lossy(&all);
        let word = |line: &&str| is_plain(line.split('\t').next().unwrap_or_default());
        all.lines().filter(word).try_for_each(|line| writeln!(out, "{line}"))
    }
}

/// Whether a shell reads it as a word, and weir not as an option because of a file's name.
fn is_plain(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./_~-".contains(c);
    word.chars().all(plain) && !(word.starts_with('-') && Path::new(word).symlink_metadata().is_ok())
}

/// Whether a shell asks about a command line whose first word behind the program is this command.
pub fn is_about(command: &str) -> bool {
    let asks = std::env::var_os(VARIABLE).is_some_and(|shell| !shell.is_empty() && shell != "0");
    // The shell's words are behind `--`, the program's name first.
    asks && std::env::args_os().skip_while(|word| word != "--").nth(2).is_some_and(|word| word == command)
}

/// The script with which a shell asks this program.
///
/// # Errors
/// Where there is none for the shell.
pub fn script(program: &str, shell: Shell) -> io::Result<String> {
    let mut script = Vec::new();
    let name = shell.to_string();
    let of_shell = SHELLS;
    let of_shell =
        of_shell.completer(&name).ok_or_else(|| io::Error::other(format!("no script for {name}")))?;
    of_shell.write_registration(VARIABLE, program, program, program, &mut script)?;
    let function = program.replace('-', "_");
    let more = match shell {
        Shell::Zsh => zsh_first(program, &function),
        Shell::Bash => bash_plain(program, &function),
        _ => String::new(),
    };
    Ok(String::from_utf8_lossy(&script).into_owned() + &more)
}

/// zsh runs a file of completions when it first needs it, and expects an answer from that run.
fn zsh_first(program: &str, function: &str) -> String {
    format!("\n[ \"$funcstack[1]\" = _{program} ] && _clap_dynamic_completer_{function}\n")
}

/// bash puts what it is offered into the command line as it is, and others choose the names of files: what a shell would
/// read as more than a word is not offered, nor is a file that weir would read as an option.
fn bash_plain(program: &str, function: &str) -> String {
    r#"
_FUNCTION_plain() {
    _clap_complete_FUNCTION "$@"
    local at
    for at in "${!COMPREPLY[@]}"; do
        case ${COMPREPLY[at]} in
            *[!A-Za-z0-9@%+=:,./_~-]*) unset "COMPREPLY[at]" ;;
            -*) [ ! -e "./${COMPREPLY[at]}" ] || unset "COMPREPLY[at]" ;;
        esac
    done
    COMPREPLY=("${COMPREPLY[@]}")
}
complete -o nospace -o bashdefault -F _FUNCTION_plain PROGRAM
"#
    .replace("FUNCTION", function)
    .replace("PROGRAM", program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_has_functions_of_its_own() {
        let bash = script("weir-fleet", Shell::Bash).unwrap();
        assert!(bash.contains("\n_clap_complete_weir_fleet() {"), "{bash}");
        assert!(bash.ends_with("-F _weir_fleet_plain weir-fleet\n"), "{bash}");
        let zsh = script("weir", Shell::Zsh).unwrap();
        assert!(zsh.ends_with("[ \"$funcstack[1]\" = _weir ] && _clap_dynamic_completer_weir\n"), "{zsh}");
    }
}
