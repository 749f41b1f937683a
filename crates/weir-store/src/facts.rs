//! Facts out of events and records: what hosts are compared by, and what they drift in. A host's file is anybody's: what does not
//! read as expected is left out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use weir_archive::tables::Event;
use weir_core::target::{Conditions, Layer, TargetFacts};

use crate::tables::Fact;

/// The most facts that one event or record may bring.
const FACTS_MAX: usize = 4_096;

/// The longest detail of an event that is read. A recorder's start has some kilobytes.
const DETAIL_MAX: usize = 1 << 20;

/// The longest name or value, in characters.
const CHARS_MAX: usize = 300;

/// The newest facts of a host. A recorder repeats all that it knows; what is known already need not be kept again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Newest(BTreeMap<String, BTreeMap<String, (i64, String)>>);

/// The longest fact that is remembered, bytes.
const REMEMBERED_BYTES: usize = 256;

impl Newest {
    /// Whether a fact says something else than the newest of its name; from then on it is the newest. Earlier ones always do.
    pub fn is_news(&mut self, fact: &Fact) -> bool {
        let known = self.0.get(&fact.device).and_then(|facts| facts.get(&fact.name));
        match known {
            Some((ts, _)) if fact.ts < *ts => return true,
            Some((_, value)) if *value == fact.value => return false,
            _ => {}
        }
        let is_short = fact.device.len() + fact.name.len() + fact.value.len() <= REMEMBERED_BYTES;
        let held: usize = self.0.values().map(BTreeMap::len).sum();
        if is_short && (known.is_some() || held < FACTS_MAX) {
            let facts = self.0.entry(fact.device.clone()).or_default();
            facts.insert(fact.name.clone(), (fact.ts, fact.value.clone()));
        }
        true
    }
}

/// The detail of an event.
pub fn detail(event: &Event) -> Option<Value> {
    let is_read = event.detail.len() <= DETAIL_MAX;
    is_read.then(|| serde_json::from_str(&event.detail).ok())?
}

/// What an event of the recorder says: at its start and in each segment all, and in between devices that came or were swapped and each
/// knob that changed.
pub fn of_event(host: &str, event: &Event) -> Vec<Fact> {
    let Some(detail) = detail(event) else { return Vec::new() };
    let mut facts = Facts { host, ts: event.ts_ms.div_euclid(1000), rows: Vec::new() };
    match event.kind.as_str() {
        "start" | "facts" | "devices" => {
            facts.add("", "kernel", &detail["kernel"]);
            facts.add("", "weir", &detail["weir_version"]);
            for (device, about) in detail["devices"].as_object().into_iter().flatten() {
                facts.add(device, "model", &about["model"]);
                facts.add(device, "firmware", &about["firmware"]);
            }
            for (knob, value) in detail["knobs"].as_object().into_iter().flatten() {
                facts.knob(knob, value);
            }
        }
        "knob" => facts.knob(detail["knob"].as_str().unwrap_or_default(), &detail["after"]),
        _ => {}
    }
    facts.rows
}

/// What the conditions in a record of weir's say; none where it has none. `ts` is when it was made, s since 1970.
pub fn of_record(host: &str, ts: i64, record: &Value) -> Vec<Fact> {
    let conditions = serde_json::from_value::<Conditions>(record["conditions"].clone());
    let Ok(conditions) = conditions else { return Vec::new() };
    let mut facts = Facts { host, ts, rows: Vec::new() };
    facts.text("", "kernel", &conditions.kernel);
    if let Some(weir) = record["weir_version"].as_str() {
        facts.text("", "weir", weir);
    }
    if let Some(target) = &conditions.target {
        target.stack.iter().for_each(|layer| facts.layer(layer));
        facts.mount(target);
    }
    facts.rows
}

struct Facts<'a> {
    host: &'a str,
    ts: i64,
    rows: Vec<Fact>,
}

impl Facts<'_> {
    fn text(&mut self, device: &str, name: &str, value: &str) {
        if self.rows.len() < FACTS_MAX && !name.is_empty() && !value.is_empty() {
            let short = |text: &str| text.chars().take(CHARS_MAX).collect::<String>();
            self.rows.push(Fact {
                host: self.host.to_string(),
                ts: self.ts,
                device: short(device),
                name: short(name),
                value: short(value.trim()),
            });
        }
    }

    fn add(&mut self, device: &str, name: &str, value: &Value) {
        if let Some(value) = value.as_str() {
            self.text(device, name, value);
        }
    }

    /// `sda/scheduler` is of a device, `vm.dirty_bytes` of the machine.
    fn knob(&mut self, knob: &str, value: &Value) {
        let (device, name) = knob.split_once('/').unwrap_or(("", knob));
        self.add(device, name, value);
    }

    fn layer(&mut self, layer: &Layer) {
        self.text(&layer.name, "model", layer.model.as_deref().unwrap_or_default());
        self.text(&layer.name, "firmware", layer.firmware.as_deref().unwrap_or_default());
        let Some(queue) = &layer.queue else { return };
        self.text(&layer.name, "scheduler", queue.scheduler.as_deref().unwrap_or_default());
        self.text(&layer.name, "write_cache", queue.write_cache.as_deref().unwrap_or_default());
        let numbers = [
            ("nr_requests", queue.nr_requests),
            ("max_sectors_kb", queue.max_sectors_kb),
            ("read_ahead_kb", queue.read_ahead_kb),
            ("nomerges", queue.nomerges),
            ("rq_affinity", queue.rq_affinity),
        ];
        for (name, value) in numbers {
            self.text(&layer.name, name, &value.map_or(String::new(), |value| value.to_string()));
        }
    }

    fn mount(&mut self, target: &TargetFacts) {
        if let Some(mounted) = &target.file_system {
            let mut options = mounted.options.clone();
            options.sort();
            let device = target.device.as_deref().unwrap_or_default();
            self.text(device, "mount", &format!("{} {}", mounted.kind, options.join(",")));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(facts: &[Fact]) -> Vec<String> {
        facts.iter().map(|fact| format!("{} {}/{}={}", fact.ts, fact.device, fact.name, fact.value)).collect()
    }

    #[test]
    fn events_bring_facts() {
        let detail = json!({"kernel": "6.12.0", "devices": {"sda": {"model": "NV-A1", "firmware": null}},
            "knobs": {"sda/scheduler": "none", "vm.dirty_ratio": "20"}});
        let start =
            Event { ts_ms: 5_999, kind: "start".into(), detail: detail.to_string(), ..Event::default() };
        let expected =
            ["5 /kernel=6.12.0", "5 sda/model=NV-A1", "5 sda/scheduler=none", "5 /vm.dirty_ratio=20"];
        assert_eq!(lines(&of_event("db1", &start)), expected);
        let detail = json!({"knob": "sda/nr_requests", "before": "64", "after": "32"}).to_string();
        let changed = Event { ts_ms: 9_000, kind: "knob".into(), detail, ..Event::default() };
        assert_eq!(lines(&of_event("db1", &changed)), ["9 sda/nr_requests=32"]);
        let detail = json!({"devices": {"sda": {"model": "NV-A2", "firmware": "7"}}}).to_string();
        let swapped = Event { ts_ms: 9_000, kind: "devices".into(), detail, ..Event::default() };
        assert_eq!(lines(&of_event("db1", &swapped)), ["9 sda/model=NV-A2", "9 sda/firmware=7"]);
    }

    #[test]
    fn what_is_repeated_is_no_news() {
        let mut newest = Newest::default();
        let fact =
            |ts, value: &str| Fact { ts, name: "model".into(), value: value.into(), ..Fact::default() };
        for (ts, value, expected) in
            [(5, "a", true), (6, "a", false), (4, "a", true), (7, "b", true), (8, "a", true), (8, "a", false)]
        {
            assert_eq!(newest.is_news(&fact(ts, value)), expected, "{ts} {value}");
        }
        let text = serde_json::to_string(&newest).unwrap();
        assert_eq!(serde_json::from_str::<Newest>(&text).unwrap(), newest);
        // What would fill the memory is kept in the tables alone.
        let long = fact(9, &"x".repeat(REMEMBERED_BYTES));
        let mut none = Newest::default();
        assert!(none.is_news(&long) && none == Newest::default());
    }

    #[test]
    fn records_bring_facts() {
        let record = json!({"schema": "weir.record/1", "conditions": {"kernel": "6.12.0", "target": {"device": "sda",
            "file_system": {"kind": "ext4", "options": ["rw", "noatime"]},
            "stack": [{"name": "sda", "model": "NV-A1", "firmware": "1.0", "queue": {"scheduler": "none", "nr_requests": 64}}]}}});
        let expected = [
            "7 /kernel=6.12.0",
            "7 sda/model=NV-A1",
            "7 sda/firmware=1.0",
            "7 sda/scheduler=none",
            "7 sda/nr_requests=64",
            "7 sda/mount=ext4 noatime,rw",
        ];
        assert_eq!(lines(&of_record("db1", 7, &record)), expected);
    }

    #[test]
    fn nothing_that_a_host_sends_does_harm() {
        for detail in ["", "[]", "{\"knobs\":7}", "{\"devices\":{\"a\":[]}}", "{\"knobs\":{\"x\":{}}}"] {
            let event = Event { kind: "start".into(), detail: detail.into(), ..Event::default() };
            assert_eq!(of_event("db1", &event), [], "{detail}");
        }
        let started_with = |knobs: serde_json::Map<String, Value>| Event {
            kind: "start".into(),
            detail: json!({ "knobs": knobs }).to_string(),
            ..Event::default()
        };
        let many = started_with((0..9_999).map(|n| (n.to_string(), "v".into())).collect());
        assert_eq!(of_event("db1", &many).len(), FACTS_MAX);
        let wide = started_with([("n".repeat(999), "v".repeat(999).into())].into_iter().collect());
        let facts = of_event("db1", &wide);
        assert_eq!((facts[0].name.len(), facts[0].value.len()), (CHARS_MAX, CHARS_MAX));
        let long = format!("{{\"kernel\":\"6.12\"{}}}", " ".repeat(DETAIL_MAX));
        assert_eq!(of_event("db1", &Event { kind: "start".into(), detail: long, ..Event::default() }), []);
        assert_eq!(of_record("db1", 7, &json!({"conditions": {"target": 7}})), []);
    }
}
