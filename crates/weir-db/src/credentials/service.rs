//! PostgreSQL's service file (`pg_service.conf`): `[name]`, then `key=value` as in a connection string.

use std::collections::BTreeMap;

/// The entries of a service; `None` where the file has none of that name.
pub(super) fn entries(text: &str, service: &str) -> Option<BTreeMap<String, String>> {
    let mut found: Option<BTreeMap<String, String>> = None;
    let mut inside = false;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            // The first of a name counts.
            inside = name == service && found.is_none();
            if inside {
                found = Some(BTreeMap::new());
            }
        } else if inside && let (Some(entries), Some((key, value))) = (&mut found, line.split_once('=')) {
            entries.insert(key.trim().to_string(), value.trim().to_string());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_found_by_name() {
        let text = "# x\n[a]\nhost=one\n\n[b]\nhost = two\nport=5433\n[a]\nhost=three\n";
        let host = |service| entries(text, service).map(|e| e["host"].clone());
        assert_eq!(host("a").as_deref(), Some("one"));
        assert_eq!(host("b").as_deref(), Some("two"));
        assert_eq!(host("c"), None);
    }
}
