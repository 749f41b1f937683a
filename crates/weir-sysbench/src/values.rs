//! Options as typed, before they mean anything: names to texts, and the readers of texts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::log::{Log, Quit};
use super::options::{self, Kind, Known};

/// What was given or is the default, by name with underscores.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Values {
    texts: BTreeMap<String, Vec<String>>,
    given: BTreeSet<String>,
    /// Options of a configuration file that no built-in test takes.
    unknown: BTreeMap<String, Vec<String>>,
}

/// Says what was given, but no password.
impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.texts.iter().filter(|(name, _)| !name.ends_with("password"));
        f.debug_map().entries(shown).finish()
    }
}

fn key(name: &str) -> String {
    name.replace('-', "_")
}

impl Values {
    /// Fills in the defaults of options that have no value yet.
    pub fn defaults<'a>(&mut self, known: impl IntoIterator<Item = &'a Known>) {
        for option in known {
            self.default_of(option.name, option.default, option.kind);
        }
    }

    /// The same for one option.
    pub fn default_of(&mut self, name: &str, default: Option<&str>, kind: Kind) {
        let default = || split_value(Some(default.unwrap_or("")), kind).unwrap_or_default();
        self.texts.entry(key(name)).or_insert_with(default);
    }

    /// Sets an option; false if a flag's value is none.
    pub fn set(&mut self, name: &str, value: Option<&str>, kind: Kind) -> bool {
        match split_value(value, kind) {
            None => false,
            Some(texts) => {
                self.put(name, texts);
                true
            }
        }
    }

    fn put(&mut self, name: &str, texts: Vec<String>) {
        self.texts.insert(key(name), texts);
        self.given.insert(key(name));
    }

    /// Whether an option was given, rather than left at its default.
    pub fn given(&self, name: &str) -> bool {
        self.given.contains(&key(name))
    }

    /// Takes in a configuration file: `name=value`, values quoted or not, `#` starts a comment after the `=`.
    /// Returns the complaint about a line that cannot be read.
    pub fn read_config(&mut self, content: &str) -> Result<(), String> {
        for (index, line) in content.lines().enumerate() {
            let Some((name, rest)) = line.split_once('=') else { continue };
            let name = name.trim();
            if name.starts_with('#') {
                continue;
            }
            let texts = config_values(rest).ok_or_else(|| format!("unexpected EOL on line {}", index + 1))?;
            match options::general_kind(name).or_else(|| options::fileio_kind(name)) {
                None => {
                    self.unknown.insert(key(name), texts);
                }
                Some(Kind::Flag) => {
                    if !self.set(name, texts.first().map(String::as_str), Kind::Flag) {
                        return Err(format!("invalid option: {line}"));
                    }
                }
                Some(_) => self.put(name, texts),
            }
        }
        Ok(())
    }

    /// An option of a configuration file, once somebody takes it; the command line goes before.
    pub fn take_unknown(&mut self, name: &str, kind: Kind) {
        if let Some(texts) = self.unknown.remove(&key(name))
            && !self.given(name)
        {
            let first = texts.first().map(String::as_str);
            match kind {
                Kind::Flag => self.texts.insert(key(name), split_value(first, kind).unwrap_or_default()),
                _ => self.texts.insert(key(name), texts),
            };
        }
    }

    /// The options of a configuration file that nobody took.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        self.unknown.keys().map(String::as_str)
    }

    fn first(&self, name: &str) -> Option<&str> {
        self.texts.get(&key(name)).and_then(|texts| texts.first()).map(String::as_str)
    }

    /// A flag.
    pub fn flag(&self, name: &str) -> bool {
        self.first(name).is_some()
    }

    /// A text; `None` where it is empty.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.first(name)
    }

    /// A list.
    pub fn list(&self, name: &str) -> &[String] {
        self.texts.get(&key(name)).map_or(&[], Vec::as_slice)
    }

    /// A whole number; an empty value is 0.
    pub fn int(&self, name: &str, log: &mut Log<'_>) -> Result<i32, Quit> {
        let Some(text) = self.first(name) else { return Ok(0) };
        text.trim_start().parse::<i32>().map_err(|_| invalid(name, text, log))
    }

    /// A decimal number; an empty value is 0. sysbench takes `abc` for 0; weir refuses it.
    pub fn double(&self, name: &str, log: &mut Log<'_>) -> Result<f64, Quit> {
        let Some(text) = self.texts.get(&key(name)).and_then(|texts| texts.last()) else { return Ok(0.0) };
        let value = text.trim_start().parse::<f64>().ok().filter(|v| v.is_finite());
        value.ok_or_else(|| invalid(name, text, log))
    }

    /// A size: digits and the first letter after them; an unknown letter, or too much, gives 0 as in sysbench.
    pub fn size(&self, name: &str) -> u64 {
        self.first(name).map_or(0, parse_size)
    }
}

/// The texts a value stands for; `None` where a flag's value is none.
fn split_value(value: Option<&str>, kind: Kind) -> Option<Vec<String>> {
    Some(match kind {
        Kind::Flag => match value {
            None | Some("on" | "true" | "1") => vec!["on".to_string()],
            Some("off" | "false" | "0") => vec![],
            Some(_) => return None,
        },
        Kind::List => value.unwrap_or("").split(',').filter(|t| !t.is_empty()).map(str::to_string).collect(),
        _ => value.filter(|v| !v.is_empty()).map(str::to_string).into_iter().collect(),
    })
}

fn invalid(name: &str, text: &str, log: &mut Log<'_>) -> Quit {
    log.usage(format!("Invalid value for the '{}' option: '{text}'", key(name)))
}

fn parse_size(text: &str) -> u64 {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let Ok(number) = text[..digits].parse::<u64>() else { return 0 };
    let exponent = match text[digits..].chars().next().map(|c| c.to_ascii_uppercase()) {
        None => 0,
        Some('K') => 1,
        Some('M') => 2,
        Some('G') => 3,
        Some('T') => 4,
        Some(_) => return 0,
    };
    number.checked_mul(1024u64.pow(exponent)).unwrap_or(0)
}

/// The values after the `=`; `None` where a quote is not closed.
fn config_values(rest: &str) -> Option<Vec<String>> {
    let mut values = Vec::new();
    let mut rest = rest.trim_start();
    while let Some(first) = rest.chars().next() {
        if first == '#' {
            break;
        }
        let taken = if first == '\'' || first == '"' {
            let end = rest[1..].find(first)?;
            values.push(rest[1..=end].to_string());
            let after = &rest[end + 2..];
            rest.len() - after.len() + after.find(',').map_or(after.len(), |comma| comma + 1)
        } else {
            let end = rest.find(|c: char| c == ',' || c.is_ascii_whitespace()).unwrap_or(rest.len());
            if end > 0 {
                values.push(rest[..end].to_string());
            }
            (end + 1).min(rest.len())
        };
        rest = rest[taken..].trim_start();
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Kept;

    #[test]
    fn sizes_follow_sysbench() {
        let cases = [
            ("4096", 4096),
            ("16k", 16384),
            ("16KiB", 16384),
            ("2G", 2 << 30),
            ("1t", 1 << 40),
            ("2.5G", 0),
            ("1P", 0),
            ("", 0),
            ("G", 0),
            ("99999999999999999999", 0),
            ("99999999999T", 0),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_size(text), expected, "{text}");
        }
    }

    #[test]
    fn configuration_files_are_read() {
        let content = "# a comment = x\nthreads=4 # four\nfile-num=2\nvalidate=off\ndebug=on\n\
                       file_extra_flags='dsync',direct\nfile-test-mode=\"rndrw\"\nno equals sign\nbogus=1\n";
        let mut values = Values::default();
        values.read_config(content).unwrap();
        let mut kept = Kept::default();
        let mut log = Log::new(&mut kept);
        assert_eq!(values.int("threads", &mut log), Ok(4));
        assert_eq!(values.int("file-num", &mut log), Ok(2));
        assert_eq!(values.list("file-extra-flags"), ["dsync", "direct"]);
        assert_eq!(values.text("file-test-mode"), Some("rndrw"));
        assert!(values.flag("debug") && !values.flag("validate"));
        assert!(values.unknown().eq(["bogus"]));
        assert_eq!(
            Values::default().read_config("threads=1\nx='open\n").unwrap_err(),
            "unexpected EOL on line 2"
        );
    }
}
