//! MySQL's and MariaDB's option files (`my.cnf`): groups, quotes, escapes and includes as their manuals give them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::around::read;

/// Includes within includes; a file that includes itself ends here.
const DEPTH_MAX: usize = 10;

/// Options of the groups that are read, by their names with dashes; what is read later counts.
#[derive(Debug, Default)]
pub(super) struct Options {
    /// Values; an option without one is empty.
    pub values: BTreeMap<String, String>,
    /// Files that were read.
    pub read: Vec<PathBuf>,
    /// What the user should know.
    pub notes: Vec<String>,
}

impl Options {
    /// Reads a file that may be missing; what the user `named` is believed whoever owns it.
    pub fn read(&mut self, path: &Path, named: bool, groups: &[&str]) {
        if let Err(error) = self.include(path, named, groups, 0)
            && error.kind() != io::ErrorKind::NotFound
        {
            self.notes.push(format!("{} is left out: {error}", path.display()));
        }
    }

    /// Takes in text that is one file.
    pub fn take(&mut self, text: &str, groups: &[&str]) {
        let mut inside = false;
        for line in text.lines() {
            self.line(line.trim(), &mut inside, groups);
        }
    }

    fn include(&mut self, path: &Path, named: bool, groups: &[&str], depth: usize) -> io::Result<()> {
        let found = read(path, named)?;
        let readable = found.readable;
        if found.writable {
            // As MySQL's own clients do: whoever can write it could name another server.
            self.notes.push(format!("{} is left out: everybody may write it", path.display()));
            return Ok(());
        }
        let text = found.text()?;
        let had_password = self.values.contains_key("password");
        let mut inside = false;
        for line in text.lines() {
            let line = line.trim();
            match line.strip_prefix('!') {
                Some(directive) => self.directive(path, directive, groups, depth),
                None => self.line(line, &mut inside, groups),
            }
        }
        if readable && !had_password && self.values.contains_key("password") {
            let path = path.display();
            self.notes
                .push(format!("{path} holds a password and others may read it; `chmod 600 {path}` hides it"));
        }
        self.read.push(path.to_path_buf());
        Ok(())
    }

    /// One line of a group, or the head of one.
    fn line(&mut self, line: &str, inside: &mut bool, groups: &[&str]) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            return;
        }
        if let Some(group) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            *inside = groups.contains(&group.0.trim());
            return;
        }
        if !*inside {
            return;
        }
        let (name, text) = line.split_once('=').unwrap_or((line, ""));
        let name = name.split('#').next().unwrap_or_default().trim().replace('_', "-");
        let name = name.strip_prefix("loose-").unwrap_or(&name);
        self.values.insert(name.to_string(), value(text));
    }

    /// `!include` and `!includedir`.
    fn directive(&mut self, from: &Path, directive: &str, groups: &[&str], depth: usize) {
        let mut words = directive.splitn(2, char::is_whitespace);
        let (word, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default().trim());
        let path = from.parent().unwrap_or(Path::new("/")).join(path);
        if depth >= DEPTH_MAX {
            self.notes.push(format!("{}: includes nest too deep", from.display()));
            return;
        }
        let done = match word {
            "include" => self.include(&path, false, groups, depth + 1),
            "includedir" => configuration_files(&path).and_then(|files| {
                files.iter().try_for_each(|file| self.include(file, false, groups, depth + 1))
            }),
            _ => Ok(()),
        };
        if let Err(error) = done {
            self.notes.push(format!("{}: cannot include {}: {error}", from.display(), path.display()));
        }
    }
}

/// The files that `!includedir` takes, in order of name.
fn configuration_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "cnf") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// A value without quotes, escapes and the comment after it.
fn value(text: &str) -> String {
    let text = text.trim();
    let quote = text.chars().next().filter(|c| ['"', '\''].contains(c));
    let mut out = String::new();
    let mut characters = text.chars().skip(usize::from(quote.is_some())).peekable();
    while let Some(c) = characters.next() {
        match c {
            c if Some(c) == quote => return out,
            // Outside of quotes a number sign begins a comment, wherever it stands.
            '#' if quote.is_none() => break,
            '\\' => match characters.next() {
                Some('b') => out.push('\u{8}'),
                Some('t') => out.push('\t'),
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some('s') => out.push(' '),
                Some('\\') | None => out.push('\\'),
                Some(quoted @ ('"' | '\'')) => out.push(quoted),
                Some(other) => out.extend(['\\', other]),
            },
            c => out.push(c),
        }
    }
    out.trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_mysqls_clients_do() {
        for (text, expected) in [
            ("plain", "plain"),
            ("  spaced out  # comment", "spaced out"),
            ("'it # is'", "it # is"),
            ("\"a\\\"b\" # c", "a\"b"),
            ("a\\sb\\\\c\\q", "a b\\c\\q"),
            ("cut#here", "cut"),
            ("", ""),
        ] {
            assert_eq!(value(text), expected, "{text}");
        }
    }

    #[test]
    fn groups_includes_and_openness() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, mode: u32, text: &str| {
            let path = dir.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        fs::create_dir(dir.path().join("d")).unwrap();
        write("d/b.cnf", 0o600, "[weir]\nuser=from_b\n");
        write("d/a.cnf", 0o600, "[client]\nuser=from_a\nport = 3307\n");
        write("d/open.cnf", 0o666, "[client]\nport = 1\n");
        write("d/other.txt", 0o600, "[client]\nport = 2\n");
        let own = "# x\n[mysqld]\nuser=mysql\n[ client ]\nloose_ssl_ca = /ca\npassword='s#t'\nskip-ssl\n";
        let own = write("my.cnf", 0o644, &format!("{own}!includedir d\n!include gone.cnf\n"));
        let mut options = Options::default();
        options.read(&own, false, &["client", "weir"]);
        options.read(&dir.path().join("missing.cnf"), false, &["client"]);
        let expected =
            [("password", "s#t"), ("port", "3307"), ("skip-ssl", ""), ("ssl-ca", "/ca"), ("user", "from_b")];
        let found: Vec<(&str, &str)> = options.values.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(found, expected);
        for (note, word) in options.notes.iter().zip(["everybody may write", "gone.cnf", "others may read"]) {
            assert!(note.contains(word) && !note.contains("s#t"), "{note}");
        }
        assert_eq!(options.notes.len(), 3);
    }

    #[test]
    fn a_file_that_includes_itself_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("my.cnf");
        fs::write(&path, "[client]\nuser=u\n!include my.cnf\n").unwrap();
        let mut options = Options::default();
        options.read(&path, false, &["client"]);
        assert_eq!(options.values["user"], "u");
        assert!(options.notes.iter().any(|note| note.contains("nest too deep")), "{:?}", options.notes);
    }
}
