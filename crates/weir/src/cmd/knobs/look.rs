//! Knobs as they are. Needs no privilege.

use std::path::Path;

use weir_core::target::TargetFacts;
use weir_host::{Host, knob};
use weir_knobs::{KnobName, Reading, Scope, catalog};
use weir_report::{json, text};

use crate::failure::{Lacking, Outcome, Usage};
use crate::machine;
use crate::output::{print, print_exact};

/// `weir knobs list`.
pub fn list(path: &Path, all: bool, as_json: bool) -> anyhow::Result<Outcome> {
    let host = machine::host();
    let target = if all { None } else { Some(target(&host, path)?) };
    let readings = knob::readings(&host, target.as_ref());
    let file_system = target.as_ref().and_then(|target| target.file_system.as_ref());
    match as_json {
        true => print_exact(&json::knobs(&readings, file_system)?)?,
        false => print(&text::knobs::list(&readings, file_system))?,
    }
    for blind in target.iter().flat_map(|target| &target.blind) {
        say!("note: {blind}");
    }
    Ok(Outcome::Done)
}

fn target(host: &Host, path: &Path) -> anyhow::Result<TargetFacts> {
    let nowhere = |why: &dyn std::fmt::Display| {
        let what = format!("cannot find out what {} stands on: {why}", path.display());
        Lacking { what, hint: Some("give a path or a block device that exists, or --all".to_string()) }
    };
    // What does not exist would otherwise stand for the folder that it could be made in.
    let named = [path.to_path_buf(), Path::new("/dev").join(path)];
    let path = named.iter().find(|path| path.exists()).ok_or_else(|| nowhere(&"it does not exist"))?;
    host.target(path).map_err(|error| nowhere(&error).into())
}

/// `weir knobs show`.
pub fn show(typed: &str, as_json: bool) -> anyhow::Result<Outcome> {
    let host = machine::host();
    let named = typed.parse::<KnobName>().ok().filter(|name| catalog::spec(name).is_some());
    let Some(name) = named else {
        return print(&by_pattern(typed)?).map(|()| Outcome::Done);
    };
    // Its scheduler decides which numbers some knobs take.
    let scheduler = match &name.scope {
        Scope::Device(device) => knob::read(&host, &KnobName::device(device, "scheduler")).ok(),
        _ => None,
    };
    match knob::read_with_owners(&host, &name) {
        Ok(reading) if as_json => {
            let readings: Vec<Reading> = [reading].into_iter().chain(scheduler).collect();
            let only = &readings[..1];
            print_exact(&json::knobs(only, None)?)?;
        }
        Ok(reading) => {
            let scheduler = scheduler.and_then(|reading| reading.value).map(|value| value.to_string());
            print(&text::knobs::one(&reading, scheduler.as_deref()))?;
        }
        Err(error) if as_json => {
            let what = format!("{name} is not there on this machine: {error}");
            return Err(Usage { what, hint: Some("without --json it is described".to_string()) }.into());
        }
        Err(error) => {
            if let Some(spec) = catalog::spec(&name) {
                print(&text::knobs::known(spec))?;
            }
            say!("note: {name} is not there on this machine: {error}");
        }
    }
    Ok(Outcome::Done)
}

/// A knob named without what it belongs to: `nr_requests`, `DEV/nr_requests`.
fn by_pattern(typed: &str) -> anyhow::Result<String> {
    let found: String = catalog::CATALOG
        .iter()
        .filter(|spec| {
            spec.setting == typed || spec.pattern() == typed || spec.pattern() == format!("DEV/{typed}")
        })
        .map(text::knobs::known)
        .collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let hint = match catalog::nearest(typed) {
        Some(name) => format!("did you mean {name}?"),
        None => "`weir knobs list` names them all".to_string(),
    };
    Err(Usage { what: format!("no knob is called {typed}"), hint: Some(hint) }.into())
}
