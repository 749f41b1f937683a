//! Conditions of a run as a table, whatever their shape: records of other versions must show too.

use serde_json::Value;

/// Rows of name, value and source for everything in a JSON tree, in its order.
pub fn rows(value: &Value) -> Vec<(String, String, String)> {
    let mut out = Vec::new();
    walk("", value, &mut out);
    out
}

fn walk(path: &str, value: &Value, out: &mut Vec<(String, String, String)>) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                let key = key.replace('_', " ");
                let path = if path.is_empty() { key } else { format!("{path} › {key}") };
                walk(&path, inner, out);
            }
        }
        Value::Array(items) if items.iter().any(|i| i.is_object() || i.is_array()) => {
            for (i, inner) in items.iter().enumerate() {
                walk(&format!("{path} {}", name_of(inner).unwrap_or((i + 1).to_string())), inner, out);
            }
        }
        Value::Array(items) if items.is_empty() => {}
        Value::Null => {}
        other => out.push((path.to_string(), scalar(other), String::new())),
    }
}

/// Things in a list are distinguished by their own names where they have one.
fn name_of(value: &Value) -> Option<String> {
    value.get("name").and_then(Value::as_str).map(str::to_string)
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(scalar).collect::<Vec<_>>().join(", "),
        Value::Bool(true) => "yes".to_string(),
        Value::Bool(false) => "no".to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_tree_becomes_named_rows() {
        let tree = serde_json::json!({
            "kernel": "6.18", "vm": {"dirty_ratio": 20, "swap": null},
            "stack": [{"name": "sda", "rotational": false}], "mount": ["rw", "noatime"], "blind": []
        });
        let rows: Vec<String> = rows(&tree).into_iter().map(|r| format!("{}={}", r.0, r.1)).collect();
        assert_eq!(
            rows,
            [
                "kernel=6.18",
                "mount=rw, noatime",
                "stack sda › name=sda",
                "stack sda › rotational=no",
                "vm › dirty ratio=20"
            ]
        );
    }
}
