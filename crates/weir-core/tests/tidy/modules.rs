//! Modules of one crate that use each other. A circle is right where it is one thing; then it stands in a list, with
//! its reason. A module may use those that it is a part of.

use std::collections::{BTreeMap, BTreeSet};

type Files = BTreeMap<String, String>;
/// A module or an item: its names below the crate's root.
type Place = Vec<String>;

/// Circles that stay: crate, modules, reason.
const CIRCLES: [(&str, &[&str], &str); 4] = [
    ("weir-archive", &["batch", "tables"], "a table says of which columns its batch is"),
    (
        "weir-blocktrace",
        &["fsync::analyst", "fsync::ledger", "fsync::log", "fsync::recent", "fsync::report"],
        "one analyst: each file has the methods for one answer",
    ),
    (
        "weir-control",
        &["plant::bulk", "plant::engine", "plant::syncs"],
        "one machine: writers and syncing threads act on the pages that hold them",
    ),
    (
        "weir-host",
        &["knob::journal", "knob::restore"],
        "a journal that is taken restores first what a dead process left in it",
    ),
];

/// Circles that are not in the list, and entries of the list that are no circle.
pub fn circles(files: &Files) -> Vec<String> {
    let crates: BTreeSet<&str> =
        files.keys().filter_map(|path| path.split_once("/src/")).map(|(root, _)| root).collect();
    let mut found: BTreeSet<(String, Vec<String>)> = BTreeSet::new();
    for root in crates.into_iter().filter(|root| root.matches('/').count() == 1) {
        let name = root.trim_start_matches("crates/");
        found.extend(Modules::of(files, root).circles().into_iter().map(|circle| (name.to_string(), circle)));
    }
    let listed: BTreeSet<(String, Vec<String>)> = CIRCLES
        .iter()
        .map(|(name, circle, _)| (name.to_string(), circle.iter().map(|module| module.to_string()).collect()))
        .collect();
    let new = found.difference(&listed).map(|(name, circle)| {
        format!("{name}: {} use each other: part them, or give a reason in the list", circle.join(", "))
    });
    let gone = listed.difference(&found).map(|(name, circle)| {
        format!("{name}: {} are no circle: the list of circles has them", circle.join(", "))
    });
    new.chain(gone).collect()
}

/// The modules of a crate, what they name, and what they pass on from others (`pub use`).
#[derive(Default)]
struct Modules {
    names: BTreeMap<Place, BTreeSet<Place>>,
    passed_on: BTreeMap<Place, Place>,
}

impl Modules {
    fn of(files: &Files, root: &str) -> Modules {
        let source = format!("{root}/src/");
        let sources: BTreeMap<Place, String> = files
            .iter()
            .filter_map(|(path, text)| Some((module(path.strip_prefix(&source)?)?, code(text))))
            .collect();
        let mut modules = Modules::default();
        for (module, code) in &sources {
            let is_child = |name: &str| sources.contains_key(&joined(module, [name]));
            let mut names = BTreeSet::new();
            let mut rest = String::new();
            for (statement, is_public) in statements(code, &mut rest) {
                for (path, name) in expanded(&statement) {
                    let Some(place) = absolute(module, &path, &is_child) else { continue };
                    if is_public {
                        modules.passed_on.insert(joined(module, [name.as_str()]), place);
                    } else {
                        names.insert(place);
                    }
                }
            }
            names.extend(paths(&rest).iter().filter_map(|path| absolute(module, path, &is_child)));
            modules.names.insert(module.clone(), names);
        }
        modules
    }

    /// The module that has an item, wherever it is passed on.
    fn home(&self, place: &Place) -> Option<Place> {
        let mut place = place.clone();
        for _ in 0..8 {
            let depth = (0..=place.len()).rev().find(|depth| self.names.contains_key(&place[..*depth]))?;
            let passed = place.get(..=depth).and_then(|item| self.passed_on.get(item));
            let Some(passed) = passed else { return Some(place[..depth].to_vec()) };
            place = passed.iter().chain(&place[depth + 1..]).cloned().collect();
        }
        None
    }

    /// Groups of modules that reach each other, in the order of their names.
    fn circles(&self) -> Vec<Vec<String>> {
        let edges = |module: &Place| -> Vec<Place> {
            let homes = self.names[module].iter().filter_map(|place| self.home(place));
            homes.filter(|other| !module.starts_with(other)).collect()
        };
        let next: BTreeMap<&Place, Vec<Place>> =
            self.names.keys().map(|module| (module, edges(module))).collect();
        let reached = |from: &Place| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![from.clone()]);
            while let Some(at) = open.pop() {
                open.extend(next[&at].iter().filter(|other| seen.insert((*other).clone())).cloned());
            }
            seen
        };
        let reached: BTreeMap<&Place, BTreeSet<Place>> =
            self.names.keys().map(|from| (from, reached(from))).collect();
        let circle = |from: &Place| -> Vec<String> {
            let back = reached[from].iter().filter(|to| reached[to].contains(from));
            back.map(|module| module.join("::")).collect()
        };
        let circles: BTreeSet<Vec<String>> = self.names.keys().map(circle).collect();
        circles.into_iter().filter(|circle| circle.len() > 1).collect()
    }
}

fn joined<'a>(place: &[String], more: impl IntoIterator<Item = &'a str>) -> Place {
    place.iter().cloned().chain(more.into_iter().map(str::to_string)).collect()
}

/// The module of a file below `src/`; none for tests.
fn module(file: &str) -> Option<Place> {
    let path = file.strip_suffix(".rs")?;
    let mut place: Place = path.split('/').map(str::to_string).collect();
    if place.iter().any(|name| name == "tests") {
        return None;
    }
    if ["mod", "lib", "main"].contains(&place.last()?.as_str()) {
        place.pop();
    }
    Some(place)
}

/// A file's text without comments and without its tests.
fn code(text: &str) -> String {
    let before = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = before.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.map(|line| format!("{line}\n")).collect()
}

/// What follows `use`, and whether it is passed on; everything else goes to `rest`.
fn statements(code: &str, rest: &mut String) -> Vec<(String, bool)> {
    let mut found: Vec<(String, bool)> = Vec::new();
    let mut open: Option<(String, bool)> = None;
    for line in code.lines() {
        let (mut text, mut is_public) = (line.trim(), false);
        if open.is_none() && text.starts_with("pub") {
            let after = text.trim_start_matches("pub").trim_start();
            let after = after
                .strip_prefix('(')
                .and_then(|rest| rest.split_once(')'))
                .map_or(after, |(_, after)| after);
            (text, is_public) = (after.trim_start(), true);
        }
        let begun = text.strip_prefix("use ").map(|path| (path.to_string(), is_public));
        match (&mut open, begun) {
            (Some((statement, _)), _) => *statement += line,
            (None, Some(begun)) => open = Some(begun),
            (None, None) => *rest += &format!("{line}\n"),
        }
        if open.as_ref().is_some_and(|(statement, _)| statement.contains(';')) {
            found.extend(open.take());
        }
    }
    found
}

/// The paths of a tree of `use`, each with the name that it gets.
fn expanded(tree: &str) -> Vec<(Vec<String>, String)> {
    let tree = tree.trim().trim_end_matches(';');
    let Some((before, inside)) = tree.split_once('{') else {
        let (path, name) = tree.split_once(" as ").unwrap_or((tree, ""));
        let mut path: Vec<String> = path.split("::").map(|part| part.trim().to_string()).collect();
        if path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let name =
            if name.is_empty() { path.last().cloned().unwrap_or_default() } else { name.trim().to_string() };
        return vec![(path, name)];
    };
    let before: Vec<String> =
        before.split("::").map(str::trim).filter(|part| !part.is_empty()).map(String::from).collect();
    let (mut level, mut start, mut found) = (0, 0, Vec::new());
    let inside = inside.trim_end().trim_end_matches('}');
    for (at, c) in inside.char_indices().chain([(inside.len(), ',')]) {
        match c {
            '{' => level += 1,
            '}' => level -= 1,
            ',' if level == 0 || at == inside.len() => {
                let branch = inside[start..at].trim();
                let branch = if branch.is_empty() { Vec::new() } else { expanded(branch) };
                found.extend(branch.into_iter().map(|(path, name)| ([before.clone(), path].concat(), name)));
                start = at + 1;
            }
            _ => {}
        }
    }
    for (path, name) in &mut found {
        if path.last().is_some_and(|last| last == "self") {
            path.pop();
            *name = path.last().cloned().unwrap_or_default();
        }
    }
    found
}

/// Every path with `::` in running code.
fn paths(code: &str) -> BTreeSet<Vec<String>> {
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let words = code.split(|c: char| !part(c)).filter(|word| word.contains("::") && !word.starts_with(':'));
    words.map(|word| word.split("::").filter(|part| !part.is_empty()).map(String::from).collect()).collect()
}

/// A path as a place below the crate's root; none for what other crates have.
fn absolute(module: &Place, path: &[String], is_child: &dyn Fn(&str) -> bool) -> Option<Place> {
    let first = path.first()?.as_str();
    let climbs = path.iter().take_while(|part| *part == "super").count();
    let (base, rest) = match first {
        "crate" => (&[][..], &path[1..]),
        "self" => (&module[..], &path[1..]),
        "super" => (module.get(..module.len().checked_sub(climbs)?)?, &path[climbs..]),
        name if is_child(name) => (&module[..], path),
        _ => return None,
    };
    Some(joined(base, rest.iter().map(String::as_str)))
}

#[test]
fn modules_that_use_each_other_are_a_circle() {
    let check = |sources: &[(&str, &str)]| {
        let files =
            sources.iter().map(|(path, text)| (format!("crates/a/src/{path}"), text.to_string())).collect();
        Modules::of(&files, "crates/a").circles().iter().map(|circle| circle.join(" ")).collect::<Vec<_>>()
    };
    assert_eq!(
        check(&[("b.rs", "use crate::{c::{D, E}, x};"), ("c.rs", "fn f() { super::b::g() }")]),
        ["b c"]
    );
    // What is passed on is used where it lies.
    let passed = ("b/mod.rs", "mod c;\nmod d;\npub use c::{\n    C,\n};\npub(crate) use d::D as E;");
    assert_eq!(check(&[passed, ("b/c.rs", "use super::E;"), ("b/d.rs", "use crate::b::C;")]), ["b::c b::d"]);
    // A part may use the whole, a test anything, and another crate's names are no module's.
    let whole = ("b/mod.rs", "mod c;\nfn f() { c::g() }");
    assert_eq!(check(&[whole, ("b/c.rs", "use super::B;\n")]), Vec::<String>::new());
    let tested =
        ("b.rs", "use std::c;\n// use crate::c;\n#[cfg(test)]\nmod tests {\n    use crate::c::C;\n}\n");
    assert_eq!(check(&[tested, ("c.rs", "use crate::b::B;")]), Vec::<String>::new());
}
