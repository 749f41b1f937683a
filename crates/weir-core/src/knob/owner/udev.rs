//! udev rules that write attributes of a device.

use super::{File, UDEV_DIRS, glob, in_order};
use crate::knob::Owner;

/// `KEY{attribute}OPERATOR"value"` of a rule.
struct Token<'a> {
    key: &'a str,
    attribute: Option<&'a str>,
    operator: &'a str,
    value: &'a str,
}

/// Rules that write the file of a device's knob and do not rule the device out by its name; the last first.
pub fn owners(files: &[File], device: &str, knob_file: &str) -> Vec<Owner> {
    let Some(attribute) = knob_file.strip_prefix(&format!("/sys/block/{device}/")) else { return Vec::new() };
    let mut owners: Vec<Owner> =
        in_order(files, &UDEV_DIRS).into_iter().flat_map(|file| of_file(file, device, attribute)).collect();
    owners.reverse();
    owners
}

fn of_file(file: &File, device: &str, attribute: &str) -> Vec<Owner> {
    rules(&file.text)
        .into_iter()
        .filter_map(|(line, rule)| {
            let tokens = tokens(&rule);
            let writes = tokens.iter().rev().find(|token| writes(token, attribute))?;
            let fits = tokens.iter().all(|token| may_fit(token, device));
            fits.then(|| Owner {
                kind: "udev".to_string(),
                place: format!("{}:{line}{}", file.path, conditions(&tokens)),
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

/// Whether a token leaves it possible that the rule is for this disk.
fn may_fit(token: &Token<'_>, device: &str) -> bool {
    let text = match (token.key, token.attribute) {
        ("KERNEL", _) => device,
        ("SUBSYSTEM", _) => "block",
        ("ENV", Some("DEVTYPE")) => "disk",
        _ => return true,
    };
    match token.operator {
        "==" => glob::any_matches(token.value, text),
        "!=" => !glob::any_matches(token.value, text),
        _ => true,
    }
}

/// What a rule asks for besides the name, for people to judge.
fn conditions(tokens: &[Token<'_>]) -> String {
    let asks = |token: &&Token<'_>| {
        matches!(token.operator, "==" | "!=")
            && !matches!(token.key, "KERNEL" | "SUBSYSTEM" | "ACTION")
            && token.attribute != Some("DEVTYPE")
    };
    let said: Vec<String> = tokens
        .iter()
        .filter(asks)
        .map(|Token { key, attribute, operator, value }| {
            let attribute = attribute.map(|attribute| format!("{{{attribute}}}")).unwrap_or_default();
            format!("{key}{attribute}{operator}\"{value}\"")
        })
        .collect();
    if said.is_empty() { String::new() } else { format!(" (where {})", said.join(", ")) }
}
