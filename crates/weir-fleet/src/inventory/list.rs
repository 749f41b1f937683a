//! Hosts as they are typed: lists, ranges, accounts and ports.

use super::{HOSTS_MAX, Host};

/// The words of a list with commas or blanks between. A comma in brackets belongs to a word.
pub fn words(text: &str) -> Vec<String> {
    text.split(|c: char| c == ',' || c.is_whitespace())
        .filter(|word| !word.is_empty())
        .map(String::from)
        .collect()
}

/// The words of a file: what follows `#` is a comment.
pub fn lines(text: &str) -> Vec<String> {
    text.lines().flat_map(|line| words(line.split('#').next().unwrap_or_default())).collect()
}

/// A word with ranges in it, as the words that it stands for: `db[01:03]` is db01, db02, db03; `[a:c]` letters; `[1:9:2]` every second.
pub fn expanded(word: &str) -> Result<Vec<String>, String> {
    let mut done = vec![String::new()];
    let mut rest = word;
    while let Some((before, inner, after)) = first_range(rest) {
        let values = range(inner)
            .ok_or_else(|| format!("`{word}`: expected a range such as [01:20], got [{inner}]"))?;
        if done.len() * values.len() > HOSTS_MAX {
            return Err(format!("`{word}` stands for more than {HOSTS_MAX} hosts"));
        }
        done = done
            .iter()
            .flat_map(|head| values.iter().map(move |value| format!("{head}{before}{value}")))
            .collect();
        rest = after;
    }
    done.iter_mut().for_each(|head| head.push_str(rest));
    Ok(done)
}

/// The first `[…]` that is a range: brackets around an address have more colons, or dots, in them.
fn first_range(text: &str) -> Option<(&str, &str, &str)> {
    let start = text.find('[')?;
    let end = start + text[start..].find(']')?;
    let inner = &text[start + 1..end];
    let is_address = inner.contains("::") || inner.contains('%') || inner.matches(':').count() > 2;
    (!is_address).then(|| (&text[..start], inner, &text[end + 1..]))
}

/// The most digits of a number in a range.
const DIGITS_MAX: usize = 20;

fn range(inner: &str) -> Option<Vec<String>> {
    let parts: Vec<&str> = inner.split([':', '-']).collect();
    let (first, last, step) = match parts[..] {
        [first, last] => (first, last, 1),
        [first, last, step] => (first, last, step.parse().ok().filter(|step: &usize| *step > 0)?),
        _ => return None,
    };
    if let (Ok(from), Ok(to)) = (first.parse::<usize>(), last.parse::<usize>()) {
        // Ansible's rule: a first number with a leading zero gives every number its width.
        let width = if first.starts_with('0') { first.len() } else { 0 };
        let fits = from <= to && to - from <= HOSTS_MAX && width <= DIGITS_MAX;
        return fits.then(|| (from..=to).step_by(step).map(|n| format!("{n:0width$}")).collect());
    }
    let letter = |text: &str| text.parse::<char>().ok().filter(char::is_ascii_alphabetic);
    let (from, to) = (letter(first)?, letter(last)?);
    (from <= to).then(|| (from..=to).step_by(step).map(String::from).collect())
}

/// A host: `NAME`, `USER@NAME`, `NAME:PORT`, `[ADDRESS]:PORT`.
pub fn host(word: &str) -> Result<Host, String> {
    let (user, rest) = match word.rsplit_once('@') {
        Some((user, rest)) => (Some(user.to_string()), rest),
        None => (None, word),
    };
    let (address, port) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, "")) => (address, None),
        Some((address, port)) => (
            address,
            Some(port.strip_prefix(':').ok_or_else(|| format!("`{word}`: expected `:PORT` after `]`"))?),
        ),
        // More than one colon without brackets: an address of IPv6.
        None => match rest.split_once(':') {
            Some((address, port)) if !port.contains(':') => (address, Some(port)),
            _ => (rest, None),
        },
    };
    let port = port
        .map(|port| port.parse().map_err(|_| format!("`{word}`: expected a port, got `{port}`")))
        .transpose()?;
    let name = address.split('%').next().unwrap_or_default().to_string();
    Ok(Host { name, address: address.to_string(), port, user })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_expand_as_ansible_has_them() {
        for (word, expected) in [
            ("db1", "db1"),
            ("db[1:3]", "db1 db2 db3"),
            ("db[08:11].example", "db08.example db09.example db10.example db11.example"),
            ("[a:c]", "a b c"),
            ("r[1:2]n[1:2]", "r1n1 r1n2 r2n1 r2n2"),
            ("x[0:8:4]", "x0 x4 x8"),
            ("[fe80::1]:22", "[fe80::1]:22"),
        ] {
            assert_eq!(expanded(word).unwrap().join(" "), expected, "{word}");
        }
        for bad in
            ["db[3:1]", "db[a:3]", "db[]", "db[1:2:0]", "a[1:3000]b[1:3000]", "db[0:18446744073709551615]"]
        {
            assert!(expanded(bad).is_err(), "{bad}");
        }
        assert!(expanded(&format!("db[{}:3]", "0".repeat(70_000))).is_err());
    }
}
