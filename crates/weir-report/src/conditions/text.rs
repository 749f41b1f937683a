//! The conditions of a run in a few lines. They are read defensively: a record may come from another version, or
//! from a machine that showed less.

use serde_json::Value;

use crate::layout::labelled;
use weir_core::units::{Bytes, significant};

/// Appends target, queue, machine and memory, as far as the record knows them.
pub fn append(out: &mut String, conditions: &Value) {
    for (label, text) in lines(conditions) {
        labelled(out, label, &text);
    }
}

/// Target, queue, machine and memory in a line each; what the record does not know is left out.
pub fn lines(conditions: &Value) -> Vec<(&'static str, String)> {
    let all = [
        ("storage", storage(conditions)),
        ("unseen", blind(conditions)),
        ("queue", queue(conditions)),
        ("machine", machine(conditions)),
        ("vm", vm(conditions)),
    ];
    let joined =
        all.map(|(label, parts)| (label, parts.into_iter().flatten().collect::<Vec<_>>().join(", ")));
    joined.into_iter().filter(|(_, text)| !text.is_empty()).collect()
}

fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer)?.as_str().filter(|s| !s.is_empty())
}

fn number(value: &Value, pointer: &str) -> Option<f64> {
    value.pointer(pointer)?.as_f64()
}

fn bytes(value: &Value, pointer: &str) -> Option<Bytes> {
    value.pointer(pointer)?.as_u64().map(Bytes)
}

/// The layer whose statistics stand for the target.
fn device(conditions: &Value) -> Option<&Value> {
    let name = text(conditions, "/target/device")?;
    layers(conditions).find(|layer| text(layer, "/name") == Some(name))
}

fn layers(conditions: &Value) -> impl Iterator<Item = &Value> {
    conditions.pointer("/target/stack").and_then(Value::as_array).into_iter().flatten()
}

fn storage(conditions: &Value) -> Vec<Option<String>> {
    let file_system = text(conditions, "/target/file_system/kind").map(|kind| {
        let at = text(conditions, "/target/file_system/mount_point").unwrap_or("?");
        let path = text(conditions, "/target/path").map_or(String::new(), |path| format!("{path} on "));
        format!("{path}{kind} at {at} ({})", mount_options(conditions))
    });
    let names: Vec<String> = layers(conditions).filter_map(layer).collect();
    let stack = (!names.is_empty()).then(|| names.join(" > "));
    vec![file_system, stack]
}

fn blind(conditions: &Value) -> Vec<Option<String>> {
    let all = conditions.pointer("/target/blind").and_then(Value::as_array);
    all.into_iter().flatten().map(|why| why.as_str().map(String::from)).collect()
}

fn mount_options(conditions: &Value) -> String {
    let all = conditions.pointer("/target/file_system/options").and_then(Value::as_array);
    let all: Vec<&str> = all.into_iter().flatten().filter_map(Value::as_str).collect();
    all.join(",")
}

fn layer(layer: &Value) -> Option<String> {
    let name = text(layer, "/name")?;
    let detail = [
        text(layer, "/kind/dm_name").map(String::from),
        text(layer, "/kind/level").map(String::from),
        text(layer, "/kind/backing_file").map(|file| format!("file {file}")),
        text(layer, "/model").map(|model| model.trim().to_string()),
        text(layer, "/bus").map(String::from),
        bytes(layer, "/size_bytes").map(|size| size.to_string()),
    ];
    let detail: Vec<String> = detail.into_iter().flatten().collect();
    Some(if detail.is_empty() { name.to_string() } else { format!("{name} ({})", detail.join(", ")) })
}

fn queue(conditions: &Value) -> Vec<Option<String>> {
    let Some(queue) = device(conditions).and_then(|d| d.pointer("/queue")).filter(|q| !q.is_null()) else {
        return Vec::new();
    };
    let rotational = queue.pointer("/rotational").and_then(Value::as_bool);
    vec![
        text(queue, "/scheduler").map(|s| format!("scheduler {s}")),
        number(queue, "/nr_requests").map(|n| format!("nr_requests {n}")),
        text(queue, "/write_cache").map(|c| format!("cache {c}")),
        number(queue, "/wbt_lat_usec")
            .map(|us| if us > 0.0 { format!("wbt {us} µs") } else { "wbt off".into() }),
        number(queue, "/read_ahead_kb").map(|kb| format!("read-ahead {kb} KiB")),
        rotational.map(|r| format!("rotational {}", u8::from(r))),
    ]
}

fn machine(conditions: &Value) -> Vec<Option<String>> {
    let processors = number(conditions, "/cpu/processors");
    let model = text(conditions, "/cpu/model").unwrap_or("CPU");
    let governors = conditions.pointer("/cpu/governors").and_then(Value::as_object);
    let governors: Vec<&str> = governors.into_iter().flat_map(|g| g.keys()).map(String::as_str).collect();
    vec![
        text(conditions, "/kernel").map(|kernel| format!("Linux {kernel}")),
        processors.map(|n| format!("{n} x {model}")),
        (!governors.is_empty()).then(|| format!("governor {}", governors.join("+"))),
        bytes(conditions, "/memory/total_bytes").map(|memory| format!("{memory} memory")),
        text(conditions, "/cpu/virtualised").map(|why| format!("virtual machine ({why})")),
        number(conditions, "/load_at_start/loadavg/0")
            .map(|load| format!("load {} at the start", significant(load))),
    ]
}

fn vm(conditions: &Value) -> Vec<Option<String>> {
    let limit = |name: &str| {
        let bytes = bytes(conditions, &format!("/vm/{name}/bytes")).filter(|b| b.0 > 0);
        let ratio = number(conditions, &format!("/vm/{name}/ratio_percent"));
        bytes.map(|b| format!("{name} {b}")).or_else(|| ratio.map(|r| format!("{name} {r} %")))
    };
    let swap = bytes(conditions, "/memory/swap_total_bytes").map(|s| match s.0 {
        0 => "no swap".to_string(),
        _ => format!("swap {s}"),
    });
    vec![
        limit("dirty"),
        limit("dirty_background"),
        number(conditions, "/vm/swappiness").map(|s| format!("swappiness {s}")),
        swap,
    ]
}
