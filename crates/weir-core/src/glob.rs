//! Patterns as shells and udev know them: `*`, `?`, `[a-z]`, `[!a]`, and alternatives with `|`.

/// Whether one of the patterns, parted by `|`, is the whole text.
pub fn any_matches(patterns: &str, text: &str) -> bool {
    patterns.split('|').any(|pattern| matches(pattern, text))
}

/// Whether the pattern is the whole text.
pub fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    // Where the last star stood, and how much of the text it covers so far: one step back is enough.
    let (mut at, mut letter, mut star) = (0, 0, None);
    while letter < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, letter));
                at += 1;
                continue;
            }
            Some('[') => {
                if let Some((inside, len)) = class(&pattern[at..], text[letter])
                    && inside
                {
                    at += len;
                    letter += 1;
                    continue;
                }
            }
            Some(wanted) if *wanted == '?' || *wanted == text[letter] => {
                at += 1;
                letter += 1;
                continue;
            }
            _ => {}
        }
        let Some((star_at, covered)) = star else { return false };
        star = Some((star_at, covered + 1));
        (at, letter) = (star_at + 1, covered + 1);
    }
    pattern[at..].iter().all(|rest| *rest == '*')
}

/// Whether a letter is in the class that a pattern begins with, and the class's length; `None` where it has no end.
fn class(pattern: &[char], letter: char) -> Option<(bool, usize)> {
    let negated = matches!(pattern.get(1), Some('!' | '^'));
    let first = 1 + usize::from(negated);
    // A bracket right at the start is a letter of the class.
    let end = (first + 1..pattern.len()).find(|index| pattern[*index] == ']')?;
    let (mut index, mut inside) = (first, false);
    while index < end {
        if index + 2 < end && pattern[index + 1] == '-' {
            inside |= (pattern[index]..=pattern[index + 2]).contains(&letter);
            index += 3;
        } else {
            inside |= pattern[index] == letter;
            index += 1;
        }
    }
    Some((inside != negated, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, text, expected) in [
            ("sda", "sda", true),
            ("sda", "sdab", false),
            ("sd*", "sda1", true),
            ("sd?", "sda1", false),
            ("sd[a-c]", "sdb", true),
            ("sd[!a-c]", "sdb", false),
            ("sd[a-z]|nvme[0-9]*n[0-9]*", "nvme0n1", true),
            ("*a*b*", "xaybz", true),
            ("*a*b", "xaybz", false),
            ("", "", true),
            ("*", "", true),
            ("[", "[", false),
            ("[]]", "]", true),
            ("db*", "db1", true),
            ("db*", "web", false),
            ("d?1", "db1", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("**", "x", true),
        ] {
            assert_eq!(any_matches(pattern, text), expected, "{pattern} {text}");
        }
        // A pattern that takes matchers with recursion years.
        assert!(!matches(&("a*".repeat(50) + "c"), &"a".repeat(200)));
    }
}
