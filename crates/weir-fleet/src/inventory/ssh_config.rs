//! Names of an ssh configuration: those of its `Host` lines that are no patterns.

use std::fs;
use std::path::{Path, PathBuf};

use super::matches;

/// How deep files may include one another; ssh's own limit (READCONF_MAX_DEPTH).
const DEPTH_MAX: usize = 16;

/// The names in the user's configuration, or in the one that was named, in its order.
pub fn names(config: Option<&Path>) -> Vec<String> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let own = home.map(|home| home.join(".ssh"));
    let files = match (config, &own) {
        (Some(file), _) => vec![file.to_path_buf()],
        (None, Some(own)) => vec![own.join("config"), PathBuf::from("/etc/ssh/ssh_config")],
        (None, None) => vec![PathBuf::from("/etc/ssh/ssh_config")],
    };
    let mut found = Vec::new();
    for file in files {
        collect(&file, own.as_deref(), 0, &mut found);
    }
    found
}

fn collect(file: &Path, own: Option<&Path>, depth: usize, found: &mut Vec<String>) {
    let Ok(text) = fs::read_to_string(file) else { return };
    for line in text.lines() {
        let Some((key, values)) = key_and_values(line) else { continue };
        match key.as_str() {
            "host" => found.extend(values.into_iter().filter(|name| !name.contains(['*', '?', '!']))),
            "include" if depth < DEPTH_MAX => {
                let folder = if file.starts_with("/etc") { Some(Path::new("/etc/ssh")) } else { own };
                for value in values {
                    for file in included(&value, folder) {
                        collect(&file, own, depth + 1, found);
                    }
                }
            }
            _ => {}
        }
    }
}

/// `Key value value`, `Key=value`; keys know no case.
fn key_and_values(line: &str) -> Option<(String, Vec<String>)> {
    let line = line.trim();
    let end = line.find(|c: char| c.is_whitespace() || c == '=')?;
    if line.starts_with('#') {
        return None;
    }
    let values = line[end..].trim_start_matches(|c: char| c.is_whitespace() || c == '=');
    Some((
        line[..end].to_ascii_lowercase(),
        values.split_whitespace().map(|word| word.trim_matches('"').to_string()).collect(),
    ))
}

/// The files that an `Include` names; patterns only in the last part.
fn included(value: &str, folder: Option<&Path>) -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let path = match (value.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => folder.unwrap_or(Path::new("")).join(value),
    };
    let (Some(above), Some(last)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Vec::new();
    };
    if !last.contains(['*', '?']) {
        return vec![path];
    }
    let names = fs::read_dir(above)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with('.') && matches(last, name)).collect();
    names.sort();
    names.into_iter().map(|name| above.join(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_patterns_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let more = folder.path().join("more.d");
        fs::create_dir(&more).unwrap();
        fs::write(more.join("10-web"), "host=web1\n").unwrap();
        fs::write(more.join(".hidden"), "Host hidden\n").unwrap();
        let config = folder.path().join("config");
        let text = format!(
            "# Host no\nInclude {}/*\nHost db1 db2 !db3 db*\n  HostName 10.0.0.1\nHost *\nHOST \"db4\"\nInclude {}\n",
            more.display(),
            config.display()
        );
        fs::write(&config, text).unwrap();
        let mut names = names(Some(&config));
        names.dedup();
        assert_eq!(names[0], "web1");
        assert!(names.contains(&"db4".to_string()) && names.contains(&"db2".to_string()), "{names:?}");
        assert!(
            !names.iter().any(|name| name.contains('*') || name == "hidden" || name == "db3" || name == "no"),
            "{names:?}"
        );
    }
}
