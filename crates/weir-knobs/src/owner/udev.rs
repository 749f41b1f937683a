//! udev rules that write attributes of a device.

use weir_core::glob;

use super::{File, UDEV_DIRS, in_order};
use crate::Owner;

/// `KEY{attribute}OPERATOR"value"` of a rule.
struct Token<'a> {
    key: &'a str,
    attribute: Option<&'a str>,
    operator: &'a str,
    value: &'a str,
}

/// A device as rules see it: its name, and its files by their names under its folder.
struct Device<'a> {
    name: &'a str,
    attribute: &'a dyn Fn(&str) -> Option<String>,
}

/// Rules that write the file of a device's knob and do not rule the device out; the last first.
pub fn owners(
    files: &[File],
    name: &str,
    knob_file: &str,
    attribute: &dyn Fn(&str) -> Option<String>,
) -> Vec<Owner> {
    let Some(setting) = knob_file.strip_prefix(&format!("/sys/block/{name}/")) else { return Vec::new() };
    let device = Device { name, attribute };
    let in_order = in_order(files, &UDEV_DIRS).into_iter();
    let mut owners: Vec<Owner> = in_order.flat_map(|file| of_file(file, &device, setting)).collect();
    owners.reverse();
    owners
}

fn of_file(file: &File, device: &Device<'_>, setting: &str) -> Vec<Owner> {
    rules(&file.text)
        .into_iter()
        .filter_map(|(line, rule)| {
            let tokens = tokens(&rule);
            let writes = tokens.iter().rev().find(|token| writes(token, setting))?;
            let answers: Vec<Option<bool>> = tokens.iter().map(|token| device.fits(token)).collect();
            let open = tokens.iter().zip(&answers).filter(|(_, answer)| answer.is_none());
            let unjudged = conditions(open.map(|(token, _)| token));
            (!answers.contains(&Some(false))).then(|| Owner {
                kind: "udev".to_string(),
                place: format!("{}:{line}{unjudged}", file.path),
                value: writes.value.to_string(),
            })
        })
        .collect()
}

/// Rules with the number of their first line: a backslash at its end continues a line.
fn rules(text: &str) -> Vec<(usize, String)> {
    let mut rules = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with('#') {
            continue;
        }
        let (start, mut rule) = open.take().unwrap_or((index + 1, String::new()));
        match line.trim_end().strip_suffix('\\') {
            Some(part) => {
                rule.push_str(part);
                open = Some((start, rule));
            }
            None => {
                rule.push_str(line);
                rules.push((start, rule));
            }
        }
    }
    rules.extend(open);
    rules
}

/// The tokens of a rule, as far as it is whole.
fn tokens(rule: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = rule;
    while let Some((token, after)) = token(rest) {
        tokens.push(token);
        rest = after;
    }
    tokens
}

fn token(text: &str) -> Option<(Token<'_>, &str)> {
    const OPERATORS: [&str; 6] = ["==", "!=", "+=", "-=", ":=", "="];
    let text = text.trim_start_matches([' ', '\t', ',']);
    let quote = text.find('"')?;
    let before = text[..quote].trim_end_matches(['e', 'i']).trim_end();
    let operator = OPERATORS.into_iter().find(|operator| before.ends_with(operator))?;
    let key = before[..before.len() - operator.len()].trim();
    let (key, attribute) = match key.split_once('{') {
        Some((key, attribute)) => (key, attribute.strip_suffix('}')),
        None => (key, None),
    };
    let value = &text[quote + 1..];
    let end = value.find('"')?;
    Some((Token { key, attribute, operator, value: &value[..end] }, &value[end + 1..]))
}

fn writes(token: &Token<'_>, attribute: &str) -> bool {
    token.key == "ATTR" && matches!(token.operator, "=" | ":=") && token.attribute == Some(attribute)
}

impl Device<'_> {
    /// Whether the device fits what a token asks for; `None` where that cannot be judged.
    fn fits(&self, token: &Token<'_>) -> Option<bool> {
        let text = match (token.key, token.attribute) {
            ("KERNEL", _) => self.name.to_string(),
            ("SUBSYSTEM", _) => "block".to_string(),
            ("ENV", Some("DEVTYPE")) => "disk".to_string(),
            ("ATTR", Some(attribute)) if is_question(token) => {
                (self.attribute)(attribute)?.trim().to_string()
            }
            // Both happen to every device.
            ("ACTION", _) => return Some(true),
            _ => return if is_question(token) { None } else { Some(true) },
        };
        match token.operator {
            "==" => Some(glob::any_matches(token.value, &text)),
            "!=" => Some(!glob::any_matches(token.value, &text)),
            _ => Some(true),
        }
    }
}

fn is_question(token: &Token<'_>) -> bool {
    matches!(token.operator, "==" | "!=")
}

/// What could not be judged, for people to do so.
fn conditions<'a>(tokens: impl Iterator<Item = &'a Token<'a>>) -> String {
    let said: Vec<String> = tokens
        .map(|Token { key, attribute, operator, value }| {
            let attribute = attribute.map(|attribute| format!("{{{attribute}}}")).unwrap_or_default();
            format!("{key}{attribute}{operator}\"{value}\"")
        })
        .collect();
    if said.is_empty() { String::new() } else { format!(" (where {})", said.join(", ")) }
}
