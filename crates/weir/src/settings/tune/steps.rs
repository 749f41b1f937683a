//! Steps of a ladder and sides of an A/B: changes of the job and of knobs.

use weir_core::units::Bytes;
use weir_core::workload::draft::Draft;
use weir_core::workload::spec::{BlockSize, EngineKind, OpenSync};
use weir_core::workload::{Job, jobfile};
use weir_experiment::{Arm, Workload};
use weir_knobs::Setting;
use weir_oltp::OltpSpec;

use super::{Asked, setting};
use crate::failure::Usage;
use crate::settings::bench::usage;

/// The step that empties the page cache before its trial.
const DROP_CACHES: &str = "drop-caches";
/// The same as a setting.
const DROP_CACHES_SETTING: &str = "vm.drop_caches=3";
const OF_JOB: &str = "job:";
const OF_DB: &str = "db:";
/// Beginnings of knobs' names that have no device.
const KNOBS: [&str; 6] = ["vm.", "bdi:", "cgroup:", "mysql:", "postgres:", "@"];

/// One change over what was before.
enum Change {
    Job(String, String),
    Db(String, String),
    Knob(Setting),
}

/// Each step over all before it; the base is the workload as it is.
pub fn ladder(asked: &Asked, steps: &[String], device: Option<&str>) -> anyhow::Result<Vec<Arm>> {
    let mut arms = vec![asked.arm("base", Vec::new())];
    for step in steps {
        let mut next = arms[arms.len() - 1].clone();
        // Emptying the cache is done for one step, and is no state.
        next.settings.retain(|setting| setting.to_string() != DROP_CACHES_SETTING);
        apply(&mut next, step, device)?;
        next.label = step.clone();
        arms.push(next);
    }
    Ok(arms)
}

/// One side of an A/B.
pub fn side(asked: &Asked, text: &str, device: Option<&str>) -> anyhow::Result<Arm> {
    let mut arm = asked.found();
    apply(&mut arm, text, device)?;
    arm.label = text.to_string();
    Ok(arm)
}

fn apply(arm: &mut Arm, text: &str, device: Option<&str>) -> anyhow::Result<()> {
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        match change(part, device)? {
            Change::Knob(setting) => {
                arm.settings.retain(|other| other.knob != setting.knob);
                arm.settings.push(setting);
            }
            Change::Db(key, value) => {
                let Workload::Transactions(transactions) = &mut arm.workload else {
                    let what =
                        format!("`{part}` sets a database's transactions, but the workload is another one");
                    let hint = Some("name them with --db 'read_write --mysql'".to_string());
                    return Err(Usage { what, hint }.into());
                };
                transactions.spec = with_field(&transactions.spec, &key, &value)?;
            }
            Change::Job(key, value) => {
                let Workload::Job(job) = &mut arm.workload else {
                    let what = format!("`{part}` sets a job of weir's, but the workload is another one");
                    let hint = "transactions change by db:KEY=VALUE; a command itself, by --a-command and \
                        --b-command";
                    let hint = Some(hint.to_string());
                    return Err(Usage { what, hint }.into());
                };
                **job = with_key(job, &key, &value)?;
            }
        }
    }
    Ok(())
}

fn change(part: &str, device: Option<&str>) -> anyhow::Result<Change> {
    if part == DROP_CACHES {
        return Ok(Change::Knob(setting(DROP_CACHES_SETTING, None)?));
    }
    let (of_job, of_db) = (part.strip_prefix(OF_JOB), part.strip_prefix(OF_DB));
    let (key, value) = of_job.or(of_db).unwrap_or(part).split_once('=').ok_or_else(|| Usage {
        what: format!("expected KEY=VALUE, got `{part}`"),
        hint: Some(format!("such as block=16k, vm.swappiness=0, @/scheduler=none, or {DROP_CACHES}")),
    })?;
    if of_db.is_some() {
        return Ok(Change::Db(key.trim().to_string(), value.trim().to_string()));
    }
    let is_knob = key.contains('/') || KNOBS.iter().any(|beginning| key.starts_with(beginning));
    if of_job.is_none() && is_knob {
        return Ok(Change::Knob(setting(part, device)?));
    }
    Ok(Change::Job(key.trim().to_string(), value.trim().to_string()))
}

/// Transactions with one field changed, as a record would state it.
fn with_field(spec: &OltpSpec, key: &str, value: &str) -> anyhow::Result<OltpSpec> {
    let refused = |why: String| Usage {
        what: format!("`{OF_DB}{key}={value}`: {why}"),
        hint: Some("such as db:threads=8, db:script=commit, db:prepared=false".to_string()),
    };
    let mut fields = serde_json::to_value(spec)?;
    let Some(field) = fields.get_mut(key.replace('_', "-")) else {
        return Err(refused("no such field".to_string()).into());
    };
    *field = serde_json::from_str(value).unwrap_or_else(|_| serde_json::Value::from(value));
    let spec: OltpSpec = weir_core::json::typed(&fields).map_err(|error| refused(error.to_string()))?;
    weir_oltp::validate::spec(&spec).map_err(usage)?;
    Ok(spec)
}

/// A job with one key changed, as a job file would state it; text needs no quotes.
fn with_key(job: &Job, key: &str, value: &str) -> anyhow::Result<Job> {
    let file = |value: &str| format!("[[job]]\n{key} = {value}\n");
    let quoted = format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""));
    let drafted = jobfile::parse_drafts(&file(value)).or_else(|_| jobfile::parse_drafts(&file(&quoted)));
    let mut drafted = drafted
        .map_err(|error| Usage { what: format!("`{key}={value}`: {}", error.what), hint: error.hint })?;
    let mut draft = drafted.swap_remove(0).draft;
    // A job file gives every job a name, and files named after it.
    (draft.name, draft.prefix) = (None, None);
    draft.over(&Draft::of(job)).finish().map_err(usage)
}

/// The ladder of the field report: one change at a time, in its order.
pub fn source_ladder(asked: &Asked) -> anyhow::Result<Vec<Arm>> {
    let Some(base) = asked.measured.job() else {
        let what = "a ladder of a command needs steps".to_string();
        return Err(Usage { what, hint: Some("such as vm.swappiness=0 @/scheduler=none".to_string()) }.into());
    };
    let job = |label: &str, job: &Job| Arm {
        workload: Workload::Job(Box::new(job.clone())),
        ..asked.arm(label, Vec::new())
    };
    let sync = Job { engine: EngineKind::Psync, depth: 1, direct: false, ..base.clone() };
    let dsync = Job { open_sync: OpenSync::Dsync, ..sync.clone() };
    let direct = Job { direct: true, open_sync: OpenSync::None, ..sync };
    let queued = |depth: u32| Job { engine: EngineKind::Libaio, depth, ..direct.clone() };
    let deep = queued(256);
    let wide = Job { threads: 16, ..deep.clone() };
    let mut arms = vec![
        job("dsync", &dsync),
        job("direct", &direct),
        job("direct + async, depth 128", &queued(128)),
        job("depth 256", &deep),
        job("depth 2", &queued(2)),
        job("depth 256, 16 threads", &wide),
    ];
    let calm = [DROP_CACHES_SETTING, "vm.swappiness=0"];
    let calm = calm.iter().map(|text| setting(text, None)).collect::<anyhow::Result<Vec<_>>>()?;
    let threads = base.threads;
    arms.push(Arm {
        settings: calm.clone(),
        ..job(&format!("{threads} threads, caches dropped, swappiness 0"), &deep)
    });
    let block = Bytes(16 << 10);
    let aligned = Job { block: BlockSize::Fixed(block), ..deep };
    arms.push(Arm {
        settings: calm[1..].to_vec(),
        ..job(&format!("block size {block}, aligned with file system and device"), &aligned)
    });
    Ok(arms)
}
