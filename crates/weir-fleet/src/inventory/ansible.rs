//! A subset of Ansible's inventories: INI, and the JSON that `ansible-inventory --list` prints. Groups, children, ranges, and of the
//! variables those that say how a host is reached.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Host, list, matches, plain, too_many};

/// Variables of a host or group.
type Variables = BTreeMap<String, String>;

/// An inventory.
#[derive(Debug, Default)]
struct Inventory {
    /// Names of hosts, in the file's order.
    order: Vec<String>,
    /// What is said of each host itself.
    hosts: BTreeMap<String, Variables>,
    groups: BTreeMap<String, Group>,
}

#[derive(Debug, Default)]
struct Group {
    hosts: BTreeSet<String>,
    children: BTreeSet<String>,
    /// Groups whose child it is.
    parents: BTreeSet<String>,
    variables: Variables,
}

/// The most groups, and how deep they may lie in each other: none climbs for ever.
const GROUPS_MAX: usize = 10_000;
const DEPTH_MAX: usize = 64;

/// The hosts that patterns mean: names of groups and hosts, with `*`. `!` before one takes hosts out, wherever it stands, as Ansible has it.
/// Without a pattern all.
pub fn hosts(text: &str, patterns: &[String]) -> Result<Vec<Host>, String> {
    let inventory = if text.trim_start().starts_with('{') { from_json(text)? } else { from_ini(text)? };
    let inventory = inventory.with_parents()?;
    let all = ["all".to_string()];
    let patterns = if patterns.is_empty() { &all[..] } else { patterns };
    let (mut meant, mut out) = (BTreeSet::new(), BTreeSet::new());
    for pattern in patterns {
        match pattern.strip_prefix('!') {
            Some(pattern) => out.extend(inventory.meant(pattern)?),
            None => meant.extend(inventory.meant(pattern)?),
        }
    }
    meant.retain(|name| !out.contains(name));
    let meant = inventory.order.iter().filter(|name| meant.contains(*name));
    meant.map(|name| inventory.host(name)).collect()
}

impl Inventory {
    fn add_host(&mut self, name: &str) -> &mut Variables {
        if !self.hosts.contains_key(name) {
            self.order.push(name.to_string());
        }
        self.hosts.entry(name.to_string()).or_default()
    }

    fn meant(&self, pattern: &str) -> Result<BTreeSet<String>, String> {
        if pattern == "all" {
            return Ok(self.order.iter().cloned().collect());
        }
        let mut found: BTreeSet<String> =
            self.order.iter().filter(|name| matches(pattern, name)).cloned().collect();
        for name in self.groups.keys().filter(|name| matches(pattern, name)) {
            self.members(name, &mut found);
        }
        if found.is_empty() { Err(format!("no host or group is called `{pattern}`")) } else { Ok(found) }
    }

    fn members(&self, group: &str, found: &mut BTreeSet<String>) {
        let (mut seen, mut left) = (BTreeSet::new(), vec![group]);
        while let Some(group) = left.pop() {
            let Some(members) = self.groups.get(group).filter(|_| seen.insert(group)) else { continue };
            found.extend(members.hosts.iter().cloned());
            left.extend(members.children.iter().map(String::as_str));
        }
    }

    /// With what is above each group.
    fn with_parents(mut self) -> Result<Inventory, String> {
        if self.groups.len() > GROUPS_MAX {
            return Err(format!("{} groups, {GROUPS_MAX} at most", self.groups.len()));
        }
        let children = |(name, group): (&String, &Group)| {
            let name = name.clone();
            group.children.iter().map(move |child| (child.clone(), name.clone())).collect::<Vec<_>>()
        };
        for (child, parent) in self.groups.iter().flat_map(children).collect::<Vec<_>>() {
            if let Some(group) = self.groups.get_mut(&child) {
                group.parents.insert(parent);
            }
        }
        Ok(self)
    }

    /// Groups that a host is in, those above before those below, so that what is nearer has the last word.
    fn groups_of(&self, host: &str) -> Vec<&Group> {
        let mut chains = BTreeMap::new();
        for (name, group) in &self.groups {
            if group.hosts.contains(host) {
                self.climb(name, 0, &mut chains);
            }
        }
        let mut named: Vec<(&String, usize)> = chains.into_iter().collect();
        named.sort_by_key(|(name, height)| (std::cmp::Reverse(*height), (*name).clone()));
        named.into_iter().filter_map(|(name, _)| self.groups.get(name)).collect()
    }

    fn climb<'a>(&'a self, name: &'a str, height: usize, heights: &mut BTreeMap<&'a String, usize>) {
        let Some((name, group)) = self.groups.get_key_value(name) else { return };
        // A circle of groups would climb for ever.
        if height > DEPTH_MAX || heights.get(name).is_some_and(|known| *known >= height) {
            return;
        }
        heights.insert(name, height);
        for above in &group.parents {
            self.climb(above, height + 1, heights);
        }
    }

    fn host(&self, name: &str) -> Result<Host, String> {
        let mut variables = Variables::new();
        let all = self.groups.get("all").map(|group| &group.variables);
        let of_groups = self.groups_of(name).into_iter().map(|group| &group.variables);
        for more in all.into_iter().chain(of_groups).chain(self.hosts.get(name)) {
            variables.extend(more.iter().map(|(key, value)| (key.clone(), value.clone())));
        }
        let mut host = plain(name);
        let get = |names: [&str; 2]| names.into_iter().find_map(|name| variables.get(name));
        if let Some(address) = get(["ansible_host", "ansible_ssh_host"]) {
            host.address = fixed(name, address)?;
        }
        if let Some(port) = get(["ansible_port", "ansible_ssh_port"]) {
            host.port =
                Some(port.parse().map_err(|_| format!("host {name}: expected a port, got `{port}`"))?);
        }
        if let Some(user) = get(["ansible_user", "ansible_ssh_user"]) {
            host.user = Some(fixed(name, user)?);
        }
        Ok(host)
    }
}

/// A value that is no template of Ansible's.
fn fixed(host: &str, value: &str) -> Result<String, String> {
    if value.contains("{{") {
        Err(format!("host {host}: `{value}` is a template, which only Ansible fills in"))
    } else {
        Ok(value.to_string())
    }
}

fn from_ini(text: &str) -> Result<Inventory, String> {
    let mut inventory = Inventory::default();
    let mut section = ("ungrouped".to_string(), "hosts".to_string());
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let wrong = |why: String| format!("line {}: {why}", number + 1);
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if line == "---" || line.ends_with(':') {
            return Err(wrong(
                "this is YAML; `ansible-inventory -i FILE --list` prints it as JSON, which is read"
                    .to_string(),
            ));
        }
        if let Some(inner) = line
            .strip_prefix('[')
            .and_then(|line| line.split(']').next())
            .filter(|_| !line.contains(' ') && is_section(line))
        {
            let (name, kind) = inner.split_once(':').unwrap_or((inner, "hosts"));
            if !["hosts", "children", "vars"].contains(&kind) {
                return Err(wrong(format!(
                    "expected [GROUP], [GROUP:children] or [GROUP:vars], got `{line}`"
                )));
            }
            section = (name.to_string(), kind.to_string());
            inventory.groups.entry(section.0.clone()).or_default();
            continue;
        }
        ini_line(&mut inventory, &section, line).map_err(wrong)?;
        too_many(inventory.order.len()).map_err(wrong)?;
    }
    Ok(inventory)
}

/// `[group]`, and not the range of `[a:c].example`.
fn is_section(line: &str) -> bool {
    line.ends_with(']') && line.matches('[').count() == 1
}

fn ini_line(inventory: &mut Inventory, (group, kind): &(String, String), line: &str) -> Result<(), String> {
    match kind.as_str() {
        "vars" => {
            let (key, value) =
                line.split_once('=').ok_or_else(|| format!("expected KEY=VALUE, got `{line}`"))?;
            let variables = &mut inventory.groups.entry(group.clone()).or_default().variables;
            variables.insert(key.trim().to_string(), unquoted(value.trim()));
        }
        "children" => {
            inventory.groups.entry(group.clone()).or_default().children.insert(line.to_string());
        }
        _ => {
            let mut words = shell_words(line).into_iter();
            let word = words.next().unwrap_or_default();
            let variables: Vec<(String, String)> = words
                .filter_map(|word| {
                    word.split_once('=').map(|(key, value)| (key.to_string(), value.to_string()))
                })
                .collect();
            for name in list::expanded(&word)? {
                let (name, port) = match name.split_once(':') {
                    Some((name, port)) if !port.contains(':') => (name.to_string(), Some(port.to_string())),
                    _ => (name.clone(), None),
                };
                let of_host = inventory.add_host(&name);
                of_host.extend(port.map(|port| ("ansible_port".to_string(), port)));
                of_host.extend(variables.iter().cloned());
                inventory.groups.entry(group.clone()).or_default().hosts.insert(name);
            }
        }
    }
    Ok(())
}

fn unquoted(value: &str) -> String {
    let inner = |quote: char| value.strip_prefix(quote).and_then(|value| value.strip_suffix(quote));
    inner('"').or_else(|| inner('\'')).unwrap_or(value).to_string()
}

/// The words of a line, with quotes as a shell has them; `#` begins a comment.
fn shell_words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in line.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => word.push(c),
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c == '#' && word.is_empty() => break,
            None if c.is_whitespace() => {
                words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()))
            }
            None => word.push(c),
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

fn from_json(text: &str) -> Result<Inventory, String> {
    let document: Value = serde_json::from_str(text)
        .map_err(|error| format!("not the JSON of `ansible-inventory --list`: {error}"))?;
    let mut inventory = Inventory::default();
    let strings = |value: Option<&Value>| -> Vec<String> {
        let values = value.and_then(Value::as_array).into_iter().flatten();
        values.filter_map(|value| value.as_str().map(String::from)).collect()
    };
    for (name, group) in document.as_object().into_iter().flatten().filter(|(name, _)| *name != "_meta") {
        let hosts = match group {
            Value::Array(_) => strings(Some(group)),
            _ => strings(group.get("hosts")),
        };
        for host in &hosts {
            inventory.add_host(host);
        }
        let group = Group {
            hosts: hosts.into_iter().collect(),
            children: strings(group.get("children")).into_iter().collect(),
            variables: variables(group.get("vars")),
            ..Group::default()
        };
        inventory.groups.insert(name.clone(), group);
    }
    for (host, of_host) in
        document.pointer("/_meta/hostvars").and_then(Value::as_object).into_iter().flatten()
    {
        inventory.add_host(host).extend(variables(Some(of_host)));
    }
    too_many(inventory.order.len())?;
    Ok(inventory)
}

/// Strings and numbers; what else a variable can be says nothing of how a host is reached.
fn variables(value: Option<&Value>) -> Variables {
    let all = value.and_then(Value::as_object).into_iter().flatten();
    let plain = all.filter_map(|(key, value)| match value {
        Value::String(text) => Some((key.clone(), text.clone())),
        Value::Number(number) => Some((key.clone(), number.to_string())),
        _ => None,
    });
    plain.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const INI: &str = "\
lonely ansible_host=10.0.0.9

[db]
db[01:03] ansible_user=ada   # ours
db04:2222 ansible_host='10.0.0.4'

[web]
web1

[prod:children]
db
web

[prod:vars]
ansible_user = ops
ansible_port=2200

[all:vars]
ansible_user=nobody
";

    fn names(text: &str, patterns: &[&str]) -> Result<String, String> {
        let patterns: Vec<String> = patterns.iter().map(|pattern| pattern.to_string()).collect();
        let said = |host: Host| {
            format!("{}@{}:{}", host.user.unwrap_or_default(), host.address, host.port.unwrap_or(22))
        };
        Ok(hosts(text, &patterns)?.into_iter().map(said).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn groups_as_deep_as_anybody_likes_are_no_trouble() {
        let group = |n: usize| (format!("g{n}"), serde_json::json!({ "children": [format!("g{}", n + 1)] }));
        let chain = |groups: usize| {
            let mut all: serde_json::Map<String, Value> = (0..groups).map(group).collect();
            all.insert(format!("g{groups}"), serde_json::json!(["db1"]));
            Value::Object(all).to_string()
        };
        assert_eq!(names(&chain(9_000), &["g0"]).unwrap(), "@db1:22");
        assert!(names(&chain(GROUPS_MAX), &["g0"]).unwrap_err().contains("at most"));
    }

    #[test]
    fn groups_ranges_and_variables_of_ini() {
        for (patterns, expected) in [
            (&["db"][..], "ada@db01:2200 ada@db02:2200 ada@db03:2200 ops@10.0.0.4:2222"),
            (&["prod", "!db0*"], "ops@web1:2200"),
            (&["!db0*", "prod"], "ops@web1:2200"),
            (&["lonely"], "nobody@10.0.0.9:22"),
            (&["web", "db02"], "ada@db02:2200 ops@web1:2200"),
        ] {
            assert_eq!(names(INI, patterns).unwrap(), expected, "{patterns:?}");
        }
        assert_eq!(hosts(INI, &[]).unwrap().len(), 6);
        assert!(names(INI, &["nobody"]).unwrap_err().contains("no host or group"));
    }

    #[test]
    fn what_is_not_read_is_refused() {
        for (text, why) in [
            ("all:\n  hosts:\n", "YAML"),
            ("---\nall: {}\n", "YAML"),
            ("[a:x]\n", "expected [GROUP]"),
            ("[db]\nh ansible_host={{x}}\n", "template"),
            ("[db]\nh[1:99999]\n", "range"),
            ("{\"all\": ", "not the JSON"),
            ("[a:vars]\nx\n", "KEY=VALUE"),
        ] {
            let error = names(text, &[]).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn circles_of_groups_end() {
        let text = "[a]\nh\n[a:children]\nb\n[b:children]\na\n[b:vars]\nansible_port=1\n";
        assert_eq!(names(text, &["b"]).unwrap(), "@h:1");
    }

    #[test]
    fn the_json_of_ansible_inventory() {
        let text = r#"{"_meta":{"hostvars":{"db1":{"ansible_host":"10.0.0.1","ansible_port":2222,"x":[1]}}},
            "all":{"children":["ungrouped","db"]},"db":{"hosts":["db1","db2"],"vars":{"ansible_user":"ada"}}}"#;
        assert_eq!(names(text, &["db"]).unwrap(), "ada@10.0.0.1:2222 ada@db2:22");
        assert_eq!(names(text, &["all"]).unwrap(), "ada@10.0.0.1:2222 ada@db2:22");
    }
}
