//! Settings that contradict each other, and what is worth knowing of those that do not.

use super::{Context, Refusal, sibling};
use crate::{KnobName, Setting, Value, catalog};

/// Names of one and the same setting, in several units.
const ALIASES: [&[&str]; 3] = [
    &["max_ratio", "max_ratio_fine", "max_bytes"],
    &["min_ratio", "min_ratio_fine", "min_bytes"],
    &["iosched/slice_idle", "iosched/slice_idle_us"],
];

/// Knobs of which the first must not be above the second.
pub(super) const LOW_HIGH: [(&str, &str); 4] = [
    ("vm.dirty_background", "vm.dirty"),
    ("min_ratio", "max_ratio"),
    ("min_ratio_fine", "max_ratio_fine"),
    ("min_bytes", "max_bytes"),
];

/// Every pair of settings that cannot both be meant.
pub(super) fn contradictions(context: &Context<'_>) -> Vec<Refusal> {
    let wanted = context.wanted;
    let mut refusals = Vec::new();
    for (index, later) in wanted.iter().enumerate() {
        for earlier in &wanted[..index] {
            if earlier.knob == later.knob {
                let why = format!("the same knob is set twice; the other is {earlier}");
                refusals.push(Context::refusal(later, why, None));
            } else if same_setting(&earlier.knob, &later.knob) {
                let why = format!("this is {} in another unit, which is set too", earlier.knob);
                refusals.push(Context::refusal(later, why, Some("choose one of them")));
            }
        }
    }
    refusals.extend(wanted.iter().filter_map(|setting| crossed(context, setting)));
    refusals
}

/// The catalog's name of a knob.
fn entry(knob: &KnobName) -> &'static str {
    catalog::spec(knob).map_or("", |spec| spec.setting)
}

fn same_setting(one: &KnobName, other: &KnobName) -> bool {
    one.scope == other.scope
        && ALIASES.iter().any(|names| names.contains(&entry(one)) && names.contains(&entry(other)))
}

/// A lower limit above its upper one. Of two dirty limits only those that are both asked for: against one that is
/// merely there, the kernel helps itself (see [`notes`]).
fn crossed(context: &Context<'_>, setting: &Setting) -> Option<Refusal> {
    let is_dirty = entry(&setting.knob).starts_with("vm.");
    let (low_name, high_name) =
        LOW_HIGH.into_iter().find(|(low, high)| [*low, *high].contains(&entry(&setting.knob)))?;
    let (low, high) = (sibling(&setting.knob, low_name), sibling(&setting.knob, high_name));
    let asked = |knob: &KnobName| context.wanted.iter().any(|wanted| wanted.knob == *knob);
    let both = asked(&low) && asked(&high);
    // Where both are asked for, one refusal is enough.
    if (is_dirty && !both) || (both && setting.knob == high) {
        return None;
    }
    let (low_value, high_value) = (context.future(&low)?, context.future(&high)?);
    let (low_number, high_number) = comparable(&low_value, &high_value)?;
    if is_dirty && low_number >= high_number {
        let why = format!(
            "not below {}: the kernel would silently take half of that",
            Setting::new(high, high_value)
        );
        return Some(Context::refusal(
            setting,
            why,
            Some("set the background limit to half of the dirty limit"),
        ));
    }
    (!is_dirty && low_number > high_number).then(|| {
        let (low, high) = (Setting::new(low, low_value), Setting::new(high, high_value));
        Context::refusal(setting, format!("the kernel refuses {low} above {high}"), None)
    })
}

/// Two values as numbers, where they are in the same unit.
pub(super) fn comparable(one: &Value, other: &Value) -> Option<(i64, i64)> {
    let same = std::mem::discriminant(one) == std::mem::discriminant(other);
    if same { Some((one.number()?, other.number()?)) } else { None }
}

/// Sentences on what a wanted setting will do, or not do.
pub(super) fn notes(context: &Context<'_>) -> Vec<String> {
    context
        .wanted
        .iter()
        .filter_map(|setting| background(context, setting).or(strict(context, setting)))
        .collect()
}

/// A dirty limit without its background limit.
fn background(context: &Context<'_>, setting: &Setting) -> Option<String> {
    let background = KnobName::machine("vm.dirty_background");
    let alone = setting.knob == KnobName::machine("vm.dirty")
        && !context.wanted.iter().any(|wanted| wanted.knob == background);
    if !alone {
        return None;
    }
    let value = context.future(&background)?;
    let surely_below = comparable(&value, &setting.value).is_some_and(|(low, high)| low < high);
    let setting = Setting::new(background, value);
    (!surely_below).then(|| {
        format!("{setting} stays; where that is not below {}, the kernel takes half of it", "vm.dirty")
    })
}

/// A strict limit of everything.
fn strict(context: &Context<'_>, setting: &Setting) -> Option<String> {
    if entry(&setting.knob) != "strict_limit" || setting.value != Value::Number(1) {
        return None;
    }
    let asked = |name: &str| context.wanted.iter().any(|wanted| wanted.knob == sibling(&setting.knob, name));
    let limit = sibling(&setting.knob, "max_ratio");
    let unlimited = context.future(&limit)? == Value::Number(100);
    (unlimited && !asked("max_ratio_fine") && !asked("max_bytes"))
        .then(|| format!("{setting} has no effect while {limit} is 100"))
}
