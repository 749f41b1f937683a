//! `weir knobs apply`: plan, say it, do it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use jiff::Zoned;
use serde_json::json;
use weir_core::units::Nanos;
use weir_host::Host;
use weir_host::knob::{self, Hold, Journal};
use weir_knobs::{Plan, Risk, Setting, catalog, script};
use weir_report::text;

use super::confirm;
use crate::change_journal::{failed, refused, the_journal};
use crate::cli::knobs::Apply;
use crate::failure::{Outcome, Usage};
use crate::machine::{self, root_or};
use crate::output::{print, print_exact};

/// Applies, or with `--dry-run` only says what that would do.
pub fn run(args: &Apply) -> anyhow::Result<Outcome> {
    let host = machine::host();
    let plan = plan(&host, args)?;
    if args.json {
        let document = json!({ "schema": "weir.knobs.plan/1", "plan": plan });
        print_exact(&(serde_json::to_string_pretty(&document)? + "\n"))?;
        return Ok(Outcome::Done);
    }
    print(&text::knobs::plan(&plan))?;
    if args.dry_run {
        print("nothing was changed\n")?;
        return Ok(Outcome::Done);
    }
    if plan.steps.is_empty() {
        print("nothing to change\n")?;
        return Ok(Outcome::Done);
    }
    if !plan.steps.iter().all(|step| step.knob.is_of_server()) {
        root_or("changing knobs", "--dry-run and --print work without")?;
    }
    let journal = the_journal();
    for sentence in knob::recover_stale(&host, &journal) {
        say!("{sentence}");
    }
    let hold =
        args.confirm_within.map_or(Hold::Kept, |time| Hold::UntilConfirmed { deadline: duration(time) });
    let applied = journal.apply(&host, &plan, hold, duration(args.wait)).map_err(failed)?;
    let mut said = String::from("in force, each value read back\n");
    for note in applied.notes() {
        said.push_str(&format!("note: {note}\n"));
    }
    said.push_str(&way_back(args.confirm_within, &journal));
    print(&said)?;
    match args.confirm_within {
        Some(time) => confirm::wait(applied, duration(time)),
        None => Ok(Outcome::Done),
    }
}

/// A script that does the same.
pub fn script(args: &Apply) -> anyhow::Result<Outcome> {
    let host = machine::host();
    let plan = plan(&host, args)?;
    for note in &plan.notes {
        say!("note: {note}");
    }
    print_exact(&script::script(&plan, &|setting| knob::written(&host, setting)))?;
    Ok(Outcome::Done)
}

/// The plan, or every reason why not.
fn plan(host: &Host, args: &Apply) -> anyhow::Result<Plan> {
    knob::plan(host, &args.settings, accepts(args)?).map_err(|refusals| refused(&refusals))
}

/// Whether every knob that puts data at risk was named as accepted; a name that is not among the settings is a slip.
pub fn accepts(args: &Apply) -> anyhow::Result<bool> {
    let risks = |setting: &&Setting| {
        catalog::spec(&setting.knob).is_some_and(|spec| matches!(spec.risk, Risk::Durability(_)))
    };
    let at_risk: Vec<&Setting> = args.settings.iter().filter(risks).collect();
    if let Some(stray) = args.accept.iter().find(|name| at_risk.iter().all(|setting| setting.knob != **name))
    {
        let what =
            format!("--i-accept-data-loss-risk {stray}: no setting here puts data at risk by that name");
        return Err(Usage { what, hint: Some("name it just as in NAME=VALUE".to_string()) }.into());
    }
    Ok(!at_risk.is_empty() && at_risk.iter().all(|setting| args.accept.contains(&setting.knob)))
}

fn way_back(confirm_within: Option<Nanos>, journal: &Journal) -> String {
    let folder = journal.folder().display();
    match confirm_within {
        Some(time) => {
            let at = Zoned::now().saturating_add(duration(time));
            format!(
                "it goes back by itself at {} (in {time}) unless `weir knobs confirm` keeps it\n\
                 {}journal: {folder}\n",
                at.strftime("%H:%M:%S"),
                of_namespace()
            )
        }
        None => format!("undo: weir knobs rollback\njournal: {folder}\n"),
    }
}

/// What a PID namespace, such as a container's, means for the guardian.
fn of_namespace() -> &'static str {
    /// PROC_PID_INIT_INO of include/linux/proc_ns.h.
    const OF_THE_MACHINE: &str = "pid:[4026531836]";
    match fs::read_link("/proc/self/ns/pid") {
        _ if confirm::is_first() => "weir waits for that: the kernel ends the guardian with it\n",
        Ok(link) if link != Path::new(OF_THE_MACHINE) => {
            "note: the guardian ends with the PID namespace it runs in (a container); if that ends before, nothing goes back\n"
        }
        _ => "",
    }
}

pub fn duration(time: Nanos) -> Duration {
    Duration::from_nanos(time.0)
}
