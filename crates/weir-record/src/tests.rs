//! Records through the store's form and back, and two of them compared.

use serde_json::Value;
use weir_blocktrace::replay::{self, ReplayRecord};
use weir_control::{History, history};
use weir_core::result::samples::record;
use weir_core::stats::random::Random;
use weir_verdict::notes;
use weir_verdict::synthetic::throttled_and_flooded;

use crate::{Body, NotCompared, Record, compare};

/// A record of a kind with such a body.
fn stored(kind: &str, extra: Value) -> Record {
    let mut head = record(Vec::new());
    (head.kind, head.extra) = (kind.to_string(), extra);
    Record::decode(head, None).unwrap()
}

fn of_transactions() -> Record {
    let raw = weir_oltp::samples::raw(&mut Random::new(3), 2, 1.0);
    let head = weir_core::result::Record { kind: weir_oltp::record::KIND.to_string(), ..record(Vec::new()) };
    Record { head, body: Body::Oltp(Box::new(raw)) }
}

fn of_doctor() -> Record {
    Record::decode(throttled_and_flooded().record(Vec::new()), None).unwrap()
}

#[test]
fn a_record_survives_the_store() {
    let guard = stored(history::KIND, serde_json::to_value(History::new()).unwrap());
    let played = ReplayRecord { schema: replay::SCHEMA.to_string(), depth_max: 7, ..ReplayRecord::default() };
    let played = stored(replay::KIND, serde_json::to_value(played).unwrap());
    for whole in [stored("bench", Value::Null), played, of_transactions(), of_doctor(), guard] {
        let text = serde_json::to_string(&whole).unwrap();
        let again = Record::decode(serde_json::from_str(&text).unwrap(), None).unwrap();
        assert!(!matches!(again.body, Body::Unread(_)), "{:?}", again.body);
        assert_eq!(std::mem::discriminant(&again.body), std::mem::discriminant(&whole.body));
        assert!(again.head.extra.is_null(), "the body is held once");
        assert_eq!(serde_json::to_string(&again).unwrap(), text);
    }
}

#[test]
fn a_body_of_another_version_or_shape_says_what_is_wrong() {
    for (kind, schema) in [
        (weir_oltp::record::KIND, weir_oltp::record::SCHEMA),
        (weir_experiment::study::KIND, weir_experiment::log::SCHEMA),
        (history::KIND, history::SCHEMA),
        (replay::KIND, replay::SCHEMA),
        (notes::KIND, notes::SCHEMA),
    ] {
        for (extra, expected) in [
            (Value::Null, "its schema is -, this weir reads"),
            (serde_json::json!({ "schema": "weir.other/9" }), "weir.other/9"),
            (
                serde_json::json!({ "schema": schema, "path": 1, "spec": 1, "target": 1, "goal": 1 }),
                "damaged",
            ),
        ] {
            let record = stored(kind, extra);
            let Body::Unread(why) = &record.body else { panic!("{kind}: {:?}", record.body) };
            assert!(why.contains(expected), "{kind}: {why}");
            assert!(record.curves().is_none());
            let refused = compare(&record, &record, 1).unwrap_err();
            assert!(matches!(refused, NotCompared::Unread(_)), "{refused}");
        }
    }
}

#[test]
fn what_a_guard_added_is_taken_in_and_stored_with_it() {
    let plain = stored(history::KIND, serde_json::to_value(History::new()).unwrap());
    let lines = b"{\"decisions\":{\"decisions\":[],\"left_out\":7}}\n";
    let head = serde_json::from_value(serde_json::to_value(&plain).unwrap()).unwrap();
    let whole = Record::decode(head, Some(lines)).unwrap();
    let Body::Guard(history) = &whole.body else { panic!("{:?}", whole.body) };
    let stored = serde_json::to_value(&whole).unwrap();
    assert_eq!((history.left_out, &stored["extra"]["left_out"]), (7, &7.into()));
}

#[test]
fn only_records_of_one_kind_are_compared() {
    let (bench, transactions, doctor) = (stored("bench", Value::Null), of_transactions(), of_doctor());
    assert!(compare(&transactions, &transactions, 1).is_ok() && compare(&bench, &doctor, 1).is_ok());
    let refused = compare(&bench, &transactions, 1).unwrap_err();
    assert!(matches!(refused, NotCompared::Kinds { .. }), "{refused}");
}

#[test]
fn the_doctors_record_has_curves() {
    assert!(of_doctor().curves().is_some() && of_transactions().curves().is_none());
}
