//! Frames, cell by cell.
#![allow(clippy::disallowed_methods, reason = "a frame that differs is left for comparison")]

use ratatui_core::backend::TestBackend;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier};
use ratatui_core::terminal::Terminal;
use weir_blocktrace::DeviceFrame;
use weir_core::printable;

use super::{Archive, model, sample};
use crate::{Key, Look, Model, draw, text};

fn frame(model: &Model, look: Look, columns: u16, rows: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| draw(model, look, frame.area(), frame.buffer_mut())).unwrap();
    terminal.backend().buffer().clone()
}

fn keys(model: &mut Model, keys: &[Key]) {
    keys.iter().for_each(|key| assert!(model.key(*key).is_continue()));
}

/// Frames are as they were; those that are to change are left beside, to be looked at and taken over.
#[test]
fn frames_are_as_they_were() {
    use Key::{Char, Enter, Escape, Left};
    let back = [Char('<'), Left, Left, Left, Left, Left];
    let cases: [(&str, &[Key], u16, u16, &str); 7] = [
        ("80x24", &[], 80, 24, include_str!("80x24.txt")),
        ("200x60", &[], 200, 60, include_str!("200x60.txt")),
        ("process", &[Enter], 80, 24, include_str!("process.txt")),
        ("slow", &[Char('4'), Left, Enter], 80, 24, include_str!("slow.txt")),
        ("device", &[Enter, Escape, Char('1'), Enter], 80, 24, include_str!("device.txt")),
        ("recorded", &back, 80, 24, include_str!("recorded.txt")),
        ("help", &[Char('?')], 80, 24, include_str!("help.txt")),
    ];
    let mut changed = Vec::new();
    for (name, pressed, columns, rows, expected) in cases {
        let mut model = model(12);
        for key in pressed {
            keys(&mut model, &[*key]);
            model.fetch(&mut Archive::of(40));
        }
        let found = text(&model, columns, rows);
        assert_eq!(found.lines().count(), usize::from(rows), "{name}");
        let widest = found.lines().map(crate::draw::cells).max().unwrap_or(0);
        assert!(widest <= usize::from(columns), "{name}: {widest} cells");
        if found != expected {
            let beside = std::env::temp_dir().join(format!("weir-top-{name}.txt"));
            std::fs::write(&beside, &found).unwrap();
            changed.push(format!("{name} is another frame now, see {}:\n{found}", beside.display()));
        }
    }
    assert!(changed.is_empty(), "{}", changed.join("\n"));
}

/// Text is the same with colours and without; without there are none.
#[test]
fn without_colours_nothing_is_lost() {
    let model = model(12);
    let [with, without] = [true, false].map(|colours| frame(&model, Look::terminal(colours), 80, 24));
    let symbols =
        |buffer: &Buffer| buffer.content().iter().map(|cell| cell.symbol().to_string()).collect::<Vec<_>>();
    assert_eq!(symbols(&with), symbols(&without));
    assert!(with.content().iter().any(|cell| cell.fg != Color::Reset));
    assert!(without.content().iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    let reversed =
        |buffer: &Buffer| buffer.content().iter().filter(|c| c.modifier.contains(Modifier::REVERSED)).count();
    assert_eq!((reversed(&with), reversed(&without)), (80, 80), "the selected row shows");
}

/// Whatever the size, whatever is open: nothing panics, and nothing that a terminal obeys gets out.
#[test]
fn every_size_and_view_can_be_drawn() {
    let views: [&[Key]; 7] = [
        &[],
        &[Key::Char('?')],
        &[Key::Char('z')],
        &[Key::Enter],
        &[Key::Char('4'), Key::Enter],
        &[Key::Char('1'), Key::Enter],
        &[Key::Char('/'), Key::Char('\u{202e}'), Key::Char('x')],
    ];
    for seconds in [0, 1, 12] {
        for view in views {
            let mut model = model(seconds);
            keys(&mut model, view);
            for (columns, rows) in
                [(1, 1), (20, 5), (40, 10), (41, 11), (80, 24), (120, 12), (200, 60), (300, 10)]
            {
                let buffer = frame(&model, Look::terminal(true), columns, rows);
                let all: String = buffer.content().iter().map(|cell| cell.symbol()).collect();
                assert!(!all.contains(printable::is_hidden), "{columns}x{rows}: {all:?}");
            }
        }
    }
}

/// What does not begin at the area's corner stays inside it.
#[test]
fn a_frame_stays_in_its_area() {
    let model = model(12);
    let mut buffer = Buffer::filled(Rect::new(0, 0, 100, 40), ratatui_core::buffer::Cell::new("."));
    let mut inner = Buffer::empty(Rect::new(5, 5, 60, 20));
    draw(&model, Look::plain_text(), inner.area, &mut inner);
    buffer.merge(&inner);
    let outside = (0..100)
        .flat_map(|x| (0..40).map(move |y| (x, y)))
        .filter(|(x, y)| !(5..65).contains(x) || !(5..25).contains(y));
    for (x, y) in outside {
        assert_eq!(buffer.cell((x, y)).unwrap().symbol(), ".", "{x},{y}");
    }
}

#[test]
fn what_is_not_seen_is_said() {
    let mut blind = model(0);
    let mut without = sample(3);
    (without.syncs, without.pressure) = (None, Default::default());
    without.slow.clear();
    without
        .processes
        .iter_mut()
        .for_each(|process| (process.syncs, process.read, process.written) = (None, None, None));
    blind.push(without);
    let text = text(&blind, 80, 24);
    assert!(text.contains("p50") && text.contains("p99"), "{text}");
    for words in ["syncs are not seen", "syncs are not seen here; ? says why", "?"] {
        assert!(text.contains(words), "{words}:\n{text}");
    }
    let filtered = {
        keys(&mut blind, &[Key::Char('/'), Key::Char('y'), Key::Char('y'), Key::Enter]);
        super::super::text(&blind, 80, 24)
    };
    assert!(filtered.contains("nothing here is called `yy`"), "{filtered}");
    assert!(filtered.contains("only `yy`"), "{filtered}");
}

/// What counters alone know of a device.
fn of_means(device: &mut DeviceFrame) {
    for row in &mut device.rows {
        for spread in [&mut row.total, &mut row.queue, &mut row.device].into_iter().flatten() {
            (spread.p50_ns, spread.p99_ns, spread.max_ns) = (None, None, None);
        }
    }
}

fn row<'a>(text: &'a str, name: &str) -> &'a str {
    text.lines().find(|line| line.starts_with(name)).unwrap()
}

/// Counters know means, and no column calls them anything else.
#[test]
fn means_are_called_means() {
    let mut counters = model(0);
    let mut means = sample(3);
    means.frame.devices.iter_mut().for_each(of_means);
    counters.push(means);
    let text = text(&counters, 80, 24);
    let heads: Vec<&str> = text.lines().filter(|line| line.contains("IOPS")).collect();
    assert_eq!(heads.len(), 2, "{text}");
    assert!(
        heads.iter().all(|head| head.contains("mean") && !head.contains("p50") && !head.contains("p99")),
        "{text}"
    );
    assert!(row(&text, "vda").contains("3.25   250 µs"), "{text}");
}

/// The recorder has stages of disks, and counters alone of what is mapped over them.
#[test]
fn one_device_without_quantiles_takes_them_from_no_other() {
    for reversed in [false, true] {
        let mut model = model(0);
        let mut mixed = sample(3);
        of_means(&mut mixed.frame.devices[1]);
        if reversed {
            mixed.frame.devices.reverse();
        }
        model.push(mixed);
        let found = text(&model, 80, 24);
        assert!(row(&found, "DEVICES").contains("p50      p99"), "{found}");
        assert!(row(&found, "vda").contains("3.25   125 µs  1.00 ms"), "{found}");
        assert!(row(&found, "vdb").contains("3.25        -        -"), "{found}");
        assert!(row(&found, "CLASSES").contains("p99"), "{found}");
        // Its classes have means.
        keys(&mut model, &[Key::Char('1'), Key::Down]);
        let found = text(&model, 80, 24);
        assert!(
            row(&found, "CLASSES").contains("mean") && !row(&found, "CLASSES").contains("p99"),
            "{found}"
        );
        assert!(row(&found, "all").contains("0.49   500 µs"), "{found}");
    }
}

#[test]
fn nothing_is_claimed_that_is_not_known() {
    let mut unfollowed = sample(3);
    unfollowed.frame.devices.truncate(1);
    unfollowed.frame.devices[0].rows.clear();
    let mut silent = super::recorded(5);
    (silent.syncs, silent.slow) = (None, Vec::new());
    for (sample, says, not) in [
        (unfollowed, "its single I/Os are not followed here; ? says why", "nothing finished"),
        (silent, "no sync was recorded", "not seen"),
    ] {
        let mut model = model(0);
        model.push(sample);
        let found = text(&model, 80, 24);
        assert!(found.contains(says) && !found.contains(not), "{found}");
    }
}

#[test]
fn what_is_filtered_is_marked_and_what_is_shown_is_found() {
    use Key::{Char, Enter};
    let mut model = model(12);
    keys(&mut model, &[Char('4'), Char('/'), Char('v'), Char('d'), Char('a'), Enter]);
    assert_eq!(model.slow().len(), 2, "by the name that is shown");
    keys(&mut model, &[Char('2'), Char('/'), Char('c'), Char(' '), Char('w'), Enter]);
    let found = text(&model, 80, 24);
    assert!(row(&found, "sync write").contains("600"), "{found}");
    assert!(found.contains("CLASSES/") && found.contains("SLOW SYNCS/"), "{found}");
    assert!(!found.contains("DEVICES/") && !found.contains("PROCESSES/"), "{found}");
    // Esc is said to remove the filter where it does.
    keys(&mut model, &[Char('/'), Char('x'), Enter]);
    assert!(text(&model, 80, 24).contains("nothing here is called `c wx`; Esc removes the filter"));
    for pressed in [Char('z'), Char('1')] {
        keys(&mut model, &[pressed]);
        assert!(!text(&model, 80, 24).contains("Esc removes"), "{pressed:?}");
        keys(&mut model, &[Char('z')]);
    }
}

#[test]
fn details_and_help_are_scrolled() {
    let mut model = model(12);
    keys(&mut model, &[Key::Char('1'), Key::Enter]);
    assert!(text(&model, 80, 24).contains("+4") && !text(&model, 80, 24).contains("flush,"));
    keys(&mut model, &[Key::PageDown]);
    let found = text(&model, 80, 24);
    assert!(found.contains("flush,") && !found.contains("+4") && !found.contains("device vda"), "{found}");
    keys(&mut model, &[Key::Char('g')]);
    assert!(text(&model, 80, 24).contains("device vda"));
    keys(&mut model, &[Key::Char('?')]);
    assert!(text(&model, 80, 12).contains("+9") && !text(&model, 80, 12).contains("not shown:"));
    keys(&mut model, &[Key::Down, Key::PageDown]);
    assert!(text(&model, 80, 12).contains("not shown:"));
}

#[test]
fn a_recorded_frame_needs_no_sample_of_now() {
    let mut model = model(0);
    assert!(model.begin_at(0, &mut Archive::of(40)));
    let found = text(&model, 80, 24);
    assert!(found.contains("  recorded  ") && found.contains("mariadbd"), "{found}");
}
