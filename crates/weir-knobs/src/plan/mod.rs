//! From wanted settings to an ordered transaction, or to all the reasons why not.

mod check;
mod conflict;
mod order;

use serde::{Deserialize, Serialize};

use crate::catalog::{self, Kind, ScopeKind, Spec};
use crate::{KnobName, Reading, Scope, Setting, Value};

pub use check::{Bounds, between, bounds, range};
pub use order::ordered;

/// A transaction: writes in order, and what else they touch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Plan {
    /// In the order of writing.
    pub steps: Vec<Step>,
    /// Knobs that a step resets without being asked to, with the values they have now: journaled and restored too.
    pub touched: Vec<Setting>,
    /// What is worth knowing before it is applied, in sentences: values in force already, limits that will not act.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// One knob led from its value to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The knob.
    pub knob: KnobName,
    /// Its value now; of a scheduler's own setting, where a switch comes first, its default.
    pub from: Value,
    /// The value wanted.
    pub to: Value,
}

/// Why a setting cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{setting}: {why}")]
pub struct Refusal {
    /// What was asked for.
    pub setting: String,
    /// The reason, with path, value and allowed range.
    pub why: String,
    /// What may help.
    pub hint: Option<String>,
}

/// What a check may look at: all that is wanted, and the machine.
struct Context<'a> {
    wanted: &'a [Setting],
    read: &'a dyn Fn(&KnobName) -> Option<Reading>,
    allow_durability: bool,
}

/// Checks all settings and orders them; `read` tells what the machine has, `None` where it has no such file.
/// `allow_durability` lets settings pass that could lose data.
///
/// # Errors
/// With every reason there is, not only the first; nothing may be written then.
pub fn plan(
    wanted: &[Setting],
    read: &dyn Fn(&KnobName) -> Option<Reading>,
    allow_durability: bool,
) -> Result<Plan, Vec<Refusal>> {
    let context = Context { wanted, read, allow_durability };
    let mut refusals = Vec::new();
    let mut steps = Vec::new();
    for setting in wanted {
        match check::check(&context, setting) {
            Ok(step) => steps.push(step),
            Err(refusal) => refusals.push(refusal),
        }
    }
    refusals.extend(conflict::contradictions(&context));
    if !refusals.is_empty() {
        return Err(refusals);
    }
    let mut notes = conflict::notes(&context);
    let (steps, idle) = without_idle(steps);
    notes.extend(idle.iter().map(|step| format!("{} already", setting_of(step))));
    let steps = order::ordered(steps);
    let touched = touched(&context, &steps);
    Ok(Plan { steps, touched, notes })
}

/// Parts the steps from those whose value is in force already and is not reset by another step.
fn without_idle(steps: Vec<Step>) -> (Vec<Step>, Vec<Step>) {
    let is_action = |step: &Step| catalog::spec(&step.knob).is_some_and(|spec| spec.kind == Kind::Action);
    let moves = |step: &Step| step.from != step.to || is_action(step);
    let reset: Vec<KnobName> =
        steps.iter().filter(|step| moves(step)).flat_map(|s| resets(&s.knob)).collect();
    steps.into_iter().partition(|step| moves(step) || reset.contains(&step.knob))
}

/// Knobs that a write to this one resets.
fn resets(knob: &KnobName) -> Vec<KnobName> {
    let Some(spec) = catalog::spec(knob) else { return Vec::new() };
    spec.resets.iter().map(|setting| sibling(knob, setting)).collect()
}

/// Another knob of the same thing, by its name in the catalog.
fn sibling(knob: &KnobName, setting: &str) -> KnobName {
    let of_device = matches!(knob.scope, Scope::Device(_));
    let is_bdi = catalog::spec(knob).is_some_and(|spec| spec.scope == ScopeKind::Bdi);
    let setting = if of_device && is_bdi { format!("bdi/{setting}") } else { setting.to_string() };
    KnobName { scope: knob.scope.clone(), setting }
}

/// What the steps reset besides themselves, as it is now.
fn touched(context: &Context<'_>, steps: &[Step]) -> Vec<Setting> {
    let mut touched: Vec<Setting> = Vec::new();
    for knob in steps.iter().flat_map(|step| resets(&step.knob)) {
        let known = steps.iter().any(|step| step.knob == knob) || touched.iter().any(|t| t.knob == knob);
        if let (false, Some(value)) = (known, (context.read)(&knob).and_then(|reading| reading.value)) {
            touched.push(Setting { knob, value });
        }
    }
    touched
}

fn setting_of(step: &Step) -> Setting {
    Setting::new(step.knob.clone(), step.to.clone())
}

impl Context<'_> {
    /// The value a knob will have: the wanted one, else the present one.
    fn future(&self, knob: &KnobName) -> Option<Value> {
        match self.wanted.iter().find(|setting| setting.knob == *knob) {
            Some(setting) => Some(setting.value.clone()),
            None => (self.read)(knob)?.value,
        }
    }

    /// The scheduler that a device has now, and the one it will have.
    fn schedulers(&self, knob: &KnobName) -> (Option<String>, Option<String>) {
        let Scope::Device(device) = &knob.scope else { return (None, None) };
        let scheduler = KnobName::device(device, "scheduler");
        let word = |value: Value| Some(value.to_string());
        let now = (self.read)(&scheduler).and_then(|reading| reading.value).and_then(word);
        (now, self.future(&scheduler).and_then(word))
    }

    fn refusal(setting: &Setting, why: String, hint: Option<&str>) -> Refusal {
        Refusal { setting: setting.to_string(), why, hint: hint.map(str::to_string) }
    }
}

/// The file of a knob as messages name it.
fn place(spec: &Spec, setting: &Setting, reading: Option<&Reading>) -> String {
    let known = reading.map(|reading| reading.path.clone()).filter(|path| !path.is_empty());
    setting
        .file()
        .filter(|_| spec.kind == Kind::DirtyPair)
        .or(known)
        .unwrap_or_else(|| setting.file().unwrap_or_default())
}

#[cfg(test)]
mod tests;
