//! The script that runs on a host, as an argument of ssh, and the lines that it understands.

use std::time::Duration;

/// The script. Lines that are comments stay here.
const SCRIPT: &str = include_str!("agent.sh");

/// Stands in an argument for a folder on the host whose files are pulled.
pub const OUT: &str = "{out}";

/// The most that it gives of what weir printed.
pub const TEXT_BYTES: u64 = 16 << 20;

/// How the script is asked to run.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Begins every line that the script answers. Nothing else that the host prints has it.
    pub mark: &'a str,
    /// As root, by `sudo -n`.
    pub sudo: bool,
    /// Free space that it needs.
    pub need_bytes: u64,
    /// weir is ended after this time, also where nobody is there any more to end it.
    pub longest: Duration,
}

/// The command for ssh: any login shell takes it, since the script has no single quote in it.
pub fn command(asked: &Asked<'_>) -> String {
    let script: String = SCRIPT
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .fold(String::new(), |all, line| all + line + "\n");
    let mode = if asked.sudo { "sudo" } else { "plain" };
    let (need_kib, seconds) = (asked.need_bytes.div_ceil(1024), asked.longest.as_secs().max(1));
    format!("exec sh -c 'eval \"$1\"' weir-fleet '{script}' {} {mode} {need_kib} {seconds}", asked.mark)
}

/// The line that runs weir with these arguments.
///
/// # Errors
/// When an argument has a control character: a line end would end the line.
pub fn run(arguments: &[String]) -> Result<String, String> {
    let mut line = String::from("run");
    for argument in arguments {
        if argument.chars().any(char::is_control) {
            return Err(format!("the argument {argument:?} has a control character"));
        }
        let parts: Vec<String> = argument.split(OUT).map(quoted).collect();
        line.push(' ');
        line.push_str(&parts.join("\"$d/files\""));
    }
    Ok(line + "\n")
}

/// A word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_login_shell_can_pass_the_script_on() {
        let asked = Asked { mark: "m", sudo: true, need_bytes: 1025, longest: Duration::from_secs(60) };
        let command = command(&asked);
        let script = command.split('\'').nth(3).unwrap();
        assert!(script.contains("mktemp -d") && !script.contains("\\'") && !script.contains("\\\\"));
        assert_eq!(command.matches('\'').count(), 4);
        assert!(command.ends_with(" m sudo 2 60"), "{command}");
        assert!(script.contains(&format!("text) give \"$d/$rest\" {TEXT_BYTES} ")), "{script}");
        // execve takes 128 KiB for one argument.
        assert!(command.len() < 16 << 10);
    }

    #[test]
    fn arguments_are_words_whatever_is_in_them() {
        let words = ["bench", "a b", "it's", "$(reboot)", "{out}/x", "-- ;|&"].map(String::from);
        assert_eq!(
            run(&words).unwrap(),
            "run 'bench' 'a b' 'it'\\''s' '$(reboot)' ''\"$d/files\"'/x' '-- ;|&'\n"
        );
        assert!(run(&["a\nbye".to_string()]).is_err());
    }
}
