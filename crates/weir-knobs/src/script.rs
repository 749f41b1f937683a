//! A transaction as a shell script that also restores, for machines that weir is not to touch.

use weir_core::printable;

use crate::plan::{Plan, Step, ordered};
use crate::{Kind, Setting, catalog};

/// What the script begins with: how it is used, and how a value is written and read back.
const HEAD: &str = r#"#!/bin/sh
# Settings, applied in order, each read back; if one fails, all go back.
# Paste it into a root shell; `weir_undo` goes back. Or save it as FILE: `sh FILE`, `sh FILE undo`.

weir_set() {
    printf '%s\n' "$2" > "$1" || { echo "$1 does not take $2" >&2; return 1; }
}

weir_put() {
    weir_set "$1" "$2" || return 1
    weir_now=$(cat "$1")
    case " $weir_now " in
        " $2 " | *"[$2]"*) ;;
        *) echo "$1: wrote $2, but it reads $weir_now" >&2; return 1 ;;
    esac
}
"#;

/// What it ends with.
const TAIL: &str = r#"
if [ "${1:-}" = undo ]; then
    weir_undo
else
    weir_apply || { echo 'going back' >&2; weir_undo; false; }
fi
"#;

/// Where a setting is written on a machine, and what.
pub type Written<'a> = &'a dyn Fn(&Setting) -> Option<(String, String)>;

/// The script. `written` tells of a setting that is a file's.
pub fn script(plan: &Plan, written: Written<'_>) -> String {
    let apply: Vec<Setting> = plan.steps.iter().map(|s| Setting::new(s.knob.clone(), s.to.clone())).collect();
    let back = back(plan);
    let mut out = HEAD.to_string();
    function(&mut out, "weir_apply", &apply, written, " &&\n    ");
    // A failure to restore one must not keep the rest from being restored.
    function(&mut out, "weir_undo", &back, written, "\n    ");
    out + TAIL
}

/// The settings to restore, in an order that works.
fn back(plan: &Plan) -> Vec<Setting> {
    let is_action = |step: &&Step| catalog::spec(&step.knob).is_none_or(|spec| spec.kind != Kind::Action);
    let reversed =
        |step: &Step| Step { knob: step.knob.clone(), from: step.to.clone(), to: step.from.clone() };
    let reset = |setting: &Setting| Step {
        knob: setting.knob.clone(),
        from: setting.value.clone(),
        to: setting.value.clone(),
    };
    let stays = |step: &&Step| !is_gone(plan, step);
    let steps = plan.steps.iter().filter(is_action).filter(stays).map(reversed);
    let all = ordered(steps.chain(plan.touched.iter().map(reset)).collect());
    all.into_iter().map(|step| Setting::new(step.knob, step.to)).collect()
}

/// Whether a setting of a scheduler goes with it when the switch is taken back.
fn is_gone(plan: &Plan, step: &Step) -> bool {
    let own = catalog::spec(&step.knob).and_then(|spec| spec.scheduler);
    let switch = plan.steps.iter().find(|s| s.knob.scope == step.knob.scope && s.knob.setting == "scheduler");
    match (own, switch) {
        (Some(own), Some(switch)) => switch.from.to_string() != own,
        _ => false,
    }
}

fn function(out: &mut String, name: &str, settings: &[Setting], written: Written<'_>, between: &str) {
    let lines = settings.iter().map(|setting| command(setting, written));
    let (commands, by_hand): (Vec<String>, Vec<String>) = lines.partition(|line| !line.starts_with('#'));
    let by_hand: String = by_hand.iter().map(|line| format!("    {line}\n")).collect();
    let commands = if commands.is_empty() { "true".to_string() } else { commands.join(between) };
    out.push_str(&format!("\n{name}() {{\n{by_hand}    {commands}\n}}\n"));
}

/// The command of a setting, or a comment where there is no file to write.
fn command(setting: &Setting, written: Written<'_>) -> String {
    let spec = catalog::spec(&setting.knob);
    if let Some(spec) = spec.filter(|_| setting.knob.is_of_server()) {
        let statement = spec.path.replace("{}", &setting.knob.setting);
        return comment(&format!("{setting}: in the server, {statement} = {}", setting.written_value()));
    }
    if spec.is_some_and(|spec| spec.path.contains('*')) {
        return comment(&format!("{setting}: by hand, as `hdparm -W` does it"));
    }
    let Some((spec, (path, text))) = spec.zip(written(setting)) else {
        return comment(&format!("{setting}: unknown"));
    };
    // What the kernel rounds, or shows among more than was written, cannot be compared as text.
    let is_whole = text == setting.written_value();
    let comparable = spec.tolerance == 0 && spec.kind != Kind::Action && is_whole;
    let put = if comparable { "weir_put" } else { "weir_set" };
    format!("{put} {} {}", quoted(&path), quoted(&text))
}

/// A comment. It holds a server's own words, and the rest after a line end would be run.
fn comment(text: &str) -> String {
    format!("# {}", printable::line(text))
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    fn step(from: &str, to: &str) -> Step {
        let (from, to): (Setting, Setting) = (from.parse().unwrap(), to.parse().unwrap());
        Step { knob: to.knob, from: from.value, to: to.value }
    }

    /// As on a machine whose cgroups take more than a value.
    fn written(setting: &Setting) -> Option<(String, String)> {
        let prefix = if setting.knob.to_string().starts_with("cgroup:") { "8:0 wbps=" } else { "" };
        Some((setting.file()?, format!("{prefix}{}", setting.written_value())))
    }

    /// The commands of a function of the script.
    fn commands<'a>(script: &'a str, function: &str) -> Vec<&'a str> {
        let body = script.split_once(&format!("\n{function}() {{\n")).unwrap().1.split_once("\n}").unwrap().0;
        body.lines().map(|line| line.trim().trim_end_matches(" &&")).collect()
    }

    #[test]
    fn the_way_back_is_in_an_order_that_works() {
        let plan = Plan {
            steps: vec![
                step("sda/scheduler=none", "sda/scheduler=mq-deadline"),
                step("sda/nr_requests=64", "sda/nr_requests=256"),
                step("sda/iosched/fifo_batch=16", "sda/iosched/fifo_batch=4"),
                step("vm.dirty_background_ratio=10", "vm.dirty_background_bytes=7000000"),
                step("vm.dirty_ratio=20", "vm.dirty_bytes=15000000"),
                step("cgroup:/db's/io.max/8:0/wbps=max", "cgroup:/db's/io.max/8:0/wbps=1000"),
                step("vm.drop_caches=0", "vm.drop_caches=3"),
                step("sda/device_write_cache=write back", "sda/device_write_cache=write through"),
                step("sda/write_cache=write back", "sda/write_cache=write through"),
            ],
            touched: vec!["sda/wbt_lat_usec=2000".parse().unwrap()],
            notes: Vec::new(),
        };
        let script = script(&plan, &written);
        let apply = [
            "# sda/device_write_cache=write through: by hand, as `hdparm -W` does it",
            "weir_put /sys/block/sda/queue/scheduler mq-deadline",
            "weir_put /sys/block/sda/queue/nr_requests 256",
            "weir_put /sys/block/sda/queue/iosched/fifo_batch 4",
            "weir_put /proc/sys/vm/dirty_background_bytes 7000000",
            "weir_put /proc/sys/vm/dirty_bytes 15000000",
            "weir_set '/sys/fs/cgroup/db'\\''s/io.max' '8:0 wbps=1000'",
            "weir_set /proc/sys/vm/drop_caches 3",
            "weir_put /sys/block/sda/queue/write_cache 'write through'",
        ];
        assert_eq!(commands(&script, "weir_apply"), apply);
        let undo = [
            "# sda/device_write_cache=write back: by hand, as `hdparm -W` does it",
            "weir_put /sys/block/sda/queue/scheduler none",
            "weir_put /sys/block/sda/queue/nr_requests 64",
            "weir_put /sys/block/sda/queue/wbt_lat_usec 2000",
            "weir_put /sys/block/sda/queue/write_cache 'write back'",
            "weir_put /proc/sys/vm/dirty_ratio 20",
            "weir_put /proc/sys/vm/dirty_background_ratio 10",
            "weir_set '/sys/fs/cgroup/db'\\''s/io.max' '8:0 wbps=max'",
        ];
        assert_eq!(commands(&script, "weir_undo"), undo);
    }

    /// Root pastes it into a shell, and the value to go back to is what a server said.
    #[test]
    fn nothing_that_a_server_says_is_a_command() {
        let knob = "mysql:root@/run/db.sock/innodb_io_capacity";
        let from = Value::Word("200\n}\ntouch /tmp/pwned\nx() {\r$(id)`id`".to_string());
        let plan = Plan {
            steps: vec![Step { knob: knob.parse().unwrap(), from, to: Value::Number(400) }],
            ..Plan::default()
        };
        let script = script(&plan, &written);
        assert_eq!(commands(&script, "weir_apply").len(), 2, "{script}");
        let undo = commands(&script, "weir_undo");
        assert!(undo.len() == 2 && undo[0].starts_with("# ") && undo[1] == "true", "{script}");
        assert!(!script.contains("\ntouch") && !script.contains('\r'), "{script}");
    }
}
