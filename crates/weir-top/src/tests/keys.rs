//! What keys do to the model.

use super::{Archive, BEGUN_MS, RECORDED_MS, Sample, model, process, sample};
use crate::key::action;
use crate::{Flow, Key, Model, Pane, View};

fn press(model: &mut Model, keys: &str) {
    for c in keys.chars() {
        let key = match c {
            '\n' => Key::Enter,
            '\x1b' => Key::Escape,
            '\t' => Key::Tab,
            '\x08' => Key::Backspace,
            '↓' => Key::Down,
            '↑' => Key::Up,
            '←' => Key::Left,
            '→' => Key::Right,
            '$' => Key::End,
            c => Key::Char(c),
        };
        assert_eq!(model.key(key), Flow::Continue(()), "{c:?}");
    }
}

fn processes(model: &Model) -> Vec<&str> {
    model.processes().iter().map(|process| process.name.as_str()).collect()
}

#[test]
fn ctrl_c_ends_it_always_and_q_where_nothing_is_typed() {
    let mut model = model(3);
    assert_eq!(model.key(Key::Char('q')), Flow::Break(()));
    press(&mut model, "/q");
    assert_eq!(model.choice(Pane::Processes).filter, "q");
    assert_eq!(model.key(Key::Ctrl('c')), Flow::Break(()));
    assert_eq!(action(Key::Ctrl('d'), false), None);
    assert_eq!(action(Key::Tab, true), None);
}

#[test]
fn time_is_stepped_through_and_stands_while_samples_come() {
    let mut model = model(20);
    let clock = |model: &Model| model.history.shown().unwrap().clock.clone();
    assert!(model.history.is_live());
    press(&mut model, "←←");
    assert_eq!((clock(&model), model.history.behind()), ("03:12:17".to_string(), 2));
    model.push(sample(20));
    assert_eq!((clock(&model), model.history.behind()), ("03:12:17".to_string(), 3));
    press(&mut model, "<");
    assert_eq!(clock(&model), "03:12:07");
    assert_eq!(model.slow().len(), 0, "what came later is not shown");
    press(&mut model, "<<");
    assert_eq!(clock(&model), "03:12:00", "there is nothing before the first");
    press(&mut model, ">→");
    assert_eq!(clock(&model), "03:12:11");
    assert_eq!(model.slow().len(), 2);
    press(&mut model, "$");
    assert!(model.history.is_live());
    assert_eq!(clock(&model), "03:12:20");
    press(&mut model, " ");
    model.push(sample(21));
    assert_eq!(clock(&model), "03:12:20", "it stays");
    press(&mut model, " ");
    assert_eq!(clock(&model), "03:12:21", "and is live again");
}

#[test]
fn a_sample_that_is_no_longer_kept_gives_way_to_the_oldest() {
    let mut model = Model::new(super::about(), 5);
    (0..5).for_each(|n| model.push(sample(n)));
    press(&mut model, "<");
    assert_eq!(model.history.shown().unwrap().clock, "03:12:00");
    (5..8).for_each(|n| model.push(sample(n)));
    assert_eq!((model.history.len(), model.history.shown().unwrap().clock.as_str()), (5, "03:12:03"));
    press(&mut model, "→");
    assert_eq!(model.history.shown().unwrap().clock, "03:12:04");
}

#[test]
fn processes_are_sorted_turned_round_and_filtered() {
    let mut model = model(11);
    let hostile = "a\x1b[2Jb\n漢字";
    assert_eq!(processes(&model), ["mariadbd", hostile, "dd"], "those that wait first");
    press(&mut model, "sss");
    assert_eq!(processes(&model), ["dd", "mariadbd", hostile], "by what they write");
    press(&mut model, "r");
    assert_eq!(processes(&model), [hostile, "mariadbd", "dd"]);
    press(&mut model, "ss");
    assert_eq!(processes(&model), [hostile, "dd", "mariadbd"], "by name");
    press(&mut model, "/MARIA");
    assert!(model.typing);
    assert_eq!(processes(&model), ["mariadbd"]);
    press(&mut model, "x\x08\n");
    assert!(!model.typing);
    assert_eq!(processes(&model), ["mariadbd"], "the filter is kept");
    press(&mut model, "\x1b");
    assert_eq!(processes(&model).len(), 3);
    press(&mut model, "/4711\n");
    assert_eq!(processes(&model), ["dd"], "by number too");
    press(&mut model, "/\x1b");
    assert_eq!(model.choice(Pane::Processes).filter, "");
}

#[test]
fn a_selected_row_stays_selected_wherever_it_goes() {
    let mut model = model(11);
    press(&mut model, "↓↓");
    assert_eq!(model.process().unwrap().name, "dd");
    press(&mut model, "sss");
    assert_eq!(model.process().unwrap().name, "dd", "it is the first now");
    let mut next: Sample = sample(12);
    next.processes.retain(|process| process.name != "dd");
    next.processes.push(process(5000, "cp", 1e9, None));
    model.push(next);
    assert!(model.process().is_some(), "another one takes its place");
    press(&mut model, "\n");
    assert_eq!(model.view, View::Details);
    press(&mut model, "\x1b");
    assert_eq!(model.view, View::Overview);
}

#[test]
fn panes_are_gone_through_and_opened() {
    let mut model = model(12);
    assert_eq!(model.pane, Pane::Processes);
    press(&mut model, "\t");
    assert_eq!(model.pane, Pane::Slow);
    press(&mut model, "\t↓");
    assert_eq!((model.pane, model.device().unwrap().name.as_str()), (Pane::Devices, "vdb"));
    press(&mut model, "4");
    assert_eq!(model.slow_sync().unwrap().1.took_ns, 180_000_000);
    press(&mut model, "z");
    assert_eq!(model.view, View::Zoomed);
    press(&mut model, "z?");
    assert!(model.help && model.view == View::Overview);
    press(&mut model, "\x1b");
    assert!(!model.help);
    assert!(model.key(Key::BackTab).is_continue());
    assert_eq!(model.pane, Pane::Processes);
    // Nothing to open, nothing to select.
    let mut empty = super::model(0);
    press(&mut empty, "\n↓↑zs r/x\n←→");
    assert_eq!(empty.view, View::Zoomed);
}

#[test]
fn what_one_sample_holds_is_bounded() {
    let mut crowded = sample(10);
    crowded.processes = (0..5_000).map(|pid| process(pid, "x", f64::from(pid), None)).collect();
    crowded.slow = (0..5_000).map(|n| super::slow(n, n, "x")).collect();
    let mut model = super::model(0);
    model.push(crowded);
    let kept = model.history.shown().unwrap();
    assert_eq!((kept.processes.len(), kept.slow.len()), (100, 40));
    assert_eq!((kept.processes[0].pid, kept.slow[0].took_ns), (Some(4_999), 4_999), "the greatest");
}

/// How many recorded intervals before the first sample the shown one ended.
fn before(model: &Model) -> i64 {
    let shown = model.history.shown().unwrap();
    assert!(shown.is_recorded);
    (BEGUN_MS - shown.at_ms) / RECORDED_MS
}

fn press_with(model: &mut Model, archive: &mut Archive, keys: &str) {
    for key in keys.chars() {
        press(model, &key.to_string());
        model.fetch(archive);
    }
}

#[test]
fn before_the_first_sample_come_recorded_ones_and_the_way_leads_back() {
    let (mut model, mut archive) = (model(3), Archive::of(40));
    press_with(&mut model, &mut archive, "←←←");
    assert_eq!(before(&model), 0, "the one that ended when the first sample began");
    press_with(&mut model, &mut archive, "<<");
    assert_eq!(before(&model), 20);
    press_with(&mut model, &mut archive, "<<<");
    assert_eq!(before(&model), 39, "there is nothing before the first");
    assert!(model.history.back().count() <= 1, "what came later is not shown");
    press_with(&mut model, &mut archive, ">>>→→→→→→→→→");
    assert_eq!(before(&model), 0);
    assert_eq!(model.history.back().count(), 40);
    press_with(&mut model, &mut archive, "→");
    assert_eq!(model.history.shown().unwrap().clock, "03:12:00", "the first that was watched");
    press_with(&mut model, &mut archive, ">→");
    assert_eq!((model.history.behind(), model.history.is_live()), (0, false));
    press_with(&mut model, &mut archive, "<$");
    assert!(model.history.is_live());
}

#[test]
fn a_time_is_begun_at_and_its_future_leads_to_the_present() {
    let (mut model, mut archive) = (model(3), Archive::of(400));
    archive.hole = 100..200;
    let at = |before: i64| BEGUN_MS - before * RECORDED_MS - 1;
    assert!(model.begin_at(at(300), &mut archive));
    assert_eq!(before(&model), 300);
    press_with(&mut model, &mut archive, "←");
    assert_eq!(before(&model), 301);
    assert!(model.begin_at(at(150), &mut archive));
    assert_eq!(before(&model), 99, "the next that was recorded");
    press_with(&mut model, &mut archive, "←");
    assert_eq!(before(&model), 200, "over what nobody recorded");
    press_with(&mut model, &mut archive, &">".repeat(11));
    assert!(!model.history.shown().unwrap().is_recorded);
    press_with(&mut model, &mut archive, "[");
    assert_eq!(before(&model), 359);
    press_with(&mut model, &mut archive, "[");
    assert_eq!(before(&model), 399, "the first is as far as it goes");
    press_with(&mut model, &mut archive, "]]");
    assert!(model.history.is_live());
    // Nothing as late as that: the last there is.
    let mut old = Archive::of(0);
    assert!(!super::model(0).begin_at(0, &mut old));
}

#[test]
fn samples_go_on_while_recorded_ones_are_shown() {
    let mut model = Model::new(super::about(), 5);
    (0..5).for_each(|n| model.push(sample(n)));
    let mut archive = Archive::of(2_000);
    press_with(&mut model, &mut archive, "←←←←←←");
    let shown_ms = model.history.shown().unwrap().at_ms;
    (5..20).for_each(|n| model.push(sample(n)));
    assert_eq!(model.history.shown().unwrap().at_ms, shown_ms, "it stays");
    press_with(&mut model, &mut archive, "→→");
    assert_eq!(model.history.shown().unwrap().at_ms, BEGUN_MS + 16_000, "what is no longer kept is left out");
    press_with(&mut model, &mut archive, "←");
    assert_eq!(before(&model), 0);
    // However far it goes, a bounded number is held.
    press_with(&mut model, &mut archive, &"<".repeat(150));
    assert_eq!(before(&model), 1_500);
    let held = |model: &Model| model.history.behind() + model.history.back().count() - model.history.len();
    assert!(held(&model) <= 1_000, "{}", held(&model));
    press_with(&mut model, &mut archive, &">".repeat(151));
    assert!(held(&model) <= 1_000);
    assert!(!model.history.shown().unwrap().is_recorded);
}

#[test]
fn without_an_archive_time_ends_as_it_did() {
    let (mut model, mut archive) = (model(3), Archive::of(0));
    press_with(&mut model, &mut archive, "<[");
    assert_eq!(model.history.shown().unwrap().clock, "03:12:00");
    press_with(&mut model, &mut archive, "]");
    assert!(model.history.is_live());
    let mut empty = super::model(0);
    press_with(&mut empty, &mut archive, "←→<>[]$ ");
    assert!(empty.history.shown().is_none());
}
