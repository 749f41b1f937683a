//! What installs of services have in common: which program may run, and words of units of systemd.

use std::io;
use std::path::Path;

use crate::failure::Lacking;

/// Where dashboards lie unless they are asked for elsewhere.
pub const SHARE: &str = "/usr/local/share/weir";

/// Folders of which a program is likely to go away, or which the service does not see.
const PASSING: [&str; 5] = ["/tmp", "/var/tmp", "/home", "/root", "/dev"];

/// Why the program should be elsewhere before a service depends on it.
pub fn passing(program: &Path) -> Option<String> {
    let folder = PASSING.iter().find(|folder| program.starts_with(folder))?;
    Some(format!(
        "the service would run {}, and files under {folder} may go away: install weir to /usr/local/bin \
         first",
        program.display()
    ))
}

/// Whether only root can change what the service would run: root runs it at every boot.
///
/// # Errors
/// What others can change, and what to do.
pub fn check_program(program: &Path) -> Result<(), Lacking> {
    let refused = |why: String| Lacking {
        what: format!(
            "the service would run {} as root, and other accounts can change it: {why}",
            program.display()
        ),
        hint: Some("install -o root -g root -m 755 weir /usr/local/bin/weir, and run that one".to_string()),
    };
    weir_fs::trusted_chain(program).map(drop).map_err(|error| refused(error.to_string()))
}

/// A device, or a path on one, as a service has to be told it: a service does not start in the folder where it was typed.
///
/// # Errors
/// When the current folder is not known.
pub fn device(typed: &str) -> io::Result<String> {
    let is_name = !typed.contains('/')
        && (Path::new("/sys/class/block").join(typed).exists() || !Path::new(typed).exists());
    Ok(if is_name { typed.to_string() } else { std::path::absolute(typed)?.to_string_lossy().into_owned() })
}

/// A word of a command as systemd reads it: without variables, too.
pub fn argument(text: &str) -> String {
    word(&text.replace('$', "$$"))
}

/// A word as systemd reads it in a list: quoted where it must be, without specifiers.
pub fn word(text: &str) -> String {
    let text = text.replace('%', "%%");
    if text.contains([' ', '"', '\\', '\'', ';']) {
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        text
    }
}

/// Kinds of sockets that a service may make, with a port or without.
pub fn families(port: bool) -> &'static str {
    if port { "AF_UNIX AF_INET AF_INET6" } else { "AF_UNIX" }
}

/// Lines on the addresses that it may have to do with.
pub fn addresses(for_others: bool) -> &'static str {
    if for_others { "" } else { "IPAddressDeny=any\nIPAddressAllow=localhost\n" }
}

#[cfg(test)]
pub mod testing {
    //! What dashboards show.

    /// Holds a dashboard's expressions against the source of its metrics; how many names there are.
    pub fn dashboard_names(dashboard: &str, metrics: &str, prefix: &str) -> usize {
        let board: serde_json::Value = serde_json::from_str(dashboard).unwrap();
        let panels = board["panels"].as_array().unwrap();
        let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
        targets.map(|target| names_in(target["expr"].as_str().unwrap(), metrics, prefix)).sum()
    }

    /// The same of a text in which they stand.
    pub fn names_in(expressions: &str, metrics: &str, prefix: &str) -> usize {
        let words = expressions.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let mut seen = 0;
        for name in words.filter(|word| word.starts_with(prefix)) {
            let family = ["_total", "_bucket", "_count", "_sum"]
                .iter()
                .fold(name, |name, suffix| name.trim_end_matches(suffix));
            let known = [name, family].iter().any(|name| metrics.contains(&format!("\"{name}\"")));
            assert!(known, "{expressions}: there is no metric {name}");
            seen += 1;
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_words_of_a_service() {
        assert!(passing(Path::new("/home/me/target/release/weir")).is_some());
        assert_eq!(passing(Path::new("/usr/local/bin/weir")), None);
        assert_eq!(argument("/opt/100% $my\\weir"), "\"/opt/100%% $$my\\\\weir\"");
    }

    #[test]
    fn a_program_that_others_may_change_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        // A folder that anybody may write to; what is in it is as good as theirs.
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("weir");
        std::fs::write(&program, "").unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let refused = check_program(&program).unwrap_err();
        assert!(refused.what.contains("other accounts can change it"), "{}", refused.what);
        let safe = Path::new("/bin/sh");
        assert!(check_program(safe).is_ok());
        assert!(check_program(&folder.path().join("none")).is_err());
    }
}
