//! What is written is read back; what is damaged is refused, and never panics.

use std::ops::ControlFlow;

use proptest::prelude::*;

use super::*;
use crate::tables::{Counter, Row};

fn written(groups: &[Vec<Counter>]) -> Vec<u8> {
    let keys = vec![("weir.archive".to_string(), crate::SCHEMA.to_string())];
    let mut writer = Writer::new(Vec::new(), Counter::TABLE, keys).unwrap();
    groups.iter().for_each(|rows| writer.group(&Counter::batch(rows)).unwrap());
    writer.finish().unwrap()
}

fn back(bytes: &[u8]) -> Result<Vec<Counter>, crate::Damaged> {
    let mut rows = Vec::new();
    read(bytes, Counter::TABLE, |batch| {
        rows.extend(Counter::all(&batch));
        ControlFlow::Continue(())
    })?;
    Ok(rows)
}

fn row() -> impl Strategy<Value = Counter> {
    let name = prop_oneof![Just("reads".to_string()), Just(String::new()), ".{0,12}"];
    // Few different numbers, so that there are runs, or any.
    let number = prop_oneof![0_i64..4, any::<i64>()];
    (number.clone(), 0_i64..3, name.clone(), name, number)
        .prop_map(|(ts_ms, span_ms, device, name, value)| Counter { ts_ms, span_ms, device, name, value })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read_back(groups in prop::collection::vec(prop::collection::vec(row(), 0..200), 0..4)) {
        prop_assert_eq!(back(&written(&groups)).unwrap(), groups.concat());
    }

    #[test]
    fn damage_is_refused_or_harmless(
        rows in prop::collection::vec(row(), 1..40),
        hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let whole = written(std::slice::from_ref(&rows));
        let mut damaged = whole.clone();
        for (at, byte) in hits {
            let at = at.index(damaged.len());
            damaged[at] = byte;
        }
        // The compressed pages carry checksums; the footer carries none.
        let _ = back(&damaged);
        prop_assert!(back(&whole[..cut.index(whole.len())]).is_err());
    }
}

#[test]
fn long_runs_and_many_different_numbers_come_back() {
    let many: Vec<Counter> = (0..20_000)
        .map(|n| Counter {
            ts_ms: n * 1_000_003,
            span_ms: 10_000,
            device: format!("sd{}", n % 3),
            name: if n < 9_000 { "reads" } else { "writes" }.to_string(),
            value: n % 4_097,
        })
        .collect();
    let bytes = written(&[many.clone(), many[..7].to_vec()]);
    assert_eq!(back(&bytes).unwrap(), [&many[..], &many[..7]].concat());
    // Far less than the 20,000 rows of 40 bytes and more.
    assert!(bytes.len() < 200_000, "{}", bytes.len());
}

#[test]
fn foreign_files_are_told_from_ours() {
    for bytes in [&b""[..], b"PAR1", b"PAR1PAR1", b"PAR1\0\0\0\0PAR1", b"PAR1\xff\xff\xff\xffPAR1", &[0; 100]]
    {
        assert!(back(bytes).is_err() || back(bytes).unwrap().is_empty(), "{bytes:?}");
    }
    assert!(back(b"not Parquet at all").unwrap_err().to_string().contains("PAR1"));
}

#[test]
fn places_of_every_width_come_back() {
    for width in 1..=32_u32 {
        let most = ((1_u64 << width) - 1) as u32;
        let places: Vec<u32> = (0..77_u32)
            .map(|n| if n % 20 < 9 { most } else { n.wrapping_mul(2_654_435_761) & most })
            .collect();
        let mut bytes = Vec::new();
        hybrid::write(&mut bytes, &places, width);
        let mut from = thrift::In::new(&bytes, 0);
        assert_eq!(hybrid::read(&mut from, places.len(), width).unwrap(), places, "{width}");
        assert_eq!(from.at(), bytes.len());
    }
    assert_eq!([hybrid::width(1), hybrid::width(2), hybrid::width(3), hybrid::width(256)], [0, 1, 2, 8]);
}
