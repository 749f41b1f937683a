//! What is written is read back; what is damaged is refused, and never panics.

use std::ops::ControlFlow;

use proptest::prelude::*;

use super::*;
use crate::tables::{Counter, Event, Row};

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
fn files_without_compression_come_back_and_say_what_they_are() {
    let rows = vec![Counter { value: 7, name: "reads".into(), ..Counter::default() }];
    let keys = vec![("weir.store".to_string(), "weir.store/1".to_string())];
    let mut writer = Writer::new(Vec::new(), Counter::TABLE, keys).unwrap().without_compression();
    writer.group(&Counter::batch(&rows)).unwrap();
    let bytes = writer.finish().unwrap();
    assert_eq!(back(&bytes).unwrap(), rows);
    assert_eq!(about(&bytes, "weir.store").unwrap(), (1, Some("weir.store/1".to_string())));
    assert_eq!(about(&bytes, "other").unwrap(), (1, None));
    let length = u32::from_le_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into().unwrap()) as usize;
    assert!(about(&bytes[bytes.len() - 8 - length..], "weir.store").is_ok());
    assert!(about(&bytes[bytes.len() - 7 - length..], "weir.store").is_err());
    assert!(about(&bytes[..bytes.len() - 1], "weir.store").is_err());
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

#[test]
fn what_lies_too_deep_is_refused() {
    // A field that is a list of a list and so on, and a structure in a structure: more than any stack holds.
    for level in [0x19_u8, 0x1c] {
        let refused = thrift::In::new(&vec![level; 2 << 20], 0).structure(64).unwrap_err();
        assert!(refused.what.contains("too deep"), "{refused}");
    }
    // A list of a list of the number 1.
    assert!(thrift::In::new(&[0x19, 0x19, 0x15, 2, 0], 0).structure(64).is_ok());
}

/// A file of so many row groups, all without columns: few bytes that may say any number of rows.
fn bare(groups: usize, rows: i64) -> Vec<u8> {
    let group = |_| {
        let mut group = thrift::Out::default();
        group.int64(3, rows);
        group
    };
    let footer = thrift::Out::default().structures(4, (0..groups).map(group)).end();
    [&MAGIC[..], &[0; 100], &footer, &(footer.len() as u32).to_le_bytes(), MAGIC].concat()
}

#[test]
fn a_small_file_makes_few_rows() {
    assert_eq!(back(&bare(1, 7)).unwrap(), vec![Counter::default(); 7]);
    assert_eq!(back(&bare(20, 1)).unwrap(), vec![Counter::default(); 20]);
    for (groups, rows) in [(1, ROWS_MAX as i64 + 1), (2, ROWS_MAX as i64)] {
        let refused = back(&bare(groups, rows)).unwrap_err();
        assert!(refused.what.contains("rows"), "{groups} of {rows}: {refused}");
    }
}

#[test]
fn a_dictionary_has_no_more_words_than_the_column_has_rows() {
    // One row, and a page of a thousand empty names, which are four bytes each.
    let (mut words, mut page) = (thrift::Out::default(), thrift::Out::default());
    words.int32(1, 1000).int32(2, number::PLAIN);
    page.int32(1, number::DICTIONARY_PAGE).int32(2, 4000).int32(3, 4000);
    let page = page.structure(7, &mut words).end();
    let (mut meta, mut chunk, mut group) =
        (thrift::Out::default(), thrift::Out::default(), thrift::Out::default());
    meta.int32(1, number::BYTE_ARRAY).names(3, &["name"]).int32(4, number::UNCOMPRESSED).int64(9, 4);
    chunk.structure(3, &mut meta);
    group.structures(1, [chunk].into_iter()).int64(3, 1);
    let footer = thrift::Out::default().structures(4, [group].into_iter()).end();
    let length = (footer.len() as u32).to_le_bytes();
    let refused = back(&[&MAGIC[..], &page, &[0; 4000], &footer, &length, MAGIC].concat()).unwrap_err();
    assert!(refused.what.contains("words of a dictionary"), "{refused}");
}

#[test]
fn very_many_rows_become_several_groups() {
    let row = |value| Counter { name: "reads".into(), value, ..Counter::default() };
    let many: Vec<Counter> = (0..ROWS_MAX as i64 + 9).map(row).collect();
    let bytes = written(std::slice::from_ref(&many));
    let mut groups = Vec::new();
    let each = |batch: crate::Batch| {
        groups.push(batch.rows());
        ControlFlow::Continue(())
    };
    read(&bytes, Counter::TABLE, each).unwrap();
    assert_eq!(groups, [GROUP_ROWS, GROUP_ROWS, 9]);
    assert_eq!(back(&bytes).unwrap(), many);
}

#[test]
fn what_no_reader_takes_is_not_written() {
    let batch = Counter::batch(&[Counter::default()]);
    let with_groups = |groups: usize| {
        let mut writer = Writer::new(Vec::new(), Counter::TABLE, Vec::new()).unwrap();
        (0..groups).for_each(|_| writer.group(&batch).unwrap());
        writer.finish()
    };
    assert_eq!(back(&with_groups(512).unwrap()).unwrap().len(), 512);
    assert_eq!(with_groups(10_000).unwrap_err().kind(), std::io::ErrorKind::InvalidData);
}

/// Row groups of events that are all alike: a few hundred bytes each.
fn alike(groups: usize, rows: usize, detail: usize) -> Vec<u8> {
    let event = Event { detail: "x".repeat(detail), ..Event::default() };
    let mut writer = Writer::new(Vec::new(), Event::TABLE, Vec::new()).unwrap();
    let mut batch = Event::batch(&[event]);
    while batch.rows() < rows {
        batch.append(&batch.clone());
    }
    (0..groups).for_each(|_| writer.group(&batch).unwrap());
    writer.finish().unwrap()
}

#[test]
fn a_small_file_is_no_flood_of_rows() {
    let read_rows = |bytes: &[u8]| {
        let mut rows = 0;
        let read = read(bytes, Event::TABLE, |batch| {
            rows += batch.rows();
            ControlFlow::Continue(())
        });
        (rows, read)
    };
    assert_eq!(read_rows(&alike(1, ROWS_MAX, 10)), (ROWS_MAX, Ok(())));
    // Ten million rows in about as many bytes as a page has.
    let flood = alike(80, ROWS_MAX, 10);
    let (rows, refused) = read_rows(&flood);
    assert!(refused.is_err() && rows <= ROWS_MAX + 64 * flood.len(), "{rows} rows of {} bytes", flood.len());
    // One name of a MiB, told by a place for each row.
    let (rows, refused) = read_rows(&same_name(1, 1 << 10, 1 << 20));
    assert!(refused.unwrap_err().to_string().contains("bytes of the names"), "{rows}");
}

/// A page without compression: its header, whose part of that kind is in `field`, and its data.
fn page(kind: i64, field: i16, inner: &mut thrift::Out, data: &[u8]) -> Vec<u8> {
    let mut page = thrift::Out::default();
    page.int32(1, kind).int32(2, data.len() as i64).int32(3, data.len() as i64);
    [page.structure(field, inner).end(), data.to_vec()].concat()
}

/// A file of one column, whose row groups all have the same pages.
fn sharing(groups: usize, rows: i64, (name, kind): (&str, i64), pages: &[u8]) -> Vec<u8> {
    let group = |_| {
        let (mut meta, mut chunk, mut group) =
            (thrift::Out::default(), thrift::Out::default(), thrift::Out::default());
        meta.int32(1, kind).names(3, &[name]).int32(4, number::UNCOMPRESSED).int64(9, 4);
        chunk.structure(3, &mut meta);
        group.structures(1, [chunk].into_iter()).int64(3, rows);
        group
    };
    let footer = thrift::Out::default().structures(4, (0..groups).map(group)).end();
    [&MAGIC[..], pages, &footer, &(footer.len() as u32).to_le_bytes(), MAGIC].concat()
}

/// A file of a column of names: one name of `length` bytes, in each row.
fn same_name(groups: usize, rows: i64, length: usize) -> Vec<u8> {
    let (mut words, mut places) = (thrift::Out::default(), thrift::Out::default());
    words.int32(1, 1).int32(2, number::PLAIN);
    places.int32(1, rows).int32(2, number::RLE_DICTIONARY);
    let word = [&(length as u32).to_le_bytes()[..], &vec![b'x'; length]].concat();
    let mut data = vec![1];
    hybrid::write(&mut data, &vec![0; rows as usize], 1);
    let words = page(number::DICTIONARY_PAGE, 7, &mut words, &word);
    let places = page(number::DATA_PAGE, 5, &mut places, &data);
    sharing(groups, rows, ("detail", number::BYTE_ARRAY), &[words, places].concat())
}

#[test]
fn a_page_counts_as_often_as_it_is_read() {
    let held = |groups| {
        let mut held = 0;
        let bytes = same_name(groups, 1, 1 << 20);
        let read = read(&bytes, Event::TABLE, |batch| {
            held += batch.column("detail").map_or(0, |column| column.text(0).len());
            ControlFlow::Continue(())
        });
        (held, read.err().map(|damaged| damaged.what))
    };
    assert_eq!(held(9), (9 << 20, None));
    let (held, refused) = held(400);
    assert!(refused.is_some_and(|why| why.contains("unpacked")) && held <= 300 << 20, "{held}");
}

/// A page of one number. `more` adds to the part of its header that is about the data.
fn of_one_number(more: impl Fn(&mut thrift::Out)) -> Vec<u8> {
    let mut about = thrift::Out::default();
    about.int32(1, 1).int32(2, number::PLAIN).int32(3, number::RLE).int32(4, number::RLE);
    more(&mut about);
    page(number::DATA_PAGE, 5, &mut about, &7_i64.to_le_bytes())
}

/// How many row groups of a file of numbers are read, and why no more.
fn groups_read(bytes: &[u8]) -> (usize, String) {
    let mut groups = 0;
    let read = read(bytes, Event::TABLE, |_| {
        groups += 1;
        ControlFlow::Continue(())
    });
    (groups, read.err().map(|damaged| damaged.what).unwrap_or_default())
}

const NUMBERS: (&str, i64) = ("ts_ms", number::INT64);

#[test]
fn a_page_s_header_has_few_values() {
    // All statistics that parquet.thrift knows.
    let known = of_one_number(|about| {
        let mut bounds = thrift::Out::default();
        bounds.binary(1, &[0; 8]).binary(2, &[0; 8]).int64(3, 0).int64(4, 1);
        bounds.binary(5, &[0; 8]).binary(6, &[0; 8]).int32(7, 1).int32(8, 1);
        about.structure(5, &mut bounds);
    });
    assert_eq!(groups_read(&sharing(9, 1, NUMBERS, &known)), (9, String::new()));
    let many = of_one_number(|about| _ = about.numbers(9, &[0; 1 << 17]));
    let (groups, refused) = groups_read(&sharing(9, 1, NUMBERS, &many));
    assert!(groups == 0 && refused.contains("more values"), "{groups}: {refused}");
}

#[test]
fn a_page_s_header_counts_as_often_as_it_is_read() {
    let long = of_one_number(|about| _ = about.binary(9, &[0; 1 << 20]));
    assert_eq!(groups_read(&sharing(9, 1, NUMBERS, &long)), (9, String::new()));
    let (groups, refused) = groups_read(&sharing(400, 1, NUMBERS, &long));
    assert!(groups <= 300 && refused.contains("unpacked"), "{groups}: {refused}");
}

#[test]
fn pages_are_few_however_short() {
    let rows = ROWS_MAX as i64;
    let pages = of_one_number(|_| ()).repeat(ROWS_MAX);
    let (groups, refused) = groups_read(&sharing(8, rows, NUMBERS, &pages));
    assert!(groups <= 3 && refused.contains("unpacked"), "{groups}: {refused}");
}

#[test]
fn names_of_a_reader_s_length_and_more_come_back_in_several_groups() {
    let event = |n: i64| Event { ts_ms: n, detail: "x".repeat(1 << 20), ..Event::default() };
    let events: Vec<Event> = (0..70).map(event).collect();
    let mut writer = Writer::new(Vec::new(), Event::TABLE, Vec::new()).unwrap();
    writer.group(&Event::batch(&events)).unwrap();
    let (mut back, mut most) = (Vec::new(), 0);
    read(&writer.finish().unwrap(), Event::TABLE, |batch| {
        most = most.max(batch.rows());
        back.extend(Event::all(&batch));
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(back == events && most < 10, "{most} rows in a group");
}

#[test]
fn a_footer_of_very_many_values_is_refused() {
    let footed = |values: usize| {
        let footer = thrift::Out::default().int64(3, 0).numbers(9, &vec![0; values]).end();
        [&MAGIC[..], &footer, &(footer.len() as u32).to_le_bytes(), MAGIC].concat()
    };
    for (values, why) in [(5 << 20, "footer"), (1 << 20, "values")] {
        let bytes = footed(values);
        for refused in [back(&bytes).err(), about(&bytes, "weir.archive").err()] {
            let refused = refused.map(|damaged| damaged.what).unwrap_or_default();
            assert!(refused.contains(why), "{values}: {refused}");
        }
    }
    assert!(back(&footed(1 << 17)).is_ok());
}

#[test]
fn a_word_that_no_row_has_is_not_kept() {
    let mut texts = crate::batch::Texts::default();
    assert!(texts.extend(&["a", "b"].map(String::from), &[1, 1]));
    assert!(!texts.extend(&["a", "b"].map(String::from), &[0, 2]));
    assert_eq!((texts.words(), texts.codes(), texts.bytes()), (&["b".to_string()][..], &[0, 0][..], 2));
}
