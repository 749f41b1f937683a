//! Settings worth a look that follow from facts alone. None is measured here, so each is an experiment; a setting
//! that trades durability is named as a risk, never proposed.

use crate::doctor::{Advice, Statement, Topic};
use crate::view::{View, fact};
use weir_core::target::{Layer, LayerKind};

/// Experiments that the facts suggest.
pub fn advise(view: &View) -> Vec<Advice> {
    [loop_device(view), scheduler(view)].into_iter().flatten().collect()
}

fn option<'a>(view: &View<'a>, names: &[&str]) -> Option<&'a str> {
    let options = &view.target()?.file_system.as_ref()?.options;
    options.iter().map(String::as_str).find(|o| names.contains(o))
}

/// A mount without barriers, which puts data at risk.
pub fn barriers(view: &View) -> Option<Statement> {
    let found = option(view, &["nobarrier", "barrier=0"])?;
    let text = format!(
        "The file system is mounted with {found}: fsync does not empty the device's cache, and a power failure can \
         lose commits and the file system. Without power-loss protection, remount with barriers."
    );
    Some(Statement::new(text, vec![fact("mountinfo", found)]))
}

/// Arrays that lack a member or copy and compare beside the measurement.
pub fn arrays(view: &View) -> Vec<Statement> {
    view.target().into_iter().flat_map(|target| &target.stack).flat_map(array).collect()
}

fn array(layer: &Layer) -> Vec<Statement> {
    let LayerKind::Md { level, degraded, sync_action, .. } = &layer.kind else { return Vec::new() };
    let array = format!("{} ({level})", layer.name);
    let sentence = |text: String, key: &str, value: String| {
        Statement::new(text, vec![fact(format!("{}/md/{key}", layer.name), value)])
    };
    let mut said = Vec::new();
    if *degraded > 0 {
        let text = format!(
            "{array} misses {degraded} of its members: it survives fewer failures, and these figures are not its usual ones."
        );
        said.push(sentence(text, "degraded", degraded.to_string()));
    }
    if !["idle", "frozen", ""].contains(&sync_action.as_str()) {
        let text = format!("{array} is doing `{sync_action}`: these figures are not its usual ones.");
        said.push(sentence(text, "sync_action", sync_action.clone()));
    }
    said
}

/// A loop device without direct I/O: everything passes two page caches.
fn loop_device(view: &View) -> Option<Advice> {
    let layer =
        view.target()?.stack.iter().find(|l| matches!(l.kind, LayerKind::Loop { direct_io: false, .. }))?;
    let name = &layer.name;
    Some(untried(
        "loop device's direct I/O",
        "off",
        "on",
        Statement::new(
            format!("{name} passes everything through a second page cache: dirty pages count twice."),
            vec![fact(format!("{name}/loop/dio"), "0")],
        ),
        "none",
        format!("losetup --direct-io=on /dev/{name}"),
        format!("losetup --direct-io=off /dev/{name}"),
    ))
}

/// BFQ spends processor time on fairness among spinning disks' users; on devices that answer at once it is in the
/// way more often than not (Documentation/block/bfq-iosched.rst, 3).
fn scheduler(view: &View) -> Option<Advice> {
    let one = view.curve("read")?.points.first()?;
    if one.p50_ns? > 1_000_000 {
        return None;
    }
    let queues = view.target()?.request_layers();
    let has_bfq =
        |layer: &&Layer| layer.queue.as_ref().is_some_and(|q| q.scheduler.as_deref() == Some("bfq"));
    let layer = queues.into_iter().find(has_bfq)?;
    let (device, queue) = (&layer.name, layer.queue.as_ref()?);
    let other = queue.schedulers.iter().find(|s| *s == "none").or(queue.schedulers.first())?;
    let path = format!("/sys/block/{device}/queue/scheduler");
    Some(untried(
        "scheduler",
        "bfq",
        other,
        Statement::new(
            "bfq costs processor time that a device as fast as this one repays rarely.",
            vec![fact(&path, "bfq")],
        ),
        "none",
        format!("echo {other} > {path}"),
        format!("echo bfq > {path}"),
    ))
}

fn untried(
    knob: &str,
    current: &str,
    proposed: &str,
    effect: Statement,
    durability: &str,
    command: String,
    undo: String,
) -> Advice {
    Advice {
        topic: Topic::Settings,
        knob: knob.into(),
        current: current.into(),
        proposed: proposed.into(),
        measured: false,
        effect,
        cost: Statement::new("Not measured: run weir doctor before and after.", Vec::new()),
        durability: durability.into(),
        reversibility: "at once".into(),
        command,
        undo,
    }
}
