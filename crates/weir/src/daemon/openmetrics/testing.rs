//! Reads a page by the rules of the format.

use std::collections::BTreeMap;

/// A family as it was read.
#[derive(Default)]
pub struct Family {
    /// Its type.
    pub kind: String,
    /// Its unit.
    pub unit: String,
    /// What it is.
    pub help: String,
    /// Name, labels and value of each.
    pub samples: Vec<(String, BTreeMap<String, String>, f64)>,
}

/// Reads a page, and complains about whatever the format (OpenMetrics 1.0, text) does not allow.
pub fn parse(page: &str) -> BTreeMap<String, Family> {
    let body = page.strip_suffix("# EOF\n").expect("the page ends in # EOF");
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    for line in body.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            let (what, name, value) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
            if name != current {
                assert!(!families.contains_key(name), "{name} comes twice");
                current = name.to_string();
            }
            let family = families.entry(current.clone()).or_default();
            assert!(family.samples.is_empty(), "{line} comes after samples");
            let place = match what {
                "TYPE" => &mut family.kind,
                "UNIT" => &mut family.unit,
                "HELP" => &mut family.help,
                other => panic!("unknown comment {other}"),
            };
            assert!(place.is_empty(), "{line} comes twice");
            *place = value.to_string();
            continue;
        }
        let (name, labels, value) = sample(line);
        let family = families.get_mut(&current).unwrap();
        let suffix = name.strip_prefix(&current).unwrap_or_else(|| panic!("{name} is not of {current}"));
        let allowed: &[&str] = match family.kind.as_str() {
            "counter" => &["_total"],
            "info" => &["_info"],
            "summary" => &["", "_count", "_sum"],
            "histogram" => &["_bucket", "_count", "_sum"],
            "gauge" | "stateset" => &[""],
            other => panic!("unknown type {other}"),
        };
        assert!(allowed.contains(&suffix), "{name} in a {}", family.kind);
        if family.kind == "stateset" {
            assert!(labels.contains_key(&current) && [0.0, 1.0].contains(&value), "{line}");
        }
        assert!(family.kind != "counter" || value >= 0.0, "{line}");
        assert!(!family.samples.iter().any(|(n, l, _)| *n == name && *l == labels), "{line} comes twice");
        family.samples.push((name, labels, value));
    }
    families.iter().for_each(|(name, family)| histograms(name, family));
    for (name, family) in &families {
        assert!(!family.kind.is_empty() && !family.help.is_empty(), "{name} lacks TYPE or HELP");
        assert!(family.unit.is_empty() || name.ends_with(&format!("_{}", family.unit)), "{name}");
    }
    families
}

fn sample(line: &str) -> (String, BTreeMap<String, String>, f64) {
    let mut labels = BTreeMap::new();
    let name_ends = line.find(['{', ' ']).unwrap();
    let (name, mut rest) = line.split_at(name_ends);
    assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{name}");
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        while !rest.starts_with('}') {
            let (label, after) = rest.trim_start_matches(',').split_once("=\"").unwrap();
            let (mut value, mut chars, mut escaped) = (String::new(), after.char_indices(), false);
            let end = loop {
                let (at, c) = chars.next().unwrap();
                match (escaped, c) {
                    (true, 'n') => value.push('\n'),
                    (true, c) => value.push(c),
                    (false, '"') => break at,
                    (false, '\\') => {}
                    (false, c) => value.push(c),
                }
                escaped = !escaped && c == '\\';
            };
            assert!(labels.insert(label.to_string(), value).is_none(), "{line}");
            rest = &after[end + 1..];
        }
        rest = &rest[1..];
    }
    (name.to_string(), labels, rest.strip_prefix(' ').unwrap().parse().unwrap())
}

/// Buckets of a histogram never fall, and the last one is all.
fn histograms(name: &str, family: &Family) {
    if family.kind != "histogram" {
        return;
    }
    let mut buckets: BTreeMap<BTreeMap<String, String>, Vec<(f64, f64)>> = BTreeMap::new();
    let mut counts = BTreeMap::new();
    for (sample, labels, value) in &family.samples {
        let mut of = labels.clone();
        match of.remove("le") {
            Some(le) => {
                let le = if le == "+Inf" { f64::INFINITY } else { le.parse().unwrap() };
                buckets.entry(of).or_default().push((le, *value));
            }
            None if sample.ends_with("_count") => _ = counts.insert(of, *value),
            None => {}
        }
    }
    assert_eq!(buckets.keys().collect::<Vec<_>>(), counts.keys().collect::<Vec<_>>(), "{name}");
    for (of, rows) in buckets {
        assert!(
            rows.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 <= two[1].1),
            "{name} {of:?}: {rows:?}"
        );
        assert_eq!(rows.last().unwrap(), &(f64::INFINITY, counts[&of]), "{name} {of:?}");
    }
}
