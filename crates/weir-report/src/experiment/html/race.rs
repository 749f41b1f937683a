//! A race: the candidates in the order in which they fell behind.

use super::{arms, axis_title, unit};
use crate::experiment::race::{Candidate, candidates, fate};
use crate::experiment::words;
use crate::page::Table;
use crate::page::{bars, data_table};
use crate::plot::{Axis, Bar, BarFigure, Scale};
use maud::{Markup, html};
use weir_experiment::{Role, Study};

/// Looks: survivors, those that fell behind, the baseline.
const LOOKS: [usize; 3] = [2, 5, 1];

/// Bars; candidates that fell behind earlier are in the numbers.
const SHOWN_MAX: usize = 24;

/// One bar for each candidate, then the comparisons.
pub fn html(study: &Study<'_>) -> Markup {
    let raced = candidates(study);
    if raced.is_empty() {
        return Markup::default();
    }
    let main = study.main_metric();
    let longest = raced.iter().map(|c| c.blocks).max().unwrap_or(0);
    let bar = |c: &Candidate| Bar {
        label: words::arm(study, c.arm),
        value: study.value(c.arm, &main).unwrap_or(f64::NAN),
        interval: study.interval(c.arm, &main),
        note: fate(study, c),
        look: match study.role(c.arm) {
            Role::AsFound | Role::Idle => LOOKS[2],
            Role::Tried if c.blocks == longest || c.confirming > 0 => LOOKS[0],
            Role::Tried => LOOKS[1],
        },
    };
    let figure = BarFigure {
        id: "race".to_string(),
        title: "Candidates, the longest survivors first".to_string(),
        finding: "Means over all trials of a candidate with 95 % intervals; the words say how far it came."
            .to_string(),
        axis: Axis::y(axis_title(study, &main), unit(&main), Scale::Linear),
        groups: vec![(String::new(), raced.iter().take(SHOWN_MAX).map(bar).collect())],
    };
    html! {
        (bars(&figure, &arms(study)))
        @if !study.finding.effects.is_empty() { (data_table(&effects(study))) }
    }
}

fn effects(study: &Study<'_>) -> Table {
    let head = ["arm", "against", "figure", "change, 95 % interval", "n", ""].map(str::to_string).to_vec();
    let rows = study.finding.effects.iter().map(|effect| {
        vec![
            words::arm(study, effect.to),
            words::arm(study, effect.from),
            words::title(study, &effect.metric),
            effect.ratio.as_ref().map_or("–".to_string(), words::change),
            effect.units.to_string(),
            words::judgement(effect).to_string(),
        ]
    });
    Table { head, rows: rows.collect(), ..Table::default() }
}
