//! The settings of arms: looked at before the first trial, applied as one transaction for the time of a trial, and
//! led back.

use weir_experiment::Arm;
use weir_host::Host;
use weir_host::knob::{self, Applied, KnobError};
use weir_knobs::{KnobName, Reading, Scope, Setting};

use crate::change_journal::{refused, the_journal};
use crate::failure::{Lacking, Usage};

/// The knob that is an action: done, and never restored.
const DROP_CACHES: &str = "vm.drop_caches";

/// Settings in force; they end with [`InForce::restore`], or with this value, or with the process.
pub struct InForce(Option<Applied>);

/// Every knob that the arms turn and that holds a value, once.
pub fn of_arms(arms: &[Arm]) -> Vec<KnobName> {
    let settings = arms.iter().flat_map(|arm| held(&arm.settings));
    let mut knobs: Vec<KnobName> = settings.map(|setting| setting.knob).collect();
    knobs.sort();
    knobs.dedup();
    knobs
}

fn is_action(setting: &Setting) -> bool {
    setting.knob.to_string() == DROP_CACHES
}

fn held(settings: &[Setting]) -> Vec<Setting> {
    settings.iter().filter(|setting| !is_action(setting)).cloned().collect()
}

/// Whether others feel one of them: a setting of the whole machine.
pub fn any_of_machine(knobs: &[KnobName]) -> bool {
    knobs.iter().any(|knob| knob.scope == Scope::Machine)
}

/// The values of knobs as they are now.
pub fn found(host: &Host, knobs: &[KnobName]) -> Vec<Setting> {
    let value = |knob: &KnobName| {
        let value = knob::read(host, knob).ok()?.value?;
        Some(Setting { knob: knob.clone(), value })
    };
    knobs.iter().filter_map(value).collect()
}

/// One knob as this machine has it.
pub fn read(host: &Host, knob: &KnobName) -> anyhow::Result<Reading> {
    knob::read(host, knob).map_err(|error| {
        Usage { what: error.to_string(), hint: Some("`weir knobs list` shows what there is".to_string()) }
            .into()
    })
}

/// Refuses values that cannot be applied, before the first trial.
pub fn check_values(host: &Host, arms: &[Arm]) -> anyhow::Result<()> {
    for arm in arms {
        knob::plan(host, &held(&arm.settings), false).map_err(|refusals| refused(&refusals))?;
    }
    Ok(())
}

/// Refuses where this user may not apply them.
pub fn check_privileges(host: &Host, arms: &[Arm], knobs: &[KnobName]) -> anyhow::Result<()> {
    let mut names: Vec<String> = knobs.iter().map(KnobName::to_string).collect();
    if arms.iter().flat_map(|arm| &arm.settings).any(is_action) {
        names.push(DROP_CACHES.to_string());
    }
    names.retain(|name| !knobs.iter().any(|knob| knob.is_of_server() && knob.to_string() == *name));
    if !names.is_empty() && !host.conditions(None).limits.root {
        let what = format!("turning {} takes root", names.join(", "));
        let hint = "run it as root; comparing jobs or commands without knobs needs no root";
        return Err(Lacking { what, hint: Some(hint.to_string()) }.into());
    }
    Ok(())
}

/// Applies the settings, then carries out the actions.
pub fn apply(host: &Host, settings: &[Setting]) -> Result<InForce, KnobError> {
    let held = held(settings);
    let applied = if held.is_empty() { None } else { Some(knob::trial(host, &the_journal(), &held)?) };
    if settings.iter().any(is_action) {
        host.drop_caches().map_err(KnobError::Host)?;
    }
    Ok(InForce(applied))
}

impl InForce {
    /// Restores the values; sentences tell what did not go as it should.
    pub fn restore(self, host: &Host) -> Vec<String> {
        let Some(applied) = self.0 else { return Vec::new() };
        let old: Vec<Setting> = applied.old().collect();
        let is_back = |setting: &Setting| {
            knob::read(host, &setting.knob)
                .is_ok_and(|reading| reading.value.as_ref() == Some(&setting.value))
        };
        match applied.restore() {
            Ok(_) if old.iter().all(is_back) => Vec::new(),
            Ok(sentences) => sentences,
            Err(error) => vec![format!("a setting could not be restored: {error}")],
        }
    }
}
