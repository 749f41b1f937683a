//! What goes wrong with knobs, as errors with hints and exit codes.

use weir_host::knob::KnobError;
use weir_knobs::Refusal;

use crate::failure::{Lacking, Usage};

/// A transaction that was refused before anything was written: every reason, each with its hint.
pub fn refused(refusals: &[Refusal]) -> anyhow::Error {
    if let [only] = refusals {
        return Usage { what: only.to_string(), hint: only.hint.clone() }.into();
    }
    let mut what = format!("{} reasons not to change anything:", refusals.len());
    for refusal in refusals {
        what.push_str(&format!("\n  {refusal}"));
        if let Some(hint) = &refusal.hint {
            what.push_str(&format!("\n    hint: {hint}"));
        }
    }
    Usage { what, hint: None }.into()
}

/// A change that did not happen, or was taken back.
pub fn failed(error: KnobError) -> anyhow::Error {
    match error {
        KnobError::Planned(refusals) => refused(&refusals),
        error => Lacking { what: error.to_string(), hint: error.hint() }.into(),
    }
}

/// Refuses where the user is not root; `without` says what works all the same.
pub fn root_or(what: &str, without: &str) -> anyhow::Result<()> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let hint = format!("run it as root; {without}");
    Err(Lacking { what: format!("{what} takes root"), hint: Some(hint) }.into())
}
