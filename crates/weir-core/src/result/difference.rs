//! What differs between two JSON values, leaf by leaf, for people.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Keys that change by themselves from one moment to the next; a difference in them explains nothing.
pub const VOLATILE: [&str; 14] = [
    "load_at_start",
    "free_bytes",
    "available_bytes",
    "page_cache_bytes",
    "dirty_bytes",
    "writeback_bytes",
    "swap_free_bytes",
    "used_bytes",
    "inodes_free",
    "dirty_threshold_bytes",
    "dirty_background_threshold_bytes",
    "max_bytes",
    "pressure",
    "load",
];

/// One leaf that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Where: keys joined by dots.
    pub what: String,
    /// A's value; `-` where it has none.
    pub a: String,
    /// B's value.
    pub b: String,
}

/// All leaves that differ, apart from those with one of `ignored` among their keys. Lists of plain values are one
/// leaf; lists of objects are distinguished by their `name`, else by position.
pub fn between(a: &Value, b: &Value, ignored: &[&str]) -> Vec<Difference> {
    let (mut leaves_a, mut leaves_b) = (BTreeMap::new(), BTreeMap::new());
    flatten("", a, ignored, &mut leaves_a);
    flatten("", b, ignored, &mut leaves_b);
    let mut keys: Vec<&String> = leaves_a.keys().chain(leaves_b.keys()).collect();
    keys.sort();
    keys.dedup();
    let shown = |leaves: &BTreeMap<String, String>, key: &String| {
        leaves.get(key).filter(|v| !v.is_empty()).cloned().unwrap_or_else(|| "-".to_string())
    };
    keys.into_iter()
        .map(|key| Difference { what: key.clone(), a: shown(&leaves_a, key), b: shown(&leaves_b, key) })
        .filter(|d| d.a != d.b)
        .collect()
}

fn flatten(at: &str, value: &Value, ignored: &[&str], leaves: &mut BTreeMap<String, String>) {
    let below = |key: &str| if at.is_empty() { key.to_string() } else { format!("{at}.{key}") };
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter().filter(|(key, _)| !ignored.contains(&key.as_str())) {
                flatten(&below(key), value, ignored, leaves);
            }
        }
        Value::Array(items) if items.iter().any(|i| i.is_object() || i.is_array()) => {
            for (i, item) in items.iter().enumerate() {
                let name = item.get("name").and_then(Value::as_str).map_or(i.to_string(), String::from);
                flatten(&below(&name), item, ignored, leaves);
            }
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            leaves.insert(at.to_string(), items.join(","));
        }
        leaf => {
            leaves.insert(at.to_string(), plain(leaf));
        }
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_the_leaf_and_ignores_what_moves_by_itself() {
        let host = |scheduler: &str, free: u64, options: &[&str]| {
            json!({
                "kernel": "6.1.0",
                "memory": { "free_bytes": free },
                "target": {
                    "options": options,
                    "stack": [{ "name": "sda", "queue": { "scheduler": scheduler, "model": null } }],
                },
            })
        };
        let a = host("none", 1, &["rw"]);
        assert_eq!(between(&a, &host("none", 2, &["rw"]), &VOLATILE), []);
        let found = between(&a, &host("mq-deadline", 2, &["rw", "noatime"]), &VOLATILE);
        let found: Vec<_> = found.iter().map(|d| (d.what.as_str(), d.a.as_str(), d.b.as_str())).collect();
        let expected = [
            ("target.options", "rw", "rw,noatime"),
            ("target.stack.sda.queue.scheduler", "none", "mq-deadline"),
        ];
        assert_eq!(found, expected);
        assert_eq!(between(&json!({}), &json!({ "x": 1 }), &[])[0].a, "-");
    }
}
